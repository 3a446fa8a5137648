"""What a worker does besides answering: opens the store, drops clients that do not read, ends when it is told to."""

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from laudo.cli import connections, output, signals
from laudo.server.config import Settings

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

_START_SECONDS: Final = 0.5
"""How long a worker may take to act on signals once it has Granian's handler."""

_POLL_SECONDS: Final = 0.01
"""Seconds between two checks whether it has that handler yet, or whether it listens."""

_RETRY_SECONDS: Final = 1
"""How long a worker waits before it tries again to open the store."""


def application(settings: Settings, key: bytes) -> "WSGIApplication":
    """Build a worker's application, in the worker; a failure ends the worker with one line on stderr."""
    with output.failures_in_one_line():
        made = _build(settings, key)
        use_batch_scheduling()
        _defer_stopping()
        _end_with_parent()
        _drop_slow_readers(settings)
        return made


def _build(settings: Settings, key: bytes) -> "WSGIApplication":
    """Build the application; while the store cannot be opened, try again.

    If workers failed instead, Granian would soon end the whole service. While a worker waits, a signal ends it at once,
    and so does the end of its parent.
    """
    from multiprocessing import parent_process

    from laudo.server import app, logs
    from laudo.server.database import StoreError

    log = logs.Throttled()
    while (parent := parent_process()) and parent.is_alive():
        try:
            return app.create(settings, key=key)
        except StoreError as error:
            log.notice(f"store: {error.reason}")
            parent.join(_RETRY_SECONDS)
    sys.exit()


def use_batch_scheduling() -> None:
    """Let a thread that answers keep its core while another thread there wakes up to send an answer.

    Otherwise Linux switches between them twice for each request, which takes a third of its CPU (decision 0001).
    Threads started from now on do the same. Other systems have no such policy; there this does nothing.
    """
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _defer_stopping() -> None:
    """Wait for SIGTERM in a thread, which hands it to Granian once, and not before the worker surely serves.

    Granian loses a SIGTERM that comes just before it serves. A second one, as Ctrl-C causes, may keep it from ending.
    """
    signals.block()

    def forward() -> None:
        while not callable(stop := signal.getsignal(signal.SIGTERM)):
            time.sleep(_POLL_SECONDS)
        ready_at = time.monotonic() + _START_SECONDS
        signal.sigwait({signal.SIGTERM})
        time.sleep(max(0.0, ready_at - time.monotonic()))
        stop(signal.SIGTERM, None)

    threading.Thread(target=forward, daemon=True).start()


def _end_with_parent() -> None:
    """Stop when the parent is gone: if it was killed, it could not end its workers, and they would keep the port.

    The worker made last notices it first: each worker holds open the pipes on which those before it wait.
    """
    from multiprocessing import parent_process

    def stop() -> None:
        if parent := parent_process():
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop, daemon=True).start()


def _drop_slow_readers(settings: Settings) -> None:
    """Once the worker listens, let the kernel end connections that are not read; outside Linux this does nothing."""

    def drop() -> None:
        with suppress(AttributeError, OSError):
            while not connections.drop_slow_readers(settings):
                time.sleep(_POLL_SECONDS)

    threading.Thread(target=drop, daemon=True).start()
