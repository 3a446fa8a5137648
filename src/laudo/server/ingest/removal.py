"""Finds the reports of a document in several accounts; deletes those of some documents, or old ones."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from laudo.core import axes, disclosure
from laudo.core.axes import Axis
from laudo.core.sql import Dialect, Owner, Statement
from laudo.core.sql.parts import source
from laudo.server import accounts, schema
from laudo.server.database import Connection, Database, Row, in_transaction, read
from laudo.server.ingest import rows, uncounted, versions, words
from laudo.server.ingest.changes import Diff, lock_writers
from laudo.server.ingest.contas import Conta
from laudo.server.ingest.pessoas import Pessoas
from laudo.server.ingest.remembered import load
from laudo.server.ingest.rows import CONTENT, DOCUMENTO, NUMERO
from laudo.server.ingest.tallies import SIZES, Sizes

MOST: Final = 10_000
"""Reports that are read at once, or that one transaction deletes."""


class Selection(NamedTuple):
    """Which reports of any account: how a SELECT goes on after its owner, and the axis whose index answers it."""

    axis: Axis
    rest: Statement

    def select(self, columns: Sequence[str], owner: Owner, dialect: Dialect) -> Statement:
        """Select those of one account, without a LIMIT."""
        source_ = source(self.axis, dialect)
        text = f"SELECT {', '.join(columns)} FROM {source_} WHERE id_organizacao = ? AND id_conta = ?"
        return Statement(f"{text} AND {self.rest.text}", (*owner, *self.rest.params))

    def holders(self, connection: Connection, id_organizacao: int, *, start: int = 0) -> list[Owner]:
        """Give the accounts from number `start` on that have any, in one statement: there may be thousands."""
        text = _HOLDERS.format(source=source(self.axis, connection.dialect), rest=self.rest.text)
        found = connection.fetch(Statement(text, (id_organizacao, start, id_organizacao, *self.rest.params)))
        return [Owner(*row) for row in found]


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


def reports_of(connection: Connection, id_organizacao: int, documento: str) -> Iterator[StoredReport]:
    """Give the reports that have a document, account by account."""
    selection = _with_documents([documento], connection.dialect)
    for owner in selection.holders(connection, id_organizacao):
        selected = selection.select((*StoredReport._fields, "numero"), owner, connection.dialect)
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
        read(database, partial(accounts.owners, id_organizacao=id_organizacao))

    def delete_documents(self, documentos: Sequence[str]) -> Iterator[Deleted]:
        """Delete the reports that have one of these documents, up to MOST in a transaction for each item taken.

        Raises StoreError, also if the schema is newer than this version, and Unavailable.
        """
        return self._delete_all(_with_documents(list(documentos), self._database.dialect))

    def delete_before(self, instant: int) -> Iterator[Deleted]:
        """Delete the reports whose `atualizado_em` is before an instant, in UTC milliseconds, in the same way."""
        return self._delete_all(Selection(axes.RELATORIO_RECENCY, Statement(_OLDEST_FIRST, (-instant,))))

    def count_before(self, instant: int) -> int:
        """Count the reports that `delete_before` would delete."""
        text = _COUNT_BEFORE.format(source=source(axes.RELATORIO_RECENCY, self._database.dialect))
        [(reports,)] = self._database.fetch(Statement(text, (self._id_organizacao, self._id_organizacao, -instant)))
        return int(reports)

    def _delete_all(self, selection: Selection) -> Iterator[Deleted]:
        start: int | None = 0
        while start is not None:
            deleted, start = in_transaction(self._database.transaction, partial(self._delete_next, selection, start))
            yield deleted

    def _delete_next(self, selection: Selection, start: int, connection: Connection) -> tuple[Deleted, int | None]:
        """Delete up to MOST reports, from account `start` on; gives the account to go on with, None if nothing is left.

        The accounts are read each time: some may have been made since.
        """
        lock_writers(connection, self._id_organizacao)
        schema.require_none_newer(connection)
        uncounted.require_none(connection, self._id_organizacao)
        rows_by_owner: dict[Owner, list[Row]] = {}
        remaining = MOST
        last = start
        for owner in selection.holders(connection, self._id_organizacao, start=start):
            selected = selection.select(CONTENT, owner, connection.dialect)
            found = connection.fetch(Statement(f"{selected.text} LIMIT ?", (*selected.params, remaining)))
            rows_by_owner[owner] = found
            remaining -= len(found)
            last = owner.id_conta
            if not remaining:
                break
        self._delete(connection, rows_by_owner)
        words.erase_removed(connection)
        deleted = Deleted(MOST - remaining, {row[DOCUMENTO] for found in rows_by_owner.values() for row in found})
        return deleted, None if remaining else last

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
        if pessoas.update(connection, diff, {}):
            versions.raise_organizacao(connection, self._id_organizacao, pessoas.total)


def _with_documents(documentos: list[str], dialect: Dialect) -> Selection:
    return Selection(axes.RELATORIO_DOCUMENTO, Statement(dialect.member("numero_documento"), (documentos,)))


_HOLDERS: Final = """
SELECT id_organizacao, id_conta FROM conta WHERE id_organizacao = ? AND id_conta >= ? AND EXISTS (
    SELECT 1 FROM {source}
    WHERE relatorio.id_organizacao = ? AND relatorio.id_conta = conta.id_conta AND {rest}
)
ORDER BY id_conta
"""
_OLDEST_FIRST: Final = "recency > ? ORDER BY recency DESC"
_COUNT_BEFORE: Final = """
SELECT count(*) FROM {source}
WHERE id_organizacao = ? AND id_conta IN (SELECT id_conta FROM conta WHERE id_organizacao = ?) AND recency > ?
"""
