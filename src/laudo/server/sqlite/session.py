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
_NAP_SECONDS: Final = 0.05
"""Seconds between two attempts of a connection that waits for another writer; between them it heeds signals."""
_SETTLING_MS: Final = 1000
_LONGEST: Final = 48_000
"""Pages of the log, 196 MB, after which they are written into the file: the log has many pages several times."""
_AMPLE: Final = 1 << 30
"""Free bytes on the disk with which that may wait. If the log fills the disk, it cannot be written into the file any
more, and the log's index, without which nobody can read, cannot grow."""
_READ_AS_IT_WAS: Final = (
    "the file cannot be rewritten yet: another process, such as `laudo verify`, still reads an older snapshot"
)
_CHECK: Final = 1_000
"""Steps of SQLite's virtual machine after which a statement's time is checked: usually some tens of microseconds, but
in a search for words one step may take a third of a millisecond."""
_SCRIPT: Final = "script"
"""Name of the handler that lets signals in, besides the one that checks the time."""


class Session(apsw.Connection):
    """A connection that can end a statement, and keeps its log short."""

    _seconds: float = 0
    _ends: float = 0
    _waits_since: float = 0
    _told: bool = False
    _wait: Callable[[int], bool] | None = None
    _hindered: apsw.Error | None = None

    def __init__(self, path: str, flags: int) -> None:
        """Open a file; all statements share one cursor, since a new one for each would cost half a microsecond."""
        super().__init__(path, flags=flags, statementcachesize=200)
        self._cursor = self.cursor()

    def wait_for_writers(self, *, endlessly: bool) -> None:
        """Wait for another writer: `endlessly`, with one notice, as writers on PostgreSQL do.

        Otherwise wait for half a minute, or as long as a statement may take. SQLite's own waiting heeds no signal.
        """

        def wait(times: int) -> bool:
            now = monotonic()
            if not times:
                self._waits_since = now
            waited = now - self._waits_since
            if endlessly and waited > SILENT_SECONDS and not self._told:
                self._told = True
                logs.notice(WAITS)
            sleep(min(0.001 * (times + 1), _NAP_SECONDS))
            return endlessly or waited < (self._seconds or _WAIT_SECONDS)

        self._wait = wait
        self.set_busy_handler(wait)

    def keep_log_short(self) -> None:
        """Write the log into the file now and then, and after each commit if the disk has little room."""
        self.set_wal_hook(self._committed)
        self._committed(self, "main", 0)

    def end_after(self, seconds: float) -> None:
        """End each statement that takes longer than `seconds`."""
        self._seconds = seconds
        self.set_progress_handler(lambda: monotonic() > self._ends, _CHECK)

    def settle(self) -> bool:
        """Write the log into the file and empty it, unless others read or write for long; tells whether it is empty."""
        self.set_busy_timeout(_SETTLING_MS)
        self._hindered = None
        try:
            self.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except (apsw.FullError, apsw.IOError) as error:
            self._hindered = error
        except apsw.Error:
            pass
        else:
            return True
        finally:
            self.set_busy_handler(self._wait)
        return False

    def vacuum(self) -> None:
        """Rewrite the whole file, and wait for those who still read it as it was; raises Unavailable."""
        self.run_script("VACUUM")
        ends = monotonic() + _WAIT_SECONDS
        while not self.settle():
            self.require_room()
            if monotonic() > ends:
                raise Locked(_READ_AS_IT_WAS)
            sleep(_NAP_SECONDS)

    def require_room(self) -> None:
        """Raise Unavailable while the log cannot be written into the file: if it grew, nobody could even read."""
        if self._hindered:
            self.settle()
        if self._hindered:
            failures.translate(self._hindered, self.filename)

    def _committed(self, _connection: apsw.Connection, _schema: str, pages: int) -> int:
        """Write the log into the file if necessary; SQLite calls this after each commit."""
        if files.room(self.filename) < _AMPLE:
            self.settle()
        elif pages >= _LONGEST:
            with suppress(apsw.Error):
                self.wal_checkpoint()
        return apsw.SQLITE_OK

    def rows(self, text: str, params: Sequence[Any] = ()) -> list[Row]:
        """Run statements and give their rows; raises Unavailable, StoreError.

        Short ones get their time, too: SQLite goes on counting the steps of a prepared statement from run to run.
        """
        if self._seconds:
            self._ends = monotonic() + self._seconds
        try:
            return self._cursor.execute(text, params).fetchall()
        except apsw.Error as error:
            failures.translate(error, self.filename)
            raise

    def run_script(self, text: str) -> None:
        """Run statements that may take long, each of which heeds a signal; raises Unavailable, StoreError."""
        self.set_progress_handler(lambda: False, _CHECK, id=_SCRIPT)  # Else a signal would have to wait.
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


def array_bound(_cursor: object, _number: int, members: Any) -> Any:  # noqa: ANN401 - apsw hands over what it cannot bind
    """Bind a list of numbers, texts or byte strings for `carray(?)`; an empty one binds as null, which has no rows."""
    if not members:
        return None
    return apsw.carray(array("q", members) if isinstance(members[0], int) else tuple(members))
