"""Runs Granian: worker processes around one application, until SIGTERM or Ctrl-C."""

import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from laudo.cli import connections, options, output, signals, worker
from laudo.cli.options import opened
from laudo.server.config import Settings

if TYPE_CHECKING:
    from granian.server.common import AbstractServer

_STOP_SECONDS: Final = 30
"""How long requests in flight may take to finish once the server is told to stop."""

_POLL_SECONDS: Final = 0.01
"""Seconds between two checks whether a worker listens, or two attempts to hand a signal to the server."""

_CONNECT_SECONDS: Final = 1
"""Seconds that such a check may take."""

_HEAD_BYTES: Final = 65_536
"""Longest head of a request: until it ends, the worker keeps it in memory, whoever sends it."""

_LOG: Final[dict[str, Any]] = {
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "generic", "stream": "ext://sys.stderr"}},
    "loggers": {"_granian": {"handlers": ["stderr"], "level": "ERROR", "propagate": False}},
}


def run(settings: Settings) -> None:
    """Serve until told to stop, then finish the requests in flight; raises what makes it impossible to start."""
    _require_modules()
    _forbid_core_dumps()
    from laudo.server import metrics

    _require_replicas(settings)
    key = _require_store(settings)
    with ExitStack() as on_failure:
        signals.block()  # before there are other threads
        on_failure.callback(signals.unblock)
        with metrics.start(settings):  # first, so that their port is not free for the service
            server = _server(settings)
            if settings.rehearse:
                planned = ",".join(settings.rehearse)
                output.note(f"rehearsing {planned}: some requests are refused, delayed or answered in part")
            on_failure.pop_all()
            signals.unblock_in_workers()
            _end_on_signal(server)
            _announce(settings, server)
            with _end_workers_on_failure(server):
                server.serve(target_loader=lambda: worker.application(settings, key), wrap_loader=False)


@contextmanager
def _end_workers_on_failure(server: "AbstractServer[Any]") -> Iterator[None]:
    """End all workers and raise Failure if one cannot be started, as at a limit on processes.

    Otherwise this process would wait for the other workers for ever, without replacing one or obeying a signal.
    """
    from multiprocessing import active_children

    try:
        yield
    except (OSError, RuntimeError) as error:
        with suppress(SystemExit):
            server.shutdown()  # type: ignore[no-untyped-call]
        for child in active_children():
            child.kill()  # Granian does not know of it yet.
        reason = getattr(error, "strerror", None) or error
        hint = "raise the limits on processes, memory and open files"
        raise output.Failure(f"cannot start a worker: {reason}; hint: {hint}") from error


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
    """Check that what the workers import is installed: otherwise each of them would fail by itself."""
    for name in output.SERVER_PACKAGES:
        if find_spec(name) is None:
            raise output.Failure(output.without_server(name))


def _forbid_core_dumps() -> None:
    """Let no process leave its memory to others when it crashes: it holds tokens, and what they may see."""
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    # With 0, Linux would still hand the memory to a program that collects crashes.
    resource.setrlimit(resource.RLIMIT_CORE, (1 if most else 0, most))


def base_url(settings: Settings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


def _end_on_signal(server: "AbstractServer[Any]") -> None:
    """Wait for signals in a thread, until the very end of the process.

    Python runs a signal handler in the main thread, which waits for a lock. A signal that another thread received, as
    may happen after the process was stopped, would not wake it up. If a signal came while it takes the lock, the
    handler would wait for the same lock for ever. The thread hands the signal to the server again and again, since the
    server forgets it if a worker dies at that moment.
    """
    stopping = signals.stopping()

    def forward() -> None:
        signal.sigwait(stopping)
        while True:
            server.signal_handler_interrupt()  # type: ignore[no-untyped-call]
            time.sleep(_POLL_SECONDS)

    threading.Thread(target=forward, daemon=True).start()


def _announce(settings: Settings, server: "AbstractServer[Any]") -> None:
    """Print the address once a worker accepts connections, and all are forked: printing could disturb a fork."""

    def announce() -> None:
        while len(server.wrks) < settings.workers or not _accepts(settings):
            time.sleep(_POLL_SECONDS)
        workers = output.counted(settings.workers, "worker")
        output.note(f"laudo serves {base_url(settings)} with {workers}; press Ctrl-C to stop")
        _notify_systemd()

    threading.Thread(target=announce, daemon=True).start()


def _notify_systemd() -> None:
    """Tell systemd that the service is ready, for a unit of `Type=notify` and what waits for it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"READY=1", f"\0{address[1:]}" if address.startswith("@") else address)


def _accepts(settings: Settings) -> bool:
    with suppress(OSError), socket.create_connection((settings.host, settings.port), _CONNECT_SECONDS):
        return True
    return False


def _require_store(settings: Settings) -> bytes:
    """Check that the store can be used; gives the key under which its tokens are hashed, for all workers.

    A store without tokens gets a new key, if there is none. Otherwise the key of its tokens must exist.
    """
    from laudo.server import accounts, database, stores

    try:
        with opened(settings) as store, store.snapshot() as connection:
            is_new = not accounts.has_tokens(connection)
    except database.Unavailable as error:
        if stores.file_path(settings.store):
            raise
        is_new = False  # it may come back, and its replicas answer meanwhile
        output.note(f"the store does not answer yet: {error}")
    return options.key(settings, create=is_new)


def _require_replicas(settings: Settings) -> None:
    """Check the replicas' URLs: otherwise each worker would fail by itself because of a wrong one."""
    from laudo.server import app

    if settings.read_store:
        app.open_served(settings).close()


def free_address(host: str, port: int) -> str:
    """Give the host's numeric address; raises Failure if the port is taken.

    Workers share the port, so that a second service would not notice the first.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or 0)
        raise output.Failure(
            f"cannot listen on {host}:{port}: {reason}; hint: choose another --port or --host"
        ) from error
    return str(address[0])
