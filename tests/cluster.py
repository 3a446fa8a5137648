"""The cluster for tests of Citus: the one that LAUDO_TEST_PG names, or else a stand-in."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, Protocol

import psycopg
from psycopg import sql

import postgres_server
from engines import PostgresEngine
from forwarding import Forwarding, ForwardingConnection
from laudo.core.sql import Statement
from laudo.server import citus, migrations
from laudo.server.citus import DISTRIBUTED, REFERENCE
from laudo.server.database import Connection, Database, Row
from laudo.server.stores import open_store

Node = tuple[str, int]
"""A machine: its name within the cluster, and its port."""


SINGLY: Final = "citus.multi_task_query_log_level"
"""The setting of Citus that can make statements fail which need more than one shard of a table."""


class Cluster(Protocol):
    """Makes databases with and without Citus, each named by its URL."""

    def bare(self) -> str:
        """Make a database without Citus."""

    def joined(self) -> str:
        """Make an empty database with Citus."""

    def drop(self, url: str) -> None:
        """Delete a database, even if it is open."""


def named() -> str:
    """Return the URL in LAUDO_TEST_PG if it is one of a cluster, else an empty text."""
    url = os.environ.get("LAUDO_TEST_PG", "")
    return url if "://" in url and machines(url) else ""


def machines(url: str) -> list[Node]:
    """Return the machines of the cluster to which a database belongs, the coordinator first; none without Citus."""
    with psycopg.connect(url) as connection:
        if connection.execute("SELECT FROM pg_extension WHERE extname = 'citus'").fetchall():
            return connection.execute(_MACHINES).fetchall() or [("localhost", connection.info.port)]
    return []


def spread(database: Database) -> None:
    """Distribute the tables that a test has created in a store, if the store is on a cluster."""
    with database.snapshot() as connection:
        lies_there = bool(named()) and connection.dialect.name == "postgres"
    if lies_there:
        citus.apply(database)


@contextmanager
def started() -> Iterator[Cluster]:
    """Yield the cluster that LAUDO_TEST_PG names, or else a stand-in."""
    with closing(CitusEngine(url, machines(url))) if (url := named()) else _stand_in() as made:
        yield made


class CitusEngine:
    """Stores on all machines of a cluster, except bare ones and their copies.

    Making a store takes seconds. A dropped store is therefore emptied and used again, unless its schema has changed.
    """

    def __init__(self, url: str, nodes: Sequence[Node]) -> None:
        """Connect as a user who may create databases on every machine."""
        self._plain = PostgresEngine(url)
        self._url = url
        self._nodes = nodes
        self._joined: set[str] = set()
        self._shapes: dict[str, object] = {}
        self._free: list[str] = []

    def bare(self, _place: Path | None = None) -> str:
        return self._plain.bare()

    def joined(self) -> str:
        url = self._plain.bare()
        self._joined.add(url)
        name = sql.Identifier(_name(url))
        for node in self._nodes[1:]:
            self._execute(
                self._url, sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(name), node
            )
        self._execute(url, sql.SQL("ALTER DATABASE {} SET citus.shard_count = 4").format(name))
        for node in self._nodes:
            self._execute(url, sql.SQL("CREATE EXTENSION citus"), node)
        first, *others = self._nodes
        self._execute(url, sql.SQL("SELECT citus_set_coordinator_host({}, {})").format(*first))
        for node in others:
            self._execute(url, sql.SQL("SELECT citus_add_node({}, {})").format(*node))
        return url

    def empty(self, _place: Path | None = None) -> str:
        if self._free:
            return self._free.pop()
        url = self.joined()
        with closing(open_store(url, write=True)) as database:
            migrations.migrate(database)
            citus.apply(database)
        self._shapes[url] = _shape(url)
        return url

    def copy(self, url: str, _place: Path | None = None) -> str:
        if url not in self._joined:
            return self._plain.copy(url)
        made = self.empty()
        with psycopg.connect(url) as source, psycopg.connect(made) as target:
            for table in _TABLES:
                target.execute(f"DELETE FROM {table}".encode())
                with (
                    source.cursor().copy(f"COPY {table} TO STDOUT".encode()) as rows,
                    target.cursor().copy(f"COPY {table} FROM STDIN".encode()) as sink,
                ):
                    for each in rows:
                        sink.write(each)
        return made

    def drop(self, url: str) -> None:
        if url in self._shapes and _emptied(url, self._shapes[url]):
            self._free.append(url)
            return
        self._plain.drop(url)
        if url in self._joined:
            for node in self._nodes[1:]:
                name = sql.Identifier(_name(url))
                self._execute(self._url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name), node)
            self._joined.remove(url)

    def close(self) -> None:
        self._shapes.clear()
        for url in list(self._joined):
            self.drop(url)
        self._plain.close()

    def _execute(self, url: str, text: sql.Composed | sql.SQL, node: Node | None = None) -> None:
        host, port = node or self._nodes[0]
        with psycopg.connect(url, host=host, port=port, autocommit=True) as connection:
            connection.execute(text)


class Singly(Forwarding):
    """A store in which statements that need several shards are errors, except those that `many` accepts."""

    def __init__(self, database: Database, many: Callable[[str], bool]) -> None:
        """`many` tells whether a statement may need more than one shard."""
        super().__init__(database)
        self.many = many

    def fetch(self, statement: Statement) -> list[Row]:
        with self.snapshot() as connection:
            return connection.fetch(statement)

    def reading(self, connection: Connection) -> Connection:
        return _SinglyConnection(connection, self)

    writing = reading


class _SinglyConnection(ForwardingConnection[Singly]):
    def fetch(self, statement: Statement) -> list[Row]:
        if not self._store.many(statement.text):
            return super().fetch(statement)
        super().run_script(f"SET LOCAL {SINGLY} = off")
        rows = super().fetch(statement)
        super().run_script(f"SET LOCAL {SINGLY} = error")
        return rows

    def run_script(self, text: str) -> None:
        """Run a test's own script, in which any statement is allowed."""
        super().run_script(f"SET LOCAL {SINGLY} = off; {text}; SET LOCAL {SINGLY} = error")


class _StandIn(PostgresEngine):
    """Databases of a server with an extension named citus that keeps the metadata of Citus but moves no rows."""

    def joined(self) -> str:
        url = self.bare()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION citus")
        return url


@contextmanager
def _stand_in() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="laudo-citus-"))
    try:
        # The server may run as another user.
        folder.chmod(0o755)
        (folder / "extension").mkdir(mode=0o755)
        (folder / "extension" / "citus.control").write_text(_CONTROL)
        (folder / "extension" / "citus--14.0-1.sql").write_text(_SCRIPT)
        with (
            postgres_server.start(version=18, extension_control_path=f"{folder}:$system") as server,
            closing(_StandIn(server.url())) as made,
        ):
            yield made
    finally:
        shutil.rmtree(folder)


def _emptied(url: str, shape: object) -> bool:
    """Empty a store; returns whether it is as it was when it was made."""
    try:
        with psycopg.connect(url, options="-c lock_timeout=5s") as connection:
            for table in (*reversed(DISTRIBUTED), "token", "heartbeat"):
                connection.execute(f"DELETE FROM {table}".encode())
            connection.execute("INSERT INTO heartbeat (id, at_ms) VALUES (1, 0)")
        return _shape(url) == shape
    except psycopg.Error:
        return False


def _shape(url: str) -> object:
    with psycopg.connect(url) as connection:
        return connection.execute(_COLUMNS).fetchall()


def _name(url: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


_TABLES: Final = (*REFERENCE, *DISTRIBUTED)
_MACHINES: Final = "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"
_COLUMNS: Final = """
SELECT attrelid::regclass::text, attname, atttypid::regtype::text
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT name, '', '' FROM migration
UNION ALL SELECT logicalrelid::text, partmethod::text, repmodel::text FROM pg_dist_partition
ORDER BY 1, 2
"""

_CONTROL: Final = "comment = 'what Citus knows of tables, and nothing that it does'\ndefault_version = '14.0-1'\n"
_SCRIPT: Final = """
CREATE TABLE pg_dist_partition (
    logicalrelid REGCLASS PRIMARY KEY, partmethod "char", partkey TEXT, colocationid INT, repmodel "char"
);
CREATE FUNCTION column_to_column_name(table_name REGCLASS, key TEXT) RETURNS TEXT STRICT LANGUAGE sql AS 'SELECT key';
CREATE FUNCTION create_reference_table(table_name REGCLASS) RETURNS VOID LANGUAGE sql
    AS $$ INSERT INTO pg_dist_partition VALUES (table_name, 'n', NULL, 1, 't') $$;
CREATE FUNCTION citus_add_local_table_to_metadata(table_name REGCLASS) RETURNS VOID LANGUAGE sql
    AS $$ INSERT INTO pg_dist_partition VALUES (table_name, 'n', NULL, 0, 's') $$;
CREATE FUNCTION undistribute_table(table_name REGCLASS, cascade_via_foreign_keys BOOLEAN = false) RETURNS VOID
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT cascade_via_foreign_keys
            AND EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND table_name IN (conrelid, confrelid)) THEN
        RAISE 'cannot complete operation because % has a foreign key', table_name USING ERRCODE = '0A000';
    END IF;
    WITH RECURSIVE connected (id) AS (
        SELECT table_name::oid UNION SELECT CASE WHEN id = conrelid THEN confrelid ELSE conrelid END
        FROM connected JOIN pg_constraint ON contype = 'f' AND id IN (conrelid, confrelid)
    ) DELETE FROM pg_dist_partition USING connected WHERE logicalrelid = id;
END $$;
CREATE FUNCTION create_distributed_table(table_name REGCLASS, key TEXT, colocate_with TEXT) RETURNS VOID
LANGUAGE plpgsql AS $$
DECLARE beside INT;
BEGIN
    IF EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND conrelid = table_name
               AND confrelid NOT IN (SELECT logicalrelid FROM pg_dist_partition)) THEN
        RAISE 'the referenced table of % must be distributed first', table_name USING ERRCODE = '0A000';
    END IF;
    IF EXISTS (SELECT FROM pg_index WHERE indrelid = table_name AND indisunique AND NOT EXISTS (
            SELECT FROM pg_attribute WHERE attrelid = table_name AND attname = key AND attnum = ANY (indkey))) THEN
        RAISE 'what is unique in % must have %', table_name, key USING ERRCODE = '0A000';
    END IF;
    IF colocate_with = 'none' THEN
        SELECT coalesce(max(colocationid), 1) + 1 INTO beside FROM pg_dist_partition;
    ELSE
        SELECT colocationid INTO STRICT beside FROM pg_dist_partition WHERE logicalrelid = colocate_with::regclass;
    END IF;
    INSERT INTO pg_dist_partition VALUES (table_name, 'h', key, beside, 's');
END $$;
CREATE FUNCTION truncate_local_data_after_distributing_table(table_name REGCLASS) RETURNS VOID
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM pg_dist_partition WHERE logicalrelid = table_name;
    IF NOT FOUND THEN
        RAISE 'relation "%" is not distributed', table_name;
    END IF;
END $$;
"""
