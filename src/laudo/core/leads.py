"""What leads to rows that are tested for all else: words of a name, or the range of an axis."""

from operator import attrgetter
from typing import Final

from laudo.core import axes, ranges, tally
from laudo.core.axes import Axis, Bounds
from laudo.core.facets import Group
from laudo.core.lookups import Asking, Count, Found, Words, together
from laudo.core.points import Lead
from laudo.core.query import Query
from laudo.core.walking import FETCH, LOOK

_COMMON: Final = 8
"""A word that this many times as many persons have is not worth listing: eight are listed while one name is tested."""


def cost(query: Query, lead: Lead) -> int:
    """Tell what it costs to look at all rows to which a lead leads."""
    axis = lead.through if isinstance(lead.through, Axis) else None
    is_covered = axis is not None and (axis.covers_words or not query.words)
    return lead.most * (LOOK if is_covered else FETCH)


def of_words(words: Words) -> Asking[Lead]:
    """Choose the rarest word, and the next rarest unless listing its persons takes longer than testing names for it."""
    counted = yield from together(*map(_count_persons, words))
    (most, rarest), *others = sorted(zip(counted, words, strict=True))
    return Lead((rarest, *(word for persons, word in others[:1] if persons < most * _COMMON)), most)


def of_name(words: Words, group: Group) -> Asking[list[Lead]]:
    """Give the narrowest of the ranges of names that begin with a word, if all names that have that word are in it."""
    counted = yield from together(*map(_count_persons, words), *(_count_names(word, group) for word in words))
    counts = zip(words, counted[: len(words)], counted[len(words) :], strict=True)
    complete = [Lead(axes.PESSOA_NOME, names, word) for word, persons, names in counts if names == persons]
    return sorted(complete, key=attrgetter("most"))[:1]


def few(bounds: Bounds, group: Group, most: int) -> Asking[Lead]:
    """Count the rows of a range, but no more than one above `most`."""
    [(count,)] = yield Count(*bounds, group.numbers, most=most + 1)
    return Lead(bounds.axis, int(count))


def within(bounds: Bounds, group: Group) -> Asking[list[Lead]]:
    """Count the rows of a range, and give it as the only lead."""
    span = yield from tally.span(bounds, group)
    return [Lead(bounds.axis, span.total)]


def _count_persons(word: str) -> Asking[int]:
    """Count the persons who have one word."""
    [(count,)] = yield Found((word,))
    return int(count)


def _count_names(word: str, group: Group) -> Asking[int]:
    """Count the names that begin with a word."""
    span = yield from tally.span(ranges.of_names(word), group)
    return span.total
