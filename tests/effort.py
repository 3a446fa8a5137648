"""Measures effort in units that are the same on every machine: lines of Python, statements, steps inside SQLite."""

import sys
from collections.abc import Callable
from contextlib import closing
from itertools import count
from types import FrameType
from typing import Any

import apsw

from engines import sqlite_file
from laudo.core.lookups import LookUp
from laudo.core.sql import Statement

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
