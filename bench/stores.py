"""Stores for measuring: reports written in bulk, then everything counted as `laudo verify --repair` counts it."""

import time
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from laudo.core import response
from laudo.core.axes import numero_key
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.writes import RELATORIO
from laudo.demo import invent
from laudo.server import accounts, migrations
from laudo.server.database import Database, open_store
from laudo.server.ingest.facets import FacetNumbers
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.verify import recount

ORGANIZACAO: Final = "Organização Exemplo"
_BATCH: Final = 50_000
INSERT: Final = Write(
    How.INSERT, RELATORIO, ("facet", "recency", "numero_documento", "nome_pessoa", "mensagem", "item")
)
_INDEXES: Final = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'relatorio'"


class Built(NamedTuple):
    """A store of one account."""

    url: str
    owner: Owner
    seconds: float
    """How long building took; 0 when the store was there."""


def build(folder: Path, count: int) -> Built:
    """Give a store of `count` invented reports of one account, making it when it is not there."""
    file = folder / f"flat-{count}.db"
    url = f"sqlite:///{file}"
    started = time.perf_counter()
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".unfinished")
        for leftover in folder.glob(f"{unfinished.name}*"):
            leftover.unlink()
        database = open_store(f"sqlite:///{unfinished}", write=True)
        try:
            _fill(database, count)
        finally:
            database.close()
        unfinished.rename(file)
    with open_store(url).snapshot() as connection:
        [(id_organizacao, id_conta)] = connection.fetch(Statement("SELECT id_organizacao, id_conta FROM conta", ()))
    return Built(url, Owner(id_organizacao, id_conta), time.perf_counter() - started)


def _fill(database: Database, count: int) -> None:
    """Write the reports without indexes, then the indexes, then what is counted."""
    migrations.migrate(database)
    with database.transaction() as connection:
        organizacao, conta = accounts.create_organizacao(connection, ORGANIZACAO)
        indexes = connection.fetch(Statement(_INDEXES, ()))
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
