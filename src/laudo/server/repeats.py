"""Repeated requests: each gets the same answer as before, as long as nothing has changed in the store."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from falcon import code_to_http_status
from msgspec import Struct

from laudo.core import disclosure
from laudo.core.errors import ApiError
from laudo.server.callers import Caller, has_expired
from laudo.server.database import Mark, Served
from laudo.server.forecast import Forecast
from laudo.server.limits import Limits
from laudo.server.logs import Entry
from laudo.server.recent import Recent

Environ = dict[str, Any]

MARK: Final = "laudo.mark"
"""Key of a request's `environ`: the mark of the store with which it began."""
_QUESTION: Final = "laudo.question"
"""Key of a request's `environ`: what is asked, if the answer may be kept and given again."""
_OVERHEAD_BYTES: Final = 1_000
"""About how many bytes an answer takes up besides its texts and its body."""


@disclosure.only("status", "caller", "entry", "weight")
class KeptAnswer(Struct, frozen=True):
    """An answer as it was sent, without the request's id, and what the log says of it."""

    status: str
    headers: Sequence[tuple[str, str]]
    chunks: Sequence[bytes]
    caller: Caller
    entry: Entry
    weight: int
    """Bytes that it takes up in memory, including the question, which a client can make long."""


class Repeats:
    """The answers of one worker, by request.

    They are given again only while the store is known to be unchanged. A store in a file shows this without a query
    (`Served.mark`); a server is asked only for this, if it is likely to be unchanged.
    """

    def __init__(self, database: Served, limits: Limits, forecast: Forecast, *, cache_bytes: int) -> None:
        """Up to `cache_bytes` of answers are kept; each that is given counts against its caller's limits."""
        self._keeps = cache_bytes > 0
        self._database = database
        self._limits = limits
        self._forecast = forecast
        self._answers: Recent[tuple[str | None, ...], KeptAnswer] = Recent(cache_bytes, attrgetter("weight"))

    def find(self, environ: Environ) -> KeptAnswer | None:
        """Begin a request; give its earlier answer if the store has not changed and the caller may still ask.

        Raises StoreError.
        """
        mark = environ[MARK] = self._database.mark()
        if not self._keeps or environ["REQUEST_METHOD"] != "GET":
            return None
        question = (
            environ["PATH_INFO"],
            environ["QUERY_STRING"],
            environ.get("HTTP_AUTHORIZATION"),
            environ.get("HTTP_IF_NONE_MATCH"),
            environ.get("HTTP_ORIGIN"),
        )
        environ[_QUESTION] = question
        answer = self._answers.get(question)
        if answer is None or has_expired(answer.caller) or not self._is_current(answer.caller.as_of, mark):
            return None
        try:
            self._limits.spend(answer.caller.id_token)
        except ApiError:
            return None
        return answer

    def keep(
        self, environ: Environ, caller: Caller, entry: Entry, headers: Mapping[str, str], body: bytes | None
    ) -> None:
        """Keep an answer that depends only on the request and on the store, in the state `caller.as_of` or later."""
        question = environ.get(_QUESTION)
        if question is None or caller.as_of is None:
            return
        shown = list(headers.items())
        if body is not None:
            shown.append(("content-length", str(len(body))))
        texts = sum([len(text) for text in (*question, *headers.values()) if text])
        answer = KeptAnswer(
            code_to_http_status(entry.status),
            shown,
            () if body is None else (body,),
            caller,
            entry,
            weight=len(body or b"") + texts + _OVERHEAD_BYTES,
        )
        self._answers.keep(question, answer)

    def _is_current(self, as_of: Mark, mark: Mark) -> bool:
        """Tell whether the store is still in a state; if that is likely, a store without marks is asked only for it."""
        if mark is not None:
            return mark == as_of
        if not self._forecast.expects(as_of):
            return False
        return self._forecast.confirms(as_of, self._database.fetch_marked(())[1])
