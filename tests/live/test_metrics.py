"""Metrics under adverse conditions: full disks, clients that disconnect, many threads. They must fail no request."""

import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from itertools import product
from pathlib import Path
from time import sleep
from typing import Final

import pytest

from awaiting import until
from laudo.core import errors
from laudo.server import logs, metrics
from laudo.server.config import Settings
from live.server import Client, Place, Server, free_port, scrape, serving, wait_for_port

on_one_engine = pytest.mark.engines("sqlite", reason="the engine makes no difference")

ROUTES: Final = [f"relatorios_{number:02}" for number in range(12)]
METHODS: Final = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "other"]
STATUSES: Final = [200, 204, 304, *(kind.status for kind in errors.TABLE)]
COUNT: Final = """
import sys
from laudo.server import metrics
from laudo.server.config import Settings

settings = Settings(metrics_port=1)
observe, report = metrics.observer(settings), metrics.reporter(settings)
for line in sys.stdin:
    route, method, status = line.split()
    observe(route, method, int(status), 0.01)
for number in range(20):
    report(number, 0.5)
"""
THREADS: Final = """
import sys
from threading import Barrier, Thread
from laudo.server import metrics
from laudo.server.config import Settings

sys.setswitchinterval(1e-6)
observe = metrics.observer(Settings(metrics_port=1))
barrier = Barrier(10)

def work():
    barrier.wait()
    for _ in range(100):
        observe("usuario", "GET", 200, 0.01)

threads = [Thread(target=work) for _ in range(10)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

registry = CollectorRegistry()
MultiProcessCollector(registry)
sys.stdout.buffer.write(generate_latest(registry))
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which servers make their temporary folders."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def replace_worker(server: Server) -> None:
    [worker] = server.workers()
    server.kill(worker)
    wait_for_port(server.process, server.port)


@on_one_engine
def test_a_worker_allocates_its_metrics_files_before_it_answers(place: Place, temporary: Path) -> None:
    """Otherwise SIGBUS would end the worker if the disk is full when it first writes there."""
    with serving(place, "--workers", "1", "--metrics-port", str(free_port())) as server:
        assert server.ask("/usuario").status == 200
        made = {file.name.partition("_")[0]: file.stat() for file in temporary.glob("laudo-metrics-*/*")}
    assert made.keys() == {"counter", "histogram"}
    assert all(file.st_blocks * 512 >= file.st_size for file in made.values())


def test_metrics_files_never_outgrow_their_allocated_size(tmp_path: Path) -> None:
    counted = "\n".join(f"{route} {method} {status}" for route, method, status in product(ROUTES, METHODS, STATUSES))
    environ = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", COUNT], env=environ, input=counted, text=True, check=True)
    assert {file.stat().st_size for file in tmp_path.iterdir()} == {1 << 18}
    assert len(list(tmp_path.iterdir())) == 3


def test_no_count_is_lost_when_threads_start_together(tmp_path: Path) -> None:
    environ = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", THREADS], env=environ, stdout=subprocess.PIPE, text=True, check=True)
    assert 'laudo_requests_total{method="GET",route="usuario",status="200"} 1000.0' in ended.stdout
    assert 'laudo_request_seconds_count{route="usuario"} 1000.0' in ended.stdout


@on_one_engine
def test_disconnects_are_logged_once_and_without_an_address(place: Place) -> None:
    port = free_port()
    with serving(place, "--workers", "1", "--metrics-port", str(port)) as server:
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(b"GET /metrics HT")
        assert scrape(port).startswith("HTTP/1.0 200")
        said = server.said()
    assert said.count("metrics: ConnectionResetError; a request for metrics was not answered\n") == 1
    assert "Traceback" not in said
    assert "127.0.0.1'" not in said


def test_an_idle_connection_does_not_hold_a_thread(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(metrics, "_REQUEST_SECONDS", 0.1)
    port = free_port()
    with metrics.start(Settings(metrics_port=port)), ExitStack() as stack:
        before = threading.active_count()
        clients = [stack.enter_context(Client(port)) for _ in range(10)]
        clients[0].send(b"GET /metrics HT")
        assert [client.rest() for client in clients] == [b""] * 10
        until(lambda: threading.active_count() <= before)
        assert scrape(port).startswith("HTTP/1.0 200")
    assert capsys.readouterr().err == "metrics: TimeoutError; a request for metrics was not answered\n"


def test_a_slow_request_does_not_hold_a_thread(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(metrics, "_REQUEST_SECONDS", 0.3)
    monkeypatch.setattr(metrics, "_log", logs.Throttled())
    port = free_port()
    with metrics.start(Settings(metrics_port=port)), Client(port) as client:
        before = threading.active_count()
        client.send(b"GET /metrics HTTP/1.1\r\nX-Long: ")
        with suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(200):
                client.send(b"x")
                sleep(0.05)
            pytest.fail("the connection stays open for ten seconds")
        until(lambda: threading.active_count() <= before)
        assert scrape(port).startswith("HTTP/1.0 200")
    assert capsys.readouterr().err == "metrics: TimeoutError; a request for metrics was not answered\n"


@on_one_engine
def test_a_worker_without_room_for_metrics_answers_and_logs_it_once(place: Place, temporary: Path) -> None:
    port = free_port()
    with serving(place, "--workers", "1", "--metrics-port", str(port)) as server:
        assert server.ask("/usuario").status == 200
        before = {file.name for file in temporary.glob("laudo-metrics-*/*")}
        _, most = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (50_000, most))  # SQLite needs 32 KB
        replace_worker(server)
        assert {server.ask("/usuario").status for _ in range(20)} == {200}
        assert {file.name for file in temporary.glob("laudo-metrics-*/*")} == before
        assert 'laudo_requests_total{method="GET",route="usuario",status="200"} 1.0' in scrape(port)
        assert "Traceback" not in server.said()
        assert server.said().count("metrics: File too large; this worker counts nothing\n") == 1


@on_one_engine
def test_a_start_removes_only_the_metrics_of_killed_services(place: Place, temporary: Path, tmp_path: Path) -> None:
    with serving(place, "--workers", "1", "--metrics-port", str(free_port())) as killed:
        [left] = temporary.iterdir()
        for pid in (killed.process.pid, *killed.workers()):
            os.kill(pid, signal.SIGKILL)
        killed.process.wait()
    assert list(left.iterdir())
    elsewhere, starting = tmp_path / "elsewhere", temporary / "laudo-metrics-starting"
    for folder in (elsewhere, starting):
        folder.mkdir()
        (folder / "counter_1.db").touch()
    (temporary / "laudo-metrics-link").symlink_to(elsewhere)
    before = set(temporary.iterdir())
    with serving(place, "--workers", "1", "--metrics-port", str(free_port())):
        [lives] = set(temporary.iterdir()) - before
        for folder in (left, lives, elsewhere):
            os.utime(folder, (0, 0))
        with serving(place, "--workers", "1", "--metrics-port", str(free_port())):
            assert not left.exists()
            assert all(list(folder.iterdir()) for folder in (lives, starting, elsewhere))
    assert set(temporary.iterdir()) == before - {left}


@on_one_engine
def test_requests_are_answered_after_the_metrics_folder_is_removed(place: Place, temporary: Path) -> None:
    port = free_port()
    with serving(place, "--workers", "1", "--metrics-port", str(port)) as server:
        [folder] = temporary.iterdir()
        shutil.rmtree(folder)
        assert {server.ask("/usuario").status for _ in range(20)} == {200}
        assert server.said().count("metrics: No such file or directory; a request was not counted\n") == 1
        replace_worker(server)
        assert {server.ask("/usuario").status for _ in range(20)} == {200}
        assert server.said().count("metrics: No such file or directory; this worker counts nothing\n") == 1
        assert scrape(port).startswith("HTTP/1.0 200")
        assert "Traceback" not in server.said()
