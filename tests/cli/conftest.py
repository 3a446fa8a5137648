"""A shell in a folder, on no store that matters, on one without a schema, or on one with an account."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines import Stores
from shell import Shell


@pytest.fixture(autouse=True)
def _ctrl_c() -> Iterator[None]:
    """Keep Ctrl-C as it is for pytest: a command that was interrupted in its process heeds it no more."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def empty(tmp_path: Path) -> Shell:
    """For what no engine has part in; the store would be a file."""
    return Shell(tmp_path)


@pytest.fixture
def fresh(stores: Stores, tmp_path: Path) -> Shell:
    """A store that nobody has migrated."""
    return Shell(tmp_path, stores.bare())


@pytest.fixture
def laudo(fresh: Shell) -> Shell:
    """A store with one organization, its account, and a user."""
    fresh.prints("migrate")
    fresh.prints("organization", "create", "Modelo")
    fresh.prints("user", "create", "--account", "1", "--email", "ana@example.com", "--name", "Ana")
    return fresh
