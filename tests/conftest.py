"""Fixtures that all tests share: a migrated store of their own, and clients of an application that reads it."""

import os
import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final
from unittest.mock import patch
from wsgiref.types import WSGIApplication

import pytest
from hypothesis import HealthCheck, settings

import cluster
import postgres_server
from cluster import CitusEngine
from effort import Noted
from engines import ENGINES, Engine, PostgresEngine, SqliteEngine, Stores
from factories import Account, Store
from laudo.core import sql
from laudo.core.lookups import LookUp
from laudo.core.sql import Dialect, Owner, Statement
from laudo.server import app, limits
from laudo.server import sqlite as sqlite_store
from laudo.server.config import Settings
from laudo.server.config.processors import cores
from laudo.server.database import Database
from laudo.server.ingest.records import Relatorio
from laudo.server.stores import open_store
from strategies import many
from wsgi import Client, NewApp, NewClient

FILLED: Final = many(240)

# Each store that a test's application reads keeps two file descriptors open for good: see `server.sqlite._WAL_INDEXES`.
_MOST = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (_MOST, _MOST))

# As in `postgres_server`, do not wait for the disk, which takes longer than many tests. A power cut might damage a
# store, but what a killed process has committed stays. Commands and servers that tests start as processes do wait.
patch.object(os, "fsync", lambda _descriptor: None).start()
patch.object(sqlite_store, "_WRITE", (*sqlite_store._WRITE, "PRAGMA synchronous = OFF")).start()

# Under nohup, SIGHUP is ignored, and processes that tests start would inherit that. They do not inherit a handler.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

# No time limits for examples: their duration depends on how busy the machine is.
settings.register_profile("laudo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("laudo")


def pytest_xdist_auto_num_workers() -> int | None:
    """Use one worker more than there are processors, as some tests mostly wait; the environment may set the number."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else cores() + 1


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long value after its parameter, to keep reports of failures readable."""
    return f"long-{argname}" if isinstance(val, str | bytes) and len(val) > 500 else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Retry `timed` tests, deselect tests whose `engines` exclude the current one, and begin with `long` tests."""
    for item in items:
        if item.get_closest_marker("timed"):
            item.add_marker(pytest.mark.flaky(reruns=2))
    out = [item for item in items if _engine(item) not in _wanted(item)]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def _engine(item: pytest.Item) -> str | None:
    params: dict[str, str] = getattr(getattr(item, "callspec", None), "params", {})
    return params.get("engine")


def _wanted(item: pytest.Item) -> tuple[str | None, ...]:
    mark = item.get_closest_marker("engines")
    if mark is None:
        return (*ENGINES, None)
    if not mark.args or not mark.kwargs.get("reason"):
        message = f'{item.nodeid}: write engines("sqlite", reason="…")'
        raise pytest.UsageError(message)
    return mark.args


@pytest.fixture(scope="session")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return SqliteEngine(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Engine]:
    """A server of this worker's own, or the server or Citus cluster that LAUDO_TEST_PG names."""
    with ExitStack() as stack:
        made: PostgresEngine | CitusEngine
        if url := cluster.named():
            made = CitusEngine(url, cluster.machines(url))
        elif "://" in (url := os.environ.get("LAUDO_TEST_PG", "")):
            made = PostgresEngine(url)
        else:
            server = stack.enter_context(postgres_server.start())
            made = PostgresEngine(server.url(), by_files=True)
        yield stack.enter_context(closing(made))


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def stores(engine: Engine, tmp_path: Path) -> Iterator[Stores]:
    with Stores(engine, tmp_path) as stores:
        yield stores


@pytest.fixture
def new_store_url(stores: Stores) -> Callable[[], str]:
    """Makes another migrated, empty store."""
    return stores.new


@pytest.fixture
def store_url(new_store_url: Callable[[], str]) -> str:
    return new_store_url()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "laudo.key"


@pytest.fixture
def database(store_url: str) -> Iterator[Database]:
    """The store, opened for writing."""
    with closing(open_store(store_url, write=True)) as database:
        yield database


@pytest.fixture
def store(database: Database, key_file: Path) -> Store:
    return Store(database, key_file)


@pytest.fixture
def new_app(store: Store, store_url: str) -> Iterator[NewApp]:
    opened: list[Database] = []

    def new(database: Database | None = None, /, **settings: object) -> WSGIApplication:
        given = {"store": store_url, "key_file": str(store.key_file), "log": False, **settings}
        if database is None:
            opened.append(database := open_store(store_url))
        return app.create(Settings(**given), database=database)  # type: ignore[arg-type]

    yield new
    for database in opened:
        database.close()


@pytest.fixture
def client(new_app: NewApp) -> NewClient:
    plain = new_app()

    def new(token: str | None, /, **settings: object) -> Client:
        return Client(new_app(**settings) if settings else plain, token)

    return new


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    """Records every look-up and statement of this process from now on."""
    all_asked: Noted = []
    write = sql.statement

    def noting(lookup: LookUp, owner: Owner, dialect: Dialect) -> Statement:
        all_asked.append((lookup, write(lookup, owner, dialect)))
        return all_asked[-1][1]

    monkeypatch.setattr(sql, "statement", noting)
    return all_asked


@pytest.fixture
def let_pass(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Stops the clock of the rate limits, and gives a function that advances it: a slow machine must change nothing."""
    now = 0.0

    def seconds_later(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(limits, "monotonic", lambda: now)
    return seconds_later


@pytest.fixture
def account(store: Store) -> Account:
    """An account, for tests that need no more than one."""
    return store.account(nome="Acme Validações", webhook_url="https://acme.example/webhook")


@pytest.fixture(scope="session")
def empty(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of an account without reports. All tests share the store, so they must not write to it."""
    with _asked(engine, tmp_path_factory.mktemp("empty"), []) as client:
        yield client


@pytest.fixture(scope="session")
def full(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of an account that has the reports of `filled`. All tests share this store, too."""
    with _asked(engine, tmp_path_factory.mktemp("full"), FILLED) as client:
        yield client


@contextmanager
def _asked(engine: Engine, folder: Path, reports: Sequence[Relatorio]) -> Iterator[Client]:
    with Stores(engine, folder) as stores:
        url, key_file = stores.new(), folder / "laudo.key"
        with closing(open_store(url, write=True)) as database:
            store = Store(database, key_file)
            account = store.account()
            store.write(account, reports)
        with closing(open_store(url)) as database:
            service = app.create(Settings(store=url, key_file=str(key_file), log=False), database=database)
            yield Client(service, account.token)


@pytest.fixture
def filled(store: Store, account: Account) -> list[Relatorio]:
    """The 240 reports of `account`, written to the store."""
    store.write(account, FILLED)
    return list(FILLED)


@pytest.fixture
def acme(client: NewClient, account: Account) -> Client:
    """A client with the token of `account`."""
    return client(account.token)
