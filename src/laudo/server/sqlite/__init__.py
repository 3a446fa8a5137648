"""The SQLite engine, over apsw, which brings its own SQLite."""

import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Final

import apsw

from laudo.core.sql import SQLITE, Dialect, Statement
from laudo.server import files
from laudo.server.database import PATIENT, Bounds, Mark, Row, StoreError, Unavailable
from laudo.server.sqlite import failures
from laudo.server.sqlite.session import Session, bind_array
from laudo.server.sqlite.transaction import SqliteConnection

OLDEST: Final = 3_051_003
"""Before 3.51.3 two connections that write can corrupt a database in WAL mode."""

_CHECK_SECONDS: Final = 0.1
"""How often a reader checks whether the file is still in its place: a check takes three microseconds, and reading a
page takes twenty."""
_REPLACED: Final = (
    "the store's file, or its -shm, was replaced or removed while it was open; start again to use the current one"
)
_READ: Final = ("PRAGMA cache_size = -16000", "PRAGMA temp_store = MEMORY", "PRAGMA query_only = ON")
_WRITE: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -40000",  # A larger cache gains nothing: the system has one, too.
    "PRAGMA secure_delete = ON",  # Deleted data leaves the file, except gaps in its pages.
    "PRAGMA temp_store = FILE",  # A sort for a new index takes the size of the table.
)
_BEGIN_TO_WRITE: Final = "PRAGMA journal_mode = WAL; BEGIN IMMEDIATE"
"""The mode stays in the file, so it is set only here: a file that is only read, perhaps of another application, stays
as it was."""


class Sqlite:
    """A store in one file. Each thread has a connection of its own; without `write` the file is opened read-only."""

    dialect: Dialect = SQLITE

    def __init__(self, path: Path, *, write: bool, bounds: Bounds = PATIENT) -> None:
        """Open a file by its absolute path; raises StoreError if it is missing, not a store, or SQLite is too old."""
        if apsw.SQLITE_VERSION_NUMBER < OLDEST:
            message = f"SQLite {apsw.sqlite_lib_version()} can corrupt this store; install apsw with SQLite ≥ 3.51.3"
            raise StoreError(message)
        try:
            self._path = os.fsencode(path).decode()
        except UnicodeDecodeError:
            raise StoreError("the path of the store is not UTF-8, which SQLite requires; use another path") from None
        self._write = write
        self._seconds = 0.0 if write else bounds.statement_timeout_ms / 1000
        self._local = threading.local()
        self._opened: list[Session] = []
        self._file_ids: dict[str, files.FileId | None] = {}
        self._next_check = 0.0
        self._is_in_place = True
        session = self._session()
        file = session.filename  # Links are resolved: its companions are in this folder.
        has_log = session.rows("PRAGMA journal_mode") == [("wal",)]
        if has_log:
            self._file_ids[f"{file}-shm"] = files.file_id(f"{file}-shm")
        self._wal_index = files.wal_index(file) if has_log and not write else None

    def fetch(self, statement: Statement) -> list[Row]:
        """Run one statement in a snapshot of its own; raises Unavailable, StoreError."""
        return self._session().rows(statement.text, statement.params)

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run some queries, each in a snapshot of its own; raises Unavailable, StoreError."""
        return [self.fetch(statement) for statement in statements]

    def mark(self) -> Mark:
        """Give the mark of the file as it is now, without asking SQLite.

        None if the store is opened to write, or had no log when it was opened. Also None soon after the file has gone,
        so that no kept answer is given any more.
        """
        if self._wal_index is None:
            return None
        return self._wal_index[: files.HEADER_BYTES] if self._check_in_place() else None

    def fetch_marked(self, statements: Sequence[Statement]) -> tuple[list[list[Row]], Mark]:
        """Run queries as `fetch_each` does, without a mark: `mark` gives it, if there can be one."""
        return self.fetch_each(statements), None

    def snapshot(self) -> SqliteConnection:
        """Give a connection inside one read transaction."""
        return SqliteConnection(self._session(), "BEGIN")

    def transaction(self) -> SqliteConnection:
        """Give a connection inside the store's one write transaction; raises Unavailable."""
        session = self._session()
        session.require_room()
        return SqliteConnection(session, _BEGIN_TO_WRITE)

    def alone(self) -> SqliteConnection:
        """Give the store's one write transaction: nobody else writes while it lasts."""
        return self.transaction()

    def empty_log(self) -> None:
        """Write the log into the file and empty it, if possible; raises Unavailable."""
        self._session().empty_log()

    def vacuum(self) -> None:
        """Rewrite the file, which needs its size once more on the disk, for a while twice; raises Unavailable."""
        self._session().vacuum()

    def close(self) -> None:
        """Close every thread's connection; then what was written is in the file, unless somebody reads for long."""
        for session in self._opened:
            if self._write:
                session.empty_log()
            session.close()
        self._opened.clear()
        self._file_ids.clear()
        self._wal_index = None
        self._local = threading.local()

    def _session(self) -> Session:
        """Give the thread's connection; raises Unavailable if its file is no longer at the store's path.

        Otherwise it would go on for ever, reading what nobody writes and writing what nobody reads.
        """
        session: Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = self._open()
            self._opened.append(session)
        if not self._check_in_place():
            raise Unavailable(_REPLACED)
        return session

    def _check_in_place(self) -> bool:
        """Tell whether the file and the WAL index are still in their places; a reader looks only now and then."""
        now = monotonic()
        if self._write or now >= self._next_check:
            self._next_check = now + _CHECK_SECONDS
            self._is_in_place = all(files.file_id(path) == file_id for path, file_id in self._file_ids.items())
        return self._is_in_place

    def _open(self) -> Session:
        if not self._write and not files.as_path(self._path).is_file():
            raise StoreError(f"there is no store at {self._path}; run `laudo migrate` to create one")
        if self._write:
            files.make(self._path)
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if self._write else apsw.SQLITE_OPEN_READONLY
        with ExitStack() as unless_opened:
            try:
                session = Session(self._path, flags)
                unless_opened.callback(session.close)
                self._set_up(session)
            except apsw.Error as error:
                failures.translate(error, self._path)
                raise
            file_id = files.file_id(self._path)
            if self._file_ids.setdefault(self._path, file_id) != file_id:
                raise Unavailable(_REPLACED)
            unless_opened.pop_all()
        return session

    def _set_up(self, session: Session) -> None:
        # Otherwise every statement is planned again for each bound value: 16 µs instead of 3 for a token's owner.
        session.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        session.convert_binding = bind_array
        session.wait_for_writers(endlessly=self._write)
        for pragma in _WRITE if self._write else _READ:
            session.execute(pragma).fetchall()
        session.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        if self._write:
            session.keep_log_short()
        if self._seconds:
            session.set_statement_timeout(self._seconds)
