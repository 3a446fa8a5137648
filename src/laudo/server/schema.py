"""Compares the migrations that this version knows with those that a store has."""

from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from laudo.core.sql import Dialect, Statement
from laudo.server.database import NO_SCHEMA, Connection, StoreError

APPLIED: Final = Statement("SELECT name FROM migration ORDER BY name")


def folder(dialect: Dialect) -> Traversable:
    """Give the folder of an engine's migrations."""
    return resources.files("laudo.server.migrations") / dialect.name


def files(folder: Traversable) -> list[Traversable]:
    """Give the migrations of a folder, in the order in which they are applied."""
    return sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)


def applied(connection: Connection) -> set[str]:
    """Give the names of the migrations that a store has, none if there is no store yet."""
    if not connection.has_column("migration", "name"):
        return set()
    return {str(name) for (name,) in connection.fetch(APPLIED)}


def is_current(connection: Connection) -> bool:
    """Tell whether every migration that this version knows has been applied."""
    return applied(connection) >= _known(connection.dialect)


def require_current(connection: Connection) -> None:
    """Raise StoreError if the schema is missing or older than this version's."""
    if not is_current(connection):
        raise StoreError(NO_SCHEMA)


def is_newer(connection: Connection) -> bool:
    """Tell whether a newer version has migrated the store."""
    return not applied(connection) <= _known(connection.dialect)


def require_none_newer(connection: Connection) -> None:
    """Raise StoreError if a newer version has migrated the store: this one would not update the newer one's counts.

    Reading is still allowed, and so is managing accounts, users and tokens.
    """
    if is_newer(connection):
        raise StoreError("the store was migrated by a newer version of laudo; write to it with that version")


def _known(dialect: Dialect) -> set[str]:
    return {file.name for file in files(folder(dialect))}
