import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from uuid import UUID

import apsw
import pytest

from engines import Engine, Stores
from laudo.core.sql import Statement
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store
from shell import Shell, ndjson, one_line
from strategies import many

EQUAL: Final = "the stores are equal; the tokens work with the same key file\n"

MANY: Final = 20_000
"""Enough reports that copying them takes several transactions."""


@pytest.fixture
def target(laudo: Shell) -> str:
    """A second, empty store, in a file."""
    return new_store(laudo, "target.db")


@pytest.fixture
def server(postgres: Engine, tmp_path: Path) -> Iterator[str]:
    """An empty store on PostgreSQL."""
    with Stores(postgres, tmp_path) as stores:
        yield stores.new()


def new_store(laudo: Shell, name: str) -> str:
    url = f"sqlite:///{laudo.folder}/{name}"
    laudo.prints("migrate", "--store", url)
    return url


def fill(laudo: Shell, count: int) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, count)), "--account", "1")


def run(laudo: Shell, target: str, *words: str) -> tuple[int, str, str]:
    result = laudo("copy", "--from", laudo.store, "--to", target, *words)
    return result.exit_code, result.stdout, result.stderr


def rows(url: str) -> list[tuple[object, ...]]:
    with closing(open_store(url)) as store:
        return store.fetch(Statement("SELECT numero, item FROM relatorio ORDER BY numero"))


def test_a_copy_prints_counts_and_exits_with_0(laudo: Shell, target: str) -> None:
    fill(laudo, 240)
    copied = "1 organization, 1 account; reports: 240 written, 0 deleted, 0 unchanged\n"
    assert run(laudo, target) == (0, copied, EQUAL)
    again = "1 organization, 1 account; reports: 0 written, 0 deleted, 240 unchanged\n"
    assert run(laudo, target) == (0, again, EQUAL)
    assert rows(target) == rows(laudo.store)


def test_a_store_survives_a_copy_to_postgresql_and_back(laudo: Shell, server: str, target: str) -> None:
    fill(laudo, 240)
    laudo.prints("token", "create", "--user", "1")
    assert run(laudo, server)[0] == 0
    back = laudo("copy", "--from", server, "--to", target)
    assert (back.exit_code, back.stderr) == (0, EQUAL)
    assert rows(target) == rows(laudo.store)
    assert laudo.lists("token", "list", "--store", server) == laudo.lists("token", "list")
    assert laudo.prints("verify", "--store", server) == ""


def test_a_second_copy_applies_changes_of_the_source(laudo: Shell, target: str) -> None:
    fill(laudo, 240)
    run(laudo, target)
    fill(laudo, 300)
    [(numero, _)] = rows(target)[:1]
    assert isinstance(numero, bytes)
    laudo.prints("delete", str(UUID(bytes=numero)), "--account", "1")
    assert run(laudo, target)[1].endswith("reports: 60 written, 1 deleted, 239 unchanged\n")
    assert rows(target) == rows(laudo.store)


def test_copy_ignores_the_variable_laudo_store(laudo: Shell, target: str) -> None:
    fill(laudo, 30)
    elsewhere = f"sqlite:///{laudo.folder}/elsewhere.db"
    result = laudo("copy", "--from", laudo.store, "--to", target, env={"LAUDO_STORE": elsewhere})
    assert result.exit_code == 0
    assert not (laudo.folder / "elsewhere.db").exists()


@pytest.mark.parametrize(
    ("source", "target", "line"),
    [
        ("laudo.db", "laudo.db", "error: the source and the target are the same store"),
        ("target.db", "linked.db", "error: the source and the target are the same store"),
        ("target.db", "named.db", "error: the source and the target are the same store"),
        ("none.db", "target.db", r"error: --from: there is no store at .*none.db; run `laudo migrate` to create one"),
        ("laudo.db", "none.db", r"error: --to: there is no store at .*none.db; run `laudo migrate` to create one"),
        ("laudo.db", "bare.db", "error: --to: the store has no schema, or an older one; run `laudo migrate`"),
    ],
)
def test_a_copy_that_cannot_begin_prints_one_line_and_exits_with_2(
    laudo: Shell, source: str, target: str, line: str
) -> None:
    new_store(laudo, "target.db")
    (laudo.folder / "linked.db").symlink_to("target.db")
    (laudo.folder / "named.db").hardlink_to(laudo.folder / "target.db")
    apsw.Connection(str(laudo.folder / "bare.db")).execute("CREATE TABLE x (y)")
    urls = {name: f"sqlite:///{laudo.folder}/{name}" for name in (source, target)} | {"laudo.db": laudo.store}
    result = laudo("copy", "--from", urls[source], "--to", urls[target])
    assert result.exit_code == 2
    assert re.fullmatch(line, one_line(result))
    assert not (laudo.folder / "none.db").exists()


def test_copy_refuses_two_urls_of_the_same_postgresql_store(laudo: Shell, server: str) -> None:
    result = laudo("copy", "--from", server, "--to", f"{server}?options=-c%20timezone%3DAsia/Tokyo")
    assert (result.exit_code, one_line(result)) == (2, "error: the source and the target are the same store")


@pytest.mark.parametrize(
    "url", ["laudo.db", "mysql://user:hunter2@localhost/x", "postgresql://user:hunter2@127.0.0.1:1/x"]
)
def test_errors_never_contain_a_password(laudo: Shell, url: str) -> None:
    code, answer, said = run(laudo, url)
    assert (code, answer, said.count("\n")) == (2, "", 1)
    assert said.startswith("error: --to: ")
    assert "hunter2" not in said


def test_a_target_with_other_data_is_refused_and_unchanged(laudo: Shell, target: str) -> None:
    fill(laudo, 240)
    laudo.prints("organization", "create", "Outra", "--store", target)
    code, answer, said = run(laudo, target)
    assert (code, answer) == (2, "")
    assert said == (
        "error: the target has organizations that the source lacks, or has with another name: 1; "
        "nothing was copied; hint: copy into a new store, as `laudo migrate` creates it, or swap the two URLs\n"
    )
    assert rows(target) == []


def test_differences_are_listed_and_exit_with_1(laudo: Shell, target: str) -> None:
    fill(laudo, 240)
    spoiling = "CREATE TRIGGER spoil AFTER INSERT ON relatorio BEGIN UPDATE relatorio SET mensagem = '?'; END"
    connection = apsw.Connection(str(laudo.folder / "target.db"))
    connection.execute(spoiling)
    code, answer, said = run(laudo, target)
    assert (code, answer) == (1, "1 organization, 1 account; reports: 240 written, 0 deleted, 0 unchanged\n")
    assert said == (
        "account 1: the reports are not those of the source\n"
        "organization 1, account 1: items that differ from their columns: 240\n"
        "error: the stores differ; hint: stop what writes to them, then run it again\n"
    )
    connection.execute("DROP TRIGGER spoil")
    assert run(laudo, target)[0] == 0


def test_an_interrupted_copy_resumes_where_it_stopped(laudo: Shell) -> None:
    with closing(open_store(laudo.store, write=True)) as store:
        Ingest(store, 1).write(many(MANY))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        check_interrupted_copy(laudo, new_store(laudo, f"{number.name}.db"), number)


def check_interrupted_copy(laudo: Shell, target: str, number: signal.Signals) -> None:
    """Interrupt a copy after the first reports, then run it again to the end."""
    with laudo.starts("copy", "--from", laudo.store, "--to", target) as process:
        _wait_for_reports(process, target)
        process.send_signal(number)
        code = process.wait(timeout=60)
        assert process.stderr
        said = process.stderr.read().decode()
    kept = len(rows(target))
    assert kept > 0
    assert code == -number
    if number != signal.SIGKILL:
        told = re.fullmatch(
            r"error: interrupted; kept: 1 organization, (?:0 accounts|1 account); reports: (\d+) written, 0 deleted, "
            r"0 unchanged; hint: run it again to resume\n",
            said,
        )
        assert told, said
        assert int(told[1]) <= kept  # less, if the signal came between a commit and its count
    code, answer, said = run(laudo, target)
    assert (code, said) == (0, EQUAL)
    assert answer.endswith(f"reports: {MANY - kept} written, 0 deleted, {kept} unchanged\n")


def _wait_for_reports(process: subprocess.Popen[bytes], url: str) -> None:
    with closing(open_store(url)) as store:
        while not store.fetch(Statement("SELECT 1 FROM relatorio LIMIT 1")):
            assert process.poll() is None
            time.sleep(0.002)


def test_a_copy_that_fails_midway_reports_what_it_kept(laudo: Shell, target: str) -> None:
    fill(laudo, 240)
    failing = "CREATE TRIGGER fail BEFORE INSERT ON relatorio BEGIN SELECT raise(FAIL, '52998224725'); END"
    apsw.Connection(str(laudo.folder / "target.db")).execute(failing)
    code, answer, said = run(laudo, target)
    assert (code, answer) == (1, "")
    kept = "1 organization, 0 accounts; reports: 0 written, 0 deleted, 0 unchanged"
    assert said.endswith(f"; kept: {kept}; hint: run it again to resume\n")
    assert "52998224725" not in said
