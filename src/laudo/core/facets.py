"""The facets of an account: which of them a query's filters match, and in which order a sort puts them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from laudo.core.query import Condition, Query
from laudo.core.resources import RELATORIOS
from laudo.core.values import Stored

FIELDS: Final = RELATORIOS.facet_fields
"""The fields that make a facet, in the order in which `Facet.values` holds them."""

Numbers = tuple[int, ...] | None
"""The facets that matter; None stands for all of them."""


@dataclass(frozen=True, slots=True)
class Facet:
    """One distinct combination of FIELDS, and how many reports have it."""

    number: int
    total: int
    values: tuple[Stored, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Facets that a sort cannot tell apart; `others` are all the rest, where these are fewer."""

    value: Stored
    numbers: Numbers
    total: int
    others: Numbers = None


class Facets:
    """An account's facets, as one snapshot has them.

    The persons of an organization are one facet without fields.
    """

    __slots__ = ("_all", "_having", "_matched", "_totals", "total")

    def __init__(self, facets: Iterable[Facet]) -> None:
        """Facets that no report has are left out."""
        self._all = {facet.number: facet for facet in facets if facet.total}
        self._totals = {number: facet.total for number, facet in self._all.items()}
        self._having: dict[tuple[str, Stored], set[int]] = defaultdict(set)
        for number, facet in self._all.items():
            for name, value in zip(FIELDS, facet.values, strict=False):
                self._having[name, value].add(number)
        self.total = sum(self._totals.values())
        self._matched: dict[tuple[Condition, ...], Group] = {}

    @property
    def numbers(self) -> tuple[int, ...]:
        """Every facet's number."""
        return tuple(self._all)

    def matching(self, query: Query) -> Group:
        """Give the facets that a query's filters match."""
        asked = query.on_facets
        group = self._matched.get(asked)
        if group is None:
            if len(self._matched) >= _REMEMBERED:
                self._matched.clear()
            group = self._matched[asked] = self._match(asked)
        return group

    def _match(self, asked: tuple[Condition, ...]) -> Group:
        if not asked:
            return Group(None, None, self.total)
        sets = (self._having.get((condition.filter.name, condition.value), _NONE) for condition in asked)
        return self._group(None, sorted(set.intersection(*sets)))

    def groups(self, group: Group, field: str, *, descending: bool) -> list[Group]:
        """Split a group by the values of a field, in the order of a sort by it; null comes last in both directions."""
        position = FIELDS.index(field)
        split: dict[Stored, list[int]] = defaultdict(list)
        for number in self._all if group.numbers is None else group.numbers:
            split[self._all[number].values[position]].append(number)
        return [self._group(value, split[value]) for value in self.ordered(split, descending=descending)]

    @staticmethod
    def ordered(values: Iterable[Stored], *, descending: bool) -> list[Stored]:
        """Put values of one field in the order of a sort by it; null comes last in both directions."""
        distinct = set(values)
        known: list[Any] = [value for value in distinct if value is not None]
        return [*sorted(known, reverse=descending), *([None] if None in distinct else [])]

    def _group(self, value: Stored, numbers: Sequence[int]) -> Group:
        others = self._all.keys() - set(numbers)
        return Group(
            value,
            tuple(numbers) if others else None,
            sum(self._totals[number] for number in numbers),
            tuple(sorted(others)) if 0 < len(others) < len(numbers) else None,
        )


def remaining(groups: list[Group], value: Stored, *, descending: bool) -> list[Group]:
    """Leave out the groups before that of a value, which itself may have vanished."""
    ordered = Facets.ordered([*(group.value for group in groups), value], descending=descending)
    return [group for group in groups if ordered.index(group.value) >= ordered.index(value)]


_NONE: Final[set[int]] = set()
_REMEMBERED: Final = 1000
"""Combinations of filters whose facets are remembered."""
