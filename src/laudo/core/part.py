"""What a period has of a group of rows, in the order of an axis: how many of them stand between two places."""

from math import isqrt
from typing import Final, NamedTuple, cast

from msgspec import Struct

from laudo.core import axes
from laudo.core.axes import Axis
from laudo.core.facets import Facets, Group, Numbers
from laudo.core.lookups import Asking, Count, together
from laudo.core.points import Known, Point, Points
from laudo.core.query import Period, Query
from laudo.core.resources import RELATORIOS, Order
from laudo.core.tally import Bounds, counted, span
from laudo.core.walking import FETCH, NEVER, Ends, Matching


class Timed(NamedTuple):
    """The axis of time, in all or in some facets' ranges of which rows of another order are looked at.

    Where its index `shows` how they stand in that order, they are counted there; elsewhere they are fetched.
    """

    axis: Axis
    facets: Numbers
    shows: bool


class Part(Struct, frozen=True):
    """What a period has of a group, in the order of an axis: `matching.total` of the group's rows."""

    axis: Axis
    group: Group
    matching: Matching
    points: Points
    ranges: Numbers
    """The facets in whose own ranges rows are looked for, None where the axis' index has the instant."""
    timed: Timed
    """Where the period's own rows are looked at instead, or those that it leaves out, where that takes less time."""
    ends: Ends | None = None
    """Tells where it ends behind the item at which a walk goes on, which itself does not."""

    @property
    def falling(self) -> bool:
        return self.matching.order.descending

    @property
    def total(self) -> int:
        return self.matching.total

    @property
    def period(self) -> Period:
        return cast("Period", self.matching.query.period)

    @property
    def numbers(self) -> Numbers:
        return self.ranges or self.group.numbers

    @property
    def own(self) -> int:
        """What it costs to count among all rows of the period: no way but to collect them, where they are fetched."""
        return self.total if self.timed.shows else NEVER

    @property
    def others(self) -> int:
        """What it costs to count among all that the period leaves out of the group."""
        return (self.group.total - self.total) * (1 if self.timed.shows else FETCH)

    def counted(self, low: Point, high: Point) -> Asking[int]:
        """Count the rows between two points: none where none of the group's stands.

        Where values are not parted, some of those with a key's value may stand before the row whose place it has.
        """
        rows = high.place - low.place
        if self.axis.repeats and not rows:
            return 0
        if not self.is_passed_in_time(rows):
            return (yield from counted(self.axis, self.numbers, low.key, high.key, self.period))
        if self.own <= self.others:
            return (yield from self._among(low, high, self.period))
        others = [self._among(low, high, each) for each in self.period.others]
        rows, *left_out = yield from together(self._between(low, high), *others)
        return rows - sum(left_out)

    def _between(self, low: Point, high: Point) -> Asking[int]:
        return (yield from span(Bounds(self.axis, low.key, high.key), self.group)).total

    def _among(self, low: Point, high: Point, period: Period) -> Asking[int]:
        time, facets, _ = self.timed
        [(count,)] = yield Count(self.axis, low.key, high.key, facets, period=period, through=time)
        return int(count)

    def counting(self, rows: int) -> int:
        """Tell what it costs to count those of the period among so many of the group's."""
        return min(self.along(rows), self.own, self.others)

    def is_passed_in_time(self, rows: int) -> bool:
        """Tell whether so many of the group's rows are dearer to look at than all of the period, or all others."""
        return self.counting(rows) < self.along(rows)

    def along(self, rows: int) -> int:
        """Tell how many rows of the axis likely lie where the group has so many.

        Those of some facets mostly share values: they lie neither evenly nor side by side.
        """
        if self.ranges:
            return rows
        if self.axis.repeats and self.group.numbers:
            return isqrt(rows * rows * self.matching.of // self.group.total)
        return rows * self.matching.of // self.group.total


def part_of(query: Query, facets: Facets, group: Group, total: int, known: Known) -> Part:
    """Make the part that a period has of a group: `total` rows, of which points may be known."""
    axis, order = query.order.field.axis, query.order
    if axis is None:
        axis, order = axes.RELATORIO_NUMERO, _BY_NUMERO
    ranges = None if axis.covers_recency else facets.numbers(group)
    points = Points(known.get((axis, group.numbers), ()), end=Point(None, group.total, total))
    timed = _timed(axis, query.resource.newest_axis, group, facets)
    return Part(axis, group, Matching(query, group.numbers, order, total, facets.total), points, ranges, timed)


def _timed(axis: Axis, time: Axis, group: Group, facets: Facets) -> Timed:
    if axis.is_shown_by(time, by_facet=False):
        return Timed(time, group.numbers, shows=True)
    if axis.is_shown_by(time, by_facet=True):
        return Timed(time, facets.numbers(group), shows=True)
    return Timed(time, group.numbers, shows=False)


_BY_NUMERO: Final = Order(RELATORIOS.field("numero"), descending=False)
