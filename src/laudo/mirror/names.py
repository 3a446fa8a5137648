"""The names that a mirror has learned, kept until the reports come that need them."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from laudo.client import Pessoa
from laudo.server.database import StoreError


class Names:
    """CPF → name, in a file of its own, as there may be more than memory holds.

    It uses one connection without a WAL, for which the standard library's SQLite is safe. What SQLite refuses is a
    StoreError.
    """

    def __init__(self, path: Path) -> None:
        """Raises StoreError if there is a file that is not ours; if there is none, `add` makes it."""
        self._path = path
        self._connection = self._open() if path.exists() else None

    def add(self, pessoas: Sequence[Pessoa]) -> None:
        if not pessoas:
            return
        self._connection = self._connection or self._open()
        with self._as_store_errors(), self._connection:
            self._connection.executemany(
                "INSERT INTO nome VALUES (?, ?) ON CONFLICT (cpf) DO UPDATE SET nome = excluded.nome",
                [(pessoa.cpf, pessoa.nome) for pessoa in pessoas],
            )

    def find(self, cpfs: set[str]) -> dict[str, str]:
        if self._connection is None:
            return {}
        with self._as_store_errors(), closing(self._connection.cursor()) as cursor:
            found = (cursor.execute("SELECT cpf, nome FROM nome WHERE cpf = ?", (cpf,)).fetchone() for cpf in cpfs)
            return dict(row for row in found if row)

    def close(self) -> None:
        if self._connection:
            self._connection.close()

    def delete(self) -> None:
        """Delete the file: what it held is now in the store."""
        self.close()
        self._path.unlink(missing_ok=True)

    def _open(self) -> sqlite3.Connection:
        """Open the file; one that is neither empty nor holds just our table is left alone."""
        is_new = not self._path.exists()
        if is_new:
            self._path.touch(mode=0o600)
        try:
            return self._prepared()
        except StoreError:
            if is_new:  # The disk is full.
                self._path.unlink(missing_ok=True)
            raise

    def _prepared(self) -> sqlite3.Connection:
        with self._as_store_errors():
            with closing(sqlite3.connect(self._path)) as probe:
                found = [row[0] for row in probe.execute("SELECT sql FROM sqlite_master")]
            if found != [f"CREATE TABLE {_TABLE}"] and self._path.stat().st_size:
                raise StoreError(
                    f"{self._path} is not a file of `laudo pull`; hint: remove it, or name another --state"
                )
            self._path.chmod(0o600)  # A copy may be open to others; on somebody else's file this fails.
            connection = sqlite3.connect(self._path)
            connection.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE}")
            return connection

    @contextmanager
    def _as_store_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            todo = "make room on its disk, or remove it if it is damaged: names are then requested one by one"
            raise StoreError(f"cannot use the file of names {self._path}: {error}; hint: {todo}") from error


_TABLE: Final = "nome (cpf TEXT PRIMARY KEY, nome TEXT) WITHOUT ROWID"
