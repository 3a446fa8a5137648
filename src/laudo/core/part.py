"""A part: the rows of a group that a range of another axis has, and how to count those of them between two points."""

from math import isqrt
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from laudo.core import axes
from laudo.core.axes import Axis, Bounds
from laudo.core.facets import Facets, Group, Numbers
from laudo.core.lookups import Asking, Count, together
from laudo.core.points import Known, Point, Points
from laudo.core.resources import RELATORIOS, Order
from laudo.core.tally import count, span
from laudo.core.walking import FETCH, NEVER, Ends, Matching


class Across(NamedTuple):
    """The range of another axis, to be read there in full, or in the own ranges of some facets.

    If that axis' index `covers` the columns of the order, rows are counted in it; otherwise they must be fetched.
    """

    bounds: Bounds
    facets: Numbers
    covers: bool


class Part(Struct, frozen=True):
    """The `matching.total` rows of a group that are in the range `across`, in the order of `axis`."""

    axis: Axis
    group: Group
    matching: Matching
    points: Points
    ranges: Numbers
    """The facets in whose own ranges rows are looked for; None if the axis' index tells as much."""
    across: Across
    """Where the range's rows, or those that it leaves out, are looked at instead if that costs less."""
    ends: Ends | None = None
    """Tells whether a walk after an item has reached the end of the part, if the walk itself cannot tell."""

    @property
    def falling(self) -> bool:
        return self.matching.order.falling

    @property
    def total(self) -> int:
        return self.matching.total

    @property
    def numbers(self) -> Numbers:
        return self.ranges or self.group.numbers

    @property
    def inside_cost(self) -> int:
        """What it costs to count by reading the whole range; NEVER if rows are fetched, as collecting does that."""
        return self.total if self.across.covers else NEVER

    @property
    def outside_cost(self) -> int:
        """What it costs to count by reading all rows of the group that the range leaves out."""
        return (self.group.total - self.total) * (1 if self.across.covers else FETCH)

    def count(self, low: Point, high: Point) -> Asking[int]:
        """Count the range's rows between two points: none if no row of the group lies between.

        That holds where many rows may share a value. Elsewhere a point's key is the beginning of a value, and its place
        only about right, so points with the same place may have rows in between.
        """
        rows = high.place - low.place
        if self.axis.repeats and not rows:
            return 0
        bounds = self.across.bounds
        if not self.counts_across(rows):
            return (yield from count(self.axis, self.numbers, low.key, high.key, bounds))
        if self.inside_cost <= self.outside_cost:
            return (yield from self._count_across(low, high, bounds))
        outside = [self._count_across(low, high, each) for each in bounds.complement]
        rows, *left_out = yield from together(self._count_group(low, high), *outside)
        return rows - sum(left_out)

    def _count_group(self, low: Point, high: Point) -> Asking[int]:
        return (yield from span(Bounds(self.axis, low.key, high.key), self.group)).total

    def _count_across(self, low: Point, high: Point, bounds: Bounds) -> Asking[int]:
        [(rows,)] = yield Count(self.axis, low.key, high.key, self.across.facets, across=bounds, through=True)
        return int(rows)

    def count_cost(self, rows: int) -> int:
        """Tell what it costs to count the range's rows where the group has `rows`."""
        return min(self.scan_cost(rows), self.inside_cost, self.outside_cost)

    def counts_across(self, rows: int) -> bool:
        """Tell whether to count across, in the range's own axis: it costs less than a scan of these `rows`."""
        return self.count_cost(rows) < self.scan_cost(rows)

    def scan_cost(self, rows: int) -> int:
        """Tell what it costs to look at all rows of the axis that likely lie where the group has `rows`.

        Where many rows share a value, those of some facets lie neither evenly nor side by side: the cost is taken to be
        the geometric mean of both.
        """
        if self.ranges:
            return rows
        per_row = 1 if self.axis.covers(self.across.bounds.axis) else FETCH
        if self.axis.repeats and self.group.numbers:
            return isqrt(rows * rows * self.matching.among // self.group.total) * per_row
        return rows * self.matching.among // self.group.total * per_row


def part_of(matching: Matching, bounds: Bounds, facets: Facets, group: Group, known: Known) -> Part:
    """Make the part of a group that is in a range; `matching` describes its rows, and `known` may have points of it."""
    axis = matching.order.field.axis
    if axis is None:
        axis, matching = axes.RELATORIO_NUMERO, replace(matching, order=_BY_NUMERO)
    by_facet = axis.facet_index is not None and bounds.axis.names[0] not in axis.covered
    ranges = facets.numbers(group) if by_facet else None
    points = Points(known.get((axis, group.numbers), ()), end=Point(None, group.total, matching.total))
    return Part(axis, group, matching, points, ranges, _across(axis, bounds, group, facets))


def _across(axis: Axis, bounds: Bounds, group: Group, facets: Facets) -> Across:
    if axis.is_covered_by(bounds.axis, by_facet=False):
        return Across(bounds, group.numbers, covers=True)
    if axis.is_covered_by(bounds.axis, by_facet=True):
        return Across(bounds, facets.numbers(group), covers=True)
    return Across(bounds, group.numbers, covers=False)


_BY_NUMERO: Final = Order(RELATORIOS.field("numero"), descending=False)
