"""Metrics for Prometheus: requests by route, method and status, their latency, and replicas, over all workers.

Workers count in files of one temporary folder; the main process adds them up on a port of its own.
"""

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import BufferedReader, RawIOBase
from pathlib import Path
from socket import socket
from socketserver import StreamRequestHandler
from tempfile import TemporaryDirectory, gettempdir
from time import monotonic, time
from typing import TYPE_CHECKING, Final

from laudo.server import logs
from laudo.server.config import Settings

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from prometheus_client import Counter, Gauge, Histogram

Observe = Callable[[str, str, int, float], None]
"""(route, method, status, seconds) -> None."""

_PREFIX: Final = "laudo-metrics-"
_STARTING_SECONDS: Final = 60
"""A service locks its folder long before this: an older one that is not locked is left over."""
_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client reads it when it is imported
_BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
_FILE_BYTES: Final = 1 << 18
"""Size of each file, more than all routes, methods and statuses take, so that prometheus_client never extends it."""
_REQUEST_SECONDS: Final = 5
"""How long a client may take to send its request, and then to read the answer: it occupies a thread."""
_log: Final = logs.Throttled()


class MetricsError(Exception):
    """The metrics cannot be served; the text says why."""


@contextmanager
def start(settings: Settings) -> Iterator[None]:
    """Serve the metrics from this process, which must be the workers' parent, until the block ends.

    Does nothing when they are off. Raises MetricsError.
    """
    if not settings.metrics_port:
        yield
        return
    if (settings.metrics_host, settings.metrics_port) == (settings.host, settings.port):
        raise MetricsError("metrics_port is the same as port; hint: choose another one")
    _remove_leftovers()
    with TemporaryDirectory(prefix=_PREFIX) as folder, _open_folder(folder) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # workers inherit the lock: it ends with the last of them
        os.environ[_FOLDER] = folder
        stop = _listen(settings.metrics_host, settings.metrics_port)
        try:
            yield
        finally:
            stop()
            del os.environ[_FOLDER]


def _remove_leftovers() -> None:
    """Remove the folders left by killed services of this user: nobody holds a lock on them."""
    for folder in Path(gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError), _open_folder(folder) as descriptor:
            _remove(folder, descriptor)


def _remove(folder: Path, descriptor: int) -> None:
    """Remove a folder that nobody has locked, unless it is another user's, or too new to judge; raises OSError."""
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or time() - status.st_mtime < _STARTING_SECONDS:
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for name in os.listdir(descriptor):
        os.unlink(name, dir_fd=descriptor)  # the path may lead elsewhere by now
    folder.rmdir()


@contextmanager
def _open_folder(folder: Path | str) -> Iterator[int]:
    """Open a folder, without following a link."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def observer(settings: Settings) -> Observe | None:
    """Give the function that a worker calls after each request; None if metrics are off, or the disk has no room."""
    if not _reserve_files(settings, "counter", "histogram"):
        return None
    _families()  # before there are threads: two counters of one name would overwrite each other's counts
    return observe


def reporter(settings: Settings) -> Callable[[int, float], None] | None:
    """Give the function that a worker calls after each check of a replica; None as for `observer`."""
    return report_lag if _reserve_files(settings, "gauge_mostrecent") else None


def report_lag(number: int, seconds: float) -> None:
    """Show by how much a replica may lag; the last worker that checked it counts."""
    _lag().labels(str(number)).set(seconds)


def observe(route: str, method: str, status: int, seconds: float) -> None:
    """Count one request, if possible; route and method are known names, never texts that a client made up."""
    try:
        count, time = _instruments(route, method, status)
        count()
        time(seconds)
    except OSError as error:
        _log.notice(f"metrics: {error.strerror}; a request was not counted")


def _reserve_files(settings: Settings, *kinds: str) -> bool:
    """Reserve disk space for this worker's files, if metrics are on; tell whether there is enough.

    prometheus_client maps sparse files into memory: on a full disk, writing into one would kill the worker.
    """
    if not settings.metrics_port or _FOLDER not in os.environ:
        return False
    try:
        for kind in kinds:
            _reserve_file(Path(os.environ[_FOLDER], f"{kind}_{os.getpid()}.db"))
    except OSError as error:
        _log.notice(f"metrics: {error.strerror}; this worker counts nothing")
        return False
    return True


def _reserve_file(file: Path) -> None:
    """Make a file of zeros, whole or not at all; one left by an earlier process with this id is used again."""
    if file.exists():
        return
    part = file.with_suffix(".part")
    try:
        part.write_bytes(bytes(_FILE_BYTES))
        part.rename(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


@lru_cache(maxsize=1024)
def _instruments(route: str, method: str, status: int) -> tuple[Callable[[], None], Callable[[float], None]]:
    requests, latency = _families()
    return requests.labels(route, method, str(status)).inc, latency.labels(route).observe


@lru_cache(maxsize=1)
def _families() -> "tuple[Counter, Histogram]":
    from prometheus_client import Counter, Histogram  # noqa: PLC0415 - start() chooses the folder that it reads first

    return (
        Counter("laudo_requests", "Requests answered.", ["route", "method", "status"], registry=None),
        Histogram("laudo_request_seconds", "Time in the application.", ["route"], buckets=_BUCKETS, registry=None),
    )


@lru_cache(maxsize=1)
def _lag() -> "Gauge":
    from prometheus_client import Gauge  # noqa: PLC0415 - the same

    about = "Seconds by which a replica may be behind."
    return Gauge("laudo_replica_lag_seconds", about, ["replica"], registry=None, multiprocess_mode="mostrecent")


def _listen(host: str, port: int) -> Callable[[], None]:
    """Serve the sum over all workers from a thread; gives the function that stops it."""
    from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415 - the same
    from prometheus_client.multiprocess import MultiProcessCollector  # noqa: PLC0415 - the same

    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        reason = f"cannot serve metrics on {host}:{port}: {error.strerror}"
        raise MetricsError(f"{reason}; hint: choose another metrics_port or metrics_host") from error

    server.RequestHandlerClass.timeout = _REQUEST_SECONDS  # type: ignore[attr-defined]
    server.RequestHandlerClass.setup = _set_up  # type: ignore[attr-defined]
    server.handle_error = _on_failure  # type: ignore[assignment]

    def stop() -> None:
        server.shutdown()
        server.server_close()

    return stop


def _set_up(handler: StreamRequestHandler) -> None:
    """Set up a connection so that its request must come in time."""
    StreamRequestHandler.setup(handler)
    handler.rfile = BufferedReader(_TimedInput(handler.connection))


class _TimedInput(RawIOBase):
    """What a client sends: once its time is over, the next read fails, even if bytes still arrive."""

    def __init__(self, connection: socket) -> None:
        self._connection = connection
        self._deadline = monotonic() + _REQUEST_SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read what has arrived; raises TimeoutError."""
        left = self._deadline - monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        size = self._connection.recv_into(buffer)
        self._connection.settimeout(_REQUEST_SECONDS)
        return size


def _on_failure(_request: object, _address: object) -> None:
    """Report a failure, such as a lost client, in one line; Python's server would print a traceback and an address."""
    _log.notice(f"metrics: {type(sys.exception()).__name__}; a request for metrics was not answered")
