"""Refusals have one shape everywhere, follow one order of checks, and never repeat a value of the request."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from io import StringIO
from itertools import islice, product

import pytest

from effort import lines
from factories import Account, Store, cpf, relatorio
from forwarding import Forwarding, ForwardingConnection
from laudo.core import plan, query, reading
from laudo.core.sql import Statement
from laudo.server import edges, logs
from laudo.server.database import Connection, Database, Mark, Row, Slow, StoreError, Unavailable
from laudo.server.stores import open_store
from wsgi import Answer, Client, NewApp, NewClient

ROUTES = ("/relatorios", "/pessoas", "/usuario", "/health", "/ready", "/openapi.json", "/docs", "/")
LISTS = ("/relatorios", "/pessoas")


def assert_shape(answer: Answer, status: int, error: str, *, keys: list[str] | None = None) -> None:
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    body = answer.json
    validation = {} if keys is None else {"validation": {"source": "query", "keys": keys}}
    expected = {"error": error, "message": body["message"], **validation, "status_code": status}
    assert list(body.items()) == list(expected.items())
    assert len(body["message"]) > 20


# 404 and 405.


@pytest.mark.parametrize(
    "path",
    [
        *("/relatorios/", "/Relatorios", "/RELATORIOS", "//relatorios", "/relatorios//", "/relatorios/1", "/relatorio"),
        *(
            "/pessoas/",
            "/usuario/",
            "/usuarios",
            "//",
            "//usuario",
            "/.",
            "/relatorios/..",
            "/../relatorios",
            "/health/",
        ),
        *("/relatorios;x=1", "/relatorios%00", "/relatorios%20", "/%20relatorios", "/relatorios%2F", "/%2Frelatorios"),
        *("/relatorios%3Fpage=1", "/docs/", "/openapi.json/", "/openapi.yaml", "/favicon.ico", "/%ff", "/é"),
        *("/0f8fad5b-d9cb-469f-a165-70867728950e", "/console/", "/console/0000000000000000/main.js"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "FOO", "WEBSOCKET"])
def test_an_unknown_path_is_404_and_never_a_redirect(empty: Client, path: str, method: str) -> None:
    answer = empty.ask(method, path)
    assert answer.status == 404
    assert "location" not in answer.headers
    if method != "HEAD":
        assert_shape(answer, 404, "Not Found")
        assert answer.json["message"] == "Endereço não encontrado. Verifique o caminho da URL."


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "method",
    ["POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "FOO", "get", "other", "WEBSOCKET", "*", ""],
)
def test_an_unsupported_method_is_405_with_the_allowed_methods(empty: Client, route: str, method: str) -> None:
    answer = empty.ask(method, route)
    assert_shape(answer, 405, "Method Not Allowed")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
    assert answer.headers["x-request-id"]


# 400.


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("page=0", ["page"]),
        ("page=", ["page"]),
        ("page", ["page"]),
        ("rows=26&page=0", ["page", "rows"]),
        ("page=1&page=1", ["page"]),
        ("page=1&page=2&page=x", ["page"]),
        ("nome=", ["nome"]),
        ("sort=", ["sort"]),
        ("limit=", ["limit"]),
        ("limit=1&limit=1", ["limit"]),
        ("nome=%", ["nome"]),
        ("nome=%4", ["nome"]),
        ("nome=%zz", ["nome"]),
        ("nome=a%", ["nome"]),
        ("nome=%ff", ["nome"]),
        ("nome=%c3", ["nome"]),
        ("nome=%c0%80", ["nome"]),
        ("nome=%ed%a0%80", ["nome"]),
        ("nome=a%00", ["nome"]),
        ("nome=a%0Ab", ["nome"]),
        ("nome=a%7F", ["nome"]),
        ("nome=a%C2%85", ["nome"]),
        ("nome=a\tb", ["nome"]),
        ("limit=%ff", ["limit"]),
        ("%ff=1", []),
        ("%=1", []),
        ("%00=1", []),
        ("=1", []),
        (f"{'x' * 201}=1", []),
        (f"nome={'a' * 201}", ["nome"]),
        (f"nome={'%C3%A9' * 201}", ["nome"]),
        (f"limit={'1' * 201}", ["limit"]),
        ("Page=1", ["Page"]),
        ("page%20=1", ["page "]),
        ("page[]=1", ["page[]"]),
        ("cursor=abc", ["cursor"]),
        ("cursor=", ["cursor"]),
        ("cursor=abc&page=1", ["cursor"]),
        (f"cursor={'a' * 4001}", ["cursor"]),
        ("atualizado_em_de=2026-02-30", ["atualizado_em_de"]),
        ("atualizado_em_ate=2026-01-31T12:00:00", ["atualizado_em_ate"]),
        ("atualizado_em_de=x&atualizado_em_ate=", ["atualizado_em_de", "atualizado_em_ate"]),
        ("b=1&a=2&page=0", ["b", "a", "page"]),
        ("&".join(f"page={number}" for number in range(33)), []),
        ("page=1" + "&" * 32, []),
    ],
)
def test_invalid_parameters_are_refused_and_named(empty: Client, path: str, query: str, keys: list[str]) -> None:
    assert_shape(empty.get(f"{path}?{query}"), 400, "Bad Request", keys=keys)


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "query",
    [
        *(
            "&" * 31,
            "page=1&&rows=25&",
            "p%61ge=1",
            "page=%31",
            f"nome={'a' * 200}",
            f"nome={'%C3%A9' * 200}",
            "nome=%C3%A9",
            "nome=é",
            "nome=a+b",
        ),
        *("nome=a=b", "limit=x", "?", "nome=%26a", "nome=a;b", "sort=-nome", "nome=%F0%9F%99%82a"),
    ],
)
def test_unusual_but_correct_encodings_are_understood(empty: Client, path: str, query: str) -> None:
    assert empty.get(f"{path}?{query}").status == (400 if query == "?" else 200)


@pytest.mark.parametrize("path", LISTS)
def test_a_letter_means_the_same_raw_and_percent_encoded(empty: Client, path: str) -> None:
    """WSGI passes the bytes of the query string as latin-1, in which both bytes of "ê" are characters."""
    assert empty.get(f"{path}?nome=ê").links == empty.get(f"{path}?nome=%C3%AA").links


def test_an_unknown_parameter_is_refused_with_the_nearest_known_one(empty: Client) -> None:
    for given, nearest in (
        *(("numero_documeto", "numero_documento"), ("pagina", "page"), ("estatus", "status")),
        *(("STATUS", "status"), ("NUMERO_DOCUMETO", "numero_documento"), ("NUMERO", "numero")),
        *(("ate", "atualizado_em_ate"), ("doc", "numero_documento"), ("numero_documento" * 12, "numero_documento")),
    ):
        answer = empty.get("/relatorios", **{given: "1"})
        assert answer.keys == [given]
        assert given in answer.json["message"]
        assert answer.json["message"].endswith(f" {nearest}.")


@pytest.mark.parametrize("path", LISTS)
def test_a_value_without_a_parameter_name_has_its_own_message(empty: Client, path: str) -> None:
    answer = empty.get(f"{path}?=1&page=0")
    assert (answer.status, answer.keys) == (400, ["page"])
    assert answer.json["message"].startswith('Falta o nome de um parâmetro antes do sinal "=".')


def test_many_long_unknown_parameters_are_refused_cheaply(empty: Client) -> None:
    """Comparing each whole name with each accepted one would execute a million lines of Python."""
    names = ("".join(letters) * 49 for letters in product("aeo", repeat=4))
    url = "/relatorios?" + "&".join(f"{name}=1" for name in islice(names, query.MOST_PAIRS))
    assert len(empty.get(url).keys) == query.MOST_PAIRS
    assert lines(lambda: empty.get(url)) < 30_000


@pytest.mark.parametrize("path", [*LISTS, "/usuario"])
def test_no_refusal_repeats_a_value(empty: Client, path: str) -> None:
    names = ("page", "rows", "sort", "limit", "cpf", "nome", "busca", "numero", "numero_documento", "status", "x")
    for name in names:
        for value in ("segredo-\x01", "segredo%zz", "segredo" * 40, "segredo"):
            answer = empty.get(f"{path}?{name}={value}&{name}={value}")
            assert answer.status == 400
            assert b"segredo" not in answer.body
            assert "segredo" not in str(answer.headers)


# 429, 500, 503: databases that fail.


class FailingStore(Forwarding):
    """A store that answers `good` statements and then raises `error`; `mark` gives None."""

    def __init__(self, database: Database, *, good: int, error: Exception) -> None:
        super().__init__(database)
        self._left = good
        self._error = error

    def fetch(self, statement: Statement) -> list[Row]:
        with self.snapshot() as connection:
            return connection.fetch(statement)

    def mark(self) -> Mark:
        return None

    def reading(self, connection: Connection) -> Connection:
        return _FailingConnection(connection, self)

    def recover(self) -> None:
        self._left = sys.maxsize

    def count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise self._error


class _FailingConnection(ForwardingConnection[FailingStore]):
    def fetch(self, statement: Statement) -> list[Row]:
        self._store.count()
        return super().fetch(statement)

    def has_column(self, table: str, name: str) -> bool:
        self.fetch(Statement("SELECT 1"))
        return super().has_column(table, name)


MakeFailing = Callable[[int, Exception], Client]


@pytest.fixture
def make_failing(store_url: str, new_app: NewApp, account: Account) -> Iterator[MakeFailing]:
    """Gives a function that makes a client of an application with a `FailingStore`."""
    database = open_store(store_url)
    yield lambda good, error: Client(new_app(FailingStore(database, good=good, error=error)), account.token)
    database.close()


@pytest.mark.parametrize(
    ("path", "good"),
    [*((path, good) for path in LISTS for good in (0, 1, 2)), *(("/relatorios?sort=status", good) for good in (2, 3))],
)
def test_an_unavailable_store_is_503_with_retry_after(
    make_failing: MakeFailing, store: Store, account: Account, path: str, good: int
) -> None:
    store.write(account, [relatorio()])
    answer = make_failing(good, Unavailable("segredo")).get(path)
    assert_shape(answer, 503, "Service Unavailable")
    assert int(answer.headers["retry-after"]) >= 1
    assert b"segredo" not in answer.body


@pytest.mark.parametrize("path", [*LISTS, "/usuario", "/ready"])
@pytest.mark.parametrize("kind", [StoreError, Unavailable])
def test_a_store_failure_is_logged_once_a_minute_without_the_engines_message(
    make_failing: MakeFailing,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    kind: type[StoreError],
) -> None:
    moment = 100.0
    monkeypatch.setattr(logs, "monotonic", lambda: moment)
    asking = make_failing(0, kind("the server refuses the user", "segredo"))
    for _ in range(3):
        answer = asking.get(path)
        assert_shape(answer, 503, "Service Unavailable")
        assert int(answer.headers["retry-after"]) >= 1
        assert b"refuses" not in answer.body
    assert capfd.readouterr().err == "store: the server refuses the user\n"
    moment += 60
    assert asking.get(path).status == 503
    assert capfd.readouterr().err == "store: the server refuses the user\n"


def test_an_unexpected_exception_is_500_and_reveals_no_value(
    make_failing: MakeFailing, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = make_failing(2, RuntimeError("segredo")).get("/relatorios?numero_documento=52998224725")
    assert_shape(answer, 500, "Internal Server Error")
    assert answer.headers["x-request-id"]
    written = capfd.readouterr()
    assert "RuntimeError" in written.err
    assert not {"segredo", "52998224725"} & set(answer.body.decode().split() + written.err.split())
    assert "segredo" not in f"{answer.body!r}{answer.headers}{written}"


def test_an_exception_that_cannot_be_logged_is_still_500(
    make_failing: MakeFailing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", closed := StringIO())
    closed.close()
    assert_shape(make_failing(2, RuntimeError("?")).get("/relatorios"), 500, "Internal Server Error")


def test_a_page_shorter_than_its_total_implies_is_500(
    acme: Client, account: Account, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.write(account, [relatorio(number, mensagem=f"Mensagem {number}") for number in range(30)])
    with store.database.transaction() as connection:
        connection.run_script("DELETE FROM relatorio WHERE mensagem = 'Mensagem 7'")
    assert len(acme.get("/relatorios").itens) == 25
    for _ in range(3):
        assert_shape(acme.ask("GET", "/relatorios?page=2"), 500, "Internal Server Error")
    assert capsys.readouterr().err == (
        "store: a page does not have as many items as its total says; `laudo verify` names what is damaged\n"
    )


def test_reading_ends_when_a_document_has_fewer_reports_than_counted(
    make_failing: MakeFailing,
    account: Account,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module, name in ((plan, "FEW"), (reading, "FARTHEST")):
        monkeypatch.setattr(module, name, 0)
    statuses = ("CONCLUIDO", "PENDENTE")
    counted = [
        {"numero_documento": cpf(each % 3), "status": statuses[each // 3 % 2], "nome": f"m{each * 7 // 3 % 3}"}
        for each in range(300)
    ]
    store.write(account, [relatorio(number, **given) for number, given in enumerate(counted)])
    with store.database.transaction() as connection:
        connection.run_script("UPDATE tally SET total = total + 8 WHERE axis = 3 AND parent > 0")
    url = f"/relatorios?numero_documento={cpf(1)}&status=CONCLUIDO&sort=numero_documento&page=2"
    assert make_failing(1_000, RuntimeError("still asked")).get(url).status == 500
    assert capsys.readouterr().err == (
        "store: a page does not have as many items as its total says; `laudo verify` names what is damaged\n"
    )


@pytest.mark.parametrize(
    ("damage", "asked", "told"),
    [
        ("DELETE FROM bucket", "page=2", "holds fewer rows than the facets"),
        ("DELETE FROM bucket", "atualizado_em_de=2026-01-01", "holds fewer rows than the facets"),
        ("DELETE FROM bucket WHERE parent > 0", "page=2", "holds fewer rows than the facets"),
        ("DELETE FROM tally", "status=CONCLUIDO&page=2", "holds fewer rows than the facets"),
        ("DELETE FROM relatorio WHERE mensagem > 'Mensagem 2'", "page=2", "counts more rows than there are"),
    ],
)
def test_a_wrong_tally_is_500_and_stderr_names_the_repair_command(
    acme: Client,
    account: Account,
    store: Store,
    capsys: pytest.CaptureFixture[str],
    *,
    damage: str,
    asked: str,
    told: str,
) -> None:
    statuses = ("CONCLUIDO", "CONCLUIDO", "PENDENTE")
    store.write(
        account, [relatorio(each, mensagem=f"Mensagem {each}", status=statuses[each % 3]) for each in range(90)]
    )
    with store.database.transaction() as connection:
        connection.run_script(damage)
    assert_shape(acme.ask("GET", f"/relatorios?{asked}"), 500, "Internal Server Error")
    assert capsys.readouterr().err == f"store: the tally {told}; `laudo verify --repair` repairs it\n"


def test_requests_over_the_rate_limit_are_429_with_retry_after(
    account: Account, client: NewClient, let_pass: Callable[[float], None]
) -> None:
    asking = client(account.token, rate_limit=2)
    answers = [asking.get("/usuario") for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 429, 429]
    assert_shape(answers[-1], 429, "Too Many Requests")
    assert answers[-1].headers["retry-after"] == "1"
    let_pass(0.25)
    assert asking.get("/usuario").status == 429
    let_pass(0.25)
    assert asking.get("/usuario").status == 200, "a refused request does not count"


def test_a_pause_saves_up_no_more_requests_than_one_second_allows(
    account: Account, client: NewClient, let_pass: Callable[[float], None]
) -> None:
    asking = client(account.token, rate_limit=2)
    assert asking.get("/usuario").status == 200
    let_pass(60)
    assert [asking.get("/usuario").status for _ in range(4)] == [200, 200, 429, 429]


@pytest.fixture
def requests_take(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Gives a function that sets how many seconds each request seems to take."""
    clock = 0.0

    def seconds(each: float) -> None:
        def tick() -> float:
            nonlocal clock
            clock += each
            return clock

        monkeypatch.setattr(edges, "perf_counter", tick)

    return seconds


@pytest.mark.parametrize("path", ["/usuario", "/relatorios", "/pessoas?nome=maria", "/relatorios?page=0"])
def test_a_token_over_its_busy_limit_is_429_until_enough_time_passes(
    account: Account,
    client: NewClient,
    let_pass: Callable[[float], None],
    requests_take: Callable[[float], None],
    path: str,
) -> None:
    asking = client(account.token, busy_limit_ms=100)
    requests_take(0.03)
    assert {asking.get(f"/relatorios?page={page}").status for page in range(1, 4)} == {200}
    requests_take(0.25)
    assert asking.get(path).status != 429
    refused = [asking.get("/relatorios") for _ in range(3)]
    assert [answer.status for answer in refused] == [429] * 3
    assert {answer.headers["retry-after"] for answer in refused} == {"3"}, "0.34 s used, 0.1 s allowed per second"
    let_pass(1.5)
    assert asking.get("/usuario").headers["retry-after"] == "1"
    let_pass(0.8)
    assert asking.get("/usuario").status == 429
    let_pass(0.2)
    assert asking.get("/usuario").status == 200, "a refused request uses no time"


def test_the_rate_limit_and_the_busy_limit_hold_independently(
    account: Account, client: NewClient, let_pass: Callable[[float], None], requests_take: Callable[[float], None]
) -> None:
    asking = client(account.token, rate_limit=2, busy_limit_ms=500)
    requests_take(0.01)
    answers = [asking.get(f"/relatorios?page={page}") for page in range(1, 4)]
    assert [answer.headers.get("retry-after") for answer in answers] == [None, None, "1"]
    let_pass(1)
    requests_take(2)
    answers += [asking.get(f"/relatorios?page={page}") for page in range(4, 6)]
    assert [answer.headers.get("retry-after") for answer in answers[3:]] == [None, "3"]
    assert [answer.status for answer in answers] == [200, 200, 429, 200, 429]


@pytest.mark.parametrize(("error", "wait"), [(Slow, "3"), (Unavailable, None)])
def test_a_timed_out_statement_uses_busy_time_but_an_outage_does_not(
    store_url: str,
    account: Account,
    new_app: NewApp,
    *,
    let_pass: Callable[[float], None],
    requests_take: Callable[[float], None],
    error: type[Unavailable],
    wait: str | None,
) -> None:
    with closing(open_store(store_url)) as database:
        failing = FailingStore(database, good=2, error=error("segredo"))
        asking = Client(new_app(failing, busy_limit_ms=500), account.token)
        requests_take(2)
        assert asking.get("/relatorios").status == 503
        failing.recover()
        again = asking.get("/relatorios")
        assert (again.status, again.headers.get("retry-after")) == (429 if wait else 200, wait)
        let_pass(9)
        assert asking.get("/relatorios").status == 200


@pytest.mark.usefixtures("let_pass")
def test_each_token_has_its_own_busy_limit(
    store: Store, new_app: NewApp, requests_take: Callable[[float], None]
) -> None:
    asked = new_app(busy_limit_ms=100)
    dear, cheap = (Client(asked, store.account().token) for _ in range(2))
    requests_take(0.2)
    assert [dear.get("/relatorios").status for _ in range(2)] == [200, 429]
    requests_take(0.0001)
    assert {cheap.get("/relatorios").status for _ in range(100)} == {200}
    assert dear.get("/health").status == 200
    assert dear.get("/relatorios").status == 429


@pytest.mark.usefixtures("let_pass")
@pytest.mark.parametrize("path", ["/usuario", "/relatorios"])
def test_the_log_names_the_token_that_exceeds_its_rate_limit(
    account: Account, client: NewClient, capfd: pytest.CaptureFixture[str], path: str
) -> None:
    asking = client(account.token, rate_limit=1, log=True)
    assert [asking.get(path).status for _ in range(2)] == [200, 429]
    logged = map(json.loads, capfd.readouterr().out.splitlines())
    assert [(line["status"], line["id_token"]) for line in logged] == [(200, account.id_token), (429, account.id_token)]


def test_each_token_has_its_own_rate_limit(store: Store, new_app: NewApp) -> None:
    asked = new_app(rate_limit=1)
    tokens = [store.account().token for _ in range(3)]
    assert [Client(asked, token).get("/usuario").status for token in tokens] == [200, 200, 200]


# The order of checks.


def test_path_method_and_token_are_checked_in_that_order(client: NewClient) -> None:
    nobody = client(None)
    assert nobody.ask("POST", "/usuarios").status == 404
    assert nobody.ask("POST", "/usuario").status == 405
    assert nobody.ask("GET", "/usuario").status == 401


@pytest.mark.usefixtures("let_pass")
@pytest.mark.parametrize("path", ["/relatorios", "/pessoas", "/usuario"])
def test_token_rate_limit_and_parameters_are_checked_in_that_order(
    account: Account, client: NewClient, path: str
) -> None:
    asking = client(account.token, rate_limit=1)
    assert asking.get(f"{path}?page=0").status == 400
    assert asking.get(f"{path}?page=0").status == 429
    assert client("x" * 20, rate_limit=1).get(f"{path}?page=0").status == 401


def test_parameters_are_checked_before_items_are_read(make_failing: MakeFailing) -> None:
    failing = make_failing(2, Unavailable("gone"))
    assert failing.get("/relatorios?page=0").status == 400
    assert failing.get("/relatorios?page=1").status == 503


def test_an_outage_is_503_except_for_health_and_malformed_tokens(make_failing: MakeFailing, new_app: NewApp) -> None:
    failing = make_failing(0, Unavailable("gone"))
    assert failing.ask("GET", "/usuario", headers={"Authorization": "Bearer x"}).status == 401
    assert failing.get("/usuario").status == 503
    assert failing.get("/health").status == 200
    assert failing.get("/ready").status == 503
    assert Client(new_app(), None).get("/ready").status == 200
