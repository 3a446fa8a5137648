"""One connection to the file, which waits for other writers, and may end a statement."""

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
"""How often one that waits for another writer looks again, and heeds a signal."""
_SETTLING_MS: Final = 1000
_LONGEST: Final = 48_000
"""Pages of the log, 196 MB, after which they are written into the file: it has many of them several times."""
_AMPLE: Final = 1 << 30
"""Bytes free on the disk with which they may wait. Where the log fills it, the file cannot take it any more, and its
index, without which nobody reads, cannot grow."""
_READ_AS_IT_WAS: Final = (
    "the file cannot be written anew yet: another process, as laudo verify or copy, still reads the store as it was"
)
_CHECK: Final = 1_000
"""Steps of SQLite's machine after which a statement's time is looked at: of most, some tens of microseconds, but of a
search for words one step may take a third of a millisecond."""
_SCRIPT: Final = "script"
"""Names what looks for a signal, beside what looks at the time."""


class Session(apsw.Connection):
    """A connection that may end a statement."""

    _seconds: float = 0
    _ends: float = 0
    _waits_since: float = 0
    _told: bool = False
    _wait: Callable[[int], bool] | None = None
    _hindered: apsw.Error | None = None

    def __init__(self, path: str, flags: int) -> None:
        """Open a file. All statements share one cursor: another one for each would cost half a microsecond."""
        super().__init__(path, flags=flags, statementcachesize=200)
        self._cursor = self.cursor()

    def wait_for_writers(self, *, endlessly: bool) -> None:
        """Wait for another writer, `endlessly` as one who writes as well does on PostgreSQL, telling so once.

        Otherwise it is half a minute, or as long as a statement may take. SQLite's own way of waiting heeds no signal.
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
        """Write what is committed into the file now and then, and at once where the disk has little room."""
        self.set_wal_hook(self._committed)
        self._committed(self, "main", 0)

    def end_after(self, seconds: float) -> None:
        """End each statement that takes longer than so many seconds."""
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
        """Write the whole file anew, and wait for who reads it as it was; raises Unavailable."""
        self.run_script("VACUUM")
        ends = monotonic() + _WAIT_SECONDS
        while not self.settle():
            self.require_room()
            if monotonic() > ends:
                raise Locked(_READ_AS_IT_WAS)
            sleep(_NAP_SECONDS)

    def require_room(self) -> None:
        """Raise Unavailable while the file cannot take the log: with more in it, it could not even be read."""
        if self._hindered:
            self.settle()
        if self._hindered:
            failures.translate(self._hindered, self.filename)

    def _committed(self, _connection: apsw.Connection, _schema: str, pages: int) -> int:
        """Heed how long the log is now; SQLite calls this after each commit."""
        if files.room(self.filename) < _AMPLE:
            self.settle()
        elif pages >= _LONGEST:
            with suppress(apsw.Error):
                self.wal_checkpoint()
        return apsw.SQLITE_OK

    def rows(self, text: str, params: Sequence[Any] = ()) -> list[Row]:
        """Run statements and give their rows; raises Unavailable, StoreError.

        A short one has its time, too: SQLite counts the steps of what is kept prepared from run to run.
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
        self.set_progress_handler(lambda: False, _CHECK, id=_SCRIPT)  # Else a signal waits for a statement's end.
        try:
            self.rows(text)
        finally:
            self.set_progress_handler(None, id=_SCRIPT)

    def write(self, text: str, rows: Iterable[Row]) -> None:
        """Run a statement for each of some rows, which may come of another store; raises Unavailable, StoreError."""
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
