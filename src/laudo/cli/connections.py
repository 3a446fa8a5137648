"""How many connections a worker accepts, when it drops one, and how many threads answer requests."""

import resource
import socket
from pathlib import Path
from typing import Final

from laudo.cli import output
from laudo.server.config import Settings

_TOTAL: Final = 1024
"""Connections that all workers accept together."""

_OTHER_FILES: Final = 64
"""Other files that a worker has open, at most, besides a connection to the store for each thread."""

_MIN_FILES: Final = 32
"""The fewest other files with which a worker can start and accept a connection."""

_FILES_PER_WORKER: Final = 6
"""Files that each worker inherits for every worker of the service, at most."""

_EXTRA_THREADS: Final = 32
"""Additional threads if `rehearse` delays some answers on purpose."""

_UNREAD_TIMEOUTS: Final = 8
"""How many times `idle_timeout_ms` an answer may wait to be read; for the kernel, slow reading is waiting too."""


def accepted(settings: Settings) -> int:
    """Give how many connections each worker accepts: fewer if the limit on open files is low.

    At that limit a worker would try again and again to accept a connection, which burns its core, and could not open
    the store. Importing Granian has already raised the limit as far as is allowed.

    Raises Failure if the limit is too low to serve at all.
    """
    share = max(1, _TOTAL // settings.workers)
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _FILES_PER_WORKER * settings.workers + threads(settings)
    left = limit - needed - _OTHER_FILES
    if limit == resource.RLIM_INFINITY or left >= share:
        return share
    if limit < needed + _MIN_FILES:
        workers = output.counted(settings.workers, "worker")
        hint = f"raise it (ulimit -n, LimitNOFILE) to {needed + _OTHER_FILES + share} or more"
        raise output.Failure(f"the limit of {limit} open files is too low for {workers}; hint: {hint}")
    number = max(1, left)
    accepted = output.counted(number, "connection")
    output.note(f"each worker accepts {accepted} instead of {share}: the limit is {limit} open files")
    return number


def threads(settings: Settings) -> int:
    """Give how many threads answer requests: one on SQLite, where more would compete for the interpreter.

    An answer that `rehearse` delays blocks a thread; there are additional ones, so that it delays nobody else.
    """
    from laudo.server import stores

    extra = _EXTRA_THREADS if settings.rehearse else 0
    return extra + (1 if stores.file_path(settings.store) else settings.bounds.threads(1 + len(settings.read_store)))


def drop_slow_readers(settings: Settings) -> bool:
    """Let the kernel end connections whose client does not read its answers; False while no socket listens yet.

    An unread answer stays in memory, and Granian waits for its reader without a timeout. The kernel has one, if it is
    set on the listening socket, from which connections inherit it. Granian makes that socket in the worker and does not
    give access to it, so this searches the open files for it.
    """
    return any(_set_user_timeout(int(file.name), settings) for file in Path("/proc/self/fd").iterdir())


def _set_user_timeout(file: int, settings: Settings) -> bool:
    try:
        candidate = socket.socket(fileno=file)
    except OSError:
        return False  # not a socket, or closed meanwhile
    try:
        if not _listens(candidate, settings.port):
            return False
        candidate.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_TIMEOUTS * settings.idle_timeout_ms)
        return True
    finally:
        candidate.detach()


def _listens(candidate: socket.socket, port: int) -> bool:
    is_listening = candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    return bool(is_listening) and candidate.family != socket.AF_UNIX and candidate.getsockname()[1] == port
