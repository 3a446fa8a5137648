"""Positions on an axis, found by its buckets: the coarse one, then the fine one, then at most one bucket's rows."""

from collections.abc import Generator
from typing import Final, NamedTuple

from laudo.core.axes import Axis, Key
from laudo.core.facets import Group
from laudo.core.lookups import At, Before, Children, Count, Holding, LookUp, Rows

COARSE: Final = 0
"""The parent of the coarse buckets."""


class Bucket(NamedTuple):
    """A range of an axis, and how many of its rows have the facets asked for."""

    number: int
    lower: bytes
    upper: bytes | None
    total: int


class Holder(NamedTuple):
    """The fine bucket that holds a key, and the coarse one that has it; `total` and `before` are of all facets."""

    lower: bytes
    upper: bytes | None
    total: int
    before: int
    coarse: int
    coarse_lower: bytes


class Span(NamedTuple):
    """How many rows stand between two keys, and how many before; None when one fine bucket holds both keys."""

    first: int | None
    total: int


_WHOLE: Final = Bucket(COARSE, b"", None, 0)
_DAMAGED: Final = "the tally holds fewer rows than the facets; `laudo verify --repair` mends it"


def locate(axis: Axis, group: Group, position: int) -> Generator[LookUp, Rows, Key]:
    """Find the key of the row before which `position` rows with a group's facets stand."""
    bucket = _WHOLE
    for _level in range(2):
        children = _buckets((yield Children(axis, bucket.number, group.numbers, group.others)), bucket)
        bucket, position = _at(children, position)
    [key] = yield At(axis, axis.decode(bucket.lower), _decoded(axis, bucket.upper), group.numbers, position)
    return key


def span(axis: Axis, group: Group, lower: Key | None, upper: Key | None) -> Generator[LookUp, Rows, Span]:
    """Count the rows with a group's facets from one key to before another, None where there is no end."""
    if lower is None or upper is None:
        first = (yield from rank(axis, group, lower)) if lower else 0
        end = (yield from rank(axis, group, upper)) if upper else group.total
        return Span(first, end - first)
    holder = yield from _holder(axis, lower)
    if holder.upper is None or axis.encode(upper) <= holder.upper:
        return Span(None, (yield from _counted(axis, group, lower, upper)))
    first = yield from _rank(axis, group, lower, holder)
    return Span(first, (yield from rank(axis, group, upper)) - first)


def rank(axis: Axis, group: Group, key: Key) -> Generator[LookUp, Rows, int]:
    """Count the rows with a group's facets that stand before a key."""
    return (yield from _rank(axis, group, key, (yield from _holder(axis, key))))


def _rank(axis: Axis, group: Group, key: Key, holder: Holder) -> Generator[LookUp, Rows, int]:
    """Sum up to the beginning of a key's bucket and count on to the key, or from its end back if that seems nearer.

    Where rows lie evenly it is nearer; to guess wrong costs time alone.
    """
    place = axis.encode(key)
    if holder.upper is not None and _late(place, holder.lower, holder.upper):
        end = yield from _before(axis, group, holder, holder.upper)
        return end - (yield from _counted(axis, group, key, axis.decode(holder.upper)))
    before = yield from _before(axis, group, holder, holder.lower)
    if place == holder.lower:
        return before
    return before + (yield from _counted(axis, group, axis.decode(holder.lower), key))


def _before(axis: Axis, group: Group, holder: Holder, end: bytes) -> Generator[LookUp, Rows, int]:
    """Sum what whole buckets hold up to one end of a fine one."""
    total = holder.before if end == holder.lower else holder.before + holder.total
    facets = group.numbers if group.others is None else group.others
    if facets is None:
        return total
    held = 0
    if holder.coarse_lower:
        [(coarse,)] = yield Before(axis, COARSE, holder.coarse_lower, facets)
        held += coarse
    if end != holder.coarse_lower:
        [(fine,)] = yield Before(axis, holder.coarse, end, facets)
        held += fine
    return held if group.others is None else total - held


def _holder(axis: Axis, key: Key) -> Generator[LookUp, Rows, Holder]:
    """Find the fine bucket that holds a key."""
    rows = yield Holding(axis, axis.encode(key))
    if not rows:
        raise LookupError(_DAMAGED)
    return Holder(*rows[0])


def _counted(axis: Axis, group: Group, lower: Key | None, upper: Key | None) -> Generator[LookUp, Rows, int]:
    [(count,)] = yield Count(axis, lower, upper, group.numbers)
    return int(count)


def _late(place: bytes, lower: bytes, upper: bytes) -> bool:
    """Tell whether a place lies in the second half of a range; empty bytes, below every key, are no measure."""
    width = max(map(len, (place, lower, upper)))
    begin, here, end = (int.from_bytes(each.ljust(width, b"\0")) for each in (lower, place, upper))
    return bool(lower) and here - begin > end - here


def _buckets(rows: Rows, parent: Bucket) -> list[Bucket]:
    """Give each bucket its end: where the next one begins, or its parent ends."""
    ends = [*(lower for _, lower, _ in rows[1:]), parent.upper]
    return [Bucket(number, lower, end, total) for (number, lower, total), end in zip(rows, ends, strict=True)]


def _at(buckets: list[Bucket], position: int) -> tuple[Bucket, int]:
    """Give the bucket that holds a position, and the position within it."""
    for bucket in buckets:
        if position < bucket.total:
            return bucket, position
        position -= bucket.total
    raise LookupError(_DAMAGED)


def _decoded(axis: Axis, lower: bytes | None) -> Key | None:
    return None if lower is None else axis.decode(lower)
