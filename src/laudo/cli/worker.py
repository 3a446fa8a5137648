"""What a worker does beside answering: opens the store, lets go of who does not read, and ends when it is to end."""

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

_STARTING_SECONDS: Final = 0.5
"""How long a worker that has Granian's handler of signals may take until it heeds it."""

_LOOKING_SECONDS: Final = 0.01
"""How often it is looked whether it has that handler yet, and whether it listens."""

_OPENING_SECONDS: Final = 1
"""How long a worker waits until it tries again to open the store."""


def application(settings: Settings, key: bytes) -> "WSGIApplication":
    """Build a worker's application, in the worker; what hinders that ends it with one line."""
    with output.failures_in_one_line():
        made = _built(settings, key)
        finish_first()
        _defer_stopping()
        _end_with_parent()
        _let_go_of_unread(settings)
        return made


def _built(settings: Settings, key: bytes) -> "WSGIApplication":
    """Build it once the store can be opened: a worker that failed would soon end the service, as Granian has it.

    Until then a signal ends it at once, and so does the end of its parent.
    """
    from multiprocessing import parent_process

    from laudo.server import app, logs
    from laudo.server.database import StoreError

    told = logs.Sparing()
    while (parent := parent_process()) and parent.is_alive():
        try:
            return app.create(settings, key=key)
        except StoreError as error:
            told.notice(f"store: {error.reason}")
            parent.join(_OPENING_SECONDS)
    sys.exit()


def finish_first() -> None:
    """Let a thread that answers go on while another one wakes up to send what was answered, where they share a core.

    Linux otherwise changes between them twice a request, which takes a third of its CPU (decision 0001). Threads made
    from now on do the same; other systems have no such policy.
    """
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _defer_stopping() -> None:
    """Heed SIGTERM in a thread, which hands it to Granian once, and not before the worker surely serves.

    Granian loses one that comes just before it serves, and a second one, as Ctrl-C sends, may keep it from ending.
    """
    signals.hold()

    def hand_on() -> None:
        while not callable(stop := signal.getsignal(signal.SIGTERM)):
            time.sleep(_LOOKING_SECONDS)
        serving = time.monotonic() + _STARTING_SECONDS
        signal.sigwait({signal.SIGTERM})
        time.sleep(max(0.0, serving - time.monotonic()))
        stop(signal.SIGTERM, None)

    threading.Thread(target=hand_on, daemon=True).start()


def _end_with_parent() -> None:
    """Stop when the parent is gone, killed with no time to end its workers: they would hold its port for ever.

    Of several the one made last notices it first: each holds open what those before it wait for.
    """
    from multiprocessing import parent_process

    def stop() -> None:
        if parent := parent_process():
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop, daemon=True).start()


def _let_go_of_unread(settings: Settings) -> None:
    """Do so as soon as the worker listens, where the system can: Linux."""

    def let_go() -> None:
        with suppress(AttributeError, OSError):
            while not connections.let_go_of_unread(settings):
                time.sleep(_LOOKING_SECONDS)

    threading.Thread(target=let_go, daemon=True).start()
