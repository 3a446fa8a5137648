"""A store on plain PostgreSQL, partitioned as Citus would distribute it, and a wrapper that records its use.

Citus sends a statement to one machine if it can tell before running it that each table is filtered by one organization.
PostgreSQL then prunes all other partitions. Partitions with the same number stand for one machine.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import psycopg

from forwarding import Forwarding, ForwardingConnection
from laudo.core.sql import How, Statement, Write
from laudo.server.citus import DISTRIBUTED, REFERENCE
from laudo.server.database import Connection, Database, Row
from laudo.server.postgres.binding import columns

MACHINES: Final = 8


def part(url: str) -> None:
    """Turn a migrated, empty store into its twin, by replacing its tables with partitioned ones."""
    with closing(psycopg.connect(url, autocommit=True)) as connection, connection.transaction():
        keys = connection.execute(_FOREIGN_KEYS).fetchall()
        connection.execute("ALTER SCHEMA public RENAME TO model")
        connection.execute("CREATE SCHEMA public")
        connection.execute("GRANT USAGE ON SCHEMA public TO public")
        for table in REFERENCE:
            connection.execute(f"ALTER TABLE model.{table} SET SCHEMA public".encode())
        for table in DISTRIBUTED:
            parted = f"CREATE TABLE {table} (LIKE model.{table} INCLUDING ALL) PARTITION BY HASH (id_organizacao)"
            connection.execute(parted.encode())
            for number in range(MACHINES):
                bound = f"FOR VALUES WITH (MODULUS {MACHINES}, REMAINDER {number})"
                connection.execute(f"CREATE TABLE {table}{_ON}{number} PARTITION OF {table} {bound}".encode())
        for table, name, text in keys:
            connection.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {text}".encode())
        connection.execute("DROP SCHEMA model CASCADE")


Counts = dict[int, tuple[int, int]]
"""For each machine, the numbers of searches and of changes."""


@dataclass(slots=True)
class Touched:
    """The machines that each statement needed, by its plan and in each run, and those that each transaction changed."""

    planned: dict[str, set[int]] = field(default_factory=dict)
    run: list[tuple[str, set[int]]] = field(default_factory=list)
    changed: list[set[int]] = field(default_factory=list)
    kinds: set[How] = field(default_factory=set)


class Watched(Forwarding):
    """A twin that records which machines each statement touches."""

    def __init__(self, database: Database, touched: Touched) -> None:
        super().__init__(database)
        self.touched = touched

    @cached_property
    def counting(self) -> Statement:
        """The statement that counts searches and changes on each machine; it is made once, from the catalog."""
        found = self._database.fetch(Statement(_PARTS))
        parts = [(machine, *part) for name, *part in found for machine in _machines([name])]
        return Statement(_COUNTS.format(*(",".join(map(str, column)) for column in zip(*parts, strict=True))))

    def fetch(self, statement: Statement) -> list[Row]:
        with self.snapshot() as connection:
            return connection.fetch(statement)

    def reading(self, connection: Connection) -> Connection:
        return _WatchedConnection(connection, self)

    def writing(self, connection: Connection) -> Connection:
        self.touched.changed.append(set())
        return _WatchedConnection(connection, self)


class _WatchedConnection(ForwardingConnection[Watched]):
    """A connection in one transaction; it reads that transaction's statistics, which become public only at its end."""

    _before: Counts | None = None

    def fetch(self, statement: Statement) -> list[Row]:
        self._plan(statement)
        before = self._before or self._counts()
        *found, after = self._connection.fetch_each([statement, self._store.counting])
        self._see(statement.text, before, _counts(after))
        return found[0] if found else []

    def write(self, write: Write, rows: Iterable[Row]) -> None:
        if given := list(rows):
            self._store.touched.kinds.add(write.how)
            text = self.dialect.written(write)
            self._plan(Statement(text, columns(given)))
            before = self._before or self._counts()
            super().write(write, given)
            self._see(text, before, self._counts())

    def _plan(self, statement: Statement) -> None:
        """Record the plan of a new statement; the planner sees its parameters, as Citus does."""
        if statement.text not in self._store.touched.planned:
            asked = Statement(f"EXPLAIN (FORMAT JSON) {statement.text}", statement.params)
            [([plan],)] = self._connection.fetch(asked)
            self._store.touched.planned[statement.text] = set(_machines(_relations(plan["Plan"])))
            self._before = None

    def _see(self, text: str, before: Counts, after: Counts) -> None:
        """Record the machines whose partitions were searched or changed between the two counts."""
        self._before = after
        searched, changed = (
            {machine for machine, counts in after.items() if counts[kind] != before[machine][kind]} for kind in range(2)
        )
        self._store.touched.run.append((text, searched | changed))
        if changed:
            self._store.touched.changed[-1] |= changed

    def _counts(self) -> Counts:
        return _counts(self._connection.fetch(self._store.counting))


def _counts(rows: Iterable[Row]) -> Counts:
    return {machine: (searches, changes) for machine, searches, changes in rows}


def _machines(names: Iterable[str]) -> Iterator[int]:
    """Yield the numbers of the machines to which the named partitions belong."""
    yield from (int(number) for name in names if (number := name.partition(_ON)[2]))


def _relations(plan: dict[str, Any]) -> Iterator[str]:
    if name := plan.get("Relation Name"):
        yield name
    for below in (*plan.get("Target Tables", ()), *plan.get("Plans", ())):
        yield from _relations(below)


_ON: Final = "_on_"
_FOREIGN_KEYS: Final = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype = 'f' ORDER BY conname
"""
_PARTS: Final = """
SELECT relname::text, oid::bigint, 1 FROM pg_class WHERE relkind = 'r'
UNION ALL SELECT relname::text, indexrelid::bigint, 0 FROM pg_index JOIN pg_class ON oid = indrelid WHERE relkind = 'r'
"""
_COUNTS: Final = """
SELECT machine, sum(pg_stat_get_xact_numscans(part))::bigint, sum(
    CASE WHEN is_table = 1 THEN pg_stat_get_xact_tuples_inserted(part) + pg_stat_get_xact_tuples_updated(part)
        + pg_stat_get_xact_tuples_deleted(part) ELSE 0 END
)::bigint
FROM unnest('{{{}}}'::bigint[], '{{{}}}'::oid[], '{{{}}}'::bigint[]) AS parts (machine, part, is_table) GROUP BY machine
"""
