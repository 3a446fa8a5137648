"""What was counted of a list, while it stays as it is: its total, points of its orders, words that lead to its rows."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final, NamedTuple

from msgspec import Struct

from laudo.core import disclosure
from laudo.core.axes import Axis, Key
from laudo.core.facets import Numbers
from laudo.core.lookups import Words

APART: Final = 16_384
"""Rows of a group that stand at least between two points that are kept: counting so many takes about a millisecond."""
MOST: Final = 256
"""Points of a group that are kept, or somewhat more: in one of many rows they are the farther apart."""


@disclosure.only("place", "held")
class Point(NamedTuple):
    """A key of an order, about how many rows of a group stand before it, and how many of these the list has.

    None for a key stands for the beginning or the end.
    """

    key: Key | None
    place: int
    held: int


Known = Mapping[tuple[Axis, Numbers], tuple[Point, ...]]
"""Points of the order of an axis, by the facets of the group."""


@disclosure.only("most")
class Lead(NamedTuple):
    """What leads to rows that are tested for all else: the range of an axis, or words; it has `most` rows at most."""

    through: Axis | Words
    most: int
    beginning: str = ""
    """Of the axis of names, with what word those of the range begin: all names that have it."""

    @property
    def words(self) -> Words:
        """The words, if it is these."""
        return self.through if isinstance(self.through, tuple) else ()


class Counted(Struct, frozen=True):
    """How many rows a list has, points of its orders, and what words lead to its rows."""

    total: int
    points: Known = {}
    lead: Lead | None = None

    @property
    def weight(self) -> int:
        """How many bytes it takes up, about."""
        return _OWN + sum(_weight(point) for points in self.points.values() for point in points)


class Points:
    """Points of one order of one group, from its beginning to its end: those known before, and those counted now."""

    __slots__ = ("_points", "apart", "have_grown")

    def __init__(self, known: Iterable[Point], *, end: Point) -> None:
        """Start with those known, in order."""
        self._points = [Point(None, 0, 0), *known, end]
        self.apart = max(APART, end.place // MOST)
        self.have_grown = False

    @property
    def spread(self) -> tuple[Point, ...]:
        """Those that are far enough apart to be kept."""
        kept = self._points[:1]
        for point in self._points[1:-1]:
            if kept[-1].place + self.apart <= point.place <= self._points[-1].place - self.apart:
                kept.append(point)
        return tuple(kept[1:])

    def around(self, row: int) -> tuple[Point, Point]:
        """Give the nearest points between which row `row` of the list stands."""
        index = bisect_right(self._points, row, hi=len(self._points) - 1, key=_HELD)
        return self._points[index - 1], self._points[index]

    def beside(self, key: Key) -> tuple[Point, Point]:
        """Give the nearest point below a key, and the nearest one that is not."""
        index = bisect_left(self._points, key, lo=1, hi=len(self._points) - 1, key=_KEY)
        return self._points[index - 1], self._points[index]

    def add(self, *points: Point) -> None:
        """Add points, each with a key."""
        self.have_grown = True
        for point in points:
            insort(self._points, point, lo=1, hi=len(self._points) - 1, key=_KEY)


def _weight(point: Point) -> int:
    return _POINT + 2 * sum(len(each) for each in point.key or () if not isinstance(each, int))


_OWN: Final = 500
_POINT: Final = 300
_KEY: Final = attrgetter("key")
_HELD: Final = attrgetter("held")
