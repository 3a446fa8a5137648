"""Whose token it is: read from the store, and remembered only while nothing at all has changed in it."""

from collections.abc import Callable
from functools import lru_cache, partial
from time import time_ns
from typing import Final

from laudo.core import errors
from laudo.core.errors import ApiError
from laudo.core.sql import Statement
from laudo.server import auth
from laudo.server.auth import Caller
from laudo.server.calm import Calm
from laudo.server.database import Mark, Row, Served
from laudo.server.limits import Limits
from laudo.server.recent import Recent

_TOKENS: Final = 1000
"""Tokens whose hashes and callers a worker remembers."""


Beside = Callable[[Caller], Statement | None]
"""Makes the query that may go beside the one for a caller, of who the caller was before."""


class Callers:
    """Admits the callers of one service."""

    def __init__(self, key: bytes, limits: Limits, calm: Calm) -> None:
        """`key` is the one under which tokens are hashed."""
        self._hash = lru_cache(maxsize=_TOKENS)(partial(auth.hash_token, key))
        self._limits = limits
        self._calm = calm
        self._met: Recent[str, Caller] = Recent(_TOKENS)

    def admit(
        self, database: Served, mark: Mark, token: str, beside: Beside | None = None
    ) -> tuple[Caller, list[Row] | None]:
        """Tell whose token it is, asked in a request that began with `mark`; raises ApiError (401).

        Where the store must be asked each time, what `beside` makes of a caller who was met before is asked in the same
        round trip: its rows come with the caller, or alone, if they tell that the store is as it was when the caller
        was read. A store that has marks is asked once the list may have changed, and is in this machine: nothing is
        gained by asking ahead.
        """
        met = self._met.get(token)
        caller, rows = met, None
        if met is None or mark is None or mark != met.as_of or has_expired(met):
            caller, rows = self._read(database, mark, token, met, beside)
        if caller is None:
            self._met.drop(token)
            raise ApiError(errors.UNAUTHORIZED)
        if caller is not met:
            self._met.keep(token, caller)
        return caller, rows

    def _read(
        self, database: Served, mark: Mark, token: str, before: Caller | None, beside: Beside | None
    ) -> tuple[Caller | None, list[Row] | None]:
        hashed, now_ms = self._hash(token), _now_ms()
        if before is None:
            return auth.caller(database, hashed, now_ms=now_ms, mark=mark), None
        again = partial(auth.caller_again, database, hashed, before, now_ms=now_ms)
        if mark is not None:
            return again(None, mark=mark)
        more = beside(before) if beside and self._limits.allow(before.id_token) else None
        rows = None
        if self._calm.expects(before.as_of) and not has_expired(before):
            found, seen = database.fetch_marked([] if more is None else [more])
            more, rows = None, found[0] if found else None
            if self._calm.confirms(before.as_of, seen):
                return before, rows
        caller, others = again(more)
        self._calm.learn(caller.as_of if caller else None)
        return caller, others if rows is None else rows


def has_expired(caller: Caller) -> bool:
    """Tell whether a caller's token has ended since it was read."""
    return caller.expires_at is not None and caller.expires_at <= _now_ms()


def _now_ms() -> int:
    return time_ns() // 1_000_000
