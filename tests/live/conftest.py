"""One demonstration, filled once; one server over it for the tests that need nothing special."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.server import Place, Server, serving


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """10,000 invented reports and a token of the account that has most of them."""
    empty = Place(tmp_path_factory.mktemp("place"))
    made = empty.run("demo", "--no-serve", "--store", f"sqlite:///{empty.store}", "--key-file", str(empty.key_file))
    assert made.returncode == 0, made.stderr
    token = next(line.split()[1] for line in made.stdout.splitlines() if line.startswith("token"))
    return Place(empty.folder, token)


@pytest.fixture(scope="session")
def server(place: Place) -> Iterator[Server]:
    with serving(place, "--workers", "1") as running:
        yield running


@pytest.fixture
def own_place(place: Place, tmp_path: Path) -> Place:
    """A copy that a test may damage."""
    mine = Place(tmp_path, place.token)
    shutil.copy(place.store, mine.store)
    shutil.copy(place.key_file, mine.key_file)
    return mine
