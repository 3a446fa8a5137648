"""Rows of an account or organization that is missing: its counts are deleted, all else is only named.

If there are reports, their counts stay: once the account's row is written again, all is as it was.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from laudo.core.sql import Owner, Statement
from laudo.server.database import Connection
from laudo.server.ingest import counting
from laudo.server.ingest.changes import lock_writers
from laudo.server.ingest.pessoas import remove
from laudo.server.ingest.verify.differences import Difference


class _Level(NamedTuple):
    """Accounts or organizations: their table and key, and which rows of which other tables are counts of theirs."""

    name: str
    table: str
    key: tuple[str, ...]
    counted: Mapping[str, str]


def differences(connection: Connection) -> Iterator[Difference]:
    """Name the rows without an owner, table by table."""
    yield from lost(connection)
    for level in (_CONTA, _ORGANIZACAO):
        for table, condition in level.counted.items():
            missing = (_without(table, other, level.key) for other in (level.table, "relatorio"))
            yield from _orphans(connection, level, table, " AND ".join(filter(None, (condition, *missing))))


def lost(connection: Connection) -> Iterator[Difference]:
    """Name the accounts, users and reports without an owner, which `clear` leaves: they are no counts."""
    for table, level, remedy in _LOST:
        found = _orphans(connection, level, table, _without(table, level.table, level.key))
        yield from (replace(each, remedy=remedy) for each in found)


def clear(connection: Connection, owner: Owner) -> None:
    """Delete the counts of an account, or of an organization (account 0), that is missing and has no reports."""
    lock_writers(connection, owner.id_organizacao)
    level = _CONTA if owner.id_conta else _ORGANIZACAO
    same_owner = " AND ".join(f"{column} = ?" for column in level.key)
    params = owner[: len(level.key)]
    for table in (level.table, "relatorio"):
        if connection.fetch(Statement(f"SELECT 1 FROM {table} WHERE {same_owner} LIMIT 1", params)):
            return
    if level is _ORGANIZACAO:
        _remove_pessoas(connection, owner.id_organizacao)
    for table, condition in level.counted.items():
        # A facet is never deleted, only emptied.
        change = "UPDATE facet SET total = 0" if table == "facet" else f"DELETE FROM {table}"
        connection.fetch(Statement(f"{change} WHERE {' AND '.join(filter(None, (same_owner, condition)))}", params))


def _orphans(connection: Connection, level: _Level, table: str, condition: str) -> Iterator[Difference]:
    key = ", ".join(level.key)
    text = f"SELECT count(*), {key} FROM {table} WHERE {condition} GROUP BY {key} ORDER BY {key}"
    for rows, *owner in connection.fetch(Statement(text)):
        ids = dict(zip(level.key, owner, strict=True))
        yield Difference(**ids, what=f"rows of {table} of {level.name} that does not exist", rows=rows)


def _without(table: str, other: str, key: tuple[str, ...]) -> str:
    """Write the condition that no row of another table has the same key."""
    same = " AND ".join(f"{other}.{column} = {table}.{column}" for column in key)
    return f"NOT EXISTS (SELECT 1 FROM {other} WHERE {same})"


def _remove_pessoas(connection: Connection, id_organizacao: int) -> None:
    """Delete persons, with their entries in the index of words."""
    while cpfs := connection.fetch(Statement(_PESSOAS, (id_organizacao, counting.CHUNK))):
        remove(connection, id_organizacao, [cpf for (cpf,) in cpfs])


_CONTA: Final = _Level(
    "an account",
    "conta",
    ("id_organizacao", "id_conta"),
    {"facet": "total <> 0", "bucket": "id_conta > 0", "tally": "id_conta > 0"},
)
_ORGANIZACAO: Final = _Level(
    "an organization",
    "organizacao",
    ("id_organizacao",),
    {"bucket": "id_conta = 0", "tally": "id_conta = 0", "word": "", "pessoa": ""},
)
_BY_SQL: Final = "by SQL: docs/operating.md, Verify"
_LOST: Final = (
    ("conta", _ORGANIZACAO, f"write the missing row of the organization again, {_BY_SQL}"),
    ("usuario", _CONTA, f"write the missing row of the account again, {_BY_SQL}"),
    ("relatorio", _CONTA, f"write the missing row of the account again, or delete its reports, either {_BY_SQL}"),
)
"""What is not counted again: its table, the level of its owner, and what helps."""
_PESSOAS: Final = "SELECT cpf FROM pessoa WHERE id_organizacao = ? LIMIT ?"
