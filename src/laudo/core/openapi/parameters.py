"""The parameters of the document; a pattern takes in nothing that the service refuses."""

from typing import Any, Final

from laudo.core import query
from laudo.core.resources import NEWEST, Filter, Match, Resource

Json = dict[str, Any]

REQUEST_ID: Final[Json] = {
    "name": "X-Request-Id",
    "in": "header",
    "description": (
        "Identificador próprio da requisição. Com 1 a 64 letras, dígitos, pontos, sublinhados ou hifens é repetido "
        "na resposta; qualquer outro é ignorado."
    ),
    "schema": {"type": "string"},
    "example": "consulta-42",
}


IF_NONE_MATCH: Final[Json] = {
    "name": "If-None-Match",
    "in": "header",
    "description": "O ETag de uma resposta anterior; 304 quando nada mudou.",
    "schema": {"type": "string"},
    "example": '"wET0Ygzs5S5GpYfxdwga"',
}
CURSOR_EXAMPLE: Final = "KlpqiWoituXfosbsgYu78FsyLDE3NjQ1LCJhIiwiMCJd"


def of_list(resource: Resource, *, max_rows: int) -> list[Json]:
    """Describe every query parameter that a list accepts."""
    return [
        *(_page(), _rows(max_rows), _sort(resource), _cursor()),
        *(_filter(filter_) for filter_ in resource.filters),
        *(_ignored(name) for name in query.IGNORED),
    ]


def _page() -> Json:
    return {
        "name": "page",
        "in": "query",
        "description": "Número da página. Além do fim: itens vazio e o total verdadeiro.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 999_999_999, "default": 1},
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
    sorts = [f"{sign}{field.name}" for field in resource.fields for sign in ("", "-")]
    return {
        "name": "sort",
        "in": "query",
        "description": f"Campo de ordenação; - para decrescente. Empates por {resource.key}; nulos ao fim.",
        "schema": {"type": "string", "enum": sorts, "default": f"-{NEWEST}"},
        "example": f"-{NEWEST}",
    }


def _cursor() -> Json:
    return {
        "name": "cursor",
        "in": "query",
        "description": (
            "O que o cabeçalho Link informou em rel=next, no lugar de page: percorre a lista sem faltas nem repetições "
            "enquanto os dados mudam. Vale para o mesmo token, os mesmos filtros e a mesma ordem."
        ),
        "schema": {"type": "string", "minLength": 1, "maxLength": query.MOST_CURSOR_CHARACTERS},
        "example": CURSOR_EXAMPLE,
    }


def _filter(filter_: Filter) -> Json:
    return {
        "name": filter_.name,
        "in": "query",
        "description": f"{filter_.description} Aceita {filter_.kind.accepts}.",
        "schema": {"type": "string", **_accepted(filter_)},
        "example": filter_.kind.example,
    }


def _accepted(filter_: Filter) -> Json:
    if filter_.kind.choices:
        return {"enum": list(filter_.kind.choices)}
    if filter_.kind.pattern:
        return {"pattern": filter_.kind.pattern}
    pattern = {Match.EQUAL: _PRINTABLE, Match.WORDS: _WORDY, Match.SEARCH: f"^$|{_WORDY}"}[filter_.match]
    return {"minLength": 0 if filter_.may_be_empty else 1, "maxLength": query.MOST_CHARACTERS, "pattern": pattern}


def _ignored(name: str) -> Json:
    return {
        "name": name,
        "in": "query",
        "description": "Aceito e ignorado; o tamanho da página é rows.",
        "deprecated": True,
        "schema": {"type": "string", "minLength": 1, "maxLength": query.MOST_CHARACTERS, "pattern": _PRINTABLE},
        "example": "25",
    }


_PRINTABLE: Final = r"^[^\x00-\x1f\x7f-\x9f]+$"
# Letters of other scripts are accepted too; no pattern says so that both Python and ECMAScript can read.
_WORDY: Final = r"^[^\x00-\x1f\x7f-\x9f]*[0-9A-Za-zÀ-ÖØ-öø-ɏ][^\x00-\x1f\x7f-\x9f]*$"
