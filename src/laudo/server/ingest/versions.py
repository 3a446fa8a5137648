"""Reads and raises versions: that of a list is raised in the transaction that changes it, which tells readers.

The number of rows is written with the version. Versions follow the clock (milliseconds since 1970, times a million,
about), and have a random part. So a store restored from a backup never reaches a version that it has shown before with
other reports: an ETag names one state for good, even if a clock was ahead, or if a store and its copy both go on.
"""

from secrets import randbits
from time import time_ns
from typing import Final, NamedTuple

from laudo.core import sql
from laudo.core.resources import PESSOAS, RELATORIOS, Resource
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.writes import CONTA, ORGANIZACAO
from laudo.server.database import Connection


class StoreVersion(NamedTuple):
    """Which store it is, by the instant at which it was made, and the version of an account that a pull noted there."""

    made_at: int
    version: int


def pulled(connection: Connection, owner: Owner) -> StoreVersion:
    """Tell how far pulls into an account have come; a restored backup sets it back, and nothing else raises it."""
    [(made_at,)], [(version,)] = connection.fetch_each([Statement(_MADE_AT), Statement(_PULLED, owner)])
    return StoreVersion(made_at, version)


def note_pull(connection: Connection, owner: Owner) -> StoreVersion:
    """Note the account's version as what a pull has come to; later ones, which others may give it, say nothing."""
    connection.fetch(Statement(_NOTE_PULL, owner))
    return pulled(connection, owner)


def raise_conta(connection: Connection, owner: Owner, total: int, version: int | None = None) -> int:
    """Raise the version of an account's reports, and give the new one; `total` is how many reports there are now.

    `version` is the old one, if the caller has read it.
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
    """Give a version; 0 if its row is missing, which `laudo verify` names."""
    found = connection.fetch(sql.version(resource, owner))
    return int(found[0][0]) if found else 0


def _raised(version: int) -> int:
    """Give the version of this moment, or, if the clock was set back, one that is just above the old one."""
    step = 1 + randbits(_RANDOM_BITS)
    now = (time_ns() // 1_000_000 << _RANDOM_BITS) + step
    return now if version < now else version + step


_RANDOM_BITS: Final = 20
"""Random bits of a version, which has 63 bits: when a restored store comes to where it was, two versions are equal by
chance once in a million times, and the clock has room until the year 2248."""
_CONTA: Final = Write(How.SET, CONTA, ("version", "total"))
_ORGANIZACAO: Final = Write(How.SET, ORGANIZACAO, ("version", "total"))
_MADE_AT: Final = "SELECT min(applied_at) FROM migration"
_PULLED: Final = "SELECT pulled FROM conta WHERE id_organizacao = ? AND id_conta = ?"
_NOTE_PULL: Final = "UPDATE conta SET pulled = version WHERE id_organizacao = ? AND id_conta = ? AND pulled <> version"
