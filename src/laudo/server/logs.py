"""What a server writes: the request log, one JSON line a request, on standard output; notices on standard error.

A line names what was asked (route, filters), but no values: no query string, document, name or token. If it cannot be
written, because the disk is full or its reader is gone, a notice says so; no request is refused because of that, and
no thread ends.
"""

import os
import re
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from time import monotonic
from typing import Final

import msgspec

_STDOUT: Final = 1
_CPF: Final = re.compile(r"(?<![0-9])[0-9]{3}(?:\.?[0-9]{3}\.?|[._-][0-9]{3}[._-])[0-9]{3}[._-]?[0-9]{2}(?![0-9])")
"""What may be a CPF, with any separator that an id may have: a client may name a request after the person."""
_UUID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE
).fullmatch
"""UUIDs as generators make them are never masked, though one in about 230 has eleven digits in its last group."""
_REPEAT_SECONDS: Final = 10
_encoder: Final = msgspec.json.Encoder()


class Line(msgspec.Struct, frozen=True):
    """The fields of a line, in this order; `ms` is the time in the application, `id_token` null without a token."""

    time: datetime
    request_id: str
    route: str
    method: str
    status: int
    ms: float
    bytes: int
    id_token: int | None
    filters: Sequence[str]


class Entry(msgspec.Struct, frozen=True):
    """What the log says of an answer each time it is given: `route` and `filters` are names, `size` is in bytes."""

    route: str
    status: int
    size: int
    id_token: int | None
    filters: Sequence[str]


def request_line(request_id: str, method: str, seconds: float, entry: Entry) -> None:
    """Write one line, whole, in one system call, so that lines of several workers never mix."""
    ms = int(seconds * 1_000_000) / 1000
    now, size, id_token = datetime.now(UTC), entry.size, entry.id_token
    shown = request_id if _UUID(request_id) else _CPF.sub("***", request_id)
    line = Line(now, shown, entry.route, method, entry.status, ms, size, id_token, entry.filters)
    try:
        os.write(_STDOUT, _encoder.encode(line) + b"\n")
    except OSError as error:
        _log.notice(f"log: {error.strerror}; a request was not logged")


def notice(text: str) -> None:
    """Write a line for the operator, on standard error if there is one."""
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(f"{text}\n")


class Throttled:
    """Writes each text at most once in ten seconds; the texts are few, so all are remembered."""

    def __init__(self) -> None:
        self._written: dict[str, float] = {}
        self._lock = threading.Lock()

    def notice(self, text: str) -> None:
        """Write a line for the operator, unless the same one was written in the last ten seconds."""
        now = monotonic()
        with self._lock:
            if now - self._written.get(text, -inf) < _REPEAT_SECONDS:
                return
            self._written[text] = now
        notice(text)


_log: Final = Throttled()
