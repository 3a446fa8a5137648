"""What tests share: a migrated store of their own, and clients of an application that reads it."""

import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from factories import Account, Store
from laudo.server import app, migrations
from laudo.server.app import App
from laudo.server.config import Settings
from laudo.server.database import Database, open_store
from laudo.server.ingest.records import Relatorio
from strategies import many
from wsgi import Client, NewApp, NewClient

# Each store that a test's application reads keeps two descriptors open for good: see `server.sqlite._WAL_INDEXES`.
_MOST = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (_MOST, _MOST))


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One migrated file, to be copied: a copy costs a tenth of a migration."""
    file = tmp_path_factory.mktemp("empty") / "laudo.db"
    database = open_store(f"sqlite:///{file}", write=True)
    migrations.migrate(database)
    database.close()
    return file


@pytest.fixture(params=["sqlite"])
def new_store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Makes one more migrated, empty store. A further engine is a further parameter."""
    empty: Path = request.getfixturevalue(f"empty_{request.param}")
    made: list[Path] = []

    def new() -> str:
        file = tmp_path / f"laudo{len(made)}.db"
        shutil.copyfile(empty, file)
        made.append(file)
        return f"sqlite:///{file}"

    return new


@pytest.fixture
def store_url(new_store_url: Callable[[], str]) -> str:
    return new_store_url()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "laudo.key"


@pytest.fixture
def store(store_url: str, key_file: Path) -> Iterator[Store]:
    database = open_store(store_url, write=True)
    yield Store(database, key_file)
    database.close()


@pytest.fixture
def new_app(store: Store, store_url: str) -> Iterator[NewApp]:
    opened: list[Database] = []

    def new(database: Database | None = None, /, **settings: object) -> App:
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
def account(store: Store) -> Account:
    """An account, for tests that need no more than one."""
    return store.account(nome="Acme Validações", webhook_url="https://acme.example/webhook")


@pytest.fixture
def filled(store: Store, account: Account) -> list[Relatorio]:
    """240 reports that `account` has."""
    reports = many(240)
    store.write(account, reports)
    return reports


@pytest.fixture
def acme(client: NewClient, account: Account) -> Client:
    """Asks in the name of `account`."""
    return client(account.token)
