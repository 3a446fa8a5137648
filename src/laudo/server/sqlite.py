"""The SQLite engine, over apsw, which brings its own SQLite."""

import os
import threading
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, Self

import apsw

from laudo.core.sql import SQLITE, Dialect, Statement, Write
from laudo.server import files
from laudo.server.database import LOCKED, NO_SCHEMA, PATIENT, Bounds, Locked, Mark, Row, Slow, StoreError, Unavailable

OLDEST: Final = 3_051_003
"""Before 3.51.3 two connections that write can corrupt a database in WAL mode."""

_WAIT_SECONDS: Final = 30
_NAP_SECONDS: Final = 0.05
"""How often one that waits for another writer looks again, and heeds a signal."""
_SETTLING_MS: Final = 1000
_LOOK_SECONDS: Final = 0.1
"""How often a reader looks whether the file is still in its place: a look costs three microseconds, of the twenty that
a page takes to read."""
_REPLACED: Final = (
    "the store's file, or its -shm, was replaced or removed while it was open; start again, to use what is there now"
)
_CHECK: Final = 20_000
"""Steps of SQLite's machine, some tenths of a millisecond, after which a statement's time is looked at."""
_READ: Final = ("PRAGMA cache_size = -16000", "PRAGMA temp_store = MEMORY", "PRAGMA query_only = ON")
_WRITE: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA wal_autocheckpoint = 48000",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -40000",  # Beyond that a cache gains nothing: the system has one, too.
    "PRAGMA secure_delete = ON",  # What is deleted leaves the file, too.
    "PRAGMA temp_store = FILE",  # What is sorted for a new index has the size of the table.
)
_BESIDE: Final = "and those of its -wal and -shm"
_BEGIN_TO_WRITE: Final = "PRAGMA journal_mode = WAL; BEGIN IMMEDIATE"
"""A file keeps its mode: one that is only looked at, as another application's, stays as it was."""


class Sqlite:
    """A store in one file. Each thread has a connection of its own; without `write` the file is opened read-only."""

    dialect: Dialect = SQLITE

    def __init__(self, path: Path, *, write: bool, bounds: Bounds = PATIENT) -> None:
        """Open a file by its absolute path; raises StoreError when it is missing, not a store, or SQLite is too old."""
        if apsw.SQLITE_VERSION_NUMBER < OLDEST:
            message = f"SQLite {apsw.sqlite_lib_version()} can corrupt this store; install apsw with SQLite ≥ 3.51.3"
            raise StoreError(message)
        try:
            self._path = os.fsencode(path).decode()
        except UnicodeDecodeError:
            message = "the path of the store is not UTF-8, as SQLite demands; give laudo another one"
            raise StoreError(message) from None
        self._write = write
        self._seconds = 0.0 if write else bounds.statement_timeout_ms / 1000
        self._local = threading.local()
        self._opened: list[_Connection] = []
        self._places: dict[str, files.Place | None] = {}
        self._next_look = 0.0
        self._is_in_place = True
        has_log = self.fetch(Statement("PRAGMA journal_mode")) == [("wal",)]
        if has_log:
            self._places[f"{self._path}-shm"] = files.place(f"{self._path}-shm")
        self._wal_index = files.wal_index(self._path) if has_log and not write else None

    def fetch(self, statement: Statement) -> list[Row]:
        """Run one statement in a snapshot of its own; raises Unavailable, StoreError."""
        return self._in_place().rows(statement.text, statement.params)

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run some queries, each in a snapshot of its own; raises Unavailable, StoreError."""
        return [self.fetch(statement) for statement in statements]

    def mark(self) -> Mark:
        """Mark the state of the file as it is now, without asking SQLite.

        None from a store opened to write, or before it had a log, and, from soon after, where the file has gone: what
        was kept ends then.
        """
        if self._wal_index is None:
            return None
        return self._wal_index[: files.HEADER_BYTES] if self._look() else None

    def fetch_marked(self, statements: Sequence[Statement]) -> tuple[list[list[Row]], Mark]:
        """Mark nothing: `mark` has told, unless nothing can."""
        return self.fetch_each(statements), None

    def snapshot(self) -> "SqliteConnection":
        """Give a connection inside one read transaction."""
        return SqliteConnection(self._in_place(), "BEGIN")

    def transaction(self) -> "SqliteConnection":
        """Give a connection inside the store's one write transaction."""
        return SqliteConnection(self._in_place(), _BEGIN_TO_WRITE)

    def alone(self) -> "SqliteConnection":
        """Give the store's one write transaction: nobody else writes while it lasts."""
        return self.transaction()

    def close(self) -> None:
        """Close every thread's connection; what was written is in the file then, unless somebody reads for long."""
        for connection in self._opened:
            if self._write:
                connection.settle()
            connection.close()
        self._opened.clear()
        self._places.clear()
        self._wal_index = None
        self._local = threading.local()

    def _in_place(self) -> "_Connection":
        """Give the thread's connection, unless its file has gone from its path: what it holds is no longer the store.

        It would go on for ever, reading what nobody writes and writing what nobody reads. Raises Unavailable.
        """
        connection: _Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._open()
            self._opened.append(connection)
        if not self._look():
            raise Unavailable(_REPLACED)
        return connection

    def _look(self) -> bool:
        """Tell whether the file is still in its place, and its log's index, or were when a reader looked last."""
        now = monotonic()
        if self._write or now >= self._next_look:
            self._next_look = now + _LOOK_SECONDS
            self._is_in_place = all(files.place(path) == place for path, place in self._places.items())
        return self._is_in_place

    def _open(self) -> "_Connection":
        if not self._write and not Path(self._path).is_file():
            message = f"there is no store at {self._path}; run `laudo migrate` to make one"
            raise StoreError(message)
        if self._write:
            files.make(self._path)
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if self._write else apsw.SQLITE_OPEN_READONLY
        try:
            connection = _Connection(self._path, flags)
            # Else every statement is planned anew for each value bound: 16 µs instead of 3 for a token's owner.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            connection.convert_binding = _array
            connection.wait_for_writers()
            for pragma in _WRITE if self._write else _READ:
                connection.execute(pragma).fetchall()
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            if self._seconds:
                connection.end_after(self._seconds)
        except apsw.Error as error:
            _translate(error, self._path)
            raise
        place = files.place(self._path)
        if self._places.setdefault(self._path, place) != place:
            connection.close()
            raise Unavailable(_REPLACED)
        return connection


class _Connection(apsw.Connection):
    """A connection that may end a statement."""

    _seconds: float = 0
    _ends: float = 0
    _gives_up: float = 0

    def __init__(self, path: str, flags: int) -> None:
        """Open a file. All statements share one cursor: another one for each would cost half a microsecond."""
        super().__init__(path, flags=flags, statementcachesize=200)
        self._cursor = self.cursor()

    def wait_for_writers(self) -> None:
        """Wait for another writer: half a minute, or as long as a statement may take; SQLite's own heeds no signal."""

        def wait(times: int) -> bool:
            now = monotonic()
            if not times:
                self._gives_up = now + (self._seconds or _WAIT_SECONDS)
            sleep(min(0.001 * (times + 1), _NAP_SECONDS))
            return now < self._gives_up

        self.set_busy_handler(wait)

    def end_after(self, seconds: float) -> None:
        """End each statement that takes longer than so many seconds."""
        self._seconds = seconds
        self.set_progress_handler(lambda: monotonic() > self._ends, _CHECK)

    def settle(self) -> None:
        """Write the log into the file and empty it, which the last one to close does only if it may write."""
        self.set_busy_timeout(_SETTLING_MS)
        with suppress(apsw.Error):
            self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def rows(self, text: str, params: Sequence[Any] = ()) -> list[Row]:
        """Run statements and give their rows; raises Unavailable, StoreError.

        A short one has its time, too: SQLite counts the steps of what is kept prepared from run to run.
        """
        if self._seconds:
            self._ends = monotonic() + self._seconds
        try:
            return self._cursor.execute(text, params).fetchall()
        except apsw.Error as error:
            _translate(error, self.filename)
            raise

    def write(self, text: str, rows: Iterable[Row]) -> None:
        """Run a statement for each of some rows, which may come of another store; raises Unavailable, StoreError."""
        try:
            self.executemany(text, rows)
        except apsw.Error as error:
            _translate(error, self.filename)
            raise


class SqliteConnection:
    """One transaction of one connection: a `with` block that commits at its end, or rolls back after an exception."""

    __slots__ = ("_begin", "_connection")
    dialect: Dialect = SQLITE

    def __init__(self, connection: _Connection, begin: str) -> None:
        """`begin` is what opens the transaction."""
        self._connection = connection
        self._begin = begin

    def __enter__(self) -> Self:
        """Begin; raises Unavailable, StoreError."""
        self._connection.rows(self._begin)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """End; raises Unavailable, StoreError."""
        try:
            if self._connection.in_transaction:
                self._connection.rows("ROLLBACK" if error else "COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.rows("ROLLBACK")
            raise

    def fetch(self, statement: Statement) -> list[Row]:
        """Run one statement and give its rows; a list among its parameters is bound as one array."""
        return self._connection.rows(statement.text, statement.params)

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run some queries, one after the other."""
        return [self._connection.rows(statement.text, statement.params) for statement in statements]

    def write(self, write: Write, rows: Iterable[Row]) -> None:
        """Write rows, all of one organization."""
        self._connection.write(self.dialect.written(write), rows)

    def hold(self, _name: str) -> None:
        """Return at once: a write transaction has the store for itself."""

    def run_script(self, text: str) -> None:
        """Run several statements without parameters."""
        self._connection.rows(text)

    def has_column(self, table: str, name: str) -> bool:
        """Tell whether a table has this column; the pragma alone may tell of before another connection made it."""
        text = "SELECT 1 FROM sqlite_schema AS t, pragma_table_info(t.name) AS c WHERE t.name = ? AND c.name = ?"
        return bool(self._connection.rows(text, (table, name)))


def _array(_cursor: object, _number: int, members: Any) -> Any:  # noqa: ANN401 - apsw hands over what it cannot bind
    """Bind a list of numbers, texts or byte strings for `carray(?)`; an empty one binds as null, which has no rows."""
    if not members:
        return None
    return apsw.carray(array("q", members) if isinstance(members[0], int) else tuple(members))


def _translate(error: apsw.Error, path: str) -> None:
    """Raise the store's error for one of the engine's, or return when that is a mistake of ours."""
    match error:
        case apsw.InterruptError():
            message = "the store did not finish a statement within its time limit"
            raise Slow(message) from error
        case apsw.BusyError() | apsw.LockedError():
            raise Locked(LOCKED) from error
        case apsw.CantOpenError() | apsw.IOError() | apsw.FullError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            name = type(error).__name__
            message = f"the store {path} cannot be read or written ({name}): check its path, rights and disk, {_BESIDE}"
            raise Unavailable(message) from error
        case apsw.SQLError() if "no such table" in str(error):
            raise Unavailable(NO_SCHEMA) from error
        case apsw.NotADBError() | apsw.CorruptError():
            message = f"{path} is not a store of laudo, or it is damaged; restore it from a backup"
            raise StoreError(message) from error
