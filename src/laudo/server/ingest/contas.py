"""Keeps the counts of one account, in `facet`, `bucket` and `tally`, within the transaction of its reports."""

from laudo.core import axes
from laudo.core.sql import Owner
from laudo.server.database import Connection, Row
from laudo.server.ingest import deltas, rows
from laudo.server.ingest.changes import Diff
from laudo.server.ingest.deltas import Delta
from laudo.server.ingest.facets import FacetNumbers
from laudo.server.ingest.remembered import Remembered
from laudo.server.ingest.tallies import SIZES, Sizes, Tally


class Conta:
    """The counts of an account's reports, remembered from one transaction to the next."""

    def __init__(self, owner: Owner, sizes: Sizes = SIZES) -> None:
        self.facets = FacetNumbers(owner)
        self._tallies = tuple(Tally(axis, owner, sizes) for axis in axes.OF_RELATORIO)

    @property
    def total(self) -> int:
        return self._tallies[0].total

    @property
    def parts(self) -> list[Remembered]:
        return [self.facets, *self._tallies]

    def update(self, connection: Connection, diff: Diff) -> None:
        both = [*self._deltas(diff.before, -1), *self._deltas(diff.after, 1)]
        self.facets.write(connection)
        deltas.apply(connection, both)
        for tally in self._tallies:
            tally.write(connection, self.facets.all)

    def _deltas(self, reports: list[Row], by: int) -> list[Delta]:
        """Count the facets of reports that were added (1) or removed (-1), and give what the tallies have to count."""
        if not reports:
            return []
        columns = rows.columns(reports)
        facets = columns["facet"]
        self.facets.add(facets, by)
        return [Delta(tally, [columns[name] for name in tally.axis.names], facets, by) for tally in self._tallies]
