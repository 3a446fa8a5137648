"""What differs between the engines in reading and writing, all of it behind a Dialect."""

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
    """A statement, or a part of one, with its parameters: `?` takes them in turn, `?N` by number.

    A list is bound as one array. The `repr` does not show what is bound.
    """

    text: str
    params: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"Statement({self.text!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("text", self.text)]


class By(NamedTuple):
    """A column or expression by which rows are ordered."""

    name: str
    falling: bool = False

    def __str__(self) -> str:
        return f"{self.name} DESC" if self.falling else self.name


Ordered = tuple[By, ...]
"""The columns by which rows are ordered, each deciding where all before it are equal."""


@cache
def listed(ordered: Ordered) -> str:
    """Write what comes after ORDER BY."""
    return ", ".join(map(str, ordered))


@cache
def is_mixed(ordered: Ordered) -> bool:
    """Tell whether an order goes down by one column and up by another, which no index does."""
    return len({each.falling for each in ordered}) > 1


@cache
def renamed(ordered: Ordered) -> tuple[str, str]:
    """Write the columns to select from rows that are sorted later, and what comes after ORDER BY then."""
    named = ", ".join(f"{each.name} AS by{number}" for number, each in enumerate(ordered))
    return named, listed(tuple(By(f"by{number}", each.falling) for number, each in enumerate(ordered)))


class Dialect(Protocol):
    """How an engine wants to be asked."""

    def __hash__(self) -> int:
        """Distinguish dialects: statements are cached by dialect."""

    @property
    def name(self) -> str:
        """What the engine is called; its migrations are in a folder of this name."""

    @property
    def keeps_words(self) -> bool:
        """Whether the words of names are in a table of their own, which the writer keeps."""

    @property
    def chooses_index(self) -> bool:
        """Whether the engine chooses the index itself; it prefers one with all columns asked for, even read in full."""

    @property
    def position(self) -> str:
        """The function that finds a text within another one, counting from 1; 0 if it is not there."""

    @property
    def most_fetched(self) -> int:
        """Up to how many rows for each one wanted are read in full; of more, keys are read, then the wanted rows."""

    @property
    def analyze(self) -> str:
        """The statement that updates the planner's statistics; empty if the engine does not plan by them."""

    def member(self, column: str) -> str:
        """Test that a column is one of the values of an array, the one parameter."""

    def among(self, column: str) -> str:
        """Test the same for each row read, where no index leads to the values of the array."""

    def unindexed(self, column: str, *, is_text: bool = False) -> str:
        """Name a column so that the engine tests it and does not choose an index that begins with it."""

    def source(self, table: str, index: str | None) -> str:
        """Name a table, to be read by this index; None allows no index but that of its ids."""

    def joined(self, items: str) -> str:
        """Select how many items a SELECT finds, and their texts joined in its order, as UTF-8: one row is cheaper."""

    def key(self, table: str) -> str:
        """Give, as `key`, the column by which `items` finds the rows of a table again."""

    def items(self, table: str, keys: Statement, owner: Owner, *, columns: str = "item") -> Statement:
        """Select the items, or other columns, of the rows whose `key` a SELECT gives, in its order."""

    def first(self, rows: str, most: int) -> str:
        """Limit rows in the order of an index, `most` at most; two parameters say how many to take, and to skip."""

    def collected(self, table: str, source: str, where: Statement, ordered: Ordered) -> Statement:
        """Select the `key` of few rows, all found and sorted; two parameters say how many to take, and to skip."""

    def firsts(
        self, axis: Axis, column: str, within: Statement, facets: Sequence[int], *, ordered: Ordered, most: int
    ) -> Statement:
        """Select a column and the axis' own of the first rows of facets' ranges: `most` at most, of each or of all."""

    def having(self, words: Sequence[str], owner: Owner) -> Statement:
        """Test that a person's name has, for each of these, a word that begins with it."""

    def found(self, words: Sequence[str], owner: Owner) -> Statement:
        """Count the persons whose name has, for each of these, a word that begins with it."""

    def written(self, write: Write) -> str:
        """The statement of a `Write`: SQLite runs it for each row, PostgreSQL once, with an array for each column."""
