import json
import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from laudo.server.database import StoreError
from laudo.server.ingest import uncounted
from laudo.server.ingest.verify import recount
from laudo.server.stores import open_store
from shell import Shell, ndjson, one_line

OPERATING = Path(__file__).parents[2] / "docs" / "operating.md"


def damage(laudo: Shell, text: str) -> None:
    with closing(open_store(laudo.store, write=True)) as database, database.transaction() as connection:
        connection.run_script(text)


def test_a_clean_store_has_no_differences(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 50)), "--account", "1")
    result = laudo("verify")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "nothing differs\n")
    assert laudo.lists("verify") == []


def test_differences_are_listed_and_exit_with_1(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 50)), "--account", "1")
    damage(laudo, "UPDATE bucket SET total = 49 WHERE id_conta = 1 AND axis = 2 AND parent = 0")
    result = laudo("verify")
    assert result.exit_code == 1
    assert result.stdout == (
        "organization 1, account 1, axis 2 (relatorio by numero), bucket 1: total of the bucket is 49, counted 50\n"
    )
    assert result.stderr == "1 difference; hint: `laudo verify --repair` rewrites what differs\n"
    [difference] = json.loads(laudo("verify", "--json").stdout)
    assert {name: value for name, value in difference.items() if value is not None} == {
        "id_organizacao": 1,
        "id_conta": 1,
        "what": "total of the bucket",
        "axis": 2,
        "bucket": 1,
        "stored": 49,
        "counted": 50,
    }


def test_repair_checks_its_result_in_a_second_pass(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 50)), "--account", "1")
    damage(laudo, "UPDATE facet SET total = total + 1; DELETE FROM pessoa WHERE cpf = (SELECT min(cpf) FROM pessoa)")
    result = laudo("verify", "--repair")
    assert result.exit_code == 0, result.output
    assert "organization 1: persons missing: 1\n" in result.stdout
    assert result.stderr.endswith("differences, repaired; a second pass found none\n")
    again = laudo("verify", "--repair")
    assert (again.exit_code, again.stdout, again.stderr) == (0, "", "nothing differs\n")


@pytest.mark.parametrize("interrupted", ["conta", "organizacao"])
def test_an_unfinished_copy_is_to_be_finished_rather_than_repaired(
    laudo: Shell, monkeypatch: pytest.MonkeyPatch, interrupted: str
) -> None:
    def interrupt(*_: object) -> None:
        raise StoreError("the disk is full")

    laudo.prints("import", str(ndjson(laudo.folder, 50)), "--account", "1")
    target = f"sqlite:///{laudo.folder}/copy.db"
    laudo.prints("migrate", "--store", target)
    copy = ("copy", "--from", laudo.store, "--to", target)
    with monkeypatch.context() as patched:
        patched.setattr(recount, interrupted, interrupt)
        assert laudo(*copy).exit_code == 1
    found = laudo("verify", "--store", target)
    assert found.exit_code == 1
    assert "was never counted: a copy was not finished, or its row was written anew\n" in found.stdout
    assert found.stderr.endswith(f" differences; hint: {uncounted.HINT}\n")
    assert uncounted.HINT.startswith("finish the copy that made it; if you cannot, `laudo verify --repair` there")
    shutil.copy(laudo.folder / "copy.db", laudo.folder / "repaired.db")
    repaired = laudo("verify", "--repair", "--store", f"sqlite:///{laudo.folder}/repaired.db")
    warning = "if a copy was not finished here, perhaps not all reports have come"
    assert (repaired.exit_code, repaired.stderr.endswith(f"; a second pass found none; {warning}\n")) == (0, True)
    assert laudo(*copy).exit_code == 0
    assert laudo("verify", "--store", target).stderr == "nothing differs\n"


@pytest.mark.engines("sqlite", reason="PostgreSQL maintains its index of words by itself")
def test_a_damaged_index_of_words_is_reported_and_repaired(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 50)), "--account", "1")
    damage(laudo, "UPDATE pessoa_words_data SET block = zeroblob(9) WHERE id > 10")
    line = "organization 1: the index of words is damaged\n"
    result = laudo("verify")
    assert (result.exit_code, result.stdout) == (1, line)
    assert result.stderr == "1 difference; hint: `laudo verify --repair` rewrites what differs\n"
    result = laudo("verify", "--repair")
    assert (result.exit_code, result.stdout) == (0, line)
    assert result.stderr == "1 difference, repaired; a second pass found none\n"
    assert laudo("verify").stderr == "nothing differs\n"


GONE = """
DELETE FROM token; DELETE FROM usuario; DELETE FROM conta WHERE id_conta = 1;
DELETE FROM organizacao WHERE id_organizacao = 1
"""
ORPHANS = "organization 1, account 1: rows of relatorio of an account that does not exist: 50"
REMEDY = "write the missing row of the account again, or delete its reports, either by SQL: docs/operating.md, Verify"


@pytest.mark.engines("sqlite", reason="PostgreSQL maintains its index of words by itself")
@pytest.mark.parametrize("table", ["data", "idx", "docsize", "config"])
def test_an_import_with_a_damaged_index_of_words_recommends_verify(laudo: Shell, table: str) -> None:
    file = ndjson(laudo.folder, 5)
    damage(laudo, f"DROP TABLE pessoa_words_{table}")
    assert "laudo verify" in one_line(laudo("import", str(file), "--account", "1"))
    laudo("verify", "--repair")
    assert laudo.prints("import", str(file), "--account", "1").startswith("5 inserted")


@pytest.mark.parametrize("change", ["DELETE FROM bucket WHERE parent > 0", "UPDATE bucket SET total = 5000"])
def test_an_import_that_meets_damaged_buckets_recommends_verify(laudo: Shell, change: str) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 50)), "--account", "1")
    damage(laudo, change)
    file = ndjson(laudo.folder, 60)
    assert "; `laudo verify --repair` repairs it" in one_line(laudo("import", str(file), "--account", "1"))
    laudo("verify", "--repair")
    assert laudo.prints("import", str(file), "--account", "1").startswith("10 inserted")


def test_reports_of_a_missing_account_get_a_remedy_instead_of_a_repair(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 50)), "--account", "1")
    damage(laudo, GONE)
    result = laudo("verify")
    assert (result.exit_code, result.stdout) == (1, ORPHANS + "\n")
    assert result.stderr == f"1 difference; hint: {REMEDY}\n"
    [difference] = json.loads(laudo("verify", "--json").stdout)
    assert difference["remedy"] == REMEDY
    result = laudo("verify", "--repair")
    assert (result.exit_code, result.stdout) == (1, ORPHANS + "\n")
    assert result.stderr == (
        f"still differs: {ORPHANS}\n1 difference, not repaired; a second pass found 1 difference; hint: {REMEDY}\n"
    )


def test_the_documented_statements_bring_a_missing_account_back(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 50)), "--account", "1")
    damage(laudo, GONE)
    laudo("verify", "--repair")
    [statements] = re.findall(r"```sql\n(\s*INSERT INTO organizacao .*?)```", OPERATING.read_text(), re.DOTALL)
    damage(laudo, statements)
    warning = "if a copy was not finished here, perhaps not all reports have come"
    assert laudo("verify", "--repair").stderr == f"4 differences, repaired; a second pass found none; {warning}\n"
    laudo.prints("user", "create", "--account", "1", "--email", "a@example.com", "--name", "A")
    assert laudo.prints("import", str(ndjson(laudo.folder, 60)), "--account", "1").startswith("10 inserted")


def test_only_rewritten_differences_count_as_repaired(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 50)), "--account", "1")
    laudo.prints("organization", "create", "Outra")
    laudo.prints("import", str(ndjson(laudo.folder, 20)), "--account", "2")
    damage(laudo, GONE)
    damage(laudo, "UPDATE facet SET total = total + 1 WHERE id_conta = 2 AND facet = 1")
    result = laudo("verify")
    assert result.stderr == f"2 differences; hint: `laudo verify --repair` rewrites what differs; hint: {REMEDY}\n"
    result = laudo("verify", "--repair")
    assert result.exit_code == 1
    assert result.stderr == (
        f"still differs: {ORPHANS}\n2 differences, 1 of them repaired; "
        f"a second pass found 1 difference; hint: {REMEDY}\n"
    )


def test_a_lost_facet_does_not_stop_the_repair_of_other_accounts(laudo: Shell) -> None:
    laudo.prints("import", str(ndjson(laudo.folder, 50)), "--account", "1")
    laudo.prints("organization", "create", "Outra")
    laudo.prints("import", str(ndjson(laudo.folder, 20)), "--account", "2")
    damage(laudo, "DELETE FROM facet WHERE id_conta = 1 AND facet = 1")
    damage(laudo, "UPDATE relatorio SET item = '' WHERE id_conta = 1 AND facet = 1")
    damage(laudo, "UPDATE facet SET total = total + 1 WHERE id_conta = 2 AND facet = 1")
    result = laudo("verify", "--repair")
    [first, second] = result.stdout.splitlines()
    assert (result.exit_code, second.partition(":")[0]) == (1, "organization 2, account 2, facet 1")
    assert result.stderr == (
        f"still differs: {first}\n2 differences, 1 of them repaired; a second pass found 1 difference; "
        "hint: restore from a backup the facets whose values no item has\n"
    )


def test_verify_without_a_store_exits_with_2(empty: Shell) -> None:
    result = empty("verify", "--repair")
    assert result.exit_code == 2
    assert "there is no store" in one_line(result)
