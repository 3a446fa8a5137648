"""The schema's history, forward only: the numbered SQL files beside this module, each applied once."""

import time
from importlib import resources
from typing import TYPE_CHECKING, Final

from laudo.core.sql import Statement
from laudo.server.database import StoreError

if TYPE_CHECKING:
    from laudo.server.database import Connection, Database

_TABLE: Final = "CREATE TABLE IF NOT EXISTS migration (name TEXT NOT NULL PRIMARY KEY, applied_at INTEGER NOT NULL)"


def migrate(database: "Database") -> list[str]:
    """Bring the store's schema up to date; gives the names applied, none when it already was."""
    with database.transaction() as connection:
        connection.run_script(_TABLE)
        missing = [name for name in _names() if name not in _applied(connection)]
        for name in missing:
            connection.run_script(_text(name))
            connection.fetch(
                Statement("INSERT INTO migration (name, applied_at) VALUES (?, ?)", (name, time.time_ns() // 1_000_000))
            )
    return missing


def is_current(connection: "Connection") -> bool:
    """Tell whether every migration that this version knows has been applied."""
    return _applied(connection) >= set(_names())


def require_current(connection: "Connection") -> None:
    """Raise StoreError when the schema is missing or older than this version."""
    if not is_current(connection):
        message = "the store has no schema, or an older one; run `laudo migrate`"
        raise StoreError(message)


def _names() -> list[str]:
    return sorted(file.name for file in resources.files(__name__).iterdir() if file.name.endswith(".sql"))


def _text(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def _applied(connection: "Connection") -> set[str]:
    if not connection.has_table("migration"):
        return set()
    return {str(name) for (name,) in connection.fetch(Statement("SELECT name FROM migration", ()))}
