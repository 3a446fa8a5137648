"""Keeps what is counted of one account, `facet`, `bucket` and `tally`, within its reports' transaction."""

from laudo.core import axes
from laudo.core.sql import Owner
from laudo.server.database import Connection, Row
from laudo.server.ingest import rows, tallies
from laudo.server.ingest.changes import Moved
from laudo.server.ingest.facets import FacetNumbers
from laudo.server.ingest.tallies import SIZES, Sizes, Tally


class Conta:
    """What is counted of an account's reports, remembered from one transaction to the next."""

    def __init__(self, owner: Owner, sizes: Sizes = SIZES) -> None:
        """Start knowing nothing."""
        self.facets = FacetNumbers(owner)
        self._tallies = tuple(Tally(axis, owner, sizes) for axis in axes.OF_RELATORIO)

    @property
    def total(self) -> int:
        """How many reports there are."""
        return self._tallies[0].total

    def load(self, connection: Connection) -> None:
        """Remember what the store has counted."""
        self.facets.load(connection)
        tallies.load(connection, self._tallies)

    def follow(self, connection: Connection, moved: Moved) -> None:
        """Count reports that went and came."""
        self._add(connection, moved.went, -1)
        self._add(connection, moved.came, 1)
        self.facets.write(connection)
        for tally in self._tallies:
            tally.write(connection, self.facets.all)

    def _add(self, connection: Connection, reports: list[Row], by: int) -> None:
        """Count reports that came (1) or went (-1)."""
        if reports:
            columns = rows.columns(reports)
            self.facets.add(columns["facet"], by)
            for tally in self._tallies:
                tally.add(connection, [columns[name] for name in tally.axis.names], columns["facet"], by)
