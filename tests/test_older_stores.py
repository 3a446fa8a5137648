"""A store that an older version has filled is whole, and answers like any other, once it is migrated."""

import random
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import asdict

import frozen
from engines import Stores
from factories import Account, Store
from frozen import Frozen
from laudo.server import migrations
from laudo.server.database import Database
from laudo.server.ingest.verify import verify
from laudo.server.stores import open_store
from reference import Api
from strategies import any_query, many
from world import LISTS, Written, opened


@pytest.fixture(params=frozen.PATHS, ids=lambda path: path.stem)
def older(request: pytest.FixtureRequest) -> Frozen:
    return Frozen.read(request.param)


@pytest.fixture
def url(stores: Stores) -> str:
    return stores.bare()


@pytest.fixture
def migrated(older: Frozen, url: str, tmp_path: Path) -> Iterator[Database]:
    with closing(open_store(url, write=True)) as database:
        older.thaw(database, tmp_path)
        migrations.migrate(database)
        yield database


@pytest.fixture
def accounts(older: Frozen, migrated: Database, key_file: Path) -> list[Account]:
    """The older store's accounts, each with a new token."""
    store, users = Store(migrated, key_file), older.tables["usuario"]
    owners = [(row["id_organizacao"], row["id_conta"], row["id_usuario"]) for row in users]
    return [Account(*owner, *store.token(owner[-1])) for owner in owners]


def test_an_older_store_differs_in_nothing_once_migrated(migrated: Database) -> None:
    assert list(verify(migrated)) == []


def test_an_older_store_answers_like_the_reference_once_migrated(
    older: Frozen, accounts: list[Account], url: str, key_file: Path
) -> None:
    reports = [(id_conta, asdict(report)) for id_conta, report in older.reports()]
    api = Api(reports, {each.id_conta: each.id_organizacao for each in accounts})
    seeded = random.Random(1)
    with opened(Written(url, key_file, api, accounts)) as world:
        for resource, values, sorts in LISTS:
            asked = [f"sort={sort}" for sort in sorts] + [any_query(seeded, values, sorts) for _ in range(40)]
            for account, question in product(range(len(accounts)), asked):
                world.compare(resource, account, question)


def test_an_older_store_takes_reports_once_migrated(
    migrated: Database, accounts: list[Account], key_file: Path
) -> None:
    store = Store(migrated, key_file)
    for account in accounts:
        store.write(account, many(40, seed=9))
        store.delete(account, *range(0, 40, 3))
    assert list(verify(migrated)) == []


def test_a_store_is_frozen_for_the_newest_schema() -> None:
    frozen_at = [Frozen.read(path).migrations for path in frozen.PATHS]
    assert frozen.last_migrations() in frozen_at, "run .venv/bin/python tests/frozen.py, and keep the older stores"
