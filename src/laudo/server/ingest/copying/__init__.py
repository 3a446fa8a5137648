"""Copies a store into another one, of either engine, and compares both; a second run goes on where the first ended.

Until an account's reports are counted in the target, its version and the totals of its facets are 0 there: requests
find no reports, and the next run knows what to count. Afterwards it has the source's version, and so the same ETags.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from laudo.core import axes
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.writes import CONTA, ORGANIZACAO
from laudo.server import schema
from laudo.server.database import Connection, Database, Row, StoreError
from laudo.server.ingest import uncounted, words
from laudo.server.ingest.changes import lock_writers
from laudo.server.ingest.copying import callers, reports
from laudo.server.ingest.copying.reports import Copied
from laudo.server.ingest.progress import OnProgress, Progress
from laudo.server.ingest.verify import Difference, orphans, pessoas, recount
from laudo.server.ingest.verify import verify as differing

__all__ = ["Copy", "Done"]


@dataclass(slots=True)
class Done:
    """What has been copied so far; counts only what is durable in the target."""

    organizations: int = 0
    accounts: int = 0
    reports: Copied = field(default_factory=Copied)


class Copy:
    """One run: `copy_callers`, `copy_reports`, `count`, `compare` and `verify`; the target has no other writer."""

    def __init__(self, source: Database, target: Database) -> None:
        """Raises StoreError, before anything is written, if the source is damaged or the target has its own data."""
        self._source = source
        self._target = target
        self._report_counts: dict[Owner, int] = {}
        self.done = Done()
        with source.snapshot() as source_connection, target.snapshot() as target_connection:
            _refuse_same_store(source_connection, target_connection)
            schema.require_none_newer(target_connection)
            self._source_callers = callers.read(source_connection)
            self._versions, self._seen = (_versions(each) for each in (source_connection, target_connection))
            self._total = source_connection.fetch(Statement(_TOTAL))[0][0]
            callers.refuse_foreign_rows(self._source_callers, callers.read(target_connection))
            _refuse_lost(source_connection)
            _refuse_uncounted(source_connection, self._versions)
            _refuse_foreign_reports(source_connection, target_connection, self._versions, self._seen)

    def copy_callers(self) -> None:
        """Copy organizations, accounts, users and tokens that the target lacks, and those that have changed."""
        for id_organizacao in self._source_callers.organizacoes:
            with self._target.transaction() as writing:
                lock_writers(writing, id_organizacao)
                callers.write(writing, id_organizacao, self._source_callers)
            self.done.organizations += 1

    def copy_reports(self, on_progress: OnProgress | None = None) -> None:
        """Copy facets and reports, those of each organization from one snapshot of the source."""
        progress = Progress(on_progress, self._total)
        for id_organizacao in self._source_callers.organizacoes:
            with self._source.snapshot() as reading:
                versions = _versions(reading, id_organizacao)
                for owner in self._source_callers.owners(id_organizacao):
                    self._copy(reading, owner, versions[owner], progress)
                self._versions[Owner(id_organizacao, 0)] = versions[Owner(id_organizacao, 0)]
        progress.end()

    def count(self, on_progress: OnProgress | None = None) -> None:
        """Recount what has changed, and what an earlier run left uncounted."""
        with self._target.snapshot() as connection:
            versions = _versions(connection)
            stale = sorted(owner for owner, version in self._versions.items() if versions.get(owner) != version)
            contas = [owner for owner in stale if owner.id_conta]
            organizacoes = sorted({owner.id_organizacao for owner in stale})
            owners = [owner for id_organizacao in organizacoes for owner in self._source_callers.owners(id_organizacao)]
            rows = len(axes.OF_RELATORIO) * sum(self._report_counts[owner] for owner in contas)
            progress = Progress(on_progress, rows + pessoas.rows_to_read(connection, owners))
        for owner in contas:
            with self._target.transaction() as writing:
                recount.conta(writing, owner, progress)
                version = self._versions[owner]
                writing.write(_COUNTED_CONTA, [(*owner, version, version)])
        for id_organizacao in organizacoes:
            with self._target.transaction() as writing:
                recount.organizacao(writing, id_organizacao, progress)
                version = self._versions[Owner(id_organizacao, 0)]
                writing.write(_COUNTED_ORGANIZACAO, [(id_organizacao, version, version)])
        if organizacoes:  # Once: it rewrites the index, which is one for all organizations.
            with self._target.transaction() as writing:
                words.erase_removed(writing)
        progress.end()

    def compare(self, on_progress: OnProgress | None = None) -> Iterator[str]:
        """Read both stores again, each in one snapshot, and name what differs; never a value."""
        progress = Progress(on_progress, 2 * sum(self._report_counts.values()))
        with self._source.snapshot() as source, self._target.snapshot() as target:
            yield from callers.differences(callers.read(source), callers.read(target))
            source_versions, target_versions = _versions(source), _versions(target)
            for owner, version in self._versions.items():
                if source_versions.get(owner) != version:
                    yield f"{uncounted.name(owner)}: the source has changed since it was copied"
                elif target_versions.get(owner) != version:
                    yield f"{uncounted.name(owner)}: the target has changed since it was copied"
                elif owner.id_conta:
                    source_digest, target_digest = (reports.digest(each, owner, progress) for each in (source, target))
                    if target_digest != source_digest:
                        yield f"{uncounted.name(owner)}: the reports are not those of the source"
        progress.end()

    def verify(self, on_progress: OnProgress | None = None) -> list[Difference]:
        """Recount the target as `laudo verify` does; the next run counts again what differs."""
        found = list(differing(self._target, on_progress))
        if any(each.what in pessoas.INDEX_FAULTS for each in found):
            with self._target.transaction() as writing:
                words.rebuild(writing)
        for owner in sorted({Owner(each.id_organizacao, each.id_conta or 0) for each in found}):
            with self._target.transaction() as writing:
                lock_writers(writing, owner.id_organizacao)
                reports.mark_uncounted(writing, owner)
        return found

    def _copy(self, reading: Connection, owner: Owner, version: int, progress: Progress) -> None:
        self._versions[owner] = version
        self._report_counts[owner] = 0
        for copied in reports.copy(reading, self._target, owner, seen=self._seen.get(owner, 0)):
            rows = copied.written + copied.unchanged
            self._report_counts[owner] += rows
            self.done.reports = self.done.reports.plus(copied)
            progress.add(rows)
        self.done.accounts += 1


def _refuse_same_store(source: Connection, target: Connection) -> None:
    """Raise StoreError if both URLs lead to the same tables."""
    if _location(source) == _location(target):
        raise StoreError("the source and the target are the same store")


def _location(connection: Connection) -> Row:
    """Tell where a store's tables are, whatever URL leads to them."""
    if connection.dialect.name == "postgres":
        return connection.fetch(Statement(_TABLES))[0]
    [(file,)] = connection.fetch(Statement(_FILE))
    found = Path(file).stat()
    return found.st_dev, found.st_ino


def _refuse_lost(connection: Connection) -> None:
    """Raise StoreError for accounts, users and reports that cannot be copied, since their owner's row is missing."""
    for each in orphans.lost(connection):
        raise StoreError(f"the source is damaged: {each}; hint: {each.remedy}")


def _refuse_uncounted(connection: Connection, versions: dict[Owner, int]) -> None:
    """Raise StoreError if a copy into this store was not finished."""
    for id_organizacao in sorted({owner.id_organizacao for owner, version in versions.items() if version <= 0}):
        uncounted.require_none(connection, id_organizacao, where=" of the source")


def _refuse_foreign_reports(
    source: Connection, target: Connection, versions: dict[Owner, int], seen: dict[Owner, int]
) -> None:
    """Raise StoreError if others have written reports to the target, which would be deleted.

    `versions` are the source's, `seen` the target's.
    A copy never has a version above the one that was noted when it was counted, nor one that the source has not
    reached, nor a facet that the source lacks. A target that no copy has counted must be as the source is, or as it was
    when the source was copied from it.
    """
    into_target, into_source = (_versions(each, column="copied") for each in (target, source))
    for owner, version in seen.items():
        is_known = version <= into_target[owner] or version in {versions[owner], into_source[owner]}
        if not is_known or version > versions[owner] or reports.has_foreign_facets(target, source, owner):
            raise StoreError(f"{uncounted.name(owner)} of the target has changes of its own; {callers.NEW_STORE_HINT}")


def _versions(
    connection: Connection, id_organizacao: int | None = None, *, column: str = "version"
) -> dict[Owner, int]:
    """Give the version, or another column, of each account, then of each organization, as that of account 0."""
    where, params = ("", ()) if id_organizacao is None else (" WHERE id_organizacao = ?", (id_organizacao,))
    texts = [f"{text.format(column)}{where} ORDER BY 1, 2" for text in (_CONTAS, _ORGANIZACOES)]
    rows = [row for text in texts for row in connection.fetch(Statement(text, params))]
    return {Owner(*owner): version for *owner, version in rows}


_TABLES: Final = """
SELECT CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS bigint),
       (SELECT oid FROM pg_database WHERE datname = current_database()), to_regclass('relatorio')::oid
"""
"""Which tables they are: no two servers, even of a store and its copy, are started in the same microsecond."""
_FILE: Final = "SELECT file FROM pragma_database_list WHERE name = 'main'"
_TOTAL: Final = "SELECT CAST(coalesce(sum(total), 0) AS bigint) FROM conta"
_CONTAS: Final = "SELECT id_organizacao, id_conta, {} FROM conta"
_ORGANIZACOES: Final = "SELECT id_organizacao, 0, {} FROM organizacao"
_COUNTED_CONTA: Final = Write(How.SET, CONTA, ("version", "copied"))
_COUNTED_ORGANIZACAO: Final = Write(How.SET, ORGANIZACAO, ("version", "copied"))
