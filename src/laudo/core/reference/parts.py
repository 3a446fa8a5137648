"""What both forms of the reference say of a route, from the document: parameters, fields, answers and examples."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec

Json = dict[str, Any]

AUTHENTICATION: Final = (
    "Envie somente o token no cabeçalho Authorization, sem Bearer nem outro prefixo. Nos exemplos, o endereço do "
    "serviço está na variável de ambiente LAUDO_URL e o token em LAUDO_TOKEN."
)
_EXAMPLES: Final = {
    "/relatorios": {"tipo_pessoa": "PESSOA", "status": "CONCLUIDO", "sort": "-atualizado_em"},
    "/pessoas": {"nome": "maria silva", "sort": "nome"},
}


class Route(NamedTuple):
    """What GET does on one path."""

    path: str
    summary: str
    needs_token: bool
    parameters: tuple[Json, ...]
    answers: tuple["Answer", ...]
    fields: tuple["Field", ...]
    """The fields of a list's item, or of the profile."""


class Answer(NamedTuple):
    """One answer with its references resolved; `example` is its body, indented, or empty."""

    status: str
    description: str
    headers: tuple[tuple[str, str], ...]
    example: str


class Field(NamedTuple):
    """One key of an item."""

    name: str
    kind: str
    description: str


def routes(document: Json) -> Iterator[Route]:
    """Give every route of the document, in its order."""
    for path, methods in document["paths"].items():
        get = methods["get"]
        yield Route(
            path,
            get["summary"],
            needs_token=get.get("security") != [],
            parameters=tuple(get.get("parameters", ())),
            answers=tuple(_answer(document, status, answer) for status, answer in get["responses"].items()),
            fields=tuple(_fields(document, path.removeprefix("/"))),
        )


def accepted(parameter: Json) -> str:
    """Say in a few words what a parameter takes."""
    schema = parameter["schema"]
    if "enum" in schema:
        return ", ".join(schema["enum"])
    if schema["type"] == "integer":
        step = f", múltiplo de {schema['multipleOf']}" if "multipleOf" in schema else ""
        return f"de {schema['minimum']} a {schema['maximum']}{step}"
    return "texto"


def curl(route: Route) -> str:
    """Show how to ask with curl."""
    lines = ["curl --get" if route.path in _EXAMPLES else "curl"]
    lines[0] += f' "$LAUDO_URL{route.path}"'
    if route.needs_token:
        lines.append('--header "Authorization: $LAUDO_TOKEN"')
    lines += [f"--data-urlencode '{name}={value}'" for name, value in _EXAMPLES.get(route.path, {}).items()]
    return " \\\n  ".join(lines)


def python(route: Route) -> str:
    """Show how to ask with Python's standard library."""
    query = urlencode(_EXAMPLES.get(route.path, {}))
    headers = '{"Authorization": os.environ["LAUDO_TOKEN"]}' if route.needs_token else "{}"
    address = f'os.environ["LAUDO_URL"] + "{route.path}{"?" if query else ""}{query}"'
    return (
        "import json\nimport os\nfrom urllib.request import Request, urlopen\n\n"
        f"request = Request({address}, headers={headers})\n"
        "with urlopen(request) as answer:\n    print(json.load(answer))"
    )


def _answer(document: Json, status: str, answer: Json) -> Answer:
    found = _resolved(document, answer)
    headers = tuple(
        (name, _resolved(document, header)["description"]) for name, header in found.get("headers", {}).items()
    )
    example = found.get("content", {}).get("application/json", {}).get("example")
    return Answer(status, found["description"], headers, _pretty(example) if example else "")


def _fields(document: Json, name: str) -> Iterator[Field]:
    schemas = document["components"]["schemas"]
    described = schemas.get("perfil" if name == "usuario" else f"item_{name}", {})
    for field, schema in described.get("properties", {}).items():
        kinds = " ou ".join(_resolved(document, choice)["type"] for choice in schema.get("anyOf", [schema]))
        yield Field(field, kinds, schema["description"])


def _resolved(document: Json, part: Json) -> Json:
    """Follow a reference inside the document."""
    found = part
    if "$ref" in part:
        found = document
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
    return found


def _pretty(example: Json) -> str:
    return msgspec.json.format(msgspec.json.encode(example), indent=2).decode()
