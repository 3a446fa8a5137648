import re
import stat
import subprocess
from collections.abc import Callable
from contextlib import closing

import pytest

from factories import NEWER
from laudo.cli.options import opened
from laudo.core.sql import Statement
from laudo.server import locks
from laudo.server.config import SETTINGS, Settings
from laudo.server.database import Unavailable
from laudo.server.stores import open_store
from shell import LAUDO, Shell, one_line


def test_config_shows_every_setting_with_its_source(empty: Shell) -> None:
    items = empty.lists("config", "--port", "9000")
    assert [item["setting"] for item in items] == [setting.name for setting in SETTINGS]
    sources = {str(item["setting"]): item["source"] for item in items}
    assert (sources["port"], sources["store"], sources["host"]) == ("--port", "LAUDO_STORE", "default")


def test_config_masks_passwords(empty: Shell) -> None:
    shown = empty.prints("config", "--store", "postgresql://laudo:hunter2@db/laudo")
    assert "postgresql://laudo:***@db/laudo" in shown
    assert "hunter2" not in shown


def test_config_reads_the_file_of_the_working_folder(empty: Shell) -> None:
    (empty.folder / "laudo.toml").write_text("port = 9001\n")
    done = subprocess.run(
        [LAUDO, "config"], check=True, capture_output=True, text=True, cwd=empty.folder, env=empty.environment
    )
    assert re.search(r"^port +9001 +laudo\.toml$", done.stdout, re.MULTILINE)


def test_migrate_may_be_repeated(fresh: Shell) -> None:
    assert fresh.prints("migrate").startswith("applied 0001_")
    assert fresh.prints("migrate") == "the store is up to date"


def test_migrate_says_that_the_store_is_newer_than_this_version(fresh: Shell) -> None:
    fresh.prints("migrate")
    with closing(open_store(fresh.store, write=True)) as database, database.transaction() as connection:
        connection.run_script(NEWER)
    assert fresh.prints("migrate").startswith("the store is newer than this version of laudo, which may serve it")


def test_a_migration_that_fails_midway_reports_what_was_applied(fresh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    retry = locks.retry

    def breaking(work: Callable[[], bool], what: str, seconds: float) -> bool:
        if "0001_" not in what:
            raise Unavailable("the disk is full")
        return retry(work, what, seconds)

    monkeypatch.setattr(locks, "retry", breaking)
    result = fresh("migrate")
    assert result.exit_code == 1
    assert re.fullmatch(r"applied 0001_\w+\.sql\n", result.stdout)
    assert re.search(r"^error: the disk is full; kept: 0001_\w+\.sql; hint: run `laudo migrate` again", result.stderr)
    monkeypatch.undo()
    assert fresh.prints("migrate").startswith("applied 0002_")


@pytest.mark.engines("sqlite", reason="only a file has a mode")
def test_store_files_are_readable_by_their_owner_only(fresh: Shell) -> None:
    fresh.prints("migrate")
    with closing(open_store(fresh.store, write=True)):
        made = list(fresh.folder.glob("laudo.db*"))
        assert len(made) == 3
        assert {stat.S_IMODE(file.stat().st_mode) for file in made} == {0o600}


def test_a_store_created_through_a_symlink_is_for_its_owner_only(empty: Shell) -> None:
    (empty.folder / "link.db").symlink_to("laudo.db")
    empty.prints("migrate", "--store", f"sqlite:///{empty.folder}/link.db")
    assert stat.S_IMODE((empty.folder / "laudo.db").stat().st_mode) == 0o600


def test_a_sqlite_url_with_parameters_is_refused_and_creates_no_file(empty: Shell) -> None:
    result = empty("migrate", "--store", f"sqlite:///{empty.folder}/laudo.db?mode=ro")
    assert result.exit_code == 2
    assert one_line(result).endswith("laudo.db?mode=ro; a SQLite URL takes no parameters after ?")
    assert not list(empty.folder.glob("laudo.db*"))


@pytest.mark.engines("postgres", reason="only PostgreSQL has the setting prepare")
@pytest.mark.parametrize("write", [False, True])
def test_a_command_prepares_statements_unless_prepare_is_off(store_url: str, *, write: bool) -> None:
    prepared = []
    for prepare in (True, False):
        with opened(Settings(store=store_url, prepare=prepare), write=write) as database:
            database.fetch(Statement("SELECT 1"))
            prepared += database.fetch(Statement("SELECT count(*) > 0 FROM pg_prepared_statements"))
    assert prepared == [(True,), (False,)]
