"""Watches a primary and its replicas: which of them answer, and how fresh each replica is known to be.

Each worker writes heartbeats to the primary, several within the allowed lag, and remembers by its own clock when it
sent each one. A replica that shows this heartbeat, or a later one, shows everything that was durable at that moment.
So no two clocks are ever compared. This is true only of a physical copy: another store has its own heartbeats.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from enum import Enum
from functools import partial
from math import inf
from time import monotonic, time_ns
from typing import Final

from laudo.core.sql import Statement
from laudo.server import logs
from laudo.server.database import Bounds, Busy, Database, Lost, Row, Slow, StoreError, Unavailable, retry_lost
from laudo.server.stores import open_store

Report = Callable[[int, float], None]
"""(number of a replica, from 1; seconds by which it may lag) -> None."""


class State(Enum):
    """What a check has found, in the words of the notice that is written when it changes."""

    HEALTHY = "is well again"
    LAGS = "lags and is not used for now"
    FOREIGN = "belongs to another store and is not used"
    AWAY = "does not answer"
    UNPROVEN = "accepts no heartbeat, so no replica is known to be fresh"


class Server:
    """The primary, number 0, or a replica: its connections for requests, and what the last check found."""

    def __init__(self, number: int, url: str, database: Database) -> None:
        """Until the first check, a replica counts as not answering, and the primary as answering."""
        self.number = number
        self.url = url
        self.database = database
        self.answers = number == 0
        self.shown = 0
        """The heartbeat that it shows: roughly, milliseconds since 1970."""
        self.as_of = -inf
        """The latest moment, by the clock `monotonic`, up to which it is known to show everything."""
        self.origin = _ORIGIN
        """The statement that asks for the origin of the heartbeat that it shows."""
        self.checked = threading.Event()
        self.watched_since = monotonic()
        self._announced = State.HEALTHY

    def lag(self) -> float:
        """Give the seconds by which it may lag, at most those for which it has been watched."""
        return monotonic() - max(self.as_of, self.watched_since)

    def announce(self, state: State, reason: str) -> None:
        """Report a change of state in one line on standard error, without user or password."""
        if state is not self._announced:
            self._announced = state
            name = f"replica {self.number}" if self.number else "primary"
            logs.notice(f"store: the {name} {state.value}{reason and ': '}{reason}")


class Watch:
    """Checks each server in its own thread, over its own connection: one that hangs delays no other check."""

    def __init__(
        self, primary: Server, replicas: Sequence[Server], *, lag_ms: int, bounds: Bounds, report: Report | None
    ) -> None:
        """Check several times within `lag_ms`; `bounds` are those of requests."""
        self._primary = primary
        self._replicas = replicas
        self._lag_ms = lag_ms
        self._pause = min(_PAUSE_SECONDS, lag_ms / 1000 / _CHECKS_IN_LAG)
        self._bounds = replace(bounds, pool_size=1, statement_timeout_ms=_CHECK_MS, write_timeout_ms=_CHECK_MS)
        self._beats = _Beats()
        self._origin: Row = ()
        """Origin of the primary's heartbeat, as last found; empty before."""
        self._primary_start: int | None = None
        """When the primary was started, as found last."""
        self._earlier_starts: dict[int, int] = {}
        """Each earlier start of the primary -> the last heartbeat written before the next start."""
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._report = report

    def start(self) -> None:
        """Start the threads at the first read, after the worker was forked; wait briefly for first results."""
        if self._threads or self._stopped.is_set():
            return
        with self._starting:
            if self._threads:
                return
            servers = (self._primary, *self._replicas)
            for server in servers:
                server.watched_since = monotonic()
            threads = [threading.Thread(target=self._run, args=(server,), daemon=True) for server in servers]
            for thread in threads:
                thread.start()
            deadline = monotonic() + _FIRST_SECONDS
            for server in servers:
                server.checked.wait(max(0.0, deadline - monotonic()))
            self._threads = threads

    def close(self) -> None:
        """End the threads, after the checks that are under way."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(_END_SECONDS)

    def _run(self, server: Server) -> None:
        check = partial(self._check_replica, server) if server.number else self._write_heartbeat
        with ExitStack() as stack:
            database: Database | None = None
            while True:
                try:
                    if database is None:
                        opened = open_store(server.url, write=server.number == 0, bounds=self._bounds)
                        database = stack.enter_context(closing(opened))
                    state, reason = retry_lost(partial(check, database))
                    server.answers = state is not State.FOREIGN
                except Exception as error:  # noqa: BLE001 - a thread that ended would leave its server unwatched
                    server.answers = server.number == 0 and not _is_away(error)
                    state = State.UNPROVEN if server.answers else State.AWAY
                    reason = error.reason if isinstance(error, StoreError) else type(error).__name__
                server.announce(state, reason)
                if self._report and server.number:
                    with suppress(OSError):
                        self._report(server.number, server.lag())
                server.checked.set()
                if self._stopped.wait(self._seconds_to_next(server, state)):
                    return

    def _write_heartbeat(self, database: Database) -> "_Found":
        """Write a heartbeat; raises StoreError if the primary answers neither that nor a query."""
        sent = monotonic()
        [(started,)], [self._origin] = _with_origin(self._primary, database, _STARTED)
        try:
            with database.transaction() as connection:
                connection.fetch(_LOCAL_COMMIT)
                [(last, previous_start)] = connection.fetch(_SHOWN)
                connection.fetch(Statement(_BEAT, (time_ns() // 1_000_000,)))
                if previous_start != started:
                    connection.fetch(Statement(_SAVE, (2, started)))
                    if previous_start is not None:
                        connection.fetch(Statement(_SAVE, (previous_start, last)))
                if self._primary_start != started:
                    self._earlier_starts = dict(connection.fetch(_EARLIER_STARTS))
                    self._primary_start = started
                [(beat, _)] = connection.fetch(_SHOWN)
        except Lost:
            raise
        except StoreError as error:
            database.fetch(_SHOWN)
            return State.UNPROVEN, error.reason
        self._beats.add(beat, sent)
        return State.HEALTHY, ""

    def _check_replica(self, server: Server, database: Database) -> "_Found":
        """Look up which heartbeat a replica shows, and whose; raises StoreError when it does not answer."""
        last_beat = self._beats.last()
        [(shown, started)], [(is_replica,)], [origin] = _with_origin(server, database, _SHOWN, _IS_REPLICA)
        as_of = self._beats.moment(shown)
        # Compared only now: if one of our heartbeats was found above, its origin is known.
        if not _is_same(origin, self._origin):
            server.shown, server.as_of = 0, -inf
            return State.FOREIGN, f"{server.database} is not a streaming replica of {self._primary.database}"
        may_have_diverged = self._primary_start not in {None, started} and shown > self._earlier_starts.get(started, -1)
        # A replica that was fresh before may have become the primary, without this worker being informed.
        if server.as_of == -inf:
            if may_have_diverged and started is not None:
                return State.FOREIGN, f"{server.database} shows data that was written on another server"
            if not is_replica and shown < last_beat:
                return State.FOREIGN, f"{server.database} has been promoted and is no longer a replica"
        # One that may have diverged does not show the primary's last start, or not yet: what is known of it stays.
        if not may_have_diverged:
            server.shown, server.as_of = shown, as_of
        return (State.LAGS, f"by {server.lag():.1f} s") if self._lags(server) else (State.HEALTHY, "")

    def _lags(self, server: Server) -> bool:
        return self._primary.answers and server.lag() * 1000 > self._lag_ms

    def _seconds_to_next(self, server: Server, state: State) -> float:
        """Give the seconds until the next check: fewer if the server may have recovered by then."""
        is_settled = state is not State.AWAY if server.number == 0 else state is State.HEALTHY and server.as_of > -inf
        return self._pause if is_settled else min(self._pause, _SOON_SECONDS)


class _Beats:
    """The last heartbeats that this process has written, and when it sent them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: deque[tuple[int, float]] = deque(maxlen=_REMEMBERED)

    def add(self, beat: int, sent: float) -> None:
        with self._lock:
            self._sent.append((beat, sent))

    def last(self) -> int:
        """Give the last one, 0 before the first."""
        with self._lock:
            return self._sent[-1][0] if self._sent else 0

    def moment(self, shown: int) -> float:
        """Give the latest moment up to which a replica with this heartbeat shows all that was durable."""
        with self._lock:
            return next((sent for beat, sent in reversed(self._sent) if beat <= shown), -inf)


def _with_origin(server: Server, database: Database, *statements: Statement) -> list[list[Row]]:
    """Run queries, and one for the heartbeat's origin; a rougher one if the user may not read the system identifier.

    A refusal is remembered, since each one is a line in the server's log.
    """
    try:
        return database.fetch_each((*statements, server.origin))
    except Unavailable:
        raise
    except StoreError:
        found = database.fetch_each((*statements, _ROUGH_ORIGIN))
        server.origin = _ROUGH_ORIGIN
        return found


def _is_same(origin: Row, other: Row) -> bool:
    """Tell whether two origins are the same, as far as both are known."""
    return all(one == another for one, another in zip(origin, other, strict=False) if None not in {one, another})


def _is_away(error: Exception) -> bool:
    """Tell whether a server is unreachable, so that stale replicas may answer; one that refuses a user is not."""
    return isinstance(error, Unavailable) and not isinstance(error, Busy | Slow)


_Found = tuple[State, str]

_CHECKS_IN_LAG: Final = 5
_PAUSE_SECONDS: Final = 1.0
_SOON_SECONDS: Final = 0.25
_CHECK_MS: Final = 1_000
_FIRST_SECONDS: Final = 1.0
_END_SECONDS: Final = 5.0
_REMEMBERED: Final = 4_096

_SHOWN: Final = Statement(
    """
SELECT coalesce(max(at_ms) FILTER (WHERE id = 1), 0), max(at_ms) FILTER (WHERE id = 2) FROM heartbeat WHERE id <= 2
"""
)
"""The heartbeat, and the start of the primary that wrote it, by which a promoted copy is recognized."""
_EARLIER_STARTS: Final = Statement("SELECT id, at_ms FROM heartbeat WHERE id > 2")
"""Earlier starts with their last heartbeats: a lagging replica may show such a one, a promoted copy a later one."""
_STARTED: Final = Statement("SELECT CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS bigint)")
"""When a server was started: no two copies of a store are started in the same microsecond."""
_IS_REPLICA: Final = Statement("SELECT pg_is_in_recovery()")
"""Whether it is a replica that is not promoted; of other servers, only the primary itself shows each heartbeat."""
_ORIGIN: Final = Statement(
    """
SELECT (SELECT system_identifier FROM pg_control_system()), to_regclass('heartbeat')::oid,
       (SELECT oid FROM pg_database WHERE datname = current_database())
"""
)
"""The heartbeat's origin: the same on a server and its streaming replicas, even promoted ones, and nowhere else."""
_ROUGH_ORIGIN: Final = Statement(
    _ORIGIN.text.replace("(SELECT system_identifier FROM pg_control_system())", "NULL::bigint")
)
_LOCAL_COMMIT: Final = Statement("SET LOCAL synchronous_commit = local")
"""A heartbeat does not wait for synchronous standbys: if one is lost, the other replicas are as fresh as before."""
_BEAT: Final = """
INSERT INTO heartbeat (id, at_ms) VALUES (1, ?)
ON CONFLICT (id) DO UPDATE SET at_ms = greatest(heartbeat.at_ms + 1, excluded.at_ms)
"""
"""Every write increases it, whoever writes and however wrong a clock is: its order is that of the writes."""

_SAVE: Final = "INSERT INTO heartbeat (id, at_ms) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms"
