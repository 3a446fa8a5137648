"""Raises the versions that tell readers that a list may have changed, in the transaction that changes it; tells them.

They follow the clock (milliseconds since 1970, times a million, about), and grow by chance within each, so that a store
restored from a backup never comes to a version that it has shown before with other reports: an ETag names one state for
good, also where a clock was ahead, or a store and its copy both go on.
"""

from secrets import randbits
from time import time_ns
from typing import Final, NamedTuple

from laudo.core import sql
from laudo.core.resources import RELATORIOS
from laudo.core.sql import Owner, Statement
from laudo.server.database import Connection


class Standing(NamedTuple):
    """Which store it is, told by the instant it was made at, and to which version an account has come there."""

    made_at: int
    version: int


def standing(connection: Connection, owner: Owner) -> Standing:
    """Tell where an account stands; a backup that is restored takes it back, a store made anew is another one."""
    [(made_at,)], [(version,)] = connection.fetch_each([Statement(_MADE_AT), sql.version(RELATORIOS, owner)])
    return Standing(made_at, version)


def raise_conta(connection: Connection, owner: Owner) -> None:
    """Raise the version of an account's reports."""
    connection.fetch(Statement(_CONTA, (*_next(), *owner)))


def raise_organizacao(connection: Connection, id_organizacao: int) -> None:
    """Raise the version of an organization's persons."""
    connection.fetch(Statement(_ORGANIZACAO, (*_next(), id_organizacao)))


def _next() -> tuple[int, int, int]:
    """Give the version of now, twice, and by how much one that is not below it grows."""
    step = 1 + randbits(_CHANCE_BITS)
    now = (time_ns() // 1_000_000 << _CHANCE_BITS) + step
    return now, now, step


_CHANCE_BITS: Final = 20
"""Of a version, which has 63 bits: two are the same by chance once in a million times that a store comes to where it
was, and the clock has room until the year 2248."""
_RAISED: Final = "version = CASE WHEN version < ? THEN ? ELSE version + ? END"
_CONTA: Final = f"UPDATE conta SET {_RAISED} WHERE id_organizacao = ? AND id_conta = ?"
_ORGANIZACAO: Final = f"UPDATE organizacao SET {_RAISED} WHERE id_organizacao = ?"
_MADE_AT: Final = "SELECT min(applied_at) FROM migration"
