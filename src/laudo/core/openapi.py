"""The table → OpenAPI 3.1: every route, parameter, header and error, with examples."""

from typing import Any, Final

import msgspec

from laudo.core import errors, query, response, values
from laudo.core.errors import ApiError, Kind
from laudo.core.resources import LISTS, PROFILE, Field, Filter, Match, Resource

Json = dict[str, Any]

VERSION: Final = "1.0.0"
"""The contract's version, not the package's."""

_CONSUMED_BY_LISTS: Final = (errors.INVALID, errors.UNAUTHORIZED, errors.NOT_ALLOWED, errors.TOO_MANY)
_ANYWHERE: Final = (errors.INTERNAL, errors.UNAVAILABLE)
_EXAMPLES: Final[dict[str, object]] = {
    "numero": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "status": "CONCLUIDO",
    "tipo_pessoa": values.PESSOA,
    "nome": "consultaPessoaDefault",
    "atualizado_em": "2026-01-31T12:00:00.000Z",
    "resultado": "VALID",
    "mensagem": "Válido.",
    "pendente_validacao_manual": False,
    "numero_documento": "12345678909",
    "cpf": "12345678909",
}
_PROFILE_EXAMPLE: Final = {
    "api_token": "laudo_0000000000000000000000000000000000000",
    "email": "analista@example.com",
    "nome_usuario": "Analista",
    "webhook_url": "",
    "nome_organizacao": "Organização Exemplo",
    "id_organizacao": "1",
}


def document(*, max_rows: int) -> Json:
    """Describe the service whose lists give at most `max_rows` rows a page."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "laudo",
            "version": VERSION,
            "summary": "Consulta de relatórios de validação, pessoas e perfil.",
            "description": (
                "Três consultas somente de leitura, com filtros, ordenação, páginas numeradas e totais exatos. "
                "Um filtro que não é compreendido por inteiro é recusado (400), nunca ignorado."
            ),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": "consulta", "description": "As três consultas."}, {"name": "serviço"}],
        "security": [{"token": []}],
        "paths": {
            **{f"/{resource.name}": _path(_list(resource, max_rows)) for resource in LISTS},
            "/usuario": _path(_profile()),
            "/health": _path(_plain("health", "Responde enquanto o processo vive.", _status_schema())),
            "/ready": _path(_ready()),
            "/openapi.json": _path(_plain("openapi", "Este documento.", {"type": "object"})),
        },
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "O token, como foi emitido, sem prefixo.",
                }
            },
            "headers": _HEADERS,
            "schemas": _schemas(),
            "responses": {str(kind.status): _refusal(kind) for kind in errors.TABLE},
        },
    }


def encode(document_: Json) -> bytes:
    """Write the document as JSON."""
    return msgspec.json.format(msgspec.json.encode(document_), indent=2)


def _path(get: Json) -> Json:
    head = {
        **get,
        "operationId": f"{get['operationId']}_head",
        "summary": f"{get['summary']} Somente os cabeçalhos.",
        "responses": {
            status: {key: part for key, part in _resolved(answer).items() if key != "content"}
            for status, answer in get["responses"].items()
        },
    }
    return {"get": get, "head": head, "options": _options(get)}


def _resolved(answer: Json) -> Json:
    reference = answer.get("$ref")
    if not reference:
        return answer
    status = int(reference.rpartition("/")[2])
    return _refusal(next(kind for kind in errors.TABLE if kind.status == status))


def _options(get: Json) -> Json:
    return {
        "operationId": f"{get['operationId']}_options",
        "tags": get["tags"],
        "summary": "Diz os métodos aceitos.",
        "security": [],
        "responses": {
            "204": {
                "description": "Sem corpo.",
                "headers": {"Allow": {"$ref": "#/components/headers/Allow"}} | _common(),
            }
        },
    }


def _list(resource: Resource, max_rows: int) -> Json:
    return {
        "operationId": resource.name,
        "tags": ["consulta"],
        "summary": resource.summary,
        "parameters": [
            *_paging(resource, max_rows),
            *(_parameter(filter_) for filter_ in resource.filters),
            {
                "name": "limit",
                "in": "query",
                "description": "Aceito e ignorado; o tamanho da página é rows.",
                "deprecated": True,
                "schema": {"type": "string", "minLength": 1, "maxLength": query.MOST_CHARACTERS, "pattern": _PRINTABLE},
                "example": "25",
            },
            _REQUEST_ID_PARAMETER,
        ],
        "responses": {
            "200": {
                "description": "Uma página da lista e o total exato.",
                "headers": _common() | {name: {"$ref": f"#/components/headers/{name}"} for name in _LIST_HEADERS},
                "content": {
                    "application/json": {
                        "schema": {"$ref": f"#/components/schemas/{resource.name}"},
                        "example": _list_example(resource),
                    }
                },
            },
            **_refusals(*_CONSUMED_BY_LISTS, *_ANYWHERE),
        },
    }


def _list_example(resource: Resource) -> Json:
    item = {field.name: _example(resource, field) for field in resource.fields}
    paginacao = {"atual": 1, "linhas": query.STEP, "total": "1" if resource.total_is_text else 1}
    echo = {"busca": ""} if resource.echo else {}
    return {"result": echo | {"itens": [item], "paginacao": paginacao}, "status_code": 200}


def _example(resource: Resource, field: Field) -> object:
    return "Maria da Silva" if (resource.name, field.name) == ("pessoas", "nome") else _EXAMPLES[field.name]


def _paging(resource: Resource, max_rows: int) -> list[Json]:
    sorts = [f"{sign}{field.name}" for field in resource.fields for sign in ("", "-")]
    return [
        {
            "name": "page",
            "in": "query",
            "description": "Número da página. Além do fim: itens vazio e o total verdadeiro.",
            "schema": {"type": "integer", "minimum": 1, "maximum": 999_999_999, "default": 1},
            "example": 1,
        },
        {
            "name": "rows",
            "in": "query",
            "description": f"Itens por página, um múltiplo de {query.STEP}.",
            "schema": {
                "type": "integer",
                "minimum": query.STEP,
                "maximum": max_rows,
                "multipleOf": query.STEP,
                "default": query.STEP,
            },
            "example": query.STEP,
        },
        {
            "name": "sort",
            "in": "query",
            "description": f"Campo de ordenação; - para decrescente. Empates por {resource.key}; nulos ao fim.",
            "schema": {"type": "string", "enum": sorts, "default": "-atualizado_em"},
            "example": "-atualizado_em",
        },
    ]


def _parameter(filter_: Filter) -> Json:
    kind = filter_.kind
    schema: Json = {"type": "string", "maxLength": query.MOST_CHARACTERS}
    if not filter_.may_be_empty:
        schema["minLength"] = 1
    if kind.choices:
        schema = {"type": "string", "enum": list(kind.choices)}
    elif kind.pattern:
        schema = {"type": "string", "pattern": kind.pattern}
    elif filter_.match is Match.WORDS:
        schema["pattern"] = _WORDY
    elif filter_.match is Match.SEARCH:
        schema["pattern"] = f"^$|{_WORDY}"
    else:
        schema["pattern"] = _PRINTABLE
    return {
        "name": filter_.name,
        "in": "query",
        "description": f"{filter_.description} Aceita {kind.accepts}.",
        "schema": schema,
        "example": kind.example,
    }


def _profile() -> Json:
    return {
        "operationId": "usuario",
        "tags": ["consulta"],
        "summary": "Lê o perfil de quem consulta e da sua organização. Contém o token: não divulgue a resposta.",
        "parameters": [_REQUEST_ID_PARAMETER],
        "responses": {
            "200": {
                "description": "O perfil.",
                "headers": _common() | {"Cache-Control": {"$ref": "#/components/headers/Cache-Control"}},
                "content": {
                    "application/json": {
                        "schema": {"$ref": "#/components/schemas/usuario"},
                        "example": {"result": _PROFILE_EXAMPLE, "status_code": 200},
                    }
                },
            },
            **_refusals(*_CONSUMED_BY_LISTS, *_ANYWHERE),
        },
    }


def _plain(name: str, summary: str, schema: Json) -> Json:
    return {
        "operationId": name,
        "tags": ["serviço"],
        "summary": summary,
        "security": [],
        "responses": {
            "200": {
                "description": summary,
                "headers": _common(),
                "content": {"application/json": {"schema": schema}},
            },
            **_refusals(errors.NOT_ALLOWED, errors.INTERNAL),
        },
    }


def _ready() -> Json:
    route = _plain("ready", "Responde 200 quando a base atende e seu esquema é o atual.", _status_schema())
    route["responses"].update(_refusals(errors.UNAVAILABLE))
    return route


def _status_schema() -> Json:
    return {"type": "object", "properties": {"status": {"const": "ok"}}, "required": ["status"]}


def _refusals(*kinds: Kind) -> Json:
    return {str(kind.status): {"$ref": f"#/components/responses/{kind.status}"} for kind in kinds}


def _refusal(kind: Kind) -> Json:
    keys = ("rows",) if kind is errors.INVALID else ()
    body = msgspec.json.decode(response.error(ApiError(kind, keys=keys)))
    name = "erro_validacao" if kind is errors.INVALID else "erro"
    extra = {name: {"$ref": f"#/components/headers/{name}"} for name in _REFUSAL_HEADERS.get(kind.status, ())}
    return {
        "description": kind.message,
        "headers": _common() | extra,
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}, "example": body}},
    }


def _schemas() -> Json:
    error = {"error": {"type": "string"}, "message": {"type": "string"}}
    validation = _object({"source": {"const": "query"}, "keys": {"type": "array", "items": {"type": "string"}}})
    return {
        **{resource.name: _list_schema(resource) for resource in LISTS},
        **{
            f"item_{resource.name}": _object({f.name: _field(resource, f) for f in resource.fields})
            for resource in LISTS
        },
        "usuario": _envelope(_object({name: {"type": "string", "description": text} for name, text in PROFILE})),
        "erro": _object({**error, "status_code": {"type": "integer"}}),
        "erro_validacao": _object({**error, "validation": validation, "status_code": {"const": 400}}),
    }


def _list_schema(resource: Resource) -> Json:
    total = {"type": "string", "pattern": "^[0-9]+$"} if resource.total_is_text else {"type": "integer", "minimum": 0}
    whole = {"type": "integer", "minimum": 1}
    echo = {"busca": {"type": "string"}} if resource.echo else {}
    return _envelope(
        _object(
            {
                **echo,
                "itens": {"type": "array", "items": {"$ref": f"#/components/schemas/item_{resource.name}"}},
                "paginacao": _object({"atual": whole, "linhas": whole, "total": total}),
            }
        )
    )


def _field(resource: Resource, field: Field) -> Json:
    kind = field.kind
    schema: Json = {"type": [kind.json_type, "null"] if field.nullable else kind.json_type}
    if kind.choices and kind.json_type == "string":
        stored = [kind.parse(choice) for choice in kind.choices]
        schema["enum"] = [*stored, None] if field.nullable else stored
    if kind.format:
        schema["format"] = kind.format
    return schema | {"description": field.description, "examples": [_example(resource, field)]}


def _envelope(result: Json) -> Json:
    return _object({"result": result, "status_code": {"const": 200}})


def _object(properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _common() -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", "X-Content-Type-Options")}


def _header(description: str, example: str) -> Json:
    return {"description": description, "required": True, "schema": {"type": "string"}, "example": example}


_PRINTABLE: Final = r"^[^\x00-\x1f\x7f-\x9f]+$"
_WORDY: Final = r"^[^\x00-\x1f\x7f-\x9f]*[0-9A-Za-zÀ-ÖØ-öø-ɏ][^\x00-\x1f\x7f-\x9f]*$"
_LIST_HEADERS: Final = ("Cache-Control", "Vary")
_REFUSAL_HEADERS: Final = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
_HEADERS: Final[Json] = {
    "X-Request-Id": _header("O identificador da requisição: o enviado, se válido, ou um novo.", "5b1c9e0f2a-1f-2a"),
    "X-Content-Type-Options": _header("Sempre nosniff.", "nosniff"),
    "Cache-Control": _header("Se e como a resposta pode ser guardada.", "private, no-cache"),
    "Vary": _header("A resposta depende do token.", "Authorization"),
    "WWW-Authenticate": _header("Como se autenticar.", 'Token realm="api"'),
    "Allow": _header("Os métodos aceitos.", "GET, HEAD, OPTIONS"),
    "Retry-After": _header("Segundos a aguardar antes de tentar de novo.", "1"),
}
_REQUEST_ID_PARAMETER: Final[Json] = {
    "name": "X-Request-Id",
    "in": "header",
    "description": (
        "Identificador próprio da requisição. Com 1 a 64 letras, dígitos, pontos, sublinhados ou hifens é repetido "
        "na resposta; qualquer outro é ignorado."
    ),
    "schema": {"type": "string"},
    "example": "consulta-42",
}
