"""What each database role may do, tried with logins that are members of it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

import postgres_server
from awaiting import until
from laudo.server import app, migrations, roles
from laudo.server.citus import DISTRIBUTED, REFERENCE
from laudo.server.config import Settings
from laudo.server.database import Connection, Database
from laudo.server.stores import open_store
from postgres_server import Server
from shell import Shell, ndjson, one_line
from wsgi import Client

TABLES: Final = (*DISTRIBUTED, *REFERENCE)
PASSWORD: Final = "not-a-secret"
LOGINS: Final = {
    "deploy": "CREATEROLE",
    "other": "",
    "stranger": "",
    "guest": "",
    "migrator": "IN ROLE laudo_owner",
    "importer": "IN ROLE laudo_writer",
    "api": "IN ROLE laudo_reader",
}
"""Login -> its options. deploy owns the database at first; guest never gets a role."""
BEFORE: Final = ("deploy", "other", "stranger", "guest")
"""The logins that exist before the roles do."""


AS_SINCE_15: Final = (
    "ALTER SCHEMA public OWNER TO pg_database_owner",
    "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
)
"""Makes PostgreSQL 14 like later versions: a database's owner owns its schema, and nobody else creates tables there."""

GRANTED: Final = "granted"
"""The database of a store in which `deploy`, which is no superuser, has granted the roles."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Start a server with all logins and the granted store."""
    with postgres_server.start() as started:
        for text in AS_SINCE_15:
            started.execute(text, database="template1")
        for name in BEFORE:
            login(started, name)
        started.execute(f"CREATE DATABASE {GRANTED} OWNER deploy")
        with closing(opened(started, GRANTED, "deploy")) as database:
            migrations.migrate(database)
            roles.grant(database)
        for name in LOGINS.keys() - {*BEFORE}:
            login(started, name)
        yield started


def login(server: Server, name: str) -> None:
    server.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}' {LOGINS[name]}")


def opened(server: Server, database: str, user: str) -> Database:
    return open_store(server.url(database, user=user, password=PASSWORD), write=True)


Asking = Callable[[str, str], list[tuple[Any, ...]]]


@pytest.fixture
def ask(server: Server) -> Asking:
    """Run a statement as a login, and roll it back."""

    def run(user: str, text: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(server.url(GRANTED, user=user, password=PASSWORD)) as connection:
            cursor = connection.execute(text.encode())
            found = cursor.fetchall() if cursor.description else []
            connection.rollback()
        return found

    return run


def columns(ask: Asking, table: str) -> str:
    text = f"SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0"
    return ", ".join(name for (name,) in ask("api", text))


def may(ask: Asking, user: str, table: str) -> set[str]:
    """Try each kind of statement on a table, with no rows; returns those that are allowed."""
    every = columns(ask, table)
    first = every.split(",")[0]
    tried = {
        "SELECT": f"SELECT * FROM {table}",
        "INSERT": f"INSERT INTO {table} ({every}) SELECT {every} FROM {table} WHERE false",
        "UPDATE": f"UPDATE {table} SET {first} = {first} WHERE false",
        "DELETE": f"DELETE FROM {table} WHERE false",
        "TRUNCATE": f"TRUNCATE {table}",
        "ALTER": f"ALTER TABLE {table} ADD COLUMN more bigint",
    }
    return {right for right, text in tried.items() if allows(ask, user, text)}


def allows(ask: Asking, user: str, text: str) -> bool:
    try:
        ask(user, text)
    except InsufficientPrivilege:
        return False
    return True


@pytest.mark.parametrize("table", TABLES)
def test_the_reader_role_may_read_every_table_and_write_only_the_heartbeat(ask: Asking, table: str) -> None:
    assert may(ask, "api", table) == ({"SELECT", "INSERT", "UPDATE"} if table == "heartbeat" else {"SELECT"})


@pytest.mark.parametrize("table", ["bucket", "tally", "relatorio", "pessoa"])
def test_the_writer_role_may_read_change_and_delete_imported_data(ask: Asking, table: str) -> None:
    assert may(ask, "importer", table) == {"SELECT", "INSERT", "UPDATE", "DELETE"}


@pytest.mark.parametrize("table", ["organizacao", "conta", "usuario", "token", "facet"])
def test_the_writer_role_may_not_delete_accounts_tokens_or_facets(ask: Asking, table: str) -> None:
    assert may(ask, "importer", table) == {"SELECT", "INSERT", "UPDATE"}


@pytest.mark.parametrize("table", ["migration", "heartbeat"])
def test_the_writer_role_only_reads_migrations_and_heartbeats(ask: Asking, table: str) -> None:
    assert may(ask, "importer", table) == {"SELECT"}


@pytest.mark.parametrize("user", ["importer", "api", "guest"])
@pytest.mark.parametrize(
    "text",
    [
        *("CREATE TABLE more (number bigint)", "CREATE INDEX more ON facet (total)", "DROP INDEX relatorio_recency"),
        *("CREATE SCHEMA more", "CREATE ROLE more", "DROP TABLE facet", "GRANT SELECT ON facet TO PUBLIC"),
    ],
)
def test_only_the_owner_role_may_change_the_schema(ask: Asking, user: str, text: str) -> None:
    if text.startswith("GRANT"):
        # PostgreSQL only warns about a grant that is not allowed, so try whether it had an effect.
        text = f"{text}; SELECT * FROM facet" if user == "guest" else "ALTER TABLE facet OWNER TO CURRENT_USER"
    assert not allows(ask, user, text)


def test_a_login_without_a_role_may_read_nothing(ask: Asking) -> None:
    assert [table for table in TABLES if may_read(ask, "guest", table)] == []


def may_read(ask: Asking, user: str, table: str) -> bool:
    return allows(ask, user, f"SELECT 1 FROM {table}")


def test_the_roles_cannot_log_in(ask: Asking) -> None:
    logins = ask(
        "api", "SELECT rolname, rolcanlogin OR rolsuper OR rolcreaterole FROM pg_roles WHERE rolname ~ '^laudo_'"
    )
    assert sorted(logins) == [("laudo_owner", False), ("laudo_reader", False), ("laudo_writer", False)]


def test_every_table_is_granted(ask: Asking) -> None:
    found = ask("api", "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
    assert sorted(table for (table,) in found) == sorted(TABLES)
    assert all(set(rights) == set(TABLES) for rights in roles.RIGHTS.values())


def test_granting_again_changes_nothing(server: Server) -> None:
    for user in ("deploy", "postgres"):
        password = server.password if user == "postgres" else PASSWORD
        database = open_store(server.url(GRANTED, user=user, password=password), write=True)
        assert roles.grant(database) == []
        database.close()


def test_granting_reverts_rights_changed_by_hand(server: Server, ask: Asking) -> None:
    server.execute("GRANT DELETE, TRUNCATE ON relatorio TO laudo_reader", database=GRANTED)
    server.execute("REVOKE SELECT ON token FROM laudo_reader", database=GRANTED)
    server.execute("GRANT DELETE, UPDATE (enabled, version) ON conta TO laudo_reader", database=GRANTED)
    server.execute("ALTER TABLE facet OWNER TO deploy", database=GRANTED)
    database = opened(server, GRANTED, "deploy")
    assert set(roles.grant(database)) == {
        "ALTER TABLE public.facet OWNER TO laudo_owner",
        "GRANT SELECT ON public.token TO laudo_reader",
        "REVOKE DELETE, TRUNCATE ON public.relatorio FROM laudo_reader",
        "REVOKE DELETE, UPDATE (enabled), UPDATE (version) ON public.conta FROM laudo_reader",
    }
    database.close()
    assert not allows(ask, "api", "UPDATE conta SET enabled = 1 WHERE false")
    assert may(ask, "api", "relatorio") == may(ask, "api", "token") == {"SELECT"}


def test_granting_revokes_grant_options_and_what_was_granted_with_them(server: Server, ask: Asking) -> None:
    server.execute("GRANT SELECT, DELETE ON relatorio TO laudo_reader WITH GRANT OPTION", database=GRANTED)
    server.execute("GRANT UPDATE (enabled) ON conta TO laudo_reader WITH GRANT OPTION", database=GRANTED)
    with psycopg.connect(server.url(GRANTED, user="api", password=PASSWORD)) as connection:
        connection.execute("GRANT SELECT, DELETE ON relatorio TO guest")
    assert may_read(ask, "guest", "relatorio")
    with closing(opened(server, GRANTED, "deploy")) as database:
        assert roles.grant(database) == [
            "REVOKE GRANT OPTION FOR UPDATE (enabled) ON public.conta FROM laudo_reader CASCADE",
            "REVOKE UPDATE (enabled) ON public.conta FROM laudo_reader",
            "REVOKE GRANT OPTION FOR DELETE, SELECT ON public.relatorio FROM laudo_reader CASCADE",
            "REVOKE DELETE ON public.relatorio FROM laudo_reader",
        ]
    assert may(ask, "api", "relatorio") == {"SELECT"}
    assert not may_read(ask, "guest", "relatorio")


def test_granting_revokes_from_public_and_keeps_grants_to_single_logins(server: Server, ask: Asking) -> None:
    server.execute("GRANT SELECT, UPDATE ON relatorio TO PUBLIC", database=GRANTED)
    server.execute("GRANT SELECT (hash) ON token TO PUBLIC", database=GRANTED)
    server.execute("GRANT SELECT ON pessoa TO guest", database=GRANTED)
    assert may_read(ask, "guest", "relatorio")
    with closing(opened(server, GRANTED, "deploy")) as database:
        assert set(roles.grant(database)) == {
            "REVOKE SELECT, UPDATE ON public.relatorio FROM public",
            "REVOKE SELECT (hash) ON public.token FROM public",
        }
    assert [table for table in TABLES if may_read(ask, "guest", table)] == ["pessoa"]
    server.execute("REVOKE SELECT ON pessoa FROM guest", database=GRANTED)


def test_tables_of_a_later_migration_by_another_login_are_granted(server: Server, tmp_path: Path) -> None:
    server.execute("CREATE DATABASE later OWNER deploy")
    database = opened(server, "later", "deploy")
    migrations.migrate(database)
    roles.grant(database)
    database.close()
    text = "DROP TABLE heartbeat; CREATE TABLE heartbeat (id bigint PRIMARY KEY, at_ms bigint)"
    (tmp_path / "0002_heartbeat.sql").write_text(text)
    database = opened(server, "later", "migrator")
    assert migrations.migrate(database, folder=tmp_path) == ["0002_heartbeat.sql"]
    assert roles.grant(database) == []
    database.close()
    with psycopg.connect(server.url("later", user="api", password=PASSWORD)) as reader:
        reader.execute("INSERT INTO heartbeat VALUES (1, 5)")
        assert reader.execute("SELECT tableowner FROM pg_tables WHERE tablename = 'heartbeat'").fetchall() == [
            ("laudo_owner",)
        ]


def test_a_store_without_roles_keeps_its_owner_when_migrated(server: Server, tmp_path: Path) -> None:
    server.execute("CREATE DATABASE plain OWNER deploy")
    database = opened(server, "plain", "deploy")
    migrations.migrate(database)
    (tmp_path / "0002_more.sql").write_text("CREATE TABLE more (number bigint)")
    migrations.migrate(database, folder=tmp_path)
    database.close()
    owners = server.execute("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'", database="plain")
    assert owners == [("deploy",)]


def test_without_the_right_to_grant_the_error_lists_the_statements_to_run(server: Server) -> None:
    server.execute("CREATE DATABASE hand OWNER other")
    database = opened(server, "hand", "other")
    migrations.migrate(database)
    with pytest.raises(roles.RolesError, match="may not create roles") as refused:
        roles.grant(database)
    for statement in refused.value.statements:
        server.execute(statement, database="hand")
    assert roles.grant(database) == []
    database.close()


def test_granting_closes_a_schema_in_which_everybody_may_create_tables(server: Server) -> None:
    """PostgreSQL 14 creates the schema `public` like this: owned by `postgres`, and open to everybody."""
    server.execute("CREATE DATABASE open OWNER deploy")
    for text in ("ALTER SCHEMA public OWNER TO postgres", "GRANT ALL ON SCHEMA public TO PUBLIC"):
        server.execute(text, database="open")
    database = opened(server, "open", "deploy")
    migrations.migrate(database)
    with pytest.raises(roles.RolesError, match="does not own the database, its schema or") as refused:
        roles.grant(database)
    assert "REVOKE CREATE ON SCHEMA public FROM PUBLIC" in refused.value.statements
    for statement in refused.value.statements:
        server.execute(statement, database="open")
    assert roles.grant(database) == []
    database.close()
    with (
        psycopg.connect(server.url("open", user="guest", password=PASSWORD)) as connection,
        pytest.raises(InsufficientPrivilege),
    ):
        connection.execute("CREATE TABLE more (number bigint)")


def test_two_stores_in_one_database_are_both_granted_completely(server: Server) -> None:
    """The database's names need quotes, and nobody may connect to it without a grant."""
    for text in (
        f"CREATE ROLE \"Zelador\" LOGIN PASSWORD '{PASSWORD}'",
        'CREATE DATABASE "Casa" OWNER "Zelador"',
        'REVOKE CONNECT ON DATABASE "Casa" FROM PUBLIC',
    ):
        server.execute(text)
    with pytest.raises(roles.RolesError) as refused:
        granted_in(server, "first")
    for statement in refused.value.statements:
        server.execute(statement, database="Casa")
    for schema in ("second", "first"):
        granted_in(server, schema)
    for catalog, start in (("pg_class", "rel"), ("pg_statistic_ext", "stx")):
        named = f"{start}namespace::regnamespace::text, pg_get_userbyid({start}owner)"
        text = f"SELECT {named} FROM {catalog} WHERE {start}namespace::regnamespace::text IN ('first', 'second')"
        assert set(server.execute(text, database="Casa")) == {("first", "laudo_owner"), ("second", "laudo_owner")}
    with psycopg.connect(server.url("Casa", user="api", password=PASSWORD)) as reader:
        for table in TABLES:
            reader.execute(f"SELECT FROM first.{table}, second.{table}".encode())


def granted_in(server: Server, schema: str) -> None:
    server.execute(f'CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION "Zelador"', database="Casa")
    url = server.url("Casa", user="Zelador", password=PASSWORD)
    with closing(open_store(f"{url}?options=-c%20search_path%3D{schema}", write=True)) as database:
        migrations.migrate(database)
        roles.grant(database)
        assert roles.grant(database) == []


def test_granting_waits_for_readers_of_a_table(server: Server) -> None:
    server.execute("CREATE DATABASE busy OWNER deploy")
    database = opened(server, "busy", "deploy")
    migrations.migrate(database)
    with psycopg.connect(server.url("busy")) as reader:
        reader.execute("SELECT * FROM relatorio")
        with pytest.raises(Exception, match=r"^granting waited for longer than 0\.6 s"):
            roles.grant(database, seconds=0.6)
    assert "ALTER TABLE public.relatorio OWNER TO laudo_owner" in roles.grant(database)
    database.close()


@pytest.fixture
def fresh() -> Iterator[Server]:
    """Start a server with two stores and without the roles."""
    with postgres_server.start() as server:
        for name in ("one", "other"):
            server.execute(f"CREATE DATABASE {name}")
            with closing(open_store(server.url(name), write=True)) as database:
                migrations.migrate(database)
        yield server


def test_granting_is_retried_when_another_database_creates_the_roles_first(
    fresh: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = roles._missing

    def overtaken(connection: Connection) -> Iterator[str]:
        found = list(missing(connection))
        monkeypatch.undo()
        assert "CREATE ROLE laudo_owner NOLOGIN" in grant_in(fresh, "other")
        return iter(found)

    monkeypatch.setattr(roles, "_missing", overtaken)
    assert "CREATE ROLE laudo_owner NOLOGIN" not in grant_in(fresh, "one")
    assert grant_in(fresh, "one") == []


def test_granting_waits_for_roles_that_are_being_created(fresh: Server) -> None:
    with ThreadPoolExecutor(1) as thread, psycopg.connect(fresh.url()) as making:
        making.execute("CREATE ROLE laudo_owner")
        granting = thread.submit(grant_in, fresh, "one")
        until(lambda: fresh.execute("SELECT 1 FROM pg_locks WHERE NOT granted") or granting.done())
        making.commit()
        assert "CREATE ROLE laudo_writer NOLOGIN" in granting.result()
    assert grant_in(fresh, "one") == []


def grant_in(server: Server, name: str) -> list[str]:
    with closing(open_store(server.url(name), write=True)) as database:
        return roles.grant(database)


# The service and the commands, each with the role meant for it.


class Work(NamedTuple):
    """A new store, and a shell for each login."""

    url: Callable[[str], str]
    run: Callable[..., str]
    key_file: Path


@pytest.fixture
def work(server: Server, tmp_path: Path) -> Work:
    name = f"work{server.execute('SELECT count(*) FROM pg_database')[0][0]}"
    server.execute(f"CREATE DATABASE {name} OWNER deploy")
    shell = Shell(tmp_path)

    def url(user: str) -> str:
        return server.url(name, user=user, password=PASSWORD)

    def run(user: str, *words: str) -> str:
        result = shell(*words, env={"LAUDO_STORE": url(user)})
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    run("deploy", "migrate", "--grants")
    return Work(url, run, shell.key_file)


def test_owner_writer_and_reader_roles_suffice_for_their_commands(work: Work, tmp_path: Path) -> None:
    assert work.run("migrator", "migrate") == "the store is up to date"
    work.run("importer", "organization", "create", "Modelo")
    work.run("importer", "user", "create", "--account", "1", "--email", "ana@example.com", "--name", "Ana")
    token = work.run("importer", "token", "create", "--user", "1")
    work.run("importer", "import", "--account", "1", str(ndjson(tmp_path, 1200)))
    work.run("api", "verify")
    work.run("importer", "verify", "--repair")
    settings = Settings(store=work.url("api"), key_file=str(work.key_file), log=False)
    database = open_store(work.url("api"))
    client = Client(app.create(settings, database=database), token)
    assert (client.get("/relatorios?page=2").total, bool(client.get("/pessoas?busca=mar").itens)) == (1200, True)
    assert client.get("/usuario").status == 200
    work.run("importer", "token", "revoke", "1")
    assert client.get("/relatorios").status == 401
    database.close()


def test_the_writer_role_may_repair_a_damaged_store(work: Work, tmp_path: Path) -> None:
    work.run("importer", "organization", "create", "Modelo")
    work.run("importer", "import", "--account", "1", str(ndjson(tmp_path, 300)))
    with psycopg.connect(work.url("migrator")) as connection:
        for text in ("UPDATE tally SET total = total + 1", "DELETE FROM pessoa", "UPDATE facet SET total = 0"):
            connection.execute(text.encode())
    work.run("importer", "verify", "--repair")
    work.run("api", "verify")


def test_granting_again_prints_that_the_roles_are_up_to_date(work: Work) -> None:
    assert work.run("deploy", "migrate", "--grants") == "the roles are up to date"


@pytest.mark.parametrize(("name", "schema"), [("told", "public"), ("apart", '"Minha loja"')])
def test_migrate_grants_without_the_right_prints_the_statements_to_run(
    server: Server, tmp_path: Path, name: str, schema: str
) -> None:
    """The statements also work for a login whose search_path does not lead to the store."""
    server.execute(f"CREATE DATABASE {name} OWNER stranger")
    server.execute(f"CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION stranger", database=name)
    server.execute(f"ALTER ROLE stranger IN DATABASE {name} SET search_path = {schema}")
    url = server.url(name, user="stranger", password=PASSWORD)
    result = Shell(tmp_path)("migrate", "--grants", env={"LAUDO_STORE": url})
    *applied, refusal = result.stderr.splitlines()
    assert (result.exit_code, applied[0]) == (1, "applied 0001_store.sql")
    assert all(line.startswith("applied ") for line in applied)
    assert refusal.startswith("error: the store's user may not create roles, or does not own")
    assert "GRANT laudo_owner TO stranger;" in result.stdout.splitlines()
    again = Shell(tmp_path)("migrate", "--grants", env={"LAUDO_STORE": url})
    assert (again.exit_code, again.stdout) == (2, result.stdout)
    server.execute(result.stdout, database=name)
    owners = server.execute("SELECT tableowner FROM pg_tables WHERE tablename = 'tally'", database=name)
    assert owners == [("laudo_owner",)]
    assert Shell(tmp_path)("migrate", "--grants", env={"LAUDO_STORE": url}).stdout == "the roles are up to date\n"
    server.execute("REVOKE laudo_owner FROM stranger")


@pytest.mark.parametrize("user", ["api", "importer"])
def test_migrate_grants_has_nothing_to_do_for_readers_and_writers(server: Server, tmp_path: Path, user: str) -> None:
    """This includes a login that owns a table of the same name in another schema."""
    server.execute(f"CREATE SCHEMA of_{user} AUTHORIZATION {user} CREATE TABLE tally (total bigint)", database=GRANTED)
    url = server.url(GRANTED, user=user, password=PASSWORD)
    result = Shell(tmp_path)("migrate", "--grants", env={"LAUDO_STORE": url})
    said = (result.exit_code, result.stderr, result.stdout)
    assert said == (0, "the store is up to date\n", "the roles are up to date\n")


def test_granting_fails_with_a_hint_when_another_login_owns_the_tables(server: Server, tmp_path: Path) -> None:
    """This happens after a superuser restores a dump on a server without the roles."""
    server.execute("CREATE DATABASE restored OWNER deploy")
    with closing(open_store(server.url("restored"), write=True)) as database:
        migrations.migrate(database)
    url = server.url("restored", user="deploy", password=PASSWORD)
    told = one_line(Shell(tmp_path)("migrate", "--grants", env={"LAUDO_STORE": url}))
    assert "run `laudo migrate --grants` as the owner of the tables" in told


def test_a_sqlite_store_has_no_roles(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert one_line(shell("migrate", "--grants")) == (
        "error: a SQLite store has no roles: whoever may read or write the file may use the store"
    )
    assert not (tmp_path / "laudo.db").exists()
