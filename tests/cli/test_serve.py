import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from awaiting import until
from laudo.cli import connections
from laudo.cli.output import Failure
from laudo.core.sql import Statement
from laudo.server.config import Settings
from laudo.server.stores import open_store
from laudo.server.tokens import presented
from live.server import Client, free_port, request
from shell import LAUDO, Shell, ndjson, one_line


@dataclass(frozen=True, slots=True)
class Server:
    """A running `laudo serve` or `laudo demo`, and a client of it."""

    process: subprocess.Popen[bytes]
    client: httpx.Client

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("ascii")
        return [int(child) for child in children.split()]

    def stop(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@contextmanager
def serving(laudo: Shell, *words: str) -> Iterator[Server]:
    """Serve while a block runs, which begins once the process has printed its address."""
    port = free_port()
    with (
        laudo.starts(*words, "--port", str(port)) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        try:
            assert process.stderr
            assert any(line.startswith(b"laudo serves http://127.0.0.1:") for line in process.stderr)
            yield Server(process, client)
        finally:
            process.terminate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_serve_answers_and_exits_with_0_on_a_signal(laudo: Shell, number: int) -> None:
    token = laudo.prints("token", "create", "--user", "1")
    laudo.prints("import", str(ndjson(laudo.folder, 5)), "--account", "1")
    with serving(laudo, "serve", "--workers", "2") as server:
        body = server.client.get("/relatorios", headers={"Authorization": token}).json()
        assert body["result"]["paginacao"]["total"] == 5
        assert server.stop(number) == 0
        assert server.process.stderr
        assert server.process.stderr.read() == b""


def test_systemd_is_notified_when_the_service_is_ready(laudo: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(b"")  # Linux chooses a name in the abstract namespace
        systemd.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", systemd.getsockname().replace(b"\0", b"@", 1).decode())
        with serving(laudo, "serve", "--workers", "2") as server:
            assert systemd.recv(100) == b"READY=1"
            assert server.client.get("/ready").status_code == 200


def test_serve_under_nohup_keeps_ignoring_sighup(laudo: Shell) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with serving(laudo, "serve", "--workers", "1") as server:
            status = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
            masks = {name: int(mask, 16) for name, mask in re.findall(r"Sig(\w+):\t(\w+)", status)}
            assert masks["Ign"] & (1 << signal.SIGHUP - 1)
            assert not masks["Blk"] & (1 << signal.SIGHUP - 1)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_serve_exits_with_0_on_repeated_signals(laudo: Shell) -> None:
    """Under `make` there are two: one to the process group, and one from `make`, perhaps while the process ends."""
    with serving(laudo, "serve", "--workers", "1") as server:
        while server.process.poll() is None:
            server.process.terminate()
        assert server.process.returncode == 0


def test_serve_exits_with_0_on_a_signal_received_while_stopped(laudo: Shell) -> None:
    """After SIGCONT any thread may run first; there is one for each worker."""
    with serving(laudo, "serve", "--workers", "6") as server:
        assert server.client.get("/ready").status_code == 200
        server.process.send_signal(signal.SIGSTOP)
        server.process.terminate()
        assert server.stop(signal.SIGCONT) == 0


def test_no_worker_outlives_a_killed_server(laudo: Shell) -> None:
    with serving(laudo, "serve", "--workers", "3") as server:
        assert server.client.get("/ready").status_code == 200
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
        assert server.process.communicate(timeout=60)[1] == b"", "stderr ends when the last worker closes it"
        socket.create_server(("127.0.0.1", server.client.base_url.port or 0)).close()


def test_serve_does_not_start_if_the_limit_of_open_files_is_too_low(laudo: Shell) -> None:
    limited = ("sh", "-c", 'ulimit -n 38 && exec "$@"', "sh", LAUDO, "serve", "--workers", "1")
    ended = subprocess.run(limited, env=laudo.environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    enough = 1095 if laudo.store.startswith("sqlite:") else 1104
    assert ended.stderr.splitlines()[-1] == (
        "error: the limit of 38 open files is too low for 1 worker; "
        f"hint: raise it (ulimit -n, LimitNOFILE) to {enough} or more"
    )


@pytest.mark.parametrize("workers", [1, 256])
def test_the_hint_names_a_limit_of_open_files_that_is_enough(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _files: (38, 38))
    with pytest.raises(Failure) as caught:
        connections.accepted(Settings(workers=workers))
    named = re.search(r"to (\d+) or more$", str(caught.value))
    assert named
    monkeypatch.setattr(resource, "getrlimit", lambda _files: (int(named[1]), int(named[1])))
    assert connections.accepted(Settings(workers=workers)) == 1024 // workers


def test_serve_exits_with_2_and_no_workers_if_one_cannot_be_replaced(laudo: Shell) -> None:
    with serving(laudo, "serve", "--workers", "2") as server:
        assert server.client.get("/ready").status_code == 200
        one, other = server.workers()
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (6, 6))  # fewer than are open already
        os.kill(one, signal.SIGKILL)
        _, said = server.process.communicate(timeout=60)
        assert server.process.returncode == 2
        [_, told] = said.splitlines()
        assert told.startswith(b"error: cannot start a worker: Too many open files; hint: raise the limits on")
        assert not Path(f"/proc/{other}").exists()


def test_serve_exits_with_1_if_a_replacement_worker_dies_at_once(laudo: Shell) -> None:
    with serving(laudo, "serve", "--workers", "1") as server:
        [one] = server.workers()
        os.kill(one, signal.SIGKILL)
        [other] = until(lambda: set(server.workers()) - {one})
        os.kill(other, signal.SIGKILL)
        assert b"Worker crash loop detected" in server.process.communicate(timeout=60)[1]
        assert server.process.returncode == 1


def test_workers_start_even_if_python_does_not_fork_by_default(laudo: Shell) -> None:
    with serving(laudo, "serve", "--workers", "2") as server:
        assert server.client.get("/ready").status_code == 200
        assert len(server.workers()) == 2
        assert server.stop(signal.SIGTERM) == 0


SIGNALLED_AT_FORK = """
import os, signal
from laudo.cli import signals

signal.signal(signal.SIGTERM, lambda *_: None)
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))
signals.block()
signals.unblock_in_workers()
child = os.fork()
if not child:
    os._exit(0)
print(os.WTERMSIG(os.waitpid(child, 0)[1]))
os.kill(os.getpid(), signal.SIGTERM)
print("heeded")
"""


def test_a_worker_obeys_a_sigterm_received_right_after_its_fork() -> None:
    said = subprocess.run([sys.executable, "-c", SIGNALLED_AT_FORK], capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(int(signal.SIGTERM)), "heeded"]


FORGETTING_SERVER = """
import os, signal, threading
from laudo.cli import serving, signals

class Server:
    told = threading.Event()

    def signal_handler_interrupt(self):
        self.told.set()

signals.block()
serving._end_on_signal(Server())
os.kill(os.getpid(), signal.SIGTERM)
for _ in range(2):
    Server.told.wait()
    Server.told.clear()
"""


def test_a_signal_is_passed_on_again_if_the_server_forgets_it() -> None:
    subprocess.run([sys.executable, "-c", FORGETTING_SERVER], check=True, timeout=60)


WITHOUT_THREADS = """
import multiprocessing, resource, sys, threading
from laudo.cli import worker
from laudo.server.config import Settings

resource.setrlimit(resource.RLIMIT_AS, (1 << 38, resource.getrlimit(resource.RLIMIT_AS)[1]))
threading.stack_size(1 << 40)
child = multiprocessing.get_context("fork").Process(
    target=worker.application, args=(Settings(store=sys.argv[1]), bytes(32))
)
child.start()
child.join()
sys.exit(child.exitcode)
"""


def test_a_worker_that_cannot_start_threads_prints_one_line(laudo: Shell) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_THREADS, laudo.store], capture_output=True, text=True, check=False
    )
    assert ended.stderr == "error: cannot start a thread; hint: raise the limits on processes and memory\n"
    assert ended.returncode == 2


def test_a_worker_has_threads_for_its_connections_and_late_answers() -> None:
    server, late = "postgresql://one/laudo", ("5s=2",)
    for settings, number in (
        (Settings(), 1),
        (Settings(store=server, pool_size=3), 2 * 3 + 2),
        (Settings(store=server, pool_size=3, read_store=("postgresql://two/laudo",)), 2 * 2 * 3 + 2),
        (Settings(rehearse=late), 1 + 32),
        (Settings(store=server, pool_size=3, rehearse=late), 2 * 3 + 2 + 32),
    ):
        assert connections.threads(settings) == number


def test_a_worker_accepts_as_many_connections_as_the_limit_of_open_files_allows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(workers=2)
    for limit, number in ((resource.RLIM_INFINITY, 512), (589, 512), (588, 511), (78, 1), (45, 1)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert connections.accepted(settings) == number
    assert capsys.readouterr().err.splitlines() == [
        "each worker accepts 511 connections instead of 512: the limit is 588 open files",
        "each worker accepts 1 connection instead of 512: the limit is 78 open files",
        "each worker accepts 1 connection instead of 512: the limit is 45 open files",
    ]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (44, 44))
    with pytest.raises(Failure, match="the limit of 44 open files is too low for 2 workers"):
        connections.accepted(settings)


def test_slow_readers_are_dropped_on_the_port_of_the_service_only() -> None:
    with socket.create_server(("127.0.0.1", 0)) as metrics, socket.create_server(("127.0.0.1", 0)) as service:
        settings = Settings(port=service.getsockname()[1])
        assert connections.drop_slow_readers(settings)
        timeouts = [each.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) for each in (metrics, service)]
    assert timeouts == [0, 8 * settings.idle_timeout_ms]


def test_an_idle_connection_is_closed_without_an_answer(laudo: Shell) -> None:
    """A client would take such an answer for the one to its next request. Its pool notices a closed connection."""
    laudo.prints("token", "create", "--user", "1")
    with serving(laudo, "serve", "--workers", "1", "--idle-timeout-ms", "1000") as server:
        port = server.client.base_url.port
        assert port
        with Client(port) as used, Client(port) as unused:
            used.send(request("/health"))
            assert used.read().status == 200
            for client in (used, unused):
                client.socket.settimeout(15)
                assert client.rest() == b""


def test_a_port_in_use_prints_one_line_and_exits_with_2(laudo: Shell) -> None:
    laudo.prints("token", "create", "--user", "1")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result = laudo("serve", "--port", str(other.getsockname()[1]))
    assert result.exit_code == 2
    assert "Address already in use; hint: choose another --port" in one_line(result)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set(), "a failed start leaves the signal mask unchanged"


def test_equal_service_and_metrics_ports_are_refused(laudo: Shell) -> None:
    laudo.prints("token", "create", "--user", "1")
    port = str(free_port())
    result = laudo("serve", "--port", port, "--metrics-port", port)
    assert result.exit_code == 2
    assert one_line(result) == "error: metrics_port is the same as port; hint: choose another one"


def test_a_metrics_port_in_use_prints_one_line_and_exits_with_2(laudo: Shell) -> None:
    laudo.prints("token", "create", "--user", "1")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        words = ("serve", "--port", str(free_port()), "--metrics-port", str(other.getsockname()[1]))
        result = laudo(*words)
    assert result.exit_code == 2
    assert "cannot serve metrics on 127.0.0.1" in one_line(result)
    assert "hint: choose another metrics_port" in one_line(result)


def test_an_unusable_metrics_host_is_reported_with_its_setting(laudo: Shell) -> None:
    laudo.prints("token", "create", "--user", "1")
    result = laudo(
        "serve", "--port", str(free_port()), "--metrics-port", str(free_port()), "--metrics-host", "192.0.2.1"
    )
    assert result.exit_code == 2
    assert one_line(result).startswith("error: cannot serve metrics on 192.0.2.1:")
    assert one_line(result).endswith("; hint: choose another metrics_port or metrics_host")


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--port", "0"], "port"),
        (["--port", "http"], "port"),
        (["--workers", "none"], "workers"),
        (["--max-rows", "30"], "max_rows"),
        (["--rate-limit", "-1"], "rate_limit"),
        (["--allowed-origins", "app.example.com"], "allowed_origins"),
        (["--store", "laudo.db"], "store"),
        (["--config", "none.toml"], "none.toml"),
        (["--prot", "8000"], "--prot"),
    ],
)
def test_a_wrong_setting_is_named_in_one_line_and_exits_with_2(empty: Shell, flags: list[str], named: str) -> None:
    result = empty("serve", *flags)
    assert result.exit_code == 2
    assert named in one_line(result)


def test_demo_prints_a_curl_command_and_the_same_on_the_next_run(fresh: Shell) -> None:
    words = ("demo", "--no-serve", "--count", "100", "--store", fresh.store)
    first, again = fresh(*words), fresh(*words)
    base, token, pasted = (line.split(maxsplit=1)[1] for line in first.stdout.splitlines())
    assert "http://127.0.0.1:8000" in base
    assert presented(token) == token
    assert pasted == f"curl -H 'Authorization: {token}' 'http://127.0.0.1:8000/relatorios?tipo_pessoa=PESSOA'"
    assert (first.exit_code, again.exit_code, again.stdout) == (0, 0, first.stdout)
    told = "the store was filled before and is left as it is"
    assert [result.stderr.count(told) for result in (first, again)] == [0, 1]


@pytest.mark.parametrize("refusing", [("token", "revoke", "1"), ("account", "disable", "1")])
def test_demo_says_that_its_token_is_refused(fresh: Shell, refusing: tuple[str, ...]) -> None:
    words = ("demo", "--no-serve", "--count", "10", "--store", fresh.store)
    first = fresh(*words)
    fresh.prints(*refusing)
    again = fresh(*words)
    assert [("the token is refused" in result.stderr) for result in (first, again)] == [False, True]
    assert (again.exit_code, again.stdout) == (0, first.stdout)


def test_demo_creates_the_folder_of_its_store(empty: Shell) -> None:
    empty.prints("demo", "--no-serve", "--count", "1", "--store", f"sqlite:///{empty.folder}/new/demo.db")
    assert (empty.folder / "new/demo.db").exists()


def test_demo_invents_reports_up_to_now_or_to_the_given_instant(empty: Shell) -> None:
    now = datetime.now(UTC)
    assert now - timedelta(days=4) < _newest(empty) <= now
    assert _newest(empty, "--until", "2026-10-01T00:00:00Z") == datetime.fromisoformat("2026-09-30T19:00:26.147Z")


def test_demo_refuses_an_instant_before_the_year_4(empty: Shell) -> None:
    store = ("--store", f"sqlite:///{empty.folder}/old.db")
    done = empty("demo", "--no-serve", *store, "--until", "0003-12-31T23:59:59.999Z")
    assert done.exit_code == 2
    assert "--until must be 0004-01-01T00:00:00.000Z or later" in done.stderr
    assert not (empty.folder / "old.db").exists()
    empty.prints("demo", "--no-serve", *store, "--count", "10", "--until", "0004-01-01T00:00:00Z")


def _newest(shell: Shell, *words: str) -> datetime:
    """Create a new demonstration and return the instant of its newest report."""
    store = f"sqlite:///{shell.folder}/{len(words)}.db"
    shell.prints("demo", "--no-serve", "--store", store, *words)
    with closing(open_store(store)) as database:
        [(recency,)] = database.fetch(Statement("SELECT min(recency) FROM relatorio WHERE id_conta = 1"))
    return datetime.fromtimestamp(-recency / 1000, UTC)


def test_demo_ignores_the_store_in_laudo_store(laudo: Shell) -> None:
    done = subprocess.run(
        [LAUDO, "demo", "--no-serve", "--count", "10"],
        check=True,
        capture_output=True,
        cwd=laudo.folder,
        env=laudo.environment,
    )
    assert done.stdout
    assert (laudo.folder / "demo.db").exists()
    assert [item["nome_organizacao"] for item in laudo.lists("organization", "list")] == ["Modelo"]


def test_demo_does_not_start_on_a_port_in_use(empty: Shell) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result = empty("demo", "--port", str(other.getsockname()[1]))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Address already in use; hint: choose another --port" in one_line(result)
    assert not (empty.folder / "demo.db").exists()


def test_demo_serves_the_store_of_an_earlier_run(fresh: Shell) -> None:
    words = ("demo", "--store", fresh.store, "--workers", "1")
    token = fresh.prints(*words, "--no-serve").splitlines()[-2].split()[1]
    with serving(fresh, *words) as server:
        body = server.client.get("/relatorios", headers={"Authorization": token}).json()
        assert body["result"]["paginacao"]["total"] > 5000
        assert server.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_live_demo_adds_reports_and_leaves_no_process_when_it_ends(empty: Shell, number: int) -> None:
    words = ("demo", "--count", "10", "--workers", "1", "--live")
    with serving(empty, *words) as server:
        assert server.process.stdout
        token = next(line.split()[1].decode() for line in server.process.stdout if line.startswith(b"token"))
        server.client.headers["Authorization"] = token
        until(lambda: server.client.get("/relatorios").json()["result"]["paginacao"]["total"] >= 7 + 2)
        assert server.stop(number) == (0 if number == signal.SIGTERM else -number)
        assert server.process.communicate(timeout=60)[1] == b"", "stderr ends when the last process closes it"


def test_demo_refuses_live_together_with_no_serve(empty: Shell) -> None:
    result = empty("demo", "--live", "--no-serve")
    assert result.exit_code == 2
    assert "--live and --no-serve cannot be used together" in one_line(result)
    assert not (empty.folder / "demo.db").exists()
