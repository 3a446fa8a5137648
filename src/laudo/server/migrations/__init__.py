"""Brings a store's schema up to date, forward only: a folder of numbered SQL files for each engine, each applied once.

`NNNN_name.sql` is applied whole or not at all, in one transaction, which also fills a new table of counts.
`NNNN_name.concurrent.sql`, only for PostgreSQL, makes or drops indexes while others read and write. Its statements run
one by one, outside of any transaction; after an interruption it starts again from the first one.
"""

import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources.abc import Traversable
from typing import Final
from urllib.parse import quote

from laudo.core import axes
from laudo.core.sql import Owner, Statement
from laudo.core.tally import COARSE
from laudo.server import locks, roles, schema
from laudo.server.database import Connection, Database, StoreError
from laudo.server.ingest import vocabulary
from laudo.server.ingest.changes import lock_writers
from laudo.server.ingest.tallies import Tally

OnApplied = Callable[[str], object]
"""Called with the name of each file that has been applied."""


def migrate(
    database: Database,
    *,
    folder: Traversable | None = None,
    seconds: float = locks.SECONDS,
    on_applied: OnApplied = lambda _name: None,
) -> list[str]:
    """Bring the store's schema up to date; gives the names of the files applied, none if it already was.

    Raises StoreError if others hold a table, or another migration runs, for `seconds`; for a store in a file it waits
    without limit until the writer ends. What was applied until then stays, and the rest can be applied later. Also
    raises it for another application's file, and if another schema of the database has a store, unless the connection
    itself sets search_path, to make a second one.
    """
    files = schema.files(folder or schema.folder(database.dialect))
    with database.snapshot() as connection:
        known = schema.applied(connection)
        _refuse_wrong_place(connection, is_new=known.isdisjoint(file.name for file in files))
    applied = []
    for file in files:
        if file.name in known:
            continue
        apply = _build if file.name.endswith(_CONCURRENT) else _apply
        if locks.retry(partial(apply, database, file), f"the migration {file.name}", seconds):
            applied.append(file.name)
            on_applied(file.name)
    return applied


def _refuse_wrong_place(connection: Connection, *, is_new: bool) -> None:
    if connection.dialect.name == "postgres":
        if found := connection.fetch(Statement(_OTHER_SCHEMAS)):
            there, here = [schema for schema, _ in found], found[0][1]
            raise StoreError(
                f"the database has a store in the schema {' and one in '.join(there)}, but search_path leads to {here};"
                f" give the URL {' or '.join(map(_option, there))} to use that one, {_option(here)} to create another"
            )
    elif is_new and connection.fetch(_ANY_TABLE):
        raise StoreError("another application's table is in the way; give laudo a file of its own")


def _option(schema: str) -> str:
    return "options=-c%20search_path%3D" + quote(schema.replace(" ", r"\ "))


def _apply(database: Database, file: Traversable) -> bool:
    with database.transaction() as connection:
        locks.lock_without_waiting(connection, _LOCK)
        if file.name in schema.applied(connection):
            return False
        text = file.read_text(encoding="utf-8")
        # One by one: Citus sends its machines the whole text that a statement comes in.
        for statement in _split(text) if connection.dialect.name == "postgres" else (text,):
            connection.run_script(statement)
        if file.name in _FILLS:
            _wait_for_writers(connection)
            _FILLS[file.name](connection)
        _record(connection, file.name)
        roles.grant_on_new_tables(connection)
    return True


def _wait_for_writers(connection: Connection) -> None:
    """Wait for writers that began before the previous file was applied: since then older versions refuse to write.

    Each organization's lock is released at once: a server has room for only some thousand locks.
    """
    connection.run_script("SAVEPOINT waiting")
    for (id_organizacao,) in connection.fetch(_ORGANIZACOES):
        lock_writers(connection, id_organizacao)
        connection.run_script("ROLLBACK TO waiting")


def _count_words(connection: Connection) -> None:
    for (id_organizacao,) in connection.fetch(_ORGANIZACOES):
        vocabulary.rebuild(connection, id_organizacao)


def _count_mensagens(connection: Connection) -> None:
    """Count the existing reports on the axis mensagem."""
    for owner in connection.fetch(Statement("SELECT id_organizacao, id_conta FROM conta ORDER BY 1, 2")):
        Tally(axes.RELATORIO_MENSAGEM, Owner(*owner)).rebuild(connection)


def _count_lists(connection: Connection) -> None:
    """Sum up the total of each list, from its facets or from the buckets of persons."""
    for (id_organizacao,) in connection.fetch(_ORGANIZACOES):
        connection.fetch(Statement(_COUNT_REPORTS, (id_organizacao, id_organizacao)))
        connection.fetch(Statement(_COUNT_PERSONS, (id_organizacao, axes.PESSOA_CPF.number, COARSE, id_organizacao)))


def _build(database: Database, file: Traversable) -> bool:
    """Build or drop indexes; the lock lasts as long as the build, so an unfinished index that is found is abandoned."""
    with database.alone() as connection:
        connection.lock(_LOCK, wait=False)
        if file.name in schema.applied(connection):
            return False
        connection.run_script(_NO_TIMEOUTS)
        for statement, index in _statements(file):
            for (name,) in connection.fetch(Statement(_INVALID, (index,))):
                connection.run_script(f'DROP INDEX CONCURRENTLY "{name}"')
            connection.run_script(statement)
        _record(connection, file.name)
    return True


def _statements(file: Traversable) -> Iterator[tuple[str, str]]:
    """Give each statement with the index that it makes or drops."""
    for statement in _split(file.read_text(encoding="utf-8")):
        known = _INDEX_STATEMENT(statement)
        if known is None:
            raise StoreError(f"{file.name} may only CREATE [UNIQUE] or DROP an INDEX CONCURRENTLY IF [NOT] EXISTS")
        yield statement, known[1]


def _split(text: str) -> Iterator[str]:
    """Split a script into statements, without comments; it has no functions, which could hold more semicolons."""
    yield from filter(None, map(str.strip, _STATEMENT(_COMMENT(r"\1", text))))


def _record(connection: Connection, name: str) -> None:
    now_ms = time.time_ns() // 1_000_000
    connection.fetch(Statement("INSERT INTO migration (name, applied_at) VALUES (?, ?)", (name, now_ms)))


_FILLS: Final = {
    "0002_word.sql": _count_words,
    "0003_mensagem.sql": _count_mensagens,
    "0004_mensagem.sql": _count_mensagens,
    "0009_total.sql": _count_lists,
    "0012_total.sql": _count_lists,
}
"""File -> the function that fills its tables, in the same transaction."""
_ORGANIZACOES: Final = Statement("SELECT id_organizacao FROM organizacao ORDER BY 1")
_COUNT_REPORTS: Final = """
UPDATE conta SET total = (
    SELECT CAST(coalesce(sum(facet.total), 0) AS bigint) FROM facet
    WHERE facet.id_organizacao = ? AND facet.id_conta = conta.id_conta
) WHERE id_organizacao = ?
"""
_COUNT_PERSONS: Final = """
UPDATE organizacao SET total = (
    SELECT CAST(coalesce(sum(bucket.total), 0) AS bigint) FROM bucket
    WHERE bucket.id_organizacao = ? AND id_conta = 0 AND axis = ? AND parent = ?
) WHERE id_organizacao = ?
"""
_ANY_TABLE: Final = Statement("SELECT name FROM sqlite_schema LIMIT 1")
_OTHER_SCHEMAS: Final = """
SELECT quote_ident(nspname), quote_ident(current_schema()) FROM pg_namespace
WHERE nspname <> current_schema() AND has_schema_privilege(pg_namespace.oid, 'USAGE')
  AND (SELECT count(*) FROM pg_class WHERE relnamespace = pg_namespace.oid AND relkind IN ('r', 'p')
       AND relname IN ('migration', 'organizacao', 'relatorio', 'tally')) = 4
  AND (SELECT source FROM pg_settings WHERE name = 'search_path') <> 'client'
  AND to_regclass(quote_ident(current_schema()) || '.migration') IS NULL
ORDER BY array_position(current_schemas(false), nspname), nspname
"""
"""Stores in other schemas than the current one, if that has none, and if the connection has not set search_path itself;
those on search_path are first."""
_LOCK: Final = "migrations"
_CONCURRENT: Final = ".concurrent.sql"
_NO_TIMEOUTS: Final = "SET lock_timeout = 0; SET statement_timeout = 0"
"""A concurrent build of an index may wait for any time: nobody waits behind it."""
_INVALID: Final = """
SELECT relname::text FROM pg_index JOIN pg_class ON oid = indexrelid
WHERE relname = ? AND relnamespace = quote_ident(current_schema())::regnamespace AND NOT indisvalid
"""
_COMMENT: Final = re.compile(r"('[^']*')|--.*").sub
_STATEMENT: Final = re.compile(r"(?:'[^']*'|[^;'])+").findall
_INDEX_STATEMENT: Final = re.compile(
    r"(?:CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS|DROP INDEX CONCURRENTLY IF EXISTS) (\w+)"
).match
