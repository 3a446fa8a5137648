"""How many connections a worker accepts, when it lets go of one, and how many threads answer what comes over them."""

import resource
import socket
from pathlib import Path
from typing import Final

from laudo.cli import output
from laudo.server.config import Settings

_ALL: Final = 1024
"""How many connections all workers accept together."""

_FILES: Final = 64
"""How many other files a worker has open, at most, beside a connection to the store for each thread."""

_FEWEST: Final = 32
"""With fewer than so many of these it could not even start, nor accept a connection."""

_FILES_A_WORKER: Final = 6
"""And how many that it inherits for each of all workers, at most."""

_LATE: Final = 32
"""How many more threads answer where some answers are late by intention."""

_UNREAD: Final = 8
"""How many times `idle_timeout_ms` a client may be behind with reading: to the kernel, one that reads too slowly is."""


def accepted(settings: Settings) -> int:
    """Give how many connections each worker accepts: fewer where only few files may be open.

    At that limit it would try again and again to accept one more, which burns its core, and could not open what it
    answers from. Granian, once imported, has raised the limit as far as that may be done.

    Raises Failure where the limit is too low to serve at all.
    """
    share = max(1, _ALL // settings.workers)
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    others = _FILES_A_WORKER * settings.workers + threads(settings)
    left = limit - others - _FILES
    if limit == resource.RLIM_INFINITY or left >= share:
        return share
    if limit < others + _FEWEST:
        workers = output.counted(settings.workers, "worker")
        hint = "raise the limit (ulimit -n, LimitNOFILE) to 1024 or more"
        raise output.Failure(f"no more than {limit} files may be open, too few for {workers}; hint: {hint}")
    number = max(1, left)
    accepted = output.counted(number, "connection")
    output.note(f"each worker accepts {accepted}, not {share}: no more than {limit} files may be open")
    return number


def threads(settings: Settings) -> int:
    """Give how many threads answer; on SQLite one: more would fight for the interpreter.

    Who is to be answered late holds up one of them, and with these nobody else.
    """
    from laudo.server import stores

    late = _LATE if settings.rehearse else 0
    return late + (1 if stores.file(settings.store) else settings.bounds.threads(1 + len(settings.read_store)))


def let_go_of_unread(settings: Settings) -> bool:
    """Have connections end whose client does not read what was answered; False as long as nothing listens here.

    That stays in memory until it is taken, for which Granian waits without end. The kernel does not, if it is told so
    of the socket that listens: connections inherit it. Granian makes that one in the worker, and keeps it for itself.
    """
    return any(_is_told(int(file.name), settings) for file in Path("/proc/self/fd").iterdir())


def _is_told(file: int, settings: Settings) -> bool:
    try:
        found = socket.socket(fileno=file)
    except OSError:
        return False  # no socket, or closed meanwhile
    try:
        if not _listens(found, settings.port):
            return False
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD * settings.idle_timeout_ms)
        return True
    finally:
        found.detach()


def _listens(found: socket.socket, port: int) -> bool:
    is_listening = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    return bool(is_listening) and found.family != socket.AF_UNIX and found.getsockname()[1] == port
