"""Finds the reports of a document in several accounts; deletes those of some documents, or old ones."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from laudo.core import axes, disclosure
from laudo.core.axes import Axis
from laudo.core.sql import Dialect, Owner, Statement
from laudo.core.sql.parts import source
from laudo.server import accounts, schema
from laudo.server.database import Connection, Database, Row, in_transaction, read
from laudo.server.ingest import rows, versions, words
from laudo.server.ingest.changes import Diff, lock_writers
from laudo.server.ingest.claims import NO_CLAIMS
from laudo.server.ingest.contas import Conta
from laudo.server.ingest.pessoas import Pessoas
from laudo.server.ingest.remembered import load
from laudo.server.ingest.rows import CONTENT, DOCUMENTO, NUMERO
from laudo.server.ingest.tallies import SIZES, Sizes

MOST: Final = 10_000
"""Reports that are read at once, or that one transaction deletes."""

Select = Callable[[Dialect, Owner], Statement]
"""Selects reports of one account, without a LIMIT."""


@disclosure.only("id_conta")
class StoredReport(NamedTuple):
    """All that the store has of a report."""

    id_conta: int
    nome_pessoa: str
    item: str


@disclosure.only("reports")
class Deleted(NamedTuple):
    """What one transaction has deleted."""

    reports: int
    documentos: set[str]


def reports_of(connection: Connection, owners: Sequence[Owner], documento: str) -> Iterator[StoredReport]:
    """Give the reports that have a document, account by account."""
    for owner in owners:
        selected = _select_by_document((*StoredReport._fields, "numero"), [documento], connection.dialect, owner)
        text, last = f"{selected.text} AND numero > ? ORDER BY numero LIMIT ?", b""
        while chunk := connection.fetch(Statement(text, (*selected.params, last, MOST))):
            yield from (StoredReport(*row) for *row, _ in chunk)
            last = chunk[-1][-1]


class Removal:
    """Deletes reports of an organization, account by account, and keeps all counts in step."""

    def __init__(self, database: Database, id_organizacao: int, *, sizes: Sizes = SIZES) -> None:
        """Raises AccountError if there is no such organization."""
        self._database = database
        self._id_organizacao = id_organizacao
        self._sizes = sizes
        read(database, self._owners)

    def delete_documents(self, documentos: Sequence[str]) -> Iterator[Deleted]:
        """Delete the reports that have one of these documents, up to MOST in a transaction for each item taken.

        Raises StoreError, also if the schema is newer than this version, and Unavailable.
        """
        return self._delete_all(partial(_select_by_document, CONTENT, list(documentos)))

    def delete_before(self, instant: int) -> Iterator[Deleted]:
        """Delete the reports whose `atualizado_em` is before an instant, in UTC milliseconds, in the same way."""
        return self._delete_all(partial(_select_before, instant))

    def count_before(self, instant: int) -> int:
        """Count the reports that `delete_before` would delete."""
        source_ = source(axes.RELATORIO_RECENCY, self._database.dialect)
        text = f"SELECT count(*) FROM {source_} WHERE id_organizacao = ? AND id_conta = ? AND recency > ?"
        owners = read(self._database, self._owners)
        return sum(self._database.fetch(Statement(text, (*owner, -instant)))[0][0] for owner in owners)

    def _owners(self, connection: Connection) -> list[Owner]:
        return accounts.owners(connection, self._id_organizacao)

    def _delete_all(self, select: Select) -> Iterator[Deleted]:
        start: int | None = 0
        while start is not None:
            deleted, start = in_transaction(self._database.transaction, partial(self._delete_next, select, start))
            yield deleted

    def _delete_next(self, select: Select, start: int, connection: Connection) -> tuple[Deleted, int | None]:
        """Delete up to MOST reports, from account `start` on; gives the account to go on with, None if nothing is left.

        The accounts are read each time: some may have been made since.
        """
        lock_writers(connection, self._id_organizacao)
        schema.require_none_newer(connection)
        rows_by_owner: dict[Owner, list[Row]] = {}
        remaining = MOST
        for owner in self._owners(connection):
            if owner.id_conta < start:
                continue
            selected = select(connection.dialect, owner)
            if found := connection.fetch(Statement(f"{selected.text} LIMIT ?", (*selected.params, remaining))):
                rows_by_owner[owner] = found
                remaining -= len(found)
            if not remaining:
                break
        self._delete(connection, rows_by_owner)
        words.erase_removed(connection)
        deleted = Deleted(MOST - remaining, {row[DOCUMENTO] for found in rows_by_owner.values() for row in found})
        return deleted, None if remaining else owner.id_conta

    def _delete(self, connection: Connection, rows_by_owner: dict[Owner, list[Row]]) -> None:
        if not rows_by_owner:
            return
        for owner, found in rows_by_owner.items():
            conta = Conta(owner, self._sizes)
            load(connection, conta.parts)
            connection.write(rows.DELETE, [(*owner, row[NUMERO]) for row in found])
            conta.update(connection, Diff(found, []))
            versions.raise_conta(connection, owner, conta.total)
        pessoas = Pessoas(self._id_organizacao, self._sizes)
        load(connection, pessoas.parts)
        diff = Diff([row for found in rows_by_owner.values() for row in found], [])
        if pessoas.update(connection, diff, NO_CLAIMS):
            versions.raise_organizacao(connection, self._id_organizacao, pessoas.total)


def _select_by_document(columns: Sequence[str], documentos: list[str], dialect: Dialect, owner: Owner) -> Statement:
    text = _select(columns, axes.RELATORIO_DOCUMENTO, dialect)
    return Statement(f"{text} AND {dialect.member('numero_documento')}", (*owner, documentos))


def _select_before(instant: int, dialect: Dialect, owner: Owner) -> Statement:
    text = _select(CONTENT, axes.RELATORIO_RECENCY, dialect)
    return Statement(f"{text} AND recency > ? ORDER BY recency DESC", (*owner, -instant))


def _select(columns: Sequence[str], axis: Axis, dialect: Dialect) -> str:
    return f"SELECT {', '.join(columns)} FROM {source(axis, dialect)} WHERE id_organizacao = ? AND id_conta = ?"
