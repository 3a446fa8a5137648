"""Values -> what PostgreSQL's protocol carries: numbered placeholders, and parameters of few types, in binary form."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, Final, NamedTuple

from laudo.server.database import Row


class Bound(NamedTuple):
    """Parameters as they travel; the same statement with the same types is prepared once."""

    types: tuple[int, ...]
    values: list[bytes | None]
    formats: list[int]


@lru_cache(maxsize=4096)
def numbered(text: str) -> bytes:
    """Write a statement's placeholders, `?` in turn or `?N` by number, as PostgreSQL wants them."""
    largest = 0

    def number(mark: re.Match[str]) -> str:
        nonlocal largest
        named = int(mark[1]) if mark[1] else largest + 1
        largest = max(largest, named)
        return f"${named}"

    return _PLACEHOLDER.sub(number, text).encode()


def bound(params: Sequence[Any]) -> Bound:
    """Bind parameters: every number is a bigint, so that a statement has one form however large they are.

    Raises ValueError for a text that PostgreSQL cannot store, TypeError for what is no value of a column.
    """
    types, values, formats = [], [], []
    for param in params:
        if param is None:
            kind, value = _INFERRED, None
        elif type(param) is list:
            kind, value = _array(param)
        else:
            kind, encode = _encoding(param)
            value = encode(param)
        types.append(kind)
        values.append(value)
        formats.append(_TEXTUAL if kind == _INFERRED else _BINARY)
    return Bound(tuple(types), values, formats)


def columns(rows: Iterable[Row]) -> tuple[Any, ...]:
    """Give what writes many rows at once: the organization, which all have in common, and each further column."""
    first, *others = zip(*rows, strict=True)
    return (first[0], *map(list, others))


def _array(members: list[Any]) -> tuple[int, bytes]:
    """Bind an array, in the form that `array_recv` in PostgreSQL's arrayfuncs.c reads."""
    some = next((member for member in members if member is not None), None)
    if some is None:
        return _INFERRED, f"{{{','.join(['NULL'] * len(members))}}}".encode()
    kind, encode = _encoding(some)
    parts = [_array_head(1, None in members, kind, len(members), 1)]
    if kind == _BIGINT:
        parts += [_NULL if member is None else _number_in_array(8, member) for member in members]
    else:
        for member in members:
            encoded = None if member is None else encode(member)
            parts += (_NULL,) if encoded is None else (_length(len(encoded)), encoded)
    return _ARRAYS[kind], b"".join(parts)


def _encoding(value: Any) -> tuple[int, Callable[[Any], bytes]]:  # noqa: ANN401 - any value of a column
    try:
        return _ENCODINGS[type(value)]
    except KeyError:
        raise TypeError(f"a {type(value).__name__} is no value of a column") from None


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
_ARRAYS: Final = {_BYTEA: 1001, _BIGINT: 1016, _TEXT: 1009}

_NULL: Final = b"\xff\xff\xff\xff"
_length: Final = Struct(">i").pack
_number: Final = Struct(">q").pack
_number_in_array: Final = Struct(">iq").pack
_array_head: Final = Struct(">iiiii").pack
_ENCODINGS: Final[dict[type, tuple[int, Callable[[Any], bytes]]]] = {
    int: (_BIGINT, _number),
    bool: (_BIGINT, _number),
    str: (_TEXT, _text),
    bytes: (_BYTEA, bytes),
}
