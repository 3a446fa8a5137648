import gzip
import json
import subprocess
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from awaiting import until
from laudo import demo
from laudo.cli.deletes import BATCH
from laudo.core.sql import Statement
from laudo.server.stores import open_store
from shell import Shell, ndjson, one_line

ABSENT = "0f8fad5b-d9cb-469f-a165-70867728950e"


def numeros(count: int) -> list[str]:
    """Return the numeros of the first reports that `ndjson` writes."""
    return [str(json.loads(line)["numero"]) for line in demo.ndjson_lines(islice(demo.relatorios(5000), count))]


def test_reports_are_deleted_by_their_uuids(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 5)), "--account", "1")
    first, second, third, *_ = numeros(5)
    assert laudo.prints("delete", "--account", "1", first.upper(), second) == "2 deleted, 0 absent, 0 rejected"
    assert laudo.prints("delete", "--account", "1", second, third, ABSENT) == "1 deleted, 2 absent, 0 rejected"
    assert laudo("verify").exit_code == 0


def test_uuids_are_read_from_stdin_one_per_line(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 2500)), "--account", "1")
    lines = "\ufeff" + "\r\n".join(numeros(2400)) + "\r\n\r\n" + ABSENT
    assert laudo.prints("delete", "--account", "1", "-", stdin=lines) == "2400 deleted, 1 absent, 0 rejected"
    assert laudo.prints("delete", "--account", "1", "-", stdin=lines) == "0 deleted, 2401 absent, 0 rejected"
    assert laudo("verify").exit_code == 0


@pytest.mark.engines("sqlite", reason="PostgreSQL clears its files by its own vacuum")
@pytest.mark.parametrize("count", [1, BATCH])
def test_deleted_data_leaves_the_files_while_stdin_is_still_open(laudo: Shell, count: int) -> None:
    secret = {**json.loads(next(demo.ndjson_lines(demo.relatorios(1)))), "nome_pessoa": "Hermenegilda Kwyzbrrt"}
    files = [Path(f"{laudo.folder}/laudo.db{end}") for end in ("", "-wal")]
    with closing(open_store(laudo.store)) as reading:
        laudo.prints("import", "-", "--account", "1", stdin=json.dumps(secret))
        assert any(b"Kwyzbrrt" in file.read_bytes() for file in files)
        with laudo.starts("delete", "--account", "1", "-", stdin=subprocess.PIPE) as process:
            assert process.stdin
            process.stdin.writelines(f"{numero}\n".encode() for numero in [secret["numero"]] * count)
            process.stdin.flush()
            until(lambda: not any(b"Kwyzbrrt" in file.read_bytes() for file in files))
            assert reading.fetch(Statement("SELECT count(*) FROM relatorio")) == [(0,)]
            process.stdin.close()
            assert process.wait(20) == 0


@pytest.mark.engines("sqlite", reason="PostgreSQL clears its files by its own vacuum")
def test_vacuum_shrinks_the_file_even_if_some_lines_are_rejected(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 2500)), "--account", "1")
    before = Path(f"{laudo.folder}/laudo.db").stat().st_size
    lines = "\n".join([*numeros(2400), "52998224725"])
    result = laudo("delete", "--account", "1", "--vacuum", "-", stdin=lines)
    assert (result.exit_code, result.stdout) == (1, "2400 deleted, 0 absent, 1 rejected\n")
    assert result.stderr == "line 2401: not a UUID\n"
    assert Path(f"{laudo.folder}/laudo.db").stat().st_size < before / 2
    assert laudo("verify").exit_code == 0


def test_invalid_uuids_are_reported_by_line_and_the_rest_is_deleted(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 5)), "--account", "1")
    [first] = numeros(1)
    lines = b"\n".join([b"", b"52998224725", b"\xe7", first.encode(), b"x" * 100_000, f"{first}x".encode()])
    result = laudo("delete", "--account", "1", "-", stdin=lines)
    assert (result.exit_code, result.stdout) == (1, "1 deleted, 0 absent, 4 rejected\n")
    assert result.stderr == "line 2: not a UUID\nline 3: not a UUID\nline 5: longer than 64 KiB\nline 6: not a UUID\n"


def test_a_truncated_gzip_deletes_its_readable_lines_and_reports_the_cut(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 500)), "--account", "1")
    cut = gzip.compress("\n".join(numeros(500)).encode())[:5000]
    result = laudo("delete", "--account", "1", "-", stdin=cut)
    deleted = int(result.stdout.removesuffix(" deleted, 0 absent, 1 rejected\n"))
    assert 0 < deleted < 500
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith(f"line {deleted + 1}: truncated gzip: ")
    assert result.stderr.endswith("nothing from this line on was read\n")


def test_an_invalid_argument_is_reported_by_its_position(laudo: Shell) -> None:
    result = laudo("delete", "--account", "1", ABSENT, "52998224725")
    assert (result.exit_code, result.stdout) == (1, "0 deleted, 1 absent, 1 rejected\n")
    assert result.stderr == "argument 2: not a UUID\n"


def test_an_argument_of_two_lines_is_one_argument(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 2)), "--account", "1")
    first, second = numeros(2)
    result = laudo("delete", "--account", "1", f"{first}\n{second}", "no", ABSENT)
    assert (result.exit_code, result.stdout) == (1, "0 deleted, 1 absent, 2 rejected\n")
    assert result.stderr == "argument 1: not a UUID\nargument 2: not a UUID\n"


def test_no_valid_uuid_or_an_unknown_account_exits_with_2(laudo: Shell) -> None:
    result = laudo("delete", "--account", "1", "52998224725")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, "error: no argument is a UUID")
    empty = laudo("delete", "--account", "1", "-")
    assert (empty.exit_code, one_line(empty)) == (2, "error: there is no line with a UUID")
    foreign = laudo("delete", "--account", "9", ABSENT)
    assert foreign.exit_code == 2
    assert "there is no account 9" in one_line(foreign)


def test_reports_of_other_accounts_are_kept(laudo: Shell) -> None:
    laudo.prints("account", "create", "Filial", "--organization", "1")
    for account in ("1", "2"):
        laudo.prints("import", str(ndjson(laudo.folder, 5)), "--account", account)
    assert laudo.prints("delete", "--account", "2", *numeros(5)) == "5 deleted, 0 absent, 0 rejected"
    assert laudo.prints("delete", "--account", "1", *numeros(5)) == "5 deleted, 0 absent, 0 rejected"
    assert laudo("verify").exit_code == 0
