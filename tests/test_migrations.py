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
from factories import Account, Store
from laudo.core.sql import Statement
from laudo.core.sql.writes import BUCKET, FACET, PESSOA, RELATORIO, TALLY, WORD
from laudo.server import accounts, migrations, roles, schema
from laudo.server.database import Database, StoreError, Unavailable
from laudo.server.ingest.changes import begin
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


def test_files_are_applied_in_their_order_and_once(opening: Opening, folder: Path) -> None:
    database = opening()
    write(folder, {"0010_column.sql": COLUMN, **BEFORE, "notes.txt": "no migration"})
    assert migrations.migrate(database, folder=folder) == ["0001_first.sql", "0002_more.sql", "0010_column.sql"]
    assert migrations.migrate(database, folder=folder) == []
    assert rows(database, "SELECT number, word FROM item ORDER BY number") == [(1, None), (2, None)]


def test_comments_and_texts_may_hold_anything(opening: Opening, folder: Path) -> None:
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


def test_a_later_version_applies_only_what_is_new(opening: Opening, folder: Path) -> None:
    database = opening()
    write(folder, BEFORE)
    migrations.migrate(database, folder=folder)
    write(folder, {"0003_column.sql": COLUMN})
    assert migrations.migrate(database, folder=folder) == ["0003_column.sql"]
    assert rows(database, "SELECT count(*) FROM item") == [(2,)]


def test_several_at_once_apply_each_file_once(opening: Opening, folder: Path) -> None:
    write(folder, BEFORE | {f"{number:04}_row.sql": f"INSERT INTO item VALUES ({number})" for number in range(3, 13)})
    start = threading.Barrier(4)

    def run(database: Database) -> list[str]:
        start.wait()
        return migrations.migrate(database, folder=folder)

    with ThreadPoolExecutor(4) as threads:
        applied = list(threads.map(run, [opening() for _ in range(4)]))
    assert sorted(chain.from_iterable(applied)) == sorted(file.name for file in folder.iterdir())
    assert rows(opening(), "SELECT number FROM item ORDER BY number") == [(number,) for number in range(1, 13)]


def test_a_file_that_fails_leaves_nothing_and_can_be_applied_when_it_is_mended(opening: Opening, folder: Path) -> None:
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


def test_a_store_is_current_once_all_is_applied(opening: Opening) -> None:
    database = opening()
    with database.snapshot() as connection:
        assert not schema.is_current(connection)
        with pytest.raises(StoreError, match="run `laudo migrate`"):
            schema.require_current(connection)
    migrations.migrate(database)
    with database.snapshot() as connection:
        assert schema.is_current(connection)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_the_files_of_an_engine_are_numbered(engine: str) -> None:
    names = [file.name for file in (Path(migrations.__file__).parent / engine).iterdir()]
    concurrent = r"(\.concurrent)?" if engine == "postgres" else ""
    assert names
    assert all(re.fullmatch(rf"\d{{4}}_[a-z_]+{concurrent}\.sql", name) for name in names)
    assert len({name[:4] for name in names}) == len(names)


def test_the_engines_have_the_same_tables(on_sqlite: Opening, on_postgres: Opening) -> None:
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


def test_the_tables_are_those_that_writers_know(on_postgres: Opening) -> None:
    database = on_postgres()
    migrations.migrate(database)
    found = rows(database, _POSTGRES_COLUMNS)
    tables = (FACET, BUCKET, TALLY, RELATORIO, PESSOA, WORD)
    for table in tables:
        assert {row[1]: row[4] for row in found if row[0] == table.name} == table.types
    keys = dict(rows(database, _POSTGRES_KEYS))
    assert all(keys[table.name] == ",".join(table.key) for table in tables)


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

# On PostgreSQL, while others read and write.


def test_a_table_of_another_application_in_the_way_is_told_and_left_alone(
    server: Server, database_name: str, on_postgres: Opening
) -> None:
    server.execute("CREATE TABLE token (secret text)", database=database_name)
    with pytest.raises(StoreError, match="a database or schema of its own"):
        migrations.migrate(on_postgres())
    assert server.execute(
        "SELECT relname::text FROM pg_class WHERE relname IN ('token', 'migration')", database=database_name
    ) == [("token",)]


def test_a_table_of_migrations_of_another_application_is_told_as_one_in_the_way(opening: Opening) -> None:
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
def test_a_file_of_another_application_is_told_and_left_alone(tmp_path: Path, script: str) -> None:
    path = tmp_path / "theirs.db"
    apsw.Connection(str(path)).execute(script).fetchall()
    before = path.read_bytes()
    database = open_store(f"sqlite:///{path}", write=True)
    with closing(database), pytest.raises(StoreError, match="a file of its own"):
        migrations.migrate(database)
    assert path.read_bytes() == before


def test_a_search_path_without_a_schema_is_told(server: Server, database_name: str) -> None:
    url = f"{server.url(database_name)}?options=-c%20search_path%3Dnowhere"
    with closing(open_store(url, write=True)) as database, pytest.raises(StoreError, match="search_path") as told:
        migrations.migrate(database)
    assert "laudo migrate" not in str(told.value)


@pytest.fixture
def elsewhere(server: Server, database_name: str) -> Iterator[str]:
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


def test_a_store_may_lie_in_a_schema_whose_name_needs_quotes(
    server: Server, database_name: str, elsewhere: str
) -> None:
    with closing(open_store(server.url(database_name) + elsewhere, write=True)) as database:
        assert migrations.migrate(database) == []
        assert roles.grant(database) == []


def test_a_second_store_in_a_database_is_made_only_where_the_url_names_its_schema(
    server: Server, database_name: str, elsewhere: str
) -> None:
    with closing(open_store(server.url(database_name), write=True)) as database, pytest.raises(StoreError) as told:
        migrations.migrate(database)
    assert str(told.value) == (
        'the database has a store in the schema "Lau do", but search_path leads to public; give the URL '
        f"{elsewhere[1:]} to use that one, options=-c%20search_path%3Dpublic to create another"
    )
    for options, is_made in ((elsewhere, False), ("?options=-c%20search_path%3Dpublic", True), ("", False)):
        with closing(open_store(server.url(database_name) + options, write=True)) as database:
            assert bool(migrations.migrate(database)) is is_made


def test_a_schema_that_came_before_the_stores_own_is_told(server: Server, database_name: str) -> None:
    with closing(open_store(server.url(database_name), write=True)) as database:
        assert migrations.migrate(database)
    [(user,)] = server.execute("SELECT current_user::text", database=database_name)
    server.execute(f"CREATE SCHEMA {user}", database=database_name)
    database = open_store(server.url(database_name), write=True)
    with closing(database), pytest.raises(StoreError, match=f"in the schema public, but search_path leads to {user}; "):
        migrations.migrate(database)


def test_of_several_stores_the_one_to_which_search_path_comes_is_named_first(
    server: Server, database_name: str, elsewhere: str
) -> None:
    here = "?options=-c%20search_path%3Dpublic"
    with closing(open_store(server.url(database_name) + here, write=True)) as database:
        assert migrations.migrate(database)
    [(user,)] = server.execute("SELECT current_user::text", database=database_name)
    server.execute(f"CREATE SCHEMA {user}", database=database_name)
    with closing(open_store(server.url(database_name), write=True)) as database, pytest.raises(StoreError) as told:
        migrations.migrate(database)
    assert str(told.value) == (
        f'the database has a store in the schema public and one in "Lau do", but search_path leads to {user}; give the '
        f"URL {here[1:]} or {elsewhere[1:]} to use that one, options=-c%20search_path%3D{user} to create another"
    )


@pytest.mark.usefixtures("elsewhere")
def test_a_store_that_the_user_may_not_enter_is_none_of_its_business(server: Server, database_name: str) -> None:
    user = f"of_{database_name}"
    server.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{server.password}'")
    server.execute(f"CREATE SCHEMA AUTHORIZATION {user}", database=database_name)
    with closing(open_store(server.url(database_name, user=user), write=True)) as database:
        assert migrations.migrate(database)


def test_who_may_not_make_tables_is_told_which_right_is_missing(server: Server, database_name: str) -> None:
    user = f"of_{database_name}"
    server.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{server.password}'")
    server.execute("REVOKE CREATE ON SCHEMA public FROM public", database=database_name)
    with (
        closing(open_store(server.url(database_name, user=user), write=True)) as database,
        pytest.raises(StoreError, match="GRANT it CREATE ON SCHEMA") as told,
    ):
        migrations.migrate(database)
    assert "--grants" not in str(told.value)


class Beside:
    """Another client of the same store."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection

    def run(self, text: str) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(text.encode())
        return cursor.fetchall() if cursor.description else []

    def wait(self, text: str) -> list[tuple[Any, ...]]:
        """Repeat a query until it returns rows."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if found := self.run(text):
                return found
            time.sleep(0.01)
        pytest.fail(f"nothing came of {text}")

    @contextmanager
    def transaction(self, text: str) -> Iterator[None]:
        """Run a statement in a transaction that keeps its locks until the block ends."""
        with self._connection.transaction():
            self.run(text)
            yield


@pytest.fixture
def beside(server: Server, database_name: str) -> Iterator[Callable[[], Beside]]:
    made: list[psycopg.Connection[Any]] = []

    def new() -> Beside:
        options = "-c statement_timeout=2s"
        made.append(psycopg.connect(server.url(database_name), autocommit=True, options=options))
        return Beside(made[-1])

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


def test_a_table_that_somebody_reads_for_long_gives_a_clear_error_and_loses_nothing(
    migrated: Database, folder: Path, beside: Callable[[], Beside]
) -> None:
    write(folder, {"0003_column.sql": COLUMN})
    with beside().transaction("SELECT * FROM item"), pytest.raises(StoreError) as refused:
        migrations.migrate(migrated, folder=folder, seconds=0.6)
    assert str(refused.value).startswith("the migration 0003_column.sql waited for longer than 0.6 s")
    assert beside().run("SELECT * FROM item ORDER BY number") == [(1,), (2,)]
    assert migrations.migrate(migrated, folder=folder) == ["0003_column.sql"]


def test_who_reads_is_answered_while_a_migration_waits_and_it_goes_on_when_the_table_is_free(
    start: Start, folder: Path, beside: Callable[[], Beside]
) -> None:
    write(folder, {"0003_column.sql": COLUMN})
    reader, other = beside(), beside()
    with reader.transaction("SELECT * FROM item"):
        migrating = start()
        other.wait("SELECT 1 FROM pg_locks WHERE NOT granted")
        # It may queue behind the migration, which gives way before a reader's statement_timeout.
        assert other.run("SELECT count(*) FROM item") == [(2,)]
    assert migrating.result(60) == ["0003_column.sql"]


def test_an_index_is_built_while_others_read_and_write(
    migrated: Database, start: Start, folder: Path, beside: Callable[[], Beside]
) -> None:
    write(folder, {"0003_index.concurrent.sql": INDEX, "0004_column.sql": COLUMN})
    writer, other = beside(), beside()
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


def test_an_index_that_was_left_half_built_is_built_anew(
    migrated: Database, start: Start, folder: Path, beside: Callable[[], Beside]
) -> None:
    write(folder, {"0003_index.concurrent.sql": INDEX})
    writer, other = beside(), beside()
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


def test_a_connection_that_was_ended_while_an_index_was_built_is_not_missed(
    start: Start, folder: Path, beside: Callable[[], Beside]
) -> None:
    """It may be ended by idle_session_timeout, or by a proxy or firewall."""
    write(folder, {"0003_index.concurrent.sql": INDEX, "0004_column.sql": COLUMN})
    idle = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'laudo' AND state = 'idle'"
    writer, other = beside(), beside()
    with writer.transaction("INSERT INTO item VALUES (3)"):
        migrating = start()
        assert other.wait(VALID) == [(False,)]
        assert other.run(f"SELECT pg_terminate_backend(pid) {idle}") == [(True,)]
        other.wait(f"SELECT 1 WHERE NOT EXISTS (SELECT {idle})")
    assert migrating.result(60) == ["0003_index.concurrent.sql", "0004_column.sql"]


def test_who_comes_while_an_index_is_built_gives_up_without_disturbing_it(
    start: Start, on_postgres: Opening, folder: Path, beside: Callable[[], Beside]
) -> None:
    write(folder, {"0003_index.concurrent.sql": INDEX, "0004_column.sql": COLUMN})
    writer, other = beside(), beside()
    with writer.transaction("INSERT INTO item VALUES (3)"):
        migrating = start()
        assert other.wait(VALID) == [(False,)]
        with pytest.raises(StoreError, match=r"^the migration 0003_index\.concurrent\.sql waited"):
            migrations.migrate(on_postgres(), folder=folder, seconds=0.6)
    assert migrating.result(60) == ["0003_index.concurrent.sql", "0004_column.sql"]
    assert other.run(VALID) == [(True,)]


def test_nobody_waits_for_who_builds_an_index_and_is_waited_for(
    server: Server, database_name: str, on_postgres: Opening, folder: Path, beside: Callable[[], Beside]
) -> None:
    """Otherwise the server sees a deadlock after its deadlock_timeout, and ends one of them."""
    server.execute(f"ALTER DATABASE {database_name} SET deadlock_timeout = '20ms'")
    write(folder, BEFORE)
    migrations.migrate(on_postgres(), folder=folder)
    write(folder, {"0003_index.concurrent.sql": INDEX})
    writer, other = beside(), beside()
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


def test_an_index_is_dropped_while_others_read(migrated: Database, folder: Path, beside: Callable[[], Beside]) -> None:
    drop = "DROP INDEX CONCURRENTLY IF EXISTS item_number;"
    write(folder, {"0003_index.concurrent.sql": INDEX, "0004_drop.concurrent.sql": drop})
    assert len(migrations.migrate(migrated, folder=folder)) == 2
    assert beside().run(VALID) == []


@pytest.mark.parametrize("text", ["CREATE INDEX item_number ON item (number)", COLUMN, "DROP INDEX CONCURRENTLY x"])
def test_a_concurrent_file_makes_and_drops_indexes_only_and_such_that_it_can_be_repeated(
    migrated: Database, folder: Path, beside: Callable[[], Beside], text: str
) -> None:
    write(folder, {"0003_other.concurrent.sql": text})
    with pytest.raises(StoreError, match=r"^0003_other\.concurrent\.sql may only CREATE"):
        migrations.migrate(migrated, folder=folder)
    assert beside().run(LEFT) == []


ENDLESS: Final = """
CREATE TABLE migration (name); WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT max(n) FROM n
"""


def test_a_signal_ends_a_long_statement_in_a_file(tmp_path: Path) -> None:
    met: list[str] = []
    session = Session(str(tmp_path / "laudo.db"), apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)

    def heed(*_: object) -> None:
        met.append("the signal")
        raise KeyboardInterrupt

    def give_up() -> None:
        met.append("nothing")
        session.interrupt()

    before = signal.signal(signal.SIGALRM, heed)
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


def test_a_store_of_an_older_version_has_its_lists_counted_when_it_is_migrated(store: Store, account: Account) -> None:
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


def test_who_counts_lists_waits_for_who_writes_and_holds_no_organization(
    on_postgres: Opening, beside: Callable[[], Beside]
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
            begin(writing, 3)
            migrating = thread.submit(migrations.migrate, database)
            assert beside().wait(WAITING) == [(1,)], "the name of migrations"
            writing.fetch(Statement(WRITTEN))
        assert migrating.result(60) == ["0012_total.sql"]
    assert rows(database, "SELECT total FROM conta ORDER BY id_conta") == [(0,), (0,), (5,)]
