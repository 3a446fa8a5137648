"""Where in an order: buckets, keys and counts."""

from laudo.core.axes import Axis
from laudo.core.facets import Numbers
from laudo.core.lookups import At, Children, Count, Last
from laudo.core.sql.dialect import Dialect, Owner
from laudo.core.sql.parts import Statement, Where, source, tallied


def children(lookup: Children, owner: Owner, dialect: Dialect) -> Statement:
    where = "id_organizacao = ? AND id_conta = ? AND axis = ? AND parent = ?"
    place = (*tallied(lookup.axis, owner), lookup.axis.number, lookup.parent)
    if lookup.facets is None:
        return Statement(f"SELECT bucket, lower, total FROM bucket WHERE {where} ORDER BY lower", place)
    counted = lookup.facets if lookup.others is None else lookup.others
    total = "coalesce(held, 0)" if lookup.others is None else "total - coalesce(held, 0)"
    held = (
        f"SELECT bucket, CAST(sum(total) AS bigint) AS held FROM tally "
        f"WHERE {where} AND {dialect.member('facet')} GROUP BY bucket"
    )
    text = (
        f"SELECT bucket, lower, {total} FROM bucket LEFT JOIN ({held}) AS counted USING (bucket) "
        f"WHERE {where} ORDER BY lower"
    )
    return Statement(text, (*place, list(counted), *place))


def at(lookup: At, owner: Owner, dialect: Dialect) -> Statement:
    where = Where(lookup.axis, owner, dialect).between(lookup.lower, lookup.upper).having(lookup.facets)
    names = ", ".join(lookup.axis.names)
    source_ = _source(lookup.axis, lookup.facets, dialect)
    text = f"SELECT {names} FROM {source_} WHERE {where} ORDER BY {names} LIMIT 1 OFFSET ?"
    return Statement(text, (*where.params, lookup.skip))


def count(lookup: Count, owner: Owner, dialect: Dialect) -> Statement:
    where = Where(lookup.axis, owner, dialect).between(lookup.lower, lookup.upper).having(lookup.facets)
    source_ = _source(lookup.axis, lookup.facets, dialect)
    if lookup.most is None:
        return Statement(f"SELECT count(*) FROM {source_} WHERE {where}", where.params)
    return Statement(
        f"SELECT count(*) FROM (SELECT 1 FROM {source_} WHERE {where} LIMIT ?) AS found", (*where.params, lookup.most)
    )


def last(lookup: Last, owner: Owner, dialect: Dialect) -> Statement:
    where = Where(lookup.axis, owner, dialect)
    source_ = source(lookup.axis, dialect)
    return Statement(f"SELECT max({lookup.axis.names[0]}) FROM {source_} WHERE {where}", where.params)


def _source(axis: Axis, numbers: Numbers, dialect: Dialect) -> str:
    """Name the facets' own ranges where the axis' index does not hold the facet."""
    return source(axis, dialect, by_facet=numbers is not None and not axis.covers_facet)
