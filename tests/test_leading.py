"""Pages requested in any order, as by a client with concurrent requests, continue from the nearest earlier page."""

from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Final

import pytest
from msgspec.structs import replace

from effort import Noted
from factories import Account, Store
from laudo.core import plan, walking
from laudo.core.lookups import Plain
from laudo.server.database import Database
from laudo.server.stores import open_store
from strategies import any_relatorio
from wsgi import Client, NewApp

REPORTS: Final = 800
DOCUMENT: Final = "11144477735"
LISTS: Final = (
    "pessoas?busca=0",
    "pessoas?nome=m",
    "pessoas?nome=m&sort=nome",
    "pessoas?nome=m&sort=-nome",
    "pessoas?nome=ma+s&sort=cpf",
    "pessoas?busca=m&sort=-cpf",
    "pessoas?nome=m&atualizado_em_de=1970-01-02",
    "pessoas?nome=m&atualizado_em_de=1970-01-02&sort=-cpf",
    f"relatorios?numero_documento={DOCUMENT}&atualizado_em_de=1970-01-02",
    f"relatorios?numero_documento={DOCUMENT}&sort=-numero",
    f"relatorios?numero_documento={DOCUMENT}&sort=-mensagem",
)

OTHER_LISTS: Final = (
    "pessoas?atualizado_em_de=1970-01-02&sort=-nome",
    "pessoas?atualizado_em_de=1970-01-02&sort=cpf",
    "pessoas?nome=mar&sort=nome",
    "relatorios?sort=status&tipo_pessoa=PESSOA",
    "relatorios?sort=-mensagem",
    "relatorios?atualizado_em_de=1970-01-02",
    f"relatorios?numero_documento={DOCUMENT}&sort=status",
    f"relatorios?numero_documento={DOCUMENT}&sort=numero",
)
"""Lists whose pages are found by the tally, or continue only from the page directly before."""


@pytest.fixture
def database(store_url: str, store: Store, account: Account) -> Iterator[Database]:
    """A store in which every second report has the same document, and each of the others has its own person."""
    seeded = Random(8)
    reports = [any_relatorio(seeded, number) for number in range(REPORTS)]
    for number in range(0, REPORTS, 2):
        reports[number] = replace(reports[number], numero_documento=DOCUMENT, tipo_pessoa="Pessoa", nome_pessoa="Ana")
    for number in range(1, REPORTS, 2):
        name = seeded.choice(("Maria Silva", "Marcos Souza", "Ana Moura", "José Lima"))
        reports[number] = replace(
            reports[number], numero_documento=f"{number:011}", tipo_pessoa="Pessoa", nome_pessoa=name
        )
    store.write(account, reports)
    with closing(open_store(store_url)) as database:
        yield database


@pytest.mark.parametrize("cost", [0, 10**9], ids=["collecting", "walking"])
def test_pages_in_any_order_equal_those_without_a_cache(
    database: Database, new_app: NewApp, account: Account, monkeypatch: pytest.MonkeyPatch, cost: int
) -> None:
    monkeypatch.setattr(plan, "FEW", 0)
    monkeypatch.setattr(walking.Matching, "collect_cost", lambda *_: cost)
    plain = Client(new_app(database, cache_bytes=0), account.token)
    keeping = Client(new_app(database), account.token)
    for asked in (*LISTS, *OTHER_LISTS):
        pages = list(range(1, plain.get(f"/{asked}").total // 25 + 3))
        Random(9).shuffle(pages)
        for url in (f"/{asked}&page={page}" for page in pages):
            one, other = plain.get(url), keeping.get(url)
            assert one.body == other.body, url
            assert one.stable_headers["etag"] == other.stable_headers["etag"]


def test_pages_requested_out_of_order_skip_few_rows(
    database: Database, new_app: NewApp, account: Account, noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FEW", 0)
    keeping = Client(new_app(database), account.token)
    for asked in LISTS:
        noted.clear()
        last = keeping.get(f"/{asked}").total // 25
        for first in range(1, last, 4):
            for page in (first + 1, first, first + 3, first + 2):
                assert keeping.get(f"/{asked}&page={page}").status == 200
        assert last > 6, asked
        skipped = [lookup.skip for lookup, _ in noted if isinstance(lookup, Plain)]
        assert 0 < max(skipped) <= 6 * 25, asked


@pytest.mark.parametrize("kept", [0, 1 << 20], ids=["nothing kept", "kept"])
def test_the_last_page_of_a_walk_costs_no_more_than_the_others(
    database: Database, new_app: NewApp, account: Account, noted: Noted, monkeypatch: pytest.MonkeyPatch, *, kept: int
) -> None:
    """The number of rows left is known, so no lookup searches for more rows or collects matches."""
    monkeypatch.setattr(plan, "FEW", 0)
    monkeypatch.setattr(walking.Matching, "collect_cost", lambda *_: 10**9)
    monkeypatch.setattr(walking.Matching, "patience", lambda *_: 300)
    client = Client(new_app(database, cache_bytes=kept), account.token)
    for asked in (*LISTS, *OTHER_LISTS, "relatorios?atualizado_em_de=1970-01-02&sort=status"):
        pages = []
        for page in client.walk(f"/{asked}&rows=75"):
            walked = [lookup for lookup, _ in noted if isinstance(lookup, Plain) and not lookup.counted]
            pages.append((len(page.itens), walked))
            noted.clear()
        left, lookups = pages[-1]
        assert left < 75, asked
        assert all(not lookup.collect and lookup.limit == left for lookup in lookups), asked
