"""The parts that statements are made of: the owner's clause first, then ranges, facets, orders and sources."""

from functools import cache
from typing import Any, Final

from laudo.core.axes import Axis, Bounds, Key
from laudo.core.facets import Numbers
from laudo.core.lookups import At, Read
from laudo.core.sql.dialect import By, Dialect, Ordered, Owner, Statement, listed

ON_AXIS: Final = "id_organizacao = ? AND id_conta = ? AND axis = ?"
"""Tests for the buckets or tallies of one axis of one owner; `axis_params` gives its parameters."""


REACHED: Final = "= (SELECT value FROM reached)"
"""Tests for the value of the last row met; see `reaching`."""


class Clauses:
    """Clauses, all of which must hold, and their parameters."""

    __slots__ = ("_clauses", "_params")

    def __init__(self) -> None:
        self._clauses: list[str] = []
        self._params: list[Any] = []

    def __str__(self) -> str:
        return " AND ".join(self._clauses) or "1 = 1"

    @property
    def params(self) -> tuple[Any, ...]:
        return tuple(self._params)

    @property
    def clause(self) -> Statement:
        return Statement(str(self), self.params)

    def add(self, clause: str, *params: Any) -> None:  # noqa: ANN401 - values of columns
        self._clauses.append(clause)
        self._params.extend(params)

    def also(self, clause: Statement) -> None:
        self.add(clause.text, *clause.params)

    def values(self, column: str, lower: object, upper: object) -> None:
        """Test for a range of a column's values; None leaves an end open."""
        if lower is not None:
            self.add(f"{column} >= ?", lower)
        if upper is not None:
            self.add(f"{column} < ?", upper)

    def range(self, axis: Axis, lower: Key | None, upper: Key | None) -> None:
        """Test for a range of an axis.

        PostgreSQL ends a range of pairs only where the first column passes its bound, so pairs with one value get a
        test for each column. A bound that is the beginning of a value needs a test of the first column only.
        """
        if upper is not None and len(upper) > 1:
            first, tie = axis.names
            if lower is not None and lower[0] == upper[0]:
                self.add(f"{first} = ? AND {tie} >= ? AND {tie} < ?", *lower, upper[1])
                return
            if upper == axis.floor(upper[0]):
                self.add(f"{first} < ?", upper[0])
                upper = None
        if lower is not None and len(lower) > 1 and lower == axis.floor(lower[0]):
            self.add(f"{axis.names[0]} >= ?", lower[0])
        elif lower is not None:
            self.add(compared(axis, ">="), *lower)
        if upper is not None:
            self.add(compared(axis, "<"), *upper)


class Where(Clauses):
    """Clauses, the owner's first."""

    __slots__ = ("_axis", "_dialect")

    def __init__(self, axis: Axis, owner: Owner, dialect: Dialect) -> None:
        super().__init__()
        self._axis = axis
        self._dialect = dialect
        self.add("id_organizacao = ?", owner.id_organizacao)
        if axis.faceted:
            self.add("id_conta = ?", owner.id_conta)

    def between(self, lower: Key | None, upper: Key | None) -> "Where":
        """Test for a range of the axis."""
        self.range(self._axis, lower, upper)
        return self

    def having(self, numbers: Numbers, *, indexed: bool = True) -> "Where":
        """Test for facets, in each row if they are not `indexed`: no index that begins with the facet has the order."""
        if numbers is not None:
            test = self._dialect.member("facet") if indexed else self._dialect.among(self._dialect.unindexed("facet"))
            self.add(test, list(numbers))
        return self

    def testing(self, across: Bounds | None) -> "Where":
        """Test that the rows of this range are also in a range of another axis.

        It comes before a test of their facets, which takes SQLite twice as long.
        """
        if across is not None:
            column = across.axis.columns[0]
            self.values(self._dialect.unindexed(column.name, is_text=column.width is None), *ends(across))
        return self


def with_first_column(value: Statement, asked: Statement) -> Statement:
    """Add one value to a statement, as the first column of each row."""
    return Statement(f"SELECT ({value.text}), * FROM ({asked.text}) AS asked", (*value.params, *asked.params))


@cache
def compared(axis: Axis, operator: str) -> str:
    placeholders = ", ".join("?" * len(axis.names))
    return f"({', '.join(axis.names)}) {operator} ({placeholders})"


@cache
def order(axis: Axis, *, falling: bool) -> Ordered:
    first, *ties = axis.names
    return (By(first, falling), *map(By, ties))


def reaching(met: Statement, tied: Statement, ordered: Ordered) -> Statement:
    """Take the first rows of a mixed order, which no index has: any number of them may share one value.

    Rows before the last value that `met` reaches are taken as they are met. `tied` gives the rows with that value
    (REACHED), from the first one on.
    """
    value, falling = ordered[0]
    last, before = ("min", ">") if falling else ("max", "<")
    text = (
        f"WITH met AS MATERIALIZED ({met.text}), reached AS MATERIALIZED (SELECT {last}({value}) AS value FROM met) "
        f"SELECT met.* FROM met JOIN reached ON met.{value} {before} reached.value "
        f"UNION ALL SELECT * FROM ({tied.text}) AS tied ORDER BY {listed(ordered)}"
    )
    return Statement(text, (*met.params, *tied.params))


def tested(columns: str, rows: Statement, lookup: At | Read, dialect: Dialect) -> Statement:
    """Take, from the first `most` rows of a range, those in the range `across` and with the facets, where given.

    `rows` begins with FROM.
    """
    tests = Clauses()
    if lookup.across is not None:
        name = lookup.across.axis.names[0]
        tests.values(name, *ends(lookup.across))
        columns += "" if name in columns.split(", ") else f", {name}"
    if lookup.facets is not None:
        tests.add(dialect.among("facet"), list(lookup.facets))
        columns += ", facet"
    text = f"SELECT * FROM (SELECT {columns} {rows.text} LIMIT ?) AS tested WHERE {tests}"
    return Statement(text, (*rows.params, lookup.most, *tests.params))


def ends(bounds: Bounds) -> tuple[Any, Any]:
    """Give the bounds of a range as values of its first column, for a range that has no others."""
    return bounds.lower and bounds.lower[0], bounds.upper and bounds.upper[0]


def source(axis: Axis, dialect: Dialect, *, by_facet: bool = False) -> str:
    return dialect.source(axis.table, axis.facet_index if by_facet else axis.index)


def axis_params(axis: Axis, owner: Owner) -> tuple[int, int, int]:
    """Give the parameters of ON_AXIS: the persons' buckets are kept under account 0."""
    return owner.id_organizacao, owner.id_conta if axis.faceted else 0, axis.number
