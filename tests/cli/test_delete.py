import gzip
import json
from itertools import islice

from laudo import demo
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
