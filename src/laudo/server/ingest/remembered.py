"""What a writer remembers of the store from one transaction to the next, and reads again if others changed it."""

from collections.abc import Iterable
from itertools import chain, islice
from typing import Protocol

from laudo.core.sql import Statement
from laudo.server.database import Connection, Row


class Remembered(Protocol):
    """A part of what a writer remembers."""

    @property
    def statements(self) -> list[Statement]:
        """The statements that read what is to be remembered."""

    def remember(self, connection: Connection, found: list[list[Row]]) -> None:
        """Remember what was found: the rows of each statement."""


def load(connection: Connection, parts: Iterable[Remembered]) -> None:
    """Let parts remember what the store has, in one round trip, or in none if there are no parts."""
    by_part = [(part, part.statements) for part in parts]
    statements = list(chain.from_iterable(each for _, each in by_part))
    found = iter(connection.fetch_each(statements) if statements else ())
    for part, each in by_part:
        part.remember(connection, list(islice(found, len(each))))
