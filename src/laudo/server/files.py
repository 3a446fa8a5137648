"""The files of a store in a file: makes them, identifies them, and reads the WAL index without SQLite.

Paths are texts in SQLite's form: UTF-8 for the system, whatever the encoding of a user's locale.
"""

import math
import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

HEADER_BYTES: Final = 48
"""Bytes at the beginning of the WAL index, which change with every commit."""

FileId = tuple[int, int]
"""A file's device and inode."""


def as_path(path: str) -> Path:
    """Give a path in Python's form."""
    return Path(os.fsdecode(path.encode()))


def make(path: str) -> None:
    """Make a missing file that only its owner may read, as SQLite then makes its companions; SQLite reports errors.

    If the path were a link to a missing file, SQLite would make that file readable by everybody.
    """
    with suppress(OSError):
        os.close(os.open(os.path.realpath(path.encode()), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def file_id(path: str) -> FileId | None:
    """Tell which file a path leads to; None if there is none."""
    with suppress(OSError):
        status = os.stat(path.encode())  # noqa: PTH116 - a Path would be made for nothing
        return status.st_dev, status.st_ino
    return None


def free_bytes(path: str) -> float:
    """Give the free bytes of the disk that a file is on; infinity if they are not known."""
    with suppress(OSError):
        disk = os.statvfs(path.encode())
        return disk.f_bavail * disk.f_frsize
    return math.inf


def wal_index(path: str) -> mmap.mmap | None:
    """Give the WAL index, memory that all connections share; its first bytes change with every commit.

    They hold a counter, the number of frames in the log, and a checksum (https://sqlite.org/walformat.html, 2.1).
    Reading them takes a tenth of a microsecond, a statement some four, including waits for the interpreter lock.
    """
    found = file_id(f"{path}-shm")
    with suppress(OSError, ValueError):
        if found and found not in _WAL_INDEXES:
            descriptor = os.open(f"{path}-shm".encode(), os.O_RDONLY)
            _WAL_INDEXES[found] = mmap.mmap(descriptor, HEADER_BYTES, access=mmap.ACCESS_READ)
    return _WAL_INDEXES.get(found) if found else None


_WAL_INDEXES: Final[dict[FileId, mmap.mmap]] = {}
"""Never closed: closing any descriptor of a file drops all locks that the process has on it, SQLite's too."""
