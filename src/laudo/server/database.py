"""How other modules reach a store: the protocols that both engines implement, and the errors that they raise."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from laudo.core.sql import Dialect, Statement, Write

Row = tuple[Any, ...]
T = TypeVar("T")

NO_SCHEMA: Final = "the store has no schema, or an older one; run `laudo migrate`"
LOCKED: Final = "the store is locked by another writer; try again when it has finished"
WAITS: Final = "waiting for another process that is writing to the store; press Ctrl-C to stop waiting"
"""Three texts that both engines use."""

NO_VACUUM: Final = (
    "this works only on SQLite; hint: on PostgreSQL the owner of the tables runs VACUUM FULL, see docs/operating.md,"
    " A person's data"
)
"""laudo does not run VACUUM FULL itself: it locks out all readers of a server."""

SILENT_SECONDS: Final = 2
"""A longer wait for another writer is reported; other imports write for about a second at a time."""

_ATTEMPTS: Final = 3
"""Attempts at lost work: the second finds no old connection, but perhaps a closing one, or another transaction."""


class StoreError(Exception):
    """The store cannot be used; the text says what is wrong and what to do, a second one what the server said."""

    def __str__(self) -> str:
        """Join both texts."""
        return ": ".join(self.args)

    @property
    def reason(self) -> str:
        """The text from laudo itself, for a log: the server's text may contain anything."""
        return str(self.args[0])


class WordsDamagedError(StoreError):
    """The index of persons' words cannot be read or written; it can be rebuilt from the persons."""


class Unavailable(StoreError):  # noqa: N818 - a state of the store, not a mistake
    """The store does not answer now; the same call may succeed later."""


class Locked(Unavailable):
    """Somebody else has held a lock for longer than this process waits for it."""


class Busy(Unavailable):
    """No connection to the server is free; the server may work nevertheless, and so may others."""


class Slow(Unavailable):
    """A statement took longer than its timeout, as it would on another server of the store."""


class Lost(Unavailable):
    """The connection was lost during a transaction, or the store rolled it back: all of it may be retried."""


class RolledBack(Lost):
    """The store rolled the transaction back because of another one, and goes on answering."""


class Doubtful(Unavailable):
    """The connection was lost during a commit: whether the transaction is stored is not known."""


Mark = bytes | None
"""Equal as long as nothing in the store has changed; None if the engine cannot tell, or not without a query."""


class Reader(Protocol):
    """A store, or one transaction of it, that runs statements."""

    @property
    def dialect(self) -> Dialect:
        """How statements are written for this engine."""

    def fetch(self, statement: Statement) -> list[Row]:
        """Run one statement and give its rows, if it has any; a list among its parameters is passed as one array."""

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run some queries, on a server in one round trip."""


class Connection(Reader, Protocol):
    """One snapshot, or one write transaction, of a store."""

    def write(self, write: Write, rows: Iterable[Row]) -> None:
        """Write rows, which all belong to one organization; there may be none."""

    def lock(self, name: str, *, wait: bool = True) -> None:
        """Lock a name until the transaction ends, and wait for others that hold it; to be called before the first read.

        If not `wait`, raises Locked instead of waiting.
        """

    def run_script(self, text: str) -> None:
        """Run several statements without parameters."""

    def has_column(self, table: str, name: str) -> bool:
        """Tell whether the store has a table with this column: another application's table may have the same name."""


class Served(Reader, Protocol):
    """The store, or its replicas, that answer requests; a statement outside of a snapshot is a snapshot by itself."""

    def mark(self) -> Mark:
        """Begin a request; gives the mark of the state that it sees, or of an earlier one."""

    def fetch_marked(self, statements: Sequence[Statement]) -> tuple[list[list[Row]], Mark]:
        """Run queries as `fetch_each` does, if there are any; also give the mark of the state that the first one saw.

        The mark is None if the engine cannot tell, and if the first query has no row.
        """

    def snapshot(self) -> AbstractContextManager[Connection]:
        """Give a connection whose reads all see one state of the store."""

    def close(self) -> None:
        """Close every connection."""


class Database(Served, Protocol):
    """A store, on one server or in a file. Transactions do not nest."""

    def transaction(self) -> AbstractContextManager[Connection]:
        """Give a connection whose writes become durable together at the end, or not at all."""

    def alone(self) -> AbstractContextManager[Connection]:
        """Give a separate connection outside of any transaction, on which a lock is held until the block ends."""

    def empty_log(self) -> None:
        """Remove deleted data from the log that the engine keeps, too, unless others read or write for long."""

    def vacuum(self) -> None:
        """Rewrite the store's file, so that nothing deleted is left in it; raises StoreError if it is not in a file."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a process's use of a store; times are milliseconds, and 0 is no limit.

    For a store in a file only `statement_timeout_ms` matters.
    """

    pool_size: int = 4
    pool_timeout_ms: int = 1_000
    """How long a thread waits for a connection when all are in use."""
    connect_timeout_ms: int = 2_000
    """For each host of the URL; whole seconds, and at least two."""
    statement_timeout_ms: int = 2_000
    """For a store opened to read."""
    write_timeout_ms: int = 60_000
    """The same for one opened to write."""
    lifetime_ms: int = 1_800_000
    """After this time a connection is replaced, so that all reach a server that takes over, or joins."""
    prepare: bool = True
    """Whether statements are prepared, which PgBouncer before 1.21 does not support."""

    def threads(self, servers: int) -> int:
        """Give how many a process needs: per server, some use connections and as many wait for one; two are spare."""
        return 2 * self.pool_size * servers + 2


PATIENT: Final = Bounds(statement_timeout_ms=0, write_timeout_ms=0)
"""For commands that read or write a whole store."""


def read(database: Served, work: Callable[[Connection], T]) -> T:
    """Run `work`, which only reads, in a snapshot, and again in another one if it was lost; raises Unavailable."""
    return in_transaction(database.snapshot, work)


def in_transaction(begin: Callable[[], AbstractContextManager[Connection]], work: Callable[[Connection], T]) -> T:
    """Run `work` in a transaction, and all of it again, in another one, if that was lost; raises Unavailable.

    So `work` may run several times.
    A transaction that writes counts as lost only if nothing of it was stored: its connection broke before the commit,
    or it was rolled back so that another one could go on.
    """

    def attempt() -> T:
        with begin() as connection:
            return work(connection)

    return retry_lost(attempt)


def retry_lost(work: Callable[[], T]) -> T:
    """Run `work`, and again if it was lost, which does not mean that the server is unreachable; raises Unavailable."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(Lost):
            return work()
    return work()
