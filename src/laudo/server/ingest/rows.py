"""Reports as rows of the store: what is made of one before any store is asked, and what then is missing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, Final

from laudo.core import response
from laudo.core.axes import numero_key
from laudo.core.facets import FIELDS
from laudo.core.sql import Owner
from laudo.core.sql.writes import RELATORIO
from laudo.server.database import Row
from laudo.server.ingest.records import Relatorio

BESIDES: Final = ("facet", "recency", "numero_documento", "nome_pessoa", "mensagem", "item")
"""What a row has besides its key."""
COLUMNS: Final = (*RELATORIO.key, *BESIDES)
_, _, NUMERO, _, RECENCY, DOCUMENTO, NOME, _, ITEM = range(len(COLUMNS))
CONTENT: Final = COLUMNS[:ITEM]
"""What tells one state of a report from another one: the item is made of it."""

Combination = tuple[str | bool | None, ...]
"""A facet, by what its reports have in common."""
Prepared = tuple[bytes, Combination, int, str, str, str, str]
"""The last columns of a row, with a combination in the place of the facet's number, which only a writer knows."""


def prepared(relatorio: Relatorio) -> Prepared:
    """Make of a report what can be made without a store."""
    return (
        numero_key(relatorio.numero),
        _combination(relatorio),
        -relatorio.atualizado_em,
        relatorio.numero_documento,
        relatorio.nome_pessoa,
        relatorio.mensagem,
        response.relatorio(relatorio),
    )


def whole(batch: Sequence[Prepared], owner: Owner, number: Callable[[Combination], int]) -> Iterator[Row]:
    """Make rows whole, with their owner and the numbers of facets."""
    if not batch:
        return iter(())
    numeros, combinations, *others = zip(*batch, strict=True)
    return zip(*map(repeat, owner), numeros, map(number, combinations), *others, strict=False)


def columns(rows: Iterable[Row]) -> dict[str, tuple[Any, ...]]:
    """Give rows' columns by name, nothing where there is no row; theirs may lack the item."""
    return dict(zip(COLUMNS, zip(*rows, strict=True), strict=False))


_combination: Final = attrgetter(*FIELDS)
