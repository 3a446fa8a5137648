"""What a range of another axis has of a group of rows, in an order: how many of them stand between two places."""

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
from laudo.core.tally import counted, span
from laudo.core.walking import FETCH, NEVER, Ends, Matching


class Across(NamedTuple):
    """The range of another axis, all of which, or of some facets' ranges on it, may be looked at.

    Where that axis' index `shows` how rows stand in the order, they are counted there; elsewhere they are fetched.
    """

    bounds: Bounds
    facets: Numbers
    shows: bool


class Part(Struct, frozen=True):
    """What a range across has of a group, in the order of an axis: `matching.total` of the group's rows."""

    axis: Axis
    group: Group
    matching: Matching
    points: Points
    ranges: Numbers
    """The facets in whose own ranges rows are looked for, None where these tell no more than the axis' index."""
    across: Across
    """Where the range's own rows are looked at instead, or those that it leaves out, where that takes less time."""
    ends: Ends | None = None
    """Tells where it ends behind the item at which a walk goes on, which itself does not."""

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
    def own(self) -> int:
        """What it costs to count among all rows of the range: no way but to collect them, where they are fetched."""
        return self.total if self.across.shows else NEVER

    @property
    def others(self) -> int:
        """What it costs to count among all that the range leaves out of the group."""
        return (self.group.total - self.total) * (1 if self.across.shows else FETCH)

    def counted(self, low: Point, high: Point) -> Asking[int]:
        """Count the rows between two points: none where none of the group's stands.

        Where values are not parted, some of those with a key's value may stand before the row whose place it has.
        """
        rows = high.place - low.place
        if self.axis.repeats and not rows:
            return 0
        bounds = self.across.bounds
        if not self.is_passed_across(rows):
            return (yield from counted(self.axis, self.numbers, low.key, high.key, bounds))
        if self.own <= self.others:
            return (yield from self._among(low, high, bounds))
        others = [self._among(low, high, each) for each in bounds.others]
        rows, *left_out = yield from together(self._between(low, high), *others)
        return rows - sum(left_out)

    def _between(self, low: Point, high: Point) -> Asking[int]:
        return (yield from span(Bounds(self.axis, low.key, high.key), self.group)).total

    def _among(self, low: Point, high: Point, bounds: Bounds) -> Asking[int]:
        [(count,)] = yield Count(self.axis, low.key, high.key, self.across.facets, across=bounds, through=True)
        return int(count)

    def counting(self, rows: int) -> int:
        """Tell what it costs to count those of the range among so many of the group's."""
        return min(self.along(rows), self.own, self.others)

    def is_passed_across(self, rows: int) -> bool:
        """Tell whether so many of the group's rows are dearer to look at than all of the range, or all others."""
        return self.counting(rows) < self.along(rows)

    def along(self, rows: int) -> int:
        """Tell what it costs to look at all rows of the axis that likely lie where the group has so many.

        Those of some facets mostly share values: they lie neither evenly nor side by side.
        """
        if self.ranges:
            return rows
        looking = 1 if self.axis.shows(self.across.bounds.axis) else FETCH
        if self.axis.repeats and self.group.numbers:
            return isqrt(rows * rows * self.matching.of // self.group.total) * looking
        return rows * self.matching.of // self.group.total * looking


def part_of(matching: Matching, bounds: Bounds, facets: Facets, group: Group, known: Known) -> Part:
    """Make the part that a range has of a group: the rows that match, of which points may be known."""
    axis = matching.order.field.axis
    if axis is None:
        axis, matching = axes.RELATORIO_NUMERO, replace(matching, order=_BY_NUMERO)
    by_facet = axis.facet_index is not None and bounds.axis.names[0] not in axis.shown
    ranges = facets.numbers(group) if by_facet else None
    points = Points(known.get((axis, group.numbers), ()), end=Point(None, group.total, matching.total))
    return Part(axis, group, matching, points, ranges, _across(axis, bounds, group, facets))


def _across(axis: Axis, bounds: Bounds, group: Group, facets: Facets) -> Across:
    if axis.is_shown_by(bounds.axis, by_facet=False):
        return Across(bounds, group.numbers, shows=True)
    if axis.is_shown_by(bounds.axis, by_facet=True):
        return Across(bounds, facets.numbers(group), shows=True)
    return Across(bounds, group.numbers, shows=False)


_BY_NUMERO: Final = Order(RELATORIOS.field("numero"), descending=False)
