"""What all routes have in common, and the routes that need no token."""

import json
import re
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit
from wsgiref.validate import validator

import pytest

from engines import Stores
from factories import Account, Store, cpf, relatorio
from laudo.core.sql import Statement
from laudo.server import app
from laudo.server.config import Settings
from laudo.server.stores import open_store
from wsgi import Client, NewApp, NewClient

OPEN = ("/health", "/ready", "/openapi.json", "/docs", "/docs.md", "/")
ROUTES = ("/relatorios", "/pessoas", "/usuario", *OPEN)
PAGES = ("/docs", "/")


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_health_and_ready_answer_ok_without_a_token(client: NewClient, path: str) -> None:
    answer = client(None).get(path)
    assert (answer.status, answer.body) == (200, b'{"status":"ok"}')
    assert answer.headers["content-type"] == "application/json; charset=utf-8"


def test_a_store_without_the_schema_is_not_ready(stores: Stores, store: Store) -> None:
    url = stores.bare()
    open_store(url, write=True).close()
    database = open_store(url)
    bare = Client(app.create(Settings(store=url, key_file=str(store.key_file), log=False), database=database), None)
    assert bare.get("/ready").status == 503
    assert bare.get("/health").status == 200
    database.close()


def test_a_store_that_lacks_the_last_migration_is_not_ready(store: Store, client: NewClient) -> None:
    with store.database.transaction() as connection:
        connection.fetch(Statement("DELETE FROM migration WHERE name = (SELECT max(name) FROM migration)"))
    answer = client(None).get("/ready")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "503" in client(None).get("/openapi.json").json["paths"]["/ready"]["get"]["responses"]


@pytest.mark.engines("sqlite", reason="only its statements name an index; those of both engines name columns")
def test_a_schema_downgraded_while_serving_is_503(acme: Client, store: Store) -> None:
    with store.database.transaction() as connection:
        connection.run_script("DROP INDEX pessoa_cpf_recency; ALTER TABLE pessoa RENAME COLUMN nome_busca TO busca")
    assert [acme.get(f"/pessoas?{asked}").status for asked in ("sort=cpf", "sort=nome", "")] == [503, 503, 200]


def test_the_contract_is_served_as_openapi_3_1(client: NewClient) -> None:
    document = client(None).get("/openapi.json").json
    assert document["openapi"].startswith("3.1")
    assert {"/relatorios", "/pessoas", "/usuario", "/health", "/ready"} <= set(document["paths"])


@pytest.mark.parametrize("path", ["/relatorios", "/pessoas"])
def test_a_client_that_sends_every_default_can_walk_by_cursor(
    acme: Client, account: Account, store: Store, path: str
) -> None:
    store.write(account, [relatorio(number, numero_documento=cpf(number)) for number in range(30)])
    document = acme.get("/openapi.json").json
    parameters = document["paths"][path]["get"]["parameters"]
    defaults = {each["name"]: each["schema"]["default"] for each in parameters if "default" in each["schema"]}
    following = parse_qs(urlsplit(acme.get(path).links["next"]).query)
    [taken] = [each["schema"] for each in parameters if each["name"] == "cursor"]
    assert taken["minLength"] <= len(following["cursor"][0]) <= taken["maxLength"]
    assert len(acme.get(path, **(defaults | {"cursor": following["cursor"][0]})).itens) == 5
    assert not [each for each in parameters if each["name"] == "cursor" and "example" in each]
    for reference in ("/docs", "/docs.md"):
        assert "None" not in acme.get(reference).body.decode().replace("If-None-Match", "")


@pytest.mark.parametrize("path", PAGES)
def test_the_pages_work_offline(client: NewClient, path: str) -> None:
    answer = client(None).get(path)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert not re.search(rb"""(src|href)=["']?(https?:)?//|@import|url\(""", answer.body)
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_the_reference_names_every_parameter_of_the_lists(client: NewClient) -> None:
    document = client(None).get("/openapi.json").json
    page = client(None).get("/docs").body.decode()
    for path in ("/relatorios", "/pessoas"):
        for parameter in document["paths"][path]["get"]["parameters"]:
            assert f"<code>{parameter['name']}</code>" in page


@pytest.mark.parametrize("route", ROUTES)
def test_head_is_get_without_the_body(acme: Client, route: str) -> None:
    get, head = acme.get(route), acme.head(route)
    assert (head.status, head.stable_headers, head.body) == (get.status, get.stable_headers, b"")
    assert get.body


@pytest.mark.parametrize("route", ROUTES)
def test_options_is_204_and_names_the_methods_without_a_token(client: NewClient, route: str) -> None:
    answer = client(None).ask("OPTIONS", route)
    assert (answer.status, answer.body, answer.headers["allow"]) == (204, b"", "GET, HEAD, OPTIONS")


@pytest.mark.parametrize("route", [*ROUTES, "/none"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST"])
@pytest.mark.parametrize("token", [None, "good"])
def test_every_answer_forbids_sniffing_and_has_a_request_id_of_its_own(
    empty: Client, route: str, method: str, token: str | None
) -> None:
    asking = empty if token else empty.nobody()
    first, second = asking.ask(method, route), asking.ask(method, route)
    assert first.headers["x-content-type-options"] == "nosniff"
    assert re.fullmatch("[A-Za-z0-9._-]{1,64}", first.headers["x-request-id"])
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


def test_a_generated_request_id_never_looks_like_a_cpf(empty: Client) -> None:
    """The log would mask it, and nobody could find the request whose id a client quotes."""
    prefix, *numbers = empty.get("/health").headers["x-request-id"].split("-")
    assert prefix.isalpha()
    assert max(map(len, numbers)) < 9


def test_generated_request_ids_do_not_reveal_the_number_of_requests(empty: Client) -> None:
    texts = [empty.get("/health").headers["x-request-id"].split("-", 2)[2] for _ in range(300)]
    assert len(set(texts)) == len(texts)
    assert all(re.fullmatch("[0-9a-f]{8}-[0-9a-f]{8}", text) for text in texts)
    numbers = [int(text.replace("-", ""), 16) for text in texts]
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    assert len(steps) == len(texts) - 1


@pytest.mark.parametrize("given", ["1", "consulta-42", "A.b_c-9", "x" * 64, "52998224725", "529.982.247-25"])
@pytest.mark.parametrize("path", ["/relatorios", "/relatorios?page=0", "/none", "/health"])
def test_a_clients_request_id_is_echoed(acme: Client, path: str, given: str) -> None:
    assert acme.ask("GET", path, headers={"X-Request-Id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a,b", "é", "a\r\nSet-Cookie: b", "a\n", "<b>", "\x00"])
def test_an_invalid_request_id_is_replaced(empty: Client, given: str) -> None:
    answered = empty.ask("GET", "/health", headers={"X-Request-Id": given}).headers["x-request-id"]
    assert re.fullmatch("[A-Za-z0-9._-]{1,64}", answered)
    assert answered != given


@pytest.mark.parametrize("route", ROUTES)
def test_without_allowed_origins_there_are_no_cors_headers(empty: Client, route: str) -> None:
    for method in ("GET", "OPTIONS"):
        answer = empty.ask(method, route, headers={"Origin": "https://app.example"})
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_an_allowed_origin_may_read_and_others_may_not(account: Account, client: NewClient) -> None:
    asking = client(account.token, allowed_origins=("https://app.example",))
    allowed = asking.ask("GET", "/relatorios", headers={"Origin": "https://app.example"}).headers
    assert allowed["access-control-allow-origin"] == "https://app.example"
    assert {name.strip() for name in allowed["vary"].split(",")} == {"Authorization", "Origin"}
    preflight = asking.ask("OPTIONS", "/relatorios", headers={"Origin": "https://app.example"}).headers
    assert "Authorization" in preflight["access-control-allow-headers"]
    for origin in ("https://other.example", "null", "https://app.example.evil", "http://app.example"):
        refused = asking.ask("GET", "/relatorios", headers={"Origin": origin}).headers
        assert not [name for name in refused if name.startswith("access-control-")]


def test_server_timing_is_sent_only_if_configured(account: Account, client: NewClient, acme: Client) -> None:
    assert "server-timing" not in acme.get("/relatorios").headers
    timing = client(account.token, server_timing=True).get("/relatorios").headers["server-timing"]
    assert re.fullmatch(r"(\w+;dur=[0-9.]+, )+\w+;dur=[0-9.]+", timing)


def test_the_maximum_of_rows_is_a_setting(account: Account, client: NewClient) -> None:
    asking = client(account.token, max_rows=50)
    assert [asking.get(f"/relatorios?rows={rows}").status for rows in (50, 75)] == [200, 400]
    rows = asking.get("/openapi.json").json["paths"]["/pessoas"]["get"]["parameters"][1]
    assert (rows["name"], rows["schema"]["maximum"]) == ("rows", 50)


@pytest.mark.parametrize(
    "path", ["/relatorios?numero_documento=52998224725&page=1", "/usuario", "/pessoas?nome=", "/no"]
)
def test_each_request_writes_one_log_line_without_values(
    account: Account, client: NewClient, capfd: pytest.CaptureFixture[str], path: str
) -> None:
    answer = client(account.token, log=True).get(path)
    [line] = capfd.readouterr().out.splitlines()
    logged = json.loads(line)
    assert list(logged) == [
        *("time", "request_id", "route", "method", "status", "ms", "bytes", "id_token", "filters"),
    ]
    assert (logged["request_id"], logged["status"]) == (answer.headers["x-request-id"], answer.status)
    assert logged["bytes"] == len(answer.body)
    assert logged["route"] in {"relatorios", "usuario", "pessoas", "none"}
    assert logged["filters"] == (["numero_documento"] if answer.status == 200 and "?" in path else [])
    assert logged["id_token"] == (None if path == "/no" else account.id_token)
    assert not [value for value in ("52998224725", account.token, path) if value in line]


def test_a_head_request_is_logged_with_zero_bytes(
    account: Account, client: NewClient, capfd: pytest.CaptureFixture[str]
) -> None:
    caller = client(account.token, log=True)
    for path in ("/relatorios", "/usuario", "/none"):
        assert caller.ask("HEAD", path).body == b""
    assert [json.loads(line)["bytes"] for line in capfd.readouterr().out.splitlines()] == [0, 0, 0]


@pytest.mark.parametrize("route", [*ROUTES, "/none", "/relatorios?page=0"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST"])
def test_the_application_conforms_to_wsgi(account: Account, new_app: NewApp, route: str, method: str) -> None:
    validated = Client(validator(new_app()), account.token)
    assert validated.ask(method, route).status in {200, 204, 400, 404, 405}
