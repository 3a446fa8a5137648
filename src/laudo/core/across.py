"""A range of one axis in the order of another, such as a period by `numero`: rows are collected, walked or counted.

Counting serves pages far from both ends (`guesses`). The tally of the order's axis knows how many of a group's rows
come before a key. How many of these are in the range is counted in an index: along the order, or along the range's own
axis, among the rows in the range or among those outside it, whichever are fewest.

A key with both numbers is a *point*. The points that one page counted serve other pages while the list stays as it is.
"""

from typing import Final, NamedTuple, cast

from msgspec.structs import replace

from laudo.core import guesses, tally
from laudo.core.axes import Bounds
from laudo.core.cursor import CHANGED, After
from laudo.core.facets import Facets, Group
from laudo.core.lookups import Asking, together
from laudo.core.part import Part, part_of
from laudo.core.points import Counted
from laudo.core.reading import Taken
from laudo.core.target import Target

COMBINATION: Final = 40
"""What it costs to count the rows of one facet in a range."""
_AHEAD: Final = 8
"""Each further count of groups ahead takes in this many times as many groups as the last one."""


def read(
    taken: Taken, target: Target, bounds: Bounds, counted: Counted | None, *, beginning: str = ""
) -> Asking[Counted]:
    """Take a page, and give what has been counted of the list by then.

    Nothing is taken if a period leaves no row out: the caller reads on without it. `beginning` is the word with
    which all names of the range begin (see `Lead`).
    """
    query, facets, group = target.query, target.facets, target.group
    total, known = (counted.total, counted.points) if counted else (None, {})
    groups = target.groups
    # An order with an axis has one group. Of several groups, the first one is enough for most pages.
    whole, ahead = [group] if total is None else [], [] if query.order.field.axis else groups[:1]
    spans = yield from together(*(tally.span(bounds, each) for each in (*whole, *ahead)))
    held = [span.total for span in spans]
    total = held[0] if total is None else total
    held = held[len(whole) :] if ahead else [total]
    skip, left = target.skip, total
    if skip >= total or (query.period and total == group.total):
        return Counted(total, known)
    matching = target.matching(total, through=bounds.axis, beginning=beginning)
    counting = COMBINATION * len(facets.numbers(group))
    if ahead and skip + query.rows > held[0] and matching.collect_cost(skip + query.rows) <= counting:
        taken.take((yield matching.collected(query.rows, skip, target.after)))
        return Counted(total, known)
    for number, each in enumerate(groups):
        if not (taken.wanted and left):
            break
        if number == len(held):
            held += yield from _held(bounds, facets, groups[number : _AHEAD * (number + 1)])
        if skip < held[number]:
            of_group = replace(matching, numbers=each.numbers, total=held[number])
            part = part_of(of_group, bounds, facets, each, known)
            limit, passed = min(taken.wanted, part.total - skip), target.item_in(each)
            if passed:
                part, passed = _resumed(target, bounds, part, total, groups[1:])
            yield from WAYS[way(part, limit, skip, passed)](taken, part, limit, skip, passed)
            if part.points.have_grown:
                known = {**known, (part.axis, each.numbers): part.points.kept}
        skip, left = max(0, skip - held[number]), left - held[number]
    return Counted(total, known)


def _held(bounds: Bounds, facets: Facets, groups: list[Group]) -> Asking[list[int]]:
    """Tell how many rows of each of several groups are in a range."""
    _, held = yield from tally.span_by_facet(bounds, facets.totals(*groups))
    return [facets.sum(held, group) for group in groups]


def _resumed(target: Target, bounds: Bounds, part: Part, total: int, following: list[Group]) -> tuple[Part, After]:
    """Describe the item after which a walk goes on, and the end of the walk, in terms of the item's own part.

    `after.seen` counts items of the whole list. Without `following` groups, as many rows are left of the part as
    of the list. With them, their rows must be counted: `ends` does so once a walk has found too few rows, unless
    collecting the part costs less.
    """
    after, facets = cast("After", target.after), target.facets
    if not following:
        return part, replace(after, seen=after.seen + part.total - total)

    def ends(rows: int) -> Asking[bool]:
        counting = COMBINATION * sum(len(facets.numbers(each)) for each in following)
        if after.version == CHANGED or counting >= part.matching.collect_cost(target.query.rows):
            return False
        return total == after.seen + rows + sum((yield from _held(bounds, facets, following)))

    return replace(part, ends=ends), replace(after, version=CHANGED)


class Costs(NamedTuple):
    """What each way to the rows of a part likely costs."""

    collect: int
    walk: int
    guess: int


def estimate(part: Part, limit: int, skip: int) -> Costs:
    """Tell what each way to `limit` rows after `skip` others likely costs."""
    matching = part.matching
    walk = matching.walk_cost(matching.passed(limit, skip))
    return Costs(matching.collect_cost(limit + skip), walk, guesses.cost(part, limit, skip))


def way(part: Part, limit: int, skip: int, after: After | None) -> str:
    """Name the way that likely costs least, a key of WAYS; after an item, a walk comes before guessing where it can."""
    costs = estimate(part, limit, skip)
    if costs.collect <= min(costs.walk, costs.guess):
        return "collect"
    # The rows of some facets may lie far into a run of rows that share a value: these are not walked past.
    must_guess = part.numbers and (part.matching.down_values if after else part.axis.repeats)
    return "walk" if not must_guess and (after or costs.walk <= costs.guess) else "guess"


def _walk(taken: Taken, part: Part, limit: int, skip: int, after: After | None) -> Asking[None]:
    """Take rows by walking past the rows before them, from the nearer end or from an item."""
    taken.take((yield from part.matching.walked(limit, skip, after, part.ends)))


WAYS: Final = {"collect": guesses.collect, "walk": _walk, "guess": guesses.take}
