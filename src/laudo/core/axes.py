"""The axes: the orders in which a list can be paged at a cost that does not grow, and the keys of their rows."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

from laudo.core import disclosure
from laudo.core.values import parse_instant, words

T = TypeVar("T")

Key = tuple[Any, ...]
"""Where a row stands on an axis: the values of the axis' columns."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an axis.

    `stored` turns what an item shows into what the column holds. `encode` turns that into bytes that sort as the values
    do, and `decode` turns them back. `width` is how many bytes `encode` gives, None if that varies.
    """

    name: str
    stored: Callable[[Any], Any]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    width: int | None


@dataclass(frozen=True, slots=True)
class Tie(Column):
    """The last column of an axis, which makes its keys unique.

    `past` gives a value above the given one and below every higher one that can occur. `least` is below all values that
    can occur, and `most` above all of them.
    """

    past: Callable[[Any], Any]
    least: Any
    most: Any


@dataclass(frozen=True, eq=False)
class Axis:
    """One order of a table: ascending in all its columns, the last of which makes it unique.

    `number` names the axis in the tally. `falls` says that the field that clients know falls where the first column
    rises; `repeats`, that any number of rows may share a value of the first column.

    `index` begins with the columns; `covers_facet`, `covers_recency` and `covers_words` say whether it also has those.
    `facet_index` begins with the facet, and also has the instant. An axis without one may have an index for `gathering`
    the rows of facets, which has all its columns, but not in its order.
    """

    number: int
    table: str
    columns: tuple[Tie] | tuple[Column, Tie]
    index: str
    facet_index: str | None = None
    gathering: str | None = None
    covers_facet: bool = True
    covers_recency: bool = False
    covers_words: bool = False
    falls: bool = False
    repeats: bool = False

    @cached_property
    def faceted(self) -> bool:
        """Whether its rows have facets and belong to an account, as reports do; persons belong to the organization."""
        return self.table == "relatorio"

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def covered(self) -> frozenset[str]:
        """The columns that its `index` has, without the facet."""
        optional = {"recency": self.covers_recency, "nome_busca": self.covers_words}
        return frozenset((*self.names, *(name for name, is_covered in optional.items() if is_covered)))

    def covers(self, other: "Axis") -> bool:
        """Tell whether its `index` or its `facet_index` has the first column of another axis."""
        return other.names[0] in self.covered or (self.facet_index is not None and other.names[0] == "recency")

    def is_covered_by(self, other: "Axis", *, by_facet: bool) -> bool:
        """Tell whether another axis' `index` has all columns of this one; `by_facet`, also its `facet_index`."""
        gathers = by_facet and self.gathering is not None and self.gathering == other.facet_index
        return gathers or other.covered.issuperset(self.names)

    def key(self, value: Any, tie: str) -> Key:  # noqa: ANN401 - any field's value
        """Give the key of the item that shows `value` in the field of the order and `tie` in its last field."""
        shown = (value, tie)[-len(self.columns) :]
        return tuple(column.stored(each) for column, each in zip(self.columns, shown, strict=True))

    def past(self, key: Key) -> Key:
        """Give the key right above a row's key, with no other row's in between."""
        return (*key[:-1], self.columns[-1].past(key[-1]))

    def floor(self, value: Any) -> Key:  # noqa: ANN401 - the first column's value
        """Give the key below every row with this first value."""
        return (value, *(column.least for column in self.columns[1:]))

    def ceiling(self, value: Any) -> Key:  # noqa: ANN401 - the first column's value
        """Give the key above every row with this first value."""
        return (value, *(column.most for column in self.columns[1:]))

    def encode(self, key: Key) -> bytes:
        """Write a key as bytes, which sort as keys do.

        A zero, which no text holds, ends a first column of varying width.
        """
        return self._separator.join([column.encode(value) for column, value in zip(self.columns, key, strict=True)])

    def encoded(self, columns: Iterable[Iterable[Any]]) -> Iterator[bytes]:
        """Write many keys as `encode` does, given column by column."""
        parts = [map(column.encode, values) for column, values in zip(self.columns, columns, strict=True)]
        return map(self._separator.join, zip(*parts, strict=True))

    @property
    def _separator(self) -> bytes:
        return b"\0" if self.columns[0].width is None else b""

    def decode(self, encoded: bytes) -> Key | None:
        """Read a key that `encode` wrote; None for the empty bytes, which sort below every key."""
        if not encoded:
            return None
        first, *rest = self.columns
        if not rest:
            return (first.decode(encoded),)
        if first.width is None:
            head, _, tail = encoded.partition(b"\0")
        else:
            head, tail = encoded[: first.width], encoded[first.width :]
        return (first.decode(head), rest[0].decode(tail))


@disclosure.only("axis")
class Bounds(NamedTuple):
    """A range of an axis: from `lower` up to, but not including, `upper`; None leaves an end open."""

    axis: Axis
    lower: Key | None
    upper: Key | None

    @property
    def complement(self) -> list["Bounds"]:
        """The ranges of the axis that it leaves out: the one before it and the one after it."""
        return [Bounds(self.axis, *ends) for ends in _outside(self.lower, self.upper)]


class Period(NamedTuple):
    """The instants, in ms, from `since` up to, but not including, `until`; None leaves an end open."""

    since: int | None
    until: int | None

    @property
    def recency(self) -> tuple[int | None, int | None]:
        """The same as bounds, lower and upper, of the column `recency`, which holds instants negated."""
        since, until = (None if end is None else 1 - end for end in self)
        return until, since

    @property
    def complement(self) -> list["Period"]:
        """The periods that it leaves out: the one before it and the one after it."""
        return [Period(*ends) for ends in _outside(self.since, self.until)]


EVER: Final = Period(None, None)


def numero_key(numero: str) -> bytes:
    """Give the 16 bytes under which a report's numero is stored; they sort as its text does."""
    return bytes.fromhex(numero.replace("-", ""))


def nome_busca(nome: str) -> str:
    """Give the text by which persons of this name are ordered and searched."""
    return " ".join(words(nome))


def _outside(lower: T | None, upper: T | None) -> list[tuple[T | None, T | None]]:
    """Give the ends of what comes before a range, and of what comes after it."""
    before: list[tuple[T | None, T | None]] = [] if lower is None else [(None, lower)]
    return before if upper is None else [*before, (upper, None)]


def _recency(shown: str) -> int:
    return -parse_instant(shown)


def _encode_number(value: int) -> bytes:
    return (value + _SIGN).to_bytes(8, "big")


def _decode_number(encoded: bytes) -> int:
    return int.from_bytes(encoded, "big") - _SIGN


def _text(name: str, stored: Callable[[str], str] = str) -> Column:
    return Column(name, stored, str.encode, bytes.decode, None)


_SIGN: Final = 1 << 63

_recency_column: Final = Column("recency", _recency, _encode_number, _decode_number, 8)
_numero: Final = Tie("numero", numero_key, bytes, bytes, 16, lambda numero: numero + b"\0", b"", b"\xff" * 17)
_documento: Final = _text("numero_documento")
_mensagem: Final = _text("mensagem")
_cpf: Final = Tie("cpf", str, str.encode, bytes.decode, None, lambda cpf: cpf + "!", "", ":")
_nome: Final = _text("nome_busca", nome_busca)

RELATORIO_RECENCY: Final = Axis(
    1,
    "relatorio",
    (_recency_column, _numero),
    "relatorio_recency",
    "relatorio_facet_recency",
    covers_recency=True,
    falls=True,
)
RELATORIO_NUMERO: Final = Axis(
    2, "relatorio", (_numero,), "relatorio_numero", "relatorio_facet_numero", covers_facet=False
)
RELATORIO_DOCUMENTO: Final = Axis(
    3,
    "relatorio",
    (_documento, _numero),
    "relatorio_documento",
    gathering="relatorio_facet_recency",
    covers_recency=True,
)
RELATORIO_MENSAGEM: Final = Axis(
    7, "relatorio", (_mensagem, _numero), "relatorio_mensagem", covers_recency=True, repeats=True
)
PESSOA_RECENCY: Final = Axis(
    4, "pessoa", (_recency_column, _cpf), "pessoa_recency", covers_recency=True, covers_words=True, falls=True
)
PESSOA_CPF: Final = Axis(5, "pessoa", (_cpf,), "pessoa_cpf_recency", covers_recency=True)
PESSOA_NOME: Final = Axis(6, "pessoa", (_nome, _cpf), "pessoa_nome", covers_recency=True, covers_words=True)

OF_RELATORIO: Final = (RELATORIO_RECENCY, RELATORIO_NUMERO, RELATORIO_DOCUMENTO, RELATORIO_MENSAGEM)
OF_PESSOA: Final = (PESSOA_RECENCY, PESSOA_CPF, PESSOA_NOME)
