"""How much runs: lines of Python, statements and steps of SQLite's machine, which are the same on every machine."""

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
"""What a store was asked: each look-up, and the statement that was made of it."""


def lines(call: Callable[[], object]) -> int:
    """Count the lines of Python that a call runs, each as often as it does."""
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
    """Count the steps that a statement without arrays takes SQLite, in hundreds."""
    hundreds = count()
    with closing(apsw.Connection(str(sqlite_file(store_url)))) as connection:
        connection.set_progress_handler(lambda: next(hundreds) < 0, 100)
        connection.execute(statement.text, statement.params).fetchall()
    return next(hundreds)
