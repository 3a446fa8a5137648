"""One connection to PostgreSQL: sends statements, several in one round trip, and waits no longer than it may.

It uses libpq itself, through psycopg.pq: psycopg's cursors have no deadline, and begin a transaction in a round trip of
its own. A statement costs 10 µs of CPU instead of 13.5, a snapshot of one statement 19 instead of 41.
"""

import select
from collections.abc import Sequence
from hashlib import blake2b
from itertools import count
from time import monotonic
from typing import Any, Final, Self

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.pq.abc import PGconn, PGresult
from psycopg.types.string import ByteaBinaryLoader

from laudo.server import logs
from laudo.server.database import SILENT_SECONDS, WAITS, Lost, Row, StoreError, Unavailable
from laudo.server.postgres import address, failures
from laudo.server.postgres.binding import bound, numbered

_MAX_PREPARED: Final = 1000
"""Limit of the statements that a connection keeps prepared; their texts are made of constants, so there are fewer."""

_SYNC: Final = int(pq.ExecStatus.PIPELINE_SYNC)
_FAILED: Final = int(pq.ExecStatus.FATAL_ERROR)

_MARGIN_MS: Final = 500
"""How much longer than the limit of its statements the server may be silent before it counts as hung."""

_ENDS: Final = (b"COMMIT", b"ROLLBACK")
"""Never prepared: even if PgBouncer does not know what was prepared, a failed transaction must end."""

_INSTANT: Final = (b"BEGIN", *_ENDS)
"""Beginnings of the statements that take no time, and so do not extend the wait for an answer."""

_SET_PLAN_MODE: Final = """
SELECT set_config('plan_cache_mode', CASE WHEN 1000 <= (
  SELECT min(reltuples) FROM pg_class WHERE oid = to_regclass('relatorio')
    OR (oid IN (to_regclass('tally'), to_regclass('pessoa')) AND 262144 <= pg_relation_size(oid))
) THEN 'force_generic_plan' ELSE ? END, false)
WHERE current_setting('plan_cache_mode') = 'auto'
"""
"""Makes the server plan each statement once if the tables are large; by default it plans most at each request.

That takes longer than running them, and finds the same plan, or a worse one: for an account that is newer than the
statistics it expects no rows, and takes any index. But a plan made for small tables, or before statistics tell that
they are large, would stay when they have grown. A table that really is small does not matter: a store may have no
persons. Another mode that somebody has set stays, as Citus needs it.
"""


class Hung(Unavailable):
    """The server has been silent for longer than the statements sent to it may take."""


class Session:
    """A connection for one thread at a time; after an interrupted exchange it is `broken`, and must be closed."""

    def __init__(self, connection: psycopg.Connection[Any], *, limit_ms: int, prepare: bool) -> None:
        """`limit_ms` is the server's time limit for each statement; this side waits as long, with 0 without limit."""
        self._connection = connection
        self._libpq: PGconn = connection.pgconn
        connection.adapters.register_loader("varchar", ByteaBinaryLoader)  # a page's items, sent as they are
        self._loader = Transformer(connection)
        self._poll = select.poll()
        self._poll.register(self._libpq.socket, select.POLLIN)
        self._limit_ms = limit_ms
        self._sent = 0
        self._prepare = prepare
        self._prepared: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._unconfirmed: list[tuple[bytes, tuple[int, ...]]] = []
        self._names = count()
        self._pending_syncs = 0
        self._reports_wait = False
        self._has_reported_wait = False
        self.generation = 0
        self.opened_at = monotonic()
        self.broken = False
        self.hung = False
        self._exchange = _Exchange(self)
        self._libpq.enter_pipeline_mode()

    @classmethod
    def open(cls, conninfo: str, *, limit_ms: int, prepare: bool, plan_mode: str) -> Self:
        """Connect; the server plans each prepared statement once if the store is large, else as `plan_mode` says.

        Raises Unavailable (Hung, if there was no answer), or StoreError if trying again would not help.
        """
        try:
            connection = psycopg.Connection.connect(conninfo, autocommit=True)
        except psycopg.errors.ConnectionTimeout as error:
            raise Hung(failures.HUNG) from error
        except psycopg.Error as error:
            raise failures.refused(error) from error
        except UnicodeError:
            raise StoreError(failures.NO_HOST) from None
        try:
            failures.require_supported(connection.pgconn, address.display_name(conninfo))
            session = cls(connection, limit_ms=limit_ms, prepare=prepare)
            if prepare:
                session.send(_SET_PLAN_MODE, (plan_mode,))
                session.receive()
        except BaseException:
            connection.close()
            raise
        return session

    @property
    def is_failed(self) -> bool:
        """Tell whether a statement has failed in the transaction, which can then only be rolled back."""
        return self._libpq.transaction_status == pq.TransactionStatus.INERROR

    def send(self, text: str, params: Sequence[Any] = ()) -> None:
        """Send a statement after those already sent; `receive` gives the rows of the last one."""
        query = numbered(text)
        types, values, formats = bound(params)
        self._sent += not query.startswith(_INSTANT)
        with self._exchange:
            name = self._prepared_name(query, types)
            if name is None:
                self._libpq.send_query_params(query, values, types, formats, pq.Format.BINARY)
            else:
                self._libpq.send_query_prepared(name, values, formats, pq.Format.BINARY)

    def push(self) -> None:
        """Let the server begin to run what was sent, without waiting for it."""
        with self._exchange:
            self._flush()

    def ignore_answers(self) -> None:
        """Let the server run what was sent, without waiting; its answers are skipped when the next ones are read.

        Statements that were sent to be prepared may have failed, so they are prepared again.
        """
        with self._exchange:
            self._libpq.pipeline_sync()
            self._flush()
            self._pending_syncs += 1
        self._forget_unconfirmed()

    def receive(self) -> list[Row]:
        """Wait until what was sent is done, and give the rows of its last statement; raises the first failure."""
        return self._rows_of(self._receive_answers()[-1:])

    def receive_lock(self) -> list[Row]:
        """Do the same for a lock that others may hold; a long wait without a limit is reported, once."""
        self._reports_wait = not self._limit_ms and not self._has_reported_wait
        try:
            return self.receive()
        finally:
            self._reports_wait = False

    def receive_each(self, most: int) -> list[list[Row]]:
        """Do the same, but give the rows of each of the last queries, at most `most`."""
        queries = [answer for answer in self._receive_answers() if answer.status == pq.ExecStatus.TUPLES_OK]
        return [self._rows_of([answer]) for answer in queries[-most:]]

    def _receive_answers(self) -> list[PGresult]:
        with self._exchange:
            self._libpq.pipeline_sync()
            answers, failure = self._read_answers()
        self._sent = 0
        if failure is not None:
            self._forget_unconfirmed()
            raise failures.failed(failure)
        self._unconfirmed.clear()
        return answers

    def _rows_of(self, answers: list[PGresult]) -> list[Row]:
        if not answers or answers[0].status != pq.ExecStatus.TUPLES_OK:
            return []
        self._loader.set_pgresult(answers[0])
        return self._loader.load_rows(0, answers[0].ntuples, tuple)

    def run_script(self, text: str) -> None:
        """Run several statements without parameters; raises the first failure, after which none was run."""
        self.receive()
        with self._exchange:
            self._libpq.exit_pipeline_mode()
            self._libpq.send_query(text.encode())
            self._flush()
            results = list(iter(self._next_result, None))
            self._libpq.enter_pipeline_mode()
        for result in results:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                self.broken = failures.is_fatal(result)
                raise failures.failed(result)

    def close(self) -> None:
        self._connection.close()

    def _prepared_name(self, query: bytes, types: tuple[int, ...]) -> bytes | None:
        """Give a statement's prepared name, None without one; a new one is prepared in the same round trip."""
        key = (query, types)
        name = self._prepared.get(key)
        if name is None and self._prepare and query not in _ENDS and len(self._prepared) < _MAX_PREPARED:
            name = self._prepared[key] = _unique_name(next(self._names), key)
            self._unconfirmed.append(key)
            self._libpq.send_prepare(name, query, types)
        return name

    def _forget_unconfirmed(self) -> None:
        for key in self._unconfirmed:
            del self._prepared[key]
        self._unconfirmed.clear()

    def _read_answers(self) -> tuple[list[PGresult], PGresult | None]:
        """Send the rest, and read to the end; give the results, without the ignored ones, and the first failure.

        If nothing was read while sending, the end cannot have come yet. So the wait begins at once: each time that
        libpq is asked whether it is necessary, other threads may run.
        """
        answers: list[PGresult] = []
        failure = None
        self._pending_syncs += 1
        if not self._flush():
            self._read_input()
        while self._pending_syncs:
            result = self._next_result()
            if result is None:
                raise Lost(failures.LOST)
            status = result.status
            if status == _SYNC:
                self._pending_syncs -= 1
                continue
            if status == _FAILED and failures.is_fatal(result):
                raise failures.failed(result)
            if self._pending_syncs == 1:
                if status == _FAILED:
                    failure = failure or result
                else:
                    answers.append(result)
            self._libpq.get_result()  # None, which ends the results of a statement, and comes with them
        return answers, failure

    def _next_result(self) -> PGresult | None:
        while self._libpq.is_busy():
            self._read_input()
        return self._libpq.get_result()

    def _read_input(self) -> None:
        self._wait()
        self._libpq.consume_input()

    def _flush(self) -> bool:
        """Send what libpq has buffered; tells whether something was read, as when the kernel takes only a part."""
        has_read = False
        while self._libpq.flush():
            self._poll.modify(self._libpq.socket, select.POLLIN | select.POLLOUT)
            self._wait()
            self._poll.modify(self._libpq.socket, select.POLLIN)
            self._libpq.consume_input()
            has_read = True
        return has_read

    def _wait(self) -> None:
        if self._reports_wait and not self._poll.poll(SILENT_SECONDS * 1000):
            self._reports_wait, self._has_reported_wait = False, True
            logs.notice(WAITS)
        if not self._poll.poll(self._timeout_ms()):
            self.hung = True
            raise Hung(failures.HUNG)

    def _timeout_ms(self) -> int | None:
        """Give how long the server may be silent: statements sent together are answered together, after the last."""
        return max(self._sent, 1) * self._limit_ms + _MARGIN_MS if self._limit_ms else None


class _Exchange:
    """A block that leaves a session broken if an exception ends it; on a broken one it raises Lost."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> None:
        if self._session.broken:
            raise Lost(failures.LOST)
        self._session.broken = True

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self._session.broken = False
        elif isinstance(error, psycopg.OperationalError):
            raise Lost(failures.LOST) from error


def _unique_name(number: int, key: tuple[bytes, tuple[int, ...]]) -> bytes:
    """Make a name that no session gives to another statement.

    A PgBouncer that is too old, or not configured to separate names, runs what another session prepared by that name.
    """
    return b"laudo%d_%s" % (number, blake2b(repr(key).encode(), digest_size=8).hexdigest().encode())
