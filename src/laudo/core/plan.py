"""★ How a page is found: Query + the account's facets + a few look-ups → the exact total and the page's items.

Most pages need no counting or skipping of rows. Filters choose *facets*, the distinct combinations of the five fields
with few values, whose totals are kept. The *tally*, how many reports of each facet lie in each bucket of an axis, tells
where in an order a page starts. Without filters, one look-up finds the first page and the total (`whole`). Facets and
tally know nothing of words, one document, or two ranges at once: there, rows are walked (read in order and tested) or
collected (all found, then sorted), whichever likely costs less.

A plan is a generator: it yields look-ups, is sent their rows, and returns a Page. Its driver decides how a look-up is
written (`sql`) and who answers it (`server.database`). The package's own text defines the words used here.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from laudo.core import across, axes, disclosure, leads, ranges, reading, tally
from laudo.core.axes import EVER, Axis, Bounds
from laudo.core.cursor import After, skipped
from laudo.core.facets import Facets
from laudo.core.lookups import Asking, Found, Plain, Read, Together, Whole, Words, together
from laudo.core.points import Counted, Known, Lead
from laudo.core.query import Query
from laudo.core.reading import Stretch, Taken
from laudo.core.tally import Span
from laudo.core.target import Target
from laudo.core.walking import Matching

FAR: Final = 50_000
"""Up to this cost, in the unit of `walking`, a page is walked to or collected without looking for a cheaper way."""
FEW: Final = 3000
"""Up to this many rows are best collected where no index answers the whole question."""


@disclosure.only("total", "shown")
class Page(Struct, frozen=True):
    """What a list's body is made of: the exact total, how many items the page has, and their JSON joined by commas.

    `points` and `lead` are what was counted on the way, kept for other pages of the list.
    """

    total: int
    shown: int
    items: bytes
    points: Known = {}
    lead: Lead | None = None


Steps = Asking[Page]


def page(query: Query, facets: Facets, after: After | None = None, counted: Counted | None = None) -> Steps:
    """Plan a page of a list: the one after the item `after` if the query has a cursor, otherwise number `query.page`.

    For a numbered page, `after` may be any earlier item: a long walk starts there. `counted` is what was counted for
    other pages while the list was in the same state.
    """
    total = counted.total if counted else None
    group = facets.matching(query)
    bounds = ranges.asked(query)
    if not group.total:
        return Page(0, 0, b"")
    target = Target(query, facets, group, after)
    several = len(bounds) > 1 or (bounds and query.words)
    if query.exact or (several and group.total <= FEW):
        return (yield from _exact(target, total))
    if several:
        return (yield from _tested(target, bounds, counted))
    if query.words:
        return (yield from _searched(target, counted))
    if bounds:
        return (yield from _bounded(target, bounds[0], counted))
    return (yield from _ordered(target.without_distant_item))


def takes_facets(query: Query) -> bool:
    """Tell whether a page's plan needs the facets one by one; any other plan needs only how many rows there are."""
    axis, newest = query.order.field.axis, query.resource.newest_axis
    return newest.faceted and bool(query.on_facets or axis is None or (query.period and axis is not newest))


def whole(query: Query, after: After | None, total: int | None) -> Steps | None:
    """Plan a page of a list without filters in one look-up without facets: the first page, or the one after an item.

    None for other pages, and for pages after an item if the axis is read downwards.
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


def _ordered(target: Target) -> Steps:
    """Filters on facets only, in any order: the total is a sum of facets, and the tally says where the page starts."""
    total, skip = target.group.total, target.skip
    if skip >= total:
        return Page(total, 0, b"")
    matching = target.matching(total)
    if _are_few(matching):
        return (yield from _walked_or_collected(target, matching))
    taken = Taken(target.query.rows, among=target.facets.total)
    yield from reading.read(taken, _stretches(target), skip)
    return Page(total, taken.count, taken.items)


def _are_few(matching: Matching) -> bool:
    """Tell whether to collect the rows instead: they are few, and the axis has no index by facet."""
    axis, rows = matching.order.field.axis, matching.query.rows
    if axis is None or axis.facet_index or axis.gathering or matching.numbers is None or matching.total > FEW:
        return False
    return matching.collect_cost(rows) <= matching.walk_cost(rows)


def _bounded(
    target: Target, bounds: Bounds, counted: Counted | None, *, span: Span | None = None, beginning: str = ""
) -> Steps:
    """A range of one axis, also with filters on facets: the total is the difference of two ranks on that axis.

    `span` is where the range lies, if known. `beginning` is the word with which all its names begin (see `Lead`).
    """
    query, nearby = target.query, target.without_distant_item
    axis, taken = query.order.field.axis, Taken(query.rows, among=target.facets.total)
    if ranges.lies_in(bounds, query.order):
        known = Span(0, counted.total) if counted and nearby.after else None
        total = yield from ranges.read(taken, nearby, bounds, span or known)
        return Page(total, taken.count, taken.items)
    has_index = axis is None or axis.covers(bounds.axis) or beginning  # One index has the order and the range.
    if not (query.period and has_index):
        counted = counted or Counted((yield from tally.span(bounds, target.group)).total)
        through = None if query.exact else bounds.axis
        matching = target.matching(counted.total, through=through, beginning=beginning)
        if not has_index or matching.cost(query.rows, target.skip, target.after) <= FAR:
            return (yield from _walked_or_collected(target, matching))
    counted = yield from across.read(taken, nearby, bounds, counted, beginning=beginning)
    if query.period and counted.total == target.group.total:  # It leaves no row out: read on without it.
        return (yield from _ordered(replace(nearby, query=query.during(EVER))))
    return Page(counted.total, taken.count, taken.items, counted.points)


def _searched(target: Target, counted: Counted | None) -> Steps:
    """Words of a name: counters tell how many persons have one word, the index of words how many have several.

    The rarest words lead to names, which are tested for the others: counted and collected in one look-up. If all names
    with the rarest word begin with it, they lie together in the order by name, and that range leads to them.
    """
    words, total = target.query.words, counted.total if counted else None
    if len(words) == 1:
        return (yield from _one_word(target, counted))
    lead = (counted and counted.lead) or (yield from leads.of_words(words))
    if total is None and lead.most > FEW:
        named = yield from leads.of_name(lead.words[:1], target.group)
        lead = named[0] if named else lead
    if total is None and lead.beginning:
        [(total, *_)] = yield _count_only(target, lead.through, lead.beginning)
    elif total is None and (lead.most <= FEW or len(lead.words) < len(words)):
        return replace((yield from _collected(target, None, through=lead.words)), lead=lead)
    elif total is None:
        [(total,)] = yield Found(words)
    looked_at = None if len(lead.words) > 1 else lead.most
    among = lead.most if lead.through is target.query.order.field.axis else None
    matching = target.matching(total, among=among, through=lead.through, looked_at=looked_at, beginning=lead.beginning)
    return replace((yield from _walked_or_collected(target, matching)), lead=lead)


def _one_word(target: Target, counted: Counted | None) -> Steps:
    """One word: if all names that have it begin with it, they are a range of the order by name.

    This is not checked on a walk in that order before its end is near, nor for a cheap page of another order.
    """
    query, after = target.query, target.after
    if counted is None:
        [(total,)] = yield Found(query.words)
        counted = Counted(total)
    matching, bounds = target.matching(counted.total, through=query.words), ranges.of_names(query.words[0])
    if ranges.lies_in(bounds, query.order):
        is_far = after is None or after.seen + query.rows > counted.total
    else:
        is_far = matching.cost(query.rows, target.skip, after) > FAR
    span = (yield from tally.span(bounds, target.group)) if is_far else None
    if span and span.total == counted.total:
        return (yield from _bounded(target, bounds, counted, span=span, beginning=query.words[0]))
    return (yield from _walked_or_collected(target, matching))


def _tested(target: Target, bounds: list[Bounds], counted: Counted | None) -> Steps:
    """Words and ranges together: no index answers them all, so the rows of the narrowest are tested for the others.

    If they are few, one look-up counts and collects them. If they are many, they are counted first; then the page is
    walked to or collected.
    """
    query, group, total = target.query, target.group, counted.total if counted else None
    words = [leads.of_words(query.words)] if query.words else []
    found = yield from together(*words, *(leads.few(each, group, FEW) for each in bounds))
    least = min(found, key=attrgetter("most"))
    if least.most <= FEW:
        return (yield from _collected(target, total, through=least.through))
    named, *ranged = yield from together(
        leads.of_name(query.words, group), *(leads.within(each, group) for each in bounds)
    )
    left_out = group.total - ranged[0][0].most if query.period else group.total
    if not left_out:
        return (yield from page(query.during(EVER), target.facets, target.after, counted))
    without_period = found[0] if words else ranged[-1][0]  # A single word or prefix leads to exactly these rows.
    found[len(words) :] = chain(named, *ranged)
    least, beginning = min(found, key=partial(leads.cost, query)), named[0].beginning if named else ""
    outside = Lead(query.resource.newest_axis, left_out)
    outside_is_cheaper = leads.cost(query, least) > leads.cost(query, outside)
    if total is None and query.period and outside_is_cheaper and len((*query.words, *bounds[1:])) == 1:
        total = without_period.most - (yield from _left_out(target, beginning))
    if total is None:
        [(total, *_)] = yield _count_only(target, least.through, beginning)
    among = {lead.through: lead.most for lead in found}.get(query.order.field.axis or query.resource.newest_axis)
    matching = target.matching(total, among=among, through=least.through, looked_at=least.most, beginning=beginning)
    return (yield from _walked_or_collected(target, matching))


def _left_out(target: Target, beginning: str) -> Asking[int]:
    """Count the rows outside the period that match everything else."""
    query, period = target.query, target.query.period or EVER
    outside = (replace(target, query=query.during(each)) for each in period.complement)
    counts = yield Together(tuple(_count_only(each, query.resource.newest_axis, beginning) for each in outside))
    return sum(rows[0][0] for rows in counts)


def _count_only(target: Target, through: Axis | Words, beginning: str) -> Plain:
    return replace(target.plain(counted=True, through=through, beginning=beginning), limit=0, skip=0, after=None)


def _exact(target: Target, total: int | None) -> Steps:
    """Filters that name one report, document or person, or that leave few rows: all matching rows are collected.

    Only a document may have many reports. Of these, the filters on facets may still leave few.
    """
    query, group = target.query, target.group
    if [each.filter.name for each in query.exact] != [axes.RELATORIO_DOCUMENTO.names[0]]:
        return (yield from _collected(target, total))
    if total is None or total <= FEW:
        [(found, shown, items)] = yield target.plain(counted=True, most=FEW + 1)
        if found is not None:
            return Page(found, shown, items or b"")
    if group.numbers and group.total <= FEW:
        return (yield from _collected(target, total, through=query.resource.newest_axis))
    return (yield from _one_document(target, total))


def _one_document(target: Target, total: int | None) -> Steps:
    """One document with many reports: they are a range of the order by document."""
    query = target.query
    bounds = ranges.of_document(query.exact[0].value)
    if query.period is None:
        return (yield from _bounded(target, bounds, None if total is None else Counted(total)))
    if total is None:
        [period], numbers = ranges.asked(query), target.group.numbers
        total = yield from tally.count(bounds.axis, numbers, bounds.lower, bounds.upper, period)
    return (yield from _walked_or_collected(target, target.matching(total)))


def _collected(target: Target, total: int | None, *, through: Axis | Words | None = None) -> Steps:
    """Collect the matching rows, and count them if the total is not known, in one look-up."""
    [(found, shown, items)] = yield target.plain(counted=total is None, through=through)
    return Page(found if total is None else total, shown, items or b"")


def _walked_or_collected(target: Target, matching: Matching) -> Steps:
    """Walk, which costs more the higher the page's number, or collect, which costs more the more rows match."""
    query = target.query
    if not query.cursor and query.offset >= matching.total:
        return Page(matching.total, 0, b"")
    [(_, shown, items)] = yield from matching.take(query.rows, target.skip, target.after)
    return Page(matching.total, shown, items or b"")


def _stretches(target: Target) -> Iterator[Stretch]:
    """Give the stretches of a list that are read in turn, each in the order of one axis."""
    order = target.query.order
    axis = order.field.axis or axes.RELATORIO_NUMERO
    falling = order.field.axis is not None and order.falling
    for group in target.groups:
        item = target.item_in(group)
        yield Stretch(axis, falling, group, after=axis.key(item.value, item.key) if item else None)
