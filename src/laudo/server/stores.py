"""Opens a store by its URL, with the engine that the URL names."""

from pathlib import Path

from laudo.server.database import PATIENT, Bounds, Database, StoreError


def open_store(url: str, *, write: bool = False, bounds: Bounds = PATIENT) -> Database:
    """Open the store that a URL names; only `write=True` may create or change one. Raises StoreError."""
    if path := file_path(url):
        if "?" in path.name and not path.exists():
            raise StoreError(f"there is no store at {path}; a SQLite URL takes no parameters after ?")
        from laudo.server.sqlite import Sqlite  # noqa: PLC0415 - only the engine in use is loaded

        return Sqlite(path, write=write, bounds=bounds)
    if url.startswith(("postgresql://", "postgres://")):
        try:
            from laudo.server.postgres import Postgres  # noqa: PLC0415 - the same
        except ImportError as error:
            message = f"PostgreSQL needs psycopg and its libpq ({error}); hint: pip install 'psycopg[binary]'"
            raise StoreError(message) from error

        return Postgres(url, write=write, bounds=bounds)
    raise StoreError("the store's URL must look like sqlite:///laudo.db or postgresql://user@host/database")


def file_path(url: str) -> Path | None:
    """Give the absolute path of a store in a file; None for a store on a server."""
    scheme, _, rest = url.partition("://")
    name = rest.removeprefix("/")
    return Path(name).absolute() if scheme == "sqlite" and name else None
