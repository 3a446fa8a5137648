"""Watches a primary and its replicas: which of them answer, and what each replica is known to show.

Each worker writes a heartbeat on the primary, several times within the lag that is allowed, and remembers by its own
clock when it did. A replica that shows this heartbeat, or a later one, shows all that was durable at that moment: so
no two clocks are ever compared. That holds of a physical copy alone: another store has heartbeats of its own.
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
from laudo.server.database import Bounds, Busy, Database, Lost, Row, Slow, StoreError, Unavailable, again
from laudo.server.stores import open_store

Report = Callable[[int, float], None]
"""(number of a replica, from 1; seconds by which it may be behind) -> None."""


class State(Enum):
    """What a check has found, as it is told when it was otherwise before."""

    WELL = "is well again"
    LAGS = "lags, and is not asked for now"
    FOREIGN = "is of another store, and is not asked"
    AWAY = "does not answer"
    UNPROVEN = "takes no heartbeat, so that no replica can be known to be fresh"


class Server:
    """The primary, number 0, or a replica: the connections for requests, and what was found of it last."""

    def __init__(self, number: int, url: str, database: Database) -> None:
        """Take a replica for one that does not answer, and the primary for one that does, until it is checked."""
        self.number = number
        self.url = url
        self.database = database
        self.answers = number == 0
        self.shown = 0
        """The heartbeat that it shows: roughly, milliseconds since 1970."""
        self.as_of = -inf
        """The latest moment of which it is known to show all, by the clock `monotonic`."""
        self.origin = _ORIGIN
        """What asks for it whose heartbeat it shows."""
        self.checked = threading.Event()
        self.watched_since = monotonic()
        self._told = State.WELL

    def behind(self) -> float:
        """Give the seconds by which it may be behind, as far as it has been watched."""
        return monotonic() - max(self.as_of, self.watched_since)

    def tell(self, state: State, reason: str) -> None:
        """Say what has changed in one line on standard error, without user or password."""
        if state is not self._told:
            self._told = state
            name = f"replica {self.number}" if self.number else "primary"
            logs.notice(f"store: the {name} {state.value}{reason and ': '}{reason}")


class Watch:
    """Checks each server in a thread of its own, over a connection of its own: one that hangs delays no other's."""

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
        """Of the primary's heartbeat, as it was found last; nothing before."""
        self._started: int | None = None
        """When the primary started, as it was found last."""
        self._ended: dict[int, int] = {}
        """Each of its earlier starts, with the last heartbeat that it wrote before the next one."""
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._report = report

    def start(self) -> None:
        """Begin with the first read, hence not before a worker has forked; wait a little for what is found first."""
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
            ends = monotonic() + _FIRST_SECONDS
            for server in servers:
                server.checked.wait(max(0.0, ends - monotonic()))
            self._threads = threads

    def close(self) -> None:
        """End the threads, which takes as long as the check that a server hangs in."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(_END_SECONDS)

    def _run(self, server: Server) -> None:
        check = partial(self._look, server) if server.number else self._beat
        with ExitStack() as stack:
            database: Database | None = None
            while True:
                try:
                    if database is None:
                        opened = open_store(server.url, write=server.number == 0, bounds=self._bounds)
                        database = stack.enter_context(closing(opened))
                    state, reason = again(partial(check, database))
                    server.answers = state is not State.FOREIGN
                except Exception as error:  # noqa: BLE001 - a thread that ended would leave its server unwatched
                    server.answers = server.number == 0 and not _is_away(error)
                    state = State.UNPROVEN if server.answers else State.AWAY
                    reason = error.reason if isinstance(error, StoreError) else type(error).__name__
                server.tell(state, reason)
                if self._report and server.number:
                    with suppress(OSError):
                        self._report(server.number, server.behind())
                server.checked.set()
                if self._stopped.wait(self._until_next(server, state)):
                    return

    def _beat(self, database: Database) -> "_Found":
        """Write a heartbeat; raises StoreError when the primary answers neither that nor a question."""
        sent = monotonic()
        [(started,)], [self._origin] = _with_origin(self._primary, database, _STARTED)
        try:
            with database.transaction() as connection:
                connection.fetch(_ALONE)
                [(last, former)] = connection.fetch(_SHOWN)
                connection.fetch(Statement(_BEAT, (time_ns() // 1_000_000,)))
                if former != started:
                    connection.fetch(Statement(_KEEP, (2, started)))
                    if former is not None:
                        connection.fetch(Statement(_KEEP, (former, last)))
                if self._started != started:
                    self._ended = dict(connection.fetch(_ENDED))
                    self._started = started
                [(beat, _)] = connection.fetch(_SHOWN)
        except Lost:
            raise
        except StoreError as error:
            database.fetch(_SHOWN)
            return State.UNPROVEN, error.reason
        self._beats.add(beat, sent)
        return State.WELL, ""

    def _look(self, server: Server, database: Database) -> "_Found":
        """Look up which heartbeat a replica shows, and whose; raises StoreError when it does not answer."""
        before = self._beats.last()
        [(shown, started)], [(replays,)], [origin] = _with_origin(server, database, _SHOWN, _REPLAYS)
        as_of = self._beats.moment(shown)
        # Only now: where a heartbeat of ours was found, it is known whose.
        if not _is_same(origin, self._origin):
            server.shown, server.as_of = 0, -inf
            return State.FOREIGN, f"{server.database} is no streaming replica of {self._primary.database}"
        is_apart = self._started not in {None, started} and shown > self._ended.get(started, -1)
        # One that has been fresh before may be the next primary, of which this worker is not told.
        if server.as_of == -inf:
            if is_apart and started is not None:
                return State.FOREIGN, f"{server.database} shows what was written on another server"
            if not replays and shown < before:
                return State.FOREIGN, f"{server.database} has been promoted, and is no replica any more"
        # Else it does not show yet that the primary was ever started, or never will: what is known of it stays.
        if not is_apart:
            server.shown, server.as_of = shown, as_of
        return (State.LAGS, f"by {server.behind():.1f} s") if self._lags(server) else (State.WELL, "")

    def _lags(self, server: Server) -> bool:
        return self._primary.answers and server.behind() * 1000 > self._lag_ms

    def _until_next(self, server: Server, state: State) -> float:
        """Give the seconds until the next check: soon, if the next one may find it better; of a right, not so soon."""
        is_settled = state is not State.AWAY if server.number == 0 else state is State.WELL and server.as_of > -inf
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
        """Give the latest moment of which a replica with this heartbeat shows all that was durable then."""
        with self._lock:
            return next((sent for beat, sent in reversed(self._sent) if beat <= shown), -inf)


def _with_origin(server: Server, database: Database, *statements: Statement) -> list[list[Row]]:
    """Ask something, and for the origin of the heartbeat: less exactly, where the user may not know of the server's.

    Found out once: each refusal is a line in the server's log.
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
    """Tell whether two origins are one, as far as both are known."""
    return all(one == another for one, another in zip(origin, other, strict=False) if None not in {one, another})


def _is_away(error: Exception) -> bool:
    """Tell whether a server is away, in the place of which stale replicas may answer; not one that refuses a user."""
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
"""The heartbeat, and the start of the primary that wrote it, by which a copy that has become one is told."""
_ENDED: Final = Statement("SELECT id, at_ms FROM heartbeat WHERE id > 2")
"""Its earlier starts, which a replica that lags may still show; of a copy, the heartbeat is one that came later."""
_STARTED: Final = Statement("SELECT CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS bigint)")
"""When a server was started: no two, of all copies of a store, in the same microsecond."""
_REPLAYS: Final = Statement("SELECT pg_is_in_recovery()")
"""What a replica does until it is promoted; only the primary itself shows each heartbeat without."""
_ORIGIN: Final = Statement(
    """
SELECT (SELECT system_identifier FROM pg_control_system()), to_regclass('heartbeat')::oid,
       (SELECT oid FROM pg_database WHERE datname = current_database())
"""
)
"""Whose heartbeat it is: the same on a server and its streaming replicas, whichever is promoted, and nowhere else."""
_ROUGH_ORIGIN: Final = Statement(
    _ORIGIN.text.replace("(SELECT system_identifier FROM pg_control_system())", "NULL::bigint")
)
_ALONE: Final = Statement("SET LOCAL synchronous_commit = local")
"""A heartbeat waits for no synchronous standby: once one is lost, the other replicas are as fresh as before."""
_BEAT: Final = """
INSERT INTO heartbeat (id, at_ms) VALUES (1, ?)
ON CONFLICT (id) DO UPDATE SET at_ms = greatest(heartbeat.at_ms + 1, excluded.at_ms)
"""
"""Every write makes it larger, whoever writes and however wrong a clock is, so that its order is that of the writes."""

_KEEP: Final = "INSERT INTO heartbeat (id, at_ms) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms"
