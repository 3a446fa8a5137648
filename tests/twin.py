"""A twin of a store, each distributed table parted by organization as Citus would, and who sees what is touched.

Citus hands a statement to one machine when it can tell, before it runs, that each table is asked for one organization;
PostgreSQL then leaves out all other partitions. Partitions of the same number stand for one machine.
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
    """Make a twin of a migrated, empty store, out of its own schema."""
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
"""Of each machine, how many searches and changes there were."""


@dataclass(slots=True)
class Touched:
    """Which machines each statement needed, as planned and each time it ran, and each transaction's changes."""

    planned: dict[str, set[int]] = field(default_factory=dict)
    run: list[tuple[str, set[int]]] = field(default_factory=list)
    changed: list[set[int]] = field(default_factory=list)
    kinds: set[How] = field(default_factory=set)


class Watched(Forwarding):
    """A twin of which each statement is watched."""

    def __init__(self, database: Database, touched: Touched) -> None:
        super().__init__(database)
        self.touched = touched

    @cached_property
    def counting(self) -> Statement:
        """What counts the searches and the changes on each machine: its partitions and indexes are looked up once."""
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
    """One transaction; what it has done is sent to the server's statistics only when it ends."""

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
        """Look at the plan of a statement that is new; the planner knows its parameters, as Citus does."""
        if statement.text not in self._store.touched.planned:
            asked = Statement(f"EXPLAIN (FORMAT JSON) {statement.text}", statement.params)
            [([plan],)] = self._connection.fetch(asked)
            self._store.touched.planned[statement.text] = set(_machines(_relations(plan["Plan"])))
            self._before = None

    def _see(self, text: str, before: Counts, after: Counts) -> None:
        """See on which machines partitions were searched or changed meanwhile."""
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
    """Give the machines on which partitions lie."""
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
