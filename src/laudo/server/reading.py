"""A whole snapshot, read anew when its connection is lost in the midst of it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from laudo.server.database import Connection, Database, Lost

T = TypeVar("T")
_ATTEMPTS: Final = 3


def read(database: Database, work: Callable[[Connection], T]) -> T:
    """Do what only reads in a snapshot, in another one when it was lost; raises Lost when all of them were."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(Lost):
            return _read(database, work)
    return _read(database, work)


def _read(database: Database, work: Callable[[Connection], T]) -> T:
    with database.snapshot() as connection:
        return work(connection)
