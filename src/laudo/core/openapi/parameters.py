"""The parameters of the document: how to write their values; the service takes a few more spellings of some."""

from typing import Any, Final

from laudo.core import query
from laudo.core.resources import NEWEST, Filter, Match, Resource

Json = dict[str, Any]

REQUEST_ID: Final[Json] = {
    "name": "X-Request-Id",
    "in": "header",
    "description": (
        "Identificador da requisição, à sua escolha. Se tiver de 1 a 64 letras sem acento, dígitos, pontos, "
        "sublinhados ou hifens, é repetido na resposta; senão, é ignorado."
    ),
    "schema": {"type": "string"},
    "example": "consulta-42",
}


IF_NONE_MATCH: Final[Json] = {
    "name": "If-None-Match",
    "in": "header",
    "description": "O ETag de uma resposta anterior; se nada mudou, a resposta é 304.",
    "schema": {"type": "string"},
    "example": '"wET0Ygzs5S5GpYfxdwga"',
}


def of_list(resource: Resource, *, max_rows: int) -> list[Json]:
    """Describe every query parameter that a list accepts."""
    return [
        *(_page(), _rows(max_rows), _sort(resource), _cursor()),
        *(_filter(filter_) for filter_ in resource.filters),
        *(_ignored(name) for name in query.IGNORED),
    ]


def _page() -> Json:
    """Describe `page`, without a default: a generated client would send it with a cursor too, which is refused."""
    return {
        "name": "page",
        "in": "query",
        "description": (
            "Número da página; sem page nem cursor, vem a primeira. Não envie junto com cursor. "
            "Além da última página, itens vem vazio e total continua exato."
        ),
        "schema": {"type": "integer", "minimum": 1, "maximum": 999_999_999},
        "example": 1,
    }


def _rows(most: int) -> Json:
    bounds = {"minimum": query.STEP, "maximum": most, "multipleOf": query.STEP}
    return {
        "name": "rows",
        "in": "query",
        "description": f"Itens por página, um múltiplo de {query.STEP}.",
        "schema": {"type": "integer", **bounds, "default": query.STEP},
        "example": query.STEP,
    }


def _sort(resource: Resource) -> Json:
    """Describe `sort`, with names for its values: for a leading minus a generated client makes `VALUE_9` or `Nome2`."""
    sorts = [f"{sign}{field.name}" for field in resource.fields for sign in ("", "-")]
    names = [f"{field.name}{suffix}".upper() for field in resource.fields for suffix in ("", "_desc")]
    return {
        "name": "sort",
        "in": "query",
        "description": (
            "Campo de ordenação, com - na frente para ordem decrescente. "
            f"Empates são ordenados por {resource.key}; nulos ficam no fim."
        ),
        "schema": {"type": "string", "enum": sorts, "x-enum-varnames": names, "default": f"-{NEWEST}"},
        "example": f"-{NEWEST}",
    }


def _cursor() -> Json:
    """Describe `cursor`, without an example: no example would be one that the service has issued."""
    return {
        "name": "cursor",
        "in": "query",
        "description": (
            "O valor que o cabeçalho Link informa em rel=next, para usar no lugar de page: percorre a lista sem "
            "omitir nem repetir itens, exceto os que mudarem enquanto isso. Vale para a mesma conta, os "
            "mesmos filtros e a mesma ordenação."
        ),
        "schema": {"type": "string", "minLength": 1, "maxLength": query.MOST_CURSOR_CHARACTERS},
    }


def _filter(filter_: Filter) -> Json:
    any_case = " Maiúsculas e acentos não fazem diferença." if filter_.kind.choices else ""
    return {
        "name": filter_.name,
        "in": "query",
        "description": f"{filter_.description} Aceita {filter_.kind.accepts_in_address}.{any_case}",
        "schema": _accepted(filter_),
        "example": filter_.kind.example,
    }


def _accepted(filter_: Filter) -> Json:
    if filter_.kind.choices:
        return _text(enum=list(filter_.kind.choices))
    if filter_.kind.pattern:
        return _text(pattern=filter_.kind.pattern)
    pattern = {Match.EQUAL: _PRINTABLE, Match.WORDS: f"^{_WORDY}$", Match.SEARCH: f"^({_WORDY})?$"}[filter_.match]
    return _text(minLength=0 if filter_.may_be_empty else 1, maxLength=query.MOST_CHARACTERS, pattern=pattern)


def _text(**limits: Any) -> Json:  # noqa: ANN401 - keywords of JSON Schema
    return {"type": "string", **limits}


def _ignored(name: str) -> Json:
    return {
        "name": name,
        "in": "query",
        "description": "Aceito, mas ignorado; o tamanho da página é definido por rows.",
        "deprecated": True,
        "schema": {"type": "string", "minLength": 1, "maxLength": query.MOST_CHARACTERS, "pattern": _PRINTABLE},
        "example": "25",
    }


# Generated clients compile these in their own languages: PHP matches bytes and has no \u, Ruby takes \x only up
# to 7f, Go and Rust have no look-ahead. So what is beyond ASCII is left to the service.
_PRINTABLE: Final = r"^[^\x00-\x1f\x7f]+$"
_WORDY: Final = r"[^\x00-\x1f\x7f]*[^\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f][^\x00-\x1f\x7f]*"
"""A text that is not made of ASCII punctuation and blanks alone."""
