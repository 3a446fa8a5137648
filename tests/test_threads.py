"""The state that a worker's threads share: nothing is lost, and no thread gets the data of another one.

Threads alternate after every few instructions, so that a rare race shows within a second.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import count
from random import Random

import pytest

from factories import Account, Store
from forwarding import Forwarding
from laudo.core.errors import ApiError
from laudo.core.sql import Statement
from laudo.server import keys
from laudo.server.callers import Callers
from laudo.server.database import Database, Row
from laudo.server.forecast import Forecast
from laudo.server.limits import Limits
from laudo.server.recent import Recent
from laudo.server.stores import open_store
from strategies import many
from wsgi import Client, NewApp

THREADS = 8
TURNS = 3_000


@pytest.fixture(autouse=True)
def _alternating() -> Iterator[None]:
    """Switch to another thread after every few instructions."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def at_once(work: Callable[[int], object]) -> None:
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(work, range(THREADS)))


@pytest.mark.parametrize("room", [0, 1, 100, 1_000])
def test_the_cache_never_outgrows_its_limit(room: int) -> None:
    recent: Recent[int, bytes] = Recent(room, len)

    def use(number: int) -> None:
        seeded = Random(number)
        for _ in range(TURNS):
            key = seeded.randrange(40)
            recent.keep(key, bytes(key))
            recent.get(seeded.randrange(40))
            if not seeded.randrange(10):
                recent.drop(seeded.randrange(40))

    at_once(use)
    kept = [value for key in range(40) if (value := recent.get(key)) is not None]
    assert sum(map(len, kept)) <= room
    for key in range(40):
        recent.drop(key)
    recent.keep(0, bytes(room))
    assert recent.get(0) == bytes(room)


@pytest.mark.usefixtures("let_pass")
def test_a_rate_limit_admits_exactly_its_number_of_requests() -> None:
    limits, admitted = Limits(TURNS), count()

    def ask(_number: int) -> None:
        for _ in range(TURNS):
            with suppress(ApiError):
                limits.spend(1)
                next(admitted)

    at_once(ask)
    assert next(admitted) == TURNS


class Ready(Forwarding):
    """A store that repeats its first answer at once."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.asked = count()
        self._said: list[list[Row]] = []

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        next(self.asked)
        self._said = self._said or super().fetch_each(statements)
        return self._said


@pytest.mark.engines("sqlite", reason="this fake store makes SQLite answer like PostgreSQL")
def test_each_request_reads_its_caller_anew(store: Store, store_url: str, account: Account) -> None:
    with closing(open_store(store_url)) as opened:
        database = Ready(opened)
        callers = Callers(database, keys.load(store.key_file), Limits(0), Forecast())
        callers.admit(None, account.token, None)

        def admit(_number: int) -> None:
            for _ in range(2 * TURNS):
                callers.admit(None, account.token, None)

        at_once(admit)
        assert next(database.asked) == THREADS * 2 * TURNS


@pytest.mark.parametrize("cache_bytes", [0, 20_000])
def test_concurrent_requests_get_the_same_bodies(
    store: Store, account: Account, new_app: NewApp, cache_bytes: int
) -> None:
    store.write(account, many(240))
    client = Client(new_app(cache_bytes=cache_bytes, pool_size=THREADS), account.token)
    urls = [f"/relatorios?page={number}" for number in range(1, 11)]
    answers = {url: client.get(url) for url in urls}
    bodies = {url: answer.body for url, answer in answers.items()}
    assert sum(len(answer.itens) for answer in answers.values()) == 240

    def ask(number: int) -> None:
        seeded = Random(number)
        for _ in range(100):
            url = seeded.choice(urls)
            assert client.get(url).body == bodies[url]

    at_once(ask)
