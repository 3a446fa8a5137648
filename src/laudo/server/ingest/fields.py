"""The only place that decides which values of a report an import accepts."""

import re
from collections.abc import Callable
from datetime import date
from typing import Final, Literal, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from laudo.core import disclosure, documents, values
from laudo.core.likeness import suggestion

TipoPessoa = Literal["Pessoa", "Empresa"]
Resultado = Literal["VALID", "INVALID"]


@disclosure.only("numero")
class Relatorio(msgspec.Struct, frozen=True, gc=False):
    """One report, every value in the form in which it is stored.

    `numero` is a UUID in lower case, `atualizado_em` UTC milliseconds since 1970, `numero_documento` 11 digits or
    14 characters, and `nome_pessoa` may be empty for an Empresa only. Its `repr` shows nothing personal.
    """

    numero: str
    status: str
    tipo_pessoa: TipoPessoa
    nome: str
    atualizado_em: int
    resultado: Resultado | None
    mensagem: str
    pendente_validacao_manual: bool
    numero_documento: str
    nome_pessoa: str


@disclosure.nothing
class Draft(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A report as a line spells it; UNSET stands for a field that is not there. Its `repr` shows nothing."""

    numero: str
    status: str
    tipo_pessoa: str
    nome: str
    atualizado_em: str
    numero_documento: str
    resultado: str | UnsetType | None = UNSET
    mensagem: str | UnsetType | None = UNSET
    pendente_validacao_manual: bool | str | UnsetType | None = UNSET
    nome_pessoa: str | UnsetType | None = UNSET


class FaultError(Exception):
    """A line is not a report; the text says why in English, and never what the line holds."""


def accept(draft: Draft, *, verify: bool) -> Relatorio:
    """Make a Relatorio from a draft; raises FaultError, which names the first wrong field and what it accepts.

    With `verify`, the check digits of `numero_documento` must be right; without, only its form.
    """
    tipo_pessoa = _TIPOS[draft.tipo_pessoa]
    least = 1 if tipo_pessoa == values.PESSOA else 0
    return Relatorio(
        _numero(draft.numero),
        _STATUS[draft.status],
        tipo_pessoa,
        _text("nome", draft.nome, 1, 200),
        _instant(draft.atualizado_em),
        _RESULTADOS[draft.resultado] if isinstance(draft.resultado, str) else None,
        _text("mensagem", draft.mensagem or "", 0, 500),
        _pendente(draft.pendente_validacao_manual),
        _documento(draft.numero_documento, tipo_pessoa, verify=verify),
        _text("nome_pessoa", draft.nome_pessoa or "", least, 200),
    )


def fault(name: str, problem: str) -> FaultError:
    """Make the refusal of one field: its name, what is wrong, and what is accepted."""
    return FaultError(f"{name} {problem}; accepted: {ACCEPTED[name]}")


def nearest(name: str) -> str:
    """Suggest the accepted name that is nearest to a wrong one, without repeating that."""
    found = suggestion(name, ACCEPTED)
    return f"nearest accepted name: {found}" if found else f"accepted: {', '.join(ACCEPTED)}"


def _numero(text: str) -> str:
    if not _UUID(text):
        raise fault("numero", _NOT_ACCEPTED)
    return text.lower()


def _text(name: str, text: str, least: int, most: int) -> str:
    if least <= len(text) <= most and text.isprintable():
        return text
    if not text:
        raise fault(name, "is missing or empty")
    if len(text) > most:
        raise fault(name, "is too long")
    if found := values.unwritable(text):
        half = "\ud800" <= found[0] <= "\udfff"
        raise fault(name, "holds half of a surrogate pair" if half else "holds a control character")
    return text


def _instant(text: str) -> int:
    try:
        return _DAYS[text[:11]] + _MINUTES[text[11:17]] + _SECONDS[text[17:20]] + _MILLISECONDS[text[20:]]
    except KeyError:
        return _unusual_instant(text)


def _unusual_instant(text: str) -> int:
    try:
        milliseconds = values.parse_instant(text)
    except ValueError:
        raise fault("atualizado_em", _NOT_ACCEPTED) from None
    if milliseconds < 0:
        raise fault("atualizado_em", _NOT_ACCEPTED)
    return milliseconds


def _pendente(value: bool | str | UnsetType | None) -> bool:  # noqa: FBT001 - it is what the line says
    if isinstance(value, str):
        return _BOOLEANS[value]
    return value is True


def _documento(text: str, tipo_pessoa: TipoPessoa, *, verify: bool) -> str:
    if documents.is_cpf(text) if tipo_pessoa == values.PESSOA else documents.is_cnpj(text):
        return text
    matches, is_valid = _FORMS[tipo_pessoa]
    form = text.upper() if text.isascii() else text
    if not matches(form):
        masked = form.isascii() and matches(_MASK("", form))
        raise fault("numero_documento", "has a mask" if masked else f"is not accepted for {tipo_pessoa}")
    if verify and not is_valid(form):
        raise fault("numero_documento", "has wrong check digits")
    return form


_Value = TypeVar("_Value")


class _Parsed(dict[str, _Value]):
    """A cache of parsed texts, limited in number and length; a text that is refused is never kept."""

    __slots__ = ("_name", "_parse")

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self._name = name
        self._parse = parse

    def __missing__(self, text: str) -> _Value:
        if len(text) > _LONGEST_ENUMERATED:
            raise fault(self._name, _NOT_ACCEPTED)
        try:
            value = cast("_Value", self._parse(text))
        except ValueError:
            raise fault(self._name, _NOT_ACCEPTED) from None
        if len(self) < _MOST_KEPT:
            self[text] = value
        return value


class _Days(dict[str, int]):
    """`2026-01-31T` → the first millisecond of that day."""

    __slots__ = ()

    def __missing__(self, text: str) -> int:
        if not _DAY(text):
            raise KeyError
        try:
            days = (date.fromisoformat(text[:10]) - _EPOCH).days
        except ValueError:
            raise KeyError from None
        if days < 0:
            raise KeyError
        if len(self) < _MOST_KEPT:
            self[text] = days * values.DAY
        return days * values.DAY


ACCEPTED: Final = {
    "numero": values.UUID.english,
    "status": values.STATUS.english,
    "tipo_pessoa": values.TIPO_PESSOA.english,
    "nome": "1 to 200 characters, no control characters",
    "atualizado_em": "an ISO 8601 instant with Z or offset, such as 2026-01-31T12:00:00.000Z, from 1970 to 9999",
    "resultado": f"{', '.join(values.RESULTADO.choices)} or null (in a CSV an empty cell)",
    "mensagem": "up to 500 characters, no control characters",
    "pendente_validacao_manual": values.BOOLEAN.english,
    "numero_documento": "11 digits (CPF) for Pessoa, 14 characters (CNPJ) for Empresa, valid and without mask",
    "nome_pessoa": "1 to 200 characters (for Empresa it may be empty), no control characters",
}
"""What each field of a line accepts, in the order of the wire."""

OPTIONAL: Final = ("resultado", "mensagem", "pendente_validacao_manual", "nome_pessoa")
"""The fields that a line may lack; `nome_pessoa` only for an Empresa."""

NOT_UTF8: Final = "not valid UTF-8; accepted: UTF-8, which Excel calls CSV UTF-8"
_NOT_ACCEPTED: Final = "is not accepted"
_MOST_KEPT: Final = 4096
_LONGEST_ENUMERATED: Final = 200
_EPOCH: Final = date(1970, 1, 1)

_UUID: Final = re.compile(cast("str", values.UUID.pattern)).fullmatch
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\dT", re.ASCII).fullmatch
_MASK: Final = re.compile("[-./ ]").sub
_FORMS: Final = {
    values.PESSOA: (re.compile("[0-9]{11}").fullmatch, documents.is_cpf),
    values.EMPRESA: (re.compile("[0-9A-Z]{12}[0-9]{2}").fullmatch, documents.is_cnpj),
}

_STATUS: Final = _Parsed[str]("status", values.STATUS.parse)
_TIPOS: Final = _Parsed[TipoPessoa]("tipo_pessoa", values.TIPO_PESSOA.parse)
_RESULTADOS: Final = _Parsed[Resultado]("resultado", values.RESULTADO.parse)
_BOOLEANS: Final = _Parsed[bool]("pendente_validacao_manual", values.BOOLEAN.parse)
# To parse an instant as the API writes it takes four lookups, which also check its form.
_DAYS: Final = _Days()
_MINUTES: Final = {text: minute * 60_000 for minute, text in enumerate(values.MINUTES)}
_SECONDS: Final = {text: second * 1000 for second, text in enumerate(values.SECONDS)}
_MILLISECONDS: Final = {text: millisecond for millisecond, text in enumerate(values.MILLISECONDS)}
