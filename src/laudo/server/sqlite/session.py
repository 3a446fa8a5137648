"""One connection to the file, which waits for other writers, and can end a statement that takes too long."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, Final

import apsw

from laudo.server import files, logs
from laudo.server.database import SILENT_SECONDS, WAITS, Locked, Row
from laudo.server.sqlite import failures

_WAIT_SECONDS: Final = 30
_RETRY_SECONDS: Final = 0.05
"""Longest time between two attempts of a connection that waits for another writer; in between, signals are handled."""
_SETTLING_MS: Final = 1000
_MAX_LOG_PAGES: Final = 48_000
"""Size of the log, 196 MB, at which it is written into the file: late, as it has many pages several times."""
_AMPLE_BYTES: Final = 1 << 30
"""With less free space on the disk, the log is written into the file after each commit. If the log fills the disk, that
is impossible, and the log's index, without which nobody can read, cannot grow."""
_STILL_READ: Final = (
    "the file cannot be rewritten yet: another process, such as `laudo verify`, still reads an older snapshot"
)
_CHECK_STEPS: Final = 1_000
"""Steps of SQLite's virtual machine after which a statement's time is checked: usually some tens of microseconds, but
in a search for words one step may take a third of a millisecond."""
_SCRIPT: Final = "script"
"""Name of the handler that lets Python handle signals; there is another one, which checks the time."""


class Session(apsw.Connection):
    """A connection that can end a statement, and keeps its log short."""

    _seconds: float = 0
    _deadline: float = 0
    _wait_began: float = 0
    _has_reported_wait: bool = False
    _busy_handler: Callable[[int], bool] | None = None
    _checkpoint_error: apsw.Error | None = None

    def __init__(self, path: str, flags: int) -> None:
        """Open a file; all statements share one cursor, since a new one for each would cost half a microsecond."""
        super().__init__(path, flags=flags, statementcachesize=200)
        self._cursor = self.cursor()

    def wait_for_writers(self, *, endlessly: bool) -> None:
        """Wait for another writer: `endlessly`, with one notice, as writers on PostgreSQL do.

        Otherwise wait for half a minute, or as long as a statement may take. SQLite's own waiting ignores signals.
        """

        def wait(times: int) -> bool:
            now = monotonic()
            if not times:
                self._wait_began = now
            waited = now - self._wait_began
            if endlessly and waited > SILENT_SECONDS and not self._has_reported_wait:
                self._has_reported_wait = True
                logs.notice(WAITS)
            sleep(min(0.001 * (times + 1), _RETRY_SECONDS))
            return endlessly or waited < (self._seconds or _WAIT_SECONDS)

        self._busy_handler = wait
        self.set_busy_handler(wait)

    def keep_log_short(self) -> None:
        """Write the log into the file now and then, and after each commit if the disk has little room."""
        self.set_wal_hook(self._on_commit)
        self._on_commit(self, "main", 0)

    def set_statement_timeout(self, seconds: float) -> None:
        """End each statement that takes longer than `seconds`."""
        self._seconds = seconds
        self.set_progress_handler(lambda: monotonic() > self._deadline, _CHECK_STEPS)

    def empty_log(self) -> bool:
        """Write the log into the file and empty it, unless others read or write for long; tells whether it is empty."""
        self.set_busy_timeout(_SETTLING_MS)
        self._checkpoint_error = None
        try:
            self.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except (apsw.FullError, apsw.IOError) as error:
            self._checkpoint_error = error
        except apsw.Error:
            pass
        else:
            return True
        finally:
            self.set_busy_handler(self._busy_handler)
        return False

    def vacuum(self) -> None:
        """Rewrite the whole file, and wait for those who still read an older snapshot; raises Unavailable."""
        self.run_script("VACUUM")
        deadline = monotonic() + _WAIT_SECONDS
        while not self.empty_log():
            self.require_room()
            if monotonic() > deadline:
                raise Locked(_STILL_READ)
            sleep(_RETRY_SECONDS)

    def require_room(self) -> None:
        """Raise Unavailable while the log cannot be written into the file: if it grew, nobody could even read."""
        if self._checkpoint_error:
            self.empty_log()
        if self._checkpoint_error:
            failures.translate(self._checkpoint_error, self.filename)

    def _on_commit(self, _connection: apsw.Connection, _schema: str, pages: int) -> int:
        """Write the log into the file if necessary; SQLite calls this after each commit."""
        if files.free_bytes(self.filename) < _AMPLE_BYTES:
            self.empty_log()
        elif pages >= _MAX_LOG_PAGES:
            with suppress(apsw.Error):
                self.wal_checkpoint()
        return apsw.SQLITE_OK

    def rows(self, text: str, params: Sequence[Any] = ()) -> list[Row]:
        """Run statements and give their rows; raises Unavailable, StoreError.

        Short ones need a deadline, too: SQLite goes on counting the steps of a prepared statement from run to run.
        """
        if self._seconds:
            self._deadline = monotonic() + self._seconds
        try:
            return self._cursor.execute(text, params).fetchall()
        except apsw.Error as error:
            failures.translate(error, self.filename)
            raise

    def run_script(self, text: str) -> None:
        """Run statements that may take long, but that signals can interrupt; raises Unavailable, StoreError."""
        self.set_progress_handler(lambda: False, _CHECK_STEPS, id=_SCRIPT)  # Otherwise a signal would have to wait.
        try:
            self.rows(text)
        finally:
            self.set_progress_handler(None, id=_SCRIPT)

    def write(self, text: str, rows: Iterable[Row]) -> None:
        """Run a statement for each row; the rows may come from another store; raises Unavailable, StoreError."""
        try:
            self.executemany(text, rows)
        except apsw.Error as error:
            failures.translate(error, self.filename)
            raise


def bind_array(_cursor: object, _number: int, members: Any) -> Any:  # noqa: ANN401 - apsw hands over what it cannot bind
    """Bind a list of numbers, texts or byte strings for `carray(?)`; an empty one binds as null, which has no rows."""
    if not members:
        return None
    return apsw.carray(array("q", members) if isinstance(members[0], int) else tuple(members))
