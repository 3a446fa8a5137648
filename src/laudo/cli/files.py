"""Files that only their owner can read, written whole or by one process at a time; errors of the system name them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from laudo.cli import output


def write_atomically(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with naming(path), new_file(part) as stream:
            stream.write(text.encode())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def new_file(path: Path) -> BinaryIO:
    """Open a new file; what was there, perhaps somebody's link, is removed."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error name this file unless it names one: the system does not say which open file cannot grow."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def open_locked(part: Path, busy: str) -> FileIO:
    """Open a file to append to, and lock it while it is open; a new file can be read only by its owner."""
    while True:
        stream = FileIO(part, "ab", opener=_open_private)
        try:
            lock(stream)
        except BlockingIOError:
            stream.close()
            raise output.Failure(f"{busy}; hint: wait until it ends") from None
        with suppress(FileNotFoundError):
            # The process that had locked it may have renamed it meanwhile.
            if os.path.samestat(os.fstat(stream.fileno()), part.stat()):
                return stream
        stream.close()


def lock(stream: FileIO) -> None:
    """Lock a file while it is open; raises BlockingIOError if another process has locked it."""
    with suppress(ModuleNotFoundError):  # Windows has no such locks.
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
