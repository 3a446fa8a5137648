"""Raises the versions that tell readers that a list may have changed, in the transaction that changes it; tells them.

With a version is written how many rows the list has. Versions follow the clock (milliseconds since 1970, times a
million, about), and grow by chance within each, so that a store restored from a backup never comes to a version that it
has shown before with other reports: an ETag names one state for good, also where a clock was ahead, or a store and its
copy both go on.
"""

from secrets import randbits
from time import time_ns
from typing import Final, NamedTuple

from laudo.core import sql
from laudo.core.resources import PESSOAS, RELATORIOS, Resource
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.writes import CONTA, ORGANIZACAO
from laudo.server.database import Connection


class Standing(NamedTuple):
    """Which store it is, told by the instant it was made at, and to which version an account has come there."""

    made_at: int
    version: int


def standing(connection: Connection, owner: Owner) -> Standing:
    """Tell where an account stands; a backup that is restored takes it back, a store made anew is another one."""
    [(made_at,)], [(version,)] = connection.fetch_each([Statement(_MADE_AT), sql.version(RELATORIOS, owner)])
    return Standing(made_at, version)


def raise_conta(connection: Connection, owner: Owner, total: int, version: int | None = None) -> int:
    """Raise the version of an account's reports, which who has read it gives; `total` is how many there are now.

    Gives the new version.
    """
    raised = _raised(_read(connection, RELATORIOS, owner) if version is None else version)
    connection.write(_CONTA, [(*owner, raised, total)])
    return raised


def raise_organizacao(connection: Connection, id_organizacao: int, total: int, version: int | None = None) -> int:
    """Raise the version of an organization's persons in the same way."""
    raised = _raised(_read(connection, PESSOAS, Owner(id_organizacao, 0)) if version is None else version)
    connection.write(_ORGANIZACAO, [(id_organizacao, raised, total)])
    return raised


def _read(connection: Connection, resource: Resource, owner: Owner) -> int:
    """Give a version; any number where its row has gone, which `laudo verify` names."""
    found = connection.fetch(sql.version(resource, owner))
    return int(found[0][0]) if found else 0


def _raised(version: int) -> int:
    """Give the version of now; where that is not above the old one, as after a clock was set back, one that is."""
    step = 1 + randbits(_CHANCE_BITS)
    now = (time_ns() // 1_000_000 << _CHANCE_BITS) + step
    return now if version < now else version + step


_CHANCE_BITS: Final = 20
"""Of a version, which has 63 bits: two are the same by chance once in a million times that a store comes to where it
was, and the clock has room until the year 2248."""
_CONTA: Final = Write(How.SET, CONTA, ("version", "total"))
_ORGANIZACAO: Final = Write(How.SET, ORGANIZACAO, ("version", "total"))
_MADE_AT: Final = "SELECT min(applied_at) FROM migration"
