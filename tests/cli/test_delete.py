import gzip
import json
import subprocess
from contextlib import closing
from itertools import islice
from pathlib import Path
from time import monotonic, sleep

import pytest

from laudo import demo
from laudo.cli.deletes import BATCH
from laudo.core.sql import Owner, Statement
from laudo.server.database import Connection, Row, StoreError
from laudo.server.ingest import removal
from laudo.server.ingest.removal import Removal
from laudo.server.stores import open_store
from shell import Shell, ndjson, one_line

ABSENT = "0f8fad5b-d9cb-469f-a165-70867728950e"


def numeros(count: int) -> list[str]:
    """The first UUIDs of what `ndjson` writes."""
    return [str(json.loads(line)["numero"]) for line in demo.ndjson_lines(islice(demo.relatorios(5000), count))]


def test_reports_are_deleted_by_their_uuids(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 5)), "--account", "1")
    first, second, third, *_ = numeros(5)
    assert laudo.prints("delete", "--account", "1", first.upper(), second) == "2 deleted, 0 absent, 0 rejected"
    assert laudo.prints("delete", "--account", "1", second, third, ABSENT) == "1 deleted, 2 absent, 0 rejected"
    assert laudo("verify").exit_code == 0


def test_they_are_read_from_stdin_a_line_each(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 2500)), "--account", "1")
    lines = "\ufeff" + "\r\n".join(numeros(2400)) + "\r\n\r\n" + ABSENT
    assert laudo.prints("delete", "--account", "1", "-", stdin=lines) == "2400 deleted, 1 absent, 0 rejected"
    assert laudo.prints("delete", "--account", "1", "-", stdin=lines) == "0 deleted, 2401 absent, 0 rejected"
    assert laudo("verify").exit_code == 0


@pytest.mark.engines("sqlite", reason="a server's files are for its vacuum to clear")
@pytest.mark.parametrize("count", [1, BATCH])
def test_nothing_of_what_came_through_a_pipe_is_left_while_it_stays_open(laudo: Shell, count: int) -> None:
    secret = {**json.loads(next(demo.ndjson_lines(demo.relatorios(1)))), "nome_pessoa": "Hermenegilda Kwyzbrrt"}
    files = [Path(f"{laudo.folder}/laudo.db{end}") for end in ("", "-wal")]
    with closing(open_store(laudo.store)) as reading:
        laudo.prints("import", "-", "--account", "1", stdin=json.dumps(secret))
        assert any(b"Kwyzbrrt" in file.read_bytes() for file in files)
        with laudo.starts("delete", "--account", "1", "-", stdin=subprocess.PIPE) as process:
            assert process.stdin
            process.stdin.writelines(f"{numero}\n".encode() for numero in [secret["numero"]] * count)
            process.stdin.flush()
            ends = monotonic() + 60
            while any(b"Kwyzbrrt" in file.read_bytes() for file in files):
                assert monotonic() < ends
                sleep(0.01)
            assert reading.fetch(Statement("SELECT count(*) FROM relatorio")) == [(0,)]
            process.stdin.close()
            assert process.wait(20) == 0


def test_what_is_no_uuid_is_named_by_its_line_and_stops_nothing(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 5)), "--account", "1")
    [first] = numeros(1)
    result = laudo("delete", "--account", "1", "-", stdin=f"\n52998224725\n{first}\n{'x' * 100_000}\n{first}x")
    assert (result.exit_code, result.stdout) == (1, "1 deleted, 0 absent, 3 rejected\n")
    assert result.stderr == "line 2: not a UUID\nline 4: longer than 64 KiB\nline 5: not a UUID\n"


def test_a_truncated_gzip_deletes_what_it_holds_and_says_that_the_rest_was_not_read(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 500)), "--account", "1")
    cut = gzip.compress("\n".join(numeros(500)).encode())[:5000]
    result = laudo("delete", "--account", "1", "-", stdin=cut)
    deleted = int(result.stdout.removesuffix(" deleted, 0 absent, 1 rejected\n"))
    assert 0 < deleted < 500
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith(f"line {deleted + 1}: truncated gzip: ")
    assert result.stderr.endswith("nothing from this line on was read\n")


def test_arguments_are_named_by_their_place(laudo: Shell) -> None:
    result = laudo("delete", "--account", "1", ABSENT, "52998224725")
    assert (result.exit_code, result.stdout) == (1, "0 deleted, 1 absent, 1 rejected\n")
    assert result.stderr == "argument 2: not a UUID\n"


def test_nothing_done_is_exit_2(laudo: Shell) -> None:
    result = laudo("delete", "--account", "1", "52998224725")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, "error: no argument is a UUID")
    empty = laudo("delete", "--account", "1", "-")
    assert (empty.exit_code, one_line(empty)) == (2, "error: there is no line with a UUID")
    foreign = laudo("delete", "--account", "9", ABSENT)
    assert foreign.exit_code == 2
    assert "there is no account 9" in one_line(foreign)


def test_reports_of_other_accounts_stay(laudo: Shell) -> None:
    laudo.prints("account", "create", "Filial", "--organization", "1")
    for account in ("1", "2"):
        laudo.prints("import", str(ndjson(laudo.folder, 5)), "--account", account)
    assert laudo.prints("delete", "--account", "2", *numeros(5)) == "5 deleted, 0 absent, 0 rejected"
    assert laudo.prints("delete", "--account", "1", *numeros(5)) == "5 deleted, 0 absent, 0 rejected"
    assert laudo("verify").exit_code == 0


# By document, in all accounts of an organization.

PERSON, COMPANY = "52998224725", "11222333000181"


def reports(laudo: Shell, account: int, *documents: str, **others: object) -> None:
    """Import a report of each document into an account, of which each has a numero of its own."""
    lines = [
        {
            **json.loads(next(demo.ndjson_lines(demo.relatorios(1)))),
            "numero": f"{account:08x}-0000-4000-8000-{place:012x}",
            "nome_pessoa": f"Hermenegilda {account}",
            "tipo_pessoa": "PESSOA" if len(document) == len(PERSON) else "EMPRESA",
            "numero_documento": document,
            **others,
        }
        for place, document in enumerate(documents)
    ]
    laudo.prints(
        "import", "-", "--account", str(account), "--format", "ndjson", stdin="\n".join(map(json.dumps, lines))
    )


@pytest.fixture
def three(laudo: Shell) -> Shell:
    """An organization with three accounts, and another one, all of which know a person; two know a company."""
    for name in ("Filial", "Outra"):
        laudo.prints("account", "create", name, "--organization", "1")
    laudo.prints("organization", "create", "Vizinha")
    for account in (1, 2, 3, 4):
        reports(laudo, account, PERSON, PERSON, "11144477735", *[COMPANY][: account % 2])
    return laudo


def test_a_person_is_deleted_from_all_accounts_of_an_organization(three: Shell) -> None:
    given = f"\ufeff{PERSON}\r\n\n39053344705\n"
    assert three.prints("delete", "--organization", "1", "-", stdin=given) == "6 deleted, 1 absent, 0 rejected"
    assert three.prints("delete", "--organization", "1", "-", stdin=given) == "0 deleted, 2 absent, 0 rejected"
    assert three.prints("find", "--organization", "1", "-", stdin=PERSON) == ""
    assert len(three.prints("find", "--organization", "2", "-", stdin=PERSON).splitlines()) == 2
    assert three("verify").exit_code == 0


@pytest.mark.engines("sqlite", reason="a server's files are for its vacuum to clear")
def test_nothing_of_a_person_deleted_is_left_in_the_files(laudo: Shell) -> None:
    laudo.prints("account", "create", "Filial", "--organization", "1")
    for account in (1, 2):
        laudo.prints("import", str(ndjson(laudo.folder, 300)), "--account", str(account))
        reports(laudo, account, PERSON)
    held = [PERSON.encode(), b"Hermenegilda", b"hermenegilda"]
    assert all(each in Path(f"{laudo.folder}/laudo.db").read_bytes() for each in held)
    laudo.prints("delete", "--organization", "1", "-", stdin=PERSON)
    files = [file for file in laudo.folder.iterdir() if file.suffix != ".ndjson"]
    assert [file for file in files if any(each in file.read_bytes() for each in held)] == []


def test_a_company_is_deleted_by_its_cnpj_in_letters_of_any_case(laudo: Shell) -> None:
    reports(laudo, 1, "12ABC34501DE35")
    assert (
        laudo.prints("delete", "--organization", "1", "-", stdin="12abc34501de35") == "1 deleted, 0 absent, 0 rejected"
    )


def test_what_is_no_document_is_named_by_its_line_and_stops_nothing(three: Shell) -> None:
    result = three("delete", "--organization", "1", "-", stdin=f"529.982.247-25\n{COMPANY}\n{ABSENT}")
    assert (result.exit_code, result.stdout) == (1, "2 deleted, 0 absent, 2 rejected\n")
    assert result.stderr == "line 1: not a CPF or CNPJ without mask\nline 3: not a CPF or CNPJ without mask\n"


def test_what_is_deleted_is_said_when_the_rest_of_a_document_cannot_be(
    three: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "MOST", 4)
    delete, calls = Removal._delete, iter((True, False))

    def breaking(self: Removal, connection: Connection, went: dict[Owner, list[Row]]) -> None:
        if not next(calls):
            raise StoreError("the store is broken")
        delete(self, connection, went)

    monkeypatch.setattr(Removal, "_delete", breaking)
    result = three("delete", "--organization", "1", "-", stdin=PERSON)
    assert result.exit_code == 1
    said = "the store is broken; kept: 0 lines (4 deleted, 0 absent, 0 rejected); hint: run it again to finish"
    assert one_line(result) == f"error: {said}"
    monkeypatch.undo()
    assert three.prints("delete", "--organization", "1", "-", stdin=PERSON) == "2 deleted, 0 absent, 0 rejected"
    assert three("verify").exit_code == 0


# By age.


def test_what_has_not_changed_since_a_date_is_deleted_and_what_was_written_on_it_stays(laudo: Shell) -> None:
    laudo.prints("account", "create", "Filial", "--organization", "1")
    for account in (1, 2):
        reports(laudo, account, PERSON, atualizado_em="2021-01-01T00:00:00.000Z")
        reports(laudo, account, "11144477735", PERSON, atualizado_em="2020-12-31T23:59:59.999Z")
    assert laudo.prints("delete", "--account", "2", "--before", "2021-01-01") == "1 deleted"
    assert laudo.prints("delete", "--organization", "1", "--before", "2021-01-01T00:00:00.001Z") == "3 deleted"
    assert laudo.prints("delete", "--organization", "1", "--before", "2021-01-01") == "0 deleted"
    assert laudo("verify").exit_code == 0


# Which of them.


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-"], "it takes --account or --organization"),
        (["--account", "1", "--organization", "1", "-"], "it takes --account or --organization"),
        (["--organization", "1"], "nothing says which reports"),
        (["--account", "1", "--before", "2021-01-01", ABSENT], "--before says which reports"),
        (["--organization", "1", PERSON], "documents are read from stdin, never given as arguments"),
        (["--organization", "9", "-"], "there is no organization 9"),
        (["--account", "9", "--before", "2021-01-01"], "there is no account 9"),
        (["--account", "1", "--before", ""], "it takes a date such as 2021-01-31"),
        (["--account", "1", "--before", "2990-01-01"], "it takes a date or an instant that has passed"),
    ],
)
def test_what_is_not_plainly_meant_deletes_nothing(laudo: Shell, words: list[str], said: str) -> None:
    reports(laudo, 1, PERSON)
    result = laudo("delete", *words, stdin=PERSON)
    assert result.exit_code == 2
    assert said in one_line(result)
    assert PERSON not in result.stderr
    assert len(laudo.prints("find", "--organization", "1", "-", stdin=PERSON).splitlines()) == 1
