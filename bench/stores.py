"""Stores for measuring: reports written in bulk, then everything counted as `laudo verify --repair` counts it."""

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from msgspec.structs import replace

from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.writes import RELATORIO
from laudo.demo import invent
from laudo.server import accounts, migrations
from laudo.server.database import Connection, Database
from laudo.server.ingest import rows
from laudo.server.ingest.facets import FacetNumbers
from laudo.server.ingest.progress import SILENT
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.rows import ALL_BUT_KEY
from laudo.server.ingest.verify import recount
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store

ORGANIZACAO: Final = "Organização Exemplo"
_BATCH: Final = 50_000
INSERT: Final = Write(How.INSERT, RELATORIO, ALL_BUT_KEY)
_FIRST: Final = "SELECT id_organizacao, id_conta FROM conta ORDER BY id_conta LIMIT 1"
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
    """How long building took; almost 0 if the store was there."""
    gigabytes: float


class Plan(NamedTuple):
    """What a store holds: `reports` invented ones in one account, `among` small accounts; other fields may be 0.

    The reports' `nome` is one of `names` new ones, or else one of the demonstration's. Their document is one of the
    first `documents`, or else any. Their `mensagem` ends in one of `messages` numbers, and their instants are one of
    `instants` at equal distances. With `timed`, their UUIDs are of version 7, which follow time.
    """

    reports: int
    among: int = 0
    names: int = 0
    documents: int = 0
    messages: int = 0
    instants: int = 0
    timed: int = 0

    @property
    def name(self) -> str:
        """The name of a store of this plan."""
        beside = (f"_{name}_{number}" for name, number in zip(self._fields[1:], self[1:], strict=True) if number)
        return f"flat_{self.reports}{''.join(beside)}"


def build(place: Path | str, plan: Plan) -> Built:
    """Give a store, built if it is not there.

    `place` is a folder, or the URL of a PostgreSQL database, on whose server others may be made.
    """
    started = time.perf_counter()
    url = _in_folder(place, plan) if isinstance(place, Path) else _on_server(place, plan)
    with closing(open_store(url)) as database, database.snapshot() as connection:
        [(id_organizacao, id_conta)] = connection.fetch(Statement(_FIRST))
        size = _size(url, connection)
    return Built(url, Owner(id_organizacao, id_conta), time.perf_counter() - started, size / 1e9)


def _in_folder(folder: Path, plan: Plan) -> str:
    file = folder / f"{plan.name.replace('_', '-')}.db"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".unfinished")
        for leftover in folder.glob(f"{unfinished.name}*"):
            leftover.unlink()
        with closing(open_store(f"sqlite:///{unfinished}", write=True)) as database:
            _fill(database, plan, _INDEXES)
        unfinished.rename(file)
    return f"sqlite:///{file}"


def _on_server(url: str, plan: Plan) -> str:
    import psycopg  # noqa: PLC0415 - not needed for files

    name, unfinished = plan.name, f"{plan.name}_unfinished"
    with psycopg.connect(url, autocommit=True) as connection:
        known = {found for (found,) in connection.execute("SELECT datname FROM pg_database")}
        if name not in known:
            connection.execute(f"DROP DATABASE IF EXISTS {unfinished}".encode())
            connection.execute(f"CREATE DATABASE {unfinished} TEMPLATE template0 ENCODING 'UTF8'".encode())
            with closing(open_store(_named(url, unfinished), write=True)) as database:
                _fill(database, plan, _INDEXES_ON_SERVER)
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
    [(size,)] = connection.fetch(Statement("SELECT pg_database_size(current_database())"))
    return int(size)


def _fill(database: Database, plan: Plan, indexes_are: str) -> None:
    """Write the reports without indexes, then the indexes, then the counts, then the small accounts."""
    migrations.migrate(database)
    with database.transaction() as connection:
        organizacao, conta = accounts.create_organizacao(connection, ORGANIZACAO)
        indexes = connection.fetch(Statement(indexes_are))
        for name, _ in indexes:
            connection.run_script(f"DROP INDEX {name}")
    owner = Owner(organizacao.id_organizacao, conta.id_conta)
    numbers = FacetNumbers(owner)
    reports = _changed(invent.relatorios(plan.reports), plan)
    while batch := list(islice(reports, _BATCH)):
        with database.transaction() as connection:
            connection.write(INSERT, rows.complete(rows.prepared(batch), owner, numbers.number))
            numbers.write(connection)
    with database.transaction() as connection:
        for _, text in indexes:
            connection.run_script(text)
    with database.transaction() as connection:
        recount.conta(connection, owner, SILENT)
    with database.transaction() as connection:
        recount.organizacao(connection, owner.id_organizacao, SILENT)
    _add_small_ones(database, plan.among)


def _changed(reports: Iterator[Relatorio], plan: Plan) -> Iterator[Relatorio]:
    """Give the reports, changed as the plan says."""
    seeded, documents = Random(0), list[str]()
    for relatorio in reports:
        changes: dict[str, Any] = {}
        if plan.names:
            changes["nome"] = f"modelo{seeded.randrange(plan.names):06}"
        if len(documents) < plan.documents:
            documents.append(relatorio.numero_documento)
        if documents:
            changes["numero_documento"] = seeded.choice(documents)
        if plan.messages:
            changes["mensagem"] = f"{relatorio.mensagem} Protocolo {seeded.randrange(plan.messages):09}"
        if plan.instants:
            changes["atualizado_em"] = _held(relatorio.atualizado_em, plan.instants)
        if plan.timed:
            changes["numero"] = _timed(relatorio.atualizado_em, seeded)
        yield replace(relatorio, **changes) if changes else relatorio


def _held(instant: int, instants: int) -> int:
    """Give the latest of `instants` equally spaced instants that is not after this one."""
    begins, distance = invent.NOW_MS - invent.SPAN_MS, invent.SPAN_MS // instants
    return begins + (instant - begins) // distance * distance


def _timed(instant: int, seeded: Random) -> str:
    """Give a UUID of version 7."""
    digits = f"{instant:012x}7{seeded.getrandbits(12):03x}{8 + seeded.getrandbits(2):x}{seeded.getrandbits(60):015x}"
    return str(UUID(digits))


def _add_small_ones(database: Database, number: int) -> None:
    """Add small accounts, each with two reports in an organization of its own."""
    reports = invent.relatorios(2 * number)
    for _ in range(number):
        with database.transaction() as connection:
            _, conta = accounts.create_organizacao(connection, ORGANIZACAO)
        Ingest(database, conta.id_conta).write(list(islice(reports, 2)))
