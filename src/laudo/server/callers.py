"""Finds whose a token is: reads it from the store, and remembers it only while nothing in the store has changed."""

from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from time import time_ns
from typing import Final

import msgspec

from laudo.core import disclosure, errors
from laudo.core.errors import ApiError
from laudo.core.sql import Owner, Statement
from laudo.server import logs
from laudo.server.database import Mark, Reader, Row, Served
from laudo.server.forecast import Forecast
from laudo.server.limits import REMEMBERED, Limits
from laudo.server.recent import Recent
from laudo.server.tokens import PREFIX, hash_token

_SUSPICIOUS: Final = 3
_WRONG_KEY: Final = (
    "tokens: every token of laudo's form was refused since this worker started; if they should work, "
    "its key file is not the one under which they were created"
)
"""What a worker says once, after that many requests with such tokens: it cannot know a wrong key in another way."""

_HOLDER: Final = """
SELECT t.id_organizacao, t.id_conta, t.id_usuario, t.id_token, t.expires_at
FROM token t
WHERE t.hash = ? AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > ?)
"""
_DETAILS: Final = "u.email, u.nome_usuario, c.webhook_url, o.nome_organizacao, c.version, o.version"
_FROM: Final = """
FROM usuario u
JOIN conta c ON c.id_organizacao = u.id_organizacao
JOIN organizacao o ON o.id_organizacao = u.id_organizacao
"""
_WHERE_ENABLED: Final = """
WHERE u.id_organizacao = ? AND c.id_conta = ? AND u.id_usuario = ?
  AND u.enabled = 1 AND c.enabled = 1 AND o.enabled = 1
"""
_CALLER: Final = f"SELECT {_DETAILS}{_FROM}{_WHERE_ENABLED}"
_CALLER_AGAIN: Final = f"SELECT t.*, {_DETAILS}{_FROM}CROSS JOIN ({_HOLDER}) t{_WHERE_ENABLED}"


@disclosure.only("id_organizacao", "id_conta", "id_token")
class Caller(msgspec.Struct, frozen=True, dict=True):
    """Who asks: everything that the endpoints need to know of a token's owner, without the token."""

    id_organizacao: int
    id_conta: int
    id_usuario: int
    id_token: int
    expires_at: int | None
    email: str
    nome_usuario: str
    webhook_url: str
    nome_organizacao: str
    version_conta: int
    version_organizacao: int
    as_of: Mark = None
    """The state of the store from which all of this was read."""

    @cached_property
    def owner(self) -> Owner:
        return Owner(self.id_organizacao, self.id_conta)


MakeExtra = Callable[[Caller], Statement | None]
"""Makes, from the remembered caller, a query that may be sent together with the one for the caller."""


class Callers:
    """Admits the callers of one service."""

    def __init__(self, database: Served, key: bytes, limits: Limits, forecast: Forecast) -> None:
        """`key` is the one under which tokens are hashed."""
        self._database = database
        self._hash = lru_cache(maxsize=REMEMBERED)(partial(hash_token, key))
        self._limits = limits
        self._forecast = forecast
        self._remembered: Recent[str, Caller] = Recent(REMEMBERED)
        self._has_admitted = False
        self._refused = 0

    def admit(self, mark: Mark, token: str, make_extra: MakeExtra | None) -> tuple[Caller, list[Row] | None]:
        """Tell whose token it is, in a request that began with `mark`; raises ApiError (401).

        A store on a server has no marks: it is asked for each request. If the caller is remembered, the query that
        `make_extra` makes goes in the same round trip. If the store is likely to be unchanged, that query goes alone,
        and its answer tells whether it is. A store in a file has marks: it is asked only after a change, and since it
        is on this machine, an extra query would save no time.
        """
        remembered = self._remembered.get(token)
        caller, rows = remembered, None
        if remembered is None or mark is None or mark != remembered.as_of or has_expired(remembered):
            caller, rows = self._read(mark, token, remembered, make_extra)
        if caller is None:
            self._remembered.drop(token)
            self._suspect_key(token)
            raise ApiError(errors.UNAUTHORIZED)
        if caller is not remembered:
            self._has_admitted = True
            self._remembered.keep(token, caller)
        return caller, rows

    def _suspect_key(self, token: str) -> None:
        """Say once that the key may be wrong, if it has admitted nobody; a token made elsewhere proves nothing."""
        if not self._has_admitted and token.startswith(PREFIX):
            self._refused += 1
            if self._refused == _SUSPICIOUS:
                logs.notice(_WRONG_KEY)

    def _read(
        self, mark: Mark, token: str, remembered: Caller | None, make_extra: MakeExtra | None
    ) -> tuple[Caller | None, list[Row] | None]:
        hashed, now_ms = self._hash(token), _now_ms()
        if remembered is None:
            return caller_of(self._database, hashed, now_ms=now_ms, mark=mark), None
        reread = partial(_reread, self._database, hashed, remembered, now_ms=now_ms)
        if mark is not None:
            return reread(None, mark=mark)
        extra = make_extra(remembered) if make_extra and self._limits.allow(remembered.id_token) else None
        rows = None
        if self._forecast.expects(remembered.as_of) and not has_expired(remembered):
            answers, seen = self._database.fetch_marked([] if extra is None else [extra])
            extra, rows = None, answers[0] if answers else None
            if self._forecast.confirms(remembered.as_of, seen):
                return remembered, rows
        caller, extra_rows = reread(extra)
        self._forecast.learn(caller.as_of if caller else None)
        return caller, extra_rows if rows is None else rows


def caller_of(reader: Reader, token_hash: bytes, *, now_ms: int, mark: Mark = None) -> Caller | None:
    """Find whose token it is; None if it does not work, or its user, account or organization is disabled.

    `mark` is that of the store before this is read. The token gives the owner, by which everything else is looked up:
    no statement searches the rows of other organizations.
    """
    for found in reader.fetch(Statement(_HOLDER, (token_hash, now_ms))):
        for row in reader.fetch(Statement(_CALLER, found[:3])):
            return Caller(*(*found, *row, mark))
    return None


def _reread(
    database: Served, token_hash: bytes, remembered: Caller, extra: Statement | None, *, now_ms: int, mark: Mark = None
) -> tuple[Caller | None, list[Row] | None]:
    """Read a remembered caller again; None also if, in a restored store, the token is somebody else's.

    The statement `extra`, if any, follows in the same round trip, and its rows are given with the caller.
    """
    ids = (*remembered.owner, remembered.id_usuario)
    statements = [Statement(_CALLER_AGAIN, (token_hash, now_ms, *ids))]
    [callers, *others], seen = database.fetch_marked(statements if extra is None else [*statements, extra])
    found = next((Caller(*(*row, mark or seen)) for row in callers if row[:3] == ids), None)
    return found, others[0] if others else None


def has_expired(caller: Caller) -> bool:
    """Tell whether a caller's token has expired since it was read."""
    return caller.expires_at is not None and caller.expires_at <= _now_ms()


def _now_ms() -> int:
    return time_ns() // 1_000_000
