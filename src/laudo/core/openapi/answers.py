"""The answers of the document: their headers, the schemas of their bodies, and the refusals."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from laudo.core import errors, query, values
from laudo.core.errors import ApiError, Kind
from laudo.core.resources import LISTS, PROFILE, Field, Resource

Json = dict[str, Any]

DOCUMENTED: Final = tuple(kind for kind in errors.TABLE if kind not in {errors.INVALID, errors.NOT_FOUND})
"""The refusals that every route with a token gives alike."""


def headers(*names: str) -> Json:
    """Refer to the headers that every answer has, and to these."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*_COMMON_HEADERS, *names)}


def content(schema: str, sample: Json | None = None) -> Json:
    """Describe a body by the name of its schema, with an example."""
    body: Json = {"schema": _refer(schema)}
    return {"application/json": body if sample is None else body | {"example": sample}}


def refer(*kinds: Kind) -> Json:
    """Refer to the refusals of these kinds."""
    return {str(kind.status): {"$ref": f"{_RESPONSES}{kind.status}"} for kind in kinds}


def refer_invalid(route: str) -> Json:
    """Refer to the refusal of parameters by a route, whose example is true of that route."""
    return {"400": {"$ref": f"{_RESPONSES}400_{route}"}}


def bare(answer: Json) -> Json:
    """Describe an answer without its body."""
    whole = REFUSALS[answer["$ref"].removeprefix(_RESPONSES)] if "$ref" in answer else answer
    return {key: part for key, part in whole.items() if key != "content"}


def schemas() -> Json:
    """Describe every body, each object under its own name: generators of clients would invent one."""
    error = {"error": {"type": "string"}, "message": {"type": "string"}}
    any_object = {"type": "object", "additionalProperties": True}
    lists = [schema for resource in LISTS for schema in _list(resource).items()]
    return {
        **dict(lists),
        "usuario": _envelope("perfil"),
        "perfil": _object({name: {"type": "string", "description": text} for name, text in PROFILE}),
        "erro": _object({**error, "status_code": {"type": "integer"}}),
        "erro_validacao": _object({**error, "validation": _refer("validacao"), "status_code": _constant(400)}),
        "validacao": _object({"source": _constant("query"), "keys": {"type": "array", "items": {"type": "string"}}}),
        "ok": _object({"status": _constant("ok")}),
        "openapi": _object({"openapi": {"type": "string"}, "info": any_object, "paths": any_object}) | any_object,
    }


def example(resource: Resource, field: Field) -> object:
    """Give a value that a field may have."""
    return _EXAMPLES.get((resource.name, field.name), field.kind.example)


def _refusal(refusal: ApiError) -> Json:
    kind = refusal.kind
    validation = {"validation": {"source": "query", "keys": list(refusal.keys)}} if refusal.keys else {}
    sample = {"error": kind.error, "message": refusal.message, **validation, "status_code": kind.status}
    return {
        "description": kind.message,
        "headers": headers(*_REFUSAL_HEADERS.get(kind.status, ())),
        "content": content("erro_validacao" if refusal.keys else "erro", sample),
    }


def _invalid(parse: Callable[[str], object], query_string: str) -> Json:
    """Provoke the refusal of a parameter: its text is not the one in the table of errors."""
    try:
        parse(query_string)
    except ApiError as refusal:
        return _refusal(refusal)
    raise AssertionError


def _list(resource: Resource) -> Json:
    total = {"type": "string", "pattern": "^[0-9]+$"} if resource.total_is_text else {"type": "integer", "minimum": 0}
    positive = {"type": "integer", "minimum": 1}
    item, page, paginacao = f"item_{resource.name}", f"pagina_{resource.name}", f"paginacao_{resource.name}"
    result = {"itens": {"type": "array", "items": _refer(item)}, "paginacao": _refer(paginacao)}
    return {
        resource.name: _envelope(page),
        page: _object({"busca": {"type": "string"}} | result if resource.echo else result),
        paginacao: _object({"atual": positive, "linhas": positive, "total": total}),
        item: _object({field.name: _field(resource, field) for field in resource.fields}),
        **{field.name: _value(field) for field in resource.fields if field.nullable},
    }


def _field(resource: Resource, field: Field) -> Json:
    # null beside a named schema: few generators of clients understand null in an enumeration.
    schema = {"anyOf": [_refer(field.name), {"type": "null"}]} if field.nullable else _value(field)
    return schema | {"description": field.description, "examples": [example(resource, field)]}


def _value(field: Field) -> Json:
    kind = field.kind
    schema: Json = {"type": kind.json_type}
    if kind.choices and kind.json_type == "string":
        schema["enum"] = [kind.parse(choice) for choice in kind.choices]
    if kind.format:
        schema["format"] = kind.format
    return schema


def _envelope(result: str) -> Json:
    return _object({"result": _refer(result), "status_code": _constant(200)})


def _constant(value: str | int) -> Json:
    return {"type": "integer" if isinstance(value, int) else "string", "const": value}


def _refer(schema: str) -> Json:
    return {"$ref": f"#/components/schemas/{schema}"}


def _object(properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _header(description: str, sample: str, *, pattern: str = "", required: bool = True) -> Json:
    schema = {"type": "string", "pattern": pattern} if pattern else {"type": "string"}
    return {"description": description, "required": required, "schema": schema, "example": sample}


_RESPONSES: Final = "#/components/responses/"
_COMMON_HEADERS: Final = ("X-Request-Id", "X-Content-Type-Options")
_REFUSAL_HEADERS: Final = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
_CURSOR: Final = "KlpqiWoituXfosbsgYu78FsyLDE3NjQ1LCJhIiwiMCJd"
HEADERS: Final[Json] = {
    "X-Request-Id": _header(
        "O identificador da requisição: o enviado, se válido, ou um novo.",
        "5b1c9e0f2a-1f-2a",
        pattern="^[A-Za-z0-9._-]{1,64}$",
    ),
    "X-Content-Type-Options": _header("Sempre nosniff.", "nosniff", pattern="^nosniff$"),
    "Cache-Control": _header("Se e como a resposta pode ser guardada em cache.", "private, no-cache"),
    "Vary": _header("A resposta depende do token.", "Authorization"),
    "Server-Timing": _header(
        "A duração de cada etapa, em milissegundos, quando o servidor está configurado para mostrá-la.",
        "auth;dur=0.021, parse;dur=0.004, answer;dur=0.135",
        required=False,
    ),
    "ETag": _header(
        "Identifica o estado da lista; envie-o em If-None-Match.", '"wET0Ygzs5S5GpYfxdwga"', pattern='^".+"$'
    ),
    "Link": _header(
        "Endereços relativos ao da lista: first, prev e last, por número de página; next, por cursor.",
        f'<relatorios?page=1&rows=25>; rel="first", <relatorios?cursor={_CURSOR}&rows=25>; rel="next"',
    ),
    "WWW-Authenticate": _header("Como se autenticar.", 'Token realm="api"'),
    "Allow": _header("Os métodos aceitos.", "GET, HEAD, OPTIONS"),
    "Retry-After": _header("Segundos a aguardar antes de tentar novamente.", "1", pattern="^[0-9]+$"),
}
"""Every header of an answer, by name."""
_MISSPELT: Final = {"relatorios": "numero_documeto=", "pessoas": "cfp="}
REFUSALS: Final[Json] = {
    **{
        f"400_{each.name}": _invalid(partial(query.parse, each, max_rows=query.STEP), _MISSPELT[each.name])
        for each in LISTS
    },
    "400_usuario": _invalid(query.parse_none, "page="),
    **{str(kind.status): _refusal(ApiError(kind)) for kind in DOCUMENTED},
}
"""Every refusal, by status; that of parameters also by route."""

_EXAMPLES: Final[dict[tuple[str, str], object]] = {
    ("relatorios", "status"): "CONCLUIDO",
    ("relatorios", "tipo_pessoa"): values.PESSOA,
    ("relatorios", "mensagem"): "Válido.",
    ("relatorios", "pendente_validacao_manual"): False,
    ("pessoas", "nome"): "Maria da Silva",
}
"""The example of a field, where it is not that of its kind."""
