"""The items of a range, in the order of its axis."""

from laudo.core.lookups import PATIENCE, Read
from laudo.core.sql.dialect import Clause, Dialect, Owner
from laudo.core.sql.parts import Statement, Where, order, source


def read(lookup: Read, owner: Owner, dialect: Dialect) -> Statement:
    """Take items from the rows looked at; where these are many for each one wanted, take keys, and find the items."""
    table = lookup.axis.table
    where = Where(lookup.axis, owner, dialect).between(lookup.lower, lookup.upper)
    tests_many = lookup.gather or lookup.period is not None
    by_key = tests_many or _looked_at(lookup) > dialect.most_fetched * (lookup.limit + lookup.skip)
    name, column = ("key", dialect.key(table)) if by_key else ("item", "item")
    if lookup.merge:
        found = _merged(lookup, name, column, where, dialect)
    elif lookup.gather:
        found = _gathered(lookup, where, dialect)
    elif lookup.most is not None:
        found = _scanned(lookup, name, column, where, dialect)
    else:
        found = _ordered(lookup, column, where, dialect)
    items = dialect.items(table, found, owner) if by_key else found
    return Statement(dialect.joined(items.text), items.params)


def _looked_at(lookup: Read) -> int:
    """Tell how many rows are likely looked at; 0 when each of them is wanted."""
    if lookup.merge:
        return len(lookup.facets or ()) * (lookup.limit + lookup.skip)
    return (lookup.most or 0) // PATIENCE


def _merged(lookup: Read, name: str, column: str, where: Where, dialect: Dialect) -> Clause:
    """Read the first rows of each facet's own range, and of all these the first."""
    ordered, most = order(lookup.axis, falling=lookup.falling), lookup.limit + lookup.skip
    firsts = dialect.firsts(lookup.axis, column, where.clause, lookup.facets or (), ordered=ordered, most=most)
    text = f"SELECT {name} FROM ({firsts.text}) AS firsts ORDER BY {ordered} LIMIT ? OFFSET ?"
    return Clause(text, (*firsts.params, lookup.limit, lookup.skip))


def _gathered(lookup: Read, where: Where, dialect: Dialect) -> Clause:
    """Find all rows of the facets' own ranges, sort them, and take the first."""
    where.having(lookup.facets).testing(lookup.period)
    ordered = order(lookup.axis, falling=lookup.falling).split(", ")
    keys = dialect.collected(lookup.axis.table, source(lookup.axis, dialect, by_facet=True), where.clause, ordered)
    return Clause(keys.text, (*keys.params, lookup.limit, lookup.skip))


def _scanned(lookup: Read, name: str, column: str, where: Where, dialect: Dialect) -> Clause:
    """Test the facet of at most so many rows, and take those that have one."""
    ordered = order(lookup.axis, falling=lookup.falling)
    text = (
        f"SELECT {name} FROM (SELECT {column}, facet FROM {source(lookup.axis, dialect)} WHERE {where} "
        f"ORDER BY {ordered} LIMIT ?) AS tested WHERE {dialect.member('facet')} LIMIT ? OFFSET ?"
    )
    return Clause(text, (*where.params, lookup.most, list(lookup.facets or ()), lookup.limit, lookup.skip))


def _ordered(lookup: Read, column: str, where: Where, dialect: Dialect) -> Clause:
    """Take the first rows of a range."""
    where.having(lookup.facets).testing(lookup.period)
    ordered = order(lookup.axis, falling=lookup.falling)
    text = f"SELECT {column} FROM {source(lookup.axis, dialect)} WHERE {where} ORDER BY {ordered} LIMIT ? OFFSET ?"
    return Clause(text, (*where.params, lookup.limit, lookup.skip))
