"""Where in an order: buckets, keys and counts."""

from laudo.core.axes import Axis
from laudo.core.facets import Numbers
from laudo.core.lookups import At, Children, Count, Last
from laudo.core.sql.parts import MEMBER, Owner, Statement, Where, source, tallied


def children(lookup: Children, owner: Owner) -> Statement:
    where = "id_organizacao = ? AND id_conta = ? AND axis = ? AND parent = ?"
    place = (*tallied(lookup.axis, owner), lookup.axis.number, lookup.parent)
    if lookup.facets is None:
        return Statement(f"SELECT bucket, lower, total FROM bucket WHERE {where} ORDER BY lower", place)
    counted = lookup.facets if lookup.others is None else lookup.others
    total = "coalesce(held, 0)" if lookup.others is None else "total - coalesce(held, 0)"
    held = f"SELECT bucket, sum(total) AS held FROM tally WHERE {where} AND {MEMBER.format('facet')} GROUP BY bucket"
    text = f"SELECT bucket, lower, {total} FROM bucket LEFT JOIN ({held}) USING (bucket) WHERE {where} ORDER BY lower"
    return Statement(text, (*place, list(counted), *place))


def at(lookup: At, owner: Owner) -> Statement:
    where = Where(lookup.axis, owner).between(lookup.lower, lookup.upper).having(lookup.facets)
    names = ", ".join(lookup.axis.names)
    text = f"SELECT {names} FROM {_source(lookup.axis, lookup.facets)} WHERE {where} ORDER BY {names} LIMIT 1 OFFSET ?"
    return Statement(text, (*where.params, lookup.skip))


def count(lookup: Count, owner: Owner) -> Statement:
    where = Where(lookup.axis, owner).between(lookup.lower, lookup.upper).having(lookup.facets)
    source_ = _source(lookup.axis, lookup.facets)
    if lookup.most is None:
        return Statement(f"SELECT count(*) FROM {source_} WHERE {where}", where.params)
    return Statement(
        f"SELECT count(*) FROM (SELECT 1 FROM {source_} WHERE {where} LIMIT ?)", (*where.params, lookup.most)
    )


def last(lookup: Last, owner: Owner) -> Statement:
    where = Where(lookup.axis, owner)
    return Statement(f"SELECT max({lookup.axis.names[0]}) FROM {source(lookup.axis)} WHERE {where}", where.params)


def _source(axis: Axis, numbers: Numbers) -> str:
    """Name the facets' own ranges where the axis' index does not hold the facet."""
    return source(axis, by_facet=numbers is not None and not axis.covers_facet)
