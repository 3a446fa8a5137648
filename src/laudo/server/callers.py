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
from laudo.server.database import Database, Mark, Row
from laudo.server.limits import Limits
from laudo.server.recent import Recent

_TOKENS: Final = 1000
"""Tokens whose hashes and callers a worker remembers."""


Beside = Callable[[Caller], Statement | None]
"""Makes the query that may go beside the one for a caller, of who the caller was before."""


def _nothing(_caller: Caller) -> None:
    pass


class Callers:
    """Admits the callers of one service."""

    def __init__(self, key: bytes, limits: Limits) -> None:
        """`key` is the one under which tokens are hashed."""
        self._hash = lru_cache(maxsize=_TOKENS)(partial(auth.hash_token, key))
        self._limits = limits
        self._met: Recent[str, tuple[Mark, Caller]] = Recent(_TOKENS)

    def admit(
        self, database: Database, mark: Mark, token: str, beside: Beside = _nothing
    ) -> tuple[Caller, list[Row] | None]:
        """Tell whose token it is, and count the request, which began with `mark`; raises ApiError (401, 429).

        Where the store must be asked each time, what `beside` makes of a caller who was met before is asked in the same
        round trip: its rows come with the caller. A store that has marks is asked once the list may have changed, and
        is in this machine: nothing is gained by asking ahead.
        """
        as_of, caller = self._met.get(token) or (None, None)
        rows = None
        if caller is None or mark is None or mark != as_of or has_expired(caller):
            caller, rows = self._read(database, token, caller, beside if mark is None else _nothing)
            self._met.keep(token, (mark, caller))
        self._limits.spend(caller.id_token)
        return caller, rows

    def _read(
        self, database: Database, token: str, before: Caller | None, beside: Beside
    ) -> tuple[Caller, list[Row] | None]:
        hashed, now_ms, rows = self._hash(token), _now_ms(), None
        if before is None:
            caller = auth.caller(database, hashed, now_ms=now_ms)
        else:
            more = beside(before) if self._limits.allow(before.id_token) else None
            caller, rows = auth.caller_again(database, hashed, before, more, now_ms=now_ms)
        if caller is None:
            self._met.drop(token)
            raise ApiError(errors.UNAUTHORIZED)
        return caller, rows


def has_expired(caller: Caller) -> bool:
    """Tell whether a caller's token has ended since it was read."""
    return caller.expires_at is not None and caller.expires_at <= _now_ms()


def _now_ms() -> int:
    return time_ns() // 1_000_000
