"""The facets of an account, for its writer: their numbers, and how many reports each has."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from laudo.core.facets import FIELDS
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.writes import FACET
from laudo.server.database import Connection, Row
from laudo.server.ingest.rows import Combination


class FacetNumbers:
    """The facets of one account, remembered from one transaction to the next."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._numbers: dict[Combination, int] = {}
        self._next = 1
        self._deltas: Counter[int] = Counter()
        self._new: list[tuple[int, Combination]] = []

    @property
    def all(self) -> tuple[int, ...]:
        return tuple(self._numbers.values())

    @property
    def statements(self) -> list[Statement]:
        return [Statement(text, self._owner) for text in (_ALL, _HIGHEST)]

    def remember(self, _connection: Connection, found: list[list[Row]]) -> None:
        """Remember the facets that the store has; the number of a lost one that reports still have is not free."""
        rows, [(highest,)] = found
        self._numbers = {tuple(combination): number for number, *combination in rows}
        self._next = max(highest or 0, *self._numbers.values(), 0) + 1
        self._deltas.clear()
        self._new.clear()

    def number(self, combination: Combination) -> int:
        """Give the number of a facet, a new one if the account did not have it."""
        number = self._numbers.get(combination)
        if number is None:
            number = self._numbers[combination] = self._next
            self._next += 1
            self._new.append((number, combination))
        return number

    def add(self, numbers: Iterable[int], by: int) -> None:
        """Count reports that were added (1) or removed (-1), each by its facet's number."""
        for number, reports in Counter(numbers).items():
            self._deltas[number] += reports * by

    def write(self, connection: Connection) -> None:
        """Write the counts and the new facets: only here, where the account's version tells other writers of them."""
        connection.write(_NEW, [(*self._owner, number, *combination) for number, combination in self._new])
        self._new.clear()
        connection.write(_ADD, [(*self._owner, number, by) for number, by in sorted(self._deltas.items()) if by])
        self._deltas.clear()


_ALL: Final = f"SELECT facet, {', '.join(FIELDS)} FROM facet WHERE id_organizacao = ? AND id_conta = ?"
_HIGHEST: Final = "SELECT max(facet) FROM relatorio WHERE id_organizacao = ? AND id_conta = ?"
_NEW: Final = Write(How.INSERT, FACET, FIELDS)
_ADD: Final = Write(How.ADD, FACET, ("total",))
