"""The files of a store in a file: made, found in their place, and looked at beside SQLite.

Their paths are texts as SQLite has them, which is UTF-8 for the system, whatever the encoding of a user's locale.
"""

import math
import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

HEADER_BYTES: Final = 48
"""Of the log's index: those that change with every commit."""

Place = tuple[int, int]
"""Which file it is: its device and inode."""


def named(path: str) -> Path:
    """Give a path as Python has it."""
    return Path(os.fsdecode(path.encode()))


def make(path: str) -> None:
    """Make a file that is missing, for its owner alone, as its companions then are; what hinders it SQLite tells.

    Where a link leads to it, SQLite would make it for everybody.
    """
    with suppress(OSError):
        os.close(os.open(os.path.realpath(path.encode()), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def place(path: str) -> Place | None:
    """Tell which file a path leads to."""
    with suppress(OSError):
        status = os.stat(path.encode())  # noqa: PTH116 - a Path would be made for nothing
        return status.st_dev, status.st_ino
    return None


def room(path: str) -> float:
    """Tell how many bytes are free where a file lies; infinitely many where that cannot be told."""
    with suppress(OSError):
        disk = os.statvfs(path.encode())
        return disk.f_bavail * disk.f_frsize
    return math.inf


def wal_index(path: str) -> mmap.mmap | None:
    """Give the memory that all connections to a store share, whose first bytes change with every commit.

    They hold a counter, how many frames the log has, and their checksum (https://sqlite.org/walformat.html, 2.1). To
    read them costs a tenth of a microsecond; a statement costs some four, with the waits for the interpreter lock.
    """
    found = place(f"{path}-shm")
    with suppress(OSError, ValueError):
        if found and found not in _WAL_INDEXES:
            descriptor = os.open(f"{path}-shm".encode(), os.O_RDONLY)
            _WAL_INDEXES[found] = mmap.mmap(descriptor, HEADER_BYTES, access=mmap.ACCESS_READ)
    return _WAL_INDEXES.get(found) if found else None


_WAL_INDEXES: Final[dict[Place, mmap.mmap]] = {}
"""Never closed: to close any descriptor of a file drops all locks that the process has on it,
SQLite's too."""
