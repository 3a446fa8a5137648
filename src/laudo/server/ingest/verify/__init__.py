"""Recounts, from the reports alone, all that is kept besides them; names what differs, and repairs it.

It reads one owner after the other, each in one snapshot, and writes each in one transaction, in bounded memory.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from laudo.core import axes, sql
from laudo.core.resources import PESSOAS, RELATORIOS, Resource
from laudo.core.sql import Owner, Statement
from laudo.server import schema
from laudo.server.database import Connection, Database
from laudo.server.ingest import counting, uncounted, words
from laudo.server.ingest.progress import OnProgress, Progress
from laudo.server.ingest.tallies import SIZES, Sizes
from laudo.server.ingest.verify import facets, items, orphans, pessoas, recount
from laudo.server.ingest.verify.buckets import Buckets
from laudo.server.ingest.verify.differences import Difference, limited

__all__ = ["UNCOUNTED", "Difference", "repair", "verify"]

ITEMS: Final = "items that differ from their columns"
UNDATED: Final = "reports with an instant outside the years 1 to 9999"
TOTAL: Final = "total of the list"
UNCOUNTED: Final = "was never counted: a copy was not finished, or its row was written anew"
NO_INSTANT_REMEDY: Final = "restore from a backup the reports whose items have no instant either"


def verify(database: Database, on_progress: OnProgress | None = None) -> Iterator[Difference]:
    """Give all that differs, of every account and organization."""
    with database.snapshot() as connection:
        owners = _owners(connection)
        progress = Progress(
            on_progress,
            _rows_to_read(connection, owners, passes=_PASSES + 1) + pessoas.rows_to_read(connection, owners),
        )
        organizacoes = _organizacoes(connection)
        yield from orphans.differences(connection)
        is_sound = not connection.dialect.keeps_words or words.is_sound(connection)
    for owner in owners:
        with database.snapshot() as connection:
            yield from _conta(connection, owner, progress)
    for id_organizacao in organizacoes:
        with database.snapshot() as connection:
            yield from _organizacao(connection, id_organizacao, progress, is_sound=is_sound)
    progress.end()


def repair(
    database: Database,
    differences: Iterable[Difference],
    on_progress: OnProgress | None = None,
    *,
    sizes: Sizes = SIZES,
) -> None:
    """Repair what `verify` found to differ, except what has another remedy.

    Raises StoreError if the schema is newer than this version.
    """
    found = [each for each in differences if not each.remedy]
    affected = {Owner(each.id_organizacao, each.id_conta or 0) for each in found}
    with database.snapshot() as connection:
        schema.require_none_newer(connection)
        owners = _owners(connection)
        existing = {*owners, *(Owner(id_organizacao, 0) for id_organizacao in _organizacoes(connection))}
        contas = sorted(owner for owner in affected & existing if owner.id_conta)
        organizacoes = {owner.id_organizacao for owner in affected & existing if not owner.id_conta}
        contas_to_read = [owner for owner in owners if owner.id_organizacao in organizacoes]
        progress = Progress(
            on_progress,
            _rows_to_read(connection, contas, passes=_PASSES) + pessoas.rows_to_read(connection, contas_to_read),
        )
    if any(each.what in pessoas.INDEX_FAULTS for each in found):
        with database.transaction() as connection:
            words.rebuild(connection)
    for owner in sorted(affected - existing):
        with database.transaction() as connection:
            orphans.clear(connection, owner)
    for owner in contas:
        with database.transaction() as connection:
            with_items = any(each.what in {ITEMS, UNDATED} and each.id_conta == owner.id_conta for each in found)
            recount.conta(connection, owner, progress, with_items=with_items, sizes=sizes)
    for id_organizacao in sorted(organizacoes):
        with database.transaction() as connection:
            recount.organizacao(connection, id_organizacao, progress, sizes=sizes)
    if organizacoes:  # Once: it rewrites the index, which is one for all organizations.
        with database.transaction() as connection:
            words.erase_removed(connection)
    progress.end()


def _conta(connection: Connection, owner: Owner, progress: Progress) -> Iterator[Difference]:
    """Compare what is kept of an account."""
    totals = counting.totals(connection, owner)
    yield from limited(facets.differences(connection, owner, totals))
    version, total = _stored(connection, RELATORIOS, owner)
    if total != totals.total():
        yield Difference(**owner._asdict(), what=TOTAL, stored=total, counted=totals.total())
    if totals and version <= 0:
        yield Difference(**owner._asdict(), what=UNCOUNTED)
    for axis in axes.OF_RELATORIO:
        yield from limited(Buckets(connection, axis, owner).differences(progress, written=version > 0))
    wrong = Counter[tuple[str, str]]()
    for found in items.wrong(connection, owner, progress):
        wrong[ITEMS, ""] += len(found.items)
        wrong.update((UNDATED, NO_INSTANT_REMEDY if instant is None else "") for _, instant in found.undated)
    for (what, remedy), rows in sorted((+wrong).items()):
        yield Difference(**owner._asdict(), what=what, rows=rows, remedy=remedy or None)


def _organizacao(
    connection: Connection, id_organizacao: int, progress: Progress, *, is_sound: bool
) -> Iterator[Difference]:
    """Compare what is kept of an organization's persons; `is_sound` tells whether the index of words is."""
    yield from pessoas.differences(connection, id_organizacao, progress, is_sound=is_sound)
    version, total = _stored(connection, PESSOAS, Owner(id_organizacao, 0))
    [(counted,)] = connection.fetch(Statement(_PERSONS, (id_organizacao,)))
    if total != counted:
        yield Difference(id_organizacao=id_organizacao, what=TOTAL, stored=total, counted=counted)
    for axis in axes.OF_PESSOA:
        buckets = Buckets(connection, axis, Owner(id_organizacao, 0))
        yield from limited(buckets.differences(progress, written=version > 0))
    if (version <= 0 and counted) or any(uncounted.find(connection, id_organizacao, 0)):
        yield Difference(id_organizacao=id_organizacao, what=UNCOUNTED)


def _stored(connection: Connection, resource: Resource, owner: Owner) -> tuple[int, int]:
    """Give the stored version and total of a list."""
    [(version,)], [(total,)] = connection.fetch_each([sql.version(resource, owner), sql.total(resource, owner)])
    return version, total


def _owners(connection: Connection) -> list[Owner]:
    return [Owner(*row) for row in connection.fetch(Statement(_OWNERS))]


def _organizacoes(connection: Connection) -> list[int]:
    return [id_organizacao for (id_organizacao,) in connection.fetch(Statement(_ORGANIZACOES))]


def _rows_to_read(connection: Connection, owners: Iterable[Owner], *, passes: int) -> int:
    """Count the rows of accounts that are to be read."""
    return passes * sum(counting.totals(connection, owner).total() for owner in owners)


_PASSES: Final = len(axes.OF_RELATORIO)
_OWNERS: Final = "SELECT id_organizacao, id_conta FROM conta ORDER BY id_organizacao, id_conta"
_ORGANIZACOES: Final = "SELECT id_organizacao FROM organizacao ORDER BY id_organizacao"
_PERSONS: Final = "SELECT count(*) FROM pessoa WHERE id_organizacao = ?"
