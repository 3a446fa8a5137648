"""What a plan asks of a store: each look-up is a few values, and says which rows it wants back.

A range of an axis goes from the key `lower` up to, but not including, the key `upper`; None leaves an end open. A
look-up with `across` wants only those of its rows that are also in this second range, of another axis. Only the first
column of the bounds of `across` counts.
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
    """What a store keeps about its reports does not agree with them; the text is our own and says what helps."""


class Children(Struct, frozen=True):
    """The buckets below a bucket (below 0: the coarse ones), in order, each with how many rows of the facets it holds.

    `others`, if given, are the facets to leave out, and fewer than those to count: their rows are subtracted from the
    bucket's total. Rows: (bucket, lower as bytes, total).
    """

    axis: Axis
    parent: int
    facets: Numbers
    others: Numbers = None


@disclosure.only("axis")
class Holding(Struct, frozen=True):
    """The fine bucket that holds a key, given as bytes, and the coarse bucket around it.

    One row of seven values. Of the fine bucket: lower, upper or null, total, rows before it in its coarse bucket. Of
    the coarse bucket: number, lower, rows before it. Rows of all facets count.
    """

    axis: Axis
    key: bytes


@disclosure.only("axis", "parent", "facets", "by_facet")
class Before(Struct, frozen=True):
    """How many rows of the facets are in those buckets below a bucket that begin before `upper`, a key as bytes.

    Rows: one number; if `by_facet`, (facet, how many) for each facet found.
    """

    axis: Axis
    parent: int
    upper: bytes
    facets: tuple[int, ...]
    by_facet: bool = False


@disclosure.only("axis", "facets", "skip", "across", "most")
class At(Struct, frozen=True):
    """The row that comes after `skip` others in a range, or with `across` among the rows in both ranges.

    With `most`, only the first `most` rows of the range are looked at. Rows: its key, or none.
    """

    axis: Axis
    lower: Key | None
    upper: Key | None
    facets: Numbers
    skip: int
    across: Bounds | None = None
    most: int | None = None


@disclosure.only("axis", "facets", "most", "across", "by_facet", "through")
class Count(Struct, frozen=True):
    """How many rows a range has, counted up to `most`; with `across`, how many are in both ranges.

    With `through`, the rows of `across` are read, and those of them that are in this range are counted. Rows: one
    number; if `by_facet`, which excludes `most`, (facet, how many) for each facet found.
    """

    axis: Axis
    lower: Key | None
    upper: Key | None
    facets: Numbers
    most: int | None = None
    across: Bounds | None = None
    by_facet: bool = False
    through: bool = False


Words = tuple[str, ...]
"""Words of a name, or their beginnings."""
PATIENCE: Final = 4
"""A scan gives up after this many times the rows that it is expected to look at."""


@disclosure.only("axis", "facets", "limit", "skip", "falling", "merge", "gather", "most", "across")
class Read(Struct, frozen=True):
    """Items of a range in the order of its axis. Rows: how many items, and their JSON joined by commas.

    If `falling`, the first column is read downwards, but ties still upwards. With `merge`, each facet's own index range
    is read, and the ranges are merged. With `gather`, these ranges are read in full and sorted. Otherwise the axis is
    scanned and each row tested, `most` rows at most.
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


@disclosure.only("query", "facets", "order", "limit", "skip", "collect", "counted", "most", "backwards")
class Plain(Struct, frozen=True):
    """The plain way: filter, sort, skip. Rows: how many match (null unless `counted`), how many items, their JSON.

    With `collect`, the matching rows are collected and sorted: those with a value that the query names, or those of
    `through` (words, or the query's range of an axis; with `facets`, their own ranges of it), tested for the other
    filters. Otherwise the rows are walked in the order, `most` at most.

    Taken are `limit` rows, after `skip` others or after an item. A walk `backwards` starts at the end, and `skip`
    counts from there. If few rows are counted and `most` or more are met, the count is null and no row is taken.
    `beginning` is one of the words, if all names that have it begin with it.
    """

    query: Query
    facets: Numbers
    order: Order
    limit: int
    skip: int
    after: After | None
    collect: bool
    counted: bool = False
    most: int | None = None
    backwards: bool = False
    through: Axis | Words | None = None
    beginning: str = ""


@disclosure.nothing
class Found(Struct, frozen=True):
    """How many persons have names that contain a word beginning with each of the given ones. Rows: one number."""

    words: Words


class Together(Struct, frozen=True):
    """Look-ups that do not depend on one another, asked in one round trip. Rows: for each look-up, its rows."""

    asked: tuple["Asked", ...]


LookUp = Children | Holding | Before | At | Count | Read | Whole | Plain | Found
Asked = LookUp | Together
Rows = list[tuple[Any, ...]]
T = TypeVar("T")
Asking = Generator[Asked, Rows, T]
"""A step of a plan, as a generator: what it asks, what it is sent, what it finds."""


def together(*steps: Asking[T]) -> Asking[list[T]]:
    """Run steps of a plan side by side: what they ask at the same time is one round trip. Gives what each has found."""
    found: dict[int, T] = {}
    sent: dict[int, Rows | None] = dict.fromkeys(range(len(steps)))
    while True:
        asked: dict[int, Asked] = {}
        for number, rows in sent.items():
            try:
                asked[number] = next(steps[number]) if rows is None else steps[number].send(rows)
            except StopIteration as done:
                found[number] = done.value
        if not asked:
            return [found[number] for number in range(len(steps))]
        answers = yield Together(tuple(asked.values()))
        sent = {number: list(rows) for number, rows in zip(asked, answers, strict=True)}
