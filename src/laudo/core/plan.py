"""★ How a page is found: Query + the account's facets + a few look-ups → the exact total, and where the page starts.

Nothing here counts or skips rows. Filters act on *facets* (the distinct combinations of the five fields with few
values), whose totals are kept; places in an order are found by walking the *tally* (how many reports of each facet
lie in each bucket of an axis). A plan is a generator: it yields look-ups, is sent their rows, and returns a Page; who
drives it decides how a look-up is asked (`sql`) and of whom (`server.database`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from laudo.core import axes, reading, tally
from laudo.core.axes import Axis, Key
from laudo.core.cursor import After
from laudo.core.facets import Facets, Group
from laudo.core.lookups import Asking, Found, Plain
from laudo.core.query import Query
from laudo.core.reading import Reading, Stretch

COLLECT: Final = 2
"""What collecting a row to be sorted costs, in rows walked."""


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
    """Plan a page of a list: number `query.page`, or the one that follows `after`."""
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
    if query.offset >= group.total and after is None:
        return Page(group.total, 0, "")
    axis = query.order.field.axis
    if axis is not None and not axis.number and query.offset and after is None:
        return (yield from _walked(query, group, facets.total, after))
    collected = Reading(query.rows, of=facets.total)
    yield from reading.read(collected, _stretches(query, facets, group, after), query.offset)
    return Page(group.total, collected.count, collected.items)


def _bounded(query: Query, facets: Facets, group: Group, bounds: Bounds, after: After | None) -> Steps:
    """A range of one axis beside the facets: the total is a difference of ranks, and the range has an order."""
    first, total = yield from tally.span(bounds.axis, group, bounds.lower, bounds.upper)
    if query.offset >= total and after is None:
        return Page(total, 0, "")
    if query.order.field.axis is not bounds.axis:
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
    yield from reading.read(collected, iter((within,)), query.offset)
    return Page(total, collected.count, collected.items)


def _searched(query: Query, facets: Facets, after: After | None) -> Steps:
    """Words of a name: counters tell how many persons have one word, the words' index how many have several."""
    [(total,)] = yield Found(query.words)
    return (yield from _walked(query, Group(None, None, total), facets.total, after))


def _counted(query: Query, group: Group, after: After | None) -> Steps:
    """Filters that name one report, document or person, or that no index answers together: count what they match."""
    [(total, shown, items)] = yield Plain(query, group.numbers, few=True, counted=True, after=after)
    return Page(total, shown, items or "")


def _walked(query: Query, group: Group, of: int, after: After | None) -> Steps:
    """Filter, sort and skip, when the total is known: cost grows with the page number, or with the rows that match.

    The page is some `(offset + rows) * of / total` rows down the order, if those that match (`group.total` of the `of`
    that there are) lie evenly; to collect and sort them all may be cheaper.
    """
    skipped = 0 if after else query.offset
    if skipped >= group.total:
        return Page(group.total, 0, "")
    few = query.order.field.axis is None or COLLECT * group.total**2 <= (skipped + query.rows) * of
    [(_, shown, items)] = yield Plain(query, group.numbers, few=few, counted=False, after=after)
    return Page(group.total, shown, items or "")


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


def _bounds(query: Query) -> list[Bounds]:
    """Give the ranges that a query asks for: of instants, of CPFs that begin alike."""
    bounds = []
    if query.since is not None or query.until is not None:
        axis = query.resource.newest_axis
        lower = None if query.until is None else axis.floor(1 - query.until)
        upper = None if query.since is None else axis.floor(1 - query.since)
        bounds.append(Bounds(axis, lower, upper))
    if query.prefix:
        bounds.append(Bounds(axes.PESSOA_CPF, (query.prefix,), (query.prefix + ":",)))
    return bounds
