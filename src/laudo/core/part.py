"""What a period has of a group of rows, in the order of an axis: how many of them stand between two places."""

from math import isqrt
from typing import Final, NamedTuple

from msgspec import Struct

from laudo.core import axes
from laudo.core.axes import Axis
from laudo.core.facets import Facets, Group, Numbers
from laudo.core.lookups import Asking, Count
from laudo.core.points import Known, Point, Points
from laudo.core.query import Period, Query
from laudo.core.resources import RELATORIOS, Order
from laudo.core.tally import counted
from laudo.core.walking import Ends, Matching


class Timed(NamedTuple):
    """The axis of time where its index, in all or in some facets' ranges, shows how rows stand in another order."""

    axis: Axis
    facets: Numbers


class Part(Struct, frozen=True):
    """What a period has of a group, in the order of an axis: `matching.total` of the group's rows."""

    axis: Axis
    group: Group
    matching: Matching
    points: Points
    ranges: Numbers
    """The facets in whose own ranges rows are looked for, None where the axis' index has the instant."""
    timed: Timed | None
    """Where the period's own rows are looked at instead, once these are fewer than those of the axis."""
    ends: Ends | None = None
    """Tells where it ends behind the item at which a walk goes on, which itself does not."""

    @property
    def falling(self) -> bool:
        return self.matching.order.descending

    @property
    def total(self) -> int:
        return self.matching.total

    @property
    def period(self) -> Period | None:
        return self.matching.query.period

    @property
    def numbers(self) -> Numbers:
        return self.ranges or self.group.numbers

    def counted(self, low: Point, high: Point) -> Asking[int]:
        """Count the rows between two points: none where none of the group's stands.

        Where values are not parted, some of those with a key's value may stand before the row whose place it has.
        """
        if self.axis.repeats and low.place == high.place:
            return 0
        if self.timed and self.is_passed_in_time(high.place - low.place):
            time, facets = self.timed
            [(count,)] = yield Count(self.axis, low.key, high.key, facets, period=self.period, through=time)
            return int(count)
        return (yield from counted(self.axis, self.numbers, low.key, high.key, self.period))

    def counting(self, rows: int) -> int:
        """Tell how many rows are looked at to count those of the period among so many of the group's."""
        return min(self.along(rows), self.total) if self.timed else self.along(rows)

    def is_passed_in_time(self, rows: int) -> bool:
        """Tell whether so many of the group's rows are more than all that the period has of it, and need no look."""
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


def _timed(axis: Axis, time: Axis, group: Group, facets: Facets) -> Timed | None:
    if axis.is_shown_by(time, by_facet=False):
        return Timed(time, group.numbers)
    if axis.is_shown_by(time, by_facet=True):
        return Timed(time, facets.numbers(group))
    return None


_BY_NUMERO: Final = Order(RELATORIOS.field("numero"), descending=False)
