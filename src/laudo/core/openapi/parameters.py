"""The parameters of the document; their schemas accept what the service does, as far as a schema can say so."""

from functools import cache
from typing import Any, Final

from laudo.core import query
from laudo.core.resources import NEWEST, Filter, Match, Resource
from laudo.core.values import fold

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


def of_list(resource: Resource, *, max_rows: int) -> list[Json]:
    """Describe every query parameter that a list accepts."""
    return [
        *(_page(), _rows(max_rows), _sort(resource), _cursor()),
        *(_filter(filter_) for filter_ in resource.filters),
        *(_ignored(name) for name in query.IGNORED),
    ]


def _page() -> Json:
    """Describe `page`, without a default: a generated client would send that with a cursor too, which is refused."""
    return {
        "name": "page",
        "in": "query",
        "description": (
            "Número da página; sem ele e sem cursor, a primeira. Não se envia junto com cursor. "
            "Além do fim: itens vazio e o total verdadeiro."
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
    sorts = [f"{sign}{field.name}" for field in resource.fields for sign in ("", "-")]
    return {
        "name": "sort",
        "in": "query",
        "description": f"Campo de ordenação; - para decrescente. Empates por {resource.key}; nulos ao fim.",
        "schema": {"type": "string", "enum": sorts, "default": f"-{NEWEST}"},
        "example": f"-{NEWEST}",
    }


def _cursor() -> Json:
    """Describe `cursor`, without an example: none is one that the service has issued to who reads it."""
    return {
        "name": "cursor",
        "in": "query",
        "description": (
            "O que o cabeçalho Link informou em rel=next, no lugar de page: percorre a lista sem faltas nem repetições "
            "enquanto os dados mudam. Vale para o mesmo token, os mesmos filtros e a mesma ordem."
        ),
        "schema": {"type": "string", "minLength": 1, "maxLength": query.MOST_CURSOR_CHARACTERS},
    }


def _filter(filter_: Filter) -> Json:
    return {
        "name": filter_.name,
        "in": "query",
        "description": f"{filter_.description} Aceita {filter_.kind.accepts}.",
        "schema": _accepted(filter_),
        "example": filter_.kind.example,
    }


def _accepted(filter_: Filter) -> Json:
    if choices := filter_.kind.choices:
        # Each says its type: generators of clients take an alternative without one for anything at all.
        return {"anyOf": [_text(enum=list(choices)), _text(pattern=_spellings(choices))]}
    if filter_.kind.pattern:
        return _text(pattern=filter_.kind.pattern)
    pattern = {Match.EQUAL: _PRINTABLE, Match.WORDS: _WORDY, Match.SEARCH: f"^$|{_WORDY}"}[filter_.match]
    return _text(minLength=0 if filter_.may_be_empty else 1, maxLength=query.MOST_CHARACTERS, pattern=pattern)


def _text(**limits: Any) -> Json:  # noqa: ANN401 - keywords of JSON Schema
    return {"type": "string", **limits}


def _spellings(choices: tuple[str, ...]) -> str:
    """Write a pattern of these in any case and with any accents, as far as each letter is one character of Latin-1."""
    return f"^({'|'.join(''.join(_letters(folded) for folded in fold(choice)) for choice in choices)})$"


@cache
def _letters(folded: str) -> str:
    alike = "".join(letter for letter in _LETTERS if fold(letter) == folded)
    return f"[{alike}]" if alike else folded


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
_LETTERS: Final = "".join(map(chr, (*range(0x41, 0x5B), *range(0x61, 0x7B), *range(0xC0, 0x100))))
_WORD: Final = (
    r"0-9A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02c1\u1e00-\u1eff"  # Latin
    r"\u0391-\u03a1\u03a3-\u03f5\u0400-\u0481\u048a-\u052f"  # Greek, Cyrillic
    r"\u0531-\u0556\u0561-\u0587\u10d0-\u10fa\u05d0-\u05ea\u0620-\u064a\u0671-\u06d3"  # Armenian to Arabic
    r"\u0904-\u0939\u0e01-\u0e30\u3041-\u3096\u30a1-\u30fa"  # Devanagari, Thai, Japanese
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"  # Chinese, Korean
)
"""Letters and digits of the scripts that most people write: no class for all is read by Python and ECMAScript alike."""
_WORDY: Final = rf"^[^\x00-\x1f\x7f-\x9f]*[{_WORD}][^\x00-\x1f\x7f-\x9f]*$"
