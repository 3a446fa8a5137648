"""What a worker remembers of an account's facets is bounded, whatever is asked."""

import random
import tracemalloc
from collections.abc import Iterator
from itertools import product
from urllib.parse import quote

import pytest

from laudo.core import query
from laudo.core.facets import Facet, Facets
from laudo.core.resources import RELATORIOS

NOMES = 60
STATUS = ("CONCLUIDO", "PENDENTE", "PROCESSANDO")


def invented(number: int) -> Iterator[Facet]:
    """Give so many facets, each with texts of its own, as a store gives them."""
    chosen = random.Random(number)
    for each in range(number):
        status, tipo_pessoa = chosen.choice(STATUS).encode().decode(), chosen.choice((b"Pessoa", b"Empresa")).decode()
        yield each, 1, status, tipo_pessoa, f"consulta {each % NOMES:03}", chosen.choice(("VALID", None)), each % 2


def most_held(facets: Facets) -> int:
    """Ask for thousands of groups, and give the bytes that were held at most."""
    # It remembers the questions itself, which a worker does for all accounts together.
    parse, most = query.parse.__wrapped__, 0
    for sort, status, nome in product(("tipo_pessoa", "-nome"), STATUS, range(NOMES)):
        for unknown in ("", quote("𝒳" * 180)):
            asked = f"sort={sort}&status={status}&nome=consulta%20{nome:03}{unknown}"
            facets.groups(parse(RELATORIOS, asked, max_rows=25))
        most = max(most, tracemalloc.get_traced_memory()[0])
    return most


@pytest.mark.parametrize("number", [1, 30, 1_000])
def test_facets_take_up_no_more_than_they_say_whatever_is_asked(number: int) -> None:
    most_held(Facets(invented(number)))
    tracemalloc.start()
    try:
        facets = Facets(invented(number))
        assert 0 < most_held(facets) < facets.weight
    finally:
        tracemalloc.stop()
