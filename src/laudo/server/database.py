"""How the rest reaches a store: the protocol that both engines keep, and what they raise."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from laudo.core.sql import Dialect, Statement, Write

Row = tuple[Any, ...]
T = TypeVar("T")

NO_SCHEMA: Final = "the store has no schema, or an older one; run `laudo migrate`"
LOCKED: Final = "the store is locked by another writer; try again when it has finished"
WAITS: Final = "waiting for another process that writes to the store; Ctrl-C ends the wait"
"""What both engines say."""

NO_VACUUM: Final = (
    "only a SQLite file is written anew so; hint: who owns the tables of a PostgreSQL store runs VACUUM FULL, see"
    " docs/operating.md, A person's data"
)
"""Nobody could ask a server meanwhile."""

SILENT_SECONDS: Final = 2
"""A wait for another writer that is longer is told: other imports write for about a second at once."""

_ATTEMPTS: Final = 3
"""At what is lost: the second finds no old connection, but may meet one that is closing, or another transaction."""


class StoreError(Exception):
    """The store cannot be used; the text says what is wrong and what to do. A second one is what its server said."""

    def __str__(self) -> str:
        """Give both texts."""
        return ": ".join(self.args)

    @property
    def reason(self) -> str:
        """The text that is ours, for a log: what a server said may hold anything."""
        return str(self.args[0])


class WordsDamagedError(StoreError):
    """The index of persons' words cannot be read or written; it can be made anew of the persons."""


class Unavailable(StoreError):  # noqa: N818 - a state of the store, not a mistake
    """The store does not answer now; the same call may succeed later."""


class Locked(Unavailable):
    """Somebody else holds what was asked for, and did so for as long as this one waits."""


class Busy(Unavailable):
    """No connection to the server is free; it may be well all the same, and others too."""


class Slow(Unavailable):
    """A statement took longer than it may; on another server of the store it would as well."""


class Lost(Unavailable):
    """The connection was lost in the midst of a transaction, or the store has undone it: all of it may be repeated."""


class Undone(Lost):
    """The store has undone it because of another one, and goes on."""


class Doubtful(Unavailable):
    """The connection was lost as a transaction ended: whether it is stored is not known."""


Mark = bytes | None
"""Equal as long as nothing in a store has changed; None from an engine that cannot tell, or not without being asked."""


class Reader(Protocol):
    """What answers a statement: a store, or one transaction of it."""

    @property
    def dialect(self) -> Dialect:
        """How statements are written for this engine."""

    def fetch(self, statement: Statement) -> list[Row]:
        """Run one statement and give its rows, none if it has none; a list among its parameters is one array."""

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run some queries, in one round trip where there is one."""


class Connection(Reader, Protocol):
    """One snapshot, or one write transaction, of a store."""

    def write(self, write: Write, rows: Iterable[Row]) -> None:
        """Write rows, all of one organization; none is fine."""

    def hold(self, name: str, *, patient: bool = True) -> None:
        """Wait until no other transaction holds this name, and hold it until this one ends: before the first read.

        Who is not patient raises Locked while another holds it.
        """

    def run_script(self, text: str) -> None:
        """Run several statements without parameters."""

    def has_column(self, table: str, name: str) -> bool:
        """Tell whether the store has a table with this column: another application's may bear the same name."""


class Served(Reader, Protocol):
    """What requests are answered from. Each statement of its own is a snapshot by itself."""

    def mark(self) -> Mark:
        """Begin a request, and mark the state it sees, or one before it: under the same mark nothing has changed."""

    def fetch_marked(self, statements: Sequence[Statement]) -> tuple[list[list[Row]], Mark]:
        """Run some queries as `fetch_each` does, or none, and mark the state that the first one saw.

        None from an engine that cannot tell, and where the first query has no row.
        """

    def snapshot(self) -> AbstractContextManager[Connection]:
        """Give a connection whose reads all see one state of the store."""

    def close(self) -> None:
        """Let go of every connection."""


class Database(Served, Protocol):
    """A store, on one server or in a file. Transactions do not nest."""

    def transaction(self) -> AbstractContextManager[Connection]:
        """Give a connection whose writes become durable together at the end, or not at all."""

    def alone(self) -> AbstractContextManager[Connection]:
        """Give a connection of its own, outside of any transaction, where a name is held until the block ends."""

    def settle(self) -> None:
        """Have what was deleted leave what the engine keeps beside its files, unless others read or write for long."""

    def vacuum(self) -> None:
        """Write a file anew, so that it has nothing of what was deleted; raises StoreError for what is no file."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a process asks of a store, and for how long; times are milliseconds, 0 stands for no end.

    Of a file only the time of a statement matters.
    """

    pool_size: int = 4
    pool_timeout_ms: int = 1_000
    """How long a thread waits for a connection when all are in use."""
    connect_timeout_ms: int = 2_000
    """For each host of the URL; whole seconds, and not below two."""
    statement_timeout_ms: int = 2_000
    """Of a store opened to read."""
    write_timeout_ms: int = 60_000
    """The same, of one opened to write."""
    lifetime_ms: int = 1_800_000
    """After which a connection is made anew, so that all come to a server that takes over, or joins."""
    prepare: bool = True
    """Whether statements are prepared, which PgBouncer before 1.21 cannot bear."""

    def threads(self, servers: int) -> int:
        """Give how many a process needs: of each server some use connections and as many wait for one; two are free."""
        return 2 * self.pool_size * servers + 2


PATIENT: Final = Bounds(statement_timeout_ms=0, write_timeout_ms=0)
"""For commands that read or write a whole store."""


def read(database: Served, work: Callable[[Connection], T]) -> T:
    """Do in a snapshot what only reads, and again in another one when it was lost; raises Unavailable."""
    return repeated(database.snapshot, work)


def repeated(begin: Callable[[], AbstractContextManager[Connection]], work: Callable[[Connection], T]) -> T:
    """Do something in a transaction, and all of it again in another one when it was lost; raises Unavailable.

    A transaction that writes is lost only when nothing of it was stored: its connection was gone before its end, or it
    was undone so that another one could go on.
    """

    def attempt() -> T:
        with begin() as connection:
            return work(connection)

    return again(attempt)


def again(work: Callable[[], T]) -> T:
    """Do something, and again when it was lost, which is no sign that the server is away; raises Unavailable."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(Lost):
            return work()
    return work()
