"""Rewrites what is kept besides the reports; the caller of each function opens the transaction.

Each raises StoreError if the schema is newer than this version: another version may have migrated it meanwhile.
"""

from typing import Final

from laudo.core import axes
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.writes import FACET
from laudo.server import schema
from laudo.server.database import Connection
from laudo.server.ingest import counting, versions, vocabulary
from laudo.server.ingest.changes import lock_writers
from laudo.server.ingest.progress import Progress
from laudo.server.ingest.statistics import Statistics
from laudo.server.ingest.tallies import SIZES, Sizes, Tally
from laudo.server.ingest.verify import facets, items, pessoas


def conta(
    connection: Connection, owner: Owner, progress: Progress, *, with_items: bool = False, sizes: Sizes = SIZES
) -> None:
    """Recount an account's facets and tallies, and change its version, so that nobody relies on the old counts."""
    lock_writers(connection, owner.id_organizacao)
    schema.require_none_newer(connection)
    totals = counting.totals(connection, owner)
    restored = facets.restore(connection, owner, totals)
    if restored or with_items:
        items.repair(connection, owner)
    Statistics().analyze_if_grown(connection, totals.total())
    connection.fetch(Statement(_EMPTY, owner))
    connection.write(_TOTAL, [(*owner, facet, total) for facet, total in sorted(totals.items())])
    for axis in axes.OF_RELATORIO:
        Tally(axis, owner, sizes).rebuild(connection, progress)
    versions.raise_conta(connection, owner, totals.total())


def organizacao(connection: Connection, id_organizacao: int, progress: Progress, *, sizes: Sizes = SIZES) -> None:
    """Rewrite the persons of an organization that differ, recount all of them, and change its version."""
    lock_writers(connection, id_organizacao)
    schema.require_none_newer(connection)
    pessoas.repair(connection, id_organizacao, progress)
    vocabulary.rebuild(connection, id_organizacao)
    tallies = [Tally(axis, Owner(id_organizacao, 0), sizes) for axis in axes.OF_PESSOA]
    for tally in tallies:
        tally.rebuild(connection, progress)
    versions.raise_organizacao(connection, id_organizacao, tallies[0].total)


_EMPTY: Final = "UPDATE facet SET total = 0 WHERE id_organizacao = ? AND id_conta = ?"
_TOTAL: Final = Write(How.SET, FACET, ("total",))
