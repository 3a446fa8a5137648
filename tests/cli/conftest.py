"""A shell in a folder: without a store, with a store without a schema, or with a store that has an account."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines import Engine, Stores
from shell import Shell


@pytest.fixture(autouse=True)
def _ctrl_c() -> Iterator[None]:
    """Restore pytest's handler of SIGINT: a command interrupted in pytest's own process leaves SIGINT ignored."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def empty(tmp_path: Path) -> Shell:
    """A shell for tests in which the engine does not matter; its store would be a file."""
    return Shell(tmp_path)


@pytest.fixture
def fresh(stores: Stores, tmp_path: Path) -> Shell:
    """A shell with a store that is not migrated."""
    return Shell(tmp_path, stores.bare())


@pytest.fixture(scope="session")
def model(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The store that each `laudo` is a copy of: migrating one takes ten times as long as copying it."""
    folder = tmp_path_factory.mktemp("model")
    with Stores(engine, folder) as stores:
        laudo = Shell(folder, stores.new())
        laudo.prints("organization", "create", "Modelo")
        laudo.prints("user", "create", "--account", "1", "--email", "ana@example.com", "--name", "Ana")
        yield laudo.store


@pytest.fixture
def laudo(model: str, stores: Stores, tmp_path: Path) -> Shell:
    """A shell with a store that has one organization, its account, and a user."""
    return Shell(tmp_path, stores.copy(model))
