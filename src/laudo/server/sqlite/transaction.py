"""One transaction on SQLite: what happens on a connection between its begin and its end."""

from collections.abc import Iterable, Sequence
from typing import Self

from laudo.core.sql import SQLITE, Dialect, Statement, Write
from laudo.server.database import Row
from laudo.server.sqlite.session import Session


class SqliteConnection:
    """One transaction of one connection: a `with` block that commits at its end, or rolls back after an exception."""

    __slots__ = ("_begin", "_session")
    dialect: Dialect = SQLITE

    def __init__(self, session: Session, begin: str) -> None:
        """`begin` is the statement that opens the transaction."""
        self._session = session
        self._begin = begin

    def __enter__(self) -> Self:
        """Begin; raises Unavailable, StoreError."""
        self._session.rows(self._begin)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """End; raises Unavailable, StoreError."""
        try:
            if self._session.in_transaction:
                self._session.rows("ROLLBACK" if error else "COMMIT")
        except BaseException:
            if self._session.in_transaction:
                self._session.rows("ROLLBACK")
            raise

    def fetch(self, statement: Statement) -> list[Row]:
        return self._session.rows(statement.text, statement.params)

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        return [self._session.rows(statement.text, statement.params) for statement in statements]

    def write(self, write: Write, rows: Iterable[Row]) -> None:
        self._session.write(self.dialect.written(write), rows)

    def lock(self, _name: str, *, wait: bool = True) -> None:
        """Return at once: a write transaction already excludes all other writers."""

    def run_script(self, text: str) -> None:
        self._session.run_script(text)

    def has_column(self, table: str, name: str) -> bool:
        """Tell whether a table has this column; the pragma alone may not see what another connection has just made."""
        text = "SELECT 1 FROM sqlite_schema AS t, pragma_table_info(t.name) AS c WHERE t.name = ? AND c.name = ?"
        return bool(self._session.rows(text, (table, name)))
