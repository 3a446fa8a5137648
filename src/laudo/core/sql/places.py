"""Buckets, keys and counts: where rows are in an order."""

from typing import Final

from laudo.core.axes import Axis, Bounds
from laudo.core.facets import Numbers
from laudo.core.lookups import At, Before, Children, Count, Holding
from laudo.core.sql.dialect import Dialect, Owner, Statement
from laudo.core.sql.parts import ON_AXIS, Clauses, Where, axis_params, ends, source, tested


def total(axis: Axis, owner: Owner) -> Statement:
    """Ask how many rows a list has in all, which is stored with its version."""
    return Statement(_REPORTS, owner) if axis.faceted else Statement(_PERSONS, (owner.id_organizacao,))


def children(lookup: Children, owner: Owner, dialect: Dialect) -> Statement:
    place = (*axis_params(lookup.axis, owner), lookup.parent)
    if lookup.facets is None:
        return Statement(f"SELECT bucket, lower, total FROM bucket WHERE {_CHILDREN} ORDER BY lower", place)
    counted = lookup.facets if lookup.others is None else lookup.others
    total = "coalesce(held, 0)" if lookup.others is None else "total - coalesce(held, 0)"
    held = (
        f"SELECT bucket, CAST(sum(total) AS bigint) AS held FROM tally "
        f"WHERE {_CHILDREN} AND {dialect.member('facet')} GROUP BY bucket"
    )
    text = (
        f"SELECT bucket, lower, {total} FROM bucket LEFT JOIN ({held}) AS counted USING (bucket) "
        f"WHERE {_CHILDREN} ORDER BY lower"
    )
    return Statement(text, (*place, list(counted), *place))


def holding(lookup: Holding, owner: Owner, _dialect: Dialect) -> Statement:
    axis = axis_params(lookup.axis, owner)
    return Statement(_HOLDING, (*(*axis, lookup.key) * 4, *axis, *axis))


def before(lookup: Before, owner: Owner, dialect: Dialect) -> Statement:
    """Count in the span of the buckets' numbers.

    Along an axis these mostly rise or fall, so few other buckets are in the span.
    """
    place = (*axis_params(lookup.axis, owner), lookup.parent)
    span = f"SELECT min(bucket) AS low, max(bucket) AS high FROM bucket WHERE {_CHILDREN} AND lower < ?"
    within = "bucket BETWEEN (SELECT low FROM span) AND (SELECT high FROM span)"
    others = f"SELECT bucket FROM bucket WHERE {_CHILDREN} AND {within} AND lower >= ?"
    held = "facet, CAST(sum(total) AS bigint)" if lookup.by_facet else "CAST(coalesce(sum(total), 0) AS bigint)"
    text = (
        f"WITH span AS ({span}) SELECT {held} FROM tally "
        f"WHERE {_CHILDREN} AND {dialect.member('facet')} AND {within} AND bucket NOT IN ({others})"
        f"{_GROUP_BY_FACET if lookup.by_facet else ''}"
    )
    return Statement(text, (*place, lookup.upper, *place, list(lookup.facets), *place, lookup.upper))


def at(lookup: At, owner: Owner, dialect: Dialect) -> Statement:
    where = Where(lookup.axis, owner, dialect).between(lookup.lower, lookup.upper)
    names = ", ".join(lookup.axis.names)
    source_ = _source(lookup.axis, lookup.facets, dialect)
    if lookup.most is not None:
        rows = Statement(f"FROM {source_} WHERE {where} ORDER BY {names}", where.params)
        found = tested(names, rows, lookup, dialect)
        return Statement(f"SELECT {names} FROM ({found.text}) AS found LIMIT 1 OFFSET ?", (*found.params, lookup.skip))
    where.testing(lookup.across).having(lookup.facets, indexed=lookup.axis.facet_index is not None)
    text = f"SELECT {names} FROM {source_} WHERE {where} ORDER BY {names} LIMIT 1 OFFSET ?"
    return Statement(text, (*where.params, lookup.skip))


def count(lookup: Count, owner: Owner, dialect: Dialect) -> Statement:
    axis, facets = lookup.axis, lookup.facets
    if lookup.through and lookup.across is not None:
        return _through(lookup, lookup.across, owner, dialect)
    where = Where(axis, owner, dialect).between(lookup.lower, lookup.upper)
    where.testing(lookup.across).having(facets, indexed=axis.facet_index is not None)
    if lookup.most is not None:
        limited = f"SELECT 1 FROM {_source(axis, facets, dialect)} WHERE {where} LIMIT ?"
        return Statement(f"SELECT count(*) FROM ({limited}) AS found", (*where.params, lookup.most))
    few = axis.facet_index is not None and facets is not None and len(facets) <= _FEW
    source_ = source(axis, dialect, by_facet=True) if few else _source(axis, facets, dialect)
    counted, grouping = ("facet, count(*)", _GROUP_BY_FACET) if lookup.by_facet else ("count(*)", "")
    return Statement(f"SELECT {counted} FROM {source_} WHERE {where}{grouping}", where.params)


def _through(lookup: Count, across: Bounds, owner: Owner, dialect: Dialect) -> Statement:
    """Count by reading the other range in the index of its axis, or in the facets' own ranges there."""
    within = Where(across.axis, owner, dialect).having(lookup.facets)
    within.values(across.axis.names[0], *ends(across))
    names, fence = ", ".join(lookup.axis.names), " OFFSET 0" if dialect.chooses_index else ""
    source_ = source(across.axis, dialect, by_facet=lookup.facets is not None)
    rows = f"SELECT {names} FROM {source_} WHERE {within}{fence}"
    tests = Clauses()
    tests.range(lookup.axis, lookup.lower, lookup.upper)
    return Statement(f"SELECT count(*) FROM ({rows}) AS held WHERE {tests}", (*within.params, *tests.params))


def _source(axis: Axis, numbers: Numbers, dialect: Dialect) -> str:
    """Name where to read rows: the facets' own ranges, if the axis' index lacks the facet."""
    return source(axis, dialect, by_facet=numbers is not None and not axis.covers_facet)


_FEW: Final = 128
"""Up to this many facets, counting in their own ranges costs less than testing the facet of each row of a bucket."""
_GROUP_BY_FACET: Final = " GROUP BY facet"
_CHILDREN: Final = f"{ON_AXIS} AND parent = ?"
_REPORTS: Final = "SELECT total FROM conta WHERE id_organizacao = ? AND id_conta = ?"
_PERSONS: Final = "SELECT total FROM organizacao WHERE id_organizacao = ?"
_HOLDING: Final = f"""
WITH coarse AS (
    SELECT bucket, lower FROM bucket WHERE {ON_AXIS} AND parent = 0 AND lower <= ? ORDER BY lower DESC LIMIT 1
), fine AS (
    SELECT parent, lower, total FROM bucket WHERE {ON_AXIS} AND parent = (SELECT bucket FROM coarse) AND lower <= ?
    ORDER BY lower DESC LIMIT 1
)
SELECT fine.lower,
    coalesce(
        (SELECT lower FROM bucket WHERE {ON_AXIS} AND parent = fine.parent AND lower > ? ORDER BY lower LIMIT 1),
        (SELECT lower FROM bucket WHERE {ON_AXIS} AND parent = 0 AND lower > ? ORDER BY lower LIMIT 1)
    ),
    fine.total,
    (SELECT CAST(coalesce(sum(total), 0) AS bigint) FROM bucket
        WHERE {ON_AXIS} AND parent = fine.parent AND lower < fine.lower),
    coarse.bucket,
    coarse.lower,
    (SELECT CAST(coalesce(sum(total), 0) AS bigint) FROM bucket
        WHERE {ON_AXIS} AND parent = 0 AND lower < coarse.lower)
FROM coarse CROSS JOIN fine
"""
