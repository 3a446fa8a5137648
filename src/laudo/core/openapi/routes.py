"""What GET does on each route of the document."""

from typing import Any, Final

from laudo.core import errors, query, values
from laudo.core.openapi import answers, parameters
from laudo.core.resources import Resource

Json = dict[str, Any]


def path(get: Json) -> str:
    name: str = get["operationId"]
    return "/openapi.json" if name == "openapi" else f"/{name}"


def a_list(resource: Resource, *, max_rows: int) -> Json:
    return {
        "operationId": resource.name,
        "tags": ["consulta"],
        "summary": resource.summary,
        "parameters": [
            *parameters.of_list(resource, max_rows=max_rows),
            parameters.IF_NONE_MATCH,
            parameters.REQUEST_ID,
        ],
        "responses": {
            "200": {
                "description": "Uma página da lista e o total exato.",
                "headers": answers.headers("Cache-Control", "Vary", "ETag", "Link", "Server-Timing"),
                "content": answers.content(resource.name, _page(resource)),
            },
            "304": {
                "description": "Nada mudou desde a resposta que o ETag identifica.",
                "headers": answers.headers("Cache-Control", "Vary", "ETag", "Server-Timing"),
            },
            **answers.refer_invalid(resource.name),
            **answers.refer(*answers.DOCUMENTED),
        },
    }


def profile() -> Json:
    return {
        "operationId": "usuario",
        "tags": ["consulta"],
        "summary": "Lê o perfil do usuário que consulta e sua organização. A resposta contém o token: não a divulgue.",
        "parameters": [parameters.REQUEST_ID],
        "responses": {
            "200": {
                "description": "O perfil.",
                "headers": answers.headers("Cache-Control"),
                "content": answers.content("usuario", {"result": _PROFILE, "status_code": 200}),
            },
            **answers.refer_invalid("usuario"),
            **answers.refer(*answers.DOCUMENTED),
        },
    }


def health() -> Json:
    return _plain("health", "Responde enquanto o processo está ativo.", "ok")


def ready() -> Json:
    summary = "Responde 200 quando o banco de dados está acessível e seu esquema não é anterior ao que o serviço usa."
    route = _plain("ready", summary, "ok")
    route["responses"] |= answers.refer(errors.UNAVAILABLE)
    return route


def openapi() -> Json:
    return _plain("openapi", "Este documento.", "openapi")


def _plain(name: str, summary: str, schema: str) -> Json:
    return {
        "operationId": name,
        "tags": ["sistema"],
        "summary": summary,
        "security": [],
        "parameters": [parameters.REQUEST_ID],
        "responses": {
            "200": {"description": summary, "headers": answers.headers(), "content": answers.content(schema)},
            **answers.refer(errors.NOT_ALLOWED, errors.INTERNAL),
        },
    }


def _page(resource: Resource) -> Json:
    item = {field.name: answers.example(resource, field) for field in resource.fields}
    paginacao = {"atual": 1, "linhas": query.STEP, "total": "1" if resource.total_is_text else 1}
    echo = {"busca": values.NAME.example} if resource.echo else {}
    return {"result": echo | {"itens": [item], "paginacao": paginacao}, "status_code": 200}


_PROFILE: Final = {
    "api_token": "laudo_0000000000000000000000000000000000000",
    "email": "analista@example.com",
    "nome_usuario": "Analista",
    "webhook_url": "",
    "nome_organizacao": "Organização Exemplo",
    "id_organizacao": "1",
}
