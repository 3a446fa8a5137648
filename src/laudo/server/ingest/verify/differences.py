"""What `laudo verify` says: numbers only, never a value of a report."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from laudo.core import axes

MOST_NAMED: Final = 100
"""Differences of one kind and owner that are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One number that is kept and is not what the reports say.

    `what` is kept as `stored`, None if it is missing, and is `counted` from the reports, None if nothing should be
    kept. `rows`, if given, tells how many rows or words are as `what` says. What belongs to the organization has no
    account. `remedy` says what helps if `--repair` does not.
    """

    id_organizacao: int
    id_conta: int | None = None
    what: str
    axis: int | None = None
    facet: int | None = None
    bucket: int | None = None
    stored: int | None = None
    counted: int | None = None
    rows: int | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        names = {"organization": self.id_organizacao, "account": self.id_conta, "axis": _shown(self.axis)}
        numbers = names | {"bucket": self.bucket, "facet": self.facet}
        place = ", ".join(f"{name} {number}" for name, number in numbers.items() if number is not None)
        if self.rows is not None:
            counts = "" if self.stored is None else f" (kept {self.stored}, counted {self.counted})"
            return f"{place}: {self.what}: {self.rows}{counts}"
        if self.stored is None and self.counted is None:
            return f"{place}: {self.what}"
        return f"{place}: {self.what} is {_number(self.stored, 'missing')}, counted {_number(self.counted, 'none')}"


def limited(differences: Iterable[Difference]) -> Iterator[Difference]:
    """Give the first MOST_NAMED differences of an owner, then one that says how many more there are."""
    rest = iter(differences)
    yield from islice(rest, MOST_NAMED)
    for first in rest:
        more = 1 + sum(1 for _ in rest)
        yield Difference(
            id_organizacao=first.id_organizacao, id_conta=first.id_conta, what="more differences", rows=more
        )


def _shown(axis: int | None) -> str | None:
    return None if axis is None else f"{axis} ({_AXES[axis]})"


def _number(number: int | None, none: str) -> str:
    return none if number is None else str(number)


_AXES: Final = {axis.number: f"{axis.table} by {axis.names[0]}" for axis in (*axes.OF_RELATORIO, *axes.OF_PESSOA)}
