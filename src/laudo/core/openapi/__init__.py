"""The table → OpenAPI 3.1: every route, parameter, header and error, with examples."""

from typing import Any, Final

import msgspec

from laudo.core.openapi import answers, parameters, routes
from laudo.core.resources import LISTS

Json = dict[str, Any]

VERSION: Final = "1.0.0"
"""The contract's version, not the package's."""


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
        "servers": [{"url": "."}],  # relative to this document, hence below any path that a proxy takes off
        "tags": [
            {"name": "consulta", "description": "As três consultas."},
            {"name": "sistema", "description": "O estado do serviço e este documento, sem token."},
        ],
        "security": [{"token": []}],
        "paths": _paths(max_rows),
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "O token, como foi emitido, sem prefixo.",
                }
            },
            "headers": answers.HEADERS,
            "schemas": answers.schemas(),
            "responses": answers.REFUSALS,
        },
    }


def encode(document_: Json) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document_), indent=2)


def _paths(max_rows: int) -> Json:
    gets = [routes.a_list(resource, max_rows=max_rows) for resource in LISTS]
    gets += [routes.profile(), routes.health(), routes.ready(), routes.openapi()]
    return {routes.path(get): {"get": get, "head": _head(get), "options": _options(get)} for get in gets}


def _head(get: Json) -> Json:
    return {
        **get,
        "operationId": f"{get['operationId']}_head",
        "summary": f"{get['summary']} Somente os cabeçalhos.",
        "responses": {status: answers.bare(answer) for status, answer in get["responses"].items()},
    }


def _options(get: Json) -> Json:
    return {
        "operationId": f"{get['operationId']}_options",
        "tags": get["tags"],
        "summary": "Informa os métodos aceitos.",
        "security": [],
        "parameters": [parameters.REQUEST_ID],
        "responses": {"204": {"description": "Sem corpo.", "headers": answers.headers("Allow")}},
    }
