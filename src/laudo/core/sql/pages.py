"""The items of a range, in the order of its axis."""

from laudo.core.lookups import Read
from laudo.core.sql.dialect import Clause, Dialect, Owner
from laudo.core.sql.parts import Statement, Where, order, source


def read(lookup: Read, owner: Owner, dialect: Dialect) -> Statement:
    where = Where(lookup.axis, owner, dialect).between(lookup.lower, lookup.upper)
    if lookup.merge:
        items = _merged(lookup, where, owner, dialect)
    elif lookup.most is not None:
        items = _scanned(lookup, where, owner, dialect)
    else:
        where.having(lookup.facets)
        ordered = order(lookup.axis, falling=lookup.falling)
        text = f"SELECT item FROM {source(lookup.axis, dialect)} WHERE {where} ORDER BY {ordered} LIMIT ? OFFSET ?"
        items = Clause(text, (*where.params, lookup.limit, lookup.skip))
    return Statement(dialect.joined(items.text), items.params)


def _merged(lookup: Read, where: Where, owner: Owner, dialect: Dialect) -> Clause:
    """Read the first rows of each facet's own range, and of all these the first."""
    axis = lookup.axis
    ordered = order(axis, falling=lookup.falling)
    firsts = dialect.firsts(axis, where.clause, lookup.facets or (), ordered, lookup.limit + lookup.skip)
    keys = f"SELECT key FROM ({firsts.text}) AS firsts ORDER BY {ordered} LIMIT ? OFFSET ?"
    return dialect.items(axis.table, Clause(keys, (*firsts.params, lookup.limit, lookup.skip)), owner)


def _scanned(lookup: Read, where: Where, owner: Owner, dialect: Dialect) -> Clause:
    """Test the facet of at most so many rows, and fetch those that have one: while they are tested, or afterwards."""
    axis, most = lookup.axis, lookup.most or 0
    at_once = most <= dialect.most_fetched * (lookup.limit + lookup.skip)
    wanted, name = ("item", "item") if at_once else (dialect.key(axis.table), "key")
    text = (
        f"SELECT {name} FROM (SELECT {wanted}, facet FROM {source(axis, dialect)} WHERE {where} "
        f"ORDER BY {order(axis, falling=lookup.falling)} LIMIT ?) AS tested WHERE {dialect.member('facet')} "
        "LIMIT ? OFFSET ?"
    )
    params = (*where.params, most, list(lookup.facets or ()), lookup.limit, lookup.skip)
    return Clause(text, params) if at_once else dialect.items(axis.table, Clause(text, params), owner)
