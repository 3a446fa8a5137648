"""The items of a range, in the order of its axis."""

from laudo.core.lookups import PATIENCE, Read
from laudo.core.sql.dialect import Clause, Dialect, Owner
from laudo.core.sql.parts import Statement, Where, order, source


def read(lookup: Read, owner: Owner, dialect: Dialect) -> Statement:
    """Look through rows, whole or by their index alone: of those wanted only the key is then found, and so the item."""
    axis = lookup.axis
    where = Where(axis, owner, dialect).between(lookup.lower, lookup.upper)
    if lookup.merge:
        name = "key" if len(lookup.facets or ()) > dialect.most_fetched else "item"
        found = _merged(lookup, name, where, dialect)
    elif lookup.most is not None:
        name = "key" if lookup.most > PATIENCE * dialect.most_fetched * (lookup.limit + lookup.skip) else "item"
        found = _scanned(lookup, name, where, dialect)
    else:
        name = "item"
        found = _ordered(lookup, where, dialect)
    items = dialect.items(axis.table, found, owner) if name == "key" else found
    return Statement(dialect.joined(items.text), items.params)


def _ordered(lookup: Read, where: Where, dialect: Dialect) -> Clause:
    """Take the first rows of a range."""
    where.having(lookup.facets)
    ordered = order(lookup.axis, falling=lookup.falling)
    text = f"SELECT item FROM {source(lookup.axis, dialect)} WHERE {where} ORDER BY {ordered} LIMIT ? OFFSET ?"
    return Clause(text, (*where.params, lookup.limit, lookup.skip))


def _merged(lookup: Read, name: str, where: Where, dialect: Dialect) -> Clause:
    """Read the first rows of each facet's own range, and of all these the first."""
    axis = lookup.axis
    ordered = order(axis, falling=lookup.falling)
    column = dialect.key(axis.table) if name == "key" else name
    most = lookup.limit + lookup.skip
    firsts = dialect.firsts(axis, column, where.clause, lookup.facets or (), ordered=ordered, most=most)
    text = f"SELECT {name} FROM ({firsts.text}) AS firsts ORDER BY {ordered} LIMIT ? OFFSET ?"
    return Clause(text, (*firsts.params, lookup.limit, lookup.skip))


def _scanned(lookup: Read, name: str, where: Where, dialect: Dialect) -> Clause:
    """Test the facet of at most so many rows, and take those that have one."""
    axis = lookup.axis
    ordered = order(axis, falling=lookup.falling)
    column = dialect.key(axis.table) if name == "key" else name
    text = (
        f"SELECT {name} FROM (SELECT {column}, facet FROM {source(axis, dialect)} WHERE {where} "
        f"ORDER BY {ordered} LIMIT ?) AS tested WHERE {dialect.member('facet')} LIMIT ? OFFSET ?"
    )
    return Clause(text, (*where.params, lookup.most, list(lookup.facets or ()), lookup.limit, lookup.skip))
