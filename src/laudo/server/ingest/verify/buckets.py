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
from laudo.server.ingest.counting import Held
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
        """Read the buckets: some thousand where there are millions of rows."""
        self._connection = connection
        self._axis = axis
        self._owner = owner
        self._place = (*owner, axis.number)
        self._below: defaultdict[int, list[Bucket]] = defaultdict(list)
        for row in connection.fetch(Statement(_BUCKETS, self._place)):
            self._below[row[0]].append(Bucket(*row))
        self._differing = partial(
            Difference, id_organizacao=owner.id_organizacao, id_conta=owner.id_conta or None, axis=axis.number
        )

    def differences(self, progress: Progress, *, written: bool) -> Iterator[Difference]:
        """Compare the buckets, and their counts if they divide the axis: else it is undefined what each should hold.

        An owner that was `written` once has buckets even without rows: a writer may remember them.
        """
        misplaced = [self._differing(what="bucket out of place", bucket=number) for number in self._misplaced()]
        yield from misplaced
        yield from self._stray()
        if not misplaced:
            yield from self._miscounted(progress, written=written)

    @property
    def _fine(self) -> list[Bucket]:
        """The fine buckets, in the order in which places are looked for."""
        return [child for coarse in self._below[COARSE] for child in self._below[coarse.number]]

    def _misplaced(self) -> Iterator[int]:
        """Give the numbers of the buckets because of which the fine ones do not divide the axis in order."""
        numbers = Counter(each.number for below in self._below.values() for each in below)
        yield from (number for number, times in numbers.items() if times > 1)
        for coarse in self._below[COARSE]:
            below = self._below[coarse.number]
            if not below or below[0].lower != coarse.lower:
                yield coarse.number
        before: bytes | None = None
        for each in self._fine:
            follows = not each.lower if before is None else each.lower > before and self._is_key(each.lower)
            if not follows:
                yield each.number
            before = each.lower

    def _stray(self) -> Iterator[Difference]:
        """Find buckets and tallies below buckets that are missing."""
        parents = {COARSE, *(each.number for each in self._below[COARSE])}
        for parent, below in self._below.items():
            if parent not in parents:
                yield self._differing(what="buckets below a missing one", bucket=parent, rows=len(below))
        for parent, rows in self._connection.fetch(Statement(_PARENTS, self._place)):
            if parent not in parents or not self._axis.faceted:
                yield self._differing(what="tallies below a missing bucket", bucket=parent, rows=rows)

    def _miscounted(self, progress: Progress, *, written: bool) -> Iterator[Difference]:
        """Count what each bucket holds, branch by branch, and compare."""
        chunks = progress.following(counting.rows(self._connection, self._axis, self._owner))
        ranges = counting.between(chunks, [self._key(each.lower) for each in self._fine[1:]])
        if not self._below[COARSE]:
            rows = next(ranges).held.total()
            if rows or written:
                yield self._differing(what="total of the buckets", counted=rows)
            return
        coarse: dict[int, Held] = {}
        for each in self._below[COARSE]:
            below = {child.number: next(ranges) for child in self._below[each.number]}
            yield from (
                self._differing(what="begins where there is no row", bucket=number)
                for number, found in below.items()
                if not found.begun
            )
            counted = {number: found.held for number, found in below.items()}
            coarse[each.number] = sum(counted.values(), Held())
            yield from self._compared(each.number, counted)
        yield from self._compared(COARSE, coarse)

    def _compared(self, parent: int, counted: dict[int, Held]) -> Iterator[Difference]:
        """Compare the buckets below one, and their tallies."""
        for each in self._below[parent]:
            total = counted[each.number].total()
            if each.total != total:
                yield self._differing(what="total of the bucket", bucket=each.number, stored=each.total, counted=total)
        if not self._axis.faceted:
            return
        rows = self._connection.fetch(Statement(_TALLY, (*self._place, parent)))
        stored = {(bucket, facet): total for bucket, facet, total in rows}
        right = {(bucket, facet): total for bucket, held in counted.items() for facet, total in held.items()}
        for bucket, facet in sorted(dict(stored.items() ^ right.items())):
            kept, said = stored.get((bucket, facet)), right.get((bucket, facet))
            yield self._differing(what="tally", bucket=bucket, facet=facet, stored=kept, counted=said)

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
