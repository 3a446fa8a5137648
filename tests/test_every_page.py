"""Every page in every order, for each filter, each pair of filters and many larger sets, on one store."""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, product
from math import inf
from typing import Final
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from engines import Engine, Stores
from factories import NOON, SMALL
from laudo.core import guesses, plan, reading, walking
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.tallies import Sizes
from strategies import (
    CNPJS,
    DATES,
    PESSOA_SORTS,
    PESSOA_VALUES,
    RELATORIO_SORTS,
    RELATORIO_VALUES,
    History,
    Values,
    many,
)
from world import List, World, Written, analyzed, opened, written

REPORTS: Final = 300
TOGETHER: Final = 40
"""How many sets of three and more filters are tried with each order."""

# Instants around the days that filters name; many are equal, and one is far from the others.
INSTANTS: Final = (0, *range(NOON - 40_000_000, NOON + 40_000_000, 10_000_000), NOON, NOON, NOON + 1)

DOCUMENTO: Final = CNPJS[0]
OF_ONE_DOCUMENT: Final = tuple(
    f"&numero_documento={DOCUMENTO}{also}"
    for also in (
        "",
        "&status=CONCLUIDO",
        "&atualizado_em_de=2026-01-31",
        "&resultado=VALID&atualizado_em_ate=2026-01-30",
    )
)


@pytest.fixture
def sizes() -> Sizes:
    return SMALL


@pytest.fixture(scope="module")
def of_sizes(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Sizes], Written]]:
    """Returns a store with buckets of these sizes and the people of two accounts; it is filled once."""
    reports = [_of_one_document(number, each) for number, each in enumerate(many(REPORTS, instants=INSTANTS))]
    folder = tmp_path_factory.mktemp("every")
    history = History((2,), ((0, tuple(reports[:290])), (1, tuple(reports[150:]))))
    with Stores(engine, folder) as stores:
        yield cache(lambda sizes: analyzed(written(stores.new(), folder / "laudo.key", history, sizes=sizes)))


@pytest.fixture
def world(of_sizes: Callable[[Sizes], Written], sizes: Sizes) -> Iterator[World]:
    with opened(of_sizes(sizes)) as made:
        yield made


def _of_one_document(number: int, report: Relatorio) -> Relatorio:
    """Give three of four companies the same document, so that its reports fill several pages."""
    is_alike = report.tipo_pessoa == "Empresa" and number % 4
    return replace(report, numero_documento=DOCUMENTO) if is_alike else report


def questions(values: Values, *, seed: int) -> Iterator[str]:
    """Yield filters: none, every value alone, two values for each pair of names, and some larger sets."""
    seeded = random.Random(seed)
    yield ""
    yield from (f"&{name}={quote(value)}" for name, accepted in values.items() for value in accepted)
    for names in combinations(values, 2):
        chosen = (seeded.sample(values[name], min(2, len(values[name]))) for name in names)
        yield from (_joined(names, pair) for pair in product(*chosen))
    for _ in range(TOGETHER):
        several = seeded.sample(list(values), seeded.randint(3, min(6, len(values))))
        yield _joined(several, [seeded.choice(values[name]) for name in several])


def _joined(names: Sequence[str], values: Sequence[str]) -> str:
    return "".join(f"&{name}={quote(value)}" for name, value in zip(names, values, strict=True))


def compare_every_page(world: World, resource: List, sort: str, filters: str) -> int:
    """Compare all pages of one question and the empty one after them; returns how many were compared."""
    for page in range(1, REPORTS):
        if world.compare(resource, 0, f"sort={sort}&page={page}{filters}") == "nothing":
            return page
    raise AssertionError((sort, filters))


@pytest.mark.parametrize("sort", RELATORIO_SORTS)
def test_every_page_of_reports_equals_the_reference(world: World, sort: str) -> None:
    pages = [compare_every_page(world, "relatorios", sort, one) for one in questions(RELATORIO_VALUES, seed=1)]
    assert max(pages) == 13
    assert sum(pages) > 1.4 * len(pages)


@pytest.mark.parametrize("sort", PESSOA_SORTS)
def test_every_page_of_people_equals_the_reference(world: World, sort: str) -> None:
    pages = [compare_every_page(world, "pessoas", sort, one) for one in questions(PESSOA_VALUES, seed=2)]
    assert max(pages) > 5
    assert sum(pages) > 1.4 * len(pages)


@pytest.fixture
def far_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make plans believe that matching rows are far apart, so that each is looked for and none are collected."""
    for module, name, value in (
        (plan, "FEW", 0),
        (guesses, "NEAR", 0),
        (guesses, "FEW_OF_RANGE", 0),
        (reading, "FARTHEST", 0),
        (reading, "TIES", 0),
        (reading, "PATIENCE", 0),
        (walking, "SORT", 10**15),
        (walking.Matching, "walk_cost", _walking_costs(10**14)),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.fixture
def mistaken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make plans believe that matching rows are next to each other, and give up soon when they are not."""
    for module, name, value in (
        (plan, "FEW", 0),
        (walking, "LEAST", 0),
        (walking, "SORT", 1),
        (walking, "FETCH", 1),
        (walking.Matching, "walk_cost", _walking_costs(0)),
    ):
        monkeypatch.setattr(module, name, value)


def _walking_costs(rows: int) -> Callable[[walking.Matching, int], float]:
    """Give every walk the same cost, except in orders without an index, where it is infinite."""
    return lambda matching, _rows: rows if matching.order.field.axis else inf


@pytest.fixture
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make plans treat a few rows as many."""
    monkeypatch.setattr(plan, "FEW", 20)


ORDERS: Final[tuple[tuple[List, str], ...]] = (
    *(("relatorios", sort) for sort in RELATORIO_SORTS),
    *(("pessoas", sort) for sort in PESSOA_SORTS),
)


@pytest.mark.parametrize("taken", ["far_between", "mistaken", "fewer"])
@pytest.mark.parametrize(("resource", "sort"), ORDERS)
def test_every_page_equals_the_reference_despite_wrong_cost_estimates(
    world: World, request: pytest.FixtureRequest, resource: List, sort: str, taken: str
) -> None:
    request.getfixturevalue(taken)
    some = list(questions(RELATORIO_VALUES if resource == "relatorios" else PESSOA_VALUES, seed=3))[::5]
    some += OF_ONE_DOCUMENT if resource == "relatorios" else ()
    assert max(compare_every_page(world, resource, sort, one) for one in some) > (5 if resource == "relatorios" else 3)


@pytest.mark.parametrize("taken", ["", "far_between"])
@pytest.mark.parametrize("sort", RELATORIO_SORTS)
def test_a_walk_equals_the_numbered_pages_despite_wrong_cost_estimates(
    world: World, request: pytest.FixtureRequest, sort: str, taken: str
) -> None:
    if taken:
        request.getfixturevalue(taken)
    met = 0
    for one in (
        "",
        "&status=CONCLUIDO",
        "&atualizado_em_de=2026-01-31",
        "&resultado=INVALID&atualizado_em_ate=2026-01-31",
        *OF_ONE_DOCUMENT,
    ):
        answers = list(world.clients[0].walk(f"/relatorios?sort={sort}{one}"))
        assert sum(len(answer.itens) for answer in answers) == answers[0].total
        walked = [answer.body for answer in answers]
        asked = (f"/relatorios?sort={sort}{one}&page={page}" for page in range(1, len(walked) + 1))
        assert walked == [world.clients[0].get(url).body for url in asked]
        met += len(walked)
    assert met > 20


@pytest.mark.parametrize("sizes", [Sizes(), Sizes(most_rows=100)], ids=["one bucket", "some buckets"])
@pytest.mark.parametrize(
    ("resource", "sort"),
    [("relatorios", "atualizado_em"), ("relatorios", "-atualizado_em"), ("pessoas", "cpf"), ("pessoas", "-cpf")],
)
def test_every_page_of_a_range_in_few_buckets_equals_the_reference(world: World, resource: List, sort: str) -> None:
    ends = product(DATES["atualizado_em_de"], DATES["atualizado_em_ate"], ("", "&status=CONCLUIDO"))
    spans = [f"&atualizado_em_de={quote(since)}&atualizado_em_ate={quote(until)}{also}" for since, until, also in ends]
    prefixes = [*(f"&busca={'0' * length}" for length in range(1, 9)), "&busca=0000001"]
    asked = spans if resource == "relatorios" else prefixes
    assert max(compare_every_page(world, resource, sort, one) for one in asked) > 5
