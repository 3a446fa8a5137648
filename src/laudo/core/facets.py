"""The facets of an account: which of them a query's filters match, and in which order a sort puts them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from laudo.core.query import Condition, Query
from laudo.core.resources import RELATORIOS
from laudo.core.values import Stored

FIELDS: Final = RELATORIOS.facet_fields
"""The fields that make a facet, in the order in which a `Facet` has their values."""

Numbers = tuple[int, ...] | None
"""The numbers of the facets that matter; None stands for all facets."""


Facet = tuple[Any, ...]
"""One distinct combination of FIELDS: its number, how many reports have it, and the values, as the store has them."""


class Group(Struct, frozen=True):
    """The facets that a query's filters match; in a sort by one of FIELDS, those of them that share one `value`.

    `total` is how many rows they have. `others` are all the account's other facets, given only where these are fewer.
    """

    value: Stored
    numbers: Numbers
    total: int
    others: Numbers = None

    @property
    def named(self) -> Numbers:
        """The facets whose rows are counted: its own or, where these are fewer, the others, to be subtracted."""
        return self.numbers if self.others is None else self.others


class Facets:
    """An account's facets, as of one snapshot.

    The persons of an organization count as one facet without fields, and so do the reports of an account where a plan
    need not distinguish facets. Facets are read again after each write, so nothing is derived from them before it is
    asked for.
    """

    __slots__ = ("_all", "_by_value", "_kept", "_known", "total")

    def __init__(self, facets: Iterable[Facet]) -> None:
        """Facets that no report has are left out."""
        self._all = {facet[0]: facet for facet in facets if facet[_TOTAL]}
        self.total = sum([facet[_TOTAL] for facet in self._all.values()])
        self._by_value: dict[str, dict[Stored, set[int]]] = {}
        self._known: dict[tuple[object, ...], list[Group]] = {}
        self._kept = 0

    def numbers(self, group: Group) -> tuple[int, ...]:
        """Give the numbers of a group's facets, even where the group is all of them."""
        return tuple(self._all) if group.numbers is None else group.numbers

    def totals(self, *groups: Group) -> dict[int, int]:
        """Tell how many rows each facet of these groups has."""
        return {number: self._all[number][_TOTAL] for group in groups for number in self.numbers(group)}

    def sum(self, counts: Mapping[int, int], group: Group) -> int:
        """Add up the counts of a group's facets."""
        return sum([counts[number] for number in self.numbers(group)])

    @property
    def weight(self) -> int:
        """About how many bytes it takes at most, with everything that it may remember."""
        return _BASE_BYTES + _FACET_BYTES * len(self._all) + _KEPT_BYTES * self._most_kept

    @property
    def _most_kept(self) -> int:
        return min(_LEAST_KEPT + _KEPT_PER_FACET * len(self._all), _MOST_KEPT)

    def matching(self, query: Query) -> Group:
        """Give the facets that a query's filters match."""
        asked = query.on_facets
        known = self._known.get(asked) or self._keep(asked, [self._match(asked)])
        return known[0]

    def groups(self, query: Query) -> list[Group]:
        """Split the facets that a query matches by the value of its sort field, in its order; null comes last."""
        asked = query.on_facets, query.order.field.name, query.order.descending
        return self._known.get(asked) or self._keep(asked, self._split(query))

    def _keep(self, asked: tuple[object, ...], groups: list[Group]) -> list[Group]:
        """Remember groups by what was asked, unless they have no rows; all are forgotten once there are too many."""
        if not any(group.total for group in groups):
            return groups
        self._kept += _QUESTION_WEIGHT + sum(_GROUP_WEIGHT + len(group.numbers or ()) for group in groups)
        if self._kept > self._most_kept:
            self._kept = 0
            self._known.clear()
        self._known[asked] = groups
        return groups

    def _match(self, asked: tuple[Condition, ...]) -> Group:
        if not asked:
            return Group(None, None, self.total)
        sets = (self._facets_by_value(each.filter.name).get(each.value, _NONE) for each in asked)
        return self._group(None, sorted(set.intersection(*sets)))

    def _facets_by_value(self, name: str) -> Mapping[Stored, set[int]]:
        """Give the facets that have each value of a field."""
        found = self._by_value.get(name)
        if found is None:
            found, place = defaultdict(set), _PLACES[name]
            for number, facet in self._all.items():
                found[facet[place]].add(number)
            self._by_value[name] = found
        return found

    def _split(self, query: Query) -> list[Group]:
        place = _PLACES[query.order.field.name]
        split: dict[Stored, list[int]] = defaultdict(list)
        for number in self.numbers(self.matching(query)):
            split[self._all[number][place]].append(number)
        return [self._group(value, split[value]) for value in _ordered(split, descending=query.order.descending)]

    def _group(self, value: Stored, numbers: Sequence[int]) -> Group:
        rest = len(self._all) - len(numbers)
        return Group(
            value,
            tuple(numbers) if rest else None,
            sum([self._all[number][_TOTAL] for number in numbers]),
            tuple(sorted(self._all.keys() - set(numbers))) if 0 < rest < len(numbers) else None,
        )


def remaining(groups: list[Group], value: Stored, *, descending: bool) -> list[Group]:
    """Leave out the groups that come before a value's own, which may no longer exist."""
    ordered = _ordered([*(group.value for group in groups), value], descending=descending)
    left = set(ordered[ordered.index(value) :])
    return [group for group in groups if group.value in left]


def _ordered(values: Iterable[Stored], *, descending: bool) -> list[Stored]:
    """Put values of one field in the order of a sort by it; null comes last in both directions."""
    distinct = set(values)
    known: list[Any] = [value for value in distinct if value is not None]
    return [*sorted(known, reverse=descending), *([None] if None in distinct else [])]


_TOTAL: Final = 1
_PLACES: Final = {name: place for place, name in enumerate(FIELDS, start=_TOTAL + 1)}
_NONE: Final[set[int]] = set()
_LEAST_KEPT: Final = 2_000
_KEPT_PER_FACET: Final = 100
_MOST_KEPT: Final = 100_000
"""How many facets the remembered groups may name: a base, this many more for each facet there is, and a limit."""
_QUESTION_WEIGHT: Final = 100
"""What a question and each of its groups weigh on top, counted in facets named."""
_GROUP_WEIGHT: Final = 20
_BASE_BYTES: Final = 1_000
_FACET_BYTES: Final = 700
_KEPT_BYTES: Final = 6
"""Bytes: of any account, of each facet with its entries by value, and of each facet named in a remembered group."""
