"""Waiting for what others hold, in tries so short that nobody who comes to wait behind one notices it."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from laudo.core.sql import Statement
from laudo.server.database import Connection, Locked, StoreError, Undone

T = TypeVar("T")
SECONDS: Final = 30.0
_PAUSE: Final = 0.5
_SHORTLY: Final = Statement("SET LOCAL lock_timeout = '500ms'")


def patiently(work: Callable[[], T], what: str, seconds: float = SECONDS) -> T:
    """Repeat what others hold up or undo; raises StoreError when they do after so long. `what` names it to a person."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return work()
        except (Locked, Undone) as error:
            if time.monotonic() > deadline:
                raise StoreError(
                    f"{what} had to wait for longer than {seconds:g} s: others hold the tables, or do the same; "
                    "hint: end long transactions, and run it again"
                ) from error
        time.sleep(_PAUSE)


def hold_shortly(connection: Connection, name: str) -> None:
    """Hold a name, and let the rest of a transaction raise Locked soon; raises Locked while another holds the name.

    On PostgreSQL, who asks for a table also holds up all that come after: the wait is shorter than a reader's
    statement_timeout. For the name nobody waits: whoever holds it may build an index, which waits for all others, and
    of two that wait for each other the server ends one. On SQLite the transaction has waited already.
    """
    if connection.dialect.name == "postgres":
        connection.fetch(_SHORTLY)
    connection.hold(name, patient=False)
