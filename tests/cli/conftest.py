"""A shell in a folder: without a store, with a store without a schema, or with a store that has an account."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines import Stores
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


@pytest.fixture
def laudo(fresh: Shell) -> Shell:
    """A shell with a store that has one organization, its account, and a user."""
    fresh.prints("migrate")
    fresh.prints("organization", "create", "Modelo")
    fresh.prints("user", "create", "--account", "1", "--email", "ana@example.com", "--name", "Ana")
    return fresh
