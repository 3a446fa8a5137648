"""The request log: one JSON line a request on standard output, and the only place that writes one.

A line names what was asked (route, filters), never a value of it: no query string, document, name or token.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

_STDOUT: Final = 1
_encoder: Final = msgspec.json.Encoder()


class Line(msgspec.Struct, frozen=True):
    """What a line says, in this order; `ms` is the application's time, `id_token` null without one."""

    time: datetime
    request_id: str
    route: str
    method: str
    status: int
    ms: float
    bytes: int
    id_token: int | None
    filters: Sequence[str]


class Told(NamedTuple):
    """What is told of an answer, whoever asked for it when: `route` and `filters` are names, `size` is in bytes."""

    route: str
    status: int
    size: int
    id_token: int | None
    filters: Sequence[str]


def request_line(request_id: str, method: str, seconds: float, told: Told) -> None:
    """Write one line, whole, in one system call, so that lines of several workers never mix.

    A log that cannot be written is no reason to refuse the request.
    """
    ms = int(seconds * 1_000_000) / 1000
    route, status, size, id_token, filters = told
    line = Line(datetime.now(UTC), request_id, route, method, status, ms, size, id_token, filters)
    try:
        os.write(_STDOUT, _encoder.encode(line) + b"\n")
    except OSError:
        return
