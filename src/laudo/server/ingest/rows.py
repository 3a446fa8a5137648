"""Reports as rows of the store: what is made of one before any store is asked, and what then is missing."""

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

BESIDES: Final = ("facet", "recency", "numero_documento", "nome_pessoa", "mensagem", "item")
"""What a row has besides its key."""
COLUMNS: Final = (*RELATORIO.key, *BESIDES)
_, _, NUMERO, _, RECENCY, DOCUMENTO, NOME, _, ITEM = range(len(COLUMNS))
CONTENT: Final = COLUMNS[:ITEM]
"""What tells one state of a report from another one: the item is made of it."""
UPSERT: Final = Write(How.UPSERT, RELATORIO, BESIDES)
DELETE: Final = Write(How.DELETE, RELATORIO)

Combination = tuple[str | bool | None, ...]
"""A facet, by what its reports have in common."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch of reports, as far as it needs no store: the columns but for the owner's, and what they say of persons.

    In the place of the facets' numbers, which only a writer knows, are combinations.
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
    """Make of a batch what can be made without a store.

    They go by numero, and those of one as they came: SQLite inserts them in that order in four fifths of the time.
    """
    rows = sorted(map(_row, reports), key=itemgetter(0))
    columns = tuple(zip(*rows, strict=True)) or ((),) * len(COLUMNS[NUMERO:])
    _, _, recencies, documentos, nomes, *_ = columns
    return Prepared(columns, claims.claims(zip(documentos, recencies, nomes, strict=True)))


def whole(batch: Prepared, owner: Owner, number: Callable[[Combination], int]) -> Iterator[Row]:
    """Give whole rows, with the owner and the numbers of facets."""
    numeros, combinations, *others = batch.columns
    return zip(*map(repeat, owner), numeros, map(number, combinations), *others, strict=False)


def claimed(rows: Iterable[Row]) -> Claims:
    """Give what whole rows say of persons."""
    return claims.claims((row[DOCUMENTO], row[RECENCY], row[NOME]) for row in rows)


def columns(rows: Iterable[Row]) -> dict[str, tuple[Any, ...]]:
    """Give rows' columns by name, nothing where there is no row; theirs may lack the item."""
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
