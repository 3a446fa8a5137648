"""Compares `bucket` and `tally` with the rows of an axis: every bucket in its place, every count right."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from laudo.core import disclosure
from laudo.core.axes import Axis, Key
from laudo.core.sql import Owner, Statement
from laudo.core.sql.parts import ON_AXIS
from laudo.core.tally import COARSE
from laudo.server.database import Connection
from laudo.server.ingest import counting
from laudo.server.ingest.counting import FacetCounts
from laudo.server.ingest.progress import Progress
from laudo.server.ingest.verify.differences import Difference


@disclosure.only("parent", "number", "total")
class Bucket(NamedTuple):
    """A bucket as the store has it."""

    parent: int
    number: int
    lower: bytes
    total: int


class Buckets:
    """One axis of one owner (the persons' has account 0), as one snapshot has it."""

    def __init__(self, connection: Connection, axis: Axis, owner: Owner) -> None:
        """Read the buckets, some thousand where there are millions of rows, and below which ones there are tallies."""
        self._connection = connection
        self._axis = axis
        self._owner = owner
        self._axis_key = (*owner, axis.number)
        self._children: defaultdict[int, list[Bucket]] = defaultdict(list)
        both = [Statement(text, self._axis_key) for text in (_BUCKETS, _PARENTS)]
        buckets, self._counted_below = connection.fetch_each(both)
        for row in buckets:
            self._children[row[0]].append(Bucket(*row))
        self._difference = partial(
            Difference, id_organizacao=owner.id_organizacao, id_conta=owner.id_conta or None, axis=axis.number
        )

    def differences(self, progress: Progress, *, written: bool) -> Iterator[Difference]:
        """Compare the buckets, and their counts if they divide the axis: else it is undefined what each should hold.

        An owner that was `written` once has buckets even without rows: a writer may remember them.
        """
        misplaced = [self._difference(what="bucket out of place", bucket=number) for number in self._misplaced()]
        yield from misplaced
        yield from self._orphans()
        if not misplaced:
            yield from self._miscounted(progress, written=written)

    @property
    def _fine(self) -> list[Bucket]:
        """The fine buckets, in the order in which places are looked for."""
        return [child for coarse in self._children[COARSE] for child in self._children[coarse.number]]

    def _misplaced(self) -> Iterator[int]:
        """Give the numbers of the buckets because of which the fine ones do not divide the axis in order."""
        numbers = Counter(each.number for children in self._children.values() for each in children)
        yield from (number for number, times in numbers.items() if times > 1)
        for coarse in self._children[COARSE]:
            children = self._children[coarse.number]
            if not children or children[0].lower != coarse.lower:
                yield coarse.number
        previous: bytes | None = None
        for each in self._fine:
            follows = not each.lower if previous is None else each.lower > previous and self._is_key(each.lower)
            if not follows:
                yield each.number
            previous = each.lower

    def _orphans(self) -> Iterator[Difference]:
        """Find buckets and tallies below buckets that are missing."""
        parents = {COARSE, *(each.number for each in self._children[COARSE])}
        for parent, children in self._children.items():
            if parent not in parents:
                yield self._difference(what="buckets below a missing one", bucket=parent, rows=len(children))
        for parent, rows in self._counted_below:
            if parent not in parents or not self._axis.faceted:
                yield self._difference(what="tallies below a missing bucket", bucket=parent, rows=rows)

    def _miscounted(self, progress: Progress, *, written: bool) -> Iterator[Difference]:
        """Count what each bucket holds, branch by branch, and compare."""
        chunks = progress.track(counting.rows(self._connection, self._axis, self._owner))
        ranges = counting.between(chunks, [self._key(each.lower) for each in self._fine[1:]])
        if not self._children[COARSE]:
            rows = next(ranges).counts.total()
            if rows or written:
                yield self._difference(what="total of the buckets", counted=rows)
            return
        coarse: dict[int, FacetCounts] = {}
        for each in self._children[COARSE]:
            children = {child.number: next(ranges) for child in self._children[each.number]}
            yield from (
                self._difference(what="begins where there is no row", bucket=number)
                for number, found in children.items()
                if not found.key_exists
            )
            counted = {number: found.counts for number, found in children.items()}
            coarse[each.number] = sum(counted.values(), FacetCounts())
            yield from self._compared(each.number, counted)
        yield from self._compared(COARSE, coarse)

    def _compared(self, parent: int, counted: dict[int, FacetCounts]) -> Iterator[Difference]:
        """Compare the buckets below one, and their tallies."""
        for each in self._children[parent]:
            total = counted[each.number].total()
            if each.total != total:
                yield self._difference(what="total of the bucket", bucket=each.number, stored=each.total, counted=total)
        if not self._axis.faceted:
            return
        rows = self._connection.fetch(Statement(_TALLY, (*self._axis_key, parent)))
        stored = {(bucket, facet): total for bucket, facet, total in rows}
        expected = {(bucket, facet): total for bucket, counts in counted.items() for facet, total in counts.items()}
        for bucket, facet in sorted(dict(stored.items() ^ expected.items())):
            kept, correct = stored.get((bucket, facet)), expected.get((bucket, facet))
            yield self._difference(what="tally", bucket=bucket, facet=facet, stored=kept, counted=correct)

    def _is_key(self, lower: bytes) -> bool:
        try:
            return self._axis.encode(self._key(lower)) == lower
        except UnicodeDecodeError:
            return False

    def _key(self, lower: bytes) -> Key:
        return self._axis.decode(lower) or ()


_BUCKETS: Final = f"SELECT parent, bucket, lower, total FROM bucket WHERE {ON_AXIS} ORDER BY lower, bucket"
_TALLY: Final = f"SELECT bucket, facet, total FROM tally WHERE {ON_AXIS} AND parent = ?"
_PARENTS: Final = f"SELECT parent, count(*) FROM tally WHERE {ON_AXIS} GROUP BY parent"
