"""One demonstration for each engine, and one server of it for all tests without special needs."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engines import Engine, Stores
from live.server import Place, Server, serving


@pytest.fixture(scope="session")
def live_stores(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with Stores(engine, tmp_path_factory.mktemp("live")) as stores:
        yield stores


@pytest.fixture(scope="session")
def untouched(live_stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A demonstration that is never served, so that its store can be copied."""
    return Place(tmp_path_factory.mktemp("place"), other_store=live_stores.bare()).demonstrate()


@pytest.fixture(scope="session")
def place(live_stores: Stores, untouched: Place) -> Place:
    """10,000 invented reports, with a token of the account that has the most."""
    return replace(untouched, other_store=live_stores.copy(untouched.store))


@pytest.fixture(scope="session")
def server(place: Place) -> Iterator[Server]:
    with serving(place, "--workers", "1") as running:
        yield running


@pytest.fixture
def own_place(untouched: Place, stores: Stores, tmp_path: Path) -> Place:
    """A copy of the demonstration that a test may change."""
    mine = replace(untouched, folder=tmp_path, other_store=stores.copy(untouched.store))
    shutil.copy(untouched.key_file, mine.key_file)
    return mine
