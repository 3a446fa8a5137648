"""What went wrong -> the store's errors: the table of SQLite's codes."""

from pathlib import Path
from typing import Final

import apsw

from laudo.server import files
from laudo.server.database import LOCKED, NO_SCHEMA, Locked, Slow, StoreError, Unavailable, WordsDamagedError

_COMPANIONS: Final = "and those of its folder, -wal and -shm"
_MAX_BYTES: Final = 504
"""Bytes of a path: SQLite has room for 512, and appends `-journal`."""
_DAMAGED_WORDS: Final = (
    "invalid fts5 file format",
    "vtable constructor failed",
    "no such fts5 table",
    "no such table: main.pessoa_words_",
)
"""Beginnings of FTS5's errors if the index of words is not even in its format; all other damage has a code."""
_OLD_SCHEMA: Final = ("no such table", "no such column", "no such index")
"""Beginnings of SQLite's errors if a statement needs a migration that the store does not have."""


def translate(error: apsw.Error, path: str) -> None:
    """Raise the store's error for one of the engine's, or return if it is our own mistake."""
    match error:
        case apsw.InterruptError():
            raise Slow("the store did not finish a statement within its time limit") from error
        case apsw.BusyError() | apsw.LockedError():
            raise Locked(LOCKED) from error
        case apsw.FullError():
            message = f"no space is left on the disk of the store {path}, or of temporary files"
            raise Unavailable(message) from error
        case apsw.CantOpenError() if why := _why_unopened(path):
            raise Unavailable(f"the store {path} cannot be opened: {why}") from error
        case apsw.CantOpenError() | apsw.IOError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            name = type(error).__name__
            message = (
                f"the store {path} cannot be read or written ({name}): check its path, rights and disk, {_COMPANIONS}"
            )
            raise Unavailable(message) from error
        case apsw.CorruptError() if getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB:
            raise _words_damaged(path) from error
        case apsw.SQLError() if str(error).startswith(_DAMAGED_WORDS):
            raise _words_damaged(path) from error
        case apsw.SQLError() if str(error).startswith(_OLD_SCHEMA):
            raise Unavailable(NO_SCHEMA) from error
        case apsw.NotADBError() | apsw.CorruptError():
            todo = "restore it from a backup, unless `laudo verify --repair` can repair it"
            raise StoreError(f"{path} is not a store of laudo, or it is damaged; {todo}") from error


def _why_unopened(path: str) -> str | None:
    """Tell what is wrong with a path; None if nothing is found."""
    if not files.as_path(path).parent.is_dir():
        return f"there is no folder {Path(path).parent}"
    return f"its path is longer than SQLite's limit of {_MAX_BYTES} bytes" if len(path.encode()) > _MAX_BYTES else None


def _words_damaged(path: str) -> WordsDamagedError:
    return WordsDamagedError(f"the index of words in {path} is damaged; hint: `laudo verify --repair` rebuilds it")
