import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from errno import ENOSPC
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeVar
from unittest.mock import Mock
from wsgiref.types import WSGIApplication

import psycopg
import pytest

import postgres_server
from awaiting import PATIENCE, until
from factories import Account, Store, relatorio
from forwarding import Forwarding
from laudo.core.sql import Statement
from laudo.server import app, heartbeats, migrations, roles
from laudo.server.config import Settings
from laudo.server.database import Bounds, Connection, Lost, Served, Slow, StoreError, Unavailable, read
from laudo.server.heartbeats import Server as Watched
from laudo.server.heartbeats import Watch
from laudo.server.replicas import Replicas
from laudo.server.stores import open_store
from live.server import Place, free_port, scrape, serving
from postgres_server import Server
from wsgi import Client

pytestmark = [pytest.mark.xdist_group("replicas"), pytest.mark.timed]  # so that three servers start only once
T = TypeVar("T")

LONG_MS: Final = 60_000
"""A lag that no replica reaches in a test, even on a loaded machine."""
SHORT_MS: Final = 700
WHICH: Final = Statement("SELECT inet_server_port()::bigint")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A primary with a migrated store, and two replicas of it."""

    primary: Server
    replicas: tuple[Server, Server]

    @property
    def servers(self) -> tuple[Server, ...]:
        return (self.primary, *self.replicas)

    def heal(self) -> None:
        """Undo what a test has done to the servers."""
        for server in self.servers:
            with suppress(postgres_server.ServerError):
                server.resume()
            if not runs(server):
                server.start()
        for replica in self.replicas:
            resume_replay(replica)


Open = Callable[..., Replicas]


@pytest.fixture(scope="module")
def made() -> Iterator[Cluster]:
    with ExitStack() as stack:
        primary = stack.enter_context(postgres_server.start(log_statement="all", wal_receiver_status_interval="1s"))
        with closing(open_store(primary.url(), write=True)) as database:
            migrations.migrate(database)
        settings = {"wal_retrieve_retry_interval": "100ms"}
        yield Cluster(primary, tuple(stack.enter_context(primary.replica(**settings)) for _ in range(2)))  # type: ignore[arg-type]


@pytest.fixture
def cluster(made: Cluster) -> Iterator[Cluster]:
    yield made
    made.heal()


@pytest.fixture
def store(cluster: Cluster, tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(cluster.primary.url(), write=True)) as database:
        yield Store(database, tmp_path / "laudo.key")


@pytest.fixture
def account(store: Store, cluster: Cluster) -> Account:
    """An account with one report, both already on every server."""
    account = store.account()
    store.write(account, [relatorio(1)])
    for replica in cluster.replicas:
        replica.catch_up(cluster.primary)
    return account


@pytest.fixture
def opened(cluster: Cluster) -> Iterator[Open]:
    """Opens a store as the service does, and returns it once it uses all replicas."""
    with ExitStack() as stack:

        def new(lag_ms: int = LONG_MS, *, settled: bool = True, **settings: Any) -> Replicas:  # noqa: ANN401
            given = {
                "store": cluster.primary.url(),
                "read_store": tuple(replica.url() for replica in cluster.replicas),
                "read_lag_ms": lag_ms,
                "statement_timeout_ms": 1000,
                **settings,
            }
            database = stack.enter_context(closing(app.open_served(Settings(**given))))
            assert isinstance(database, Replicas)
            if settled:
                until(lambda: {*count_answers(database, 6)} == ports(*cluster.replicas))
            return database

        yield new


Serve = Callable[..., Client]


@pytest.fixture
def serve(opened: Open, store: Store, account: Account) -> Serve:
    """Starts a service on what `opened` returns, and returns a client with the account's token."""

    def new(lag_ms: int = LONG_MS, **settings: Any) -> Client:  # noqa: ANN401
        database = opened(lag_ms, **settings)
        return Client(served(database, store), account.token)

    return new


def served(database: Served, store: Store) -> WSGIApplication:
    return app.create(Settings(key_file=str(store.key_file), log=False, cache_bytes=0), database=database)


def count_answers(database: Served, number: int) -> Counter[int]:
    """Send a number of requests of one statement each, and count the answers of each server, by port."""
    answered: Counter[int] = Counter()
    for _ in range(number):
        database.mark()
        [(port,)] = database.fetch(WHICH)
        answered[port] += 1
    return answered


def ports(*servers: Server) -> set[int]:
    return {server.port for server in servers}


def count_reads(cluster: Cluster, table: str) -> Counter[int]:
    """Count, by port, the statements that have read a table so far."""
    read = re.compile(rf"\bFROM {table}\b")
    return Counter({server.port: len(read.findall(server.log)) for server in cluster.servers})


def runs(server: Server) -> bool:
    with suppress(postgres_server.ServerError):
        server.resume()
        server.wait_accepting()
        return True
    return False


def pause_replay(replica: Server) -> None:
    """Make a replica receive changes without replaying them."""
    replica.execute("SELECT pg_wal_replay_pause()")
    until(lambda: replica.execute("SELECT pg_get_wal_replay_pause_state()") == [("paused",)])


def resume_replay(replica: Server) -> None:
    if replica.execute("SELECT pg_is_in_recovery()") == [(True,)]:
        replica.execute("SELECT pg_wal_replay_resume()")


def wait_for_stderr(capfd: pytest.CaptureFixture[str], pattern: str) -> str:
    """Wait for a line on stderr, and return everything written there since the last call."""
    said = ""

    def is_there() -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return re.search(pattern, said, re.MULTILINE) is not None

    until(is_there)
    return said


def ask_repeatedly(seconds: float, ask: Callable[[], T]) -> list[tuple[float, T]]:
    """Call a function repeatedly for a time, and once after; returns results with the seconds until each call."""
    begun, since = time.monotonic(), 0.0
    answers = []
    while since < seconds:
        since = time.monotonic() - begun
        answers.append((since, ask()))
    return answers


# Which server is asked.


@pytest.mark.parametrize(
    ("primary", "replicas", "fit"),
    [
        ("answers", "fresh fresh", {1, 2}),
        ("answers", "fresh lagging", {1}),
        ("answers", "fresh away", {1}),
        ("answers", "lagging lagging", {0}),
        ("answers", "away away", {0}),
        ("is away", "fresh lagging", {1}),
        ("is away", "lagging lagging", {1, 2}),
        ("is away", "lagging older", {1, 2}),
        ("is away", "lagging behind", {1}),
        ("is away", "lagging away", {1}),
        ("is away", "away away", {0}),
    ],
)
def test_fresh_replicas_come_first_then_the_primary_then_stale_replicas(
    primary: str, replicas: str, fit: set[int]
) -> None:
    """A lagging replica was seen too long ago; one that is behind also shows a heartbeat older than the lag allows."""
    states = {
        "fresh": (0.0, 9_500),
        "lagging": (10.0, 9_000),
        "older": (10.0, 8_000),
        "behind": (10.0, 7_999),
        "away": (0.0, 99_000),
    }
    database = Replicas.__new__(Replicas)
    database._primary, *database._replicas = (Watched(number, "", Mock()) for number in range(3))
    database._lag_ms, database._turn = 1_000, threading.local()
    database._primary.answers = primary == "answers"
    for server, state in zip(database._replicas, replicas.split(), strict=True):
        ago, server.shown = states[state]
        server.as_of = time.monotonic() - ago
        server.answers = state != "away"
    first = set()
    for database._turn.number in range(4):
        tried: list[Watched] = []
        while len(tried) < 4 and (chosen := database._next_server(tried)):
            tried.append(chosen)
        assert {each.number for each in tried} >= {0, *fit}
        assert len(tried) == len({each.number for each in tried}), "a server is asked twice"
        first.add(tried[0].number)
    assert first == fit


def test_requests_are_spread_evenly_over_the_replicas(opened: Open, cluster: Cluster) -> None:
    one, other = cluster.replicas
    assert count_answers(opened(), 40) == {one.port: 20, other.port: 20}


def test_all_statements_of_a_request_go_to_one_replica(serve: Serve, cluster: Cluster) -> None:
    client = serve()
    for _ in range(6):
        before = {table: count_reads(cluster, table) for table in ("token", "usuario", "conta")}
        assert client.get("/relatorios").status == 200
        [token, usuario, versions] = (count_reads(cluster, table) - was for table, was in before.items())
        assert len(token) == 1
        assert token == usuario
        assert set(token) == set(versions) <= ports(*cluster.replicas)


def test_several_threads_use_the_replicas_evenly(serve: Serve, cluster: Cluster) -> None:
    client = serve()
    before = count_reads(cluster, "token")
    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(lambda _: client.get("/relatorios").status, range(80)))
    assert set(statuses) == {200}
    assert count_reads(cluster, "token") - before == {replica.port: 40 for replica in cluster.replicas}


def test_only_the_primary_reports_a_mark_of_its_state(opened: Open, cluster: Cluster) -> None:
    """A replica does not know all transactions of the primary, and some end without a trace on the replica."""
    assert opened().fetch_marked([WHICH])[1] is None
    for server in cluster.servers:
        with closing(open_store(server.url())) as database:
            assert (database.fetch_marked(())[1] is None) == (server is not cluster.primary)


def test_a_snapshot_reads_from_one_server(opened: Open) -> None:
    database = opened()
    for _ in range(4):
        database.mark()
        with database.snapshot() as connection:
            assert len({connection.fetch(WHICH)[0] for _ in range(5)}) == 1


def test_one_replica_is_enough(opened: Open, cluster: Cluster) -> None:
    replica = cluster.replicas[1]
    database = opened(read_store=(replica.url(),), settled=False)
    until(lambda: count_answers(database, 4) == {replica.port: 4})


def test_without_replicas_only_the_store_is_opened(cluster: Cluster) -> None:
    with closing(app.open_served(Settings(store=cluster.primary.url()))) as database:
        assert not isinstance(database, Replicas)


# How old an answer may be.


def test_a_lagging_replica_is_not_used_until_it_has_caught_up(
    opened: Open, cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    lagging, other = cluster.replicas
    database = opened(SHORT_MS)
    pause_replay(lagging)
    until(lambda: count_answers(database, 6) == {other.port: 6})
    wait_for_stderr(capfd, r"^store: the replica 1 lags and is not used for now: by \d\.\d s$")
    resume_replay(lagging)
    until(lambda: {*count_answers(database, 6)} == ports(*cluster.replicas))
    wait_for_stderr(capfd, "^store: the replica 1 is well again$")


def test_no_answer_is_older_than_the_allowed_lag(
    serve: Serve, store: Store, account: Account, cluster: Cluster
) -> None:
    client = serve(SHORT_MS)
    for replica in cluster.replicas:
        pause_replay(replica)
    store.write(account, [relatorio(2)])
    answers = ask_repeatedly(2 * SHORT_MS / 1000, lambda: client.get("/relatorios").total)
    assert {total for since, total in answers if since > SHORT_MS / 1000} == {2}
    assert {total for _, total in answers} <= {1, 2}


def test_a_revoked_token_is_refused_after_the_allowed_lag(
    serve: Serve, store: Store, account: Account, cluster: Cluster
) -> None:
    client = serve(SHORT_MS)
    pause_replay(cluster.replicas[0])
    store.revoke(account.id_token)
    answers = ask_repeatedly(2 * SHORT_MS / 1000, lambda: client.get("/usuario").status)
    assert {status for since, status in answers if since > SHORT_MS / 1000} == {401}
    assert {status for _, status in answers} <= {200, 401}


def test_the_primary_answers_when_all_replicas_lag(opened: Open, cluster: Cluster) -> None:
    database = opened(SHORT_MS)
    for replica in cluster.replicas:
        pause_replay(replica)
    until(lambda: count_answers(database, 4) == {cluster.primary.port: 4})
    seen: list[int] = []

    def work(connection: Connection) -> None:
        [(port, pid)] = connection.fetch(Statement("SELECT inet_server_port()::bigint, pg_backend_pid()"))
        seen.append(port)
        if len(seen) == 1:
            cluster.primary.execute(f"SELECT pg_terminate_backend({pid}, 5000)")
        connection.fetch(WHICH)

    read(database, work)
    assert seen == [cluster.primary.port] * 2, "a lost connection does not mean that the primary is down"
    resume_replay(cluster.replicas[0])
    until(lambda: count_answers(database, 4) == {cluster.replicas[0].port: 4})


def test_a_heartbeat_from_the_future_does_not_hide_a_lag(opened: Open, cluster: Cluster) -> None:
    """A heartbeat with a time in the far future, from another machine's clock, is treated like any other."""
    far = 9_000_000_000_000
    cluster.primary.execute(f"UPDATE heartbeat SET at_ms = {far}")
    try:
        database = opened(SHORT_MS)
        [(beat,)] = cluster.primary.execute("SELECT at_ms FROM heartbeat WHERE id = 1")
        assert far < beat < far + 1_000_000
        for replica in cluster.replicas:
            pause_replay(replica)
        until(lambda: count_answers(database, 4) == {cluster.primary.port: 4})
    finally:
        cluster.heal()
        cluster.primary.execute("UPDATE heartbeat SET at_ms = 0")


def test_a_heartbeat_is_dated_before_its_transaction_begins(cluster: Cluster) -> None:
    begun: list[float] = []

    class Timed(Forwarding):
        def writing(self, connection: Connection) -> Connection:
            begun.append(time.monotonic())
            return connection

    with closing(Timed(open_store(cluster.primary.url(), write=True))) as primary:
        watch = Watch(Watched(0, "", primary), (), lag_ms=LONG_MS, bounds=Bounds(), report=None)
        watch._write_heartbeat(primary)
        assert watch._beats.moment(watch._beats.last()) <= begun[0]


@pytest.fixture
def checked(cluster: Cluster) -> Iterator[tuple[Watch, Watched]]:
    """A replica, and a watch whose threads are not started and that has sent one heartbeat."""
    with (
        closing(open_store(cluster.primary.url(), write=True)) as primary,
        closing(open_store(cluster.replicas[0].url())) as replica,
    ):
        server = Watched(1, "", replica)
        watch = Watch(Watched(0, "", primary), (server,), lag_ms=LONG_MS, bounds=Bounds(), report=None)
        watch._write_heartbeat(primary)
        yield watch, server


def test_the_heartbeat_of_another_worker_proves_a_replica_fresh(
    cluster: Cluster, checked: tuple[Watch, Watched]
) -> None:
    watch, server = checked
    cluster.primary.execute("UPDATE heartbeat SET at_ms = at_ms + 1 WHERE id = 1")
    cluster.replicas[0].catch_up(cluster.primary)
    watch._check_replica(server, server.database)
    assert server.as_of == watch._beats.moment(watch._beats.last())


def test_a_replica_is_used_even_if_only_its_user_lacks_pg_control_system(
    cluster: Cluster, checked: tuple[Watch, Watched]
) -> None:
    watch, server = checked
    server.origin = heartbeats._ROUGH_ORIGIN
    cluster.replicas[0].catch_up(cluster.primary)
    assert watch._check_replica(server, server.database) == (heartbeats.State.HEALTHY, "")


def test_the_heartbeat_never_goes_back_with_several_workers(opened: Open, cluster: Cluster) -> None:
    for _ in range(3):
        opened(200, settled=False).fetch(WHICH)
    beat = "SELECT at_ms FROM heartbeat WHERE id = 1"
    seen = [shown for _, [(shown,)] in ask_repeatedly(1, lambda: cluster.primary.execute(beat))]
    assert seen == sorted(seen)
    assert len(set(seen)) > 3


def test_an_answer_shows_one_state_while_replicas_differ(
    serve: Serve, store: Store, account: Account, cluster: Cluster
) -> None:
    """The version, total and items of an answer belong together, whichever replica answered the previous request."""
    client = serve()
    pause_replay(cluster.replicas[0])
    bodies: dict[str, set[bytes]] = {}
    etag = ""
    for number in range(2, 12):
        store.write(account, [relatorio(number)])
        for headers in ({}, {}, {"If-None-Match": etag}):
            answer = client.ask("GET", "/relatorios", headers=headers)
            if answer.status == 200:
                etag = answer.headers["etag"]
                assert answer.total == len(answer.itens)
                bodies.setdefault(etag, set()).add(answer.body)
            else:
                assert (answer.status, answer.headers["etag"]) == (304, headers["If-None-Match"])
    assert len(bodies) > 2
    assert all(len(same) == 1 for same in bodies.values())


# The primary is down.


def test_replicas_answer_while_the_primary_is_down(
    serve: Serve, store: Store, account: Account, cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    client = serve(SHORT_MS)
    cluster.primary.stop("immediate")
    answers = ask_repeatedly(2 * SHORT_MS / 1000, lambda: client.get("/relatorios").total)
    assert {total for _, total in answers} == {1}
    assert client.get("/usuario").status == 200
    assert client.get("/ready").status == 200
    stranger = Client(client._app, "not-a-token-of-anybody")
    assert stranger.get("/usuario").status == 401
    wait_for_stderr(capfd, "^store: the primary does not answer: ")
    cluster.primary.start()
    wait_for_stderr(capfd, "^store: the primary is well again$")
    assert client.get("/ready").status == 200
    store.revoke(account.id_token)
    until(lambda: client.get("/usuario").status == 401)


class Full(StringIO):
    """Standard error on a full disk."""

    refused = ""

    def write(self, text: str) -> int:
        self.refused += text
        raise OSError(ENOSPC, "No space left on device")


def test_servers_are_still_watched_when_stderr_cannot_be_written(
    opened: Open, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = opened()
    monkeypatch.setattr(sys, "stderr", full := Full())
    cluster.replicas[0].stop("immediate")
    until(lambda: {*count_answers(database, 6)} == ports(cluster.replicas[1]) and "does not answer" in full.refused)
    cluster.replicas[0].start()
    until(lambda: {*count_answers(database, 6)} == ports(*cluster.replicas))


def test_servers_are_still_watched_when_their_lag_cannot_be_written(cluster: Cluster) -> None:
    reported: list[int] = []

    def report(number: int, _seconds: float) -> None:
        reported.append(number)
        raise OSError(ENOSPC, "full")

    urls = cluster.primary.url(), [cluster.replicas[0].url()]
    with closing(Replicas(*urls, lag_ms=SHORT_MS, bounds=Bounds(), report=report)) as database:
        database.fetch(WHICH)
        until(lambda: len(reported) > 2)


def test_without_the_primary_a_lagging_replica_is_asked_last(
    serve: Serve, store: Store, account: Account, cluster: Cluster
) -> None:
    lagging, other = cluster.replicas
    client = serve(SHORT_MS)
    pause_replay(lagging)
    store.write(account, [relatorio(2)])
    other.catch_up(cluster.primary)
    ask_repeatedly(2 * SHORT_MS / 1000, lambda: client.get("/relatorios").total)
    cluster.primary.stop("immediate")
    answers = ask_repeatedly(2 * SHORT_MS / 1000, lambda: client.get("/relatorios").total)
    assert {total for _, total in answers} == {2}
    other.stop("immediate")
    assert client.get("/relatorios").total == 1


def test_a_hanging_primary_delays_requests_only_for_a_while(serve: Serve, cluster: Cluster) -> None:
    client = serve(SHORT_MS)
    cluster.primary.pause()
    waited = [measured(lambda: client.get("/relatorios").status) for _ in range(50)]
    assert {status for status, _ in waited} == {200}
    until(lambda: measured(lambda: client.get("/relatorios").status)[1] < 1)
    answers = ask_repeatedly(2 * SHORT_MS / 1000, lambda: measured(lambda: client.get("/relatorios").status))
    assert {status for _, (status, _) in answers} == {200}


def test_a_worker_started_without_the_primary_answers(
    opened: Open, store: Store, account: Account, cluster: Cluster
) -> None:
    cluster.primary.stop("immediate")
    client = Client(served(opened(settled=False), store), account.token)
    assert [client.get("/relatorios").status for _ in range(4)] == [200] * 4


def test_without_any_server_requests_get_503_until_one_is_back(serve: Serve, cluster: Cluster) -> None:
    client = serve(SHORT_MS)
    for server in cluster.servers:
        server.stop("immediate")
    assert client.get("/relatorios").status == 503
    assert client.get("/ready").status == 503
    assert client.get("/health").status == 200
    cluster.replicas[0].start()
    until(lambda: client.get("/relatorios").status == 200)


def test_a_url_with_both_hosts_finds_the_promoted_replica_as_primary(
    opened: Open, store: Store, account: Account, cluster: Cluster
) -> None:
    with cluster.primary.replica(wal_retrieve_retry_interval="100ms") as heir:
        host = f"127.0.0.1:{cluster.primary.port},127.0.0.1:{heir.port}"
        url = f"postgresql://postgres:{heir.password}@{host}/postgres?target_session_attrs=read-write"
        both = {"read_store": (heir.url(), cluster.replicas[0].url()), "settled": False}
        by_one = Client(served(opened(SHORT_MS, **both), store), account.token)
        by_both = Client(served(opened(SHORT_MS, store=url, **both), store), account.token)
        until(lambda: by_one.get("/usuario").status == by_both.get("/usuario").status == 200)
        heir.catch_up(cluster.primary)
        cluster.primary.stop("immediate")
        heir.promote()
        answers = ask_repeatedly(
            2 * SHORT_MS / 1000, lambda: (by_one.get("/relatorios").status, by_both.get("/ready").status)
        )
        assert {statuses[0] for _, statuses in answers} == {200}
        with closing(open_store(heir.url(), write=True)) as database:
            Store(database, store.key_file).write(account, [relatorio(2)])
        until(lambda: {by_both.get("/relatorios").total for _ in range(4)} == {2})
        # The other replica still follows the old primary, so it lacks the heartbeats of the new one.
        assert {by_both.get("/relatorios").total for _ in range(20)} == {2}


def test_a_replica_promoted_early_is_used_only_once_the_primary_is_down(
    serve: Serve, store: Store, account: Account, cluster: Cluster
) -> None:
    """It may be the next primary: another service may already write there before this service knows it."""
    with cluster.primary.replica(wal_retrieve_retry_interval="100ms") as heir:
        client = serve(SHORT_MS, read_store=(heir.url(),), settled=False)
        until(lambda: client.get("/relatorios").total == 1 and "FROM token" in heir.log)
        heir.promote()
        settings = Settings(store=heir.url(), read_store=(heir.url(),), read_lag_ms=200)
        with closing(app.open_served(settings)) as another:
            another.fetch(WHICH)
            store.write(account, [relatorio(2)])
            until(lambda: {client.get("/relatorios").total for _ in range(20)} == {2})
        cluster.primary.stop("immediate")
        until(lambda: client.get("/relatorios").status == 200)
        assert client.get("/relatorios").total == 1


# A replica is down.


def test_a_killed_replica_fails_no_request(serve: Serve, cluster: Cluster, capfd: pytest.CaptureFixture[str]) -> None:
    client = serve()
    killed = cluster.replicas[0]
    statuses: Counter[int] = Counter()
    ended = threading.Event()

    def ask() -> None:
        page = 0
        while not ended.is_set():
            page += 1
            statuses[client.get("/relatorios", page=page % 30 + 1).status] += 1

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask) for _ in range(4)]
        try:
            until(lambda: statuses[200] > 50)
            killed.kill9()
            answered = statuses[200]
            until(lambda: statuses[200] > answered + 200)
        finally:
            ended.set()
        for thread in asking:
            thread.result(PATIENCE)
    assert {*statuses} == {200}
    wait_for_stderr(capfd, "^store: the replica 1 does not answer: ")
    killed.start()
    before = count_reads(cluster, "token")[killed.port]
    until(lambda: client.get("/usuario").status == 200 and count_reads(cluster, "token")[killed.port] > before)


def test_an_interrupted_snapshot_is_retried_on_another_server(opened: Open, cluster: Cluster) -> None:
    database = opened()
    servers = {server.port: server for server in cluster.servers}
    seen: list[int] = []

    def work(connection: Connection) -> int:
        [(port,)] = connection.fetch(WHICH)
        seen.append(port)
        if len(seen) == 1:
            servers[port].kill9()
        [(same,)] = connection.fetch(WHICH)
        return int(same)

    assert read(database, work) == seen[-1]
    assert len(seen) == len(set(seen)) == 2


def test_a_snapshot_uses_another_server_when_a_replica_is_down(opened: Open, cluster: Cluster) -> None:
    database = opened()
    gone, other = cluster.replicas
    gone.kill9()
    for _ in range(4):
        database.mark()
        assert read(database, lambda connection: connection.fetch(WHICH)) == [(other.port,)]


def test_a_snapshot_of_a_damaged_server_is_retried_on_another(opened: Open) -> None:
    seen: list[int] = []

    def work(connection: Connection) -> int:
        seen.extend(port for (port,) in connection.fetch(WHICH))
        if len(seen) == 1:
            raise StoreError("an index of the store is damaged")
        return seen[-1]

    assert read(opened(), work) == seen[1] != seen[0]


@pytest.mark.parametrize("between", [True, False], ids=["between statements", "in a statement"])
def test_a_snapshot_ended_by_a_replica_that_replays_names_the_setting(cluster: Cluster, *, between: bool) -> None:
    primary, replica = cluster.primary, cluster.replicas[0]
    replica.execute("ALTER SYSTEM SET max_standby_streaming_delay = 0")
    replica.execute("SELECT pg_reload_conf()")
    primary.execute("CREATE TABLE held ()")
    replica.catch_up(primary)
    try:
        until(lambda: replica.execute("SHOW max_standby_streaming_delay") == [("0",)])
        with (
            closing(open_store(replica.url())) as database,
            database.snapshot() as connection,
            ThreadPoolExecutor(1) as other,
        ):
            connection.fetch(Statement("SELECT FROM held"))
            dropped = other.submit(primary.execute, "DROP TABLE held")
            if between:
                dropped.result(PATIENCE)
                replica.catch_up(primary)
            with pytest.raises(Lost, match=r"replay of changes; ask the primary, .* \(SQLSTATE 40001\)"):
                connection.fetch(Statement(f"SELECT pg_sleep({PATIENCE})"))
    finally:
        primary.execute("DROP TABLE IF EXISTS held")
        replica.execute("ALTER SYSTEM RESET max_standby_streaming_delay")
        replica.execute("SELECT pg_reload_conf()")


def test_a_hanging_replica_delays_a_request_and_is_then_not_used(opened: Open, cluster: Cluster) -> None:
    hung, other = cluster.replicas
    database = opened()
    hung.pause()
    waits = [measured(lambda: count_answers(database, 1)) for _ in range(4)]
    # One statement's time limit, plus half a second until the server counts as hung, plus a margin of 5 s.
    assert max(seconds for _, seconds in waits) < 1.5 + 5
    assert hung.port not in sum((answered for answered, _ in waits), Counter())
    assert median(measured(lambda: count_answers(database, 1))[1] for _ in range(11)) < 1
    hung.resume()
    until(lambda: {*count_answers(database, 6)} == ports(hung, other))


def test_a_statement_that_times_out_is_not_retried_elsewhere(opened: Open, cluster: Cluster) -> None:
    def executed() -> int:
        return sum(len(re.findall("execute .*pg_sleep", server.log)) for server in cluster.servers)

    database, before = opened(statement_timeout_ms=300), executed()
    with pytest.raises(Slow):
        database.fetch(Statement("SELECT pg_sleep(20)"))
    with pytest.raises(Slow):
        read(database, lambda connection: connection.fetch(Statement("SELECT pg_sleep(20)")))
    assert executed() - before <= 2
    assert {*count_answers(database, 6)} == ports(*cluster.replicas)


def test_a_long_batch_of_short_statements_excludes_no_replica(opened: Open, cluster: Cluster) -> None:
    database = opened(statement_timeout_ms=300)
    nap = Statement("SELECT inet_server_port()::bigint FROM pg_sleep(0.2)")
    [(port,)], *others = read(database, lambda connection: connection.fetch_each([nap] * 5))
    assert others == [[(port,)]] * 4
    assert {*count_answers(database, 6)} == ports(*cluster.replicas)


def test_another_server_is_asked_when_a_replica_has_no_free_connection(opened: Open, cluster: Cluster) -> None:
    database = opened(pool_size=1, pool_timeout_ms=900)
    database.mark()
    with ExitStack() as stack:
        snapshots = [stack.enter_context(database.snapshot()) for _ in cluster.servers]
        assert {connection.fetch(WHICH)[0][0] for connection in snapshots} == ports(*cluster.servers)
        begun = time.monotonic()
        with pytest.raises(Unavailable, match="every connection to PostgreSQL is in use"):
            database.fetch(WHICH)
        assert time.monotonic() - begun < 2, "the timeout is for all servers together"
    assert {*count_answers(database, 6)} == ports(*cluster.replicas)


def measured(work: Callable[[], T]) -> tuple[T, float]:
    begun = time.monotonic()
    answered = work()
    return answered, time.monotonic() - begun


# Another store.


FOREIGN: Final = "^store: the replica 2 belongs to another store and is not used: "


@pytest.fixture
def other_server(cluster: Cluster) -> Iterator[Server]:
    """Another server with a store made in the same way, so that the oids of its database and tables are the same."""
    with postgres_server.start() as server:
        prepare(server, "postgres")
        pair = "SELECT 'heartbeat'::regclass::oid, oid FROM pg_database WHERE datname = current_database()"
        assert server.execute(pair) == cluster.primary.execute(pair)
        server.execute(f"ALTER ROLE postgres PASSWORD '{cluster.primary.password}'")
        server.password = cluster.primary.password
        yield server


@pytest.fixture
def other_database(cluster: Cluster) -> Iterator[str]:
    cluster.primary.execute("CREATE DATABASE other")
    prepare(cluster.primary, "other")
    yield "other"
    cluster.primary.execute("DROP DATABASE other WITH (FORCE)")


def prepare(server: Server, name: str) -> None:
    """Make a store whose heartbeat is ahead of all others, as if it were the freshest replica."""
    with closing(open_store(server.url(name), write=True)) as database:
        migrations.migrate(database)
    server.execute("UPDATE heartbeat SET at_ms = 9000000000000", database=name)


def test_another_servers_store_is_not_used_until_a_replica_replaces_it(
    serve: Serve, cluster: Cluster, other_server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    replica = cluster.replicas[0]
    client = serve(read_store=(replica.url(), other_server.url()), settled=False)
    assert {client.get("/relatorios").status for _ in range(20)} == {200}
    said = wait_for_stderr(capfd, FOREIGN)
    names = [f"postgresql://127.0.0.1:{server.port}/postgres" for server in (other_server, cluster.primary)]
    assert " is not a streaming replica of ".join(names) in said
    assert cluster.primary.password not in said
    cluster.primary.stop("immediate")
    wait_for_stderr(capfd, "^store: the primary does not answer: ")
    assert {client.get("/relatorios").status for _ in range(20)} == {200}
    cluster.primary.start()
    other_server.stop()
    with cluster.primary.replica() as right:
        right.stop()
        right.port = other_server.port
        right.start()
        wait_for_stderr(capfd, "^store: the replica 2 is well again$")
        before = right.log.count("FROM token")
        until(lambda: client.get("/relatorios").status == 200 and right.log.count("FROM token") > before)
        # Once it is gone again, the next server at this address is checked anew, even though this one was accepted.
        right.stop()
        right.port = free_port()
        right.start()
        right.promote()
        right.stop()
        other_server.start()
        wait_for_stderr(capfd, FOREIGN)
        other_server.stop()
        wait_for_stderr(capfd, "^store: the replica 2 does not answer: ")
        right.port = other_server.port
        right.start()
        wait_for_stderr(capfd, f"{FOREIGN}.* has been promoted")


def test_another_database_of_the_primary_is_not_used_as_a_replica(
    serve: Serve, cluster: Cluster, other_database: str, capfd: pytest.CaptureFixture[str]
) -> None:
    urls = (cluster.replicas[0].url(), cluster.primary.url(other_database))
    client = serve(read_store=urls, settled=False)
    assert {client.get("/relatorios").status for _ in range(20)} == {200}
    wait_for_stderr(capfd, f"{FOREIGN}postgresql://127.0.0.1:{cluster.primary.port}/other is not a streaming replica")


def test_a_promoted_copy_with_its_own_heartbeats_is_not_used_as_a_replica(
    serve: Serve, cluster: Cluster, store: Store, account: Account, capfd: pytest.CaptureFixture[str]
) -> None:
    """It may be a restored backup or the former primary; another service uses it, and no changes reach it."""
    with cluster.primary.replica() as copy:
        copy.promote()
        settings = Settings(store=copy.url(), read_store=(copy.url(),), read_lag_ms=LONG_MS)
        with closing(app.open_served(settings)) as another:
            another.mark()
            another.fetch(WHICH)
            beat = "SELECT at_ms FROM heartbeat WHERE id = 1"
            until(lambda: copy.execute(beat) > cluster.primary.execute(beat))
            client = serve(read_store=(cluster.replicas[0].url(), copy.url()), settled=False)
            assert client.get("/relatorios").status == 200
            wait_for_stderr(capfd, f"{FOREIGN}.* shows data that was written on another server")
            store.write(account, [relatorio(2)])
            cluster.replicas[0].catch_up(cluster.primary)
            assert {client.get("/relatorios").total for _ in range(20)} == {2}
            cluster.primary.stop("immediate")
            wait_for_stderr(capfd, "^store: the primary does not answer: ")
            assert {client.get("/relatorios").total for _ in range(20)} == {2}


def test_a_promoted_copy_without_any_writes_is_not_used_as_a_replica(
    serve: Serve, cluster: Cluster, store: Store, account: Account, capfd: pytest.CaptureFixture[str]
) -> None:
    """The copy has the system identifier of the primary, and its only heartbeat comes from the primary."""
    serve()  # It writes the first heartbeat since the primary was last started.
    with cluster.primary.replica() as copy:
        copy.promote()
        store.write(account, [relatorio(2)])
        client = serve(read_store=(cluster.primary.url(), copy.url()), settled=False)
        assert {client.get("/relatorios").total for _ in range(20)} == {2}
        wait_for_stderr(capfd, f"{FOREIGN}.* has been promoted")
        cluster.primary.stop("immediate")
        wait_for_stderr(capfd, "^store: the primary does not answer: ")
        assert {client.get("/relatorios").status for _ in range(20)} == {503}


def test_a_replica_without_heartbeats_is_not_reported_as_another_store(
    opened: Open, cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    """This happens when a service starts with a new store."""
    behind, other = cluster.replicas
    cluster.primary.execute("DELETE FROM heartbeat")
    behind.catch_up(cluster.primary)
    pause_replay(behind)
    database = opened(settled=False)
    until(lambda: count_answers(database, 6) == {other.port: 6})
    checks = behind.log.count("FROM heartbeat")
    until(lambda: behind.log.count("FROM heartbeat") >= checks + 2)
    resume_replay(behind)
    until(lambda: {*count_answers(database, 6)} == ports(behind, other))
    assert "another store" not in capfd.readouterr().err


def test_a_replica_from_before_the_primarys_restart_counts_as_lagging(
    serve: Serve, opened: Open, cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    """This happens if replication is broken or paused, or if laudo starts at the same time as its server."""
    behind = cluster.replicas[0]
    opened().close()
    pause_replay(behind)
    for _ in range(2):
        cluster.primary.stop()
        cluster.primary.start()
        with closing(opened(SHORT_MS, read_store=(behind.url(),), settled=False)) as database:
            assert count_answers(database, 4) == {cluster.primary.port: 4}
            said = wait_for_stderr(capfd, "^store: the replica 1 ")
            assert re.search(r"lags and is not used for now: by \d\.\d s$", said, re.MULTILINE), said
    client = serve(SHORT_MS, read_store=(behind.url(),), settled=False)
    assert client.get("/relatorios").status == 200
    cluster.primary.stop("immediate")
    said = wait_for_stderr(capfd, "^store: the primary does not answer: ")
    assert {client.get("/relatorios").total for _ in range(4)} == {1}
    assert "another store" not in said


def test_without_the_primary_the_newest_lagging_replica_answers(
    opened: Open, store: Store, account: Account, cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    older, newer = cluster.replicas
    with closing(opened(SHORT_MS)) as database:
        pause_replay(older)
        store.write(account, [relatorio(2)])
        ask_repeatedly(2 * SHORT_MS / 1000, lambda: count_answers(database, 1))
        newer.catch_up(cluster.primary)
        pause_replay(newer)
    cluster.primary.stop()
    cluster.primary.start()
    capfd.readouterr()
    client = Client(served(opened(SHORT_MS, settled=False), store), account.token)
    assert client.get("/relatorios").total == 2
    wait_for_stderr(capfd, r"^store: the replica [12] lags and .*\n(.*\n)*store: the replica [12] lags and ")
    cluster.primary.stop("immediate")
    wait_for_stderr(capfd, "^store: the primary does not answer: ")
    until(lambda: client.get("/relatorios").status == 200)
    assert {client.get("/relatorios").total for _ in range(20)} == {2}


def test_a_standby_of_the_former_primary_is_distinguished_from_a_lagging_one(
    opened: Open, cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    """The new primary knows when the former primary started, but not what was written there after the promotion."""
    former = cluster.primary
    with former.replica(wal_retrieve_retry_interval="100ms") as heir:
        until(lambda: {*count_answers(opened(SHORT_MS), 6)} == ports(*cluster.replicas))
        behind, follower = cluster.replicas
        pause_replay(behind)
        heir.catch_up(former)
        heir.promote()
        beat = "SELECT at_ms FROM heartbeat WHERE id = 1"
        until(lambda: follower.execute(beat) > heir.execute(beat))
        both = (behind.url(), follower.url())
        database = opened(SHORT_MS, store=heir.url(), read_store=both, settled=False)
        until(lambda: count_answers(database, 4) == {heir.port: 4})
        said = wait_for_stderr(capfd, f"{FOREIGN}.* shows data that was written on another server")
        said += wait_for_stderr(capfd, "^store: the replica 1 lags")
        assert "replica 1 belongs to another store" not in said


def test_a_service_of_the_previous_version_can_read_the_primarys_start(opened: Open, cluster: Cluster) -> None:
    """Such a service may run beside this one. It reads the start of the primary from the row with id 2."""
    read = "SELECT at_ms > 1, (SELECT at_ms FROM heartbeat WHERE id = 2) AS started FROM heartbeat WHERE id = 1"
    started = "SELECT true, CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS bigint)"
    opened()
    for _ in range(2):
        until(lambda: cluster.primary.execute(read) == cluster.primary.execute(started))
        cluster.primary.stop()
        cluster.primary.start()


# Privileges, settings, and messages.


def test_idle_time_is_not_reported_as_a_replicas_lag(cluster: Cluster) -> None:
    reported: list[float] = []
    urls = (cluster.primary.url(), [cluster.replicas[0].url()])
    with closing(
        Replicas(*urls, lag_ms=LONG_MS, bounds=Bounds(), report=lambda _, seconds: reported.append(seconds))
    ) as database:
        time.sleep(0.5)
        begun = time.monotonic()
        database.fetch(WHICH)
        until(lambda: bool(reported))
        assert reported[0] <= time.monotonic() - begun


def test_the_reader_role_suffices_to_use_replicas(opened: Open, store: Store, cluster: Cluster) -> None:
    roles.grant(store.database)
    cluster.primary.execute(f"CREATE ROLE api LOGIN PASSWORD '{cluster.primary.password}'")
    cluster.primary.execute(f"GRANT {roles.READER} TO api")
    for replica in cluster.replicas:
        replica.catch_up(cluster.primary)
    urls = tuple(replica.url(user="api") for replica in cluster.replicas)
    database = opened(SHORT_MS, store=cluster.primary.url(user="api"), read_store=urls)
    assert {*count_answers(database, 6)} <= ports(*cluster.servers)


def test_replicas_answer_a_role_that_defaults_to_serializable(opened: Open, cluster: Cluster) -> None:
    cluster.primary.execute(f"CREATE ROLE strict LOGIN PASSWORD '{cluster.primary.password}' SUPERUSER")
    cluster.primary.execute("ALTER ROLE strict SET default_transaction_isolation = 'serializable'")
    for replica in cluster.replicas:
        replica.catch_up(cluster.primary)
    urls = tuple(replica.url(user="strict") for replica in cluster.replicas)
    database = opened(store=cluster.primary.url(user="strict"), read_store=urls)
    assert {*count_answers(database, 6)} <= ports(*cluster.replicas)


def test_another_store_is_detected_without_access_to_pg_control_system(
    opened: Open, store: Store, cluster: Cluster, other_database: str, capfd: pytest.CaptureFixture[str]
) -> None:
    roles.grant(store.database)
    cluster.primary.execute(f"CREATE ROLE ignorant LOGIN PASSWORD '{cluster.primary.password}' IN ROLE {roles.READER}")
    databases = ("postgres", other_database)
    try:
        for name in databases:
            cluster.primary.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC", database=name)
        cluster.primary.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO ignorant", database=other_database)
        for replica in cluster.replicas:
            replica.catch_up(cluster.primary)
        urls = tuple(
            server.url(name, user="ignorant") for server, name in zip(cluster.replicas, databases, strict=True)
        )
        url = cluster.primary.url(user="ignorant")
        database = opened(store=url, read_store=urls, settled=False)
        until(lambda: count_answers(database, 6) == {cluster.replicas[0].port: 6})
        wait_for_stderr(capfd, FOREIGN)
        first = cluster.replicas[0]
        before = first.log.count("FROM heartbeat")
        until(lambda: first.log.count("FROM heartbeat") >= before + 2)
        refused = Counter(server.log.count("denied for function pg_control_system") for server in cluster.servers)
        assert refused[0] + refused[1] == len(cluster.servers), "each server is asked only once"
    finally:
        cluster.primary.execute("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")


@pytest.mark.parametrize(
    "case",
    [
        (
            "poor",
            "",
            "SELECT",
            "lacks a right; run `laudo migrate --grants` as the owner of the tables, and grant the user laudo_reader",
        ),
        ("narrow", "CONNECTION LIMIT 1", "SELECT, INSERT, UPDATE", "has no connection left"),
    ],
    ids=lambda case: case[0],
)
def test_a_primary_that_accepts_no_heartbeat_answers_alone_and_is_reported(
    opened: Open, cluster: Cluster, capfd: pytest.CaptureFixture[str], case: tuple[str, ...]
) -> None:
    user, how, rights, reason = case
    cluster.primary.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{cluster.primary.password}' {how}")
    cluster.primary.execute(f"GRANT {rights} ON ALL TABLES IN SCHEMA public TO {user}")
    for replica in cluster.replicas:
        replica.catch_up(cluster.primary)
    database = opened(SHORT_MS, store=cluster.primary.url(user=user), settled=False)
    answers = ask_repeatedly(2 * SHORT_MS / 1000, lambda: {*count_answers(database, 1)})
    assert all(answered == ports(cluster.primary) for _, answered in answers)
    said = wait_for_stderr(
        capfd, f"^store: the primary accepts no heartbeat, so no replica is known .*{re.escape(reason)}"
    )
    assert cluster.primary.password not in said


def test_a_slow_primary_is_preferred_to_lagging_replicas(
    opened: Open, cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    database = opened(SHORT_MS)
    for replica in cluster.replicas:
        pause_replay(replica)
    with psycopg.connect(cluster.primary.url()) as connection:
        connection.execute("LOCK TABLE heartbeat")
        wait_for_stderr(capfd, r"^store: the primary .* PostgreSQL did not finish a statement within its time limit")
        until(lambda: count_answers(database, 4) == {cluster.primary.port: 4})


def test_replicas_stay_fresh_while_a_synchronous_standby_is_missing(opened: Open, cluster: Cluster) -> None:
    cluster.primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'gone'")
    cluster.primary.execute("SELECT pg_reload_conf()")
    try:
        until(lambda: cluster.primary.execute("SHOW synchronous_standby_names") == [("gone",)])
        database = opened(2_000)
        time.sleep(2.5)
        assert {*count_answers(database, 6)} <= ports(*cluster.replicas)
    finally:
        cluster.primary.execute("ALTER SYSTEM RESET synchronous_standby_names")
        cluster.primary.execute("SELECT pg_reload_conf()")


def test_a_wrong_replica_url_is_an_error_at_start(opened: Open, cluster: Cluster) -> None:
    wrong = cluster.replicas[1].url(password="wrong-password")
    with pytest.raises(StoreError, match=r"^URL 2 of read_store: .* refuses the store's user") as error:
        opened(read_store=(cluster.replicas[0].url(), wrong), settled=False)
    assert "wrong-password" not in str(error.value)


def test_target_session_attrs_chooses_among_the_hosts_of_a_url(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, replica = cluster.primary, cluster.replicas[0]

    def found(first: Server, second: Server, query: str = "", *, write: bool = False) -> int:
        hosts = f"127.0.0.1:{first.port},127.0.0.1:{second.port}"
        with closing(open_store(f"postgresql://postgres:{primary.password}@{hosts}/{query}", write=write)) as database:
            [(port,)] = database.fetch(WHICH)
            return int(port)

    assert found(replica, primary, "?target_session_attrs=read-write") == primary.port
    assert found(replica, primary, "?target_session_attrs=read-write", write=True) == primary.port
    assert found(primary, replica, "?target_session_attrs=read-only") == replica.port
    assert found(primary, replica, "?target_session_attrs=any") == primary.port
    monkeypatch.setenv("PGTARGETSESSIONATTRS", "read-write")
    assert found(replica, primary) == primary.port


def test_replicas_of_a_sqlite_store_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/laudo.db"
    with pytest.raises(StoreError, match="a SQLite file has no replicas"):
        app.open_served(Settings(store=url, read_store=(cluster.replicas[0].url(),)))


def test_the_repr_shows_no_password(opened: Open, cluster: Cluster) -> None:
    assert cluster.primary.password not in repr(opened(settled=False))


def test_closing_ends_the_threads_that_check_servers(opened: Open, cluster: Cluster) -> None:
    before = set(threading.enumerate())
    database = opened()
    begun = set(threading.enumerate()) - before
    assert len(begun) == len(cluster.servers)
    database.close()
    assert not any(thread.is_alive() for thread in begun)


def test_each_server_is_checked_by_one_thread_if_several_read_first(opened: Open, cluster: Cluster) -> None:
    before = threading.active_count()
    database = opened(settled=False)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(database.fetch, [WHICH] * 4))
    assert threading.active_count() == before + len(cluster.servers)


def test_no_check_begins_before_the_first_read(opened: Open) -> None:
    before = threading.active_count()
    opened(settled=False)
    assert threading.active_count() == before


def test_serve_reads_from_replicas_and_reports_their_lag_as_a_metric(
    cluster: Cluster, store: Store, account: Account
) -> None:
    place = Place(store.key_file.parent, token=account.token, other_store=cluster.primary.url())
    urls = " ".join(replica.url() for replica in cluster.replicas)
    metrics = free_port()
    flags = ("--read-store", urls, "--workers", "1", "--metrics-port", str(metrics))
    before = count_reads(cluster, "token")
    with serving(place, *flags) as server:
        until(
            lambda: (
                server.ask("/usuario").status == 200
                and set(count_reads(cluster, "token") - before) >= ports(*cluster.replicas)
            )
        )
        until(lambda: gauges(metrics) == {"1", "2"})
        cluster.primary.stop("immediate")
        with serving(place, *flags[:-2]) as other:
            assert other.ask("/usuario").status == 200
            assert server.ask("/usuario").status == 200
            assert cluster.primary.password not in other.said() + server.said()


def test_serve_starts_while_the_store_is_down(cluster: Cluster, store: Store, account: Account) -> None:
    place = Place(store.key_file.parent, token=account.token, other_store=cluster.primary.url())
    cluster.primary.stop("immediate")
    with serving(place, "--workers", "1") as server:
        assert server.ask("/usuario").status == 503
        cluster.primary.start()
        until(lambda: server.ask("/usuario").status == 200)


def gauges(port: int) -> set[str]:
    return set(re.findall(r'^laudo_replica_lag_seconds\{replica="(\d)"\} \d+\.\d+', scrape(port), re.MULTILINE))


def test_serve_refuses_replicas_of_a_sqlite_store_in_one_line(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert place.run("migrate").returncode == 0
    ended = place.run("serve", "--read-store", "postgresql://db/laudo")
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "a SQLite file has no replicas" in ended.stderr
