import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from laudo.cli.connections import threads
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
    """Serve for the length of a block, which begins once the process says that it serves."""
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
def test_serve_answers_and_a_signal_ends_it_with_0(laudo: Shell, number: int) -> None:
    token = laudo.prints("token", "create", "--user", "1")
    laudo.prints("import", str(ndjson(laudo.folder, 5)), "--account", "1")
    with serving(laudo, "serve", "--workers", "2") as server:
        body = server.client.get("/relatorios", headers={"Authorization": token}).json()
        assert body["result"]["paginacao"]["total"] == 5
        assert server.stop(number) == 0
        assert server.process.stderr
        assert server.process.stderr.read() == b""


def test_systemd_is_told_once_it_serves(laudo: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(b"")  # Linux chooses a name in the abstract namespace
        systemd.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", systemd.getsockname().replace(b"\0", b"@", 1).decode())
        with serving(laudo, "serve", "--workers", "2") as server:
            assert systemd.recv(100) == b"READY=1"
            assert server.client.get("/ready").status_code == 200


def test_with_nohup_the_end_of_its_terminal_is_not_its_own(laudo: Shell) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with serving(laudo, "serve", "--workers", "1") as server:
            status = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
            masks = {name: int(mask, 16) for name, mask in re.findall(r"Sig(\w+):\t(\w+)", status)}
            assert masks["Ign"] & (1 << signal.SIGHUP - 1)
            assert not masks["Blk"] & (1 << signal.SIGHUP - 1)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_many_signals_end_it_with_0_too(laudo: Shell) -> None:
    """Under `make` two come: one to the process group, and another from `make`, perhaps while the process is ending."""
    with serving(laudo, "serve", "--workers", "1") as server:
        while server.process.poll() is None:
            server.process.terminate()
        assert server.process.returncode == 0


def test_a_signal_that_came_while_it_was_stopped_ends_it_with_0_too(laudo: Shell) -> None:
    """After SIGCONT any thread may run first; there is one for each worker."""
    with serving(laudo, "serve", "--workers", "6") as server:
        assert server.client.get("/ready").status_code == 200
        server.process.send_signal(signal.SIGSTOP)
        server.process.terminate()
        assert server.stop(signal.SIGCONT) == 0


def test_no_worker_outlives_a_server_that_is_killed(laudo: Shell) -> None:
    with serving(laudo, "serve", "--workers", "3") as server:
        assert server.client.get("/ready").status_code == 200
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
        assert server.process.communicate(timeout=60)[1] == b"", "its end comes when the last worker closes it"
        socket.create_server(("127.0.0.1", server.client.base_url.port or 0)).close()


def test_where_too_few_files_may_be_open_to_serve_it_does_not_start(laudo: Shell) -> None:
    limited = ("sh", "-c", 'ulimit -n 38 && exec "$@"', "sh", LAUDO, "serve", "--workers", "1")
    ended = subprocess.run(limited, env=laudo.environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == (
        "error: the limit of 38 open files is too low for 1 worker; "
        "hint: raise it (ulimit -n, LimitNOFILE) to 1024 or more"
    )


def test_a_service_that_can_start_no_worker_any_more_ends_with_2_and_none_is_left(laudo: Shell) -> None:
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


def test_a_service_whose_worker_dies_again_as_soon_as_it_is_replaced_ends_with_1(laudo: Shell) -> None:
    with serving(laudo, "serve", "--workers", "1") as server:
        [one] = server.workers()
        os.kill(one, signal.SIGKILL)
        while not (others := set(server.workers()) - {one}):
            time.sleep(0.01)
        os.kill(others.pop(), signal.SIGKILL)
        assert b"Worker crash loop detected" in server.process.communicate(timeout=60)[1]
        assert server.process.returncode == 1


def test_workers_are_forked_whatever_python_does_by_default(laudo: Shell) -> None:
    with serving(laudo, "serve", "--workers", "2") as server:
        assert server.client.get("/ready").status_code == 200
        assert len(server.workers()) == 2
        assert server.stop(signal.SIGTERM) == 0


BORN_TO_END = """
import os, signal
from laudo.cli import signals

signal.signal(signal.SIGTERM, lambda *_: None)
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))
signals.heed_from_birth()
child = os.fork()
if not child:
    os._exit(0)
print(os.WTERMSIG(os.waitpid(child, 0)[1]))
os.kill(os.getpid(), signal.SIGTERM)
print("heeded")
"""


def test_a_worker_that_is_told_to_end_before_it_has_begun_ends() -> None:
    said = subprocess.run([sys.executable, "-c", BORN_TO_END], capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(int(signal.SIGTERM)), "heeded"]


FORGETFUL = """
import os, signal, threading
from laudo.cli import serving, signals

class Server:
    told = threading.Event()

    def signal_handler_interrupt(self):
        self.told.set()

signals.hold()
serving._end_when_told(Server())
os.kill(os.getpid(), signal.SIGTERM)
for _ in range(2):
    Server.told.wait()
    Server.told.clear()
"""


def test_a_signal_is_handed_on_again_where_it_was_forgotten() -> None:
    subprocess.run([sys.executable, "-c", FORGETFUL], check=True, timeout=60)


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


def test_what_hinders_a_worker_is_one_line(laudo: Shell) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_THREADS, laudo.store], capture_output=True, text=True, check=False
    )
    assert ended.stderr == "error: cannot start a thread; hint: raise the limits on processes and memory\n"
    assert ended.returncode == 2


def test_a_worker_has_threads_for_its_connections_to_stores_and_for_answers_that_come_late() -> None:
    server, late = "postgresql://one/laudo", ("5s=2",)
    for settings, number in (
        (Settings(), 1),
        (Settings(store=server, pool_size=3), 2 * 3 + 2),
        (Settings(store=server, pool_size=3, read_store=("postgresql://two/laudo",)), 2 * 2 * 3 + 2),
        (Settings(rehearse=late), 1 + 32),
        (Settings(store=server, pool_size=3, rehearse=late), 2 * 3 + 2 + 32),
    ):
        assert threads(settings) == number


def test_a_connection_on_which_no_request_comes_is_closed_in_silence(laudo: Shell) -> None:
    """A client would take an unrequested answer for that to its next request. Its pool notices a closed connection."""
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


def test_a_port_in_use_is_one_line_and_2(laudo: Shell) -> None:
    laudo.prints("token", "create", "--user", "1")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result = laudo("serve", "--port", str(other.getsockname()[1]))
    assert result.exit_code == 2
    assert "Address already in use; hint: choose another --port" in one_line(result)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set(), "what failed to start leaves signals as they were"


def test_one_port_for_both_is_one_line_and_2(laudo: Shell) -> None:
    laudo.prints("token", "create", "--user", "1")
    port = str(free_port())
    result = laudo("serve", "--port", port, "--metrics-port", port)
    assert result.exit_code == 2
    assert one_line(result) == "error: metrics_port is the same as port; hint: choose another one"


def test_a_metrics_port_in_use_is_one_line_and_2(laudo: Shell) -> None:
    laudo.prints("token", "create", "--user", "1")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        words = ("serve", "--port", str(free_port()), "--metrics-port", str(other.getsockname()[1]))
        result = laudo(*words)
    assert result.exit_code == 2
    assert "cannot serve metrics on 127.0.0.1" in one_line(result)
    assert "hint: choose another metrics_port" in one_line(result)


def test_a_host_of_metrics_that_is_no_address_of_this_machine_is_named_by_its_setting(laudo: Shell) -> None:
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
def test_a_wrong_setting_is_named_in_one_line_and_2(empty: Shell, flags: list[str], named: str) -> None:
    result = empty("serve", *flags)
    assert result.exit_code == 2
    assert named in one_line(result)


def test_demo_prints_what_to_paste_and_the_same_again(fresh: Shell) -> None:
    words = ("demo", "--no-serve", "--count", "100", "--store", fresh.store)
    first, again = fresh(*words), fresh(*words)
    base, token, pasted = (line.split(maxsplit=1)[1] for line in first.stdout.splitlines())
    assert "http://127.0.0.1:8000" in base
    assert presented(token) == token
    assert pasted == f"curl -H 'Authorization: {token}' 'http://127.0.0.1:8000/relatorios?tipo_pessoa=PESSOA'"
    assert (first.exit_code, again.exit_code, again.stdout) == (0, 0, first.stdout)
    told = "the store was filled before and is left as it is"
    assert [result.stderr.count(told) for result in (first, again)] == [0, 1]


def test_demo_makes_the_folder_of_a_file(empty: Shell) -> None:
    empty.prints("demo", "--no-serve", "--count", "1", "--store", f"sqlite:///{empty.folder}/new/demo.db")
    assert (empty.folder / "new/demo.db").exists()


def test_demo_invents_reports_up_to_now_or_to_the_instant_given(empty: Shell) -> None:
    now = datetime.now(UTC)
    assert now - timedelta(days=4) < _newest(empty) <= now
    assert _newest(empty, "--until", "2026-10-01T00:00:00Z") == datetime.fromisoformat("2026-09-30T19:00:26.147Z")


def test_demo_refuses_an_instant_before_which_there_are_not_three_years(empty: Shell) -> None:
    store = ("--store", f"sqlite:///{empty.folder}/old.db")
    done = empty("demo", "--no-serve", *store, "--until", "0003-12-31T23:59:59.999Z")
    assert done.exit_code == 2
    assert "--until must be 0004-01-01T00:00:00.000Z or later" in done.stderr
    assert not (empty.folder / "old.db").exists()
    empty.prints("demo", "--no-serve", *store, "--count", "10", "--until", "0004-01-01T00:00:00Z")


def _newest(shell: Shell, *words: str) -> datetime:
    """Make a new demonstration; gives the instant of its newest report."""
    store = f"sqlite:///{shell.folder}/{len(words)}.db"
    shell.prints("demo", "--no-serve", "--store", store, *words)
    with closing(open_store(store)) as database:
        [(recency,)] = database.fetch(Statement("SELECT min(recency) FROM relatorio WHERE id_conta = 1"))
    return datetime.fromtimestamp(-recency / 1000, UTC)


def test_demo_leaves_the_store_of_the_environment_alone(laudo: Shell) -> None:
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


def test_demo_prints_no_address_that_another_program_has(empty: Shell) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result = empty("demo", "--port", str(other.getsockname()[1]))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Address already in use; hint: choose another --port" in one_line(result)
    assert not (empty.folder / "demo.db").exists()


def test_demo_serves_what_it_made_and_starts_again(fresh: Shell) -> None:
    words = ("demo", "--store", fresh.store, "--workers", "1")
    token = fresh.prints(*words, "--no-serve").splitlines()[-2].split()[1]
    with serving(fresh, *words) as server:
        body = server.client.get("/relatorios", headers={"Authorization": token}).json()
        assert body["result"]["paginacao"]["total"] > 5000
        assert server.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_in_a_live_demo_reports_come_until_it_ends(empty: Shell, number: int) -> None:
    words = ("demo", "--count", "10", "--workers", "1", "--live")
    with serving(empty, *words) as server:
        assert server.process.stdout
        token = next(line.split()[1].decode() for line in server.process.stdout if line.startswith(b"token"))
        server.client.headers["Authorization"] = token
        until = time.monotonic() + 60
        while server.client.get("/relatorios").json()["result"]["paginacao"]["total"] < 7 + 2:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert server.stop(number) == (0 if number == signal.SIGTERM else -number)
        assert server.process.communicate(timeout=60)[1] == b"", "its end comes when the last process closes it"


def test_a_live_demo_serves(empty: Shell) -> None:
    result = empty("demo", "--live", "--no-serve")
    assert result.exit_code == 2
    assert "--live and --no-serve cannot be used together" in one_line(result)
    assert not (empty.folder / "demo.db").exists()
