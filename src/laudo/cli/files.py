"""Writes files that only their owner can read; an error of the system names the file that it is about."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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
