"""One transaction on PostgreSQL: it begins in its first statement's round trip; ending a read-only one takes none."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Final, Self, TypeVar

import psycopg

from laudo.core.sql import POSTGRES, Dialect, Statement, Write
from laudo.server.database import LOCKED, Doubtful, Locked, Lost, Row, Unavailable
from laudo.server.postgres.binding import columns
from laudo.server.postgres.failures import LOST
from laudo.server.postgres.pool import Pool
from laudo.server.postgres.session import Session

T = TypeVar("T")

SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
TRANSACTION: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
ALONE: Final = ""
"""No transaction: each statement is one by itself, and the connection is closed at the end of the block."""
_DURABLE: Final = """
SELECT set_config('synchronous_commit', 'local', true) WHERE current_setting('synchronous_commit') = 'off'
"""
"""What is acknowledged is on the disk, even if the role or database sets otherwise; waiting for standbys stays."""
_HAS_COLUMN: Final = """
SELECT EXISTS (
    SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relname = ? AND nspname = ANY(current_schemas(false)) AND relkind IN ('r', 'p') AND attname = ?
)
"""
_DOUBTFUL: Final = (
    "the connection to PostgreSQL was lost during the commit, so it is not known whether anything was "
    "stored; an import can be run again, anything else should be checked first"
)


class PostgresConnection:
    """A `with` block that commits at its end, or rolls back after an exception."""

    __slots__ = ("_begin", "_begun", "_has_written", "_pool", "_session")
    dialect: Dialect = POSTGRES

    def __init__(self, pool: Pool, begin: str) -> None:
        """`begin` is SNAPSHOT, TRANSACTION or ALONE, which needs a pool for this connection only."""
        self._pool = pool
        self._begin = begin

    def __enter__(self) -> Self:
        """Take a connection; raises Unavailable, StoreError."""
        self._session: Session = self._pool.borrow()
        self._begun = self._has_written = False
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """End; raises Unavailable, StoreError."""
        try:
            if not self._begun:
                return
            if self._begin == ALONE:
                if error is None:
                    self._session.receive()
            elif self._begin == SNAPSHOT:
                with suppress(Unavailable):
                    self._session.send("COMMIT")
                    self._session.ignore_answers()
            elif error is not None:
                self._roll_back()
            else:
                self._commit()
        finally:
            if self._begin == ALONE:
                self._pool.close()
            self._pool.give_back(self._session)

    def fetch(self, statement: Statement) -> list[Row]:
        return self._exchange([statement], Session.receive)

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        return self._exchange(statements, partial(Session.receive_each, most=len(statements)))

    def write(self, write: Write, rows: Iterable[Row]) -> None:
        """Start one statement that writes rows, without waiting; the next `fetch`, or the end, raises its errors."""
        given = list(rows)
        if given:
            self._send(Statement(self.dialect.written(write), columns(given)))
            self._session.push()
            self._has_written = True

    def lock(self, name: str, *, wait: bool = True) -> None:
        """Take the lock whose number is a hash of this name; wait for it, or raise Locked if not `wait`."""
        number = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), signed=True)
        lock = f"pg_{'' if wait else 'try_'}advisory_{'' if self._begin == ALONE else 'xact_'}lock"
        if self._exchange([Statement(f"SELECT {lock}(?)", (number,))], Session.receive_lock) == [(False,)]:
            raise Locked(LOCKED)

    def run_script(self, text: str) -> None:
        self._send_begin()
        self._session.run_script(text)

    def has_column(self, table: str, name: str) -> bool:
        """Tell whether a table has this column; `to_regclass` may not know one made since the transaction began."""
        return self.fetch(Statement(_HAS_COLUMN, (table, name))) == [(True,)]

    def _exchange(self, statements: Sequence[Statement], receive: Callable[[Session], T]) -> T:
        """Send and receive; if the first exchange finds that the idle connection is lost, use another one."""
        if not self._begun:
            try:
                return self._exchange_once(statements, receive)
            except Lost:
                if not self._session.broken:
                    raise
                self._session = self._pool.renew(self._session)
                self._begun = False
        return self._exchange_once(statements, receive)

    def _exchange_once(self, statements: Sequence[Statement], receive: Callable[[Session], T]) -> T:
        for statement in statements:
            self._send(statement)
        found = receive(self._session)
        self._has_written = False
        return found

    def _send(self, statement: Statement) -> None:
        self._send_begin()
        self._session.send(statement.text, statement.params)

    def _send_begin(self) -> None:
        if not self._begun:
            self._begun = True
            if self._begin != ALONE:
                self._session.send(self._begin)
            if self._begin == TRANSACTION:
                self._session.send(_DURABLE)

    def _commit(self) -> None:
        """Commit after all is written: if the connection is lost before, it is certain that nothing is stored."""
        if self._session.broken:
            raise Lost(LOST)
        if self._session.is_failed:
            self._roll_back()
            raise psycopg.errors.InFailedSqlTransaction("a statement failed, so nothing was stored")
        if self._has_written:
            try:
                self._session.receive()
            except Exception:
                self._roll_back()
                raise
        try:
            self._session.send("COMMIT")
            self._session.receive()
        except Exception as error:
            if self._session.broken:
                raise Doubtful(_DOUBTFUL) from error
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        with suppress(Unavailable):
            self._session.ignore_answers()  # After a failed write all is skipped up to here, but not the rollback.
            self._session.send("ROLLBACK")
            self._session.ignore_answers()
