"""Runs Granian: worker processes around one application, until SIGTERM or Ctrl-C."""

import os
import signal
import socket
import sys
import threading
import time
from contextlib import ExitStack, suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from laudo.cli import connections, options, output
from laudo.cli.options import opened
from laudo.server.config import Settings

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from granian.server.common import AbstractServer

_STOP_SECONDS: Final = 30
"""How long requests in flight may take to finish once the server is told to stop."""

_STARTING_SECONDS: Final = 0.5
"""How long a worker that has Granian's handler of signals may take until it heeds it."""

_LOOKING_SECONDS: Final = 0.01
"""How often it is looked whether a worker that begins has that handler yet, and whether one listens."""

_CONNECTING_SECONDS: Final = 1
"""How long it is tried whether one does."""

_OPENING_SECONDS: Final = 1
"""How long a worker waits until it tries again to open the store."""

_HEAD_BYTES: Final = 65_536
"""What a connection may send before a request's head ends: it is kept, of whoever connects, in the worker's memory."""

_LOG: Final[dict[str, Any]] = {
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "generic", "stream": "ext://sys.stderr"}},
    "loggers": {"_granian": {"handlers": ["stderr"], "level": "ERROR", "propagate": False}},
}


def run(settings: Settings) -> None:
    """Serve until told to stop; requests in flight are finished. Raises what makes it impossible to start."""
    _require_modules()
    from laudo.server import metrics

    _require_replicas(settings)
    key = _require_store(settings)
    with ExitStack() as unless_served:
        _hold_signals()  # before there are other threads
        unless_served.callback(_let_signals)
        with metrics.start(settings):  # first: a port that they have is not free for the service
            server = _server(settings)
            unless_served.pop_all()
            heed_signals_from_birth()
            _end_when_told(server)
            _announce(settings, server)
            server.serve(target_loader=lambda: application(settings, key), wrap_loader=False)


def _server(settings: Settings) -> "AbstractServer[Any]":
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings
    from granian.log import LogLevels
    from granian.server import Server

    server = Server(
        "laudo",
        address=free_address(settings.host, settings.port),
        port=settings.port,
        interface=Interfaces.WSGI,
        workers=settings.workers,
        backpressure=connections.accepted(settings),
        blocking_threads=connections.threads(settings),
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=settings.idle_timeout_ms, max_buffer_size=_HEAD_BYTES),
        websockets=False,
        log_level=LogLevels.error,
        log_dictconfig=_LOG,
        respawn_failed_workers=True,
        workers_kill_timeout=_STOP_SECONDS,
    )
    server.on_startup(partial(signal.signal, signal.SIGHUP, signal.getsignal(signal.SIGHUP)))  # Granian would reload
    return server


def _require_modules() -> None:
    """Look for what workers will import: their failure would be known only to them."""
    for name in output.SERVER:
        if find_spec(name) is None:
            raise output.Failure(output.without_server(name))


def application(settings: Settings, key: bytes) -> "WSGIApplication":
    """Build a worker's application, in the worker."""
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


def base_url(settings: Settings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


def heed_signals_from_birth() -> None:
    """From now on a signal waits until a thread asks for it, and no worker loses one, however early it comes.

    Workers are forked, as by default before Python 3.14.
    """
    from multiprocessing import set_start_method

    set_start_method("fork", force=True)
    _hold_signals()
    os.register_at_fork(after_in_child=_heed_signals)


def _stopping() -> set[signal.Signals]:
    """Give what ends the service: SIGHUP, which comes when its terminal is closed, unless nohup has it ignored."""
    is_heeded = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return {signal.SIGINT, signal.SIGTERM} | ({signal.SIGHUP} if is_heeded else set())


def _hold_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _stopping())


def _let_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _stopping())


def _heed_signals() -> None:
    """Until a new worker has its own handlers, the parent's would swallow the signal that should end it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal sends it to all; the parent then ends its workers
    _let_signals()


def _end_when_told(server: "AbstractServer[Any]") -> None:
    """Heed signals in a thread, to the very end of the process.

    A handler of Python's runs in the main thread, which waits for a lock: a signal that any other thread took, as one
    may after the process was stopped, would not wake it up; and one that comes as it takes the lock would wait for
    ever for the same.
    """
    stopping = _stopping()

    def hand_on() -> None:
        while True:
            signal.sigwait(stopping)
            server.signal_handler_interrupt()  # type: ignore[no-untyped-call]

    threading.Thread(target=hand_on, daemon=True).start()


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
    _hold_signals()

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


def _announce(settings: Settings, server: "AbstractServer[Any]") -> None:
    """Say where it serves as soon as that is true, once nothing is forked any more that a thread could disturb."""

    def announce() -> None:
        while len(server.wrks) < settings.workers or not _accepts(settings):
            time.sleep(_LOOKING_SECONDS)
        workers = f"{settings.workers} worker{'s' if settings.workers > 1 else ''}"
        output.note(f"laudo serves {base_url(settings)} with {workers}; Ctrl-C stops it")
        _tell_systemd()

    threading.Thread(target=announce, daemon=True).start()


def _tell_systemd() -> None:
    """Let a unit of `Type=notify`, and what waits for it, begin only now."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as telling:
        telling.sendto(b"READY=1", f"\0{address[1:]}" if address.startswith("@") else address)


def _accepts(settings: Settings) -> bool:
    with suppress(OSError), socket.create_connection((settings.host, settings.port), _CONNECTING_SECONDS):
        return True
    return False


def _require_store(settings: Settings) -> bytes:
    """A store must be whole. A new one gets its key now; the key under which its tokens were made must be there.

    Gives that key, for all workers that are ever forked.
    """
    from laudo.server import accounts, database, stores

    try:
        with opened(settings) as store, store.snapshot() as connection:
            is_new = not accounts.tokens(connection)
    except database.Unavailable as error:
        if stores.file(settings.store):
            raise
        is_new = False  # it may come back, and its replicas answer meanwhile
        output.note(f"the store does not answer yet: {error}")
    return options.key(settings, create=is_new)


def _require_replicas(settings: Settings) -> None:
    """Try the replicas' URLs: what is wrong with one would be known only to the workers."""
    from laudo.server import app

    if settings.read_store:
        app.open_served(settings).close()


def free_address(host: str, port: int) -> str:
    """Give the host's numeric address. Workers share the port, so that a second server would not notice the first."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or 0)
        raise output.Failure(
            f"cannot listen on {host}:{port}: {reason}; hint: choose another --port or --host"
        ) from error
    return str(place[0])
