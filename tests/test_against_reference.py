"""Compares the service's answers with the reference's, byte for byte, over generated stores and queries."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engines import Stores
from factories import relatorio
from reference import Api
from strategies import (
    NUMEROS,
    SEEDS,
    History,
    any_query,
    any_relatorio,
    histories,
)
from world import LISTS, List, World, world

NewStoreUrl = Callable[[], str]

STORES: Final = 130
QUERIES: Final = 25
PHASES: Final = (Phase.explicit, Phase.reuse, Phase.generate)
"""Without Phase.shrink, which takes five minutes here. Add it if the failing query alone does not explain a failure."""

LEAST_PAIRS: Final = 2_000
"""How many queries each of the two lists must get, so that nobody lowers the numbers above unnoticed."""


@pytest.mark.parametrize(("resource", "values", "sorts"), LISTS, ids=["relatorios", "pessoas"])
def test_answers_equal_the_reference_for_generated_stores_and_queries(
    stores: Stores,
    key_file: Path,
    resource: List,
    values: dict[str, tuple[str, ...]],
    sorts: tuple[str, ...],
) -> None:
    answered = Counter[str]()

    @settings(max_examples=STORES, phases=PHASES, suppress_health_check=list(HealthCheck))
    @given(history=histories(), seed=SEEDS)
    def compare(history: History, seed: int) -> None:
        seeded = random.Random(seed)
        with stores.passing() as url, world(url, key_file, history) as made:
            for _ in range(QUERIES):
                account = seeded.randrange(len(made.accounts))
                question = any_query(seeded, values, sorts, refused=1 / 8)
                answered[made.compare(resource, account, question)] += 1

    compare()
    assert answered.total() >= LEAST_PAIRS, answered
    assert answered["items"] >= LEAST_PAIRS / 5, answered
    assert answered["refused"] >= LEAST_PAIRS / 50, answered


@pytest.fixture
def large(new_store_url: NewStoreUrl, key_file: Path) -> Iterator[World]:
    """One store in which each account has several pages."""
    seeded = random.Random(2)
    batches = tuple(
        (account, tuple(any_relatorio(seeded, number) for number in seeded.sample(range(400), 180)))
        for account in (0, 1, 2)
    )
    with world(new_store_url(), key_file, History((2, 1), batches)) as made:
        yield made


def test_every_page_of_every_sort_equals_the_reference(large: World) -> None:
    answers = Counter(
        large.compare(resource, account, f"sort={sort}&page={page}&rows={rows}")
        for resource, _, sorts in LISTS
        for sort, page, rows, account in product(sorts, (1, 2, 5, 8, 99), (25, 100), (0, 2))
    )
    assert answers["items"] > answers["nothing"] > answers["refused"] == 0


def test_answers_do_not_depend_on_the_order_or_batches_of_writes(stores: Stores, key_file: Path) -> None:
    @settings(max_examples=15, phases=PHASES, suppress_health_check=list(HealthCheck))
    @given(history=histories(), seed=st.integers(0, 1000))
    def compare(history: History, seed: int) -> None:
        with (
            stores.passing() as url_of_one,
            stores.passing() as url_of_other,
            world(url_of_one, key_file, history) as one,
            world(url_of_other, key_file, _shuffled(history, seed)) as other,
        ):
            for resource, account in product(("relatorios", "pessoas"), range(len(one.accounts))):
                url = f"/{resource}?rows=1000"
                assert one.clients[account].get(url).body == other.clients[account].get(url).body

    compare()


def _shuffled(history: History, seed: int) -> History:
    seeded = random.Random(seed)
    records = [(account, relatorio) for account, batch in history.batches for relatorio in batch]
    seeded.shuffle(records)
    return History(history.organizations, tuple((account, (record,)) for account, record in records))


def test_the_reference_includes_an_end_date_and_excludes_an_end_instant() -> None:
    days = [msgspec.structs.asdict(relatorio(number, atualizado_em=number * 86_400_000)) for number in range(4)]
    api = Api(reports=[(1, day) for day in days], accounts={1: 1})
    asked = "atualizado_em_de=1970-01-02&atualizado_em_ate=1970-01-03&sort=atualizado_em"
    assert [item["numero"] for item in api.listing("relatorios", 1, asked).items] == [NUMEROS[1], NUMEROS[2]]
    assert len(api.listing("relatorios", 1, "atualizado_em_ate=1970-01-03T00:00:00Z").items) == 2
