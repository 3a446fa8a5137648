"""The items of a range, in the order of its axis."""

from msgspec.structs import replace

from laudo.core.lookups import PATIENCE, Read, Whole
from laudo.core.sql.dialect import Dialect, Ordered, Owner, Statement, is_mixed, listed
from laudo.core.sql.parts import REACHED, Where, order, reaching, source, tested, with_first_column
from laudo.core.sql.places import total


def whole(lookup: Whole, owner: Owner, dialect: Dialect) -> Statement:
    return with_first_column(total(lookup.read.axis, owner), read(lookup.read, owner, dialect))


def read(lookup: Read, owner: Owner, dialect: Dialect) -> Statement:
    """Take items from the rows looked at; if these are many per item wanted, take keys first, then find the items."""
    table = lookup.axis.table
    where = Where(lookup.axis, owner, dialect).between(lookup.lower, lookup.upper)
    tests_many = lookup.gather or lookup.across is not None
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
    """Tell how many rows are likely looked at; 0 if each of them is wanted."""
    if lookup.merge:
        return len(lookup.facets or ()) * (lookup.limit + lookup.skip)
    return (lookup.most or 0) // PATIENCE


def _merged(lookup: Read, column: str, where: Where, dialect: Dialect) -> Statement:
    """Read the first rows of each facet's own range, and take the first of all these."""
    ordered, most = order(lookup.axis, falling=lookup.falling), lookup.limit + lookup.skip
    firsts = dialect.firsts(lookup.axis, column, where.clause, lookup.facets or (), ordered=ordered, most=most)
    text = f"SELECT * FROM ({firsts.text}) AS firsts ORDER BY {listed(ordered)} LIMIT ? OFFSET ?"
    return Statement(text, (*firsts.params, lookup.limit, lookup.skip))


def _gathered(lookup: Read, where: Where, dialect: Dialect) -> Statement:
    """Find all rows of the facets' own ranges, sort them, and take the first."""
    axis = lookup.axis
    where.testing(lookup.across).having(lookup.facets, indexed=True)
    source_ = dialect.source(axis.table, axis.facet_index or axis.gathering)
    keys = dialect.collected(axis.table, source_, where.clause, order(axis, falling=lookup.falling))
    return Statement(keys.text, (*keys.params, lookup.limit, lookup.skip))


def _in_order(lookup: Read, column: str, where: Where, dialect: Dialect) -> Statement:
    """Take the rows asked for from the beginning of a range, or from its first `most` rows."""
    ordered, page = order(lookup.axis, falling=lookup.falling), (lookup.limit, lookup.skip)
    if lookup.most is None:
        where.testing(lookup.across).having(lookup.facets, indexed=False)
    if not is_mixed(ordered):
        return _first(lookup, column, where, ordered, dialect, *page)
    columns, wanted = ", ".join((column, *lookup.axis.names)), (sum(page), 0)
    met = _first(lookup, columns, where, ordered[:1], dialect, *wanted)
    where.add(f"{ordered[0].name} {REACHED}")
    found = reaching(met, _first(lookup, columns, where, ordered[1:], dialect, *wanted), ordered)
    return Statement(f"{found.text} LIMIT ? OFFSET ?", (*found.params, *page))


def _first(lookup: Read, columns: str, where: Where, by: Ordered, dialect: Dialect, *page: int) -> Statement:
    rows = Statement(f"FROM {source(lookup.axis, dialect)} WHERE {where} ORDER BY {listed(by)}", where.params)
    found = replace(rows, text=f"SELECT {columns} {rows.text}")
    if lookup.most is not None:
        found = tested(columns, rows, lookup, dialect)
    return Statement(dialect.first(found.text, sum(page)), (*found.params, *page))
