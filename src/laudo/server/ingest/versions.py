"""Raises the versions that tell readers that a list may have changed, in the transaction that changes it; tells them.

They follow the clock (milliseconds since 1970), so that a store restored from a backup never comes to a version that it
has shown before with other reports: an ETag names one state for good, as long as no clock was ahead.
"""

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
    now_ms = time_ns() // 1_000_000
    connection.fetch(Statement(_CONTA, (now_ms, now_ms, *owner)))


def raise_organizacao(connection: Connection, id_organizacao: int) -> None:
    """Raise the version of an organization's persons."""
    now_ms = time_ns() // 1_000_000
    connection.fetch(Statement(_ORGANIZACAO, (now_ms, now_ms, id_organizacao)))


_RAISED: Final = "version = CASE WHEN version < ? THEN ? ELSE version + 1 END"
_CONTA: Final = f"UPDATE conta SET {_RAISED} WHERE id_organizacao = ? AND id_conta = ?"
_ORGANIZACAO: Final = f"UPDATE organizacao SET {_RAISED} WHERE id_organizacao = ?"
_MADE_AT: Final = "SELECT min(applied_at) FROM migration"
