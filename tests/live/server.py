"""Runs the command `laudo` in its own process, and sends requests to it over plain sockets."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from awaiting import PATIENCE, readable, until
from laudo.core.values import render_instant
from laudo.demo import NOW_MS
from shell import LAUDO, Shell

DEMO_UNTIL: Final = render_instant(NOW_MS)
"""The instant up to which reports are invented; fixed, so that tests know their dates."""


@dataclass(frozen=True, slots=True)
class Place(Shell):
    """A shell whose store is served, and a token for it."""

    token: str = field(default="", repr=False)

    def demonstrate(self) -> "Place":
        """Fill the store with 10,000 invented reports; gives a place with a token of the account that has the most."""
        words = ("--no-serve", "--until", DEMO_UNTIL, "--store", self.store, "--key-file", str(self.key_file))
        made = self.run("demo", *words)
        assert made.returncode == 0, made.stderr
        token = next(line.split()[1] for line in made.stdout.splitlines() if line.startswith("token"))
        return replace(self, token=token)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command and wait for its end."""
        return subprocess.run(
            [LAUDO, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to one request; its header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - a test knows what it asked for
        return json.loads(self.body)


class Client:
    """One connection."""

    def __init__(self, port: int, *, receive_buffer: int = 0) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port))
        self._stream = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self.socket.close()

    def send(self, request: bytes) -> None:
        self.socket.sendall(request)

    def read(self, *, head: bool = False) -> Response:
        """Read one whole answer; raises EOFError if the connection ends before that."""
        status = int(self._line().split(b" ", 2)[1])
        headers: dict[str, str] = {}
        while line := self._line().rstrip(b"\r\n"):
            name, _, text = line.decode("latin-1").partition(":")
            headers[name.lower()] = text.strip()
        size = 0 if head or status in {100, 204, 304} else int(headers.get("content-length", "0"))
        body = self._stream.read(size)
        if len(body) < size:
            raise EOFError
        return Response(status, headers, body)

    def rest(self) -> bytes:
        """Read until the server closes the connection."""
        return self._stream.read()

    def _line(self) -> bytes:
        line = self._stream.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        return line


def request(target: str, *headers: str, method: str = "GET") -> bytes:
    """Give the bytes of one request; each character becomes one byte."""
    lines = (f"{method} {target} HTTP/1.1", "Host: test", *headers, "", "")
    return "\r\n".join(lines).encode("latin-1")


class Server:
    """A running `laudo serve`; its stdout and stderr go to two files."""

    def __init__(self, place: Place, *flags: str, port: int | None = None, files: int = 0) -> None:
        """Start serving; `files`, if given, limits how many files each process may have open."""
        limited = ("sh", "-c", f'ulimit -n {files} && exec "$@"', "sh") if files else ()
        self.place = place
        self.port = port or free_port()
        self.out = place.folder / f"{self.port}.out"
        self.err = place.folder / f"{self.port}.err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [*limited, LAUDO, "serve", "--port", str(self.port), *flags],
                cwd=place.folder,
                env=place.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        wait_for_port(self.process, self.port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, target: str, *headers: str, method: str = "GET") -> Response:
        """Send one request on its own connection, with the token unless `headers` have an Authorization."""
        given = any(header.lower().startswith("authorization:") for header in headers)
        token = () if given else (f"Authorization: {self.place.token}",)
        with Client(self.port) as client:
            client.send(request(target, *token, *headers, method=method))
            return client.read(head=method == "HEAD")

    def statuses(self, raw: bytes) -> list[int]:
        """Send any bytes and a valid last request; gives the status of each answer until the server closes."""
        last = request("/health", "Connection: close")
        with Client(self.port) as client, suppress(BrokenPipeError, ConnectionResetError):
            client.send(raw + last)
            return [int(status) for status in re.findall(rb"HTTP/1\.[01] ([0-9]{3}) ", client.rest())]
        return []

    def interrupt(self, number: signal.Signals) -> None:
        """Signal the main process, or for SIGINT all processes, as Ctrl-C on a terminal does."""
        if number is signal.SIGINT:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)

    def ended(self) -> int:
        """Wait until the server has ended after an interruption; gives its exit code."""
        try:
            return self.process.wait(PATIENCE)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def said(self) -> str:
        """Everything that the server has written so far, to stdout and then to stderr."""
        return self.out.read_text("utf-8") + self.err.read_text("utf-8")

    def wait_to_say(self, text: str) -> None:
        """Return when the server has written `text`; fails if that takes too long."""
        until(lambda: text in self.said(), f"the server did not write: {text}")

    @staticmethod
    def kill(worker: int) -> None:
        """Kill a worker and return when it is dead; another one soon replaces it."""
        watched = os.pidfd_open(worker)
        os.kill(worker, signal.SIGKILL)
        assert readable(watched, PATIENCE)
        os.close(watched)

    def log(self) -> list[dict[str, Any]]:
        """The request log so far."""
        return [json.loads(line) for line in self.out.read_text("utf-8").splitlines()]

    def holds(self, client: Client) -> bool:
        """Tell whether the server's side of a connection still exists."""
        both = f"0100007F:{self.port:04X} 0100007F:{client.socket.getsockname()[1]:04X} "
        return both in Path("/proc/net/tcp").read_text("ascii")

    def workers(self) -> list[int]:
        """The ids of the worker processes."""
        text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("ascii")
        return [int(number) for number in re.findall(r"\d+", text)]


@contextmanager
def serving(place: Place, *flags: str, port: int | None = None, files: int = 0, bugs: int = 0) -> Iterator[Server]:
    """Serve a place for the length of a block; fails unless the server has reported exactly `bugs` bugs by its end."""
    server = Server(place, *flags, port=port, files=files)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.interrupt(signal.SIGTERM)
        server.ended()
        met = re.findall("^(?:bug: |store: .*`laudo verify).*", server.said(), re.MULTILINE)
        assert len(met) == bugs, met


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def scrape(port: int) -> str:
    """Get the metrics that are served on a port."""
    with Client(port) as client:
        client.send(request("/metrics", "Connection: close"))
        return client.rest().decode()


def wait_for_port(process: "subprocess.Popen[bytes]", port: int) -> None:
    """Return when the port accepts connections; fails if the process ends, or if that takes too long."""

    def accepts() -> bool:
        assert process.poll() is None, f"the server ended with exit code {process.returncode}"
        return _listens(port)

    until(accepts, f"nothing listened on {port}")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))


def wait_for_text(file: Path) -> None:
    """Return when a file is not empty any more; fails if that takes too long."""
    until(lambda: file.stat().st_size, f"{file} stayed empty")
