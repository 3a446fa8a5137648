"""Requests that repeat: each is answered as before while nothing at all has changed in the store."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from falcon import code_to_http_status
from msgspec import Struct

from laudo.server.auth import Caller
from laudo.server.callers import has_expired
from laudo.server.database import Database, Mark
from laudo.server.limits import Limits, TooManyError
from laudo.server.logs import Told
from laudo.server.recent import Recent

Environ = dict[str, Any]

MARK: Final = "laudo.mark"
"""Where a request's `environ` holds the mark of the store that it began with."""
_QUESTION: Final = "laudo.question"
"""Where it holds what is asked, if that may be answered as before."""
_REST: Final = 1_000
"""Bytes that an answer takes up beside its texts and its body, about."""


class Given(Struct, frozen=True):
    """An answer as it was given, but for the request's id, and what is told of it."""

    status: str
    headers: Sequence[tuple[str, str]]
    chunks: Sequence[bytes]
    caller: Caller
    told: Told
    weight: int
    """Bytes that it takes up here, with the question, whose texts a client chooses."""


class Repeats:
    """The answers of one worker, by request.

    Only a store that tells its state without being asked (`Database.mark`) has any: elsewhere the caller must be read
    for each request, and with the caller comes what `Pages` needs to know whether it has the answer.
    """

    def __init__(self, database: Database, limits: Limits, *, cache_bytes: int) -> None:
        """Answers of up to `cache_bytes` in all are kept; each counts against the limits of who asks."""
        self._keeps = cache_bytes > 0
        self._mark = database.mark
        self._limits = limits
        self._given: Recent[tuple[str | None, ...], tuple[Mark, Given]] = Recent(cache_bytes, _weight)

    def find(self, environ: Environ) -> Given | None:
        """Begin a request; give the answer if it was given before in this very state, to a caller who may ask now."""
        mark = environ[MARK] = self._mark()
        if mark is None or not self._keeps or environ["REQUEST_METHOD"] != "GET":
            return None
        question = (
            environ["PATH_INFO"],
            environ["QUERY_STRING"],
            environ.get("HTTP_AUTHORIZATION"),
            environ.get("HTTP_IF_NONE_MATCH"),
            environ.get("HTTP_ORIGIN"),
        )
        environ[_QUESTION] = question
        as_of, given = self._given.get(question) or (None, None)
        if given is None or as_of != mark or has_expired(given.caller):
            return None
        try:
            self._limits.spend(given.caller.id_token)
        except TooManyError:
            return None
        return given

    def keep(
        self, environ: Environ, caller: Caller, told: Told, headers: Mapping[str, str], body: bytes | None
    ) -> None:
        """Keep an answer that depends on the request and on the state alone that `find` saw, or a newer one."""
        if (question := environ.get(_QUESTION)) is None:
            return
        shown = list(headers.items())
        if body is not None:
            shown.append(("content-length", str(len(body))))
        texts = sum([len(text) for text in (*question, *headers.values()) if text])
        given = Given(
            code_to_http_status(told.status),
            shown,
            () if body is None else (body,),
            caller,
            told,
            weight=len(body or b"") + texts + _REST,
        )
        self._given.keep(question, (environ[MARK], given))


def _weight(kept: tuple[Mark, Given]) -> int:
    return kept[1].weight
