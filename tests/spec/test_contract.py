"""Answers are as the OpenAPI document says, and both forms of the reference contain all that the document says."""

import json
import re
from html import unescape
from typing import Any

import pytest

from factories import Account, Store, relatorio
from test_schemas import matches
from wsgi import Answer, Client, NewClient

Json = dict[str, Any]

LISTS = ("/relatorios", "/pessoas")
ROUTES = (*LISTS, "/usuario", "/health", "/ready", "/openapi.json")
REHEARSED = ("429", "500", "503")


@pytest.fixture
def document(client: NewClient) -> Json:
    served: Json = client(None).get("/openapi.json").json
    return served


def resolved(document: Json, part: Json) -> Json:
    """Resolve a `$ref` within the document."""
    if "$ref" not in part:
        return part
    _, kind, name = part["$ref"].removeprefix("#/").split("/")
    found: Json = document["components"][kind][name]
    return found


def assert_documented(document: Json, path: str, answer: Answer, method: str = "get") -> Json:
    """Check that an answer has the documented headers and body; return its part of the document."""
    said = resolved(document, document["paths"][path][method]["responses"][str(answer.status)])
    headers = {name.lower(): resolved(document, header) for name, header in said["headers"].items()}
    required = {name for name, header in headers.items() if header["required"]}
    assert required == answer.headers.keys() - {"content-type", "content-length"}
    for name in headers.keys() & answer.headers.keys():
        assert matches(headers[name]["schema"], answer.headers[name])
    if "content" in said and method == "get":
        assert matches(said["content"]["application/json"]["schema"], answer.json)
    return said


@pytest.mark.parametrize("path", ROUTES)
def test_an_answer_has_the_documented_headers_and_body(
    acme: Client, store: Store, account: Account, document: Json, path: str
) -> None:
    assert_documented(document, path, acme.get(path))
    store.write(account, [relatorio(1, resultado=None), relatorio(2)])
    assert_documented(document, path, acme.get(path))
    assert_documented(document, path, acme.head(path), "head")
    bare = [resolved(document, each) for each in document["paths"][path]["head"]["responses"].values()]
    assert not [each for each in bare if "content" in each]
    assert_documented(document, path, acme.ask("OPTIONS", path), "options")
    allowed = assert_documented(document, path, acme.ask("POST", path))["headers"]["Allow"]
    assert resolved(document, allowed)["example"] == acme.ask("POST", path).headers["allow"]


@pytest.mark.parametrize("path", LISTS)
def test_a_304_for_a_known_etag_is_as_documented(acme: Client, document: Json, path: str) -> None:
    get = document["paths"][path]["get"]
    [known] = [each["name"] for each in get["parameters"] if "304" in each["description"]]
    answer = acme.ask("GET", path, headers={known: acme.get(path).headers["etag"]})
    assert answer.status == 304
    assert_documented(document, path, answer)


@pytest.mark.parametrize("path", [*LISTS, "/usuario"])
def test_a_refusal_equals_the_example_in_the_document(
    account: Account, client: NewClient, document: Json, path: str
) -> None:
    met = [client(account.token, rehearse=(f"{status}=100",)).get(path) for status in REHEARSED]
    met += [client(None).get(path), client(account.token).ask("POST", path)]
    for answer in met:
        said = assert_documented(document, path, answer)
        assert answer.json == said["content"]["application/json"]["example"]
        for name in ("WWW-Authenticate", "Retry-After"):
            if name in said["headers"]:
                assert resolved(document, said["headers"][name])["example"] == answer.headers[name.lower()]
    shown = resolved(document, document["paths"][path]["get"]["responses"]["400"])["content"]["application/json"][
        "example"
    ]
    [name] = shown["validation"]["keys"]
    invalid = client(account.token).get(f"{path}?{name}=")
    assert_documented(document, path, invalid)
    assert invalid.json == shown
    said_of = {str(answer.status) for answer in (*met, invalid)}
    assert said_of == {status for status in document["paths"][path]["get"]["responses"] if status >= "400"}


@pytest.mark.parametrize("path", ROUTES)
def test_routes_require_and_accept_a_token_as_documented(
    account: Account, client: NewClient, document: Json, path: str
) -> None:
    for method, operation in document["paths"][path].items():
        needed = operation.get("security", document["security"])
        schemes = [document["components"]["securitySchemes"][name] for each in needed for name in each]
        assert (client(None).ask(method.upper(), path).status == 401) == bool(schemes)
        for scheme in schemes:
            assert (scheme["type"], scheme["in"]) == ("apiKey", "header")
            headers = {scheme["name"]: account.token}
            assert client(None).ask(method.upper(), path, headers=headers).status == 200


def chapters(client: NewClient, form: str) -> tuple[str, dict[str, str]]:
    """Give the visible text of one form of the reference: its head, and the chapter of each path."""
    text = client(None).get(form).body.decode().replace("\\|", "|")
    if form == "/docs":
        assert set(re.findall('href="#([^"]+)"', text)) == set(re.findall(' id="([^"]+)"', text))
        text = re.sub("<h2[^>]*>", "\n## ", text).replace("</h2>", "\n").replace("<tr", "\n<tr")
        text = unescape(re.sub("<[^>]*>", "", text))
    head, *rest = re.split(r"^## GET ", text.replace("`", ""), flags=re.MULTILINE)
    return head, {re.split(r"\s", chapter)[0]: chapter for chapter in rest}


@pytest.mark.parametrize("form", ["/docs", "/docs.md"])
def test_the_reference_contains_all_that_the_openapi_document_says(
    client: NewClient, document: Json, form: str
) -> None:
    head, said = chapters(client, form)
    assert all(text in head for text in (document["info"]["summary"], document["info"]["description"]))
    assert "Envie somente o token no cabeçalho Authorization, sem Bearer" in head
    assert list(said) == list(document["paths"])
    for path, chapter in said.items():
        get = document["paths"][path]["get"]
        assert get["summary"] in chapter
        assert all(part in chapter for part in ("curl", "urlopen", f"$LAUDO_URL{path}"))
        assert ("sem token" in chapter.lower().partition("parâmetros")[0]) == (get.get("security") == [])
        for parameter in get["parameters"]:
            schema = parameter["schema"]
            assert parameter["description"] in chapter
            assert ", ".join(schema.get("enum", ())) in chapter
            assert str(parameter.get("example", "")) in chapter
            if "minimum" in schema:
                step = f", múltiplo de {schema['multipleOf']}" if "multipleOf" in schema else ""
                assert f"de {schema['minimum']} a {schema['maximum']}{step}" in chapter
            row = next(line for line in chapter.splitlines() if parameter["description"] in line)
            before, _, after = row.partition(parameter["description"])
            assert parameter["name"] in before
            assert ("cabeçalho" in before.lower()) == (parameter["in"] == "header")
            assert "default" not in schema or after.startswith(f" Padrão: {schema['default']}.")
        for answer in (resolved(document, each) for each in get["responses"].values()):
            assert answer["description"] in chapter
            assert all(name in chapter for name in answer["headers"])
            example = answer.get("content", {}).get("application/json", {}).get("example")
            assert example is None or json.dumps(example, indent=2, ensure_ascii=False) in chapter
    for path, item in (("/relatorios", "item_relatorios"), ("/pessoas", "item_pessoas"), ("/usuario", "perfil")):
        for name, field in document["components"]["schemas"][item]["properties"].items():
            kind, text = field.get("type", "string ou null"), re.escape(field["description"])
            assert re.search(rf"{name}\W*{kind}\W*{text}", said[path])
