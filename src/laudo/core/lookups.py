"""What a plan asks of a store: each look-up is a few values, and says what rows it wants back.

A range goes from `lower` to before `upper`, keys of the axis; None where it has no end. Those of its rows that are in
another axis' range as well are asked for by `across`, whose bounds are values of that axis' first column.
"""

from collections.abc import Generator
from typing import Any, Final, TypeVar

from msgspec import Struct

from laudo.core import disclosure
from laudo.core.axes import Axis, Bounds, Key
from laudo.core.cursor import After
from laudo.core.facets import Numbers
from laudo.core.query import Query
from laudo.core.resources import Order


class DamagedError(LookupError):
    """What a store keeps beside its reports does not fit them; the text is ours, and says what helps."""


class Children(Struct, frozen=True):
    """The buckets below a bucket (below 0: the coarse ones), in order, with what each holds of the facets.

    `others`, where given, are the facets to leave out, and fewer than those to take in. Rows: (bucket, lower as bytes,
    total).
    """

    axis: Axis
    parent: int
    facets: Numbers
    others: Numbers = None


@disclosure.only("axis")
class Holding(Struct, frozen=True):
    """The fine bucket that holds a place, which is a key as bytes.

    Rows: (its lower, its upper or null, its total, how many rows its coarse bucket has before it; that bucket's number,
    its lower, how many rows there are before it).
    """

    axis: Axis
    place: bytes


@disclosure.only("axis", "parent", "facets", "apart")
class Before(Struct, frozen=True):
    """What those buckets below a bucket hold of the facets that begin before `upper`.

    Rows: one number; if `apart`, each facet that they hold, and how many rows of it.
    """

    axis: Axis
    parent: int
    upper: bytes
    facets: tuple[int, ...]
    apart: bool = False


@disclosure.only("axis", "facets", "skip", "across", "most")
class At(Struct, frozen=True):
    """The row of a range that `skip` others precede, among the first `most` rows; with `across` of those in both.

    Rows: its key.
    """

    axis: Axis
    lower: Key | None
    upper: Key | None
    facets: Numbers
    skip: int
    across: Bounds | None = None
    most: int | None = None


@disclosure.only("axis", "facets", "most", "across", "apart", "through")
class Count(Struct, frozen=True):
    """How many rows a range has, counted up to `most`; with `across` those in both.

    Rows: one number; if `apart`, which goes without `most`, each facet that the range has, and how many rows of it.
    With `through` all rows of the range across are looked at, and those of this one counted.
    """

    axis: Axis
    lower: Key | None
    upper: Key | None
    facets: Numbers
    most: int | None = None
    across: Bounds | None = None
    apart: bool = False
    through: bool = False


Words = tuple[str, ...]
"""Words of a name, or what they begin with."""
PATIENCE: Final = 4
"""A scan gives up after so many times the rows that it likely takes."""


@disclosure.only("axis", "facets", "limit", "skip", "falling", "merge", "gather", "most", "across")
class Read(Struct, frozen=True):
    """Items of a range in the order of its axis. Rows: how many, and their JSON joined by commas.

    With `falling` the first column is read downwards, ties upwards all the same. With `merge` each facet's own index
    range is read and the ranges are merged, with `gather` they are read whole and sorted; otherwise the axis is scanned
    and each row tested, for at most `most` rows. With `across`, those in both.
    """

    axis: Axis
    lower: Key | None
    upper: Key | None
    facets: Numbers
    limit: int
    skip: int = 0
    falling: bool = False
    merge: bool = False
    gather: bool = False
    most: int | None = None
    across: Bounds | None = None


class Whole(Struct, frozen=True):
    """Items of a list without filters. Rows: how many the list has, how many items, their JSON joined by commas."""

    read: Read


@disclosure.only("query", "facets", "order", "limit", "skip", "few", "counted", "most", "backwards")
class Plain(Struct, frozen=True):
    """The plain way: filter, sort, skip. Rows: how many match (null unless `counted`), how many items, their JSON.

    `few` says that the query's filters name few rows, to be collected and sorted, or that few persons have the words
    `through`, or that the range of the axis `through`, or that of the facets on it, has few, to be tested for the
    others; otherwise the rows are walked in the order, at most `most`. Taken are `limit` rows, after `skip` others or
    after an item; walked `backwards`, before `skip` others at the end. If of few that are counted `most` or more are
    met, the count is null, and none is taken. With one of the words all names are `beginning` that have it.
    """

    query: Query
    facets: Numbers
    order: Order
    limit: int
    skip: int
    after: After | None
    few: bool
    counted: bool = False
    most: int | None = None
    backwards: bool = False
    through: Axis | Words | None = None
    beginning: str = ""


@disclosure.nothing
class Found(Struct, frozen=True):
    """How many persons have names with words that begin so. Rows: one number."""

    words: Words


class Together(Struct, frozen=True):
    """What needs nothing of one another, and is asked in one round trip. Rows: for each of them one, of its rows."""

    asked: tuple["Asked", ...]


LookUp = Children | Holding | Before | At | Count | Read | Whole | Plain | Found
Asked = LookUp | Together
Rows = list[tuple[Any, ...]]
T = TypeVar("T")
Asking = Generator[Asked, Rows, T]
"""A part of a plan: what it asks, what it is sent, what it finds."""


def together(*parts: Asking[T]) -> Asking[list[T]]:
    """Do parts of a plan in step: what they ask at the same time is asked together. Gives what each has found."""
    found: dict[int, T] = {}
    sent: dict[int, Rows | None] = dict.fromkeys(range(len(parts)))
    while True:
        asked: dict[int, Asked] = {}
        for number, rows in sent.items():
            try:
                asked[number] = next(parts[number]) if rows is None else parts[number].send(rows)
            except StopIteration as done:
                found[number] = done.value
        if not asked:
            return [found[number] for number in range(len(parts))]
        answers = yield Together(tuple(asked.values()))
        sent = {number: list(rows) for number, rows in zip(asked, answers, strict=True)}
