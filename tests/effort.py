"""Measures effort in units that are the same on every machine: lines of Python, statements, steps inside SQLite."""

import sys
from collections.abc import Callable
from contextlib import closing
from itertools import count
from types import FrameType
from typing import Any

import apsw
import pytest

from engines import sqlite_file
from forwarding import Forwarding, ForwardingConnection
from laudo.core.lookups import LookUp
from laudo.core.sql import Statement
from laudo.server.database import Connection, Database, Mark, Row

Noted = list[tuple[LookUp, Statement]]
"""The look-ups sent to a store, each with its statement."""


def lines(call: Callable[[], object]) -> int:
    """Count the lines of Python that a call runs; a line that runs twice counts twice."""
    count = 0

    def one_more(_frame: FrameType, _event: str, _argument: Any) -> Any:  # noqa: ANN401 - as Python calls it
        nonlocal count
        count += 1
        return one_more

    before = sys.gettrace()
    sys.settrace(one_more)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def steps(store_url: str, statement: Statement) -> int:
    """Count, in hundreds, the steps of SQLite's virtual machine for a statement without arrays."""
    hundreds = count()
    with closing(apsw.Connection(str(sqlite_file(store_url)))) as connection:
        connection.set_progress_handler(lambda: next(hundreds) < 0, 100)
        connection.execute(statement.text, statement.params).fetchall()
    return next(hundreds)


class Counting(Forwarding):
    """A store that records its statements; with `marks` False it acts like an engine without marks."""

    def __init__(self, database: Database, *, marks: bool = True) -> None:
        super().__init__(database)
        self._marks = marks
        self.snapshots = 0
        self.statements: list[Statement] = []

    def fetch(self, statement: Statement) -> list[Row]:
        self.statements.append(statement)
        return super().fetch(statement)

    def mark(self) -> Mark:
        return super().mark() if self._marks else None

    def reading(self, connection: Connection) -> Connection:
        self.snapshots += 1
        return _CountingConnection(connection, self)

    def writing(self, connection: Connection) -> Connection:
        pytest.fail(f"a request began a write transaction: {connection}")

    def forget(self) -> None:
        self.snapshots = 0
        self.statements.clear()


class _CountingConnection(ForwardingConnection[Counting]):
    def fetch(self, statement: Statement) -> list[Row]:
        self._store.statements.append(statement)
        return super().fetch(statement)
