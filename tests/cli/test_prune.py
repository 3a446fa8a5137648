import re
import shlex
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from laudo.core.sql import Statement
from laudo.server.citus import DISTRIBUTED
from laudo.server.stores import open_store
from shell import Shell, break_second_removal, one_line, reports

PERSON, OTHER = "52998224725", "11144477735"
RENAMING = r"### A client that leaves\n.*?```sh\n(laudo organization update.*?)```.*?```sql\n(.*?)```"
OPERATING = Path(__file__).parents[2] / "docs" / "operating.md"


@pytest.fixture
def aged(laudo: Shell) -> Shell:
    """An organization with two accounts, and another one. Each account has two reports of 2020 and one of 2021."""
    laudo.prints("account", "create", "Filial", "--organization", "1")
    laudo.prints("organization", "create", "Vizinha")
    for account in (1, 2, 3):
        reports(laudo, account, PERSON, atualizado_em="2021-01-01T00:00:00.000Z")
        reports(laudo, account, OTHER, PERSON, first=1, atualizado_em="2020-12-31T23:59:59.999Z")
    return laudo


def test_prune_deletes_only_reports_older_than_the_date(aged: Shell) -> None:
    counted = aged.prints("prune", "--organization", "1", "--before", "2021-01-01", "--dry-run")
    assert counted == "dry run: 4 to delete, nothing deleted"
    assert aged.prints("prune", "--organization", "1", "--before", "2021-01-01") == "4 deleted"
    assert aged.prints("prune", "--organization", "1", "--before", "2021-01-01") == "0 deleted"
    assert aged.prints("prune", "--organization", "1", "--before", "2021-01-01T00:00:00.001Z") == "2 deleted"
    assert len(aged.prints("find", "--organization", "2", "-", stdin=f"{PERSON}\n{OTHER}").splitlines()) == 3
    assert aged("verify").exit_code == 0


def test_a_prune_that_fails_midway_reports_what_it_deleted(aged: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    break_second_removal(monkeypatch, most=3)
    result = aged("prune", "--organization", "1", "--before", "2021-01-01")
    assert (result.exit_code, one_line(result)) == (
        1,
        "error: the store is broken; kept: 3 deleted; hint: run it again to finish",
    )
    again = aged("prune", "--organization", "1", "--before", "2021-01-01")
    assert (again.exit_code, one_line(again)) == (2, "error: the store is broken")
    monkeypatch.undo()
    assert aged.prints("prune", "--organization", "1", "--before", "2021-01-01") == "1 deleted"


@pytest.mark.engines("sqlite", reason="PostgreSQL clears its files by its own vacuum")
def test_pruned_reports_leave_no_bytes_in_the_files_beside_an_open_reader(aged: Shell) -> None:
    files = [Path(f"{aged.folder}/laudo.db{end}") for end in ("", "-wal")]
    with closing(open_store(aged.store)) as reading:
        assert reading.fetch(Statement("SELECT count(*) FROM relatorio")) == [(9,)]
        reports(aged, 1, OTHER, first=9, nome_pessoa="Kwyzbrrt", atualizado_em="2020-06-01T00:00:00.000Z")
        assert any(b"Kwyzbrrt" in file.read_bytes() for file in files)
        assert aged.prints("prune", "--organization", "1", "--before", "2021-01-01") == "5 deleted"
        assert not any(b"Kwyzbrrt" in file.read_bytes() for file in files)
        assert reading.fetch(Statement("SELECT count(*) FROM relatorio")) == [(5,)]


@pytest.mark.engines("sqlite", reason="PostgreSQL clears its files by its own vacuum")
def test_vacuum_shrinks_the_file_after_a_prune(aged: Shell) -> None:
    file = aged.folder / "laudo.db"
    for first in range(0, 1000, 100):
        reports(aged, 3, *[OTHER] * 100, first=100 + first, atualizado_em="2020-06-01T00:00:00.000Z")
    before = file.stat().st_size
    assert aged.prints("prune", "--organization", "2", "--before", "2021-01-01") == "1002 deleted"
    assert file.stat().st_size == before
    assert aged.prints("prune", "--organization", "2", "--before", "2021-01-01", "--vacuum") == "0 deleted"
    assert file.stat().st_size < before / 2
    assert aged("verify").exit_code == 0


def test_the_documented_removal_of_a_client_leaves_no_name(laudo: Shell) -> None:
    leaves = ("prune", "--organization", "1", "--before", "2021-01-01")
    laudo.prints("account", "create", "Kwyz conta", "--organization", "1", "--webhook-url", "https://kwyz.example.com")
    laudo.prints("user", "create", "--account", "2", "--email", "kwyz@example.com", "--name", "Kwyz usuario")
    old = "2020-01-01T00:00:00.000Z"
    reports(laudo, 2, PERSON, nome="Kwyz", mensagem="Kwyz", nome_pessoa="Kwyz", atualizado_em=old)
    assert laudo.prints(*leaves) == "1 deleted"
    [(commands, statements)] = re.findall(RENAMING, OPERATING.read_text(), re.DOTALL)
    for number, command in product("12", commands.splitlines()):
        words = shlex.split(command.replace(" 1 ", f" {number} "))
        if words[1:4] != ["organization", "update", "2"]:
            laudo.prints(*words[1:])
    with closing(open_store(laudo.store, write=True)) as database:
        with database.transaction() as connection:
            connection.run_script(statements)
        tables = [database.fetch(Statement(f"SELECT * FROM {table}")) for table in DISTRIBUTED]
    held = re.compile("kwyz|Modelo|ana@", re.IGNORECASE).search
    assert [rows for rows in tables if held(str(rows))] == []
    if laudo.store.startswith("sqlite:"):
        assert laudo.prints(*leaves, "--vacuum") == "0 deleted"
        assert [file for file in laudo.folder.iterdir() if held(file.read_bytes().decode("latin-1"))] == []
    assert laudo("verify").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--organization", "1"], "--before"),
        (["--organization", "9", "--before", "2021-01-01"], "there is no organization 9"),
        (["--organization", "1", "--before", ""], "must be a date such as 2021-01-31"),
        (["--organization", "1", "--before", "31/12/2020"], "must be a date such as 2021-01-31"),
        (["--organization", "1", "--before", "2990-01-01"], "must be a date or an instant in the past"),
        (
            ["--organization", "1", "--before", "2021-01-01", "--dry-run", "--vacuum"],
            "--vacuum cannot be used together",
        ),
    ],
)
def test_invalid_options_delete_nothing(laudo: Shell, words: list[str], said: str) -> None:
    reports(laudo, 1, PERSON)
    result = laudo("prune", *words)
    assert result.exit_code == 2
    assert said in one_line(result)
    assert len(laudo.prints("find", "--organization", "1", "-", stdin=PERSON).splitlines()) == 1
