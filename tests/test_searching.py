"""A search looks up its rarest words and tests the names found for the other words; without a store."""

from functools import partial
from operator import attrgetter
from typing import Final

import pytest

from laudo.core import leads, plan, query
from laudo.core.axes import PESSOA_CPF, PESSOA_NOME, PESSOA_RECENCY, Axis
from laudo.core.cursor import After
from laudo.core.facets import Facets
from laudo.core.lookups import Asked, Count, Found, Holding, LookUp, Plain, Rows, Together, Words
from laudo.core.points import Counted, Lead
from laudo.core.resources import PESSOAS

PERSONS: Final = 3_000_000
FACETS: Final = Facets([(0, PERSONS)])
HAVE: Final = {
    "silva": 690_000,
    "souza": 200_000,
    "maria": 180_000,
    "ana": 35_000,
    "zelia": 3_000,
    "iris": 290,
    "z": 0,
}
"""How many persons have each word in their name."""
ITEMS: Final = b"{}"


def asked(filters: str, counted: Counted | None = None, after: After | None = None) -> tuple[plan.Page, list[LookUp]]:
    """Plan a page and answer its look-ups, as if all ranges had a million rows; returns the page and the look-ups."""
    steps = plan.page(query.parse(PESSOAS, filters, max_rows=25), FACETS, after, counted)
    looked_up: list[LookUp] = []
    sent: Rows | None = None
    while True:
        try:
            wanted = next(steps) if sent is None else steps.send(sent)
        except StopIteration as done:
            return done.value, looked_up
        sent = answered(wanted, looked_up)


def answered(lookup: Asked, looked_up: list[LookUp]) -> Rows:
    if isinstance(lookup, Together):
        return [tuple(answered(each, looked_up)) for each in lookup.asked]
    looked_up.append(lookup)
    if isinstance(lookup, Found):
        return [(HAVE[lookup.words[0]] if len(lookup.words) == 1 else 40_000,)]
    if isinstance(lookup, Count):
        return [(min(lookup.most or PERSONS, 1_000_000),)]
    if isinstance(lookup, Holding):
        return [(b"", None, PERSONS, 0, 1, b"", 0)]
    assert isinstance(lookup, Plain)
    return [(25 if lookup.counted else None, 25, ITEMS)]


def counters(*words: str) -> list[LookUp]:
    return [Found((word,)) for word in words]


@pytest.mark.parametrize(
    ("nome", "leading"),
    [
        ("maria iris", ("iris",)),
        ("silva maria zelia souza", ("zelia",)),
        ("iris zelia", ("iris",)),
        ("z maria", ("z",)),
    ],
)
def test_the_rarest_word_leads_and_its_names_are_tested_for_the_others(nome: str, leading: Words) -> None:
    page, looked_up = asked(f"nome={nome.replace(' ', '+')}")
    *found, last = looked_up
    assert sorted(found, key=attrgetter("words")) == sorted(counters(*nome.split()), key=attrgetter("words"))
    assert isinstance(last, Plain)
    assert (last.through, last.collect, last.counted) == (leading, True, True)
    assert page == plan.Page(25, 25, ITEMS, lead=Lead(leading, HAVE[leading[0]]))


@pytest.mark.parametrize(
    ("nome", "leading"),
    [("silva ana", ("ana",)), ("silva souza ana", ("ana", "souza")), ("souza maria silva", ("maria", "souza"))],
)
def test_a_second_word_is_looked_up_only_if_it_is_not_much_more_common(nome: str, leading: Words) -> None:
    page, looked_up = asked(f"nome={nome.replace(' ', '+')}")
    assert isinstance(last := looked_up[-1], Plain)
    assert (last.through, last.collect, last.counted) == (leading, True, True)
    assert page.lead == Lead(leading, HAVE[leading[0]])


def test_persons_with_two_common_words_are_counted_without_reading_names() -> None:
    page, looked_up = asked("nome=maria+silva")
    *_, counted, taken = looked_up
    assert counted == Found(("maria", "silva"))
    assert isinstance(taken, Plain)
    assert not taken.collect
    assert (page.total, page.lead) == (40_000, Lead(("maria", "silva"), HAVE["maria"]))


def test_a_short_walk_to_a_page_counts_no_names_by_prefix() -> None:
    page, looked_up = asked("nome=maria")
    assert [type(each) for each in looked_up] == [Found, Plain]
    assert page.total == HAVE["maria"]


@pytest.mark.parametrize(("left", "is_near"), [(26, False), (25, False), (24, True)])
def test_a_walk_by_name_counts_names_by_prefix_only_near_its_end(left: int, *, is_near: bool) -> None:
    seen = HAVE["zelia"] - left
    after = After(seen // 25 + 1, seen, 7, "zelia", "52998224725")
    _, looked_up = asked("nome=zelia&sort=nome", Counted(HAVE["zelia"]), after)
    assert any(isinstance(each, Count) for each in looked_up) == is_near


def test_counts_of_words_serve_other_pages() -> None:
    first, _ = asked("nome=maria+iris")
    again, looked_up = asked("nome=maria+iris&sort=cpf", Counted(first.total, lead=first.lead))
    assert [type(each) for each in looked_up] == [Plain]
    assert (again.total, again.lead) == (first.total, first.lead)


def test_collecting_is_weighed_by_the_persons_met_not_by_those_that_match() -> None:
    _, [taken] = asked("nome=silva+ana", Counted(1_000, lead=Lead(("ana",), HAVE["ana"])))
    assert isinstance(taken, Plain)
    assert not taken.collect


def test_two_words_looked_up_together_lead_only_to_persons_with_both() -> None:
    _, [taken] = asked("nome=maria+silva", Counted(100, lead=Lead(("maria", "silva"), HAVE["maria"])))
    assert isinstance(taken, Plain)
    assert taken.collect


def test_a_rare_word_leads_even_beside_a_range() -> None:
    _, looked_up = asked("nome=maria+iris&atualizado_em_de=2026-01-01")
    assert isinstance(last := looked_up[-1], Plain)
    assert last.through == ("iris",)
    assert last.counted


@pytest.mark.parametrize(("nome", "through"), [("maria", ("maria",)), ("silva", PESSOA_RECENCY)])
def test_beside_a_wide_range_the_cheaper_lead_is_used(nome: str, through: Words | Axis) -> None:
    _, looked_up = asked(f"nome={nome}&atualizado_em_de=2026-01-01")
    counting = next(each for each in looked_up if isinstance(each, Plain))
    assert (counting.through, counting.counted) == (through, True)


@pytest.mark.parametrize(("sort", "is_walked"), [("nome", True), ("cpf", False)])
def test_a_walk_meets_few_names_only_if_their_range_lies_in_its_order(sort: str, *, is_walked: bool) -> None:
    lead = Lead(PESSOA_NOME, 2_000, "maria")
    _, [taken] = asked(f"nome=maria+silva&sort={sort}", Counted(1_000, lead=lead))
    assert isinstance(taken, Plain)
    assert taken.collect is not is_walked


def test_a_walk_by_instant_meets_only_the_rows_of_the_period() -> None:
    _, [*_, taken] = asked("nome=silva&atualizado_em_de=2026-01-01", Counted(30))
    assert isinstance(taken, Plain)
    assert not taken.collect


def test_testing_names_in_an_index_is_cheaper_than_fetching_persons() -> None:
    asked_for = query.parse(PESSOAS, "nome=maria&atualizado_em_de=2026-01-01", max_rows=25)
    by_word, by_time, by_cpf = Lead(("maria",), 180_000), Lead(PESSOA_RECENCY, 800_000), Lead(PESSOA_CPF, 180_001)
    ordered = sorted((by_cpf, by_word, by_time), key=partial(leads.cost, asked_for))
    assert ordered == [by_time, by_word, by_cpf]


def test_without_words_the_narrower_range_leads() -> None:
    asked_for = query.parse(PESSOAS, "busca=529&atualizado_em_de=2026-01-01", max_rows=25)
    by_time, by_cpf = Lead(PESSOA_RECENCY, 200_001), Lead(PESSOA_CPF, 200_000)
    assert min(by_time, by_cpf, key=partial(leads.cost, asked_for)) == by_cpf


def test_beside_one_cpf_words_are_only_tested() -> None:
    """Listing everybody with a common word would take longer than testing that one person."""
    _, looked_up = asked("cpf=52998224725&nome=maria")
    [only] = looked_up
    assert isinstance(only, Plain)
    assert only.through is None


def test_in_a_small_organization_all_names_are_tested() -> None:
    steps = plan.page(query.parse(PESSOAS, "nome=maria&busca=5", max_rows=25), Facets([(0, 100)]))
    assert isinstance(wanted := next(steps), Plain)
    assert wanted.through is None
