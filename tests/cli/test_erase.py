import random
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from awaiting import until
from factories import cpf, relatorio
from laudo.core.sql import Statement
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.writer import Ingest
from laudo.server.sqlite import session
from laudo.server.stores import open_store
from shell import Shell, break_second_removal, ndjson, one_line, reports

PERSON, COMPANY = "52998224725", "11222333000181"


@pytest.fixture
def three(laudo: Shell) -> Shell:
    """An organization with three accounts, and another one. All have reports of a person, two also of a company."""
    for name in ("Filial", "Outra"):
        laudo.prints("account", "create", name, "--organization", "1")
    laudo.prints("organization", "create", "Vizinha")
    for account in (1, 2, 3, 4):
        reports(laudo, account, PERSON, PERSON, "11144477735", *[COMPANY][: account % 2])
    return laudo


def test_a_person_is_deleted_from_all_accounts_of_an_organization(three: Shell) -> None:
    given = f"\ufeff{PERSON}\r\n\n39053344705\n"
    assert three.prints("erase", "--organization", "1", "-", stdin=given) == "6 deleted, 1 absent, 0 rejected"
    assert three.prints("erase", "--organization", "1", "-", stdin=given) == "0 deleted, 2 absent, 0 rejected"
    assert three.prints("find", "--organization", "1", "-", stdin=PERSON) == ""
    assert len(three.prints("find", "--organization", "2", "-", stdin=PERSON).splitlines()) == 2
    assert three("verify").exit_code == 0


@pytest.mark.engines("sqlite", reason="PostgreSQL clears its files by its own vacuum")
def test_an_erased_person_leaves_no_bytes_in_the_files(laudo: Shell) -> None:
    laudo.prints("account", "create", "Filial", "--organization", "1")
    for account in (1, 2):
        laudo.prints("import", str(ndjson(laudo.folder, 300)), "--account", str(account))
        reports(laudo, account, PERSON)
    held = [PERSON.encode(), b"Hermenegilda", b"hermenegilda"]
    assert all(each in Path(f"{laudo.folder}/laudo.db").read_bytes() for each in held)
    laudo.prints("erase", "--organization", "1", "-", stdin=PERSON)
    files = [file for file in laudo.folder.iterdir() if file.suffix != ".ndjson"]
    assert [file for file in files if any(each in file.read_bytes() for each in held)] == []


def test_vacuum_removes_the_traces_that_sqlite_leaves_in_its_pages(
    laudo: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite overwrites deleted rows, but not the copies left behind when rows move to other pages."""
    if not laudo.store.startswith("sqlite:"):
        refused = laudo("erase", "--organization", "1", "--vacuum", "-", stdin=PERSON)
        assert (refused.exit_code, "VACUUM FULL" in one_line(refused)) == (2, True)
        return
    seeded = random.Random(1)
    numbers = list(range(1, 2001))
    seeded.shuffle(numbers)
    gone = numbers[:500]
    with closing(open_store(laudo.store, write=True)) as database:
        ingest = Ingest(database, 1)
        for first in range(0, 2000, 20):
            ingest.write([_traceable(n, seeded) for n in numbers[first : first + 20]])
    given = "\n".join(map(cpf, gone))
    with closing(open_store(laudo.store)) as reading:
        assert reading.fetch(_COUNT) == [(2000,)]
        assert laudo.prints("erase", "--organization", "1", "-", stdin=given) == "500 deleted, 0 absent, 0 rejected"
        assert _traces(laudo, gone)
        monkeypatch.setattr(session, "_WAIT_SECONDS", 0)
        with reading.snapshot() as held:
            assert held.fetch(_COUNT) == [(1500,)]
            result = laudo("erase", "--organization", "1", "--vacuum", "-", stdin=given + "\n")
            assert (result.exit_code, result.stdout) == (1, "0 deleted, 500 absent, 0 rejected\n")
            assert "still reads an older snapshot; kept: all deletions; hint: run it again" in result.stderr
        monkeypatch.undo()
        vacuumed = laudo.prints("erase", "--organization", "1", "--vacuum", "-", stdin=given)
        assert vacuumed == "0 deleted, 500 absent, 0 rejected"
        assert _traces(laudo, gone) == []
        assert reading.fetch(_COUNT) == [(1500,)]
    assert laudo("verify").exit_code == 0


_COUNT = Statement("SELECT count(*) FROM relatorio")


def _traceable(number: int, seeded: random.Random) -> Relatorio:
    nome, mensagem = f"Ana Qx{number:05}z", f"Mx{number:05}z"
    return relatorio(
        number,
        numero_documento=cpf(number),
        nome_pessoa=nome + " longa" * seeded.randrange(12),
        mensagem=mensagem + "y" * seeded.randrange(200),
    )


def _traces(laudo: Shell, numbers: list[int]) -> list[int]:
    files = [file for end in ("", "-wal") if (file := Path(f"{laudo.folder}/laudo.db{end}")).exists()]
    left = b"".join(file.read_bytes() for file in files).lower()
    return [n for n in numbers if any(text.encode() in left for text in (cpf(n), f"qx{n:05}z", f"mx{n:05}z"))]


def test_erase_reaches_an_account_created_while_stdin_is_open(three: Shell) -> None:
    def left(document: str) -> int:
        return len(three.prints("find", "--organization", "1", "-", stdin=document).splitlines())

    with three.starts("erase", "--organization", "1", "-", stdin=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.write(f"{PERSON}\n".encode())
        process.stdin.flush()
        until(lambda: not left(PERSON))
        three.prints("account", "create", "Nova", "--organization", "1")
        reports(three, 5, PERSON)
        said, _ = process.communicate(f"{PERSON}\n".encode(), timeout=60)
    assert (process.returncode, said) == (0, b"7 deleted, 0 absent, 0 rejected\n")
    assert left(PERSON) == 0


def test_a_company_is_deleted_by_its_cnpj_in_any_letter_case(laudo: Shell) -> None:
    reports(laudo, 1, "12ABC34501DE35")
    assert (
        laudo.prints("erase", "--organization", "1", "-", stdin="12abc34501de35") == "1 deleted, 0 absent, 0 rejected"
    )


def test_invalid_documents_are_reported_by_line_and_the_rest_is_erased(three: Shell) -> None:
    result = three(
        "erase", "--organization", "1", "-", stdin=f"529.98224725\n{COMPANY}\n0f8fad5b-d9cb-469f-a165-70867728950e"
    )
    assert (result.exit_code, result.stdout) == (1, "2 deleted, 0 absent, 2 rejected\n")
    assert result.stderr == "line 1: not a CPF or CNPJ\nline 3: not a CPF or CNPJ\n"


def test_an_erase_that_fails_midway_reports_what_it_deleted(three: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    break_second_removal(monkeypatch, most=4)
    result = three("erase", "--organization", "1", "-", stdin=PERSON)
    assert result.exit_code == 1
    said = "the store is broken; kept: 0 lines (4 deleted, 0 absent, 0 rejected); hint: run it again to finish"
    assert one_line(result) == f"error: {said}"
    monkeypatch.undo()
    assert three.prints("erase", "--organization", "1", "-", stdin=PERSON) == "2 deleted, 0 absent, 0 rejected"
    assert three("verify").exit_code == 0


def test_document_arguments_unknown_organizations_and_no_input_are_refused(three: Shell) -> None:
    given = three("erase", "--organization", "1", PERSON)
    assert (given.exit_code, PERSON in one_line(given)) == (2, False)
    assert "documents are read from stdin" in given.stderr
    foreign = three("erase", "--organization", "9", "-", stdin=PERSON)
    assert (foreign.exit_code, one_line(foreign)) == (
        2,
        "error: there is no organization 9; hint: laudo organization list",
    )
    empty = three("erase", "--organization", "1", "-")
    assert (empty.exit_code, one_line(empty)) == (2, "error: there is no line with a CPF or CNPJ")
    assert len(three.prints("find", "--organization", "1", "-", stdin=PERSON).splitlines()) == 6
