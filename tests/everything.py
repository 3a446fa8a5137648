"""Does everything that the service and its commands do with a store, and records the statements and functions used.

Migrations and copying a store are left out.
"""

import ast
import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, Protocol
from unittest.mock import patch
from urllib.parse import quote

from msgspec.structs import replace

import laudo
from factories import SMALL, Account, Store
from forwarding import Forwarding, ForwardingConnection
from laudo.core import across, guesses, plan
from laudo.core.sql import Statement, Write
from laudo.server import accounts, app
from laudo.server.accounts import Level
from laudo.server.config import Settings
from laudo.server.database import Connection, Database, Row
from laudo.server.ingest import removal, statistics, verify
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store
from strategies import PESSOA_SORTS, PESSOA_VALUES, RELATORIO_SORTS, RELATORIO_VALUES, Values, many
from wsgi import Client

SOURCE: Final = Path(laudo.__file__).parent


@dataclass(slots=True)
class Record:
    """Each statement with the parameters of its first call, and the functions that ran, as (module, name)."""

    statements: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    functions: set[tuple[str, str]] = field(default_factory=set)

    def add(self, text: str, params: tuple[Any, ...]) -> None:
        self.statements.setdefault(text, params)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record which functions of laudo run."""
        codes: set[CodeType] = set()

        def called(frame: FrameType, event: str, _argument: object) -> None:
            if event == "call":
                codes.add(frame.f_code)

        sys.setprofile(called)
        try:
            yield
        finally:
            sys.setprofile(None)
        self.functions |= {
            (_module(Path(code.co_filename)), code.co_name)
            for code in codes
            if code.co_filename.startswith(str(SOURCE))
        }


class Recorded(Forwarding):
    """A store that records every statement."""

    def __init__(self, database: Database, record: Record) -> None:
        super().__init__(database)
        self.record = record

    def fetch(self, statement: Statement) -> list[Row]:
        self.record.add(statement.text, statement.params)
        return super().fetch(statement)

    def reading(self, connection: Connection) -> Connection:
        return _RecordedConnection(connection, self)

    writing = reading


class _RecordedConnection(ForwardingConnection[Recorded]):
    def fetch(self, statement: Statement) -> list[Row]:
        self._store.record.add(statement.text, statement.params)
        return super().fetch(statement)

    def write(self, write: Write, rows: Iterable[Row]) -> None:
        given = list(rows)
        if given:
            self._store.record.add(self.dialect.written(write), given[0])
        super().write(write, given)

    def run_script(self, text: str) -> None:
        self._store.record.add(text, ())
        super().run_script(text)


class Opening(Protocol):
    def __call__(self, url: str, *, write: bool = False) -> Database:
        """Open a store."""


def done(url: str, key_file: Path, *, opened: Opening = open_store) -> Record:
    """Do everything with a migrated, empty store, and return what was recorded."""
    record = Record()
    plain = opened(url, write=True)
    writing, reading = Recorded(plain, record), Recorded(opened(url), record)
    store = Store(writing, key_file)
    with record.watching():
        with patch.object(statistics, "LEAST", 100):
            asking = _write(store)
        settings = Settings(store=url, key_file=str(key_file), log=False, cache_bytes=0)
        service = app.create(settings, database=reading)
        _ask(Client(service, asking[0].token), seed=0)
        guessing = patch.multiple(guesses, GUESSING=0, LOCATING=0, COUNTING=0, NEAR=10, FEW_OF_RANGE=5)
        with guessing, patch.object(across, "COMBINATION", 0), patch.object(plan, "FEW", 0):
            _ask(Client(service, asking[-1].token), seed=1)
        _keep_accounts(store, asking[-1])
        _damage(plain)
        verify.repair(writing, verify.verify(writing), sizes=SMALL)
        assert list(verify.verify(writing)) == []
    writing.close()
    reading.close()
    return record


def functions() -> set[tuple[str, str]]:
    """Return every function of laudo that sends statements to a store or makes them, as (module, name)."""
    return {
        (_module(path), node.name)
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and any(map(_asks, ast.walk(node)))
    }


def _write(store: Store) -> list[Account]:
    """Fill three accounts, two of them of one organization, then change and delete many of their reports."""
    first = store.account()
    made = [first, store.account(first.id_organizacao), store.account()]
    for seed, account in enumerate(made):
        reports = many(240, seed=seed)
        ingest = Ingest(store.database, account.id_conta, sizes=SMALL)
        ingest.write(reports[:150])
        ingest.write(reports[120:])
        ingest.write(
            [replace(each, atualizado_em=each.atualizado_em + 1, nome_pessoa="Outra") for each in reports[::3]]
        )
        ingest.write([replace(each, atualizado_em=each.atualizado_em + 2, status="CONCLUIDO") for each in reports[::5]])
        ingest.delete([each.numero for each in reports[::4]])
        assert ingest.note_pull() == ingest.pulled()
        assert ingest.nomes([""]) == {}
        _remove(store.database, account, reports)
    return made


def _remove(database: Database, account: Account, reports: list[Relatorio]) -> None:
    """Find and delete some of an organization's reports, by document and by age."""
    with database.snapshot() as connection:
        assert list(removal.reports_of(connection, account.id_organizacao, reports[1].numero_documento))
    removing = removal.Removal(database, account.id_organizacao, sizes=SMALL)
    assert sum(gone.reports for gone in removing.delete_documents([each.numero_documento for each in reports[:9]]))
    oldest = min(each.atualizado_em for each in reports[9:20])
    assert removing.count_before(oldest + 1) >= sum(gone.reports for gone in removing.delete_before(oldest + 1))


def _ask(client: Client, *, seed: int) -> None:
    """Request first and later pages in every order, with various filters, and follow the cursors."""
    seeded = random.Random(seed)
    for path, sorts, values in (
        ("relatorios", RELATORIO_SORTS, RELATORIO_VALUES),
        ("pessoas", PESSOA_SORTS, PESSOA_VALUES),
    ):
        for sort in sorts:
            for filters in _filters(values, seeded):
                first = client.get(f"/{path}?sort={sort}{filters}")
                assert first.status == 200, first.body
                assert client.get(f"/{path}?sort={sort}{filters}&page=3").status == 200
                if "next" in first.links:
                    assert client.get(first.links["next"]).status == 200
    assert client.get("/usuario").status == 200


def _filters(values: Values, seeded: random.Random) -> Iterator[str]:
    """Yield no filter, two periods, some single filters and some pairs; over all orders every filter occurs."""
    yield from ("", "&atualizado_em_de=1970-01-02", "&atualizado_em_de=2026-02-05")
    single = [f"&{name}={quote(seeded.choice(choices))}" for name, choices in values.items()]
    yield from seeded.sample(single, 4)
    for _ in range(2):
        yield "".join(seeded.sample(single, 2))


def _keep_accounts(store: Store, account: Account) -> None:
    with store.database.snapshot() as connection:
        for listed in (accounts.organizacoes, accounts.contas, accounts.usuarios, accounts.tokens):
            assert listed(connection)
        assert accounts.has_tokens(connection)
    for level, number in (
        (Level.USER, account.id_usuario),
        (Level.ACCOUNT, account.id_conta),
        (Level.ORGANIZATION, account.id_organizacao),
    ):
        store.disable(level, number)
        store.enable(level, number)
    with store.database.transaction() as connection:
        accounts.update(connection, Level.USER, account.id_usuario, nome_usuario="Outra")
    store.revoke(account.id_token)


def _damage(database: Database) -> None:
    """Damage, without the writer's knowledge, every kind of row that can be repaired."""
    with database.transaction() as connection:
        connection.run_script(
            "UPDATE tally SET total = total + 1; DELETE FROM pessoa WHERE cpf > '5';"
            "DELETE FROM facet WHERE facet = (SELECT min(facet) FROM facet WHERE total > 0);"
            "UPDATE relatorio SET item = replace(item, 'CONCLUIDO', 'PENDENTE'); UPDATE bucket SET total = total + 1;"
            "INSERT INTO bucket VALUES (99, 9, 1, 0, 1, '', 0);"
            "INSERT INTO pessoa (id_organizacao, cpf, nome, nome_busca, recency, item) VALUES (99, '1', '', '', 0, '')"
        )


def _asks(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in _ASKING and ast.unparse(node.func.value).endswith(_ASKED)
    return isinstance(node.func, ast.Name) and node.func.id == _MADE


def _module(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").as_posix().removesuffix("/__init__")


_ASKING: Final = ("fetch", "write", "run_script")
_ASKED: Final = ("connection", "reader", "database")
_MADE: Final = "Statement"
