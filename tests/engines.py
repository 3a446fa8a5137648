"""Makes stores for tests on each engine. A store is migrated once and then copied for each test."""

import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Final, Protocol, Self

import psycopg
from psycopg import sql

from laudo.server import migrations
from laudo.server.stores import open_store

ENGINES: Final = ("sqlite", "postgres")
"""Every test of a store runs on each of these."""


class Engine(Protocol):
    """Makes stores on one engine and gives their URLs."""

    def bare(self, place: Path) -> str:
        """Give a store without a schema. On SQLite its file is `place`, not yet made; other engines ignore `place`."""

    def empty(self, place: Path) -> str:
        """Make a migrated, empty store."""

    def copy(self, url: str, place: Path) -> str:
        """Make a copy of a store that nobody has open."""

    def drop(self, url: str) -> None:
        """Delete a store, even if somebody has it open."""


class Stores:
    """The stores of one or more tests, deleted at the end of the block; files are in `folder`."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._places = (folder / f"laudo{number or ''}.db" for number in count())
        self._urls: set[str] = set()

    def new(self) -> str:
        """Make another migrated, empty store."""
        return self._kept(self._engine.empty(next(self._places)))

    def bare(self) -> str:
        """Make another store, without a schema."""
        return self._kept(self._engine.bare(next(self._places)))

    def copy(self, url: str) -> str:
        """Make another store, a copy of one that nobody has open."""
        return self._kept(self._engine.copy(url, next(self._places)))

    def drop(self, url: str) -> None:
        """Delete a store now, not at the end."""
        self._engine.drop(url)
        self._urls.remove(url)

    @contextmanager
    def passing(self) -> Iterator[str]:
        """Make a migrated store for the length of a block: for tests that need many, one after another."""
        url = self.new()
        yield url
        self.drop(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for url in list(self._urls):
            self.drop(url)

    def _kept(self, url: str) -> str:
        self._urls.add(url)
        return url


class SqliteEngine:
    """Stores in files."""

    def __init__(self, folder: Path) -> None:
        self._empty = f"sqlite:///{folder}/empty.db"
        _migrate(self._empty)

    def bare(self, place: Path) -> str:
        return f"sqlite:///{place}"

    def empty(self, place: Path) -> str:
        return self.copy(self._empty, place)

    def copy(self, url: str, place: Path) -> str:
        return f"sqlite:///{shutil.copyfile(sqlite_file(url), place)}"

    def drop(self, url: str) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{sqlite_file(url)}{suffix}").unlink(missing_ok=True)


class PostgresEngine:
    """Stores in databases of a server. `url` names one of its databases, which stays unchanged.

    Copying and dropping a database takes 20 ms in memory. Emptying all tables took 6 ms to 50 ms, and left traces.
    """

    def __init__(self, url: str, *, by_files: bool = False) -> None:
        """Connect as a user who may create databases, and create the one that is copied later."""
        self._url = url
        self._names = (f"laudo_test_{secrets.token_hex(4)}_{number}" for number in count())
        self._connection = psycopg.connect(url, autocommit=True)
        is_choice = self._connection.info.server_version >= 150_000  # older versions always copy files
        self._how_to_copy = sql.SQL("STRATEGY FILE_COPY" if by_files and is_choice else "")
        self._ending = ""
        self._empty = self.bare()
        _migrate(self._empty)

    def bare(self, _place: Path | None = None) -> str:
        return self._created(sql.SQL("TEMPLATE template0 ENCODING 'UTF8'"))

    def empty(self, _place: Path | None = None) -> str:
        return self.copy(self._empty)

    def copy(self, url: str, _place: Path | None = None) -> str:
        return self._created(sql.SQL("TEMPLATE {} {}").format(_database(url), self._how_to_copy))

    def drop(self, url: str) -> None:
        """Drop the database of the previous call, since dropping this one might wait 100 ms for its sessions to end."""
        self._ending, ended = url, self._ending
        if ended:
            self._connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(_database(ended)))

    def close(self) -> None:
        self.drop(self._empty)
        self.drop("")
        self._connection.close()

    def _created(self, how: sql.Composable) -> str:
        name = next(self._names)
        self._connection.execute(sql.SQL("CREATE DATABASE {} {}").format(sql.Identifier(name), how))
        return _SERVER_AND_DATABASE.sub(rf"\1/{name}", self._url, count=1)


def sqlite_file(url: str) -> Path:
    """The path of a store on SQLite."""
    return Path(url.removeprefix("sqlite:///"))


def _migrate(url: str) -> None:
    with closing(open_store(url, write=True)) as database:
        migrations.migrate(database)


def _database(url: str) -> sql.Identifier:
    name = _SERVER_AND_DATABASE.match(url)
    assert name
    return sql.Identifier(name[2])


_SERVER_AND_DATABASE: Final = re.compile("(.*?://[^/?]*)/?([^?]*)")
