"""The items of a range, in the order of its axis."""

from laudo.core.lookups import PATIENCE, Read, Whole
from laudo.core.sql.dialect import Dialect, Owner, Statement
from laudo.core.sql.parts import Where, beside, order, source
from laudo.core.sql.places import total


def whole(lookup: Whole, owner: Owner, dialect: Dialect) -> Statement:
    return beside(total(lookup.read.axis.table, owner), read(lookup.read, owner, dialect))


def read(lookup: Read, owner: Owner, dialect: Dialect) -> Statement:
    """Take items from the rows looked at; where these are many for each one wanted, take keys, and find the items."""
    table = lookup.axis.table
    where = Where(lookup.axis, owner, dialect).between(lookup.lower, lookup.upper)
    tests_many = lookup.gather or lookup.period is not None
    by_key = tests_many or _looked_at(lookup) > dialect.most_fetched * (lookup.limit + lookup.skip)
    column = dialect.key(table) if by_key else "item"
    if lookup.merge:
        found = _merged(lookup, column, where, dialect)
    elif lookup.gather:
        found = _gathered(lookup, where, dialect)
    else:
        found = _in_order(lookup, column, where, dialect)
    items = dialect.items(table, found, owner) if by_key else found
    return Statement(dialect.joined(items.text), items.params)


def _looked_at(lookup: Read) -> int:
    """Tell how many rows are likely looked at; 0 when each of them is wanted."""
    if lookup.merge:
        return len(lookup.facets or ()) * (lookup.limit + lookup.skip)
    return (lookup.most or 0) // PATIENCE


def _merged(lookup: Read, column: str, where: Where, dialect: Dialect) -> Statement:
    """Read the first rows of each facet's own range, and of all these the first."""
    ordered, most = order(lookup.axis, falling=lookup.falling), lookup.limit + lookup.skip
    firsts = dialect.firsts(lookup.axis, column, where.clause, lookup.facets or (), ordered=ordered, most=most)
    text = f"SELECT * FROM ({firsts.text}) AS firsts ORDER BY {ordered} LIMIT ? OFFSET ?"
    return Statement(text, (*firsts.params, lookup.limit, lookup.skip))


def _gathered(lookup: Read, where: Where, dialect: Dialect) -> Statement:
    """Find all rows of the facets' own ranges, sort them, and take the first."""
    where.testing(lookup.period).having(lookup.facets)
    ordered = order(lookup.axis, falling=lookup.falling).split(", ")
    keys = dialect.collected(lookup.axis.table, source(lookup.axis, dialect, by_facet=True), where.clause, ordered)
    return Statement(keys.text, (*keys.params, lookup.limit, lookup.skip))


def _in_order(lookup: Read, column: str, where: Where, dialect: Dialect) -> Statement:
    """Take the first rows of a range, or of its first `most` rows those that have a facet.

    No index has values downwards and ties upwards, and any number of rows may share the last value that is reached:
    then what stands above it is taken as it is met, and what shares it from the first of these on.
    """
    axis, page = lookup.axis, (lookup.limit, lookup.skip)
    if lookup.most is None:
        where.testing(lookup.period).having(lookup.facets, scanned=True)
    if not lookup.falling or len(axis.names) == 1:
        return _first(lookup, column, where, order(axis, falling=lookup.falling), dialect, *page)
    value, tie = axis.names
    columns, wanted = f"{column}, {value} AS value, {tie} AS tie", (sum(page), 0)
    met = _first(lookup, columns, where, f"{value} DESC", dialect, *wanted)
    where.add(f"{value} = (SELECT value FROM reached)")
    tied = _first(lookup, columns, where, tie, dialect, *wanted)
    text = (
        f"WITH met AS MATERIALIZED ({met.text}), reached AS MATERIALIZED (SELECT min(value) AS value FROM met) "
        "SELECT met.* FROM met JOIN reached ON met.value > reached.value "
        f"UNION ALL SELECT * FROM ({tied.text}) AS tied ORDER BY value DESC, tie LIMIT ? OFFSET ?"
    )
    return Statement(text, (*met.params, *tied.params, *page))


def _first(lookup: Read, columns: str, where: Where, ordered: str, dialect: Dialect, *page: int) -> Statement:
    rows = f"FROM {source(lookup.axis, dialect)} WHERE {where} ORDER BY {ordered}"
    if lookup.most is None:
        return Statement(dialect.first(f"SELECT {columns} {rows}", sum(page)), (*where.params, *page))
    tested = f"SELECT * FROM (SELECT {columns}, facet {rows} LIMIT ?) AS tested WHERE {dialect.member('facet')}"
    return Statement(dialect.first(tested, sum(page)), (*where.params, lookup.most, list(lookup.facets or ()), *page))
