"""Keeps `bucket` and `tally`: how many rows of each facet lie in each bucket of an axis, within the rows' transaction.

The buckets of an axis are a tree of two levels, whose ranges follow the rows: a fine bucket that grows past `most_rows`
is split into halves, and so is a coarse one past `most_children`. Each begins at the key of a row that it holds, so
that no key of a deleted row stays; only the first one begins at the empty key. The writer reads the coarse buckets, and
the fine ones only where rows are added or removed, so that the cost of a report does not grow with the account.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from laudo.core import sql
from laudo.core.axes import Axis, Key
from laudo.core.lookups import At, Count
from laudo.core.sql import Dialect, How, Owner, Statement, Write
from laudo.core.sql.parts import ON_AXIS
from laudo.core.sql.writes import BUCKET, TALLY
from laudo.core.tally import COARSE
from laudo.server.database import Connection, Row, StoreError
from laudo.server.ingest import counting
from laudo.server.ingest.buckets import Bucket, Buckets, RowCounts
from laudo.server.ingest.counting import FacetCounts
from laudo.server.ingest.progress import SILENT, Progress


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows a fine bucket may hold, and how many fine buckets a coarse one."""

    most_rows: int = 4096
    most_children: int = 64


SIZES: Final = Sizes()


class Tally:
    """The tally of one axis of one owner, remembered from one transaction to the next."""

    def __init__(self, axis: Axis, owner: Owner, sizes: Sizes = SIZES) -> None:
        """Start knowing nothing; the owner of persons has account 0."""
        self.axis = axis
        self._owner = owner
        self._axis_key = (*owner, axis.number)
        self._most_rows = sizes.most_rows
        self._most_children = sizes.most_children
        self.buckets = Buckets()
        self.total = 0
        self._deltas: Counter[tuple[Bucket, int]] = Counter()
        self._lost_first: set[Bucket] = set()
        self._next = 0

    @property
    def statements(self) -> list[Statement]:
        """The statement that reads the coarse buckets."""
        return [Statement(_COARSE, self._axis_key)]

    def remember(self, connection: Connection, found: list[list[Row]]) -> None:
        """Remember the coarse buckets that the store has; if it has none, make the first."""
        [rows] = found
        if not rows:
            self._insert(connection, [(COARSE, 1, b"", 0), (1, 2, b"", 0)])
            rows = [(COARSE, 1, b"", 0)]
        self.buckets = Buckets(rows)
        self.total = sum(bucket.total for bucket in self.buckets)
        self._next = 0
        self._deltas.clear()
        self._lost_first.clear()

    def children(self, coarse: Iterable[Bucket], dialect: Dialect) -> Statement:
        """Give the statement that reads the fine buckets of coarse ones."""
        return Statement(
            f"{_BUCKETS} AND {dialect.member('parent')}", (*self._axis_key, [each.number for each in coarse])
        )

    def add(self, counted: RowCounts, by: int) -> None:
        """Note, for `write`, that rows were added (1) or removed (-1)."""
        for (next_index, facet), rows in counted.items():
            self._deltas[self.buckets[next_index - 1], facet] += rows * by

    def note_removed(self, keys: Iterable[bytes]) -> None:
        """Note, for `write`, the buckets that began at removed rows."""
        self._lost_first |= self.buckets.starting_at(keys)

    def write(self, connection: Connection, facets: Sequence[int]) -> None:
        """Write what was noted; `facets` are all that the owner has."""
        deltas = {pair: by for pair, by in self._deltas.items() if by}
        self._deltas.clear()
        totals: Counter[Bucket] = Counter()
        for (bucket, _), by in deltas.items():
            totals[bucket] += by
        if self.axis.faceted:
            self._write_tally(connection, deltas)
        self._write_totals(connection, totals)
        for index in sorted({self.buckets.index(bucket) for bucket in totals}, reverse=True):
            self._split(connection, index, facets)
            self._drop(connection, index)
        for bucket in self._lost_first:
            if bucket.total:
                self._update_lower(connection, self.buckets.index(bucket))
        self._lost_first.clear()

    def rebuild(self, connection: Connection, progress: Progress = SILENT) -> None:
        """Delete the store's buckets and count all rows again, in buckets with room to grow."""
        for text in (_DELETE_ALL_TALLIES, _DELETE_ALL_BUCKETS):
            connection.fetch(Statement(text, self._axis_key))
        rows = progress.track(counting.rows(connection, self.axis, self._owner))
        parts = counting.grouped(rows, max(1, self._most_rows * 3 // 4))
        number = 1
        while children := list(islice(parts, max(1, self._most_children * 3 // 4))):
            self._write_branch(connection, number, children)
            number += 1 + len(children)
        self.remember(connection, connection.fetch_each(self.statements))

    def _write_tally(self, connection: Connection, deltas: Mapping[tuple[Bucket, int], int]) -> None:
        rows: Counter[tuple[int, int, int]] = Counter()
        for (bucket, facet), by in deltas.items():
            rows[bucket.parent, facet, bucket.number] += by
            rows[COARSE, facet, bucket.parent] += by
        self._add_tally(connection, rows)

    def _add_tally(self, connection: Connection, rows: Mapping[tuple[int, int, int], int]) -> None:
        """Add to the counts at (parent, facet, bucket); rows whose count becomes 0 are deleted."""
        connection.write(_ADD_TALLY, [(*self._axis_key, *row, rows[row]) for row in sorted(rows)])
        connection.write(_CLEAN_TALLY, [(*self._axis_key, *row) for row in sorted(rows) if rows[row] < 0])

    def _write_totals(self, connection: Connection, totals: Mapping[Bucket, int]) -> None:
        rows: Counter[tuple[int, int]] = Counter()
        for bucket, by in totals.items():
            bucket.total += by
            self.total += by
            rows[bucket.parent, bucket.number] += by
            rows[COARSE, bucket.parent] += by
        connection.write(_ADD_TOTAL, [(*self._axis_key, *row, by) for row, by in sorted(rows.items()) if by])

    def _split(self, connection: Connection, index: int, facets: Sequence[int]) -> None:
        """If a fine bucket has too many rows, give the second half to a new one, and go on with both."""
        bucket = self.buckets[index]
        if bucket.total <= self._most_rows:
            return
        middle, upper = self._key(connection, index, bucket.total // 2), self._upper(index)
        counts = (
            self._facet_counts(connection, middle, upper, facets)
            if self.axis.faceted
            else FacetCounts({0: -(-bucket.total // 2)})
        )
        new = Bucket(self.axis.encode(middle), self._new_number(connection), bucket.parent, counts.total())
        bucket.total -= new.total
        self._insert(connection, [(new.parent, new.number, new.lower, new.total)])
        connection.write(_ADD_TOTAL, [(*self._axis_key, bucket.parent, bucket.number, -new.total)])
        if self.axis.faceted:
            self._add_tally(connection, {(new.parent, facet, new.number): count for facet, count in counts.items()})
            self._add_tally(connection, {(new.parent, facet, bucket.number): -count for facet, count in counts.items()})
        self.buckets.insert(index + 1, new)
        self._split_coarse(connection, bucket.parent)
        self._split(connection, index + 1, facets)
        self._split(connection, index, facets)

    def _upper(self, index: int) -> Key | None:
        end = self.buckets.upper(index)
        return None if end is None else self.axis.decode(end)

    def _key(self, connection: Connection, index: int, place: int) -> Key:
        """Give the key of the row at a place, from 0, in a bucket."""
        lower = self.axis.decode(self.buckets[index].lower)
        row = At(self.axis, lower, self._upper(index), None, place)
        found = connection.fetch(sql.statement(row, self._owner, connection.dialect))
        if not found:
            raise StoreError("the tally counts more reports than there are; `laudo verify --repair` repairs it")
        return tuple(found[0])

    def _new_number(self, connection: Connection) -> int:
        """Give a number that no bucket has."""
        if not self._next:
            [(highest,)] = connection.fetch(Statement(_HIGHEST, self._axis_key))
            self._next = highest + 1
        self._next += 1
        return self._next - 1

    def _facet_counts(
        self, connection: Connection, lower: Key, upper: Key | None, facets: Sequence[int]
    ) -> FacetCounts:
        """Count the rows of a range by facet."""
        numbers = None if self.axis.covers_facet else tuple(facets)
        counted = Count(self.axis, lower, upper, numbers, by_facet=True)
        return FacetCounts(dict(connection.fetch(sql.statement(counted, self._owner, connection.dialect))))

    def _write_branch(self, connection: Connection, number: int, children: list[tuple[Key, FacetCounts]]) -> None:
        """Write a coarse bucket with this number, and its children with the numbers that follow."""
        sums = sum((counts for _, counts in children), FacetCounts())
        lowers = [self.axis.encode(key) for key, _ in children]
        if number == 1:
            lowers[0] = b""
        buckets = [(COARSE, number, lowers[0], sums.total())]
        tally = [(COARSE, facet, number, total) for facet, total in sums.items()]
        for child, (lower, (_, counts)) in enumerate(zip(lowers, children, strict=True), number + 1):
            buckets.append((number, child, lower, counts.total()))
            tally += [(number, facet, child, total) for facet, total in counts.items()]
        self._insert(connection, buckets)
        if self.axis.faceted:
            connection.write(_ADD_TALLY, [(*self._axis_key, *row) for row in sorted(tally)])

    def _split_coarse(self, connection: Connection, parent: int) -> None:
        """If a coarse bucket has too many children, give the second half to a new one."""
        children = [each for each in self.buckets if each.parent == parent]
        if len(children) <= self._most_children:
            return
        second = children[len(children) // 2 :]
        number = self._new_number(connection)
        self._insert(connection, [(COARSE, number, second[0].lower, 0)])
        moved = [each.number for each in second]
        among_moved = connection.dialect.member("bucket")
        for table in ("bucket", "tally"):
            text = f"UPDATE {table} SET parent = ? WHERE {ON_AXIS} AND parent = ? AND {among_moved}"
            connection.fetch(Statement(text, (number, *self._axis_key, parent, moved)))
        for each in second:
            each.parent = number
        total = sum(each.total for each in second)
        connection.write(
            _ADD_TOTAL, [(*self._axis_key, COARSE, parent, -total), (*self._axis_key, COARSE, number, total)]
        )
        if self.axis.faceted:
            connection.fetch(Statement(_DELETE_COARSE, (*self._axis_key, parent)))
            for coarse in (parent, number):
                connection.fetch(Statement(_SUM_COARSE, (*self._axis_key, coarse)))

    def _drop(self, connection: Connection, index: int) -> None:
        """Delete an empty bucket, whose range falls to the one before it, and a coarse one with its only child."""
        bucket = self.buckets[index]
        if bucket.total or not index:
            return
        dropped = [(bucket.parent, bucket.number)]
        if self._is_first(index):
            following = self.buckets[index + 1] if index + 1 < len(self.buckets) else None
            if following and following.parent == bucket.parent:
                connection.write(_SET_LOWER, [(*self._axis_key, COARSE, bucket.parent, following.lower)])
            else:
                dropped.append((COARSE, bucket.parent))
        connection.write(_DELETE_BUCKET, [(*self._axis_key, *row) for row in dropped])
        self.buckets.drop(index)

    def _update_lower(self, connection: Connection, index: int) -> None:
        """Make a bucket begin at its first row, and its coarse one as well, if it is the first child there."""
        bucket, lower = self.buckets[index], self.axis.encode(self._key(connection, index, 0))
        rows = [(bucket.parent, bucket.number), *([(COARSE, bucket.parent)] if self._is_first(index) else [])]
        connection.write(_SET_LOWER, [(*self._axis_key, *row, lower) for row in rows])
        self.buckets.set_lower(index, lower)

    def _is_first(self, index: int) -> bool:
        """Tell whether a bucket, which is not the first of all, is the first child of its coarse one."""
        return self.buckets[index - 1].parent != self.buckets[index].parent

    def _insert(self, connection: Connection, rows: Iterable[tuple[int, int, bytes, int]]) -> None:
        connection.write(_INSERT_BUCKET, [(*self._axis_key, *row) for row in rows])


_BUCKETS: Final = f"SELECT parent, bucket, lower, total FROM bucket WHERE {ON_AXIS}"
_COARSE: Final = f"{_BUCKETS} AND parent = {COARSE}"
_HIGHEST: Final = f"SELECT max(bucket) FROM bucket WHERE {ON_AXIS}"
_INSERT_BUCKET: Final = Write(How.INSERT, BUCKET, ("lower", "total"))
_ADD_TOTAL: Final = Write(How.ADD, BUCKET, ("total",))
_SET_LOWER: Final = Write(How.SET, BUCKET, ("lower",))
_DELETE_BUCKET: Final = Write(How.DELETE, BUCKET)
_ADD_TALLY: Final = Write(How.COUNT, TALLY, ("total",))
_CLEAN_TALLY: Final = Write(How.DELETE_EMPTY, TALLY)
_DELETE_COARSE: Final = f"DELETE FROM tally WHERE {ON_AXIS} AND parent = 0 AND bucket = ?"
_SUM_COARSE: Final = f"""
INSERT INTO tally (id_organizacao, id_conta, axis, parent, facet, bucket, total)
SELECT id_organizacao, id_conta, axis, 0, facet, parent, sum(total) FROM tally WHERE {ON_AXIS} AND parent = ?
GROUP BY id_organizacao, id_conta, axis, facet, parent
"""
_DELETE_ALL_TALLIES: Final = f"DELETE FROM tally WHERE {ON_AXIS}"
_DELETE_ALL_BUCKETS: Final = f"DELETE FROM bucket WHERE {ON_AXIS}"
