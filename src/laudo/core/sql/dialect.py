"""What differs between the engines in asking and writing: all of it is asked of a Dialect."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from laudo.core.axes import Axis
from laudo.core.sql.writes import Write


class Owner(NamedTuple):
    """Whose rows a statement may see: an account of an organization."""

    id_organizacao: int
    id_conta: int


class Statement(Struct, frozen=True):
    """A text, or a part of one, with placeholders, `?` in turn or `?N` by number, and its parameters.

    A list is bound as one array. Its `repr` does not show what is bound.
    """

    text: str
    params: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"Statement({self.text!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("text", self.text)]


class By(NamedTuple):
    """A column, or an expression, by which rows are ordered."""

    name: str
    falling: bool = False

    def __str__(self) -> str:
        return f"{self.name} DESC" if self.falling else self.name


Ordered = tuple[By, ...]
"""The columns by which rows are ordered, each where the ones before it are the same."""


@cache
def listed(ordered: Ordered) -> str:
    """Write what stands behind ORDER BY."""
    return ", ".join(map(str, ordered))


@cache
def is_mixed(ordered: Ordered) -> bool:
    """Tell whether an order goes down by one column and up by another, as no index does."""
    return len({each.falling for each in ordered}) > 1


@cache
def renamed(ordered: Ordered) -> tuple[str, str]:
    """Write what to select of rows that are ordered later on, and what then stands behind ORDER BY."""
    named = ", ".join(f"{each.name} AS by{number}" for number, each in enumerate(ordered))
    return named, listed(tuple(By(f"by{number}", each.falling) for number, each in enumerate(ordered)))


class Dialect(Protocol):
    """How an engine wants to be asked."""

    def __hash__(self) -> int:
        """Tell it from another one: what is written in a dialect may be remembered."""

    @property
    def name(self) -> str:
        """What the engine is called, in URLs, migrations and tests."""

    @property
    def keeps_words(self) -> bool:
        """Tell whether the words of names are in a table of their own, which the writer keeps."""

    @property
    def chooses(self) -> bool:
        """Tell whether the engine reads whichever index it likes: one that has all columns asked for, even if whole."""

    @property
    def position(self) -> str:
        """The function that finds a text within another one, counting from 1; 0 when it is not there."""

    @property
    def most_fetched(self) -> int:
        """For each row wanted, how many are sooner looked at whole than by index, those wanted to be found by key."""

    @property
    def analyze(self) -> str:
        """The statement that has the engine look at how much its tables hold; empty where none plans by that."""

    def member(self, column: str) -> str:
        """Ask that a column be one of those in an array, the one parameter."""

    def among(self, column: str) -> str:
        """Ask the same of each row that is met, where no index leads to those of the array."""

    def unsought(self, column: str, *, is_text: bool = False) -> str:
        """Name a column so that the engine tests it, rather than reads an index that begins with it."""

    def source(self, table: str, index: str | None) -> str:
        """Name a table, to be read by this index; None stands for none of its indexes, but for that of its ids."""

    def joined(self, items: str) -> str:
        """Give how many items a SELECT finds, and their texts in its order as one, UTF-8: a row would cost more."""

    def key(self, table: str) -> str:
        """Give the column by which `items` finds the rows of a table again, as `key`."""

    def items(self, table: str, keys: Statement, owner: Owner, *, columns: str = "item") -> Statement:
        """Select the items, or other columns, of the rows whose `key` a SELECT gives, in its order."""

    def first(self, rows: str, most: int) -> str:
        """Take from rows in the order of an index, `most` at most, as many as two numbers say, after as many others."""

    def collected(self, table: str, source: str, where: Statement, ordered: Ordered) -> Statement:
        """Select the `key` of few rows: find all of them, sort, then pass over and take as many as two numbers say."""

    def firsts(
        self, axis: Axis, column: str, within: Statement, facets: Sequence[int], *, ordered: Ordered, most: int
    ) -> Statement:
        """Select a column and the axis' of the first rows of facets' own ranges: at most so many of each, or of all."""

    def having(self, words: Sequence[str], owner: Owner) -> Statement:
        """Ask that a person's name have words that begin so."""

    def found(self, words: Sequence[str], owner: Owner) -> Statement:
        """Count the persons whose names have words that begin so."""

    def written(self, write: Write) -> str:
        """Say how rows are written: SQLite runs it for each row, PostgreSQL once, with the columns of all as arrays."""
