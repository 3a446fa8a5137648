"""What one transaction changes: reports before and after, and what was counted on the way."""

from typing import NamedTuple

from laudo.core import disclosure
from laudo.server.database import Connection, Row


@disclosure.nothing
class Diff(NamedTuple):
    """Reports as they were before and as they are after; one that is changed is in both."""

    before: list[Row]
    after: list[Row]


class Counts(NamedTuple):
    """What became of reports."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    stale: int = 0
    """Older than what the store already has under this numero."""
    conflicting: int = 0
    """Of the same instant as that, but different: nobody can tell which one is right."""

    def __str__(self) -> str:
        """Name all counts, but `conflicting` only if there are any."""
        shown = [(name, number) for name, number in self._asdict().items() if number or name != "conflicting"]
        return ", ".join(f"{number} {name}" for name, number in shown)

    def plus(self, other: "Counts") -> "Counts":
        return Counts(*map(sum, zip(self, other, strict=True)))


@disclosure.only("counts")
class Written(NamedTuple):
    """What became of a batch, and the numeros of its conflicting reports."""

    counts: Counts
    conflicting: list[str]


def lock_writers(connection: Connection, id_organizacao: int) -> None:
    """Let an organization's other writers wait until the transaction ends; to be called before its first read."""
    connection.lock(f"organizacao {id_organizacao}")
