"""Waits for locks that others hold, in attempts so short that nobody who waits behind one notices it."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from laudo.core.sql import Statement
from laudo.server.database import Connection, Locked, RolledBack, StoreError

T = TypeVar("T")
SECONDS: Final = 30.0
_PAUSE: Final = 0.5
_SHORT_LOCK_TIMEOUT: Final = Statement("SET LOCAL lock_timeout = '500ms'")


def retry(work: Callable[[], T], what: str, seconds: float = SECONDS) -> T:
    """Retry work while others hold its locks or make the store roll it back, for `seconds`.

    Then raises StoreError, which names the work `what`.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return work()
        except (Locked, RolledBack) as error:
            if time.monotonic() > deadline:
                raise StoreError(
                    f"{what} waited for longer than {seconds:g} s: others hold the tables, or do the same; "
                    "hint: end long transactions and run it again"
                ) from error
        time.sleep(_PAUSE)


def lock_without_waiting(connection: Connection, name: str) -> None:
    """Lock a name without waiting, and let the rest of a transaction wait for locks only briefly; raises Locked.

    On PostgreSQL, a transaction that waits for a table also blocks all that come after it, so it waits for less than a
    reader's statement_timeout. It does not wait for the name: the process that holds it may be building an index, which
    waits for all other transactions, and if two wait for each other, the server ends one. On SQLite the transaction has
    already waited.
    """
    if connection.dialect.name == "postgres":
        connection.fetch(_SHORT_LOCK_TIMEOUT)
    connection.lock(name, wait=False)
