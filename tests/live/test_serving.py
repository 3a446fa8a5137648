import os
import re
import resource
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from time import monotonic, sleep

import pytest

from awaiting import PATIENCE, readable, until
from engines import sqlite_file
from laudo.core.sql import Statement
from laudo.server.stores import open_store
from live.server import Client, Place, Server, request, serving, wait_for_port, wait_for_text

# Requests in flight.


@pytest.mark.timed
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_shutdown_answers_requests_in_flight_and_exits_with_0(
    place: Place, number: signal.Signals, workers: str
) -> None:
    asked = request("/relatorios?rows=1000", f"Authorization: {place.token}")
    with ExitStack() as stack:
        server = stack.enter_context(serving(place, "--workers", workers))
        clients = [stack.enter_context(Client(server.port, receive_buffer=4096)) for _ in range(40)]
        for client in clients:
            client.send(asked)
        first = clients[0].read()
        server.interrupt(number)
        others = [client.read() for client in clients[1:]]
        assert {(answer.status, answer.body) for answer in others} == {(200, first.body)}
        assert server.ended() == 0
    assert len(server.log()) == len(clients)
    assert "Traceback" not in server.said()


def test_open_connections_do_not_prevent_shutdown(place: Place) -> None:
    with serving(place) as server, Client(server.port) as silent, Client(server.port) as idle:
        idle.send(request("/health"))
        assert idle.read().status == 200
        server.interrupt(signal.SIGTERM)
        assert server.ended() == 0
        assert silent.rest() == b""


def test_a_restart_on_the_same_port_succeeds_at_once(place: Place) -> None:
    with serving(place) as first:
        body = first.ask("/usuario").body
    with serving(place, port=first.port) as second:
        assert second.ask("/usuario").body == body


def test_stderr_shows_only_the_address_and_number_of_workers(place: Place) -> None:
    with serving(place, "--workers", "1") as server:
        assert server.ask("/health").status == 200
        wait_for_text(server.err)
    assert server.err.read_text("utf-8") == f"laudo serves {server.url} with 1 worker; press Ctrl-C to stop\n"


@pytest.mark.engines("sqlite", reason="the engine makes no difference")
def test_a_worker_may_dump_no_core(place: Place) -> None:
    before = _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    try:
        with serving(place, "--workers", "1") as server:
            [worker] = server.workers()
            assert resource.prlimit(worker, resource.RLIMIT_CORE)[0] == (1 if most else 0)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)


# Many connections.


@pytest.mark.engines("sqlite", reason="the engine makes no difference")
def test_a_worker_never_reaches_the_limit_of_open_files(place: Place) -> None:
    with serving(place, "--workers", "1", files=128) as server, ExitStack() as stack:
        clients = [stack.enter_context(Client(server.port)) for _ in range(200)]
        for client in clients:
            client.send(request("/health"))
        server.wait_to_say("each worker accepts 57 connections instead of 1024: the limit is 128 open files\n")
        assert {client.read().status for client in clients[:50]} == {200}
        [worker] = server.workers()
        assert len(list(Path(f"/proc/{worker}/fd").iterdir())) < 128
        clients[0].send(request("/relatorios", f"Authorization: {place.token}"))
        assert clients[0].read().status == 200
        for client in clients[:150]:
            client.close()
        assert {client.read().status for client in clients[150:]} == {200}


@pytest.mark.timed
@pytest.mark.engines("sqlite", reason="the engine makes no difference")
def test_stalled_readers_are_disconnected_and_slow_ones_are_not(place: Place) -> None:
    asked = request("/relatorios?rows=1000", f"Authorization: {place.token}")
    with serving(place, "--workers", "1", "--idle-timeout-ms", "1000") as server, ExitStack() as stack:
        body = server.ask("/relatorios?rows=1000").body
        slow, stuck = (stack.enter_context(Client(server.port, receive_buffer=4096)) for _ in range(2))
        begun = monotonic()
        for client in (slow, stuck):
            client.send(asked)
        read = b""
        while monotonic() < begun + 3:
            read += slow.socket.recv(4096)
            sleep(0.1)
        assert (read + slow.rest()).partition(b"\r\n\r\n")[2] == body
        until(lambda: not server.holds(stuck))
        with pytest.raises(ConnectionResetError):
            stuck.rest()


# Rehearsals.


@pytest.mark.timed
def test_rehearsed_delays_do_not_delay_other_requests(place: Place) -> None:
    with serving(place, "--workers", "1", "--rehearse", "2s=50") as server, ThreadPoolExecutor(8) as pool:
        begun = monotonic()
        answers = list(pool.map(server.ask, ["/usuario"] * 16))
        took = monotonic() - begun
        wait_for_text(server.err)
    assert {answer.status for answer in answers} == {200}
    assert 2 <= took < 8, "about eight answers are delayed by two seconds each"
    told = "rehearsing 2s=50: some requests are refused, delayed or answered in part"
    assert server.err.read_text("utf-8").startswith(f"{told}\n")


# Workers.


def test_both_workers_answer(place: Place) -> None:
    with serving(place, "--workers", "2") as server:
        ids: list[str] = []
        began = monotonic()
        while len({request_id.rsplit("-", 2)[0] for request_id in ids}) < 2:  # the second worker may start later
            assert monotonic() < began + 30
            ids += [server.ask("/health").headers["x-request-id"] for _ in range(20)]
        assert len(server.workers()) == 2
    assert len(set(ids)) == len(ids)


def test_a_killed_worker_is_replaced(place: Place) -> None:
    with serving(place, "--workers", "1") as server:
        [worker] = server.workers()
        server.kill(worker)
        wait_for_port(server.process, server.port)
        assert server.ask("/usuario").status == 200
        assert worker not in server.workers()


def test_killed_workers_are_replaced_without_the_key_file(own_place: Place) -> None:
    with serving(own_place, "--workers", "2") as server:
        server.wait_to_say("laudo serves")
        own_place.key_file.unlink()
        before = server.workers()
        for worker in before:
            server.kill(worker)
        wait_for_port(server.process, server.port)
        assert server.ask("/usuario").status == 200
        assert set(before).isdisjoint(server.workers())
    assert "Traceback" not in server.said()


@pytest.fixture
def waiting(own_place: Place) -> Iterator[Server]:
    """A server with two workers; one started after the store had been moved away, and waits for it."""
    store = sqlite_file(own_place.store)
    with serving(own_place, "--workers", "2") as server:
        server.wait_to_say("laudo serves")
        store.rename(store.with_suffix(".away"))
        server.kill(server.workers()[0])
        server.wait_to_say(f"store: there is no store at {store}; run `laudo migrate` to create one\n")
        wait_for_port(server.process, server.port)  # The other worker may still be starting.
        yield server
    assert "Traceback" not in server.said()


@pytest.mark.engines("sqlite", reason="it is about files")
def test_a_worker_started_without_a_store_waits_for_it(waiting: Server) -> None:
    assert waiting.ask("/health").status == 200
    assert waiting.ask("/usuario").status == 503
    store = sqlite_file(waiting.place.store)
    store.with_suffix(".away").rename(store)
    answered: set[str] = set()
    began = monotonic()
    while len(answered) < 2:
        assert monotonic() < began + 30
        answer = waiting.ask("/usuario")
        answered |= {answer.headers["x-request-id"].rpartition("-")[0]} if answer.status == 200 else set()
    assert waiting.said().count("run `laudo migrate`") <= 2  # once for each worker


@pytest.mark.timed
@pytest.mark.engines("sqlite", reason="it is about files")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_shutdown_does_not_wait_for_a_worker_without_a_store(waiting: Server, number: signal.Signals) -> None:
    began = monotonic()
    waiting.interrupt(number)
    assert waiting.ended() == 0
    assert monotonic() - began < 2


@pytest.mark.engines("sqlite", reason="it is about files")
def test_a_worker_without_a_store_ends_with_its_parent(waiting: Server) -> None:
    watched = [os.pidfd_open(worker) for worker in waiting.workers()]
    waiting.process.kill()
    for worker in watched:
        assert readable(worker, PATIENCE)
        os.close(worker)


@pytest.mark.engines("sqlite", reason="the engine makes no difference")
def test_all_threads_of_a_worker_use_the_batch_scheduling_policy(place: Place) -> None:
    with serving(place, "--workers", "1") as server:
        assert server.ask("/relatorios").status == 200
        [worker] = server.workers()
        policies = []
        for task in Path(f"/proc/{worker}/task").iterdir():
            with suppress(ProcessLookupError):  # A thread that runs only at the start may have ended.
                policies.append(os.sched_getscheduler(int(task.name)))
        assert len(policies) > 1
        with ThreadPoolExecutor(1) as alone:
            allowed = alone.submit(_batch_policy).result()
        assert set(policies) == {allowed}


def _batch_policy() -> int:
    """Set SCHED_BATCH in this thread and give the policy in force; a sandbox may forbid the change."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    return os.sched_getscheduler(0)


@pytest.mark.engines("sqlite", reason="it is about files; on PostgreSQL the connections are read-only")
def test_workers_open_the_store_read_only(place: Place) -> None:
    with serving(place, "--workers", "2") as server:
        assert {server.ask("/relatorios").status for _ in range(50)} == {200}
        modes = [mode for worker in server.workers() for mode in _modes(worker, sqlite_file(place.store))]
    assert len(modes) >= 2
    assert set(modes) == {os.O_RDONLY}


def _modes(pid: int, file: Path) -> list[int]:
    """The access modes in which a process has a file open."""
    numbers = [link.name for link in Path(f"/proc/{pid}/fd").iterdir() if link.resolve() == file.resolve()]
    infos = [Path(f"/proc/{pid}/fdinfo/{number}").read_text("ascii") for number in numbers]
    return [int(re.findall(r"flags:\s+([0-7]+)", info)[0], 8) & os.O_ACCMODE for info in infos]


def test_an_imported_report_is_seen_by_the_next_request(own_place: Place) -> None:
    report = (
        '{"numero": "0f8fad5b-d9cb-469f-a165-70867728950e", "status": "CONCLUIDO", "tipo_pessoa": "PESSOA",'
        ' "nome": "nova", "nome_pessoa": "Maria da Silva", "numero_documento": "12345678909",'
        ' "atualizado_em": "2026-01-31T12:00:00.000Z"}'
    )
    (own_place.folder / "one.ndjson").write_text(report, "utf-8")
    with serving(own_place, "--workers", "2") as server:
        assert server.ask("/relatorios?nome=nova").json["result"]["paginacao"]["total"] == 0
        assert own_place.run("import", "one.ndjson", "--account", "1").returncode == 0
        totals = {server.ask("/relatorios?nome=nova").json["result"]["paginacao"]["total"] for _ in range(50)}
        assert totals == {1}


# A start that fails prints one line with the reason, and exits with 2.


def refusal(place: Place, *flags: str) -> str:
    """Start with flags that are refused; gives the one line of the error."""
    ended = place.run("serve", *flags)
    assert ended.returncode == 2, ended
    assert ended.stdout == ""
    [line] = ended.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def test_a_port_in_use_is_refused_with_a_hint(server: Server) -> None:
    line = refusal(server.place, "--port", str(server.port))
    assert f"127.0.0.1:{server.port}" in line
    assert "hint: choose another --port" in line


@pytest.mark.engines("sqlite", reason="the engine makes no difference")
def test_a_host_of_another_machine_is_refused(place: Place) -> None:
    assert "192.0.2.1" in refusal(place, "--host", "192.0.2.1")


def test_a_store_with_an_older_schema_is_refused(own_place: Place) -> None:
    with closing(open_store(own_place.store, write=True)) as database, database.transaction() as write:
        write.fetch(Statement("DELETE FROM migration"))
    assert "run `laudo migrate`" in refusal(own_place)


@pytest.mark.engines("sqlite", reason="it is about files")
def test_a_file_that_is_not_a_store_is_refused(own_place: Place) -> None:
    sqlite_file(own_place.store).write_bytes(b"CPF;nome\n" * 1000)
    assert "not a store" in refusal(own_place)
