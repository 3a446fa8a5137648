"""Writes and deletes reports: a batch is one transaction, durable when `Ingest.write` returns."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple
from uuid import UUID

from laudo.core.axes import numero_key
from laudo.core.sql import Owner, Statement
from laudo.server import schema
from laudo.server.database import Connection, Database, Row, StoreError, in_transaction
from laudo.server.ingest import rows, uncounted, versions, words
from laudo.server.ingest.changes import Counts, Diff, Written, lock_writers
from laudo.server.ingest.claims import Claims
from laudo.server.ingest.contas import Conta
from laudo.server.ingest.pessoas import Pessoas
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.remembered import load
from laudo.server.ingest.rows import CONTENT, ITEM, NUMERO, RECENCY, Prepared
from laudo.server.ingest.statistics import Statistics
from laudo.server.ingest.tallies import SIZES, Sizes

__all__ = ["Counts", "Ingest"]


class Versions(NamedTuple):
    """The versions of an account and of its organization: while one stays the same, so do its counts."""

    conta: int
    organizacao: int


class Ingest:
    """Writes the reports of one account, and in the same transaction all counts of them."""

    def __init__(self, database: Database, id_conta: int, *, sizes: Sizes = SIZES) -> None:
        """Raises StoreError if there is no such account, or if the schema is newer than this version."""
        self._database = database
        with database.snapshot() as connection:
            schema.require_none_newer(connection)
            found, self._migrations = connection.fetch_each([Statement(_OWNER, (id_conta,)), schema.APPLIED])
        if not found:
            raise StoreError(f"there is no account {id_conta}; hint: laudo account list")
        self.owner = Owner(found[0][0], id_conta)
        self._conta = Conta(self.owner, sizes)
        self._pessoas = Pessoas(self.owner.id_organizacao, sizes)
        self._statistics = Statistics()
        self._versions = _UNKNOWN
        self._acknowledged = 0

    def write(self, batch: Iterable[Relatorio], *, equal_wins: bool = False) -> Counts:
        """Write a batch, all or nothing: a newer `atualizado_em` wins, an equal or older one changes nothing.

        With `equal_wins`, an equal one wins, too: a mirror follows whatever its service says now.
        """
        return self.write_prepared(rows.prepared(batch), equal_wins=equal_wins).counts

    def write_prepared(self, batch: Prepared, *, equal_wins: bool = False) -> Written:
        """Write a batch that was prepared without the store, perhaps in another process."""
        return in_transaction(
            self._transaction, lambda connection: self._write(connection, batch, equal_wins=equal_wins)
        )

    def delete(self, numeros: Sequence[str]) -> int:
        """Delete the reports with these UUIDs, all or nothing; gives how many there were."""
        keys = [numero_key(numero) for numero in numeros]
        return in_transaction(self._transaction, lambda connection: self._delete(connection, keys))

    def erase_old_names(self) -> None:
        """Erase former names of persons from the index, at the end, since it takes longer than writing a report."""
        if self._pessoas.has_old_names:
            in_transaction(self._database.transaction, words.erase_removed)
            self._pessoas.has_old_names = False

    def pulled(self) -> versions.StoreVersion:
        """Tell how far pulls into the account have come."""
        with self._database.snapshot() as connection:
            return versions.pulled(connection, self.owner)

    def note_pull(self) -> versions.StoreVersion:
        """Note that a pull has come this far; raises StoreError if that is before what was written here."""
        return in_transaction(self._database.transaction, self._note_pull)

    def nomes(self, cpfs: Sequence[str]) -> dict[str, str]:
        """Give, by CPF, the names by which the account's organization knows these persons."""
        with self._database.snapshot() as connection:
            text = f"{_NOMES} AND {connection.dialect.member('cpf')}"
            return dict(connection.fetch(Statement(text, (self.owner.id_organizacao, list(cpfs)))))

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Open a transaction; if it fails, nothing that is remembered is trusted any more."""
        try:
            with self._database.transaction() as connection:
                yield connection
            self._acknowledged = self._versions.conta
        except BaseException:
            self._versions = _UNKNOWN
            self._statistics = Statistics()
            raise

    def _begin(self, connection: Connection, numeros: Sequence[bytes]) -> dict[bytes, Row]:
        """Lock out other writers, and read the counts, unless they are remembered and nobody has changed them.

        Gives what the store has of some reports, by numero, without their items.
        """
        lock_writers(connection, self.owner.id_organizacao)
        stored = Statement(f"{_STORED} AND {connection.dialect.member('numero')}", (*self.owner, list(numeros)))
        found, applied, reports = connection.fetch_each([Statement(_VERSIONS, self.owner), schema.APPLIED, stored])
        if applied != self._migrations:
            message = "the store was migrated meanwhile; write to it with the version of laudo that migrated it"
            raise StoreError(message)
        if not found:
            raise StoreError(f"account {self.owner.id_conta} or its organization does not exist; hint: laudo verify")
        current = Versions(*found[0])
        self._require_acknowledged(current.conta)
        self._load(connection, current)
        return {row[NUMERO]: row for row in reports}

    def _require_acknowledged(self, version: int) -> None:
        """Raise StoreError if what was acknowledged is missing: a server may have taken over that did not have it."""
        if version < self._acknowledged:
            raise StoreError("the store has lost reports that it had acknowledged, as after a failover; start over")

    def _load(self, connection: Connection, current: Versions) -> None:
        """Read again what others have changed: mostly persons, which all accounts of the organization share."""
        if current != self._versions and min(current) <= 0:
            uncounted.require_none(connection, *self.owner)
        conta = self._conta.parts if current.conta != self._versions.conta else ()
        pessoas = self._pessoas.parts if current.organizacao != self._versions.organizacao else ()
        load(connection, [*conta, *pessoas])
        self._versions = current

    def _write(self, connection: Connection, batch: Prepared, *, equal_wins: bool) -> Written:
        before = self._begin(connection, batch.numeros)
        given = rows.complete(batch, self.owner, self._conta.facets.number)
        after: dict[bytes, Row] = {}
        conflicting: list[str] = []
        inserted = updated = unchanged = stale = 0
        for row in given:
            numero = row[NUMERO]
            current = after.get(numero) or before.get(numero)
            if current is None:
                inserted += 1
            elif row[:ITEM] == current[:ITEM]:
                unchanged += 1
                continue
            elif row[RECENCY] > current[RECENCY]:
                stale += 1
                continue
            elif row[RECENCY] == current[RECENCY] and not equal_wins:
                conflicting.append(str(UUID(bytes=numero)))
                continue
            else:
                updated += 1
            after[numero] = row
        written = list(after.values())
        connection.write(rows.UPSERT, written)
        diff = Diff([before[numero] for numero in after if numero in before], written)
        self._update_counts(connection, diff, batch.claims if len(written) == len(batch) else rows.to_claims(written))
        return Written(Counts(inserted, updated, unchanged, stale, len(conflicting)), conflicting)

    def _note_pull(self, connection: Connection) -> versions.StoreVersion:
        lock_writers(connection, self.owner.id_organizacao)
        found = versions.note_pull(connection, self.owner)
        self._require_acknowledged(found.version)
        return found

    def _delete(self, connection: Connection, numeros: list[bytes]) -> int:
        deleted = self._begin(connection, numeros)
        connection.write(rows.DELETE, [(*self.owner, numero) for numero in deleted])
        self._update_counts(connection, Diff(list(deleted.values()), []), {})
        if deleted:
            words.erase_removed(connection)
        return len(deleted)

    def _update_counts(self, connection: Connection, diff: Diff, claims: Claims) -> None:
        """Keep facets, tallies, persons and versions in step with the reports; `claims` are those of the added ones."""
        if not any(diff):
            return
        self._conta.update(connection, diff)
        conta, organizacao = self._versions
        if self._pessoas.update(connection, diff, claims):
            total = self._pessoas.total
            organizacao = versions.raise_organizacao(connection, self.owner.id_organizacao, total, organizacao)
        total = self._conta.total
        self._versions = Versions(versions.raise_conta(connection, self.owner, total, conta), organizacao)
        self._statistics.analyze_if_grown(connection, total)


_UNKNOWN: Final = Versions(-1, -1)
_OWNER: Final = "SELECT id_organizacao FROM conta WHERE id_conta = ?"
_NOMES: Final = "SELECT cpf, nome FROM pessoa WHERE id_organizacao = ?"
_VERSIONS: Final = """
SELECT conta.version, organizacao.version FROM conta JOIN organizacao USING (id_organizacao)
WHERE id_organizacao = ? AND id_conta = ?
"""
_STORED: Final = f"SELECT {', '.join(CONTENT)} FROM relatorio WHERE id_organizacao = ? AND id_conta = ?"
