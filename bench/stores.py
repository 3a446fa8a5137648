"""Stores for measuring: reports written in bulk, then everything counted as `laudo verify --repair` counts it."""

import time
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from laudo.core import response
from laudo.core.axes import numero_key
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.writes import RELATORIO
from laudo.demo import invent
from laudo.server import accounts, migrations
from laudo.server.database import Connection, Database, open_store
from laudo.server.ingest.facets import FacetNumbers
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.verify import recount

ORGANIZACAO: Final = "Organização Exemplo"
_BATCH: Final = 50_000
INSERT: Final = Write(
    How.INSERT, RELATORIO, ("facet", "recency", "numero_documento", "nome_pessoa", "mensagem", "item")
)
_INDEXES: Final = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'relatorio'"
_INDEXES_ON_SERVER: Final = """
SELECT indexname::text, indexdef FROM pg_indexes
WHERE schemaname = current_schema() AND tablename = 'relatorio' AND indexname <> 'relatorio_numero'
"""


class Built(NamedTuple):
    """A store of one account."""

    url: str
    owner: Owner
    seconds: float
    """How long building took; 0 when the store was there."""
    gigabytes: float


def build(place: Path | str, count: int) -> Built:
    """Give a store of `count` invented reports of one account, making it when it is not there.

    `place` is a folder, or the URL of a PostgreSQL database beside which others may be made.
    """
    started = time.perf_counter()
    url = _in_folder(place, count) if isinstance(place, Path) else _on_server(place, count)
    with closing(open_store(url)) as database, database.snapshot() as connection:
        [(id_organizacao, id_conta)] = connection.fetch(Statement("SELECT id_organizacao, id_conta FROM conta", ()))
        size = _size(url, connection)
    return Built(url, Owner(id_organizacao, id_conta), time.perf_counter() - started, size / 1e9)


def _in_folder(folder: Path, count: int) -> str:
    file = folder / f"flat-{count}.db"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".unfinished")
        for leftover in folder.glob(f"{unfinished.name}*"):
            leftover.unlink()
        with closing(open_store(f"sqlite:///{unfinished}", write=True)) as database:
            _fill(database, count, _INDEXES)
        unfinished.rename(file)
    return f"sqlite:///{file}"


def _on_server(url: str, count: int) -> str:
    import psycopg  # noqa: PLC0415 - not needed for files

    name, unfinished = f"flat_{count}", f"flat_{count}_unfinished"
    with psycopg.connect(url, autocommit=True) as connection:
        known = {found for (found,) in connection.execute("SELECT datname FROM pg_database")}
        if name not in known:
            connection.execute(f"DROP DATABASE IF EXISTS {unfinished}".encode())
            connection.execute(f"CREATE DATABASE {unfinished} TEMPLATE template0 ENCODING 'UTF8'".encode())
            with closing(open_store(_named(url, unfinished), write=True)) as database:
                _fill(database, count, _INDEXES_ON_SERVER)
            with psycopg.connect(_named(url, unfinished), autocommit=True) as made:
                made.execute("VACUUM ANALYZE")
            connection.execute(f"ALTER DATABASE {unfinished} RENAME TO {name}".encode())
    return _named(url, name)


def _named(url: str, database: str) -> str:
    """Give the URL of another database of the same server."""
    return urlsplit(url)._replace(path=f"/{database}").geturl()


def _size(url: str, connection: Connection) -> int:
    if connection.dialect.name == "sqlite":
        return Path(url.removeprefix("sqlite:///")).stat().st_size
    [(size,)] = connection.fetch(Statement("SELECT pg_database_size(current_database())", ()))
    return int(size)


def _fill(database: Database, count: int, indexes_are: str) -> None:
    """Write the reports without indexes, then the indexes, then what is counted."""
    migrations.migrate(database)
    with database.transaction() as connection:
        organizacao, conta = accounts.create_organizacao(connection, ORGANIZACAO)
        indexes = connection.fetch(Statement(indexes_are, ()))
        for name, _ in indexes:
            connection.run_script(f"DROP INDEX {name}")
    owner = Owner(organizacao.id_organizacao, conta.id_conta)
    numbers = FacetNumbers(owner)
    reports = invent.relatorios(count)
    while batch := list(islice(reports, _BATCH)):
        with database.transaction() as connection:
            rows = [row(relatorio, owner, numbers.number(relatorio)) for relatorio in batch]
            connection.write(INSERT, rows)
            numbers.write(connection)
    with database.transaction() as connection:
        for _, text in indexes:
            connection.run_script(text)
    recount(database, owner.id_organizacao)


def row(relatorio: Relatorio, owner: Owner, facet: int) -> tuple[object, ...]:
    return (
        *owner,
        numero_key(relatorio.numero),
        facet,
        -relatorio.atualizado_em,
        relatorio.numero_documento,
        relatorio.nome_pessoa,
        relatorio.mensagem,
        response.relatorio(relatorio),
    )
