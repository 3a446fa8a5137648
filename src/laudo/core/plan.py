"""★ How a page is found: Query + the account's facets + a few look-ups → the exact total, and where the page starts.

Mostly nothing is counted or skipped. Filters act on *facets* (the distinct combinations of the five fields with few
values), whose totals are kept; places in an order are found by walking the *tally* (how many reports of each facet
lie in each bucket of an axis). Without filters one look-up brings the first page and the facets' sum (`whole`). Words,
one document, or two ranges at once are in neither: their rows are walked or collected, whichever likely costs less.

A plan is a generator: it yields look-ups, is sent their rows, and returns a Page. Whoever drives it decides how a
look-up is asked (`sql`) and of whom (`server.database`).
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from laudo.core import axes, periods, ranges, reading, tally
from laudo.core.axes import Axis
from laudo.core.cursor import After, right_before, skipped, within
from laudo.core.facets import Facets, Group
from laudo.core.lookups import Asking, Count, Found, Plain, Read, Whole, together
from laudo.core.points import Counted, Known
from laudo.core.query import Query
from laudo.core.reading import Reading, Stretch
from laudo.core.tally import Bounds, Span
from laudo.core.walking import Matching

FEW: Final = 3000
"""Up to so many rows are best collected where no index has all that is asked."""
_DOCUMENTO: Final = axes.RELATORIO_DOCUMENTO
_NUMERO: Final = axes.RELATORIO_NUMERO


class Page(Struct, frozen=True):
    """What a list's body is made of: the exact total, how many items the page has, and their JSON joined by commas.

    `points` are what was counted on the way, for other pages of the list.
    """

    total: int
    shown: int
    items: bytes
    points: Known = {}


Steps = Asking[Page]


def page(query: Query, facets: Facets, after: After | None = None, counted: Counted | None = None) -> Steps:
    """Plan a page of a list: the one that follows `after`, if the query has a cursor, or number `query.page`.

    For the latter `after` may be any item before the page: a long walk begins there. `counted` is what has been counted
    of the same state of the list.
    """
    total = counted.total if counted else None
    group = facets.matching(query)
    bounds = ranges.asked(query)
    if not group.total:
        return Page(0, 0, b"")
    several = len(bounds) > 1 or (bounds and query.words)
    if query.exact or (several and group.total <= FEW):
        return (yield from _named(query, facets, group, after=after, total=total))
    if several:
        return (yield from _tested(query, facets, group, bounds, after=after, total=total))
    if query.words:
        return (yield from _searched(query, facets, group, after=after, total=total))
    if bounds:
        return (yield from _bounded(query, facets, group, bounds[0], after=after, counted=counted))
    return (yield from _ordered(query, facets, group, after))


def whole(query: Query, after: After | None, total: int | None) -> Steps | None:
    """Plan a page of a list without filters, the first or one that follows an item, in one look-up without facets.

    None for all others.
    """
    axis = query.order.field.axis
    filtered = query.conditions and (query.on_facets or query.exact or query.words or ranges.asked(query))
    if filtered or axis is None or skipped(query, after):
        return None
    if query.order.falling and after:
        return None
    lower = axis.past(axis.key(after.value, after.key)) if after else None
    return _whole(Read(axis, lower, None, None, query.rows, falling=query.order.falling), total)


def _whole(read: Read, total: int | None) -> Steps:
    shown, items = 0, b""
    if total is None:
        [(total, shown, items)] = yield Whole(read)
    elif total:
        [(shown, items)] = yield read
    return Page(total, shown, items or b"") if total else Page(0, 0, b"")


def _ordered(query: Query, facets: Facets, group: Group, after: After | None) -> Steps:
    """Filters that facets answer, in any order: the total is a sum, and the page lies in known stretches."""
    after = right_before(query, after)
    skip = skipped(query, after)
    if skip >= group.total:
        return Page(group.total, 0, b"")
    matching = _matching(query, facets, group, group.total)
    if _are_few(matching):
        return (yield from _taken(matching, after))
    collected = Reading(query.rows, of=facets.total)
    yield from reading.read(collected, _stretches(query, facets, group, after), skip)
    return Page(group.total, collected.count, collected.items)


def _are_few(matching: Matching) -> bool:
    """Tell whether filters leave so few rows that they are collected, as no index of the order has facets."""
    axis, rows = matching.order.field.axis, matching.query.rows
    if axis is None or axis.facet_index or axis.gathering or matching.numbers is None or matching.total > FEW:
        return False
    return matching.collecting(rows) <= matching.walking(rows)


def _bounded(
    query: Query, facets: Facets, group: Group, bounds: Bounds, *, after: After | None, counted: Counted | None
) -> Steps:
    """A range of one axis beside the facets: the total is a difference of two ranks on that axis."""
    axis, collected = query.order.field.axis, Reading(query.rows, of=facets.total)
    if ranges.lies_in(bounds, query.order):
        span = Span(0, counted.total) if counted and right_before(query, after) else None
        total = yield from ranges.read(collected, query, facets, group, bounds, span=span, after=after)
        return Page(total, collected.count, collected.items)
    if query.period and (axis is None or axis.facet_index or axis.covers_recency):
        counted = yield from periods.read(collected, query, facets, group, bounds, after=after, counted=counted)
        return Page(counted.total, collected.count, collected.items, counted.points)
    total = counted.total if counted else (yield from tally.span(bounds, group)).total
    return (yield from _taken(_matching(query, facets, group, total), after))


def _searched(query: Query, facets: Facets, group: Group, *, after: After | None, total: int | None) -> Steps:
    """Words of a name: counters tell how many persons have one word, the words' index how many have several.

    If all names with a word begin with it, they are a range of the order by name. A walk that is not near its end goes
    on without finding out.
    """
    if total is None:
        [(total,)] = yield Found(query.words)
    axis, [word, *others] = query.order.field.axis, query.words
    if axis is axes.PESSOA_NOME and not others and (after is None or after.seen + query.rows > total):
        bounds = ranges.of_names(word)
        span = yield from tally.span(bounds, group)
        if span.total == total:
            collected = Reading(query.rows, of=facets.total)
            yield from ranges.read(collected, query, facets, group, bounds, span=span, after=after)
            return Page(total, collected.count, collected.items)
    return (yield from _taken(_matching(query, facets, group, total), after))


def _tested(
    query: Query, facets: Facets, group: Group, bounds: list[Bounds], *, after: After | None, total: int | None
) -> Steps:
    """Words and ranges together, which no index answers: the rows of the narrowest of them are tested for the others.

    If they are few, counting and collecting is one look-up. If they are many, they are only counted, and then the page
    is walked to or collected.
    """
    through = [*(None for _ in query.words), *(each.axis for each in bounds)]
    words = [_having(word) for word in query.words]
    left = yield from together(*words, *(_few(each, group) for each in bounds))
    if min(left) <= FEW:
        return (yield from _counted(query, group, after, total, through=through[left.index(min(left))]))
    left[len(words) :] = yield from together(*(_within(each, group) for each in bounds))
    least = through[left.index(min(left))]
    if total is None:
        counting = Plain(query, group.numbers, query.order, 0, 0, None, few=True, counted=True, through=least)
        [(total, *_)] = yield counting
    of = dict(zip(through, left, strict=True)).get(query.order.field.axis or query.resource.newest_axis, facets.total)
    matching = Matching(query, group.numbers, query.order, total, of, least, min(left))
    return (yield from _taken(matching, after))


def _having(word: str) -> Asking[int]:
    """Count the persons who have one word."""
    [(count,)] = yield Found((word,))
    return int(count)


def _few(bounds: Bounds, group: Group) -> Asking[int]:
    """Count the rows of a range up to one more than few."""
    [(count,)] = yield Count(*bounds, group.numbers, most=FEW + 1)
    return int(count)


def _within(bounds: Bounds, group: Group) -> Asking[int]:
    """Count the rows of a range."""
    return (yield from tally.span(bounds, group)).total


def _named(query: Query, facets: Facets, group: Group, *, after: After | None, total: int | None) -> Steps:
    """Filters that name one report, document or person, or that leave few rows.

    Only one document may still have many reports; of these, other filters may leave few.
    """
    if [each.filter.name for each in query.exact] != [_DOCUMENTO.names[0]]:
        return (yield from _counted(query, group, after, total))
    if total is None or total <= FEW:
        skip = skipped(query, after)
        [(found, shown, items)] = yield Plain(
            query, group.numbers, query.order, query.rows, skip, after, few=True, counted=True, most=FEW + 1
        )
        if found is not None:
            return Page(found, shown, items or b"")
    if group.numbers and group.total <= FEW:
        return (yield from _counted(query, group, after, total, through=query.resource.newest_axis))
    return (yield from _of_one(query, facets, group, after=after, total=total))


def _of_one(query: Query, facets: Facets, group: Group, *, after: After | None, total: int | None) -> Steps:
    """The reports of one document that has many: a range of the order by documents."""
    bounds = ranges.of_document(query.exact[0].value)
    if query.period is None:
        counted = None if total is None else Counted(total)
        return (yield from _bounded(query, facets, group, bounds, after=after, counted=counted))
    if total is None:
        total = yield from tally.counted(bounds.axis, group.numbers, bounds.lower, bounds.upper, query.period)
    return (yield from _taken(_matching(query, facets, group, total), after))


def _counted(
    query: Query, group: Group, after: After | None, total: int | None, *, through: Axis | None = None
) -> Steps:
    """Count and collect what filters match."""
    counted, skip = total is None, skipped(query, after)
    [(found, shown, items)] = yield Plain(
        query, group.numbers, query.order, query.rows, skip, after, few=True, counted=counted, through=through
    )
    return Page(found if total is None else total, shown, items or b"")


def _taken(matching: Matching, after: After | None) -> Steps:
    """Walk, at a cost that grows with the page number, or collect, at one that grows with the rows that match."""
    query = matching.query
    if not query.cursor and query.offset >= matching.total:
        return Page(matching.total, 0, b"")
    skip = skipped(query, after)
    [(_, shown, items)] = yield from matching.take(query.rows, skip, after)
    return Page(matching.total, shown, items or b"")


def _matching(query: Query, facets: Facets, group: Group, total: int) -> Matching:
    return Matching(query, group.numbers, query.order, total, facets.total)


def _stretches(query: Query, facets: Facets, group: Group, after: After | None) -> Iterator[Stretch]:
    """Give the parts of a list, each of which one axis orders."""
    ordered = query.order.field.axis
    axis, falling = ordered or _NUMERO, ordered is not None and query.order.falling
    for each in reading.groups(query, facets, group, after):
        passed = within(query, each.value, after)
        yield Stretch(axis, falling, each, after=axis.key(passed.value, passed.key) if passed else None)
