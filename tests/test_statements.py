"""What a request costs the store: how many statements, of which kind, and when none at all."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from factories import Account, Store, relatorio
from laudo.core.sql import Statement
from laudo.server.database import Connection, Database, Row, open_store
from wsgi import Client, NewApp

TOKEN, TOTAL, PAGE = "token", "total", "page"


class Counting:
    """A store that remembers what it was asked."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.snapshots = 0
        self.statements: list[Statement] = []

    def fetch(self, statement: Statement) -> list[Row]:
        self.statements.append(statement)
        return self._database.fetch(statement)

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        self.snapshots += 1
        with self._database.snapshot() as connection:
            yield _CountingConnection(connection, self.statements)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        pytest.fail("a request began a write transaction")
        yield  # type: ignore[unreachable]

    def close(self) -> None:
        self._database.close()

    def kinds(self) -> list[str]:
        return [_kind(statement.text) for statement in self.statements]

    def forget(self) -> None:
        self.snapshots = 0
        self.statements.clear()


class _CountingConnection:
    def __init__(self, connection: Connection, statements: list[Statement]) -> None:
        self._connection = connection
        self._statements = statements

    def fetch(self, statement: Statement) -> list[Row]:
        self._statements.append(statement)
        return self._connection.fetch(statement)

    def write_many(self, text: str, rows: Iterable[Row]) -> None:
        pytest.fail(f"a request wrote: {text} {rows}")

    def run_script(self, text: str) -> None:
        pytest.fail(f"a request ran a script: {text}")

    def has_table(self, name: str) -> bool:
        return self._connection.has_table(name)


def _kind(text: str) -> str:
    if "FROM token" in text:
        return TOKEN
    return TOTAL if "count(*)" in text else PAGE


class Asked(NamedTuple):
    """A client of an account with reports, a client of nobody, and the store that counts for both."""

    database: Counting
    account: Account
    client: Client
    nobody: Client


@pytest.fixture
def asked(store: Store, store_url: str, account: Account, new_app: NewApp) -> Iterator[Asked]:
    store.write(account, [relatorio(number) for number in range(30)])
    database = Counting(open_store(store_url))
    application = new_app(database)
    yield Asked(database, account, Client(application, account.token), Client(application, None))
    database.close()


def test_making_the_application_asks_the_store_nothing(asked: Asked) -> None:
    assert (asked.database.snapshots, asked.database.statements) == (0, [])


@pytest.mark.parametrize(
    "url",
    [
        *("/relatorios", "/relatorios?page=2&rows=25", "/relatorios?status=CONCLUIDO&sort=-resultado"),
        *(
            "/relatorios?page=99",
            "/pessoas",
            "/pessoas?busca=mar",
            "/pessoas?busca=&sort=nome",
            "/pessoas?cpf=52998224725",
        ),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_list_is_one_statement_for_the_token_one_for_the_total_and_one_for_the_page(
    asked: Asked, method: str, url: str
) -> None:
    assert asked.client.ask(method, url).status == 200
    assert asked.database.kinds() == [TOKEN, TOTAL, PAGE]
    assert asked.database.snapshots == 1


def test_asking_again_costs_no_more(asked: Asked) -> None:
    for _ in range(3):
        asked.client.get("/relatorios")
        assert len(asked.database.statements) <= 3
        asked.database.forget()


def test_a_profile_is_the_tokens_statement_alone(asked: Asked) -> None:
    assert asked.client.get("/usuario").status == 200
    assert (asked.database.kinds(), asked.database.snapshots) == ([TOKEN], 0)


def test_a_refused_parameter_costs_the_tokens_statement_alone(asked: Asked) -> None:
    for url in ("/relatorios?page=0", "/pessoas?x=1", "/usuario?x=1"):
        assert asked.client.get(url).status == 400
        assert asked.database.kinds() == [TOKEN]
        asked.database.forget()


@pytest.mark.parametrize("path", ["/relatorios", "/pessoas", "/usuario"])
def test_what_cannot_be_a_token_is_refused_without_the_store(asked: Asked, path: str) -> None:
    token = asked.account.token
    for bad in ("", "Bearer x", f"Bearer {token}", token[:-1], f"{token}0", f"{token},{token}", "é" * 20, "x" * 201):
        assert asked.nobody.ask("GET", path, headers={"Authorization": bad}).status == 401
    damaged = f"{token[:10]}{'a' if token[10] != 'a' else 'b'}{token[11:]}"
    assert asked.nobody.ask("GET", path, headers={"Authorization": damaged}).status == 401
    assert asked.nobody.get(path).status == 401
    assert (asked.database.snapshots, asked.database.statements) == (0, [])


def test_a_well_formed_unknown_token_costs_one_statement(asked: Asked) -> None:
    assert asked.nobody.ask("GET", "/relatorios?page=0", headers={"Authorization": "x" * 20}).status == 401
    assert asked.database.kinds() == [TOKEN]


def test_other_paths_methods_and_constant_routes_never_reach_the_store(asked: Asked) -> None:
    for path in ("/none", "/relatorios/", "//usuario", "/health", "/openapi.json", "/docs", "/"):
        asked.client.get(path)
    for method in ("POST", "DELETE", "OPTIONS", "FOO"):
        asked.client.ask(method, "/relatorios")
    assert (asked.database.snapshots, asked.database.statements) == (0, [])


@pytest.mark.parametrize(
    ("url", "owner"), [("/relatorios?nome=x&sort=nome", "account"), ("/pessoas?busca=m", "organization")]
)
def test_the_statements_of_a_list_start_from_the_owner(asked: Asked, url: str, owner: str) -> None:
    asked.client.get(url)
    for statement in asked.database.statements[1:]:
        where = statement.text.partition(" WHERE ")[2]
        assert where.startswith("id_organizacao = ?" + (" AND id_conta = ?" if owner == "account" else ""))
        assert statement.params[0] == asked.account.id_organizacao
        assert owner != "account" or statement.params[1] == asked.account.id_conta


def test_no_value_of_a_request_becomes_part_of_a_statement(asked: Asked) -> None:
    for url in ("/relatorios?nome=segredo&sort=-nome&page=7", "/pessoas?nome=segredo&busca=12"):
        assert asked.client.get(url).status == 200
    assert not [statement for statement in asked.database.statements if "segredo" in statement.text]
