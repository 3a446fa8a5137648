"""A page of a range in another order, found by guessing: a row's place is guessed by proportion, then rows are counted.

Between two points a third one is guessed, and the rows between it and the nearer of the two are counted. This ends when
the points are near the rows of the page. If the range's rows lie in heaps, the next one may still be far away. So
reading on from there may cost at most twice as much as collecting all matching rows; then these are collected.
"""

from itertools import accumulate, pairwise
from math import isqrt
from typing import Final

from laudo.core import tally
from laudo.core.axes import Key
from laudo.core.cursor import After
from laudo.core.lookups import PATIENCE, Asking, At, Count, Read, together
from laudo.core.part import Part
from laudo.core.points import Point
from laudo.core.reading import Taken
from laudo.core.tally import locate, rank
from laudo.core.walking import LOOK

NEAR: Final = 1000
"""Looking at up to this many rows costs less than guessing another place among them."""
FEW_OF_RANGE: Final = 25
"""The same limit, in rows of the range."""
GUESSING: Final = 10_000
"""What it costs to guess until a place is near, in rows counted."""
LOCATING: Final = 1500
"""What is added to that for each facet whose tally tells where a guess lies."""
COUNTING: Final = 1
"""What it costs to count a row, which is the unit of all costs."""
_ACROSS: Final = 8
"""A point with another value counts as this many times as far away: rows of other groups may lie in between."""
_AHEAD: Final = 8
"""Each step further down looks at this many times the rows that the last one passed."""


def cost(part: Part, limit: int, skip: int) -> int:
    """Tell what it costs to guess where the rows after `skip` others of the range are, and to read from near there."""
    row = part.total - 1 - skip if part.falling else skip
    low, high = part.points.around_row(row)
    place = _likely_place(row, low, high)
    near = part.count_cost(min(place - low.place, high.place - place)) + part.count_cost(_margin(row, low, high))
    finding = GUESSING + LOCATING * len(part.group.named or ())
    if part.matching.down_values:  # Found among all rows, then within a value; only the first page is at hand.
        finding = 2 * finding if skip else finding // 2
    return finding + COUNTING * near + part.scan_cost(limit * part.group.total // part.total)


def take(taken: Taken, part: Part, limit: int, skip: int, after: After | None) -> Asking[None]:
    """Take `limit` rows of a part after `skip` others; `after` is for orders down values that many rows share."""
    if part.matching.down_values:
        yield from _down_values(taken, part, limit, skip, after)
    else:
        yield from _guessed(taken, part, limit, skip)


def collect(taken: Taken, part: Part, limit: int, skip: int, after: After | None) -> Asking[None]:
    """Collect rows by finding and sorting all that match."""
    taken.take((yield part.matching.collected(limit, skip, after)))


def _guessed(taken: Taken, part: Part, limit: int, skip: int) -> Asking[None]:
    """Take rows from a point near the first; in the facets' own ranges, which are sorted, up to one near the last.

    If the points stay too far apart for that, or the rows near them are too few, the matching rows are collected.
    """
    first, last = (part.total - skip - limit, part.total - 1 - skip) if part.falling else (skip, skip + limit - 1)
    yield from _find_ends(part, first)
    if part.ranges or not part.falling:
        yield from _narrow(part, first)
    if part.ranges or part.falling:
        yield from _narrow(part, last, upper=True)
    (start, _), (_, end) = part.points.around_row(first), part.points.around_row(last)
    passed = end.held - 1 - last if part.falling else first - start.held
    if part.ranges and (end.place - start.place) * LOOK > 2 * part.matching.collect_cost(limit + skip):
        yield from collect(taken, part, limit, skip, None)
        return
    most = None if part.ranges else part.matching.patience(limit + skip)
    shown = yield from _read(
        taken, part, limit, passed, lower=start.key, upper=end.key, falling=part.falling, most=most
    )
    if shown < limit:
        yield from collect(taken, part, limit - shown, skip + shown, None)


def _find_ends(part: Part, row: int) -> Asking[None]:
    """Add points at the group's first and last rows: where rows share values, these may lie far from the axis' ends."""
    axis, group = part.axis, part.group
    if axis.repeats and group.numbers and any(point.key is None for point in part.points.around_row(row)):
        first, last = yield from together(*(locate(axis, group, place) for place in (0, group.total - 1)))
        part.points.add(Point(first, 0, 0), Point(axis.past(last), group.total, part.total))


def _narrow(part: Part, row: int, *, upper: bool = False) -> Asking[None]:
    """Add points near row `row` of the range, until the one below it is near, or with `upper` the one above.

    Each guess aims short of the row: by the margin that chance gives evenly spread rows, and by four times as much
    after each guess that overshot. If two guesses hardly came nearer, rows lie unevenly, and the next guess halves the
    distance.
    """
    stalled, overshot, (low, high) = 0, 0, part.points.around_row(row)
    while (distance := _distance(row, low, high, upper=upper)) > NEAR:
        width, likely, margin = high.place - low.place, _likely_place(row, low, high), NEAR + _margin(row, low, high)
        short = min(margin << 2 * overshot, high.place - likely if upper else likely - low.place) // 2
        halves = stalled > 1 and stalled % 2 == 0 and not overshot
        guess = low.place + width // 2 if halves else likely + (short if upper else -short)
        place = min(max(guess, low.place + 1), high.place - 1)
        key = _counting_key(part, (yield from locate(part.axis, part.group, place)))
        if not _lies_between(key, low, high):
            break
        found = yield from _count_to(part, key, place)
        low, high = part.points.around_row(row)
        stalled = stalled + 1 if 2 * _distance(row, low, high, upper=upper) > distance else 0
        overshot = overshot + 1 if (found.held > row) is not upper else 0


def _count_to(part: Part, key: Key, place: int) -> Asking[Point]:
    """Count the range's rows before a key, from the point below it or back from the one above, whichever seems nearer.

    A long distance is counted from each coarse bucket to the next; their beginnings become points for other pages.
    """
    low, high = part.points.around_key(key)
    if high.key == key:
        return high
    at = Point(key, place, 0)
    upwards = _counts_up(part, at, low, high)
    begin, end = (low, at) if upwards else (at, high)
    path = [begin, *(yield from _between(part, begin, end)), end]
    counts = yield from together(*(part.count(*each) for each in pairwise(path)))
    before = low.held if upwards else high.held - sum(counts)
    points = [point._replace(held=held) for point, held in zip(path, accumulate(counts, initial=before), strict=True)]
    part.points.add(*(points[1:] if upwards else points[:-1]))
    return points[-1] if upwards else points[0]


def _counts_up(part: Part, at: Point, low: Point, high: Point) -> bool:
    """Tell whether to count to a place from the point below it rather than from the one above: from the nearer one.

    With only some facets, very many rows of others may lie between two values. If only one of the points has the value
    of the place, the other one counts as farther away.
    """
    below, above = at.place - low.place, high.place - at.place
    if part.axis.repeats and part.group.numbers:
        below, above = (
            rows if point.key and at.key and point.key[0] == at.key[0] else rows * _ACROSS
            for point, rows in ((low, below), (high, above))
        )
    return below < above


def _between(part: Part, low: Point, high: Point) -> Asking[list[Point]]:
    """Give the keys between two points where coarse buckets begin, as points not yet counted; none if both are near."""
    rows = high.place - low.place
    if part.scan_cost(rows) <= part.points.spacing or part.counts_across(rows):
        return []
    starts = {_counting_key(part, key): place for key, place in (yield from tally.beginnings(part.axis, part.group))}
    return [Point(key, place, 0) for key, place in starts.items() if _lies_between(key, low, high)]


def _lies_between(key: Key, low: Point, high: Point) -> bool:
    return (low.key is None or low.key < key) and (high.key is None or key < high.key)


def _counting_key(part: Part, key: Key) -> Key:
    """Give the key to count to instead of `key`: the beginning of its value, unless many rows may share the value."""
    return key if part.axis.repeats else part.axis.floor(key[0])


def _likely_place(row: int, low: Point, high: Point) -> int:
    """Tell the place of a row of the range if the range's rows are evenly spread between two points."""
    return low.place + (row - low.held) * (high.place - low.place) // (high.held - low.held)


def _margin(row: int, low: Point, high: Point) -> int:
    """Tell how far from its likely place the row may be by chance."""
    return isqrt(min(row - low.held, high.held - row)) * (high.place - low.place) // (high.held - low.held)


def _distance(row: int, low: Point, high: Point, *, upper: bool) -> int:
    """Tell how many of the group's rows likely lie between a row of the range and the point beside it; 0 if few."""
    rows = high.held - 1 - row if upper else row - low.held
    return rows * (high.place - low.place) // (high.held - low.held) if rows > FEW_OF_RANGE else 0


def _down_values(taken: Taken, part: Part, limit: int, skip: int, after: After | None) -> Asking[None]:
    """Take downwards on an axis where many rows may share a value: first the rest of one value, then those below.

    How far apart the range's rows lie is not known, so each step looks at more of the group's rows until there are
    enough.
    """
    axis, group, left, ahead, place = part.axis, part.group, limit, NEAR + 1, part.group.total
    rows_left = part.matching.patience(limit + skip)
    if after or skip:
        found = (axis.past(axis.key(after.value, after.key)), 0) if after else (yield from _value_at(part, limit, skip))
        if found is None:
            taken.take((yield from part.matching.take(limit, skip, after)))
            return
        lower, passed = found
        left -= yield from _read(taken, part, left, passed, lower=lower, upper=axis.ceiling(lower[0]))
        place = yield from rank(axis, group, axis.floor(lower[0]))
    while left and place > 0:
        if rows_left <= 0:
            yield from collect(taken, part, left, skip + limit - left, after)
            return
        ahead = min(ahead, 1 + rows_left * group.total // part.matching.among)
        lower, upper, counted = yield from _values_below(part, place, ahead)
        left -= yield from _read(taken, part, left, 0, lower=lower, upper=upper, falling=True)
        above, place = place, (yield from rank(axis, group, lower))
        if place >= above:  # The tally is damaged, and the page will be found to lack items.
            return
        ahead = _AHEAD * (above - place)
        rows_left -= part.scan_cost(above - place) + counted * COUNTING // LOOK


def _values_below(part: Part, place: int, ahead: int) -> Asking[tuple[Key, Key, int]]:
    """Choose the values to read next: those that the `ahead` rows of the group below a place have.

    Gives the keys between which they lie, and how many rows were counted. If many rows of other groups have these
    values too, the lowest value is left out, since it may be the one that they share. If there are still too many, only
    the topmost value is read.
    """
    axis, group = part.axis, part.group
    top, low = yield from together(locate(axis, group, place - 1), locate(axis, group, max(0, place - ahead)))
    counted, most = 0, PATIENCE * ahead * part.matching.among // group.total
    for lower in (axis.floor(low[0]), axis.ceiling(low[0])) if low[0] != top[0] else ():
        [(found,)] = yield Count(axis, lower, axis.ceiling(top[0]), None, most=most)
        counted += found
        if found < most:
            return lower, axis.ceiling(top[0]), counted
    return axis.floor(top[0]), axis.ceiling(top[0]), counted


def _value_at(part: Part, limit: int, skip: int) -> Asking[tuple[Key, int] | None]:
    """Find the row that comes after `skip` others downwards: a key of its value, and how many rows lie in between.

    None if it is too far from where proportion puts it, or if counting to the ends of its value costs too much.
    """
    axis, row, matching = part.axis, part.total - 1 - skip, part.matching
    yield from _find_ends(part, row)
    alternative = min(matching.collect_cost(limit + skip), matching.walk_cost(matching.passed(limit, skip)))
    if (yield from _value_cost(part, row)) > 2 * alternative:  # Twice: fetching and sorting a row takes longer.
        return None
    yield from _narrow(part, row)
    low, _ = part.points.around_row(row)
    most = matching.patience(skip)
    keys = yield At(axis, low.key, None, part.numbers, row - low.held, part.across.bounds, most)
    if not keys:
        return None
    [key] = keys
    floor, ceiling = axis.floor(key[0]), axis.ceiling(key[0])
    first, end = yield from together(*(rank(axis, part.group, each) for each in (floor, ceiling)))
    below = yield from _count_to(part, floor, first)
    upto = yield from _count_to(part, ceiling, end)
    # Values fall but ties rise: those of the value's rows that come before the page lie below it on the axis too.
    row = below.held + skip - (part.total - upto.held)
    yield from _narrow(part, row)
    low, _ = part.points.around_row(row)
    return low.key or floor, row - low.held


def _value_cost(part: Part, row: int) -> Asking[int]:
    """Tell what it likely costs to count to a row and to both ends of its value, which is guessed by proportion."""
    low, high = part.points.around_row(row)
    place = _likely_place(row, low, high)
    steps = [min(place - low.place, high.place - place)]
    [value, _] = yield from locate(part.axis, part.group, place)
    ends = part.axis.floor(value), part.axis.ceiling(value)
    for end, at in zip(ends, (yield from together(*(rank(part.axis, part.group, end) for end in ends))), strict=True):
        low, high = part.points.around_key(end)
        steps.append(min(at - low.place, high.place - at, abs(place - at)))
    return GUESSING + COUNTING * sum(part.count_cost(rows) for rows in steps)


def _read(
    taken: Taken,
    part: Part,
    limit: int,
    skip: int,
    *,
    lower: Key | None,
    upper: Key | None,
    falling: bool = False,
    most: int | None = None,
) -> Asking[int]:
    """Take rows of a range; gives how many were found.

    Rows of the facets' own ranges are gathered and sorted. Others come in the axis' order, and at most `most` are
    looked at.
    """
    gather = part.ranges is not None
    rows = yield Read(
        part.axis, lower, upper, part.numbers, limit, skip, falling, gather=gather, most=most, across=part.across.bounds
    )
    return taken.take(rows)
