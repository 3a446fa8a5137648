"""How a page of a period is found: in the way that measurements showed to be fastest. Needs no store."""

from typing import Final

import pytest

from laudo.core import across, query, ranges, sql
from laudo.core.facets import Facets
from laudo.core.lookups import Plain
from laudo.core.part import Part, part_of
from laudo.core.resources import PESSOAS, RELATORIOS
from laudo.core.sql import POSTGRES, SQLITE, Owner
from laudo.core.walking import FETCH, SORT, Matching

OF: Final = 10_000_000
"""How many reports the account has."""
DONE: Final = "&status=CONCLUIDO"
RARE: Final = "&status=PENDENTE"
SHARES: Final = {"CONCLUIDO": (48, 8_500_000), "PENDENTE": (10, 80_000), "PROCESSANDO": (62, 1_420_000)}
"""For each status, how many facets and how many reports have it."""
WEEK, MONTH, FOUR_MONTHS = "2026-09-24", "2026-09-01", "2026-06-01"


def _facets() -> Facets:
    status = [each for each, (facets, _) in SHARES.items() for _ in range(facets)]
    totals = {each: reports // facets for each, (facets, reports) in SHARES.items()}
    place = RELATORIOS.facet_fields.index("status")
    rows = ([number, totals[each], *RELATORIOS.facet_fields] for number, each in enumerate(status))
    return Facets((*row[: place + 2], each, *row[place + 3 :]) for row, each in zip(rows, status, strict=True))


def _part(asked: str, total: int) -> Part:
    facets, parsed = _facets(), query.parse(RELATORIOS, asked, max_rows=25)
    group, [bounds] = facets.matching(parsed), ranges.asked(parsed)
    matching = Matching(parsed, group.numbers, parsed.order, total, facets.total, bounds.axis)
    return part_of(matching, bounds, facets, group, {})


@pytest.mark.parametrize(
    ("asked", "since", "total", "page", "way"),
    [
        ("sort=numero", WEEK, 64_000, 1, "guess"),
        ("sort=numero", WEEK, 64_000, 319, "guess"),
        ("sort=numero" + DONE, WEEK, 28_600, 1, "collect"),
        ("sort=numero" + DONE, WEEK, 28_600, 10, "collect"),
        ("sort=numero_documento" + DONE, WEEK, 28_600, 1, "walk"),
        ("sort=numero_documento" + DONE, WEEK, 28_600, 10, "collect"),
        ("sort=numero_documento" + RARE, WEEK, 1_500, 1, "collect"),
        ("sort=numero" + RARE, WEEK, 4_000, 80, "guess"),
        ("sort=numero" + DONE, MONTH, 126_000, 1, "walk"),
        ("sort=numero" + DONE, MONTH, 126_000, 627, "guess"),
        ("sort=numero" + DONE, MONTH, 126_000, 5_040, "walk"),
        ("sort=numero_documento" + RARE, MONTH, 6_900, 1, "collect"),
        ("sort=numero_documento" + RARE, MONTH, 6_900, 10, "collect"),
        ("sort=numero" + DONE, FOUR_MONTHS, 504_000, 10, "walk"),
        ("sort=numero" + RARE, FOUR_MONTHS, 27_000, 136, "guess"),
        ("sort=mensagem", WEEK, 64_000, 1278, "collect"),
        ("sort=mensagem" + RARE, FOUR_MONTHS, 27_000, 540, "guess"),
        ("sort=-mensagem", FOUR_MONTHS, 1_122_000, 10, "walk"),
        ("sort=-mensagem" + DONE, MONTH, 126_000, 1, "guess"),
        ("sort=-mensagem" + DONE, FOUR_MONTHS, 504_000, 10_074, "guess"),
    ],
)
def test_a_page_of_a_period_is_found_in_the_fastest_way(
    asked: str, since: str, total: int, page: int, way: str
) -> None:
    part = _part(f"{asked}&atualizado_em_de={since}", total)
    assert across.way(part, 25, 25 * (page - 1), None) == way


def _matching(asked: str, numbers: tuple[int, ...] | None, total: int) -> Matching:
    parsed = query.parse(RELATORIOS, asked, max_rows=25)
    return Matching(parsed, numbers, parsed.order, total, OF)


def test_sorting_costs_less_when_fewer_rows_are_wanted() -> None:
    matching = _matching("sort=numero", None, 64_000)
    costs = [matching.collect_cost(rows) for rows in (25, 250, 8_000, 64_000, 1_000_000)]
    assert costs == sorted(costs)
    assert costs[0] < 1.1 * 64_000
    assert costs[-2] == costs[-1] == 64_000 + 64_000 * 16 // 2 * SORT


def test_sort_values_are_fetched_unless_the_leading_index_has_them() -> None:
    fetched, found = (_matching("sort=numero_documento", numbers, 5_000).collect_cost(25) for numbers in (None, (1, 2)))
    assert fetched - found == 5_000 * FETCH


def test_an_order_without_an_index_is_never_walked() -> None:
    matching = _matching("sort=status", None, OF)
    assert matching.collect_cost(OF) < matching.walk_cost(OF)


@pytest.mark.parametrize(("among", "most"), [(10_000, 1_000), (900, None)])
def test_a_walk_that_may_read_all_rows_sets_no_limit(
    monkeypatch: pytest.MonkeyPatch, among: int, most: int | None
) -> None:
    """A limit needs an outer SELECT, to which SQLite passes rows one by one; that takes half as long again."""
    monkeypatch.setattr(Matching, "patience", lambda *_: 1_000)
    asked = query.parse(PESSOAS, "nome=maria", max_rows=25)
    walked = next(Matching(asked, None, asked.order, 500, among).walked(25, 0, None))
    assert isinstance(walked, Plain)
    assert walked.most == most
    statements = [sql.statement(walked, Owner(1, 1), dialect).text for dialect in (SQLITE, POSTGRES)]
    assert ["AS walked" in text for text in statements] == [most is not None, True]
