import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import postgres_server
from awaiting import readable
from postgres_server import Server, ServerError
from postgres_watchdog import processes, wait_gone


@pytest.fixture(scope="module")
def primary() -> Iterator[Server]:
    with postgres_server.start() as server:
        server.execute("CREATE TABLE written (number int)")
        yield server


@pytest.fixture
def replica(primary: Server) -> Iterator[Server]:
    with primary.replica() as server:
        server.catch_up(primary)
        yield server


def write(server: Server) -> int:
    """Write one more row; returns the number of rows."""
    server.execute("INSERT INTO written VALUES (1)")
    return count(server)


def count(server: Server) -> int:
    [(found,)] = server.execute("SELECT count(*) FROM written")
    return int(found)


def refuses(server: Server) -> bool:
    with contextlib.suppress(psycopg.OperationalError):
        server.execute("SELECT 1")
        return False
    return True


def test_a_named_version_starts_with_the_given_settings() -> None:
    known = list(postgres_server.versions())
    assert known == sorted(known)
    with postgres_server.start(version=known[0], work_mem="1234kB") as server:
        assert _major(server) == known[0]
        assert server.execute("SHOW work_mem") == [("1234kB",)]


def test_laudo_test_pg_selects_an_installation_by_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    oldest, folder = next(iter(postgres_server.versions().items()))
    monkeypatch.setenv("LAUDO_TEST_PG", str(folder))
    with postgres_server.start() as server:
        assert _major(server) == oldest


def _major(server: Server) -> int:
    [(version,)] = server.execute("SELECT current_setting('server_version_num')::int / 10000")
    return int(version)


def test_a_missing_version_is_refused_with_the_available_ones() -> None:
    with pytest.raises(ServerError, match=r"has no PostgreSQL 7, but \d"):
        postgres_server.start(version=7)


def test_a_server_that_cannot_start_reports_its_log() -> None:
    with pytest.raises(ServerError, match=r"logged:\n.*outside the valid range"):
        postgres_server.start(work_mem="-7")


def test_a_client_with_a_wrong_password_is_refused(primary: Server) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(primary.url(password="another"))


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_keeps_port_and_data(primary: Server, mode: str) -> None:
    written, url = write(primary), primary.url()
    primary.stop(mode)  # type: ignore[arg-type]
    assert refuses(primary)
    primary.start()
    assert count(primary) == written
    assert primary.url() == url


def test_acknowledged_writes_survive_a_kill(primary: Server) -> None:
    with psycopg.connect(primary.url()) as connection:
        written = write(primary)
        primary.kill9()
        assert not processes(primary.folder)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    assert refuses(primary)
    primary.start()
    assert count(primary) == written


def test_a_paused_server_keeps_connections_but_does_not_answer(primary: Server) -> None:
    with psycopg.connect(primary.url()) as connection:
        with primary.paused():
            connection.pgconn.send_query(b"SELECT 1")
            assert not readable(connection.fileno(), 0.3)
        assert readable(connection.fileno(), 30)
        while connection.pgconn.get_result():
            pass


def test_a_replica_follows_and_refuses_writes(primary: Server, replica: Server) -> None:
    written = write(primary)
    replica.catch_up(primary)
    assert count(replica) == written
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        write(replica)


def test_a_restarted_replica_catches_up(primary: Server, replica: Server) -> None:
    replica.stop()
    written = write(primary)
    replica.start()
    replica.catch_up(primary)
    assert count(replica) == written


def test_a_promoted_replica_accepts_writes_and_can_have_replicas(primary: Server, replica: Server) -> None:
    written = write(primary)
    replica.catch_up(primary)
    replica.promote()
    assert write(replica) == written + 1
    with replica.replica() as other:
        other.catch_up(replica)
        assert count(other) == written + 1
    assert count(primary) == written


def test_a_closed_server_leaves_no_process_and_no_folder() -> None:
    server = postgres_server.start()
    server.pause()
    server.close()
    assert not processes(server.folder)
    assert not server.folder.exists()


def test_no_server_process_survives_killed_tests() -> None:
    script = "import postgres_server as p, sys; print(p.start().folder, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    ) as tests:
        assert tests.stdout
        folder = Path(tests.stdout.readline().strip())
        running = processes(folder)
        assert running
        tests.send_signal(signal.SIGKILL)
    assert wait_gone(running)
