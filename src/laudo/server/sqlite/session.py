"""One connection to the file, which waits for other writers, and may end a statement."""

from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, Final

import apsw

from laudo.server import logs
from laudo.server.database import Row
from laudo.server.sqlite import failures

_WAIT_SECONDS: Final = 30
_SILENT_SECONDS: Final = 2
"""A wait that is longer is told: other imports write for about a second at once."""
_WAITS: Final = "waiting for another process that writes to the store; Ctrl-C ends the wait"
_NAP_SECONDS: Final = 0.05
"""How often one that waits for another writer looks again, and heeds a signal."""
_SETTLING_MS: Final = 1000
_CHECK: Final = 20_000
"""Steps of SQLite's machine, some tenths of a millisecond, after which a statement's time is looked at."""


class Session(apsw.Connection):
    """A connection that may end a statement."""

    _seconds: float = 0
    _ends: float = 0
    _waits_since: float = 0
    _told: bool = False

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
            if endlessly and waited > _SILENT_SECONDS and not self._told:
                self._told = True
                logs.notice(_WAITS)
            sleep(min(0.001 * (times + 1), _NAP_SECONDS))
            return endlessly or waited < (self._seconds or _WAIT_SECONDS)

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
            failures.translate(error, self.filename)
            raise

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
