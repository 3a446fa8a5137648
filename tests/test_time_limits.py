"""Each statement of a request has a time limit on both engines; statements of commands have none."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count
from random import Random
from time import monotonic, sleep
from typing import Final

import apsw
import pytest

from engines import sqlite_file
from factories import Account, Store
from laudo.core.sql import SQLITE, Owner, Statement
from laudo.server.database import Bounds, Database, Locked, Slow
from laudo.server.stores import open_store
from strategies import many
from wsgi import Client, NewApp

LIMIT_MS: Final = 300
ENDLESS: Final = Statement(
    "WITH RECURSIVE endless (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM endless) SELECT count(*) FROM endless", ()
)
ONE: Final = Statement("SELECT 1")


@pytest.fixture
def limited(store: Store, store_url: str) -> Iterator[Database]:
    """A migrated store, opened as the service opens it but with a short time limit."""
    del store
    with closing(open_store(store_url, bounds=Bounds(statement_timeout_ms=LIMIT_MS))) as database:
        yield database


@pytest.mark.timed
def test_a_statement_over_the_time_limit_is_ended_and_the_next_one_works(limited: Database) -> None:
    for _ in range(2):
        asked = monotonic()
        with pytest.raises(Slow, match="time limit"):
            limited.fetch(ENDLESS)
        assert LIMIT_MS / 1000 <= monotonic() - asked < 3
        with pytest.raises(Slow, match="time limit"), limited.snapshot() as connection:
            connection.fetch(ENDLESS)
        with limited.snapshot() as connection:
            assert connection.fetch(ONE) == limited.fetch(ONE) == [(1,)]


@pytest.mark.timed
def test_the_time_limit_applies_to_each_statement_not_to_their_sum(limited: Database) -> None:
    counted = Statement(
        "WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < ?) SELECT count(*) FROM up",
        (20_000,),
    )
    begun = monotonic()
    with limited.snapshot() as connection:
        while monotonic() - begun < 3 * LIMIT_MS / 1000:
            assert connection.fetch(counted) == limited.fetch(counted) == [(20_000,)]


@pytest.mark.timed
@pytest.mark.engines("postgres", reason="only PostgreSQL gets several statements in one round trip")
def test_the_time_limit_applies_to_each_statement_of_a_batch(limited: Database) -> None:
    """The server is silent for longer than one statement's limit, but must not count as hung for other requests."""
    nap = Statement("SELECT pg_sleep(?::float8 / 1000)::text", (LIMIT_MS * 2 // 3,))
    together = 5
    with ThreadPoolExecutor(1) as thread:
        sleeping = thread.submit(limited.fetch_each, [nap] * together)
        answers = 0
        while not sleeping.done():
            assert limited.fetch(ONE) == [(1,)]
            answers += 1
            sleep(0.05)
    assert sleeping.result() == [[("",)]] * together
    assert answers > together
    with limited.snapshot() as connection:
        assert connection.fetch_each([nap] * together) == [[("",)]] * together
        with pytest.raises(Slow, match="time limit"):
            connection.fetch_each([nap, ENDLESS, nap])


@pytest.mark.engines("sqlite", reason="only SQLite checks the time after a number of steps")
def test_time_between_statements_does_not_count(store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses before, within and after a transaction must not count as the time of a statement."""
    del store
    monkeypatch.setattr("laudo.server.sqlite.session._CHECK_STEPS", 1)
    now = 0.0
    monkeypatch.setattr("laudo.server.sqlite.session.monotonic", lambda: now)
    with closing(open_store(store_url, bounds=Bounds(statement_timeout_ms=LIMIT_MS))) as database:
        for seconds in (1, 3600):
            now += seconds
            with database.snapshot() as connection:
                now += seconds
                assert connection.fetch(ONE) == [(1,)]
                now += seconds


@pytest.mark.engines("sqlite", reason="SQLite's index of words takes few but long steps to find a row")
def test_a_search_for_many_words_is_ended_at_the_time_limit(
    store: Store, store_url: str, limited: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    del store
    letters, seeded = "abcdefghij", Random(0)
    names = (
        " ".join(f"1·{letter}{seeded.getrandbits(160):040x}" for letter in letters.replace(letters[number % 10], ""))
        for number in range(10_000)
    )
    with closing(apsw.Connection(str(sqlite_file(store_url)))) as writing, writing:
        writing.executemany("INSERT INTO pessoa_words (rowid, words) VALUES (?, ?)", enumerate(names))
    search = SQLITE.found(letters, Owner(1, 1))
    assert limited.fetch(search) == [(0,)]
    monkeypatch.setattr("laudo.server.sqlite.session.monotonic", count().__next__)
    with pytest.raises(Slow, match="time limit"):
        limited.fetch(search)


@pytest.mark.timed
def test_a_request_over_the_time_limit_gets_503_and_the_next_one_works(
    store: Store, account: Account, new_app: NewApp, limited: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(account, many(60))
    client = Client(new_app(limited, cache_bytes=0), account.token)
    whole = client.get("/relatorios").body
    with monkeypatch.context() as patched:
        patched.setattr("laudo.core.sql.in_one_statement", lambda *_: ENDLESS)
        answer = client.get("/relatorios")
    assert (answer.status, answer.headers["retry-after"].isdigit()) == (503, True)
    assert b"itens" not in answer.body
    assert client.get("/relatorios").body == whole


@pytest.mark.timed
@pytest.mark.engines("sqlite", reason="only a SQLite file without WAL blocks readers during a write")
def test_a_reader_waits_for_a_writer_no_longer_than_the_time_limit(store: Store, store_url: str) -> None:
    store.database.close()
    with closing(apsw.Connection(str(sqlite_file(store_url)))) as writing:
        writing.execute("PRAGMA journal_mode = DELETE").fetchall()
        with closing(open_store(store_url, bounds=Bounds(statement_timeout_ms=LIMIT_MS))) as database:
            writing.execute("BEGIN EXCLUSIVE")
            asked = monotonic()
            with pytest.raises(Locked):
                database.fetch(Statement("SELECT count(*) FROM conta"))
            assert LIMIT_MS / 1000 <= monotonic() - asked < 3
            writing.execute("COMMIT")
            assert database.fetch(Statement("SELECT count(*) FROM conta")) == [(0,)]


@pytest.mark.engines("sqlite", reason="PostgreSQL itself makes writers wait")
def test_a_sqlite_writer_waits_for_another_writer_and_reports_it_once(
    store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now, ends, step = 0.0, 0.0, 0.0
    with closing(open_store(store_url, write=True)) as database, ExitStack() as writing:

        def later() -> float:
            nonlocal now
            now += step
            if now > ends:
                writing.close()
            return now

        database.empty_log()  # This waits in another way, and only once.
        monkeypatch.setattr("laudo.server.sqlite.session.monotonic", later)
        told = "waiting for another process that is writing to the store; press Ctrl-C to stop waiting\n"
        for seconds, step, said in ((1.8, 0.1, ""), (3600, 60, told), (3600, 60, "")):  # noqa: B007 - `later` reads it
            ends = now + seconds
            writing.enter_context(store.database.transaction())
            with database.transaction() as connection:
                assert now > ends
                assert connection.fetch(ONE) == [(1,)]
            assert capsys.readouterr().err == said


def test_a_writer_has_no_statement_time_limit(store_url: str) -> None:
    with closing(open_store(store_url, write=True, bounds=Bounds(statement_timeout_ms=1))) as database:
        counted = Statement(ENDLESS.text.replace("FROM endless)", "FROM endless WHERE n < 100000)"), ())
        assert database.fetch(counted) == [(100_000,)]
