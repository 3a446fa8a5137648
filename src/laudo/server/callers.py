"""Whose token it is: read from the store, and remembered only while nothing at all has changed in it."""

from functools import lru_cache, partial
from time import time_ns
from typing import Final

from laudo.core import errors
from laudo.core.errors import ApiError
from laudo.server import auth
from laudo.server.auth import Caller
from laudo.server.database import Database, Mark
from laudo.server.limits import Limits

_TOKENS: Final = 1000
"""Tokens whose hashes and callers a worker remembers."""


class Callers:
    """Admits the callers of one service."""

    def __init__(self, key: bytes, limits: Limits) -> None:
        """`key` is the one under which tokens are hashed."""
        self._hash = lru_cache(maxsize=_TOKENS)(partial(auth.hash_token, key))
        self._limits = limits
        self._mark: Mark = None
        self._known: dict[str, Caller] = {}

    def admit(self, database: Database, token: str) -> Caller:
        """Tell whose token it is, and count the request; raises ApiError (401, 429)."""
        mark = database.mark()
        if mark is None or mark != self._mark or len(self._known) > _TOKENS:
            self._known.clear()
            self._mark = mark
        caller = self._known.get(token)
        if caller is None or _has_expired(caller):
            caller = self._known[token] = self._read(database, token)
        self._limits.spend(caller.id_token)
        return caller

    def _read(self, database: Database, token: str) -> Caller:
        caller = auth.caller(database, self._hash(token), now_ms=_now_ms())
        if caller is None:
            raise ApiError(errors.UNAUTHORIZED)
        return caller


def _has_expired(caller: Caller) -> bool:
    return caller.expires_at is not None and caller.expires_at <= _now_ms()


def _now_ms() -> int:
    return time_ns() // 1_000_000
