"""The only place that reads the JSON of an import: one line, one object, one draft of a report."""

import json
import re
from typing import Final, NoReturn

import msgspec
from msgspec import UnsetType

from laudo.server.ingest.fields import ACCEPTED, NOT_UTF8, OPTIONAL, Draft, FaultError, fault, nearest


def parse(line: bytes) -> Draft | None:
    """Give the draft of a line, None if it is blank; raises FaultError unless it is one object with known fields."""
    try:
        draft = _decode(line)
    except ValueError:
        return parse_strictly(line) if line.strip() else None
    # msgspec silently keeps the last of two equal keys. Each key and each text has two quotes, so a line with a
    # repeated key or an escaped quote has more quotes than its fields need.
    return draft if line.count(b'"') == _quotes(draft) else parse_strictly(line)


def parse_strictly(line: bytes) -> Draft:
    """Do what `parse` does, six times slower, key by key: it is the reference, and finds the reason of a fault."""
    fields: dict[str, object] = {}
    for position, (name, value) in enumerate(_pairs(line), 1):
        if name not in ACCEPTED:
            raise FaultError(f"unknown field at position {position}; {nearest(name)}")
        if name in fields:
            raise FaultError(f"{name} appears twice")
        fields[name] = value
    for name in ACCEPTED:
        if name not in fields and name not in OPTIONAL:
            raise fault(name, "is missing")
        if name in fields and not isinstance(fields[name], _types(name)):
            raise fault(name, "has the wrong type")
    return msgspec.convert(fields, Draft)


def _types(name: str) -> tuple[type, ...]:
    if name not in OPTIONAL:
        return (str,)
    return (bool, str, type(None)) if name == "pendente_validacao_manual" else (str, type(None))


_MOST_BRACKETS: Final = 64
"""Brackets that a line may open outside its texts: how deep Python's parser can go is not defined."""
_TEXTS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL).sub
"""Removes texts, even one that is never closed: searching again from each of its quotes would take minutes."""
_OPENING: Final = re.compile(rb"[\[{]").findall


class _Pairs(list[tuple[str, object]]):
    """The keys and values of an object in the order of the line, repeated keys too."""

    __slots__ = ()


def _pairs(line: bytes) -> _Pairs:
    if len(_OPENING(_TEXTS(b"", line))) > _MOST_BRACKETS:
        raise FaultError("nested too deeply; accepted: one object of texts and booleans")
    try:
        value = _decode_strictly(line.decode())
    except UnicodeDecodeError:
        raise FaultError(NOT_UTF8) from None
    except json.JSONDecodeError as error:
        raise FaultError(f"not valid JSON at character {error.colno}; accepted: one whole object per line") from None
    if not isinstance(value, _Pairs):
        raise FaultError("not a JSON object")
    return value


def _refuse_constant(_: str) -> NoReturn:
    raise FaultError("not valid JSON: NaN and Infinity are not JSON values")


def _as_zero(_: str) -> float:
    return 0.0


def _quotes(draft: Draft) -> int:
    return _QUOTES_REQUIRED + (
        _QUOTES[draft.resultado.__class__]
        + _QUOTES[draft.mensagem.__class__]
        + _QUOTES[draft.pendente_validacao_manual.__class__]
        + _QUOTES[draft.nome_pessoa.__class__]
    )


_QUOTES_REQUIRED: Final = 4 * (len(ACCEPTED) - len(OPTIONAL))
_QUOTES: Final[dict[type, int]] = {UnsetType: 0, type(None): 2, bool: 2, str: 4}
_decode: Final = msgspec.json.Decoder(Draft).decode
_decode_strictly: Final = json.JSONDecoder(
    object_pairs_hook=_Pairs, parse_constant=_refuse_constant, parse_int=_as_zero, parse_float=_as_zero
).decode
