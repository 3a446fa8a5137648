"""★ How a page is found: Query + the account's facets + a few look-ups → the exact total, and where the page starts.

Nothing here counts or skips rows. Filters act on *facets* (the distinct combinations of the five fields with few
values), whose totals are kept; places in an order are found by walking the *tally* (how many reports of each facet
lie in each bucket of an axis). A plan is a generator: it yields look-ups, is sent their rows, and returns a Page; who
drives it decides how a look-up is asked (`sql`) and of whom (`server.database`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from laudo.core import axes, reading, tally
from laudo.core.axes import Axis, Key
from laudo.core.cursor import After
from laudo.core.facets import Facets, Group
from laudo.core.lookups import Asking, Found, Plain, together
from laudo.core.query import Order, Query
from laudo.core.reading import FETCH, Reading, Stretch
from laudo.core.resources import RELATORIOS

COLLECT: Final = 2
"""What collecting a row to be sorted costs, in rows walked."""
FEW: Final = 3000
"""Rows that are sooner collected than looked for where an axis has no ranges of facets."""
_BY_NUMERO: Final = Order(next(field for field in RELATORIOS.fields if field.name == "numero"), descending=False)


class Page(NamedTuple):
    """What a list's body is made of: the exact total, how many items the page has, and their JSON joined by commas."""

    total: int
    shown: int
    items: str


Steps = Asking[Page]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of an axis that filters ask for: from `lower` to before `upper`, None where there is no end."""

    axis: Axis
    lower: Key | None
    upper: Key | None


def page(query: Query, facets: Facets, after: After | None = None) -> Steps:
    """Plan a page of a list: the one that follows `after`, if given, or number `query.page`."""
    group = facets.matching(query)
    bounds = _bounds(query)
    if not group.total:
        return Page(0, 0, "")
    if query.exact or len(bounds) > 1 or (bounds and query.words):
        return (yield from _counted(query, group, after))
    if query.words:
        return (yield from _searched(query, facets, after))
    if bounds:
        return (yield from _bounded(query, facets, group, bounds[0], after))
    return (yield from _ordered(query, facets, group, after))


def _ordered(query: Query, facets: Facets, group: Group, after: After | None) -> Steps:
    """Any filters that facets answer, in any order: the total is a sum, and the page lies in known stretches."""
    skip = _skip(query, after)
    if skip >= group.total:
        return Page(group.total, 0, "")
    if _leaves_few(query, group, skip + query.rows, facets.total):
        return (yield from _walked(query, group, facets.total, after))
    collected = Reading(query.rows, of=facets.total)
    yield from reading.read(collected, _stretches(query, facets, group, after), skip)
    return Page(group.total, collected.count, collected.items)


def _leaves_few(query: Query, group: Group, wanted: int, of: int) -> bool:
    """Tell whether filters leave so few rows that they are collected, in an order whose index has no facets first."""
    axis = query.order.field.axis
    if axis is None or axis.facet_index or group.numbers is None or group.total > FEW:
        return False
    return _are_few(query, axis, group.total, wanted, of)


def _bounded(query: Query, facets: Facets, group: Group, bounds: Bounds, after: After | None) -> Steps:
    """A range of one axis beside the facets: the total is a difference of ranks, and the range has an order."""
    axis = query.order.field.axis
    if axis is None:
        return (yield from _bounded_groups(query, facets, group, bounds, after))
    first, total = yield from tally.span(bounds.axis, group, bounds.lower, bounds.upper)
    skip = _skip(query, after)
    if skip >= total:
        return Page(total, 0, "")
    if axis is not bounds.axis:
        few = _are_few(query, axis, total, query.rows, facets.total)
        if axis.repeats and query.order.descending and not skip and not few:
            return (yield from _bounded_values(query, axis, group, total, after))
        return (yield from _walked(query, Group(None, group.numbers, total), facets.total, after))
    collected = Reading(query.rows, of=facets.total * total // group.total)
    within = Stretch(
        bounds.axis,
        falling=query.order.descending is not bounds.axis.falls,
        group=replace(group, total=total),
        first=first,
        lower=bounds.lower,
        upper=bounds.upper,
        after=after,
    )
    yield from reading.read(collected, iter((within,)), skip)
    return Page(total, collected.count, collected.items)


def _bounded_groups(query: Query, facets: Facets, group: Group, bounds: Bounds, after: After | None) -> Steps:
    """A range beside an order of facets: the tally tells how many rows of each value it has, and a walk finds them."""
    groups = facets.groups(group, query.order.field.name, descending=query.order.descending)
    spans = yield from together(*(tally.span(bounds.axis, each, bounds.lower, bounds.upper) for each in groups))
    within = [replace(each, total=span.total) for each, span in zip(groups, spans, strict=True)]
    collected, skip = Reading(query.rows, of=facets.total), _skip(query, after)
    for each in within if after is None else _not_passed(within, after, descending=query.order.descending):
        passed = after if after and each.value == after.value else None
        if skip < each.total and collected.wanted:
            rows = yield _walk(
                query, each, facets.total, order=_BY_NUMERO, limit=collected.wanted, skip=skip, after=passed
            )
            collected.take([row[1:] for row in rows])
        skip = max(0, skip - each.total)
    return Page(sum(each.total for each in within), collected.count, collected.items)


def _bounded_values(query: Query, axis: Axis, group: Group, total: int, after: After | None) -> Steps:
    """A range beside an order down an axis of which many rows share a value: value by value, upwards in each.

    It finds the first page, or what follows an item; a walk down would collect and sort all that share a value.
    """
    upwards = Order(query.order.field, descending=False)
    collected, place = Reading(query.rows, of=group.total), group.total - 1
    value: Any = after.value if after else None
    while collected.wanted and (after or (place >= 0 and collected.count < total)):
        if after is None:
            value = (yield from tally.locate(axis, group, place))[0]
        rows = yield Plain(query, group.numbers, upwards, collected.wanted, 0, after, few=False, value=value)
        collected.take([row[1:] for row in rows])
        place, after = (yield from tally.rank(axis, group, axis.floor(value))) - 1, None
    return Page(total, collected.count, collected.items)


def _searched(query: Query, facets: Facets, after: After | None) -> Steps:
    """Words of a name: counters tell how many persons have one word, the words' index how many have several."""
    [(total,)] = yield Found(query.words)
    return (yield from _walked(query, Group(None, None, total), facets.total, after))


def _counted(query: Query, group: Group, after: After | None) -> Steps:
    """Filters that name one report, document or person, or that no index answers together: count what they match."""
    [(total, shown, items)] = yield Plain(
        query, group.numbers, query.order, query.rows, _skip(query, after), after, few=True, counted=True
    )
    return Page(total, shown, items or "")


def _walked(query: Query, group: Group, of: int, after: After | None) -> Steps:
    """Filter, sort and skip, when the total is known: cost grows with the page number, or with the rows that match."""
    skip = _skip(query, after)
    if skip >= group.total:
        return Page(group.total, 0, "")
    [(_, shown, items)] = yield _walk(query, group, of, order=query.order, limit=query.rows, skip=skip, after=after)
    return Page(group.total, shown, items or "")


def _walk(query: Query, group: Group, of: int, *, order: Order, limit: int, skip: int, after: After | None) -> Plain:
    """Take rows in an order, of which `group.total` of the `of` that there are match.

    The last one is some `(skip + limit) * of / total` rows down the order, if those that match lie evenly; to collect
    and sort them all may be cheaper, the more so where each row walked is fetched to be tested.
    """
    axis = order.field.axis
    few = axis is None or (axis.repeats and order.descending) or _are_few(query, axis, group.total, skip + limit, of)
    return Plain(query, group.numbers, order, limit, skip, after, few=few)


def _are_few(query: Query, axis: Axis, total: int, wanted: int, of: int) -> bool:
    """Tell whether to collect and sort all rows that match costs less than to walk down to the last one wanted."""
    looked_at = FETCH if _has_period(query) and not axis.covers_recency else 1
    return COLLECT * total**2 <= wanted * of * looked_at


def _skip(query: Query, after: After | None) -> int:
    """Tell how many items stand between where the page is looked for, which is the beginning or an item, and it."""
    return 0 if after else query.offset


def _stretches(query: Query, facets: Facets, group: Group, after: After | None) -> Iterator[Stretch]:
    """Give the parts of a list that one axis orders each: one, or one for each value of the facets' field sorted by."""
    field, descending = query.order.field, query.order.descending
    if field.axis is not None:
        yield Stretch(field.axis, descending is not field.axis.falls, group, after=after)
        return
    groups = facets.groups(group, field.name, descending=descending)
    for each in groups if after is None else _not_passed(groups, after, descending=descending):
        yield Stretch(
            axes.RELATORIO_NUMERO,
            falling=False,
            group=each,
            after=after if after and each.value == after.value else None,
        )


def _not_passed(groups: list[Group], after: After, *, descending: bool) -> list[Group]:
    """Drop the groups that a walk has left behind, also when the one it was in has vanished meanwhile."""
    ordered = Facets.ordered([*(group.value for group in groups), after.value], descending=descending)
    return [group for group in groups if ordered.index(group.value) >= ordered.index(after.value)]


def _has_period(query: Query) -> bool:
    return query.since is not None or query.until is not None


def _bounds(query: Query) -> list[Bounds]:
    """Give the ranges that a query asks for: of instants, of CPFs that begin alike."""
    bounds = []
    if _has_period(query):
        axis = query.resource.newest_axis
        lower = None if query.until is None else axis.floor(1 - query.until)
        upper = None if query.since is None else axis.floor(1 - query.since)
        bounds.append(Bounds(axis, lower, upper))
    if query.prefix:
        bounds.append(Bounds(axes.PESSOA_CPF, (query.prefix,), (query.prefix + ":",)))
    return bounds
