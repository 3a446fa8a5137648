"""Rows that are added or removed, to be counted in the tallies of their axes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from laudo.core import disclosure
from laudo.server.database import Connection
from laudo.server.ingest.buckets import Bucket, RowCounts
from laudo.server.ingest.tallies import Tally


@disclosure.only("by")
class Delta(NamedTuple):
    """Rows that were added (`by` 1) or removed (-1): the columns of their keys on a tally's axis, and their facets."""

    tally: Tally
    columns: Iterable[Iterable[Any]]
    facets: Iterable[int]
    by: int

    @property
    def keys(self) -> Iterator[bytes]:
        return self.tally.axis.encoded(self.columns)

    def counted(self) -> RowCounts:
        """Count the rows by their bucket and facet."""
        return self.tally.buckets.counted(self.keys, self.facets)


def apply(connection: Connection, deltas: Sequence[Delta]) -> None:
    """Count rows in their tallies; fine buckets that are not yet known are read first, in one round trip."""
    counted = [delta.counted() for delta in deltas]
    unread: dict[Tally, set[Bucket]] = {}
    for delta, rows in zip(deltas, counted, strict=True):
        if coarse := delta.tally.buckets.coarse(rows):
            unread.setdefault(delta.tally, set()).update(coarse)
    if unread:
        statements = [tally.children(coarse, connection.dialect) for tally, coarse in unread.items()]
        for (tally, coarse), found in zip(unread.items(), connection.fetch_each(statements), strict=True):
            tally.buckets.expand(coarse, found)
        counted = [
            delta.counted() if delta.tally in unread else rows for delta, rows in zip(deltas, counted, strict=True)
        ]
    for delta, rows in zip(deltas, counted, strict=True):
        delta.tally.add(rows, delta.by)
        if delta.by < 0:
            delta.tally.note_removed(delta.keys)
