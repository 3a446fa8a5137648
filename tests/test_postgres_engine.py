import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep, thread_time
from types import MappingProxyType
from typing import Any, Final

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import postgres_server
from awaiting import readable, until
from between import Between
from laudo.core.sql import How, Statement, Write
from laudo.core.sql.writes import Table
from laudo.server.database import (
    WAITS,
    Bounds,
    Busy,
    Connection,
    Doubtful,
    Locked,
    Lost,
    RolledBack,
    Row,
    Slow,
    StoreError,
    Unavailable,
    read,
)
from laudo.server.postgres import Postgres, address, failures, pool
from laudo.server.postgres.session import Hung, Session
from postgres_server import Server

COUNTER: Final = Table(
    "counter",
    ("id_organizacao", "name"),
    MappingProxyType({"id_organizacao": "bigint", "name": "text", "total": "bigint", "note": "bytea"}),
)
INSERT: Final = Write(How.INSERT, COUNTER, ("total", "note"))
ADD: Final = Write(How.COUNT, COUNTER, ("total",))
ALL: Final = Statement("SELECT name, total, note FROM counter ORDER BY name")
ONE: Final = Statement("SELECT 1::bigint")
PID: Final = Statement("SELECT pg_backend_pid()")
BEGAN: Final = Statement("SELECT transaction_timestamp()::text")
STARTED: Final = "SELECT pg_postmaster_start_time()"
SLEEP: Final = Statement("SELECT pg_sleep(30)")
WAITING: Final = Statement("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
Step = Callable[[Connection], object]
PATIENCE: Final = 30
"""Seconds after which a thread that does not end counts as failed; no test depends on the value."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server.start(autovacuum="off") as server:
        yield server


@pytest.fixture
def opened(server: Server) -> Iterator[Callable[..., Postgres]]:
    """Opens stores: by default for reading, and in the server's own database."""
    stores: list[Postgres] = []

    def new(*, write: bool = False, url: str | None = None, **bounds: Any) -> Postgres:  # noqa: ANN401 - any bound's
        stores.append(Postgres(url or server.url(), write=write, bounds=Bounds(**bounds)))
        return stores[-1]

    yield new
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[..., Postgres]) -> Postgres:
    return opened()


@pytest.fixture
def writer(opened: Callable[..., Postgres]) -> Postgres:
    """A store opened for writing, with one empty table."""
    writer = opened(write=True)
    with writer.transaction() as connection:
        connection.run_script(
            "DROP TABLE IF EXISTS counter; CREATE TABLE counter"
            ' (id_organizacao bigint, name text COLLATE "C", total bigint, note bytea,'
            " PRIMARY KEY (id_organizacao, name))"
        )
    return writer


@pytest.fixture
def between(server: Server) -> Iterator[Between]:
    with Between(server.port) as between:
        yield between


def ask(text: str, *params: object) -> Statement:
    return Statement(text, params)


def through(between: Between, server: Server) -> str:
    return f"postgresql://postgres:{server.password}@127.0.0.1:{between.port}/postgres"


def end_all(server: Server) -> int:
    """End every client's session; returns how many there were."""
    [(ended,)] = server.execute(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    return int(ended)


def run(transaction: AbstractContextManager[Connection], *steps: Step) -> None:
    with transaction as connection:
        for step in steps:
            step(connection)


def insert_a(connection: Connection) -> None:
    connection.write(INSERT, [(1, "a", 1, None)])


def fetch_one(connection: Connection) -> list[Row]:
    return connection.fetch(ONE)


def fetch_all(connection: Connection) -> list[Row]:
    return connection.fetch(ALL)


# Parameters and results.


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        (ask("SELECT ?, ?::bigint", 1, -(2**63)), (1, -(2**63))),
        (ask("SELECT ?, ?", *(True, False)), (1, 0)),
        (ask("SELECT ?, ?::text", "ação 🙂", ""), ("ação 🙂", "")),
        (ask("SELECT ?, length(?)", b"\0\xff", b""), (b"\0\xff", 0)),
        (ask("SELECT ?::bigint, ?::text, coalesce(?, 'x')", None, None, None), (None, None, "x")),
        (ask("SELECT ?2::text || ?1::text || ?2", "a", "b"), ("bab",)),
        (ask("SELECT ? - ?3 - ?2", 10, 2, 1), (7,)),
        (ask("SELECT ?", [1, True, None]), ([1, 1, None],)),
        (ask("SELECT ?", ["á", None, ""]), (["á", None, ""],)),
        (ask("SELECT ?", [None, b"\0", b""]), ([None, b"\0", b""],)),
        (ask("SELECT ?::bigint[], ?::text[]", [], [None, None]), ([], [None, None])),
    ],
)
def test_values_come_back_as_they_were_bound(store: Postgres, statement: Statement, row: Row) -> None:
    assert store.fetch(statement) == [row]


@pytest.mark.parametrize("members", [[], [3], [3, 4], [None], list(range(10_000))])
def test_an_array_is_one_parameter_for_any_and_unnest(store: Postgres, members: list[int]) -> None:
    wanted = [(n,) for n in (3, 4, 9_999) if n in members]
    assert store.fetch(ask("SELECT n FROM unnest(?::bigint[]) AS n WHERE n IN (3, 4, 9999)", members)) == wanted
    text = "SELECT n FROM (VALUES (3::bigint), (4), (9999)) AS given (n) WHERE n = ANY(?)"
    assert store.fetch(ask(text, members)) == wanted


def test_a_statement_without_result_has_no_rows(writer: Postgres) -> None:
    assert writer.fetch(ask("DELETE FROM counter")) == []


@pytest.mark.parametrize(
    ("value", "error"),
    [("a\0b", ValueError), (["a", "\0"], ValueError), ("\ud800", UnicodeError), (1.5, TypeError), ([{}], TypeError)],
)
def test_an_unstorable_value_is_refused_and_the_connection_stays_usable(
    opened: Callable[..., Postgres], value: object, error: type[Exception]
) -> None:
    store = opened(pool_size=1)
    pid = store.fetch(PID)
    with pytest.raises(error):
        store.fetch(ask("SELECT ?", value))
    with store.snapshot() as connection, pytest.raises(error):
        connection.fetch(ask("SELECT ?", value))
    assert store.fetch(PID) == pid


def test_a_statement_is_prepared_once_for_all_values(opened: Callable[..., Postgres]) -> None:
    store = opened(pool_size=1)
    for value in (1, 2**40, True, -1):
        store.fetch(ask("SELECT ?::bigint + 1 AS mine", value))
        with store.snapshot() as connection:
            connection.fetch(ask("SELECT ?::bigint + 1 AS mine", value))
    prepared = ask(
        "SELECT count(*), sum(generic_plans + custom_plans)::bigint FROM pg_prepared_statements"
        " WHERE statement LIKE '%+ 1 AS mine'"
    )
    assert store.fetch(prepared) == [(1, 8)]


def test_a_prepared_statements_name_means_the_same_in_every_session(
    opened: Callable[..., Postgres],
) -> None:
    # A pooler may give a session the statements that another one has prepared; that must never give a wrong answer.
    prepared = ask("SELECT name, statement, parameter_types::text FROM pg_prepared_statements")
    one, none = ask("SELECT ?::bigint + 1", 1), ask("SELECT ?::bigint + 1", None)
    statements = [ask("SELECT ?::bigint", 1), one, none, prepared]
    stood_for: dict[object, set[object]] = {}
    for order in (statements, statements[::-1]):
        store = opened(pool_size=1)
        for statement in (*order, *order):
            store.fetch(statement)
        for name, *meaning in store.fetch(prepared):
            stood_for.setdefault(name, set()).add(tuple(meaning))
    assert len(stood_for) > len(statements)
    assert all(len(meanings) == 1 for meanings in stood_for.values())


def test_commit_and_rollback_are_not_prepared(opened: Callable[..., Postgres]) -> None:
    store = opened(pool_size=1)
    for _ in range(2):
        with store.snapshot() as connection:
            connection.fetch(ONE)
    prepared = ask("SELECT count(*) FROM pg_prepared_statements WHERE statement IN ('COMMIT', 'ROLLBACK')")
    assert store.fetch(prepared) == [(0,)]


def test_no_statement_is_prepared_if_that_is_turned_off(opened: Callable[..., Postgres]) -> None:
    store = opened(pool_size=1, prepare=False)
    with store.snapshot() as connection:
        assert connection.fetch(ask("SELECT ?", 1)) == [(1,)]
    assert store.fetch(ask("SELECT count(*) FROM pg_prepared_statements")) == [(0,)]


def test_a_schema_change_does_not_break_a_prepared_statement(writer: Postgres, opened: Callable[..., Postgres]) -> None:
    store = opened(pool_size=1)
    whole = ask("SELECT * FROM counter")
    store.fetch(whole)
    writer.fetch(ask("INSERT INTO counter VALUES (1, 'a', 2, NULL)"))
    writer.fetch(ask("ALTER TABLE counter ADD COLUMN more text DEFAULT 'x'"))
    assert store.fetch(whole) == [(1, "a", 2, None, "x")]
    writer.fetch(ask("ALTER TABLE counter DROP COLUMN more"))
    assert read(store, lambda connection: connection.fetch(whole)) == [(1, "a", 2, None)]


# Round trips.


def test_each_fetch_takes_one_round_trip_even_if_it_begins_a_snapshot(
    between: Between, server: Server, opened: Callable[..., Postgres]
) -> None:
    store = opened(url=through(between, server), pool_size=1)
    between.turns = 0
    assert store.fetch(ONE) == [(1,)]
    assert between.turns == 1
    with store.snapshot() as connection:
        assert connection.fetch(ONE) == [(1,)]
        assert between.turns == 2
        assert connection.fetch(ask("SELECT 2::bigint")) == [(2,)]
        assert between.turns == 3


def test_a_snapshot_ends_without_waiting_for_the_server(
    between: Between, server: Server, opened: Callable[..., Postgres]
) -> None:
    store = opened(url=through(between, server), pool_size=1)
    with store.snapshot() as connection:
        assert connection.fetch(ONE) == [(1,)]
        between.hold()
    with store.snapshot():
        pass
    between.let()
    with store.snapshot() as connection:
        assert connection.fetch(ask("SELECT pg_current_xact_id_if_assigned() IS NULL, 7::bigint")) == [(True, 7)]


def test_a_batch_takes_four_round_trips_for_several_writes(
    between: Between, server: Server, writer: Postgres, opened: Callable[..., Postgres]
) -> None:
    """One each for the lock, the query, all writes, and the commit, which is sent once the writes have succeeded."""
    far = opened(url=through(between, server), write=True)
    between.turns = 0
    with far.transaction() as connection:
        connection.lock("a batch")
        assert connection.fetch(ALL) == []
        for name in "abcdef":
            connection.write(INSERT, [(1, name, 1, None)])
    assert between.turns == 4
    assert len(writer.fetch(ALL)) == 6


class Piecemeal:
    """A libpq whose kernel accepts the last part of a message late; the answer arrives as soon as it has."""

    def __init__(self, libpq: Any) -> None:  # noqa: ANN401 - psycopg's, in C or in Python
        self._libpq = libpq
        self._kept = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._libpq, name)

    def pipeline_sync(self) -> None:
        self._libpq.pipeline_sync()
        self._kept = 1

    def flush(self) -> int:
        kept, self._kept = self._kept, 0
        return self._libpq.flush() or kept

    def consume_input(self) -> None:
        assert readable(self._libpq.socket, PATIENCE)
        self._libpq.consume_input()


def test_an_answer_read_while_sending_is_not_waited_for_again(server: Server) -> None:
    conninfo = address.conninfo(server.url(), Bounds(), write=True)
    with closing(Session.open(conninfo, limit_ms=PATIENCE * 500, prepare=True, plan_mode="auto")) as session:
        session._libpq = Piecemeal(session._libpq)  # type: ignore[assignment]
        for _ in range(2):
            session.send(ONE.text)
            assert session.receive() == [(1,)]


# Marks: the state of a store.


def mark_of(store: Postgres) -> bytes:
    """Return a store's mark, which must exist."""
    _, mark = store.fetch_marked(())
    assert mark is not None
    return mark


@pytest.mark.parametrize("statements", [[ONE], [ALL], [ask("SELECT ?, ?", 7, "x"), ONE]])
def test_fetch_marked_returns_the_same_rows_as_fetch_each(
    store: Postgres, writer: Postgres, statements: list[Statement]
) -> None:
    writer.fetch(ask("INSERT INTO counter VALUES (1, 'a', 2, NULL), (1, 'b', 3, NULL)"))
    rows, mark = store.fetch_marked(statements)
    assert rows == store.fetch_each(statements)
    assert mark == mark_of(store)


def test_there_is_no_mark_if_the_first_statement_finds_no_row(store: Postgres) -> None:
    assert store.fetch_marked([ask("SELECT 1 WHERE false"), ONE]) == ([[], [(1,)]], None)
    assert store.fetch_marked(())[0] == []


def test_a_mark_changes_only_with_a_commit(store: Postgres, writer: Postgres, opened: Callable[..., Postgres]) -> None:
    before = mark_of(store)
    with writer.transaction() as connection:
        connection.write(INSERT, [(1, "a", 1, None)])
        assert connection.fetch(ALL) == [("a", 1, None)]
        with store.snapshot() as reading:
            assert reading.fetch(ALL) == []
        assert mark_of(store) == mark_of(opened()) == before
    assert mark_of(store) == mark_of(opened()) != before


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (1, 0, 2)])
def test_each_commit_changes_the_mark_in_any_order_of_commits(
    store: Postgres, writer: Postgres, order: tuple[int, ...]
) -> None:
    marks, under_way = [mark_of(store)], [ExitStack() for _ in order]
    for number, transaction in enumerate(under_way):
        connection = transaction.enter_context(writer.transaction())
        connection.write(INSERT, [(1, f"{number}", 1, None)])
        connection.fetch(ONE)
    for number in order:
        under_way[number].close()
        marks.append(mark_of(store))
    assert len(set(marks)) == len(marks)


def test_a_mark_changes_after_lost_sessions_and_after_a_restart(server: Server, store: Postgres) -> None:
    marks = [mark_of(store)]
    end_all(server)
    marks.append(mark_of(store))
    server.stop()
    server.start()
    marks.append(mark_of(store))
    assert len(set(marks)) == len(marks)


def test_a_mark_is_not_reused_for_other_contents_after_a_crash() -> None:
    """A crash loses transactions that were not on disk, and their numbers are used again by the same server.

    A client may not notice that sessions were lost: expired ones are not checked, and PgBouncer hides the loss.
    """
    with (
        postgres_server.start(wal_writer_delay="10s") as server,
        closing(Postgres(server.url(), write=False, bounds=Bounds(lifetime_ms=0))) as store,
    ):
        server.execute("CREATE TABLE noted ()")
        with psycopg.connect(server.url()) as undone:
            undone.execute("INSERT INTO noted DEFAULT VALUES")
            undone.rollback()
        before, started = mark_of(store), server.execute(STARTED)
        with psycopg.connect(server.url(), autocommit=True) as killed:
            os.kill(killed.info.backend_pid, signal.SIGKILL)
        until(lambda: "reinitializing" in server.log)
        server.wait_accepting()
        server.execute("INSERT INTO noted DEFAULT VALUES")
        assert server.execute(STARTED) == started
        assert mark_of(store) != before


def test_a_store_on_several_machines_has_no_mark(server: Server, opened: Callable[..., Postgres]) -> None:
    """One machine of Citus does not know what another one has committed."""
    server.execute("CREATE DATABASE several")
    store = opened(url=server.url("several"))
    mark_of(store)
    with psycopg.connect(server.url("several"), options="-c allow_system_table_mods=on") as connection:
        connection.execute("CREATE TABLE pg_catalog.pg_dist_partition ()")
    assert store.fetch_marked([ONE]) == ([[(1,)]], None)


# Transactions.


def test_a_snapshot_sees_one_state(store: Postgres, writer: Postgres) -> None:
    with store.snapshot() as connection:
        assert connection.fetch(ALL) == []
        with writer.transaction() as other:
            other.write(INSERT, [(1, "a", 1, b"")])
        assert connection.fetch(ALL) == []
    assert store.fetch(ALL) == [("a", 1, b"")]


def test_a_transaction_sees_what_others_commit_meanwhile(writer: Postgres) -> None:
    with writer.transaction() as connection:
        assert connection.fetch(ALL) == []
        with writer.transaction() as other:
            other.write(INSERT, [(1, "a", 1, None)])
        assert connection.fetch(ALL) == [("a", 1, None)]


def test_a_store_opened_read_only_refuses_writes(writer: Postgres, store: Postgres) -> None:
    insert = ask("INSERT INTO counter VALUES (1, 'a', 1, NULL)")
    with pytest.raises(Unavailable, match="is read-only"):
        store.fetch(insert)
    for transaction in (store.snapshot(), store.transaction()):
        with pytest.raises(Unavailable, match="is read-only"), transaction as connection:
            connection.fetch(insert)
    assert writer.fetch(ALL) == []


def test_a_snapshot_refuses_writes(writer: Postgres) -> None:
    with writer.snapshot() as connection, pytest.raises(Unavailable, match="is read-only"):
        connection.fetch(ask("INSERT INTO counter VALUES (1, 'a', 1, NULL)"))
    assert writer.fetch(ALL) == []


def test_rows_are_inserted_and_totals_are_added_up(writer: Postgres) -> None:
    with writer.transaction() as connection:
        connection.write(INSERT, [(1, "a", 1, None), (1, "b", 2**40, b"\0"), (1, "c", 3, None)])
        connection.write(ADD, ((1, name, 10) for name in "bd"))
        connection.write(INSERT, [])
        assert connection.fetch(ALL)[1] == ("b", 2**40 + 10, b"\0")
    assert writer.fetch(ALL) == [("a", 1, None), ("b", 2**40 + 10, b"\0"), ("c", 3, None), ("d", 10, None)]


def test_many_large_writes_fit_into_one_transaction(writer: Postgres) -> None:
    with writer.transaction() as connection:
        for start in range(0, 40_000, 10_000):
            connection.write(INSERT, [(1, f"{n:06}", n, b"x" * 200) for n in range(start, start + 10_000)])
    assert writer.fetch(ask("SELECT count(*), sum(total)::bigint FROM counter")) == [(40_000, sum(range(40_000)))]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("before", [[], [insert_a], [fetch_all], [insert_a, fetch_all]])
def test_an_exception_rolls_back_the_whole_transaction(
    writer: Postgres, kind: type[BaseException], before: list[Step]
) -> None:
    def breaking() -> Iterator[Row]:
        yield (1, "b", 1, None)
        raise kind

    with pytest.raises(kind):
        run(writer.transaction(), *before, lambda connection: connection.write(INSERT, breaking()))
    assert writer.fetch(ALL) == []


def test_a_connection_stays_usable_after_a_failed_write_and_an_exception(
    writer: Postgres, opened: Callable[..., Postgres]
) -> None:
    again = opened(write=True, pool_size=1)
    pid = again.fetch(PID)
    with pytest.raises(ValueError), again.transaction() as connection:  # noqa: PT011, PT012
        connection.write(INSERT, [(1, "a", 1, None), (1, "a", 2, None)])
        connection.write(ADD, [(1, "b", 1)])
        raise ValueError
    with again.transaction() as connection:
        connection.write(ADD, [(1, "b", 1)])
        assert connection.fetch_each([ONE, PID]) == [[(1,)], pid]
    assert writer.fetch(ALL) == [("b", 1, None)]


def test_a_failed_write_is_raised_at_the_next_fetch_or_at_the_commit(writer: Postgres) -> None:
    for steps in ([insert_a, insert_a], [insert_a, insert_a, fetch_all]):
        with pytest.raises(psycopg.errors.UniqueViolation) as caught:
            run(writer.transaction(), *steps)
        assert "(1, a)" not in str(caught.value)
    assert writer.fetch(ALL) == []


def test_a_suppressed_statement_error_makes_the_commit_fail(writer: Postgres) -> None:
    def dividing(connection: Connection) -> None:
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.fetch(ask("SELECT 1 / 0"))

    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        run(writer.transaction(), insert_a, dividing)
    assert writer.fetch(ALL) == []


def test_a_suppressed_connection_loss_makes_the_commit_fail(server: Server, writer: Postgres) -> None:
    def losing(connection: Connection) -> None:
        end_all(server)
        with pytest.raises(Lost):
            connection.fetch(ONE)

    with pytest.raises(Lost):
        run(writer.transaction(), fetch_one, losing)
    run(writer.snapshot(), fetch_one, losing)
    assert writer.fetch(ONE) == [(1,)]


def test_a_script_is_part_of_its_transaction(writer: Postgres) -> None:
    with pytest.raises(psycopg.errors.SyntaxError), writer.transaction() as connection:
        connection.run_script("CREATE TABLE made (n bigint); INSERT INTO made VALUES (1); SELEC")
    with writer.transaction() as connection:
        assert not connection.has_column("made", "n")
        connection.run_script("CREATE TABLE made (n bigint); INSERT INTO made VALUES (1)")
        assert connection.has_column("made", "n")
        assert not connection.has_column("made", "m")
        assert connection.fetch(ask("SELECT n FROM made")) == [(1,)]
        connection.run_script("DROP TABLE made")


def test_writers_that_lock_the_same_name_take_turns(writer: Postgres) -> None:
    both = threading.Barrier(2)

    def count_up() -> None:
        both.wait(PATIENCE)
        for _ in range(20):
            with writer.transaction() as connection:
                connection.lock("the counter")
                [(total,)] = connection.fetch(ask("SELECT coalesce(max(total), 0) FROM counter"))
                connection.write(ADD, [(1, "a", 1)])
                connection.fetch(ask("UPDATE counter SET total = ?", total + 1))

    in_threads(2, count_up)
    assert writer.fetch(ALL) == [("a", 40, None)]


def test_an_unlimited_wait_for_another_writer_is_logged_once(
    writer: Postgres, opened: Callable[..., Postgres], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("laudo.server.logs.notice", told.append)
    monkeypatch.setattr("laudo.server.postgres.session.SILENT_SECONDS", 0)
    patient = opened(write=True, write_timeout_ms=0, pool_size=1)
    for _ in range(2):
        with ThreadPoolExecutor(1) as threads, writer.transaction() as connection:
            connection.lock("a batch")
            waiting = threads.submit(run, patient.transaction(), lambda each: each.lock("a batch"))
            until(lambda: told == [WAITS] and writer.fetch(WAITING) == [(1,)])
        waiting.result(PATIENCE)
    assert told == [WAITS]


def test_alone_releases_its_locks_at_the_end_of_the_block(server: Server, writer: Postgres) -> None:
    alone = writer.alone()
    with alone as connection:
        connection.lock("a")
    until(lambda: server.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)])


def test_different_names_can_be_locked_at_the_same_time(writer: Postgres) -> None:
    with writer.transaction() as one, writer.transaction() as other:
        one.lock("a")
        other.lock("b")


# Time limits, and connections of a pool.


@pytest.mark.timed
def test_a_statement_over_its_time_limit_is_cancelled(opened: Callable[..., Postgres]) -> None:
    store = opened(pool_size=1, statement_timeout_ms=100)
    pid = store.fetch(PID)
    with pytest.raises(Unavailable, match="time limit"):
        store.fetch(SLEEP)
    with pytest.raises(Unavailable, match="time limit"), store.snapshot() as connection:
        connection.fetch(SLEEP)
    assert store.fetch(PID) == pid


def test_writers_have_their_own_statement_timeout(opened: Callable[..., Postgres]) -> None:
    limit = ask("SELECT current_setting('statement_timeout')")
    assert opened(write=True, statement_timeout_ms=100).fetch(limit) == [("1min",)]
    assert opened(write=True, write_timeout_ms=0).fetch(limit) == [("0",)]
    assert opened(statement_timeout_ms=100, write_timeout_ms=7).fetch(limit) == [("100ms",)]


@pytest.mark.timed
def test_an_exhausted_pool_refuses_after_its_timeout(opened: Callable[..., Postgres]) -> None:
    store = opened(pool_size=2, pool_timeout_ms=200)
    with store.snapshot() as one, store.snapshot() as other:
        assert one.fetch(PID) != other.fetch(PID)
        asked = monotonic()
        with pytest.raises(Unavailable, match="in use"):
            store.fetch(ONE)
        assert 0.2 <= monotonic() - asked < 2
    assert store.fetch(ONE) == [(1,)]


def test_threads_wait_for_a_free_connection_of_the_pool(opened: Callable[..., Postgres]) -> None:
    store = opened(pool_size=2, pool_timeout_ms=PATIENCE * 1000)
    pids = {
        row
        for rows in in_threads(16, lambda: store.fetch(ask("SELECT pg_backend_pid(), pg_sleep(0.01)")))
        for row in rows
    }
    assert len(pids) == 2


@pytest.mark.timed
def test_threads_that_share_few_connections_take_turns(opened: Callable[..., Postgres]) -> None:
    store = opened(pool_size=2, pool_timeout_ms=PATIENCE * 1000)
    with ExitStack() as stack:
        asked = [stack.enter_context(asking(store, threads=1)) for _ in range(4)]
        until(lambda: all(asked))
        begun = [len(answers) for answers in asked]
        until(lambda: sum(map(len, asked)) > sum(begun) + 1000)
        shares = [len(answers) - before for answers, before in zip(asked, begun, strict=True)]
    assert [answer for answers in asked for _, answer in answers if not isinstance(answer, list)] == []
    assert min(shares) > sum(shares) / 10


def test_an_expired_connection_is_replaced(opened: Callable[..., Postgres]) -> None:
    kept, renewed = opened(pool_size=1), opened(pool_size=1, lifetime_ms=0)
    assert kept.fetch(PID) == kept.fetch(PID)
    assert renewed.fetch(PID) != renewed.fetch(PID)
    idle = opened(pool_size=1, lifetime_ms=500)
    before = idle.fetch(PID)
    sleep(0.6)
    assert idle.fetch(PID) != before


def test_a_closed_store_has_no_connections(server: Server, opened: Callable[..., Postgres]) -> None:
    url = f"{server.url()}?application_name=closing"
    store = opened(url=url)
    with store.snapshot() as connection:
        connection.fetch(ONE)
        store.close()
    text = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'closing'"
    until(lambda: server.execute(text) == [(0,)])


# Errors of a store, and their messages.


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("08006", Unavailable, "cannot reach a part"),
        ("25006", Unavailable, "read-only: it is a replica, default_transaction_read_only is on"),
        ("26000", Unavailable, "PgBouncer .* prepare = false"),
        ("28P01", StoreError, "refuses the store's user"),
        ("3D000", StoreError, "no such database"),
        ("40001", RolledBack, "rolled back the transaction because of another one"),
        ("40P01", RolledBack, "rolled back the transaction because of another one"),
        ("42P01", Unavailable, "laudo migrate"),
        ("42501", StoreError, "laudo migrate --grants"),
        ("53100", Unavailable, "no space is left on PostgreSQL's disk"),
        ("53200", Unavailable, "run out of memory"),
        ("55P03", Locked, "another writer"),
        ("57014", Slow, r"time limit \(statement_timeout\)"),
        ("57P03", Unavailable, "cannot continue now"),
        ("XX001", StoreError, "damaged"),
        ("22012", psycopg.errors.DivisionByZero, "secret"),
    ],
)
def test_each_sqlstate_maps_to_an_error_and_the_connection_stays_usable(
    server: Server, opened: Callable[..., Postgres], code: str, kind: type[Exception], text: str
) -> None:
    server.execute(
        "CREATE OR REPLACE FUNCTION fail(code text) RETURNS bigint LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = code, DETAIL = 'a row'; END $$"
    )
    store = opened(pool_size=1)
    pid = store.fetch(PID)
    for asked in (store.fetch, partial(in_snapshot, store)):
        with pytest.raises(kind, match=text) as caught:
            asked(ask("SELECT fail(?)", code))
        assert type(caught.value) is kind
        assert "a row" not in str(caught.value)
        assert ("secret" in str(caught.value)) == (text == "secret")
    assert store.fetch(PID) == pid


def test_one_of_two_deadlocked_transactions_is_lost(writer: Postgres) -> None:
    with writer.transaction() as connection:
        connection.write(INSERT, [(1, "a", 0, None), (1, "b", 0, None)])
    both = threading.Barrier(2)

    def crossing(name: str, other: str) -> bool:
        with suppress(Lost), writer.transaction() as connection:
            connection.fetch(ask("UPDATE counter SET total = 1 WHERE name = ?", name))
            both.wait(PATIENCE)
            connection.fetch(ask("UPDATE counter SET total = 1 WHERE name = ?", other))
            return True
        return False

    with ThreadPoolExecutor(2) as threads:
        ends = [threads.submit(crossing, *names) for names in ("ab", "ba")]
        assert sorted(end.result(PATIENCE) for end in ends) == [False, True]
    assert [total for _, total, _ in writer.fetch(ALL)] == [1, 1]


def test_a_wrong_store_url_is_reported_at_once_without_the_password(
    server: Server, opened: Callable[..., Postgres]
) -> None:
    for url, text in (
        (server.url(password="geheim"), "check its name, password"),
        (server.url(user="nobody", password="geheim"), "check its name, password"),
        (server.url("nowhere"), "create it"),
        (f"{server.url()}?channel_binding=require", "a parameter of the store's URL is wrong"),
        (f"{server.url()}?connect_timeout=x", "a parameter of the store's URL is wrong"),
        (f"{server.url()}?port=99999", "a parameter of the store's URL is wrong"),
        (f"{server.url()}?port=1,2", "a parameter of the store's URL is wrong"),
        (f"{server.url()}?hostaddr=x", "a parameter of the store's URL is wrong"),
        (server.url().replace(server.password, "ge@heim"), "%40"),
        (server.url().replace(server.password, "ge/heim"), "%2F"),
        (server.url().replace(server.password, "ge@heim/1"), "%40"),
        (server.url().replace(server.password, "1/geheim"), "%2F"),
        (server.url().replace(server.password, "ge%E9heim"), "%C3%A9"),
        (server.url().replace("127.0.0.1", "db..example"), "the host name in the store's URL is not valid"),
        (f"{server.url()}?nonsense=geheim", "libpq's parameters after [?]"),
        (f"{server.url()},{server.url(password='geheim')}", "must look like"),
        (f"{server.url()};postgresql://laudo:geheim@replica/laudo", "must look like"),
        (f"{server.url()}?dbname=postgresql://laudo:geheim@replica/laudo", "must look like"),
    ):
        with pytest.raises(StoreError, match=text) as caught:
            opened(url=url)
        assert type(caught.value) is StoreError
        assert "heim" not in str(caught.value)
        assert server.password not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("FATAL:  terminating connection due to administrator command", Lost),
        ("FATAL:  terminando conexão por causa de um comando do administrador", Lost),
        ("server closed the connection unexpectedly", Lost),
        ("FATAL:  sorry, too many clients already", Busy),
        ("FATAL:  desculpe, muitos clientes conectados", Busy),
        ("FATAL:  no more connections allowed (max_client_conn)", Busy),
        ("FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute", Busy),
        ("FATAL:  unsupported startup parameter: options", StoreError),
        ("FATAL:  no such database: laudo", StoreError),
        ("FATAL:  no such user", StoreError),
        ('syntax error in service file "/etc/pg_service.conf", line 3', StoreError),
        ('FATAL:  permission denied for database "laudo"', StoreError),
        ('FATAL:  autenticação do tipo senha falhou para usuário "laudo"', StoreError),
        ('FATAL:  banco de dados "laudo" não existe', StoreError),
        ("FATAL:  the database system is starting up", Unavailable),
        ("Connection refused", Unavailable),
    ],
)
def test_a_refused_connection_is_classified_by_its_message(said: str, kind: type[StoreError]) -> None:
    assert type(failures.refused(psycopg.OperationalError(f'connection to server at "x" failed: {said}'))) is kind


def test_an_outdated_server_is_refused() -> None:
    """A server sends its version before the first statement, so a few recorded messages can replace it."""
    version, encoding = b"server_version\x0013.22\0", b"server_encoding\0UTF8\0"
    said = [(b"R", b"\0\0\0\0"), (b"S", version), (b"S", encoding), (b"Z", b"I")]
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(1000)
                client.sendall(b"".join(kind + (len(text) + 4).to_bytes(4) + text for kind, text in said))
                client.recv(1000)

        greeting = threading.Thread(target=greet)
        greeting.start()
        store = f"postgresql://127.0.0.1:{listener.getsockname()[1]}/x"
        with pytest.raises(StoreError, match=f"^{re.escape(store)}: PostgreSQL 13 is too old"):
            Postgres(f"{store}?sslmode=disable", write=False, bounds=Bounds())
        greeting.join(PATIENCE)


def test_the_first_host_of_the_url_that_answers_is_used(server: Server, opened: Callable[..., Postgres]) -> None:
    url = server.url().replace("127.0.0.1:", "127.0.0.1:1,127.0.0.1:")
    assert opened(url=url).fetch(ONE) == [(1,)]


def test_the_repr_of_a_store_shows_neither_user_nor_password(store: Postgres, server: Server) -> None:
    assert repr(store) == f"Postgres(postgresql://127.0.0.1:{server.port}/postgres)"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://api:secret@db/laudo", "postgresql://db/laudo"),
        ("postgresql://api:secret@db:5433/laudo", "postgresql://db:5433/laudo"),
        ("postgresql://db1:5432,db2:5433/laudo", "postgresql://db1:5432,db2:5433/laudo"),
        ("postgresql://db1,db2:5433/laudo", "postgresql://db1,db2:5433/laudo"),
        ("postgresql:///laudo?host=db1,db2&port=5433", "postgresql://db1:5433,db2:5433/laudo"),
        ("postgresql://api@[::1]:5433/laudo", "postgresql://[::1]:5433/laudo"),
        ("postgresql://[::1]/laudo", "postgresql://[::1]/laudo"),
        ("postgresql:///laudo?host=/run/postgresql&port=5433", "postgresql:///run/postgresql/laudo"),
        ("postgresql:///laudo", "postgresql:///laudo"),
    ],
)
def test_the_shown_url_of_a_store_has_no_user_and_no_password(url: str, shown: str) -> None:
    assert address.display_name(address.conninfo(url, Bounds(), write=False)) == shown


def test_a_database_with_an_encoding_other_than_utf8_is_refused(
    server: Server, opened: Callable[..., Postgres]
) -> None:
    server.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    store = re.escape(f"postgresql://127.0.0.1:{server.port}/latin")
    with pytest.raises(StoreError, match=f"^{store}: the database has the encoding LATIN1: "):
        opened(url=server.url("latin"))


def test_settings_in_the_url_override_the_defaults(server: Server, opened: Callable[..., Postgres]) -> None:
    given = "application_name=mine&options=-c%20statement_timeout%3D77ms"
    url = f"{server.url().replace('postgresql:', 'postgres:')}?{given}"
    names = ("application_name", "statement_timeout", "jit", "work_mem", "default_transaction_read_only")
    shown = [opened(url=url).fetch(ask("SELECT current_setting(?)", name)) for name in names]
    assert shown == [[("mine",)], [("77ms",)], [("off",)], [("32MB",)], [("on",)]]


def test_nulls_in_arrays_stay_null_despite_the_roles_array_nulls(
    server: Server, opened: Callable[..., Postgres]
) -> None:
    server.execute(f"CREATE ROLE nullless LOGIN PASSWORD '{server.password}'")
    server.execute("ALTER ROLE nullless SET array_nulls = off")
    store = opened(url=server.url(user="nullless"))
    assert store.fetch(ask("SELECT unnest(?::bigint[])", [None, None])) == [(None,), (None,)]


# Settings of roles, of PGOPTIONS and of service files.


def test_results_are_complete_despite_the_roles_gin_fuzzy_search_limit(
    server: Server, writer: Postgres, opened: Callable[..., Postgres]
) -> None:
    writer.fetch(ask("CREATE TABLE found (words text[])"))
    writer.fetch(ask("INSERT INTO found SELECT ARRAY['a'] FROM generate_series(1, 3000)"))
    writer.fetch(ask("CREATE INDEX ON found USING gin (words)"))
    server.execute(f"CREATE ROLE fuzzy LOGIN PASSWORD '{server.password}' SUPERUSER")
    server.execute("ALTER ROLE fuzzy SET gin_fuzzy_search_limit = 1")
    server.execute("ALTER ROLE fuzzy SET enable_seqscan = off")
    store = opened(url=server.url(user="fuzzy"))
    assert store.fetch(ask("SELECT count(*) FROM found WHERE words @> ?::text[]", ["a"])) == [(3000,)]


@pytest.mark.parametrize(("given", "held"), [("off", "local"), ("on", "on"), ("remote_apply", "remote_apply")])
def test_a_write_transaction_commits_to_disk_despite_the_roles_settings(
    server: Server, opened: Callable[..., Postgres], given: str, held: str
) -> None:
    server.execute(f"CREATE ROLE hasty_{given} LOGIN PASSWORD '{server.password}'")
    server.execute(f"ALTER ROLE hasty_{given} SET synchronous_commit = {given}")
    store = opened(url=server.url(user=f"hasty_{given}"), write=True)
    with store.transaction() as connection:
        assert connection.fetch(ask("SELECT current_setting('synchronous_commit')")) == [(held,)]
    assert store.fetch(ask("SELECT current_setting('synchronous_commit')")) == [(given,)]


def test_writers_wait_for_locks_despite_the_roles_lock_timeout(
    server: Server, writer: Postgres, opened: Callable[..., Postgres]
) -> None:
    server.execute(f"CREATE ROLE rash LOGIN PASSWORD '{server.password}' IN ROLE pg_write_all_data")
    server.execute("ALTER ROLE rash SET lock_timeout = 1")
    store = opened(url=server.url(user="rash"), write=True, write_timeout_ms=500)
    with writer.transaction() as other:
        other.fetch(ask("LOCK TABLE counter"))
        with pytest.raises(Slow):
            store.fetch(ask("DELETE FROM counter"))


def test_row_level_security_is_reported_instead_of_hiding_rows(
    server: Server, writer: Postgres, opened: Callable[..., Postgres]
) -> None:
    """Otherwise a recount would find no reports, and every token would be wrong."""
    writer.fetch(ask("CREATE TABLE kept AS SELECT 1 AS id"))
    writer.fetch(ask("ALTER TABLE kept ENABLE ROW LEVEL SECURITY"))
    server.execute(f"CREATE ROLE hidden LOGIN PASSWORD '{server.password}' IN ROLE pg_read_all_data")
    store = opened(url=server.url(user="hidden"))
    with pytest.raises(StoreError, match="row-level security is enabled on a table"):
        store.fetch(ask("SELECT count(*) FROM kept"))
    server.execute("ALTER ROLE hidden BYPASSRLS")
    assert store.fetch(ask("SELECT count(*) FROM kept")) == [(1,)]


def test_pgoptions_apply_if_the_url_has_no_options(
    server: Server, opened: Callable[..., Postgres], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c search_path=elsewhere -c jit=on")
    names = ("search_path", "jit", "work_mem")
    shown = [opened().fetch(ask("SELECT current_setting(?)", name)) for name in names]
    assert shown == [[("elsewhere",)], [("on",)], [("32MB",)]]
    url = f"{server.url()}?options=-c%20search_path%3Dhere"
    assert opened(url=url).fetch(ask("SELECT current_setting('search_path')")) == [("here",)]


@pytest.fixture
def service(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes a service file whose service `laudo` is, by default, the test's server."""
    file = tmp_path / "services.conf"
    monkeypatch.setenv("PGSERVICEFILE", str(file))

    def write(more: str = "", **said: object) -> None:
        own = {"host": "127.0.0.1", "port": server.port, "dbname": "postgres", "user": "postgres"}
        lines = (f"{key}={value}" for key, value in {**own, "password": server.password, **said}.items())
        other = "[laudos]\nhost=nowhere"
        file.write_text("\n".join(["# Ours.", other, "", "[laudo]", *lines, more, other]))

    return write


@pytest.mark.parametrize("named", ["url", "variable"])
def test_settings_in_a_service_file_override_the_defaults(
    opened: Callable[..., Postgres], service: Callable[..., None], monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    service(options="-c search_path=elsewhere -c jit=on", target_session_attrs="read-write", connect_timeout=9)
    if named == "variable":
        monkeypatch.setenv("PGSERVICE", "laudo")
    url = "postgresql:///?service=laudo" if named == "url" else "postgresql:///"
    store = opened(url=url)
    names = ("search_path", "jit", "work_mem", "default_transaction_read_only")
    assert [store.fetch(ask("SELECT current_setting(?)", name)) for name in names] == [
        *([("elsewhere",)], [("on",)], [("32MB",)], [("on",)])
    ]
    told = conninfo_to_dict(address.conninfo(url, Bounds(), write=False))
    assert (told["connect_timeout"], told["target_session_attrs"]) == ("9", "primary")
    here = f"{url}{'&' if '?' in url else '?'}options=-c%20search_path%3Dhere"
    assert opened(url=here).fetch(ask("SELECT current_setting('search_path')")) == [("here",)]


def test_a_silent_host_of_a_service_file_is_skipped(
    server: Server, opened: Callable[..., Postgres], service: Callable[..., None]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        service(host="127.0.0.1,127.0.0.1", port=f"{silent.getsockname()[1]},{server.port}")
        store = opened(url="postgresql:///?service=laudo", connect_timeout_ms=2000)
        assert store.fetch(ask("SELECT inet_server_port()::bigint")) == [(server.port,)]


def test_a_password_in_a_service_file_stays_out_of_the_conninfo(server: Server, service: Callable[..., None]) -> None:
    service()
    conninfo = address.conninfo("postgresql:///?service=laudo", Bounds(), write=True)
    assert address.display_name(conninfo) == f"postgresql://127.0.0.1:{server.port}/postgres"
    assert server.password not in conninfo


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"password": "geheim"}, "check its name, password"),
        ({"nonsense": "geheim"}, "service file"),
        ({"more": "geheim"}, "service file"),
        ({"connect_timeout": "x"}, "a parameter of the store's URL is wrong"),
    ],
)
def test_an_error_in_a_service_file_is_reported_without_the_password(
    server: Server, opened: Callable[..., Postgres], service: Callable[..., None], said: dict[str, str], text: str
) -> None:
    service(**said)
    with pytest.raises(StoreError, match=text) as caught:
        opened(url="postgresql:///?service=laudo")
    assert type(caught.value) is StoreError
    assert "heim" not in str(caught.value)
    assert server.password not in str(caught.value)
    service()
    with pytest.raises(StoreError, match='definition of service "none" not found'):
        opened(url="postgresql:///?service=none")


# Lost connections.


@pytest.mark.parametrize("reads", ["fetch", "snapshot", "transaction"])
def test_a_dead_idle_connection_is_replaced_without_an_error(
    server: Server, opened: Callable[..., Postgres], reads: str
) -> None:
    store = opened(pool_size=2)
    with store.snapshot() as connection:
        pids = [store.fetch(PID), connection.fetch(PID)]
    assert end_all(server) >= 2
    if reads == "fetch":
        assert store.fetch(PID) not in pids
    else:
        with getattr(store, reads)() as connection:
            assert connection.fetch(PID) not in pids
            assert connection.fetch(BEGAN) == connection.fetch(BEGAN), "the new connection must be in a transaction too"


def test_read_retries_a_snapshot_that_loses_its_connection(server: Server, store: Postgres) -> None:
    with pytest.raises(Lost):
        run(store.snapshot(), fetch_one, lambda _: end_all(server), fetch_one)
    seen: list[list[Row]] = []

    def work(connection: Connection) -> list[Row]:
        seen.append(connection.fetch(PID))
        if len(seen) < 3:
            end_all(server)
        return connection.fetch(PID)

    assert read(store, work) == seen[2]
    assert len(seen) == 3


def test_read_gives_up_after_three_lost_snapshots(server: Server, store: Postgres) -> None:
    seen = []

    def work(connection: Connection) -> list[Row]:
        seen.append(connection.fetch(PID))
        end_all(server)
        return connection.fetch(PID)

    with pytest.raises(Lost):
        read(store, work)
    assert len(seen) == 3


def test_a_loss_noticed_late_does_not_close_a_newer_connection(server: Server, opened: Callable[..., Postgres]) -> None:
    store = opened(pool_size=2)
    seen: list[list[Row]] = []
    with pytest.raises(Lost), store.snapshot() as slow:  # noqa: PT012
        slow.fetch(ONE)
        with pytest.raises(Lost):
            run(store.snapshot(), fetch_one, lambda _: end_all(server), fetch_one)
        seen.append(store.fetch(PID))
        slow.fetch(ONE)
    assert [store.fetch(PID)] == seen


@pytest.mark.parametrize("setting", ["idle_in_transaction_session_timeout", "transaction_timeout"])
def test_a_transaction_over_a_limit_of_the_server_names_the_setting(
    server: Server, opened: Callable[..., Postgres], setting: str
) -> None:
    if not server.execute(f"SELECT 1 FROM pg_settings WHERE name = '{setting}'"):
        pytest.skip("a setting of PostgreSQL 17 and later")
    store = opened(url=f"{server.url()}?options=-c%20{setting}%3D200ms", write=True)
    with pytest.raises(Lost, match=f" than {setting};"), store.transaction() as connection:  # noqa: PT012
        connection.fetch(ONE)
        sleep(0.5)
        connection.fetch(ONE)


def test_a_lost_transaction_stores_nothing(server: Server, writer: Postgres) -> None:
    with pytest.raises(Lost):
        run(writer.transaction(), insert_a, fetch_all, lambda _: end_all(server), fetch_all)
    assert writer.fetch(ALL) == []


def test_a_commit_without_an_answer_is_reported_as_unknown(
    between: Between, server: Server, writer: Postgres, opened: Callable[..., Postgres]
) -> None:
    far = opened(url=through(between, server), write=True)
    with pytest.raises(Doubtful, match="not known whether"):
        run(far.transaction(), insert_a, fetch_all, lambda _: between.cut(at=b"COMMIT"))
    between.cut(at=None)
    assert far.fetch(ALL) == writer.fetch(ALL) == []


@pytest.mark.parametrize("most", [1_000, 5_000, 50_000, 90_000])
def test_a_truncated_answer_is_an_error(
    between: Between, server: Server, opened: Callable[..., Postgres], most: int
) -> None:
    store = opened(url=through(between, server))
    long = ask("SELECT n, repeat('x', 100) FROM generate_series(1, 1000) AS n")
    between.most_answered = most
    end_all(server)
    with pytest.raises(Unavailable):
        store.fetch(long)
    with pytest.raises(Unavailable):
        read(store, lambda connection: connection.fetch(long))
    between.most_answered = None
    assert len(store.fetch(long)) == 1000


def test_ending_all_sessions_under_load_causes_no_error(server: Server, opened: Callable[..., Postgres]) -> None:
    store = opened(pool_size=4)
    with ExitStack() as stack:
        asked = [stack.enter_context(asking(store, threads=1)) for _ in range(4)]
        for _ in range(10):
            # Each thread must get some answers in between, so that no request loses its session three times.
            enough = [len(answers) + 10 for answers in asked]
            until(lambda enough=enough: all(len(each) > most for each, most in zip(asked, enough, strict=True)))  # type: ignore[misc]
            end_all(server)
    assert [answer for answers in asked for _, answer in answers if not isinstance(answer, list)] == []


# Servers that are down or hang.


@pytest.mark.timed
def test_waiting_takes_little_cpu_time_even_after_large_writes(writer: Postgres) -> None:
    with writer.transaction() as connection:
        for n in range(20):
            connection.write(INSERT, [(n, "a", 1, bytes(1_000_000))])
        connection.fetch(ONE)
        before = thread_time()
        connection.fetch(ask("SELECT pg_sleep(1)"))
        assert thread_time() - before < 0.1


@pytest.mark.timed
@pytest.mark.parametrize(
    "stop", [Server.stop, partial(Server.stop, mode="immediate"), Server.kill9], ids=["fast", "immediate", "kill9"]
)
def test_a_stopped_server_raises_unavailable_and_its_return_is_noticed(
    server: Server, opened: Callable[..., Postgres], stop: Callable[[Server], None]
) -> None:
    store = opened(pool_size=4)
    with asking(store, threads=4) as answers:
        until(lambda: len(answers) > 100)
        stop(server)
        away = monotonic() + 0.5
        until(lambda: any(at > away for at, _ in answers))
        assert all(isinstance(answer, Unavailable) for at, answer in answers if at > away)
        server.start()
        accepting = monotonic()
        until(lambda: any(at > accepting + 2.5 for at, _ in answers))
    assert {type(answer) for _, answer in answers} <= {list, Unavailable, Lost}
    assert min(at for at, answer in answers if at > away and isinstance(answer, list)) < accepting + 1
    assert max(at for at, answer in answers if isinstance(answer, Unavailable)) < accepting + 2


@pytest.mark.timed
def test_a_hung_server_raises_unavailable_in_time_and_its_return_is_noticed(
    server: Server, opened: Callable[..., Postgres]
) -> None:
    store = opened(pool_size=4, statement_timeout_ms=500)
    with asking(store, threads=6) as answers:
        until(lambda: len(answers) > 100)
        with server.paused():
            paused = monotonic()
            until(lambda: any(at > paused + 6 for at, _ in answers))
        resumed = monotonic()
        until(lambda: any(at > resumed + 2.5 for at, _ in answers))
    hung = [(at, answer) for at, answer in answers if paused + 2 < at < resumed]
    assert {type(answer) for _, answer in answers} <= {list, Unavailable, Busy, Lost, Hung}
    assert all(isinstance(answer, Unavailable) for _, answer in hung)
    assert len(hung) > 50, "one of six threads waits at a time, and the others are refused at once"
    assert min(at for at, answer in answers if at > resumed and isinstance(answer, list)) < resumed + 1
    assert max(at for at, answer in answers if isinstance(answer, Unavailable)) < resumed + 2


@pytest.mark.parametrize("lifetime_ms", [PATIENCE * 1000, 0], ids=["to answer", "to be connected"])
def test_requests_fail_at_once_after_one_waited_for_a_hung_server(
    server: Server, opened: Callable[..., Postgres], monkeypatch: pytest.MonkeyPatch, lifetime_ms: int
) -> None:
    monkeypatch.setattr(pool, "_PAUSE_SECONDS", PATIENCE)
    store = opened(pool_size=2, statement_timeout_ms=1000, lifetime_ms=lifetime_ms)
    store.fetch(ONE)
    with server.paused():
        with pytest.raises(Hung):
            store.fetch(ONE)
        with pytest.raises(Unavailable, match="did not answer a moment ago"):
            store.fetch(ONE)


def test_requests_fail_at_once_after_one_waited_for_a_silent_host(
    server: Server, opened: Callable[..., Postgres], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_PAUSE_SECONDS", PATIENCE)
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as refusing:
        refusing.bind(("127.0.0.1", 0))
        hosts = ",".join(f"127.0.0.1:{each.getsockname()[1]}" for each in (silent, refusing))
        store = opened(url=f"postgresql://postgres:{server.password}@{hosts}/postgres")
        with pytest.raises(Unavailable, match="did not answer a moment ago"):
            store.fetch(ONE)


def test_one_request_at_a_time_probes_a_server_after_its_rest(
    server: Server, opened: Callable[..., Postgres], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_PAUSE_SECONDS", 0)
    store = opened(pool_size=2, statement_timeout_ms=1000, connect_timeout_ms=2 * PATIENCE * 1000)
    with ThreadPoolExecutor(2) as threads:
        with server.paused():
            with pytest.raises(Hung):
                store.fetch(ONE)
            both = [threads.submit(store.fetch, ONE) for _ in range(2)]
            until(lambda: any(each.done() for each in both))
            [refused] = [each for each in both if each.done()]
            with pytest.raises(Unavailable, match="did not answer a moment ago"):
                refused.result()
        [tried] = [each for each in both if each is not refused]
        assert tried.result(PATIENCE) == [(1,)]
    with server.paused(), pytest.raises(Hung):
        store.fetch(ONE)
    server.stop()
    try:
        for _ in range(2):
            with pytest.raises(Unavailable, match="cannot be reached"):
                store.fetch(ONE)
    finally:
        server.start()
    assert store.fetch(ONE) == [(1,)]


def test_a_reader_may_start_before_its_server_and_a_writer_may_not(
    server: Server, opened: Callable[..., Postgres]
) -> None:
    server.stop()
    try:
        store = opened()
        with pytest.raises(Unavailable):
            store.fetch(ONE)
        with pytest.raises(Unavailable, match="cannot be reached"):
            opened(write=True)
    finally:
        server.start()
    assert store.fetch(ONE) == [(1,)]


def in_snapshot(store: Postgres, statement: Statement) -> list[Row]:
    with store.snapshot() as connection:
        return connection.fetch(statement)


def in_threads(number: int, work: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(number) as threads:
        return [each.result(PATIENCE) for each in [threads.submit(work) for _ in range(number)]]


@contextmanager
def asking(store: Postgres, *, threads: int) -> Iterator[list[tuple[float, object]]]:
    """Ask repeatedly in several threads; returns the time at which each question ended, and its rows or error."""
    answers: list[tuple[float, object]] = []
    ended = threading.Event()

    def ask_on() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            try:
                answer: object = store.fetch(ONE) if number % 2 else read(store, twice)
            except Exception as error:  # noqa: BLE001 - the test decides which errors are right
                answer = error
                sleep(0.02)
            answers.append((monotonic(), answer))

    working = [threading.Thread(target=ask_on) for _ in range(threads)]
    for each in working:
        each.start()
    try:
        yield answers
    finally:
        ended.set()
        for each in working:
            each.join(PATIENCE)


def twice(connection: Connection) -> list[Row]:
    connection.fetch(ONE)
    return connection.fetch(ask("SELECT 2::bigint"))
