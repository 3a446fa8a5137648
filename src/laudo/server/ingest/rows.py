"""Reports as rows of the store: what is made of one without the store, and what a writer adds."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any, Final

from laudo.core import response
from laudo.core.axes import numero_key
from laudo.core.facets import FIELDS
from laudo.core.sql import How, Owner, Write
from laudo.core.sql.writes import RELATORIO
from laudo.server.database import Row
from laudo.server.ingest import claims
from laudo.server.ingest.claims import Claims
from laudo.server.ingest.records import Relatorio

ALL_BUT_KEY: Final = ("facet", "recency", "numero_documento", "nome_pessoa", "mensagem", "item")
"""The columns besides the key."""
COLUMNS: Final = (*RELATORIO.key, *ALL_BUT_KEY)
_, _, NUMERO, _, RECENCY, DOCUMENTO, NOME, _, ITEM = range(len(COLUMNS))
CONTENT: Final = COLUMNS[:ITEM]
"""The columns that tell one state of a report from another; the item is made from them."""
UPSERT: Final = Write(How.UPSERT, RELATORIO, ALL_BUT_KEY)
DELETE: Final = Write(How.DELETE, RELATORIO)

Combination = tuple[str | bool | None, ...]
"""A facet, as the values that its reports have in common."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch of reports, prepared without the store: the columns but the owner's, and what they say of persons.

    In place of the numbers of facets, which only a writer knows, there are combinations.
    """

    columns: tuple[Sequence[Any], ...] = field(repr=False)
    claims: Claims = field(repr=False)

    def __len__(self) -> int:
        return len(self.numeros)

    @property
    def numeros(self) -> Sequence[bytes]:
        """The keys of the reports."""
        return self.columns[0]


def prepared(reports: Iterable[Relatorio]) -> Prepared:
    """Prepare a batch as far as that is possible without the store.

    The reports are sorted by numero, those with the same one in the order given: so SQLite inserts them in four
    fifths of the time.
    """
    rows = sorted(map(_row, reports), key=itemgetter(0))
    columns = tuple(zip(*rows, strict=True)) or ((),) * len(COLUMNS[NUMERO:])
    _, _, recencies, documentos, nomes, *_ = columns
    return Prepared(columns, claims.claims(zip(documentos, recencies, nomes, strict=True)))


def complete(batch: Prepared, owner: Owner, number: Callable[[Combination], int]) -> Iterator[Row]:
    """Give complete rows, with the owner and the numbers of facets."""
    numeros, combinations, *rest = batch.columns
    return zip(*map(repeat, owner), numeros, map(number, combinations), *rest, strict=False)


def to_claims(rows: Iterable[Row]) -> Claims:
    """Give what complete rows say of persons."""
    return claims.claims((row[DOCUMENTO], row[RECENCY], row[NOME]) for row in rows)


def columns(rows: Iterable[Row]) -> dict[str, tuple[Any, ...]]:
    """Give the columns of rows by name, none if there is no row; the item may be missing."""
    return dict(zip(COLUMNS, zip(*rows, strict=True), strict=False))


def _row(relatorio: Relatorio) -> Row:
    return (
        numero_key(relatorio.numero),
        _combination(relatorio),
        -relatorio.atualizado_em,
        relatorio.numero_documento,
        relatorio.nome_pessoa,
        relatorio.mensagem,
        response.relatorio(relatorio),
    )


_combination: Final = attrgetter(*FIELDS)
