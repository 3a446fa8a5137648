"""The buckets of an axis that a writer has read: coarse ones, and the fine ones of those whose rows changed."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Final

from laudo.core.tally import COARSE
from laudo.server.database import Row, StoreError

RowCounts = Counter[tuple[int, int]]
"""(index of the next bucket, facet) -> how many rows there are."""


@dataclass(slots=True, eq=False)
class Bucket:
    """A fine bucket, with its coarse one as `parent`; or a coarse one, in place of its fine ones."""

    lower: bytes = field(repr=False)
    number: int
    parent: int
    total: int

    @property
    def is_coarse(self) -> bool:
        """Whether it is a coarse one, whose fine ones have not been read."""
        return self.parent == COARSE


class Buckets:
    """Buckets in the order of their axis, which together they cover."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        """Start with buckets given as rows of the store."""
        self._buckets = _ordered(rows)
        self._lowers = [bucket.lower for bucket in self._buckets]
        self._lower_set = set(self._lowers)

    def __len__(self) -> int:
        return len(self._buckets)

    def __getitem__(self, index: int) -> Bucket:
        return self._buckets[index]

    def __iter__(self) -> Iterator[Bucket]:
        return iter(self._buckets)

    def upper(self, index: int) -> bytes | None:
        """Give the key at which the bucket at an index ends; None for the last one."""
        return self._lowers[index + 1] if index + 1 < len(self._lowers) else None

    def index(self, bucket: Bucket) -> int:
        return bisect_left(self._lowers, bucket.lower)

    def insert(self, index: int, bucket: Bucket) -> None:
        self._buckets.insert(index, bucket)
        self._lowers.insert(index, bucket.lower)
        self._lower_set.add(bucket.lower)

    def drop(self, index: int) -> None:
        self._lower_set.discard(self._lowers[index])
        del self._buckets[index], self._lowers[index]

    def set_lower(self, index: int, lower: bytes) -> None:
        """Make the bucket at an index begin at another key, still between those of its neighbours."""
        self._lower_set.discard(self._lowers[index])
        self._lower_set.add(lower)
        self._buckets[index].lower = self._lowers[index] = lower

    def starting_at(self, keys: Iterable[bytes]) -> set[Bucket]:
        """Give the buckets that begin at some keys."""
        return {self._buckets[bisect_left(self._lowers, key)] for key in self._lower_set.intersection(keys)}

    def counted(self, keys: Iterable[bytes], facets: Iterable[int]) -> RowCounts:
        """Count rows, given by their keys and facets, by bucket and facet."""
        return Counter(zip(map(partial(bisect_right, self._lowers), keys), facets, strict=False))

    def coarse(self, counted: RowCounts) -> set[Bucket]:
        """Give the coarse buckets that counted rows are in."""
        return {bucket for next_index, _ in counted if (bucket := self._buckets[next_index - 1]).is_coarse}

    def expand(self, coarse: Iterable[Bucket], rows: Iterable[Row]) -> None:
        """Replace coarse buckets by the fine ones below them, given as rows of the store."""
        found: dict[int, list[Bucket]] = {bucket.number: [] for bucket in coarse}
        for bucket in _ordered(rows):
            found[bucket.parent].append(bucket)
        if not all(found.values()):
            raise StoreError("the tally lacks buckets; `laudo verify --repair` repairs it")
        for bucket in coarse:
            index, children = self.index(bucket), found[bucket.number]
            self._buckets[index : index + 1] = children
            self._lowers[index : index + 1] = [child.lower for child in children]
            self._lower_set.update(child.lower for child in children)


def _ordered(rows: Iterable[Row]) -> list[Bucket]:
    return sorted((Bucket(lower, number, parent, total) for parent, number, lower, total in rows), key=_LOWER)


_LOWER: Final = attrgetter("lower")
