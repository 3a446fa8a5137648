import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final

import apsw
import psycopg
import pytest

import postgres_server
from awaiting import until
from factories import Account, Store
from laudo.core import axes
from laudo.core.sql import Statement
from laudo.core.sql.writes import BUCKET, FACET, PESSOA, RELATORIO, TALLY, WORD
from laudo.server import accounts, migrations, roles, schema
from laudo.server.database import Database, StoreError, Unavailable
from laudo.server.ingest.changes import lock_writers
from laudo.server.ingest.claims import CPF_LENGTH
from laudo.server.ingest.verify import verify
from laudo.server.sqlite.session import Session
from laudo.server.sqlite.transaction import SqliteConnection
from laudo.server.stores import open_store
from postgres_server import Server
from strategies import many

FIRST: Final = """
CREATE TABLE migration (name TEXT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL);
CREATE TABLE item (number BIGINT NOT NULL);
"""
MORE: Final = "CREATE TABLE more (number BIGINT); INSERT INTO item VALUES (1); INSERT INTO item VALUES (2)"
COLUMN: Final = "ALTER TABLE item ADD COLUMN word TEXT"
INDEX: Final = """
-- Two statements; the first is commented.
CREATE INDEX CONCURRENTLY IF NOT EXISTS item_number ON item (number);
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS more_number ON more (number);
"""
BEFORE: Final = {"0001_first.sql": FIRST, "0002_more.sql": MORE}

Opening = Callable[[], Database]
"""Opens the test's store; each call gives another connection to it."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server.start() as started:
        yield started


@pytest.fixture
def database_name(server: Server) -> str:
    name = f"laudo{server.execute('SELECT count(*) FROM pg_database')[0][0]}"
    server.execute(f"CREATE DATABASE {name}")
    return name


@pytest.fixture
def on_postgres(server: Server, database_name: str) -> Iterator[Opening]:
    opened: list[Database] = []

    def new() -> Database:
        opened.append(open_store(server.url(database_name), write=True))
        return opened[-1]

    yield new
    for database in opened:
        database.close()


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Opening]:
    opened: list[Database] = []

    def new() -> Database:
        opened.append(open_store(f"sqlite:///{tmp_path}/laudo.db", write=True))
        return opened[-1]

    yield new
    for database in opened:
        database.close()


@pytest.fixture(params=["sqlite", "postgres"])
def opening(request: pytest.FixtureRequest) -> Opening:
    found: Opening = request.getfixturevalue(f"on_{request.param}")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "migrations"
    made.mkdir()
    return made


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def rows(database: Database, text: str) -> list[tuple[Any, ...]]:
    return database.fetch(Statement(text))


# On both engines.


def test_migrations_are_applied_once_in_numeric_order(opening: Opening, folder: Path) -> None:
    database = opening()
    write(folder, {"0010_column.sql": COLUMN, **BEFORE, "notes.txt": "no migration"})
    assert migrations.migrate(database, folder=folder) == ["0001_first.sql", "0002_more.sql", "0010_column.sql"]
    assert migrations.migrate(database, folder=folder) == []
    assert rows(database, "SELECT number, word FROM item ORDER BY number") == [(1, None), (2, None)]


def test_comments_and_strings_may_contain_semicolons_and_quotes(opening: Opening, folder: Path) -> None:
    database = opening()
    more = """
        -- It's one; or two.
        INSERT INTO item VALUES (3);  -- another's
        ALTER TABLE item ADD COLUMN word TEXT DEFAULT 'it''s -- no comment; ';
        -- the last;
    """
    write(folder, BEFORE | {"0003_more.sql": more})
    migrations.migrate(database, folder=folder)
    assert rows(database, "SELECT number, word FROM item WHERE number > 2") == [(3, "it's -- no comment; ")]


def test_a_later_version_applies_only_new_migrations(opening: Opening, folder: Path) -> None:
    database = opening()
    write(folder, BEFORE)
    migrations.migrate(database, folder=folder)
    write(folder, {"0003_column.sql": COLUMN})
    assert migrations.migrate(database, folder=folder) == ["0003_column.sql"]
    assert rows(database, "SELECT count(*) FROM item") == [(2,)]


def test_concurrent_migrations_apply_each_file_once(opening: Opening, folder: Path) -> None:
    write(folder, BEFORE | {f"{number:04}_row.sql": f"INSERT INTO item VALUES ({number})" for number in range(3, 13)})
    start = threading.Barrier(4)

    def run(database: Database) -> list[str]:
        start.wait()
        return migrations.migrate(database, folder=folder)

    with ThreadPoolExecutor(4) as threads:
        applied = list(threads.map(run, [opening() for _ in range(4)]))
    assert sorted(chain.from_iterable(applied)) == sorted(file.name for file in folder.iterdir())
    assert rows(opening(), "SELECT number FROM item ORDER BY number") == [(number,) for number in range(1, 13)]


def test_a_failed_migration_leaves_nothing_and_can_be_repeated_once_fixed(opening: Opening, folder: Path) -> None:
    database = opening()
    write(
        folder, BEFORE | {"0003_bad.sql": f"{COLUMN}; DELETE FROM item; SELECT nothing FROM item", "0004_late.sql": ""}
    )
    with pytest.raises((StoreError, apsw.Error, psycopg.Error)):
        migrations.migrate(database, folder=folder)
    assert rows(database, "SELECT * FROM item ORDER BY number") == [(1,), (2,)]
    assert rows(database, "SELECT name FROM migration ORDER BY name") == [("0001_first.sql",), ("0002_more.sql",)]
    write(folder, {"0003_bad.sql": COLUMN})
    assert migrations.migrate(database, folder=folder) == ["0003_bad.sql", "0004_late.sql"]


def test_a_store_is_current_once_all_migrations_are_applied(opening: Opening) -> None:
    database = opening()
    with database.snapshot() as connection:
        assert not schema.is_current(connection)
        with pytest.raises(StoreError, match="run `laudo migrate`"):
            schema.require_current(connection)
    migrations.migrate(database)
    with database.snapshot() as connection:
        assert schema.is_current(connection)


@pytest.mark.parametrize(
    "text",
    ["SELECT total FROM word", "SELECT copied FROM conta", "SELECT cpf FROM pessoa INDEXED BY pessoa_cpf_recency"],
)
def test_a_statement_that_needs_a_later_migration_names_the_command(
    on_sqlite: Opening, folder: Path, text: str
) -> None:
    """A service may read a store that is not migrated yet: it answers 503 until then."""
    database = on_sqlite()
    first = schema.files(schema.folder(database.dialect))[0]
    write(folder, {first.name: first.read_text(encoding="utf-8")})
    migrations.migrate(database, folder=folder)
    with pytest.raises(Unavailable, match="run `laudo migrate`"):
        rows(database, text)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_migration_files_are_numbered_without_duplicates(engine: str) -> None:
    names = [file.name for file in (Path(migrations.__file__).parent / engine).iterdir()]
    concurrent = r"(\.concurrent)?" if engine == "postgres" else ""
    assert names
    assert all(re.fullmatch(rf"\d{{4}}_[a-z_]+{concurrent}\.sql", name) for name in names)
    assert len({name[:4] for name in names}) == len(names)


def test_both_engines_have_the_same_tables(on_sqlite: Opening, on_postgres: Opening) -> None:
    """Only SQLite has a column with a person's id, which is the row's number, and the table of words."""
    sqlite, postgres = on_sqlite(), on_postgres()
    for database in (sqlite, postgres):
        migrations.migrate(database)
    described = {
        row
        for row in rows(sqlite, _SQLITE_COLUMNS)
        if not row[0].startswith("pessoa_words") and row[:2] != ("pessoa", "id")
    }
    found = {row for row in rows(postgres, _POSTGRES_COLUMNS) if row[0] != "heartbeat"}
    assert {row[:4] for row in found} == {row[:4] for row in described}
    types = {"INTEGER": "bigint", "BLOB": "bytea", "TEXT": "text"}
    assert {(*row[:2], row[4]) for row in found} == {(*row[:2], types[row[4]]) for row in described}


def test_the_tables_match_those_that_writers_expect(on_postgres: Opening) -> None:
    database = on_postgres()
    migrations.migrate(database)
    found = rows(database, _POSTGRES_COLUMNS)
    tables = (FACET, BUCKET, TALLY, RELATORIO, PESSOA, WORD)
    for table in tables:
        assert {row[1]: row[4] for row in found if row[0] == table.name} == table.types
    keys = dict(rows(database, _POSTGRES_KEYS))
    assert all(keys[table.name] == ",".join(table.key) for table in tables)


def test_both_engines_have_the_same_indexes(on_sqlite: Opening, on_postgres: Opening) -> None:
    """SQLite numbers rows of its own, and finds an organization by that number."""
    sqlite, postgres = on_sqlite(), on_postgres()
    for database in (sqlite, postgres):
        migrations.migrate(database)
    found = set(rows(postgres, _POSTGRES_INDEXES))
    assert {(table, *rest) for table, _, *rest in rows(sqlite, _SQLITE_INDEXES)} == found - {
        ("organizacao", 1, "id_organizacao"),
        ("heartbeat", 1, "id"),
    }


def test_indexes_have_the_columns_that_their_axes_promise(on_sqlite: Opening) -> None:
    database = on_sqlite()
    migrations.migrate(database)
    found = {(table, name): columns.split(",") for table, name, _, columns in rows(database, _SQLITE_INDEXES)}
    for axis in (*axes.OF_RELATORIO, *axes.OF_PESSOA):
        owner = ["id_organizacao", "id_conta"] if axis.faceted else ["id_organizacao"]
        begin, also = [*owner, *axis.names], axis.covered | ({"facet"} if axis.faceted and axis.covers_facet else set())
        assert found[axis.table, axis.index][: len(begin)] == begin
        assert also <= set(found[axis.table, axis.index])
        if axis.facet_index:
            by_facet = [*owner, "facet", *axis.names]
            assert found[axis.table, axis.facet_index][: len(by_facet)] == by_facet
            assert "recency" in found[axis.table, axis.facet_index]
        if axis.gathering:
            assert {"facet", *axis.names} <= set(found[axis.table, axis.gathering])


_SQLITE_INDEXES: Final = """
SELECT m.name, l.name, l."unique", (
    SELECT group_concat(name ORDER BY seqno) FROM pragma_index_info(l.name)
)
FROM sqlite_schema AS m JOIN pragma_index_list(m.name) AS l WHERE m.type = 'table' AND m.name NOT LIKE 'pessoa_words%'
"""
_POSTGRES_INDEXES: Final = """
SELECT indrelid::regclass::text, indisunique::int, (
    SELECT string_agg(attname::text, ',' ORDER BY array_position(indkey::int[], attnum::int))
    FROM pg_attribute WHERE attrelid = indrelid AND attnum = ANY (indkey)
)
FROM pg_index JOIN pg_class ON oid = indrelid WHERE relnamespace = 'public'::regnamespace AND indexprs IS NULL
"""
_SQLITE_COLUMNS: Final = """
SELECT m.name, c.name, c."notnull", coalesce(c.dflt_value, ''), c.type
FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'
"""
_POSTGRES_COLUMNS: Final = """
SELECT relname::text, attname::text, attnotnull::int, coalesce(replace(pg_get_expr(adbin, adrelid), '::text', ''), ''),
       format_type(atttypid, atttypmod)
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0
"""
_POSTGRES_KEYS: Final = """
SELECT conrelid::regclass::text, string_agg(attname::text, ',' ORDER BY array_position(conkey, attnum))
FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
WHERE contype = 'p' GROUP BY conrelid
"""

# Other applications' tables, and the schemas of PostgreSQL.


def test_another_applications_table_is_reported_and_left_alone(
    server: Server, database_name: str, on_postgres: Opening
) -> None:
    server.execute("CREATE TABLE token (secret text)", database=database_name)
    with pytest.raises(StoreError, match="a database or schema of its own"):
        migrations.migrate(on_postgres())
    assert server.execute(
        "SELECT relname::text FROM pg_class WHERE relname IN ('token', 'migration')", database=database_name
    ) == [("token",)]


def test_another_applications_migration_table_is_reported(opening: Opening) -> None:
    database = opening()
    with database.transaction() as connection:
        connection.run_script("CREATE TABLE migration (version varchar(180) PRIMARY KEY, apply_time integer)")
    with pytest.raises(StoreError, match=r"in the way; give laudo a .* of its own"):
        migrations.migrate(database)
    with database.snapshot() as connection:
        assert not schema.is_current(connection)


@pytest.mark.parametrize(
    "script", ["CREATE TABLE notes (text)", "CREATE TABLE migration (name); INSERT INTO migration VALUES ('first')"]
)
def test_another_applications_file_is_reported_and_left_alone(tmp_path: Path, script: str) -> None:
    path = tmp_path / "theirs.db"
    apsw.Connection(str(path)).execute(script).fetchall()
    before = path.read_bytes()
    database = open_store(f"sqlite:///{path}", write=True)
    with closing(database), pytest.raises(StoreError, match="a file of its own"):
        migrations.migrate(database)
    assert path.read_bytes() == before


def test_a_search_path_to_a_missing_schema_is_reported(server: Server, database_name: str) -> None:
    url = f"{server.url(database_name)}?options=-c%20search_path%3Dnowhere"
    with closing(open_store(url, write=True)) as database, pytest.raises(StoreError, match="search_path") as told:
        migrations.migrate(database)
    assert "laudo migrate" not in str(told.value)


@pytest.fixture
def quoted_schema(server: Server, database_name: str) -> Iterator[str]:
    """Make a store in a schema that only the role's search_path names; returns an option that names it."""
    server.execute('CREATE SCHEMA "Lau do"', database=database_name)
    settings = f"ALTER ROLE CURRENT_USER IN DATABASE {database_name}"
    server.execute(f'{settings} SET search_path = "Lau do"')
    with closing(open_store(server.url(database_name), write=True)) as database:
        assert migrations.migrate(database)
        roles.grant(database)
    server.execute(f"{settings} RESET search_path")
    yield "?options=-c%20search_path%3D%22Lau%5C%20do%22"
    server.execute(
        f"DROP OWNED BY {', '.join(roles.ROLES)} CASCADE; DROP ROLE {', '.join(roles.ROLES)}", database=database_name
    )


def test_the_name_of_a_stores_schema_may_need_quotes(server: Server, database_name: str, quoted_schema: str) -> None:
    with closing(open_store(server.url(database_name) + quoted_schema, write=True)) as database:
        assert migrations.migrate(database) == []
        assert roles.grant(database) == []


def test_a_second_store_is_created_only_if_the_url_names_its_schema(
    server: Server, database_name: str, quoted_schema: str
) -> None:
    with closing(open_store(server.url(database_name), write=True)) as database, pytest.raises(StoreError) as told:
        migrations.migrate(database)
    assert str(told.value) == (
        'the database has a store in the schema "Lau do", but search_path leads to public; give the URL '
        f"{quoted_schema[1:]} to use that one, options=-c%20search_path%3Dpublic to create another"
    )
    for options, is_made in ((quoted_schema, False), ("?options=-c%20search_path%3Dpublic", True), ("", False)):
        with closing(open_store(server.url(database_name) + options, write=True)) as database:
            assert bool(migrations.migrate(database)) is is_made


def test_a_schema_that_shadows_the_stores_schema_is_reported(server: Server, database_name: str) -> None:
    with closing(open_store(server.url(database_name), write=True)) as database:
        assert migrations.migrate(database)
    [(user,)] = server.execute("SELECT current_user::text", database=database_name)
    server.execute(f"CREATE SCHEMA {user}", database=database_name)
    database = open_store(server.url(database_name), write=True)
    with closing(database), pytest.raises(StoreError, match=f"in the schema public, but search_path leads to {user}; "):
        migrations.migrate(database)


def test_the_store_on_the_search_path_is_listed_first(server: Server, database_name: str, quoted_schema: str) -> None:
    here = "?options=-c%20search_path%3Dpublic"
    with closing(open_store(server.url(database_name) + here, write=True)) as database:
        assert migrations.migrate(database)
    [(user,)] = server.execute("SELECT current_user::text", database=database_name)
    server.execute(f"CREATE SCHEMA {user}", database=database_name)
    with closing(open_store(server.url(database_name), write=True)) as database, pytest.raises(StoreError) as told:
        migrations.migrate(database)
    assert str(told.value) == (
        f'the database has a store in the schema public and one in "Lau do", but search_path leads to {user}; give the '
        f"URL {here[1:]} or {quoted_schema[1:]} to use that one, options=-c%20search_path%3D{user} to create another"
    )


@pytest.mark.usefixtures("quoted_schema")
def test_a_store_in_an_inaccessible_schema_is_ignored(server: Server, database_name: str) -> None:
    user = f"of_{database_name}"
    server.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{server.password}'")
    server.execute(f"CREATE SCHEMA AUTHORIZATION {user}", database=database_name)
    with closing(open_store(server.url(database_name, user=user), write=True)) as database:
        assert migrations.migrate(database)


def test_a_missing_right_to_create_tables_is_named(server: Server, database_name: str) -> None:
    user = f"of_{database_name}"
    server.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{server.password}'")
    server.execute("REVOKE CREATE ON SCHEMA public FROM public", database=database_name)
    with (
        closing(open_store(server.url(database_name, user=user), write=True)) as database,
        pytest.raises(StoreError, match="GRANT it CREATE ON SCHEMA") as told,
    ):
        migrations.migrate(database)
    assert "--grants" not in str(told.value)


# On PostgreSQL, while others read and write.


class OtherClient:
    """Another client of the same store."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection

    def run(self, text: str) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(text.encode())
        return cursor.fetchall() if cursor.description else []

    def wait(self, text: str) -> list[tuple[Any, ...]]:
        """Repeat a query until it returns rows."""
        return until(lambda: self.run(text), f"no rows from {text}")

    @contextmanager
    def transaction(self, text: str) -> Iterator[None]:
        """Run a statement in a transaction that keeps its locks until the block ends."""
        with self._connection.transaction():
            self.run(text)
            yield


@pytest.fixture
def other_client(server: Server, database_name: str) -> Iterator[Callable[[], OtherClient]]:
    made: list[psycopg.Connection[Any]] = []

    def new() -> OtherClient:
        options = "-c statement_timeout=2s"
        made.append(psycopg.connect(server.url(database_name), autocommit=True, options=options))
        return OtherClient(made[-1])

    yield new
    for connection in made:
        connection.close()


@pytest.fixture
def migrated(on_postgres: Opening, folder: Path) -> Database:
    database = on_postgres()
    write(folder, BEFORE)
    migrations.migrate(database, folder=folder)
    return database


Start = Callable[[], Future[list[str]]]


@pytest.fixture
def start(migrated: Database, folder: Path) -> Iterator[Start]:
    """Migrates in another thread."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda: thread.submit(migrations.migrate, migrated, folder=folder)


BUILDER: Final = "SELECT pid FROM pg_stat_progress_create_index"
VALID: Final = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('item_number')"
LEFT: Final = "SELECT name FROM migration WHERE name > '0003' ORDER BY name"


def test_a_migration_blocked_by_a_long_read_fails_clearly_and_loses_nothing(
    migrated: Database, folder: Path, other_client: Callable[[], OtherClient]
) -> None:
    write(folder, {"0003_column.sql": COLUMN})
    with other_client().transaction("SELECT * FROM item"), pytest.raises(StoreError) as refused:
        migrations.migrate(migrated, folder=folder, seconds=0.6)
    assert str(refused.value).startswith("the migration 0003_column.sql waited for longer than 0.6 s")
    assert other_client().run("SELECT * FROM item ORDER BY number") == [(1,), (2,)]
    assert migrations.migrate(migrated, folder=folder) == ["0003_column.sql"]


def test_readers_are_answered_while_a_migration_waits_for_its_lock(
    start: Start, folder: Path, other_client: Callable[[], OtherClient]
) -> None:
    write(folder, {"0003_column.sql": COLUMN})
    reader, other = other_client(), other_client()
    with reader.transaction("SELECT * FROM item"):
        migrating = start()
        other.wait("SELECT 1 FROM pg_locks WHERE NOT granted")
        # The query may queue behind the migration, which gives way before a reader's statement_timeout.
        assert other.run("SELECT count(*) FROM item") == [(2,)]
    assert migrating.result(60) == ["0003_column.sql"]


def test_an_index_is_built_while_others_read_and_write(
    migrated: Database, start: Start, folder: Path, other_client: Callable[[], OtherClient]
) -> None:
    write(folder, {"0003_index.concurrent.sql": INDEX, "0004_column.sql": COLUMN})
    writer, other = other_client(), other_client()
    with writer.transaction("INSERT INTO item VALUES (3)"):
        migrating = start()
        assert other.wait(VALID) == [(False,)]
        other.run("INSERT INTO item VALUES (4)")
        assert other.run("SELECT count(*) FROM item") == [(3,)]
        assert not migrating.done()
    assert migrating.result(60) == ["0003_index.concurrent.sql", "0004_column.sql"]
    assert other.run(VALID) == [(True,)]
    assert other.run("SELECT indisunique FROM pg_index WHERE indexrelid = 'more_number'::regclass") == [(True,)]
    assert migrations.migrate(migrated, folder=folder) == []


def test_a_half_built_index_is_rebuilt(
    migrated: Database, start: Start, folder: Path, other_client: Callable[[], OtherClient]
) -> None:
    write(folder, {"0003_index.concurrent.sql": INDEX})
    writer, other = other_client(), other_client()
    with writer.transaction("INSERT INTO item VALUES (3)"):
        migrating = start()
        assert other.wait(VALID) == [(False,)]
        [(builder,)] = other.run(BUILDER)
        other.run(f"SELECT pg_terminate_backend({builder})")
        with pytest.raises(Unavailable):
            migrating.result(60)
    assert (other.run(VALID), other.run(LEFT)) == ([(False,)], [])
    assert migrations.migrate(migrated, folder=folder) == ["0003_index.concurrent.sql"]
    assert (other.run(VALID), other.run(LEFT)) == ([(True,)], [("0003_index.concurrent.sql",)])


def test_an_index_build_survives_the_end_of_an_idle_connection(
    start: Start, folder: Path, other_client: Callable[[], OtherClient]
) -> None:
    """The connection may be ended by idle_session_timeout, a proxy or a firewall."""
    write(folder, {"0003_index.concurrent.sql": INDEX, "0004_column.sql": COLUMN})
    idle = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'laudo' AND state = 'idle'"
    writer, other = other_client(), other_client()
    with writer.transaction("INSERT INTO item VALUES (3)"):
        migrating = start()
        assert other.wait(VALID) == [(False,)]
        assert other.run(f"SELECT pg_terminate_backend(pid) {idle}") == [(True,)]
        other.wait(f"SELECT 1 WHERE NOT EXISTS (SELECT {idle})")
    assert migrating.result(60) == ["0003_index.concurrent.sql", "0004_column.sql"]


def test_a_second_migration_gives_up_without_disturbing_an_index_build(
    start: Start, on_postgres: Opening, folder: Path, other_client: Callable[[], OtherClient]
) -> None:
    write(folder, {"0003_index.concurrent.sql": INDEX, "0004_column.sql": COLUMN})
    writer, other = other_client(), other_client()
    with writer.transaction("INSERT INTO item VALUES (3)"):
        migrating = start()
        assert other.wait(VALID) == [(False,)]
        with pytest.raises(StoreError, match=r"^the migration 0003_index\.concurrent\.sql waited"):
            migrations.migrate(on_postgres(), folder=folder, seconds=0.6)
    assert migrating.result(60) == ["0003_index.concurrent.sql", "0004_column.sql"]
    assert other.run(VALID) == [(True,)]


def test_concurrent_migrations_that_build_an_index_do_not_deadlock(
    server: Server, database_name: str, on_postgres: Opening, folder: Path, other_client: Callable[[], OtherClient]
) -> None:
    """Otherwise the server detects a deadlock after its deadlock_timeout, and ends one of them."""
    server.execute(f"ALTER DATABASE {database_name} SET deadlock_timeout = '20ms'")
    write(folder, BEFORE)
    migrations.migrate(on_postgres(), folder=folder)
    write(folder, {"0003_index.concurrent.sql": INDEX})
    writer, other = other_client(), other_client()
    with ThreadPoolExecutor(4) as threads:
        with writer.transaction("INSERT INTO item VALUES (3)"):
            migrating = [threads.submit(migrations.migrate, on_postgres(), folder=folder) for _ in range(4)]
            assert other.wait(VALID) == [(False,)]
            ends = time.monotonic() + 1
            while time.monotonic() < ends and not other.run(
                "SELECT 1 FROM pg_locks WHERE mode = 'ExclusiveLock' AND NOT granted"
            ):
                time.sleep(0.01)
        assert sorted(each.result(60) for each in migrating) == [[], [], [], ["0003_index.concurrent.sql"]]
    assert "deadlock detected" not in server.log


def test_an_index_can_be_dropped_concurrently(
    migrated: Database, folder: Path, other_client: Callable[[], OtherClient]
) -> None:
    drop = "DROP INDEX CONCURRENTLY IF EXISTS item_number;"
    write(folder, {"0003_index.concurrent.sql": INDEX, "0004_drop.concurrent.sql": drop})
    assert len(migrations.migrate(migrated, folder=folder)) == 2
    assert other_client().run(VALID) == []


@pytest.mark.parametrize("text", ["CREATE INDEX item_number ON item (number)", COLUMN, "DROP INDEX CONCURRENTLY x"])
def test_a_concurrent_file_accepts_only_repeatable_index_statements(
    migrated: Database, folder: Path, other_client: Callable[[], OtherClient], text: str
) -> None:
    write(folder, {"0003_other.concurrent.sql": text})
    with pytest.raises(StoreError, match=r"^0003_other\.concurrent\.sql may only CREATE"):
        migrations.migrate(migrated, folder=folder)
    assert other_client().run(LEFT) == []


ENDLESS: Final = """
CREATE TABLE migration (name); WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT max(n) FROM n
"""


def test_a_signal_interrupts_a_long_statement_of_a_script(tmp_path: Path) -> None:
    met: list[str] = []
    session = Session(str(tmp_path / "laudo.db"), apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)

    def on_signal(*_: object) -> None:
        met.append("the signal")
        raise KeyboardInterrupt

    def give_up() -> None:
        met.append("nothing")
        session.interrupt()

    before = signal.signal(signal.SIGALRM, on_signal)
    given_up = threading.Timer(20, give_up)
    given_up.start()
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt), SqliteConnection(session, "BEGIN") as connection:
            connection.run_script(ENDLESS)
    finally:
        signal.signal(signal.SIGALRM, before)
        given_up.cancel()
    assert met == ["the signal"]
    assert session.rows("SELECT name FROM sqlite_schema") == []
    session.close()


LISTS: Final = """
SELECT conta.total, organizacao.total FROM conta JOIN organizacao USING (id_organizacao) ORDER BY id_conta
"""


def test_migrating_an_older_store_counts_its_lists(store: Store, account: Account) -> None:
    store.account(account.id_organizacao)
    store.write(account, many(240))
    persons = {each.numero_documento for each in many(240) if len(each.numero_documento) == CPF_LENGTH}
    with store.database.transaction() as connection:
        names = connection.fetch(Statement("SELECT name FROM migration WHERE name LIKE '%total%' ORDER BY name"))
        connection.run_script("ALTER TABLE conta DROP COLUMN total; ALTER TABLE organizacao DROP COLUMN total")
        connection.run_script("DELETE FROM migration WHERE name LIKE '%total%'")
    assert migrations.migrate(store.database) == [name for (name,) in names] != []
    assert store.database.fetch(Statement(LISTS)) == [(240, len(persons)), (0, len(persons))]
    assert not list(verify(store.database))


WAITING: Final = """
SELECT count(*) FILTER (WHERE granted) FROM pg_locks WHERE locktype = 'advisory' GROUP BY pid
HAVING bool_or(NOT granted)
"""
"""For each session that waits for an advisory lock, how many such locks it holds."""
WRITTEN: Final = """
INSERT INTO facet (id_organizacao, id_conta, facet, nome, tipo_pessoa, status, pendente_validacao_manual, total)
VALUES (3, 3, 1, '', '', '', 0, 5)
"""


def test_counting_lists_waits_for_writers_and_locks_no_organization(
    on_postgres: Opening, other_client: Callable[[], OtherClient]
) -> None:
    """A server has room for a few thousand locks, and a store may have more organizations."""
    database = on_postgres()
    migrations.migrate(database)
    with database.transaction() as connection:
        for _ in range(3):
            accounts.create_organizacao(connection, "Empresa")
        connection.run_script("DELETE FROM migration WHERE name = '0012_total.sql'")
    with ThreadPoolExecutor(1) as thread:
        with on_postgres().transaction() as writing:
            lock_writers(writing, 3)
            migrating = thread.submit(migrations.migrate, database)
            assert other_client().wait(WAITING) == [(1,)], "only the lock of migrations"
            writing.fetch(Statement(WRITTEN))
        assert migrating.result(60) == ["0012_total.sql"]
    assert rows(database, "SELECT total FROM conta ORDER BY id_conta") == [(0,), (0,), (5,)]
