"""What was counted of a list that has not changed since: its total, points of its orders, what leads to its rows."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final, NamedTuple

from msgspec import Struct

from laudo.core import disclosure
from laudo.core.axes import Axis, Key
from laudo.core.facets import Numbers
from laudo.core.lookups import DamagedError, Words

APART: Final = 16_384
"""The fewest rows of a group between two points that are kept: counting that many takes about a millisecond."""
MOST: Final = 256
"""About the most points that are kept of a group: the more rows it has, the farther apart its points are."""


@disclosure.only("place", "held")
class Point(NamedTuple):
    """A key of an axis, its place (about how many rows of a group come before it), and how many of these are `held`.

    Those are held that are also in the range of another axis. A key of None stands for the beginning or the end.
    """

    key: Key | None
    place: int
    held: int


Known = Mapping[tuple[Axis, Numbers], tuple[Point, ...]]
"""Points, by their axis and the facets of their group."""


@disclosure.only("most")
class Lead(NamedTuple):
    """What leads to rows that are tested for all else: the range of an axis, or words; it has at most `most` rows."""

    through: Axis | Words
    most: int
    beginning: str = ""
    """With a range of names, the word with which they begin, if all names that have this word begin with it."""

    @property
    def words(self) -> Words:
        """The words; none if it is a range."""
        return self.through if isinstance(self.through, tuple) else ()


class Counted(Struct, frozen=True):
    """How many rows a list has, points of its orders, and what leads to its rows."""

    total: int
    points: Known = {}
    lead: Lead | None = None

    @property
    def weight(self) -> int:
        """About how many bytes it takes."""
        return _BASE_BYTES + sum(_weight(point) for points in self.points.values() for point in points)


class Points:
    """The points of one group on one axis, from beginning to end: those known before, and those counted now."""

    __slots__ = ("_points", "have_grown", "spacing")

    def __init__(self, known: Iterable[Point], *, end: Point) -> None:
        self._points = [Point(None, 0, 0), *known, end]
        self.spacing = max(APART, end.place // MOST)
        self.have_grown = False

    @property
    def kept(self) -> tuple[Point, ...]:
        """The points that are far enough apart to be kept."""
        kept = self._points[:1]
        for point in self._points[1:-1]:
            if kept[-1].place + self.spacing <= point.place <= self._points[-1].place - self.spacing:
                kept.append(point)
        return tuple(kept[1:])

    def around_row(self, row: int) -> tuple[Point, Point]:
        """Give the nearest two points between which row number `row` of the range lies.

        Raises DamagedError if the range has no such row.
        """
        if not 0 <= row < self._points[-1].held:
            raise DamagedError(_DISAGREE)
        index = bisect_right(self._points, row, hi=len(self._points) - 1, key=_HELD)
        return self._points[index - 1], self._points[index]

    def around_key(self, key: Key) -> tuple[Point, Point]:
        """Give the nearest point below a key, and the nearest one at or above it."""
        index = bisect_left(self._points, key, lo=1, hi=len(self._points) - 1, key=_KEY)
        return self._points[index - 1], self._points[index]

    def add(self, *points: Point) -> None:
        """Add points, each with a key; raises DamagedError if one holds more rows than a later one."""
        self.have_grown = True
        for point in points:
            index = bisect_left(self._points, point.key, lo=1, hi=len(self._points) - 1, key=_KEY)
            if not self._points[index - 1].held <= point.held <= self._points[index].held:
                raise DamagedError(_DISAGREE)
            self._points.insert(index, point)


def _weight(point: Point) -> int:
    return _POINT_BYTES + 2 * sum(len(each) for each in point.key or () if not isinstance(each, int))


_DISAGREE: Final = "the tally does not agree with the rows; `laudo verify --repair` repairs it"
_BASE_BYTES: Final = 500
_POINT_BYTES: Final = 300
_KEY: Final = attrgetter("key")
_HELD: Final = attrgetter("held")
