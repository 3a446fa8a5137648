"""Rows that come and go, to be counted in the tallies of their axes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from laudo.core import disclosure
from laudo.server.database import Connection
from laudo.server.ingest.buckets import Bucket, Placed
from laudo.server.ingest.tallies import Tally


@disclosure.only("by")
class Move(NamedTuple):
    """Rows that came (`by` 1) or went (-1): the columns of their keys on the axis of a tally, and their facets."""

    tally: Tally
    columns: Iterable[Iterable[Any]]
    facets: Iterable[int]
    by: int

    @property
    def keys(self) -> Iterator[bytes]:
        """The keys of the rows."""
        return self.tally.axis.encoded(self.columns)

    def counted(self) -> Placed:
        """Count the rows by their bucket and facet."""
        return self.tally.buckets.counted(self.keys, self.facets)


def follow(connection: Connection, moves: Sequence[Move]) -> None:
    """Count rows in their tallies; fine buckets that are not yet known are read first, in one round trip."""
    counted = [move.counted() for move in moves]
    closed: dict[Tally, set[Bucket]] = {}
    for move, rows in zip(moves, counted, strict=True):
        if coarse := move.tally.buckets.closed(rows):
            closed.setdefault(move.tally, set()).update(coarse)
    if closed:
        asked = [tally.children(coarse, connection.dialect) for tally, coarse in closed.items()]
        for (tally, coarse), found in zip(closed.items(), connection.fetch_each(asked), strict=True):
            tally.buckets.open(coarse, found)
        counted = [move.counted() if move.tally in closed else rows for move, rows in zip(moves, counted, strict=True)]
    for move, rows in zip(moves, counted, strict=True):
        move.tally.add(rows, move.by)
        if move.by < 0:
            move.tally.leave(move.keys)
