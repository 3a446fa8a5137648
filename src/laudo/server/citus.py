"""How Citus distributes a store's tables over many machines: the one list of them, which a test holds complete.

The rows of an organization are on one machine. Citus hands a statement unchanged to that machine if it restricts each
of its tables to this one organization.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

from laudo.core.sql import Statement
from laudo.server import locks
from laudo.server.database import Database, Reader, StoreError

DISTRIBUTED: Final = ("organizacao", "conta", "usuario", "facet", "bucket", "tally", "relatorio", "pessoa", "word")
"""Distributed by id_organizacao; a table comes after those that its foreign keys name."""

REFERENCE: Final = ("migration", "token", "heartbeat")
"""Copied as a whole to every machine, since they are read without an organization."""

OLDEST: Final = (11, 2)
"""In older versions a transaction is not one snapshot on all machines, so that a total and its page could differ."""


def check(connection: Reader) -> None:
    """Raise StoreError if Citus is installed, but is too old, or the store is not as `apply` makes it.

    Without Citus this is one short query. A table that this version does not know is accepted: it belongs to a later
    version, which may change the schema while this one serves.
    """
    if connection.dialect.name != "postgres" or not (installed := _installed(connection)):
        return
    found = _distribution(connection)
    _refuse_misplaced(found)
    if missing := [table for table in _PLANNED if table not in found]:
        raise StoreError(f"Citus is installed, but has not distributed {', '.join(missing)}; run `laudo citus apply`")
    if installed.plan_mode != _PLAN_MODE:
        message = (
            f"with Citus, plan_cache_mode must be {_PLAN_MODE}, but is {installed.plan_mode}; run `laudo citus apply`"
        )
        raise StoreError(message)


def plan(connection: Reader) -> list[str]:
    """Give the statements that distribute what is not yet distributed; for a database without Citus, all of them.

    Raises StoreError for a table that is in none of the lists, and for one that is distributed in another way.
    """
    if connection.dialect.name != "postgres":
        raise StoreError("Citus distributes a store on PostgreSQL; a SQLite file stays on one machine")
    found = _distribution(connection) if _installed(connection) else {}
    known = [*DISTRIBUTED, *REFERENCE]
    if unknown := [str(table) for (table,) in connection.fetch(Statement(_OTHER_TABLES, (known,)))]:
        raise StoreError(f"laudo does not know how to distribute {', '.join(unknown)}; hint: move it to another schema")
    _refuse_misplaced(found)
    return list(_missing(connection, found))


def apply(database: Database) -> list[str]:
    """Distribute what is not yet distributed, with its rows, in one transaction; gives the statements that it ran.

    Writers wait until it ends, readers only while it commits. Raises StoreError.
    """
    return locks.retry(partial(_apply, database), "distributing the tables")


def script(statements: list[str]) -> str:
    """Give the statements of a plan as a script for psql."""
    return "".join(f"{statement};\n" for statement in ("BEGIN", *statements, "COMMIT"))


def _apply(database: Database) -> list[str]:
    with database.transaction() as connection:
        if connection.dialect.name == "postgres" and not _installed(connection):
            raise StoreError(
                "the database has no Citus; hint: CREATE EXTENSION citus in a database of this name on every machine, "
                "then here SELECT citus_set_coordinator_host('this machine', 5432), and for each of the others "
                "SELECT citus_add_node('worker', 5432)"
            )
        locks.lock_without_waiting(connection, "citus")
        statements = plan(connection)
        for statement in statements:
            connection.run_script(statement)
    return statements


def _missing(connection: Reader, found: Mapping[str, str]) -> Iterator[str]:
    if missing := [table for table in _PLANNED if table not in found]:
        yield _SEQUENTIALLY
        [(schema,)] = connection.fetch(Statement(_SCHEMA))
        yield f"SET LOCAL search_path = {schema}"  # Whoever runs the script may have another one.
        yield from (_STATEMENTS[table] for table in missing)
    # The rows that were there before have been copied; the old copies are invisible.
    for (table,) in connection.fetch(Statement(_WITH_LOCAL_ROWS, (missing,))):
        yield f"SELECT truncate_local_data_after_distributing_table('{table}')"
    for (database,) in connection.fetch(Statement(_WITHOUT_PLAN_MODE, (_PLAN_MODE,))):
        yield f"ALTER DATABASE {database} SET plan_cache_mode = '{_PLAN_MODE}'"


class _Installed(NamedTuple):
    """A database's version of Citus, and its plan_cache_mode."""

    version: str
    plan_mode: str


def _installed(connection: Reader) -> _Installed | None:
    """Give what is installed, None without Citus; raises StoreError if it is too old."""
    for row in connection.fetch(Statement(_CITUS)):
        installed = _Installed(*row)
        if tuple(map(int, installed.version.partition("-")[0].split("."))) < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise StoreError(
                f"Citus {installed.version} is too old: laudo needs {oldest}; "
                "hint: install a newer one on every machine, then run ALTER EXTENSION citus UPDATE"
            )
        return installed
    return None


def _refuse_misplaced(found: Mapping[str, str]) -> None:
    for table, planned in _PLANNED.items():
        if (state := found.get(table, planned)) != planned:
            # Citus refuses to undistribute a table alone that has foreign keys, or that others refer to.
            undo = f"SELECT undistribute_table('{table}', cascade_via_foreign_keys => true)"
            message = f"Citus has {table} {state}, but it should be {planned}"
            raise StoreError(f"{message}; hint: run {undo}, then `laudo citus apply`")


def _distribution(connection: Reader) -> dict[str, str]:
    """Tell how each table that Citus knows is distributed."""
    rows = connection.fetch(Statement(_DISTRIBUTION))
    colocated = [group for table, *_, group in rows if table == DISTRIBUTED[0]]
    found = {}
    for table, column, is_reference, group in rows:
        if column is None:
            found[str(table)] = _ON_EVERY_MACHINE if is_reference else "on one machine"
        else:
            found[str(table)] = f"distributed by {column}" + (_COLOCATED if group in colocated else "")
    return found


_COLOCATED: Final = f" with {DISTRIBUTED[0]}"
_ON_EVERY_MACHINE: Final = "whole on every machine"
_BY_ORGANIZACAO: Final = f"distributed by id_organizacao{_COLOCATED}"
_PLANNED: Final = dict.fromkeys(REFERENCE, _ON_EVERY_MACHINE) | dict.fromkeys(DISTRIBUTED, _BY_ORGANIZACAO)

_SEQUENTIALLY: Final = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"
"""Otherwise no transaction can distribute two tables of which one refers to the other."""
_STATEMENTS: Final = {table: f"SELECT create_reference_table('{table}')" for table in REFERENCE} | {
    table: f"SELECT create_distributed_table('{table}', 'id_organizacao', colocate_with => '{colocated_with}')"
    for table, colocated_with in zip(DISTRIBUTED, ("none", *(DISTRIBUTED[0] for _ in DISTRIBUTED[1:])), strict=True)
}

_PLAN_MODE: Final = "force_custom_plan"
"""With a cached plan, Citus sends a statement that changes the rows listed in an array to every shard of the table."""

_CITUS: Final = "SELECT extversion, current_setting('plan_cache_mode') FROM pg_extension WHERE extname = 'citus'"
_WITHOUT_PLAN_MODE: Final = """
SELECT quote_ident(datname) FROM pg_database
WHERE datname = current_database() AND NOT EXISTS (
  SELECT FROM pg_db_role_setting
  WHERE setdatabase = pg_database.oid AND setrole = 0 AND 'plan_cache_mode=' || ? = ANY (setconfig)
)
"""
"""Reads the database's setting: the connection's may differ, since a connection that writes has its own."""
_SCHEMA: Final = "SELECT quote_ident(current_schema())"
_OTHER_TABLES: Final = """
SELECT relname::text FROM pg_class
WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
  AND relname <> ALL(?)
  AND oid NOT IN (SELECT objid FROM pg_depend WHERE classid = 'pg_class'::regclass AND deptype = 'e')
ORDER BY relname
"""
_WITH_LOCAL_ROWS: Final = """
SELECT relname::text FROM pg_class
WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relname = ANY(?) AND pg_relation_size(oid) > 0
ORDER BY relname
"""
_DISTRIBUTION: Final = """
SELECT relname::text, column_to_column_name(logicalrelid, partkey), repmodel = 't', colocationid::bigint
FROM pg_dist_partition JOIN pg_class ON pg_class.oid = logicalrelid
WHERE relnamespace = quote_ident(current_schema())::regnamespace
"""
