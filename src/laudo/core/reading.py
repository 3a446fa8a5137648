"""Reading a page in its order: stretch by stretch, each from the very row at which the page starts."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from laudo.core import disclosure
from laudo.core.axes import Axis, Key
from laudo.core.facets import Group
from laudo.core.lookups import PATIENCE, Asking, Count, Read, Rows, together
from laudo.core.tally import locate, rank
from laudo.core.walking import FETCH, LEAST

TIES: Final = 256
"""Up to this many rows that share a value are passed one by one; more are passed by the tally."""
SEEK: Final = 4
"""What it costs to begin an index range, in rows scanned."""
FARTHEST: Final = 4000
"""Scanning this many rows costs as much as finding, by the tally, the next row with some facets."""
_ALL: Final = Group(None, None, 0)
"""The rows of all facets."""


@disclosure.only("axis", "falling", "group", "first")
class Stretch(Struct, frozen=True):
    """Rows of a list in the order of one axis: the `group.total` rows with the group's facets from `lower` to `upper`.

    `first` is the place of the first of them; None says that `lower` and `upper` are so near that rows may be skipped
    one by one. If `falling`, the axis' first column is read downwards, but ties still upwards. `after` is the key of
    the last item that a walk has seen, if it is in this stretch; `first` need not be right then.
    """

    axis: Axis
    falling: bool
    group: Group
    first: int | None = 0
    lower: Key | None = None
    upper: Key | None = None
    after: Key | None = None


class Taken:
    """The items taken so far, and how many are still wanted.

    `among` is about how many rows, of any facets, the list or the range has in which the items lie.
    """

    __slots__ = ("_parts", "among", "count", "wanted")

    def __init__(self, wanted: int, *, among: int) -> None:
        self._parts: list[bytes] = []
        self.count = 0
        self.wanted = wanted
        self.among = among

    @property
    def items(self) -> bytes:
        """The items' JSON joined by commas."""
        return b",".join(self._parts)

    def take(self, rows: Rows) -> int:
        """Keep the items of a look-up's one row, whose last two columns are how many and their JSON; gives how many."""
        [(*_, count, items)] = rows
        if count:
            self._parts.append(items)
            self.count += count
            self.wanted -= count
        return int(count)


def read(taken: Taken, stretches: Iterator[Stretch], offset: int) -> Asking[None]:
    """Take the items that come after `offset` others, or after a walk's last item."""
    for stretch in stretches:
        if stretch.after is not None:
            yield from _after(taken, stretch, stretch.after)
        elif offset < stretch.group.total:
            yield from _from_offset(taken, stretch, offset)
            offset = 0
        else:
            offset -= stretch.group.total
        if not taken.wanted:
            return


def _from_offset(taken: Taken, stretch: Stretch, offset: int) -> Asking[None]:
    """Take from one stretch, starting at its row number `offset`."""
    axis, group = stretch.axis, stretch.group
    limit = min(taken.wanted, group.total - offset)
    if stretch.falling and axis.repeats and group.numbers:
        yield from _down_values(taken, stretch, limit, place=group.total - 1 - offset, edge=not offset)
    elif stretch.first is None:
        yield from _read(taken, stretch, limit, lower=stretch.lower, upper=stretch.upper, skip=offset, whole=True)
    elif stretch.falling:
        yield from _down(taken, stretch, limit, place=stretch.first + group.total - 1 - offset, edge=not offset)
    else:
        place = stretch.first + offset
        lower = (yield from locate(axis, group, place)) if offset else stretch.lower
        yield from _up(taken, stretch, limit, lower=lower, place=place)


def _up(taken: Taken, stretch: Stretch, limit: int, *, lower: Key | None, place: int | None) -> Asking[None]:
    """Take upwards from the key `lower`, at place `place`.

    Where the group's rows are far apart, the tally tells where the next one is. After an item `place` is None: where
    the item and the end of the stretch are is found only if it is needed.
    """
    axis, group = stretch.axis, stretch.group
    rest, before = taken.wanted - limit, taken.count
    whole = stretch.first is None
    if not (yield from _read(taken, stretch, limit, lower=lower, upper=stretch.upper, whole=whole)):
        return
    end = (stretch.first or 0) + group.total
    if place is None:
        place = (yield from rank(axis, group, lower)) if lower else 0
        end = (yield from rank(axis, group, stretch.upper)) if stretch.upper else group.total
    place += taken.count - before
    while taken.wanted > rest and place < end:
        before = taken.count
        key = yield from locate(axis, group, place)
        yield from _read(taken, stretch, taken.wanted - rest, lower=key, upper=stretch.upper)
        if taken.count == before:
            return
        place += taken.count - before


def _down_values(taken: Taken, stretch: Stretch, limit: int, *, place: int, edge: bool) -> Asking[None]:
    """Take downwards from the mirror image of `place` (see `_down_from`), where many rows may share a value.

    Values with few rows are read together, as many values as one scan may take. If a value has many rows, they are read
    upwards, from the key that the tally gives or, at the `edge`, from the value's first row.
    """
    axis, group = stretch.axis, stretch.group
    while limit and place >= 0:
        top, low = yield from together(locate(axis, group, place), locate(axis, group, max(place - limit + 1, 0)))
        if edge and top[0] == low[0]:
            yield from _up(taken, _with_value(stretch, top[0]), limit, lower=axis.floor(top[0]), place=None)
            return
        floor, ceiling = axis.floor(top[0]), axis.ceiling(top[0])
        first, end = yield from together(rank(axis, group, floor), rank(axis, group, ceiling))
        start, before, scannable = first + end - place - 1, taken.count, PATIENCE * limit + TIES
        lower = axis.floor(low[0])
        [(rows,)] = yield Count(axis, lower, ceiling, None, most=scannable + 1)
        if rows > scannable:
            one_is_enough = end - start >= limit
            lower = ceiling if one_is_enough else (yield from _farthest(axis, ceiling, max(scannable, FARTHEST)))
        if lower < ceiling:
            yield from _read(taken, stretch, limit, lower=lower, upper=ceiling, skip=start - first, whole=True)
            place -= taken.count - before
        else:
            key = yield from locate(axis, group, start)
            yield from _up(taken, replace(stretch, falling=False), min(limit, end - start), lower=key, place=start)
            place = first - 1
        limit, edge = limit - (taken.count - before), True
        if taken.count == before:
            return


def _with_value(stretch: Stretch, value: object) -> Stretch:
    """Narrow a stretch to the rows with one value, which are read upwards."""
    return replace(stretch, falling=False, lower=stretch.axis.floor(value), upper=stretch.axis.ceiling(value))


def _farthest(axis: Axis, upper: Key, most: int) -> Asking[Key]:
    """Find the lowest key between two values from which at most `most` rows of any facets lie before `upper`."""
    place = (yield from rank(axis, _ALL, upper)) - most - 1
    key = yield from locate(axis, _ALL, max(place, 0))
    return axis.ceiling(key[0])


def _down(taken: Taken, stretch: Stretch, limit: int, *, place: int, edge: bool) -> Asking[None]:
    """Take downwards from the mirror image of `place` (see `_down_from`), at the `edge` the stretch's last row.

    Where the group's rows are far apart, the tally tells where the next one is.
    """
    axis, rest = stretch.axis, taken.wanted - limit
    if edge:
        before = taken.count
        if not (yield from _read(taken, stretch, limit, lower=stretch.lower, upper=stretch.upper)):
            return
        place -= taken.count - before
    while (limit := taken.wanted - rest) > 0 and place >= (stretch.first or 0):
        before, key = taken.count, (yield from locate(axis, stretch.group, place))
        if len(axis.columns) == 1:
            yield from _read(taken, stretch, limit, lower=stretch.lower, upper=axis.past(key))
        else:
            yield from _down_from(taken, stretch, limit, key=key, place=place)
        if taken.count == before:
            return
        place -= taken.count - before


def _down_from(taken: Taken, stretch: Stretch, limit: int, *, key: Key, place: int) -> Asking[None]:
    """Take downwards from the mirror image of `key`, at place `place`, among the rows with its value (its ties).

    Values fall, but ties rise: if n ties come after `key` on the axis, n ties come before the page.
    """
    axis, group, before = stretch.axis, stretch.group, taken.count
    floor, ceiling = axis.floor(key[0]), axis.ceiling(key[0])
    [(ties,)] = yield Count(axis, key, ceiling, group.numbers, most=TIES + 1)
    lower, skip = floor, ties - 1
    if ties > TIES:
        first, end = yield from together(rank(axis, group, floor), rank(axis, group, ceiling))
        lower, skip = (yield from locate(axis, group, first + end - place - 1)), 0
    yield from _read(taken, _with_value(stretch, key[0]), limit, lower=lower, upper=ceiling, skip=skip, whole=True)
    limit -= taken.count - before
    if limit:
        yield from _read(taken, stretch, limit, lower=stretch.lower, upper=floor)


def _after(taken: Taken, stretch: Stretch, key: Key) -> Asking[None]:
    """Take the rows of a stretch that come after an item, given its key."""
    axis, group = stretch.axis, stretch.group
    limit = min(taken.wanted, group.total)
    if not stretch.falling:
        yield from _up(taken, stretch, limit, lower=axis.past(key), place=None)
    elif len(axis.columns) == 1:
        yield from _read(taken, stretch, limit, lower=stretch.lower, upper=key)
    else:
        rest, tied = taken.wanted - limit, _with_value(stretch, key[0])
        if axis.repeats:
            yield from _up(taken, tied, limit, lower=axis.past(key), place=None)
        else:
            yield from _read(taken, tied, limit, lower=axis.past(key), upper=tied.upper, whole=True)
        if taken.wanted > rest:
            yield from _below(taken, stretch, taken.wanted - rest, axis.floor(key[0]))


def _below(taken: Taken, stretch: Stretch, limit: int, upper: Key) -> Asking[None]:
    """Take downwards from the first value below `upper`, a key at which a value begins."""
    axis, group, before = stretch.axis, stretch.group, taken.count
    by_values = axis.repeats and group.numbers
    if by_values or (yield from _read(taken, stretch, limit, lower=stretch.lower, upper=upper)):
        place = (yield from rank(axis, group, upper)) - 1 - (taken.count - before)
        limit -= taken.count - before
        yield from (_down_values if by_values else _down)(taken, stretch, limit, place=place, edge=bool(by_values))


def _read(
    taken: Taken,
    stretch: Stretch,
    limit: int,
    *,
    lower: Key | None,
    upper: Key | None,
    skip: int = 0,
    whole: bool = False,
) -> Asking[bool]:
    """Take up to `limit` rows of a range in the way that exact counts say is cheapest; tell if there may be more.

    If the group's rows lie evenly, a scan meets one in every `among / total` rows. They may not (the newest reports are
    those still in process), so a scan gives up after PATIENCE times as many rows, and the facets' own ranges are merged
    instead. A range of few rows is scanned `whole`.

    An axis without such ranges has nothing to fall back on. There, few rows are gathered and sorted; otherwise a scan
    may end with too few rows, and only then may there be more.
    """
    axis, numbers = stretch.axis, stretch.group.numbers
    scan = Read(axis, lower, upper, numbers, limit, skip, stretch.falling)
    lacks_ranges = axis.facet_index is None
    if numbers is None or (lacks_ranges and whole):
        taken.take((yield scan))
        return False
    scanned = (limit + skip) * taken.among // max(stretch.group.total, 1)
    # Rows that share a value mostly share a facet too: a facet's rows are next to one another, or far away.
    likely = limit + skip if axis.repeats else scanned
    limited = replace(scan, most=min(PATIENCE * scanned + LEAST, FARTHEST + likely))
    if lacks_ranges:
        gathers = axis.gathering and stretch.lower is stretch.upper is None and stretch.group.total <= 2 * scanned
        return taken.take((yield replace(scan, gather=True) if gathers else limited)) < limit and not gathers
    merge = replace(scan, merge=True)
    merged = min(len(numbers) * (limit + skip), stretch.group.total) + len(numbers) * SEEK
    if scanned * (1 if axis.covers_facet else FETCH) >= merged:
        taken.take((yield merge))
    elif whole:
        taken.take((yield scan))
    else:
        rows = yield limited
        taken.take(rows if rows[0][0] == limit else (yield merge))
    return False
