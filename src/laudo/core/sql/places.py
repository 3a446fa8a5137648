"""Where in an order: buckets, keys and counts."""

from typing import Final

from laudo.core.axes import Axis
from laudo.core.facets import Numbers
from laudo.core.lookups import At, Before, Children, Count, Holding, Last
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


def holding(lookup: Holding, owner: Owner) -> Statement:
    axis, place = (*tallied(lookup.axis, owner), lookup.axis.number), lookup.place
    return Statement(_HOLDING, (*(*axis, place) * 4, *axis))


def before(lookup: Before, owner: Owner) -> Statement:
    """Read the span of the buckets' numbers: these mostly rise or fall along an axis, and few in it are others'."""
    parent = (*tallied(lookup.axis, owner), lookup.axis.number, lookup.parent)
    return Statement(_BEFORE, (*parent, lookup.upper, *parent, list(lookup.facets), *parent, lookup.upper))


def at(lookup: At, owner: Owner) -> Statement:
    where = Where(lookup.axis, owner).between(lookup.lower, lookup.upper).having(lookup.facets)
    names = ", ".join(lookup.axis.names)
    text = f"SELECT {names} FROM {_source(lookup.axis, lookup.facets)} WHERE {where} ORDER BY {names} LIMIT 1 OFFSET ?"
    return Statement(text, (*where.params, lookup.skip))


def count(lookup: Count, owner: Owner) -> Statement:
    axis, facets = lookup.axis, lookup.facets
    where = Where(axis, owner).between(lookup.lower, lookup.upper).having(facets)
    if lookup.most is not None:
        limited = f"SELECT 1 FROM {_source(axis, facets)} WHERE {where} LIMIT ?"
        return Statement(f"SELECT count(*) FROM ({limited})", (*where.params, lookup.most))
    few = axis.facet_index is not None and facets is not None and len(facets) <= _FEW
    source_ = source(axis, by_facet=True) if few else _source(axis, facets)
    return Statement(f"SELECT count(*) FROM {source_} WHERE {where}", where.params)


def last(lookup: Last, owner: Owner) -> Statement:
    where = Where(lookup.axis, owner)
    return Statement(f"SELECT max({lookup.axis.names[0]}) FROM {source(lookup.axis)} WHERE {where}", where.params)


def _source(axis: Axis, numbers: Numbers) -> str:
    """Name the facets' own ranges where the axis' index does not hold the facet."""
    return source(axis, by_facet=numbers is not None and not axis.covers_facet)


_FEW: Final = 128
"""Up to so many facets' own ranges are counted sooner than a bucket's rows, each of whose facet must be tested."""
_AXIS: Final = "id_organizacao = ? AND id_conta = ? AND axis = ?"
_BELOW: Final = f"{_AXIS} AND parent = ?"
_HOLDING: Final = f"""
WITH coarse AS (
    SELECT bucket, lower FROM bucket WHERE {_AXIS} AND parent = 0 AND lower <= ? ORDER BY lower DESC LIMIT 1
), fine AS (
    SELECT parent, lower, total FROM bucket WHERE {_AXIS} AND parent = (SELECT bucket FROM coarse) AND lower <= ?
    ORDER BY lower DESC LIMIT 1
)
SELECT fine.lower,
    coalesce(
        (SELECT lower FROM bucket WHERE {_AXIS} AND parent = fine.parent AND lower > ? ORDER BY lower LIMIT 1),
        (SELECT lower FROM bucket WHERE {_AXIS} AND parent = 0 AND lower > ? ORDER BY lower LIMIT 1)
    ),
    fine.total,
    (SELECT CAST(coalesce(sum(total), 0) AS BIGINT) FROM bucket
        WHERE {_AXIS} AND parent IN (0, fine.parent) AND lower < fine.lower AND bucket <> fine.parent),
    coarse.bucket, coarse.lower
FROM coarse CROSS JOIN fine
"""
_BEFORE: Final = f"""
WITH span AS (SELECT min(bucket) AS low, max(bucket) AS high FROM bucket WHERE {_BELOW} AND lower < ?)
SELECT CAST(coalesce(sum(total), 0) AS BIGINT) FROM tally WHERE {_BELOW} AND {MEMBER.format("facet")}
    AND bucket BETWEEN (SELECT low FROM span) AND (SELECT high FROM span)
    AND bucket NOT IN (
        SELECT bucket FROM bucket WHERE {_BELOW} AND lower >= ?
            AND bucket BETWEEN (SELECT low FROM span) AND (SELECT high FROM span)
    )
"""
