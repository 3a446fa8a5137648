"""Stores that forward every call to another store; a test's subclass overrides what should differ."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from laudo.core.sql import Dialect, Statement, Write
from laudo.server.database import Connection, Database, Mark, Row

S = TypeVar("S")


class Forwarding:
    """A store that forwards every call; `reading` and `writing` may wrap the connections of its transactions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    def reading(self, connection: Connection) -> Connection:
        return connection

    def writing(self, connection: Connection) -> Connection:
        return connection

    def fetch(self, statement: Statement) -> list[Row]:
        return self._database.fetch(statement)

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        return [self.fetch(statement) for statement in statements]

    def mark(self) -> Mark:
        return self._database.mark()

    def fetch_marked(self, statements: Sequence[Statement]) -> tuple[list[list[Row]], Mark]:
        """Return no mark; only a subclass can know which state its statements saw."""
        return self.fetch_each(statements), None

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        with self._database.snapshot() as connection:
            yield self.reading(connection)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self._database.transaction() as connection:
            yield self.writing(connection)

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        with self._database.alone() as connection:
            yield self.writing(connection)

    def empty_log(self) -> None:
        self._database.empty_log()

    def vacuum(self) -> None:
        self._database.vacuum()

    def close(self) -> None:
        self._database.close()


class ForwardingConnection(Generic[S]):
    """A connection that forwards every call; a subclass can use `_store`, the store that it belongs to."""

    def __init__(self, connection: Connection, store: S) -> None:
        self._connection = connection
        self._store = store

    @property
    def dialect(self) -> Dialect:
        return self._connection.dialect

    def fetch(self, statement: Statement) -> list[Row]:
        return self._connection.fetch(statement)

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        return [self.fetch(statement) for statement in statements]

    def write(self, write: Write, rows: Iterable[Row]) -> None:
        self._connection.write(write, rows)

    def lock(self, name: str, *, wait: bool = True) -> None:
        self._connection.lock(name, wait=wait)

    def run_script(self, text: str) -> None:
        self._connection.run_script(text)

    def has_column(self, table: str, name: str) -> bool:
        return self._connection.has_column(table, name)
