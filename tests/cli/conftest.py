from pathlib import Path

import pytest

from shell import Shell


@pytest.fixture
def empty(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def laudo(empty: Shell) -> Shell:
    """A store with one organization, its account, and a user."""
    empty.prints("migrate")
    empty.prints("organization", "create", "Modelo")
    empty.prints("user", "create", "--account", "1", "--email", "ana@example.com", "--name", "Ana")
    return empty
