"""The memory that a worker uses for an account's facets is bounded for any requests."""

import random
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import product
from urllib.parse import quote

import pytest

from laudo.core import query
from laudo.core.facets import Facet, Facets
from laudo.core.resources import RELATORIOS

NOMES = 60
STATUS = ("CONCLUIDO", "PENDENTE", "PROCESSANDO")


def invented(number: int) -> Iterator[Facet]:
    """Return a number of facets as a store returns them, each with text objects of its own."""
    chosen = random.Random(number)
    for each in range(number):
        status, tipo_pessoa = chosen.choice(STATUS).encode().decode(), chosen.choice((b"Pessoa", b"Empresa")).decode()
        yield each, 1, status, tipo_pessoa, f"consulta {each % NOMES:03}", chosen.choice(("VALID", None)), each % 2


def narrow() -> Iterator[str]:
    """Yield queries that match few facets or none."""
    for sort, status, nome in product(("tipo_pessoa", "-nome"), STATUS, range(NOMES)):
        for unknown in ("", quote("𝒳" * 180)):
            yield f"sort={sort}&status={status}&nome=consulta%20{nome:03}{unknown}"


def wide() -> Iterator[str]:
    """Yield queries that match many facets."""
    filters = product(
        ("", *(f"&status={status}" for status in STATUS)),
        ("", "&tipo_pessoa=PESSOA", "&tipo_pessoa=EMPRESA"),
        ("", "&resultado=VALID"),
        ("", "&pendente_validacao_manual=true", "&pendente_validacao_manual=false"),
    )
    for each, field, sign in product(filters, RELATORIOS.facet_fields, ("", "-")):
        yield f"sort={sign}{field}{''.join(each)}"


def peak_memory(facets: Facets, asked: Iterator[str]) -> int:
    """Ask for the groups of all these queries; returns the peak of allocated bytes."""
    # Without the cache of `parse`, which a worker has only once for all accounts.
    parse, most = query.parse.__wrapped__, 0
    for each in asked:
        facets.groups(parse(RELATORIOS, each, max_rows=25))
        most = max(most, tracemalloc.get_traced_memory()[0])
    return most


@pytest.mark.parametrize(("number", "asked"), [(1, narrow), (30, narrow), (1_000, narrow), (1_000, wide)])
def test_facets_use_no_more_memory_than_their_weight(number: int, asked: Callable[[], Iterator[str]]) -> None:
    peak_memory(Facets(invented(number)), asked())
    tracemalloc.start()
    try:
        facets = Facets(invented(number))
        assert 0 < peak_memory(facets, asked()) < facets.weight
    finally:
        tracemalloc.stop()
