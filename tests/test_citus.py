"""`laudo citus` and the checks at start, on a Citus cluster or on a stand-in that keeps the metadata of Citus."""

import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import psycopg
import pytest

import cluster
from cluster import Cluster
from effort import Counting
from factories import Store, contents
from laudo.core.sql import Statement
from laudo.server import citus, migrations
from laudo.server.citus import DISTRIBUTED, REFERENCE
from laudo.server.database import StoreError
from laudo.server.stores import open_store
from shell import Shell, ndjson, one_line
from strategies import many

# All tests run in one worker, so that a cluster is started only once.
pytestmark = pytest.mark.xdist_group("cluster")

DONE: Final = "the tables are distributed as planned\n"
FIRST: Final = ("SET LOCAL citus.multi_shard_modify_mode = 'sequential'", "SET LOCAL search_path = public")
BY_TABLE: Final = [
    *(f"SELECT create_reference_table('{table}')" for table in REFERENCE),
    "SELECT create_distributed_table('organizacao', 'id_organizacao', colocate_with => 'none')",
    *(
        f"SELECT create_distributed_table('{table}', 'id_organizacao', colocate_with => 'organizacao')"
        for table in DISTRIBUTED[1:]
    ),
]
COPIED: Final = [
    # In an empty store only these tables have rows.
    "SELECT truncate_local_data_after_distributing_table('heartbeat')",
    "SELECT truncate_local_data_after_distributing_table('migration')",
]


def last(url: str) -> str:
    return f"ALTER DATABASE {url.rpartition('/')[2]} SET plan_cache_mode = 'force_custom_plan'"


def script(*statements: str) -> str:
    return "".join(f"{statement};\n" for statement in statements)


def whole(url: str) -> str:
    return script(*FIRST, *BY_TABLE, *COPIED, last(url))


@pytest.fixture(scope="module")
def machines() -> Iterator[Cluster]:
    with cluster.started() as made:
        yield made


@pytest.fixture
def url(machines: Cluster) -> Iterator[str]:
    """A migrated store with Citus, none of whose tables is distributed."""
    yield (made := migrated(machines.joined()))
    machines.drop(made)


@pytest.fixture
def plain(machines: Cluster) -> Iterator[str]:
    """A migrated store without Citus."""
    yield (made := migrated(machines.bare()))
    machines.drop(made)


@pytest.fixture
def laudo(url: str, tmp_path: Path) -> Shell:
    return Shell(tmp_path, url)


def migrated(url: str) -> str:
    with closing(open_store(url, write=True)) as database:
        migrations.migrate(database)
    return url


def execute(url: str, *texts: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for text in texts:
            connection.execute(text.encode())


def check(url: str) -> None:
    with closing(open_store(url)) as database, database.snapshot() as connection:
        citus.check(connection)


def fault(url: str) -> str:
    """Return the error that the check at start raises."""
    with pytest.raises(StoreError) as raised:
        check(url)
    return str(raised.value)


def test_the_plan_is_sql_for_every_table_and_changes_nothing(laudo: Shell, url: str) -> None:
    for _ in range(2):
        result = laudo("citus", "plan")
        assert (result.exit_code, result.stdout, result.stderr) == (0, f"BEGIN;\n{whole(url)}COMMIT;\n", "")


def test_a_store_without_citus_has_the_same_plan(plain: str, tmp_path: Path) -> None:
    assert Shell(tmp_path, plain)("citus", "plan").stdout == f"BEGIN;\n{whole(plain)}COMMIT;\n"


def test_running_the_plan_by_hand_leaves_nothing_to_do(laudo: Shell, url: str) -> None:
    execute(url, *laudo("citus", "plan").stdout.split(";\n")[:-1])
    result = laudo("citus", "plan")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", DONE)
    check(url)


def test_apply_prints_its_statements_and_runs_them_once(laudo: Shell, url: str) -> None:
    assert laudo("citus", "apply").stdout == whole(url)
    check(url)
    assert laudo.prints("citus", "apply") == DONE.rstrip()


def test_apply_keeps_all_rows(laudo: Shell, url: str) -> None:
    with closing(open_store(url, write=True)) as database:
        store = Store(database, laudo.key_file)
        store.write(store.account(), many(50))
        before = contents(database)
        assert "SELECT truncate_local_data_after_distributing_table('relatorio')" in laudo.prints("citus", "apply")
        assert contents(database) == before
    laudo.prints("import", str(ndjson(laudo.folder, 50)), "--account", "1")
    assert laudo("verify").stderr == "nothing differs\n"


def test_apply_skips_tables_that_are_already_distributed(laudo: Shell, url: str) -> None:
    done = [each for each in BY_TABLE if re.search(r"_table\('(token|organizacao|conta)'", each)]
    assert len(done) == 3
    execute(url, *done)
    left = [each for each in BY_TABLE if each not in done]
    assert laudo("citus", "apply").stdout == script(*FIRST, *left, *COPIED, last(url))
    check(url)


def test_apply_distributes_all_or_nothing(laudo: Shell, url: str) -> None:
    execute(url, "CREATE UNIQUE INDEX more ON pessoa (cpf)")
    with closing(open_store(url, write=True)) as database, pytest.raises(psycopg.Error):
        citus.apply(database)
    assert laudo("citus", "plan").stdout == f"BEGIN;\n{whole(url)}COMMIT;\n"


def test_apply_without_citus_is_refused(plain: str, tmp_path: Path) -> None:
    result = Shell(tmp_path, plain)("citus", "apply")
    assert result.exit_code == 2
    assert one_line(result).startswith("error: the database has no Citus; hint: CREATE EXTENSION citus")


@pytest.mark.parametrize("word", ["plan", "apply"])
def test_citus_commands_refuse_a_sqlite_store(tmp_path: Path, word: str) -> None:
    laudo = Shell(tmp_path)
    laudo.prints("migrate")
    assert "a SQLite file stays on one machine" in one_line(laudo("citus", word))


@pytest.mark.parametrize("word", ["plan", "apply"])
def test_citus_commands_refuse_a_store_without_a_schema(machines: Cluster, tmp_path: Path, word: str) -> None:
    url = machines.joined()
    assert "run `laudo migrate`" in one_line(Shell(tmp_path, url)("citus", word))
    machines.drop(url)


@pytest.mark.parametrize("word", ["plan", "apply"])
def test_citus_commands_name_unknown_tables(laudo: Shell, url: str, word: str) -> None:
    execute(url, "CREATE TABLE more (id BIGINT)", "CREATE TABLE outro (id BIGINT)")
    assert "laudo does not know how to distribute more, outro" in one_line(laudo("citus", word))


def test_the_check_at_start_ignores_unknown_tables(laudo: Shell, url: str) -> None:
    laudo.prints("citus", "apply")
    execute(url, "CREATE TABLE more (id BIGINT)")
    check(url)


def test_a_later_migration_works_on_distributed_tables(laudo: Shell, url: str, tmp_path: Path) -> None:
    laudo.prints("citus", "apply")
    folder = tmp_path / "later"
    shutil.copytree(Path(migrations.__file__).parent / "postgres", folder)
    (folder / "9000_more.sql").write_text(
        "ALTER TABLE facet ADD COLUMN more BIGINT NOT NULL DEFAULT 7;"
        "CREATE INDEX more ON facet (id_organizacao, more);"
        "CREATE STATISTICS more_owner (dependencies) ON id_conta, more FROM facet"
    )
    (folder / "9001_more.concurrent.sql").write_text(
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS again ON facet (id_organizacao, id_conta, more);"
        "DROP INDEX CONCURRENTLY IF EXISTS more"
    )
    with closing(open_store(url, write=True)) as database:
        store = Store(database, laudo.key_file)
        store.write(store.account(), many(50))
        assert migrations.migrate(database, folder=folder) == ["9000_more.sql", "9001_more.concurrent.sql"]
        assert database.fetch(Statement("SELECT DISTINCT more FROM facet")) == [(7,)]
    check(url)


@pytest.mark.parametrize(
    ("statements", "lies", "planned"),
    [
        (
            ["SELECT create_distributed_table('pessoa', 'cpf', colocate_with => 'none')"],
            "pessoa distributed by cpf",
            "distributed by id_organizacao with organizacao",
        ),
        (
            [
                "SELECT create_distributed_table('organizacao', 'id_organizacao', colocate_with => 'none')",
                "SELECT create_distributed_table('pessoa', 'id_organizacao', colocate_with => 'none')",
            ],
            "pessoa distributed by id_organizacao",
            "distributed by id_organizacao with organizacao",
        ),
        (
            ["SELECT create_reference_table('pessoa')"],
            "pessoa whole on every machine",
            "distributed by id_organizacao with organizacao",
        ),
        (
            ["SELECT create_distributed_table('heartbeat', 'id', colocate_with => 'none')"],
            "heartbeat distributed by id",
            "whole on every machine",
        ),
        (
            ["SELECT citus_add_local_table_to_metadata('token')"],
            "token on one machine",
            "whole on every machine",
        ),
        (
            ["SELECT create_reference_table('organizacao')"],
            "organizacao whole on every machine",
            "distributed by id_organizacao with organizacao",
        ),
    ],
)
def test_a_wrongly_distributed_table_is_named_with_the_remedy(
    laudo: Shell, url: str, statements: list[str], lies: str, planned: str
) -> None:
    execute(url, *statements)
    undoing = f"SELECT undistribute_table('{lies.partition(' ')[0]}', cascade_via_foreign_keys => true)"
    said = f"Citus has {lies}, but it should be {planned}; hint: run {undoing}, then `laudo citus apply`"
    assert fault(url) == said
    assert one_line(laudo("citus", "plan")) == one_line(laudo("citus", "apply")) == f"error: {said}"
    execute(url, undoing)
    laudo.prints("citus", "apply")
    check(url)


def test_an_undistributed_store_is_refused_at_start(laudo: Shell, url: str) -> None:
    said = (
        f"Citus is installed, but has not distributed {', '.join([*REFERENCE, *DISTRIBUTED])}; run `laudo citus apply`"
    )
    assert fault(url) == said
    result = laudo("serve")
    assert result.exit_code == 2
    assert one_line(result) == f"error: {said}"


def test_a_wrong_plan_cache_mode_is_refused_at_start(laudo: Shell, url: str) -> None:
    laudo.prints("citus", "apply")
    execute(url, f"ALTER DATABASE {url.rpartition('/')[2]} RESET plan_cache_mode")
    said = "with Citus, plan_cache_mode must be force_custom_plan, but is auto; run `laudo citus apply`"
    assert fault(url) == said
    assert one_line(laudo("serve")) == f"error: {said}"
    assert laudo("citus", "apply").stdout == script(last(url))
    check(url)


def test_a_too_old_citus_is_refused_at_start(laudo: Shell, url: str) -> None:
    laudo.prints("citus", "apply")
    execute(url, "UPDATE pg_extension SET extversion = '11.1-1' WHERE extname = 'citus'")
    assert fault(url).startswith("Citus 11.1-1 is too old: laudo needs 11.2; ")
    with closing(open_store(url)) as database, pytest.raises(StoreError, match="too old"):
        citus.plan(database)


def test_the_check_at_start_runs_one_statement_without_citus(plain: str) -> None:
    with closing(Counting(open_store(plain))) as database, database.snapshot() as connection:
        citus.check(connection)
        assert len(database.statements) == 1


def test_the_check_at_start_runs_no_statement_on_sqlite(tmp_path: Path) -> None:
    Shell(tmp_path).prints("migrate")
    with closing(Counting(open_store(f"sqlite:///{tmp_path}/laudo.db"))) as database, database.snapshot() as connection:
        citus.check(connection)
        assert database.statements == []
