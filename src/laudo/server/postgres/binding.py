"""Values -> what PostgreSQL's protocol carries: numbered placeholders, and parameters of few types, in binary form."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from struct import Struct
from types import NoneType
from typing import Any, Final, NamedTuple

from laudo.core import disclosure
from laudo.server.database import Row

Kind = type | tuple[type]
"""The type of a parameter; for an array, the type of its members in a tuple."""
Encode = Callable[[Any], bytes | None]


@disclosure.only("types", "formats")
class Bound(NamedTuple):
    """Parameters as they are sent; the same statement with the same types is prepared once."""

    types: tuple[int, ...]
    values: list[bytes | None]
    formats: list[int]


@lru_cache(maxsize=4096)
def numbered(text: str) -> bytes:
    """Write a statement's placeholders, `?` in turn or `?N` by number, as PostgreSQL wants them."""
    largest = 0

    def number(mark: re.Match[str]) -> str:
        nonlocal largest
        position = int(mark[1]) if mark[1] else largest + 1
        largest = max(largest, position)
        return f"${position}"

    return _PLACEHOLDER.sub(number, text).encode()


def bound(params: Sequence[Any]) -> Bound:
    """Bind parameters: every number is a bigint, so that a statement has one form however large they are.

    Raises ValueError for a text that PostgreSQL cannot store, TypeError for a value that no column has.
    """
    kinds: tuple[Kind, ...] = tuple(map(type, params))
    if list in kinds:
        kinds = tuple(map(_kind, params))
    types, encodings, formats = _form(kinds)
    return Bound(types, [encode(param) for encode, param in zip(encodings, params, strict=True)], formats)


def columns(rows: Iterable[Row]) -> tuple[Any, ...]:
    """Give the parameters that write many rows at once: the organization, which all share, then a list per column."""
    first, *others = zip(*rows, strict=True)
    return (first[0], *map(list, others))


def _kind(param: Any) -> Kind:  # noqa: ANN401 - any value of a column
    if type(param) is not list:
        return type(param)
    return (next((type(member) for member in param if member is not None), NoneType),)


@lru_cache(maxsize=4096)
def _form(kinds: tuple[Kind, ...]) -> tuple[tuple[int, ...], list[Encode], list[int]]:
    """Give the types of parameters, how each is encoded, and the formats of the encoded ones."""
    if unknown := [kind for kind in kinds if kind not in _FORMS]:
        raise TypeError(f"no column has values of {unknown[0]}")
    types, encodings = zip(*(_FORMS[kind] for kind in kinds), strict=True) if kinds else ((), ())
    return types, list(encodings), [_TEXTUAL if each == _INFERRED else _BINARY for each in types]


def _null(_value: None) -> None:
    pass


def _nulls(members: list[None]) -> bytes:
    return f"{{{','.join(['NULL'] * len(members))}}}".encode()


def _numbers(members: list[int | None]) -> bytes:
    parts = [_array_head(1, None in members, _BIGINT, len(members), 1)]
    parts += [_NULL if member is None else _number_in_array(8, member) for member in members]
    return b"".join(parts)


def _texts(members: list[str | None]) -> bytes:
    return _array(_TEXT, [None if member is None else _text(member) for member in members])


def _array(kind: int, members: list[bytes | None]) -> bytes:
    """Write an array, in the form that `array_recv` in PostgreSQL's arrayfuncs.c reads."""
    parts = [_array_head(1, None in members, kind, len(members), 1)]
    for member in members:
        parts += (_NULL,) if member is None else (_length(len(member)), member)
    return b"".join(parts)


def _text(value: str) -> bytes:
    if "\0" in value:
        raise ValueError("PostgreSQL cannot store a text with a NUL character")
    return value.encode()


_PLACEHOLDER: Final = re.compile(r"\?(\d*)")
_TEXTUAL: Final = 0
_BINARY: Final = 1

# Numbers of types, fixed in every PostgreSQL (its catalog pg_type.dat).
_INFERRED: Final = 0  # a null, or an array without other members: it gets the type that the statement needs
_BYTEA: Final = 17
_BIGINT: Final = 20
_TEXT: Final = 25
_BYTEAS: Final = 1001
_TEXTS: Final = 1009
_BIGINTS: Final = 1016
_NULL: Final = b"\xff\xff\xff\xff"
_length: Final = Struct(">i").pack
_number: Final = Struct(">q").pack
_number_in_array: Final = Struct(">iq").pack
_array_head: Final = Struct(">iiiii").pack
_FORMS: Final[dict[Kind, tuple[int, Encode]]] = {
    NoneType: (_INFERRED, _null),
    int: (_BIGINT, _number),
    bool: (_BIGINT, _number),
    str: (_TEXT, _text),
    bytes: (_BYTEA, bytes),
    (NoneType,): (_INFERRED, _nulls),
    (int,): (_BIGINTS, _numbers),
    (bool,): (_BIGINTS, _numbers),
    (str,): (_TEXTS, _texts),
    (bytes,): (_BYTEAS, partial(_array, _BYTEA)),
}
