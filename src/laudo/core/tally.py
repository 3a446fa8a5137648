"""Positions on an axis, found by walking its buckets: coarse ones, then fine ones, then at most one bucket's rows."""

from collections.abc import Generator
from typing import Final, NamedTuple

from laudo.core.axes import Axis, Key
from laudo.core.facets import Group
from laudo.core.lookups import At, Children, Count, LookUp, Rows

COARSE: Final = 0
"""The parent of the coarse buckets."""


class Bucket(NamedTuple):
    """A range of an axis, and how many of its rows have the facets asked for."""

    number: int
    lower: bytes
    upper: bytes | None
    total: int


_WHOLE: Final = Bucket(COARSE, b"", None, 0)


def locate(axis: Axis, group: Group, position: int) -> Generator[LookUp, Rows, Key]:
    """Find the key of the row before which `position` rows with a group's facets stand."""
    bucket = _WHOLE
    for _level in range(2):
        children = _buckets((yield Children(axis, bucket.number, group.numbers, group.others)), bucket)
        bucket, position = _holding(children, position)
    [key] = yield At(axis, axis.decode(bucket.lower), _decoded(axis, bucket.upper), group.numbers, position)
    return key


def rank(axis: Axis, group: Group, key: Key) -> Generator[LookUp, Rows, int]:
    """Count the rows with a group's facets that stand before a key."""
    place, before, bucket = axis.encode(key), 0, _WHOLE
    for _level in range(2):
        for each in _buckets((yield Children(axis, bucket.number, group.numbers, group.others)), bucket):
            bucket = each
            if each.upper is None or place < each.upper:
                break
            before += each.total
        if not bucket.total or place <= bucket.lower:
            return before
    [(within,)] = yield Count(axis, axis.decode(bucket.lower), key, group.numbers)
    return before + int(within)


def _buckets(rows: Rows, parent: Bucket) -> list[Bucket]:
    """Give each bucket its end: where the next one begins, or its parent ends."""
    ends = [*(lower for _, lower, _ in rows[1:]), parent.upper]
    return [Bucket(number, lower, end, total) for (number, lower, total), end in zip(rows, ends, strict=True)]


def _holding(buckets: list[Bucket], position: int) -> tuple[Bucket, int]:
    """Give the bucket that holds a position, and the position within it."""
    for bucket in buckets:
        if position < bucket.total:
            return bucket, position
        position -= bucket.total
    message = "the tally holds fewer rows than the facets; `laudo verify --repair` mends it"
    raise LookupError(message)


def _decoded(axis: Axis, lower: bytes | None) -> Key | None:
    return None if lower is None else axis.decode(lower)
