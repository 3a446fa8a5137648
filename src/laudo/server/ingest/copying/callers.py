"""Copies who may ask: organizations, accounts, users and tokens, of which only the hashes are known."""

from collections.abc import Collection, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.writes import CONTA, ORGANIZACAO, TOKEN, USUARIO, Table
from laudo.server.database import Connection, Row, StoreError

NEW_STORE_HINT: Final = (
    "nothing was copied; hint: copy into a new store, as `laudo migrate` creates it, or swap the two URLs"
)
_REVOKE_HINT: Final = "nothing was copied; hint: revoke them in the source too, or copy into a new store"
_MOST_SHOWN: Final = 5


class Kind(NamedTuple):
    """One of the four kinds of rows: two stores have the same row if its key and `fixed` columns are the same.

    `number` is the index, in key and columns, of the number by which people name it, and `known_by` says for people
    what the `fixed` columns are. Versions are not copied.
    """

    noun: str
    number: int
    table: Table
    fixed: tuple[str, ...]
    known_by: str
    changing: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.fixed, *self.changing)

    def identity(self, row: Row) -> Row:
        return row[: len(self.table.key) + len(self.fixed)]


Rows = dict[int, list[Row]]
"""id_organizacao -> rows."""


class Callers:
    """All who may ask one store."""

    def __init__(self, rows: dict[Kind, Rows]) -> None:
        self._rows = rows

    @property
    def organizacoes(self) -> list[int]:
        return sorted(self._rows[_ORGANIZATION])

    def owners(self, id_organizacao: int) -> list[Owner]:
        return [Owner(*row[:2]) for row in self.rows(_ACCOUNT, id_organizacao)]

    def rows(self, kind: Kind, id_organizacao: int) -> list[Row]:
        return self._rows[kind].get(id_organizacao, [])

    def of(self, id_organizacao: int) -> "Callers":
        """Give those of one organization."""
        return Callers({kind: {id_organizacao: self.rows(kind, id_organizacao)} for kind in KINDS})

    def all(self, kind: Kind) -> list[Row]:
        return [row for rows in self._rows[kind].values() for row in rows]


def read(connection: Connection, id_organizacao: int | None = None) -> Callers:
    """Read all who may ask a store, or only those of one organization."""
    where, params = ("", ()) if id_organizacao is None else (" WHERE id_organizacao = ?", (id_organizacao,))
    found = connection.fetch_each([Statement(_select(kind, where), params) for kind in KINDS])
    return Callers({kind: _by_organizacao(rows) for kind, rows in zip(KINDS, found, strict=True)})


def refuse_foreign_rows(source: Callers, target: Callers) -> None:
    """Raise StoreError if the target has rows that the source lacks: it is not a copy, and must not become one.

    The same applies if a token was revoked in the target only: it must never work again.
    """
    for kind in KINDS:
        source_rows = {kind.identity(row) for row in source.all(kind)}
        foreign = [row[kind.number] for row in target.all(kind) if kind.identity(row) not in source_rows]
        _refuse(f"{kind.noun}s that the source lacks, or has with another {kind.known_by}", foreign, NEW_STORE_HINT)
    revoked_in_source = {row[_TOKEN.number] for row in source.all(_TOKEN) if _is_revoked(row)}
    revoked_in_target = (row[_TOKEN.number] for row in target.all(_TOKEN) if _is_revoked(row))
    working = [number for number in revoked_in_target if number not in revoked_in_source]
    _refuse("revoked tokens that work in the source", working, _REVOKE_HINT)


def _refuse(what: str, numbers: Collection[int], hint: str) -> None:
    if numbers:
        shown = ", ".join(map(str, sorted(numbers)[:_MOST_SHOWN])) + (" …" if len(numbers) > _MOST_SHOWN else "")
        raise StoreError(f"the target has {what}: {shown}; {hint}")


def _is_revoked(token: Row) -> bool:
    return token[-1] is not None


def write(writing: Connection, id_organizacao: int, source: Callers) -> None:
    """Write the rows of an organization that the target lacks, and those that have changed.

    The caller has locked out other writers. Raises StoreError if another copy came first and left foreign rows.
    """
    source, target = source.of(id_organizacao), read(writing, id_organizacao)
    refuse_foreign_rows(source, target)
    for kind in KINDS:
        key = len(kind.table.key)
        known = {row[:key]: row for row in target.all(kind)}
        rows = source.all(kind)
        new = [row for row in rows if row[:key] not in known]
        changed = [row for row in rows if known.get(row[:key], row) != row]
        writing.write(Write(How.INSERT, kind.table, kind.columns), new)
        writing.write(Write(How.SET, kind.table, kind.columns), changed)


def differences(source: Callers, target: Callers) -> Iterator[str]:
    """Name the kinds that differ."""
    for kind in KINDS:
        if source.all(kind) != target.all(kind):
            yield f"{kind.noun}s: the target differs from the source"


def _select(kind: Kind, where: str) -> str:
    names = ", ".join((*kind.table.key, *kind.columns))
    return f"SELECT {names} FROM {kind.table.name}{where} ORDER BY {', '.join(kind.table.key)}"


def _by_organizacao(rows: list[Row]) -> Rows:
    return {id_organizacao: list(group) for id_organizacao, group in groupby(rows, key=itemgetter(0))}


_ORGANIZATION: Final = Kind("organization", 0, ORGANIZACAO, ("nome_organizacao",), "name", ("enabled",))
_ACCOUNT: Final = Kind("account", 1, CONTA, ("nome_conta",), "name", ("webhook_url", "enabled"))
_TOKEN: Final = Kind(
    "token",
    2,
    TOKEN,
    ("id_token", "id_conta", "id_usuario"),
    "text or user",
    ("created_at", "expires_at", "revoked_at"),
)
KINDS: Final = (
    _ORGANIZATION,
    _ACCOUNT,
    Kind("user", 1, USUARIO, ("id_conta", "email"), "account or address", ("nome_usuario", "enabled")),
    _TOKEN,
)
