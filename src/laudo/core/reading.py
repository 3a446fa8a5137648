"""Reading a page off its order: stretch by stretch, each from the very row at which the page starts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from laudo.core.axes import Axis, Key
from laudo.core.cursor import After
from laudo.core.facets import Group
from laudo.core.lookups import PATIENCE, Asking, Count, Last, Read, Rows, together
from laudo.core.tally import locate, rank

TIES: Final = 256
"""Up to so many rows that share a value are passed one by one; more are passed by the tally."""
MOST_MERGED: Final = 128
"""Facets whose index ranges one statement merges; for more the axis is scanned."""
SEEK: Final = 4
"""What beginning an index range costs, in rows scanned."""
FETCH: Final = 10
"""What fetching a row costs, in rows scanned: paid for each row where the axis' index does not hold the facet."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part of a list that one axis orders: the `group.total` rows with the group's facets from `lower` to `upper`.

    The first stands at `first` on the axis; None says that `lower` and `upper` lie so near that rows may be skipped.
    `falling` reads the axis' first column downwards, ties upwards all the same. `after` is the item in this stretch
    that a walk has seen last, if it was in this one.
    """

    axis: Axis
    falling: bool
    group: Group
    first: int | None = 0
    lower: Key | None = None
    upper: Key | None = None
    after: After | None = None


class Reading:
    """Items collected so far, and how many are still wanted; `of` is how many rows the owner has."""

    __slots__ = ("_parts", "count", "of", "wanted")

    def __init__(self, wanted: int, *, of: int) -> None:
        """Start with none."""
        self._parts: list[str] = []
        self.count = 0
        self.wanted = wanted
        self.of = of

    @property
    def items(self) -> str:
        """The items' JSON joined by commas."""
        return ",".join(self._parts)

    def take(self, rows: Rows) -> None:
        """Keep what a look-up found."""
        [(count, items)] = rows
        if count:
            self._parts.append(items)
            self.count += count
            self.wanted -= count


def read(collected: Reading, stretches: Iterator[Stretch], offset: int) -> Asking[None]:
    """Collect the items before which `offset` others stand, or those that follow a walk's last one."""
    for stretch in stretches:
        if stretch.after is not None:
            yield from _after(collected, stretch, stretch.after)
        elif offset < stretch.group.total:
            yield from _from_offset(collected, stretch, offset)
            offset = 0
        else:
            offset -= stretch.group.total
        if not collected.wanted:
            return


def _from_offset(collected: Reading, stretch: Stretch, offset: int) -> Asking[None]:
    """Collect from one stretch, beginning at its row number `offset`."""
    axis, group = stretch.axis, stretch.group
    most = min(collected.wanted, group.total - offset)
    if not offset:
        yield from _from_edge(collected, stretch, most)
    elif stretch.first is None:
        yield from _read(collected, stretch, most, lower=stretch.lower, upper=stretch.upper, skip=offset, whole=True)
    elif not stretch.falling:
        key = yield from locate(axis, group, stretch.first + offset)
        yield from _read(collected, stretch, most, lower=key)
    else:
        place = stretch.first + group.total - 1 - offset
        key = yield from locate(axis, group, place)
        if len(axis.columns) == 1:
            yield from _read(collected, stretch, most, upper=axis.past(key))
        else:
            yield from _down_from(collected, stretch, most, key=key, place=place)


def _from_edge(collected: Reading, stretch: Stretch, most: int) -> Asking[None]:
    """Collect from the beginning of a stretch."""
    if not stretch.falling or stretch.upper or len(stretch.axis.columns) == 1:
        yield from _read(collected, stretch, most, lower=stretch.lower, upper=stretch.upper)
        return
    [(value,)] = yield Last(stretch.axis)
    yield from _down(collected, stretch, most, value=value)


def _down_from(collected: Reading, stretch: Stretch, most: int, *, key: Key, place: int) -> Asking[None]:
    """Collect downwards from the row that the mirror image of `key` (row `place` of the axis) is among its ties.

    Downwards, values fall but ties rise: where n tied rows follow `key` on the axis, n of them precede the page.
    """
    axis, numbers, value = stretch.axis, stretch.group.numbers, key[0]
    [(ties,)] = yield Count(axis, key, axis.ceiling(value), numbers, most=TIES + 1)
    if ties <= TIES:
        yield from _down(collected, stretch, most, value=value, skip=ties - 1)
        return
    bounds = axis.floor(value), axis.ceiling(value)
    first, end = yield from together(*(rank(axis, stretch.group, bound) for bound in bounds))
    start = yield from locate(axis, stretch.group, first + end - place - 1)
    yield from _down(collected, stretch, most, value=value, lower=start)


def _down(
    collected: Reading, stretch: Stretch, most: int, *, value: object, skip: int = 0, lower: Key | None = None
) -> Asking[None]:
    """Collect the rows with a value, upwards, then those below it."""
    axis = stretch.axis
    before = collected.count
    ties = Stretch(axis, falling=False, group=stretch.group)
    yield from _read(
        collected, ties, most, lower=lower or axis.floor(value), upper=axis.ceiling(value), skip=skip, whole=True
    )
    most -= collected.count - before
    if most:
        yield from _read(collected, stretch, most, lower=stretch.lower, upper=axis.floor(value))


def _after(collected: Reading, stretch: Stretch, after: After) -> Asking[None]:
    """Collect the rows of a stretch that follow an item."""
    axis = stretch.axis
    key = axis.key(after.value, after.key)
    most = min(collected.wanted, stretch.group.total)
    if not stretch.falling:
        yield from _read(collected, stretch, most, lower=axis.past(key), upper=stretch.upper)
    elif len(axis.columns) == 1:
        yield from _read(collected, stretch, most, lower=stretch.lower, upper=key)
    else:
        yield from _down(collected, stretch, most, value=key[0], lower=axis.past(key))


def _read(
    collected: Reading,
    stretch: Stretch,
    limit: int,
    *,
    lower: Key | None = None,
    upper: Key | None = None,
    skip: int = 0,
    whole: bool = False,
) -> Asking[None]:
    """Collect up to `limit` rows of a range in the way that the exact counts say is cheaper.

    Where the facets lie evenly, a scan meets one of them in every `of / total` rows. They may not (the newest reports
    are those still in process), so a scan gives up after four times as many, and the facets' own ranges are merged;
    a range of few rows is scanned `whole`.
    """
    axis, numbers = stretch.axis, stretch.group.numbers
    scan = Read(axis, lower, upper, numbers, limit, skip, stretch.falling)
    if numbers is None or axis.facet_index is None or len(numbers) > MOST_MERGED:
        collected.take((yield scan))
        return
    merge = replace(scan, merge=True)
    scanned = (limit + skip) * collected.of // max(stretch.group.total, 1)
    merged = min(len(numbers) * (limit + skip), stretch.group.total) + len(numbers) * SEEK
    if scanned * (1 if axis.covers_facet else FETCH) >= merged:
        collected.take((yield merge))
    elif whole:
        collected.take((yield scan))
    else:
        rows = yield replace(scan, most=PATIENCE * scanned + 256)
        collected.take(rows if rows[0][0] == limit else (yield merge))
