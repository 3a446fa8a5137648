"""The items of a range, in the order of its axis."""

from typing import Any, Final

from laudo.core.lookups import Read
from laudo.core.sql.parts import MEMBER, Owner, Statement, Where, order, source


def read(lookup: Read, owner: Owner) -> Statement:
    where = Where(lookup.axis, owner).between(lookup.lower, lookup.upper)
    if lookup.merge:
        return _merged(lookup, where)
    if lookup.most is not None:
        return _scanned(lookup, where)
    where.having(lookup.facets)
    ordered = order(lookup.axis, falling=lookup.falling)
    text = f"SELECT item FROM {source(lookup.axis)} WHERE {where} ORDER BY {ordered} LIMIT ? OFFSET ?"
    return joined(text, (*where.params, lookup.limit, lookup.skip))


def joined(items: str, params: tuple[Any, ...]) -> Statement:
    """Give the items as one text: a row costs more than joining does."""
    return Statement(f"SELECT count(*), group_concat(item, ',') FROM ({items})", params)


def _merged(lookup: Read, where: Where) -> Statement:
    """Read the first rows of each facet's own range, and of all these the first."""
    axis, numbers = lookup.axis, lookup.facets or ()
    wanted = lookup.limit + lookup.skip
    names = ", ".join(axis.names)
    ordered = order(axis, falling=lookup.falling)
    branch = (
        f"SELECT * FROM (SELECT rowid AS id, {names} FROM {source(axis, by_facet=True)} WHERE {where} AND facet = ? "
        f"ORDER BY {ordered} LIMIT ?)"
    )
    padded = (*numbers, *(_NO_FACET,) * (_power_of_two(len(numbers)) - len(numbers)))
    branches = " UNION ALL ".join([branch] * len(padded))
    params = tuple(param for number in padded for param in (*where.params, number, wanted))
    text = (
        f"SELECT item FROM (SELECT id FROM ({branches}) ORDER BY {ordered} LIMIT ? OFFSET ?) "
        f"CROSS JOIN {axis.table} ON {axis.table}.rowid = id"
    )
    return joined(text, (*params, lookup.limit, lookup.skip))


def _scanned(lookup: Read, where: Where) -> Statement:
    """Test the facet of at most so many rows, and fetch those that have one."""
    axis = lookup.axis
    ordered = order(axis, falling=lookup.falling)
    text = (
        f"SELECT item FROM (SELECT id FROM (SELECT rowid AS id, facet FROM {source(axis)} WHERE {where} "
        f"ORDER BY {ordered} LIMIT ?) WHERE {MEMBER.format('facet')} LIMIT ? OFFSET ?) "
        f"CROSS JOIN {axis.table} ON {axis.table}.rowid = id"
    )
    facets_ = list(lookup.facets or ())
    return joined(text, (*where.params, lookup.most, facets_, lookup.limit, lookup.skip))


def _power_of_two(number: int) -> int:
    """Give the next one up, so that merges have few distinct texts to prepare."""
    return 1 << (number - 1).bit_length()


_NO_FACET: Final = 0
