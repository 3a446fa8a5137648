"""Places on an axis, found by its buckets: the coarse one, then the fine one, then at most one bucket's rows.

The *place* of a key, for a group, is how many of the group's rows come before it. `locate` finds the key at a place,
and `rank` the place of a key.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from typing import Final, NamedTuple

from laudo.core import disclosure
from laudo.core.axes import Axis, Bounds, Key
from laudo.core.facets import Group, Numbers
from laudo.core.lookups import Asking, At, Before, Children, Count, DamagedError, Holding, Rows, Together, together

COARSE: Final = 0
"""The parent of the coarse buckets."""


@disclosure.only("number", "total")
class Bucket(NamedTuple):
    """A range of an axis, and how many of its rows have the facets asked for."""

    number: int
    lower: bytes
    upper: bytes | None
    total: int


@disclosure.only("total", "before", "coarse", "coarse_before")
class Holder(NamedTuple):
    """The fine bucket that holds a key, and the coarse bucket around it.

    `before` is how many rows of the coarse bucket come before the fine one, and `coarse_before` how many rows of the
    axis come before the coarse one. These and `total` count the rows of all facets.
    """

    lower: bytes
    upper: bytes | None
    total: int
    before: int
    coarse: int
    coarse_lower: bytes
    coarse_before: int


class Span(NamedTuple):
    """A range's rows of a group: the place of the first one, and how many they are.

    The place is None, not counted, if one fine bucket holds both ends of the range, or if it is empty.
    """

    first: int | None
    total: int


_WHOLE: Final = Bucket(COARSE, b"", None, 0)
_DAMAGED: Final = "the tally holds fewer rows than the facets; `laudo verify --repair` repairs it"
_EXCEEDS: Final = "the tally counts more rows than there are; `laudo verify --repair` repairs it"


def locate(axis: Axis, group: Group, place: int) -> Asking[Key]:
    """Find the key of the row that comes after `place` rows of a group.

    Raises DamagedError if the tally does not fit the rows.
    """
    bucket = _WHOLE
    for _level in range(2):
        children = _buckets((yield Children(axis, bucket.number, group.numbers, group.others)), bucket)
        bucket, place = _bucket_at(children, place)
    keys = yield At(axis, axis.decode(bucket.lower), _decoded(axis, bucket.upper), group.numbers, place)
    if not keys:
        raise DamagedError(_EXCEEDS)
    return keys[0]


def beginnings(axis: Axis, group: Group) -> Asking[list[tuple[Key, int]]]:
    """Give the key at which each coarse bucket but the first begins, and its place for a group."""
    rows = yield Children(axis, COARSE, group.numbers, group.others)
    buckets = _buckets(rows, _WHOLE)
    places = accumulate(bucket.total for bucket in buckets)
    return [(key, place) for each, place in zip(buckets, places, strict=True) if (key := _decoded(axis, each.upper))]


def span(bounds: Bounds, group: Group) -> Asking[Span]:
    """Count the rows with a group's facets in a range."""
    axis, lower, upper = bounds
    if lower is None or upper is None:
        first = (yield from rank(axis, group, lower)) if lower else 0
        end = (yield from rank(axis, group, upper)) if upper else group.total
        return Span(first, end - first)
    if upper <= lower:
        return Span(None, 0)
    early, late = yield from together(_holder(axis, lower), _holder(axis, upper))
    if early.lower == late.lower:
        return Span(None, (yield from count(axis, group.numbers, lower, upper)))
    first, end = yield from together(_rank(axis, group, lower, early), _rank(axis, group, upper, late))
    return Span(first, end - first)


def span_by_facet(bounds: Bounds, totals: Mapping[int, int]) -> Asking[tuple[Counter[int], Counter[int]]]:
    """Count, for each of several facets, its rows before a range and in it; `totals` is how many it has in all."""
    axis, lower, upper = bounds
    keys = [key for key in (lower, upper) if key is not None]
    ranks = yield from together(*(_ranks(axis, tuple(totals), key) for key in keys))
    before = Counter() if lower is None else ranks[0]
    held = Counter(totals if upper is None else ranks[-1])
    held -= before
    return before, held


def rank(axis: Axis, group: Group, key: Key) -> Asking[int]:
    """Count the rows with a group's facets that come before a key."""
    holder = yield from _holder(axis, key)
    return (yield from _rank(axis, group, key, holder))


def _holder(axis: Axis, key: Key) -> Asking[Holder]:
    """Find the fine bucket that holds a key."""
    rows = yield Holding(axis, axis.encode(key))
    if not rows:
        raise DamagedError(_DAMAGED)
    return Holder(*rows[0])


def _rank(axis: Axis, group: Group, key: Key, holder: Holder) -> Asking[int]:
    """Count the rows before a key: those of whole coarse buckets, then of whole fine ones, then one by one.

    The last are counted from the beginning of the fine bucket that holds the key, or from its end if that seems nearer.
    It is nearer where rows lie evenly; a wrong guess costs nothing but time.
    """
    coarse = _summed(axis, group, COARSE, holder.coarse_lower, holder.coarse_before)
    if holder.upper is not None and _nearer_end(axis.encode(key), holder.lower, holder.upper):
        fine = _summed(axis, group, holder.coarse, holder.upper, holder.before + holder.total)
        rows = count(axis, group.numbers, key, axis.decode(holder.upper))
        before, within, beyond = yield from together(coarse, fine, rows)
        return before + within - beyond
    fine = _summed(axis, group, holder.coarse, holder.lower, holder.before)
    rows = count(axis, group.numbers, axis.decode(holder.lower), key)
    return sum((yield from together(coarse, fine, rows)))


def _ranks(axis: Axis, numbers: tuple[int, ...], key: Key) -> Asking[Counter[int]]:
    """Count, for each of several facets, its rows that come before a key."""
    holder = yield from _holder(axis, key)
    coarse = Before(axis, COARSE, holder.coarse_lower, numbers, by_facet=True)
    fine = Before(axis, holder.coarse, holder.lower, numbers, by_facet=True)
    rows = Count(axis, axis.decode(holder.lower), key, numbers, by_facet=True)
    before: Counter[int] = Counter()
    for held in (yield Together((coarse, fine, rows))):
        before.update(dict(held))
    return before


def _summed(axis: Axis, group: Group, parent: int, upper: bytes, total: int) -> Asking[int]:
    """Count a group's rows in the buckets below `parent` that begin before `upper`; all facets have `total` there."""
    if group.named is None or not total:
        return total
    [(held,)] = yield Before(axis, parent, upper, group.named)
    return int(held if group.others is None else total - held)


def count(
    axis: Axis, numbers: Numbers, lower: Key | None, upper: Key | None, across: Bounds | None = None
) -> Asking[int]:
    """Count the rows of a range one by one; those that share its last value are counted separately.

    Otherwise an engine may read on to the end of that value, since it may not know where among these rows the range
    ends.
    """
    edge = axis.floor(upper[0]) if axis.repeats and upper else None
    if edge is None or edge == upper or (lower and edge <= lower):
        [(rows,)] = yield Count(axis, lower, upper, numbers, across=across)
        return int(rows)
    parts = Count(axis, lower, edge, numbers, across=across), Count(axis, edge, upper, numbers, across=across)
    below, within = yield Together(parts)
    return int(below[0][0] + within[0][0])


def _nearer_end(key: bytes, lower: bytes, upper: bytes) -> bool:
    """Tell whether a key lies in the second half of a range, all three as bytes.

    A range that begins with empty bytes, which sort below every key, has no halves.
    """
    width = max(map(len, (key, lower, upper)))
    begin, here, end = (int.from_bytes(each.ljust(width, b"\0")) for each in (lower, key, upper))
    return bool(lower) and here - begin > end - here


def _buckets(rows: Rows, parent: Bucket) -> list[Bucket]:
    """Give each bucket its end: where the next one begins, or its parent ends."""
    ends = [*(lower for _, lower, _ in rows[1:]), parent.upper]  # One too many if a damaged store has no rows.
    return [Bucket(number, lower, end, total) for (number, lower, total), end in zip(rows, ends, strict=False)]


def _bucket_at(buckets: list[Bucket], place: int) -> tuple[Bucket, int]:
    """Give the bucket in which a place lies, and the place within the bucket."""
    for bucket in buckets:
        if place < bucket.total:
            return bucket, place
        place -= bucket.total
    raise DamagedError(_DAMAGED)


def _decoded(axis: Axis, lower: bytes | None) -> Key | None:
    return None if lower is None else axis.decode(lower)
