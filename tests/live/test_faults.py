"""What clients see at a constant rate of requests while PostgreSQL is cut off, restarted, hung or busy.

`LAUDO_TEST_OUTAGE=60` sets the length of an outage in seconds; the default is 1, to keep `make test` fast.
"""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial
from random import Random
from time import monotonic, sleep
from typing import Final

import psycopg
import pytest

import postgres_server
from between import Between
from live.load import Load, Question, Reply, load, question
from live.server import Place, Server, serving
from postgres_server import Server as Postgres

# One group, so that one worker runs all tests: the server is started and filled once, and the tests mostly wait.
pytestmark = [pytest.mark.xdist_group("faults"), pytest.mark.timed]

OUTAGE: Final = float(os.environ.get("LAUDO_TEST_OUTAGE", "1"))
RATE: Final = 60
"""Requests a second: in a quarter of a second more requests arrive than the two workers have threads."""

POOL_SECONDS: Final = 1.0
STATEMENT_SECONDS: Final = 2.0
SILENT_SECONDS: Final = 0.5
"""The first two are defaults of settings. After the time limit of a statement, a server that is silent for another
`SILENT_SECONDS` counts as hung."""
MARGIN: Final = 0.7
"""Tolerance for a machine with two cores that runs other tests, too."""
AT_ONCE: Final = 1.0
"""The time limit of requests that need no store: a worker notices after 0.25 s that its store is stuck."""

LISTS: Final = (
    *("/relatorios", "/relatorios?page=150&sort=nome", "/relatorios?status=concluido&page=20"),
    *("/relatorios?rows=1000&page=3", "/pessoas?nome=maria", "/pessoas?sort=nome&page=20", "/usuario"),
)
REFUSAL: Final = (
    '{"error":"Service Unavailable","message":"Serviço temporariamente indisponível. '
    'Aguarde o tempo indicado em Retry-After e tente novamente.","status_code":503}'
).encode()
END_ALL: Final = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'laudo'"
STOPS: Final = {
    "fast": Postgres.stop,
    "immediate": partial(Postgres.stop, mode="immediate"),
    "kill9": Postgres.kill9,
}


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with postgres_server.start() as server:
        yield server


@pytest.fixture(scope="module")
def place(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Place:
    postgres.execute("CREATE DATABASE laudo ENCODING 'UTF8' TEMPLATE template0")
    return Place(tmp_path_factory.mktemp("faults"), other_store=postgres.url("laudo")).demonstrate()


@pytest.fixture(scope="module")
def service(place: Place) -> Iterator[Server]:
    """A server that keeps no bodies, so that each is read from the store."""
    with serving(place, "--workers", "2", "--cache-bytes", "0") as server:
        yield server


@pytest.fixture(scope="module")
def stored(service: Server) -> list[Question]:
    """Requests that need the store."""
    return [question(service, target) for target in LISTS]


@pytest.fixture(scope="module")
def quick(service: Server) -> list[Question]:
    """Requests that need no store."""
    wrong = f"Authorization: {service.place.token[:-1]}"
    return [question(service, "/health"), question(service, "/nowhere"), question(service, "/relatorios", wrong)]


def load_on(server: Server, *questions: Iterable[Question], rate: float = RATE) -> AbstractContextManager[Load]:
    return load(server.port, [each for group in questions for each in group], rate=rate)


def is_refusal(reply: Reply) -> bool:
    response = reply.response
    return (
        response is not None
        and (response.status, response.body) == (503, REFUSAL)
        and int(response.headers["retry-after"]) >= 1
    )


def listed(replies: Sequence[Reply]) -> str:
    return "\n".join((f"{len(replies)} replies:", *map(str, replies[:20])))


def check_replies(replies: Sequence[Reply], quick: Sequence[Question]) -> None:
    """Check that each reply is right or, if its request needs the store, a refusal."""
    wrong = [reply for reply in replies if not reply.is_right and (reply.question in quick or not is_refusal(reply))]
    assert not wrong, listed(wrong)


def check_recovery(replies: Sequence[Reply], since: float, back: float) -> None:
    """Check that after the store is back the first success comes within 1 s, and the last refusal within 2 s."""
    right = [reply.at - back for reply in replies if reply.is_right and reply.question.target in LISTS]
    right = [at for at in right if at + back > since]
    assert min(right) <= 1
    assert max(reply.at - back for reply in replies if is_refusal(reply)) <= 2


def test_terminated_database_sessions_cause_no_client_errors(
    postgres: Postgres, service: Server, stored: list[Question]
) -> None:
    with load_on(service, stored) as asked:
        for number in range(1, 11):
            asked.wait(number * RATE // 3)
            postgres.execute(END_ALL)
        asked.wait(4 * RATE)
    wrong = [reply for reply in asked.replies if not reply.is_right]
    assert not wrong, listed(wrong)


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_a_database_outage_gives_503_and_recovery_within_two_seconds(
    postgres: Postgres, service: Server, stored: list[Question], quick: list[Question], stop: Callable[[Postgres], None]
) -> None:
    with load_on(service, stored, quick) as asked:
        asked.wait(RATE)
        stop(postgres)
        stopped = monotonic()
        sleep(OUTAGE)
        started = monotonic()
        postgres.start()
        accepting = monotonic()
        sleep(2.5)
    check_replies(asked.replies, quick)
    check_recovery(asked.replies, stopped, accepting)
    away = [reply for reply in asked.since(stopped) if reply.at < started]
    assert len(away) > OUTAGE * RATE / 2
    assert not [reply for reply in away if reply.question in stored and reply.is_right]


@pytest.mark.parametrize("cache_bytes", ["0", "8000000"])
def test_a_hung_database_gives_503_in_time_and_delays_no_other_request(
    place: Place, postgres: Postgres, stored: list[Question], quick: list[Question], cache_bytes: str
) -> None:
    """With a cache, a worker first asks whether kept answers are current, so it waits for the hung server only once."""
    with (
        serving(place, "--workers", "2", "--cache-bytes", cache_bytes) as service,
        load_on(service, stored, quick) as asked,
    ):
        asked.wait(RATE)
        with postgres.paused():
            paused = monotonic()
            sleep(5.5)
        resumed = monotonic()
        sleep(2.5)
    check_replies(asked.replies, quick)
    check_recovery(asked.replies, resumed, resumed)
    check_waits(asked.replies, quick, longest=POOL_SECONDS + STATEMENT_SECONDS + SILENT_SECONDS)
    hung = [reply for reply in asked.since(paused) if reply.at < resumed]
    assert len(hung) > 3 * RATE


def check_waits(replies: Sequence[Reply], quick: Sequence[Question], *, longest: float) -> None:
    late = [reply for reply in replies if reply.seconds > (AT_ONCE if reply.question in quick else longest + MARGIN)]
    assert not late, listed(late)


def test_an_exhausted_pool_gives_503_within_a_second(
    place: Place, postgres: Postgres, stored: list[Question], quick: list[Question]
) -> None:
    with (
        serving(place, "--workers", "2", "--pool-size", "1") as service,
        psycopg.connect(postgres.url("laudo")) as other,
        load_on(service, stored, quick) as asked,
    ):
        asked.wait(RATE)
        other.execute("LOCK TABLE token")
        locked = monotonic()
        sleep(4.5)
        other.rollback()
        let = monotonic()
        sleep(2)
    check_replies(asked.replies, quick)
    check_waits(asked.replies, quick, longest=POOL_SECONDS + STATEMENT_SECONDS)
    assert len([reply for reply in asked.since(locked) if reply.at < let]) > 3 * RATE
    # Only requests that had a connection wait longer, for their statement: one at a time in each of the two workers.
    slow = [reply for reply in asked.since(locked) if reply.seconds > POOL_SECONDS + MARGIN]
    assert len(slow) <= 2 * (1 + (let - locked) / STATEMENT_SECONDS), listed(slow)
    assert all(reply.is_right for reply in asked.since(let + 1))


def test_a_result_cut_off_by_the_network_is_never_sent_in_part(
    postgres: Postgres, place: Place, stored: list[Question]
) -> None:
    """Connections are cut after a random number of bytes from the database, few enough to cut short results, too."""
    seeded = Random(1)
    with Between(postgres.port) as between:
        cut = replace(place, other_store=postgres.url("laudo").replace(f":{postgres.port}/", f":{between.port}/"))
        with serving(cut, "--workers", "2", "--cache-bytes", "0") as service, load_on(service, stored) as asked:
            for _ in range(100):
                between.most_answered = seeded.choice((seeded.randrange(3_000), seeded.randrange(300_000)))
                sleep(0.04)
            between.most_answered = None
            whole = monotonic()
            sleep(1)
    check_replies(asked.replies, ())
    refusals = [reply for reply in asked.replies if is_refusal(reply)]
    assert 10 < len(refusals) < len(asked.replies) - 10
    assert all(reply.is_right for reply in asked.since(whole + 0.5))


def test_terminated_statements_give_whole_pages_or_503(
    postgres: Postgres, service: Server, stored: list[Question]
) -> None:
    with load_on(service, stored) as asked, psycopg.connect(postgres.url(), autocommit=True) as other:
        ended = whole = 0
        latest = monotonic() + 300
        while (ended < 200 or whole < 50) and monotonic() < latest:
            [(now,)] = other.execute(END_ALL + " AND state = 'active'").fetchall()
            ended += now
            whole = sum(reply.is_right for reply in asked.replies)
            sleep(0.002)
    check_replies(asked.replies, ())
    assert ended >= 200
    assert whole >= 50


def test_a_service_started_before_its_database_answers_once_it_is_up(
    postgres: Postgres, place: Place, stored: list[Question], quick: list[Question]
) -> None:
    postgres.stop()
    with (
        ExitStack() as at_last,
        serving(place, "--workers", "2") as service,
        load_on(service, stored, quick) as asked,
    ):
        at_last.callback(postgres.start)
        sleep(1.5)
        assert service.ask("/ready").status == 503
        started = monotonic()
        at_last.close()
        accepting = monotonic()
        sleep(2.5)
        assert service.ask("/ready").status == 200
    check_replies(asked.replies, quick)
    check_recovery(asked.replies, started, accepting)
    assert "the store does not answer yet" in service.said()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("ALTER ROLE reader PASSWORD 'another'", "store: PostgreSQL refuses the store's user; check its name, "),
        ("ALTER ROLE reader CONNECTION LIMIT 0", "store: PostgreSQL has no connection left\n"),
    ],
)
def test_a_refused_login_gives_503_and_is_logged_once(postgres: Postgres, place: Place, change: str, told: str) -> None:
    postgres.execute("CREATE ROLE reader LOGIN PASSWORD 'segredo' IN ROLE pg_read_all_data")
    try:
        lent = replace(place, other_store=postgres.url("laudo", user="reader", password="segredo"))
        with serving(lent, "--workers", "1", "--cache-bytes", "0") as service:
            assert service.ask("/ready").status == 200
            postgres.execute(change)
            postgres.execute(END_ALL)
            assert [service.ask("/ready").status for _ in range(20)] == [503] * 20
            assert service.said().count(told) == 1
            assert "bug:" not in service.said()
            assert "FATAL" not in service.said()
    finally:
        postgres.execute("DROP ROLE reader")


def test_a_service_whose_database_hangs_stops_within_five_seconds(
    postgres: Postgres, place: Place, stored: list[Question]
) -> None:
    with serving(place, "--workers", "2") as service:
        asked_of = [*stored] * 8
        with postgres.paused(), load_on(service, asked_of, rate=100):
            sleep(0.5)
            service.interrupt(signal.SIGTERM)
            interrupted = monotonic()
            assert service.ended() == 0
            took = monotonic() - interrupted
    assert took < 5
