"""A store and its replicas as one read-only store: chooses which of them to ask."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import count
from time import monotonic
from typing import TypeVar

from laudo.core.sql import POSTGRES, Dialect, Statement
from laudo.server.database import Bounds, Busy, Connection, Database, Lost, Mark, Row, Slow, StoreError, Unavailable
from laudo.server.heartbeats import Report, Server, Watch
from laudo.server.stores import open_store

T = TypeVar("T")


class Replicas:
    """A primary and its replicas; only the heartbeat is written.

    Requests go to the fresh replicas in turn. If none is fresh, they go to the primary; while that does not answer, to
    the replicas that do not lag behind the others. What fails on one server is retried on another, and a replica that
    has failed is not asked until a check succeeds.
    """

    dialect: Dialect = POSTGRES

    def __init__(
        self, primary: str, replicas: Sequence[str], *, lag_ms: int, bounds: Bounds, report: Report | None = None
    ) -> None:
        """Connect to each URL once, so that a wrong one is found now; raises StoreError unless its server is away."""
        # A request that finds no free connection to one server waits at the next one, but no longer in total.
        server_bounds = replace(bounds, pool_timeout_ms=max(1, bounds.pool_timeout_ms // (len(replicas) + 1)))
        with ExitStack() as stack:
            self._primary, *self._replicas = (
                Server(number, url, stack.enter_context(closing(_open(number, url, server_bounds))))
                for number, url in enumerate([primary, *replicas])
            )
            self._connections = stack.pop_all()
        self._watch = Watch(self._primary, self._replicas, lag_ms=lag_ms, bounds=bounds, report=report)
        self._lag_ms = lag_ms
        self._turns = count()
        self._turn = threading.local()

    def __repr__(self) -> str:
        """Show no password."""
        return f"Replicas({self._primary.database!r}, {len(self._replicas)})"

    def fetch(self, statement: Statement) -> list[Row]:
        """Run one statement in a snapshot of its own; raises Unavailable, StoreError."""
        return self._ask(lambda server: server.database.fetch(statement))

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run some queries on one server, each in a snapshot of its own; raises Unavailable, StoreError."""
        return self._ask(lambda server: server.database.fetch_each(statements))

    def fetch_marked(self, statements: Sequence[Statement]) -> tuple[list[list[Row]], Mark]:
        """Do the same, and give the mark of the state that this server shows."""
        return self._ask(lambda server: server.database.fetch_marked(statements))

    def mark(self) -> None:
        """Begin a request, whose statements in this thread all go to one server; there is no mark without a query."""
        self._turn.number = next(self._turns)

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Give a connection whose reads all see one state of one server; raises Lost if it fails, to be retried."""
        server, stack, connection = self._ask(_enter_snapshot)
        try:
            with stack:
                yield connection
        except Slow:
            raise
        except StoreError as error:
            self._suspend(server)
            raise Lost(*error.args) from error

    def close(self) -> None:
        """End the checks, and close every connection."""
        self._watch.close()
        self._connections.close()

    def _ask(self, work: Callable[[Server], T]) -> T:
        self._watch.start()
        failure: StoreError = Unavailable("no server of the store answers")
        tried: list[Server] = []
        while server := self._next_server(tried):
            tried.append(server)
            try:
                return work(server)
            except Slow:
                raise
            except Busy as error:
                failure = error
            except StoreError as error:
                failure = error
                self._suspend(server)
        raise failure

    def _next_server(self, tried: Sequence[Server]) -> Server | None:
        """Give the server to ask next, None when all that may be asked have been tried."""
        answering = [replica for replica in self._replicas if replica.answers and replica not in tried]
        oldest = monotonic() - self._lag_ms / 1000
        candidates = [replica for replica in answering if replica.as_of >= oldest]
        if not candidates and not self._primary.answers:
            newest = max((replica.shown for replica in answering), default=0)
            candidates = [replica for replica in answering if replica.shown >= newest - self._lag_ms]
        if candidates:
            return candidates[getattr(self._turn, "number", 0) % len(candidates)]
        return None if self._primary in tried else self._primary

    def _suspend(self, server: Server) -> None:
        """Ask a replica no more until it has been checked; only a check may find that the primary does not answer."""
        if server is not self._primary:
            server.answers = False


def _enter_snapshot(server: Server) -> tuple[Server, ExitStack, Connection]:
    stack = ExitStack()
    return server, stack, stack.enter_context(server.database.snapshot())


def _open(number: int, url: str, bounds: Bounds) -> Database:
    """Open the primary, number 0, or a replica; an error of a replica names the number of its URL."""
    try:
        return open_store(url, bounds=bounds)
    except StoreError as error:
        if number:
            error.args = (f"URL {number} of read_store: {error.args[0]}", *error.args[1:])
        raise
