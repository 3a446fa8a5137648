"""Reports in clusters: reports with the same value are close together, far from others with that value.

Proportions then mislead guesses of where a page begins, and a scan may give up before it has met enough rows. Walks by
cursor and consecutive pages must return the same list nevertheless.
"""

from bisect import bisect_left
from itertools import product
from random import Random
from typing import Final

import pytest
from msgspec.structs import asdict

from effort import Noted, steps
from factories import NOON, SMALL, Account, Store, cpf, numero, relatorio
from laudo.core import across, guesses, plan, reading, sql, walking
from laudo.core.axes import numero_key
from laudo.core.lookups import Count, LookUp, Plain, Read
from laudo.core.sql import Dialect, Owner, Statement
from laudo.core.values import render_instant
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.tallies import SIZES
from reference import Api
from strategies import RELATORIO_SORTS
from wsgi import Client, NewApp

SECOND: Final = 1_000
ASKED: Final = 40
STATUSES: Final = ("CONCLUIDO", "PENDENTE", "PROCESSANDO", "ERRO")
LIMITS: Final = (
    (reading, "TIES", (2, 256)),
    (reading, "FARTHEST", (0, 10, 4000)),
    (reading, "PATIENCE", (0, 4)),
    (plan, "FEW", (5, 50, 3000)),
    (guesses, "NEAR", (5, 1000)),
    (walking, "LEAST", (1, 256)),
)
"""Thresholds at which plans choose another way: small ones, so that a few reports count as many, and usual ones."""


def heaps(seeded: Random) -> list[Relatorio]:
    """Make reports at intervals of a second back from NOON, in clusters of similar ones."""
    reports: list[Relatorio] = []
    documents = [cpf(number) for number in range(seeded.choice((2, 50)))]
    for _ in range(seeded.randint(3, 7)):
        status, one = seeded.choice(STATUSES), seeded.choice(documents)
        matrizes, alike = seeded.choice((1, 3, 150)), seeded.random() < 0.4
        reports += [
            relatorio(
                number,
                nome=f"matriz{number % matrizes}",
                status=status,
                resultado=None,
                numero_documento=one if alike else seeded.choice(documents),
                mensagem=f"Mensagem {number % matrizes % 7}",
                atualizado_em=NOON - number * SECOND,
            )
            for number in range(len(reports), len(reports) + seeded.choice((10, 60, 150)))
        ]
    return reports


def questions(seeded: Random, reports: list[Relatorio]) -> list[str]:
    """Return the queries of some lists, each with a random order, filter and period."""
    since, until = sorted(render_instant(NOON - seeded.randrange(len(reports)) * SECOND) for _ in range(2))
    document = seeded.choice(reports).numero_documento
    filters = ("", "&status=CONCLUIDO", "&status=PENDENTE", "&nome=matriz0", f"&numero_documento={document}")
    times = ("", f"&atualizado_em_de={since}", f"&atualizado_em_ate={until}")
    asked = product(RELATORIO_SORTS, filters, (*times, f"{times[1]}{times[2]}"))
    return seeded.sample([f"sort={sort}{one}{time}" for sort, one, time in asked], ASKED)


@pytest.mark.parametrize("seed", range(5))
def test_walks_and_consecutive_pages_return_the_whole_list(
    account: Account, store: Store, new_app: NewApp, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    seeded = Random(seed)
    for module, name, values in LIMITS:
        monkeypatch.setattr(module, name, seeded.choice(values))
    reports = heaps(seeded)
    store.write(account, reports, sizes=seeded.choice((SIZES, SMALL)))
    api = Api(
        reports=[(account.id_conta, asdict(report)) for report in reports],
        accounts={account.id_conta: account.id_organizacao},
    )
    walker, turner = (Client(new_app(), account.token) for _ in range(2))
    for question in questions(seeded, reports):
        whole = api.listing("relatorios", account.id_conta, question).items
        walked = [item for answer in walker.walk(f"/relatorios?{question}") for item in answer.itens]
        assert walked == whole, question
        pages = [turner.get(f"/relatorios?{question}&page={page}") for page in range(1, len(whole) // 25 + 2)]
        assert [item for answer in pages for item in answer.itens] == whole, question


@pytest.mark.parametrize("sort", ["numero_documento", "-numero_documento"])
def test_a_filtered_walk_over_one_document_misses_no_report(
    account: Account, store: Store, acme: Client, monkeypatch: pytest.MonkeyPatch, sort: str
) -> None:
    for module, name in ((plan, "FEW"), (reading, "FARTHEST")):
        monkeypatch.setattr(module, name, 0)
    given = [(cpf(number % 3), STATUSES[number // 3 % 2]) for number in range(360)]
    store.write(
        account,
        [
            relatorio(number, nome=f"matriz{number % 7}", status=status, numero_documento=document)
            for number, (document, status) in enumerate(given)
        ],
    )
    for document in {document for document, _ in given}:
        pages = acme.walk(f"/relatorios?numero_documento={document}&status=CONCLUIDO&sort={sort}")
        numeros = [item["numero"] for page in pages for item in page.itens]
        assert len(numeros) == len(set(numeros)) == 60


@pytest.mark.parametrize(
    ("status", "shared_by_others"), [("", False), ("&status=CONCLUIDO", False), ("&status=CONCLUIDO", True)]
)
def test_many_rare_messages_before_a_common_one_take_few_lookups(
    account: Account,
    store: Store,
    acme: Client,
    monkeypatch: pytest.MonkeyPatch,
    *,
    status: str,
    shared_by_others: bool,
) -> None:
    """No report of the period has one of the first 300 messages, so all of these must be passed over."""
    for module, name in ((guesses, "NEAR"), (guesses, "GUESSING"), (guesses, "LOCATING")):
        monkeypatch.setattr(module, name, 5)
    monkeypatch.setattr(walking.Matching, "patience", lambda *_: 900)
    messages = [*(f"Z {number:03}" for number in range(300)), *["Válido."] * 4000, *(f"A {n:03}" for n in range(700))]
    within = set(Random(1).sample(range(300, len(messages)), 100))
    others = range(300, 4300) if shared_by_others else range(0)
    reports = [
        relatorio(
            number,
            status="PENDENTE" if number in others or number % 50 == 1 else "CONCLUIDO",
            mensagem=mensagem,
            atualizado_em=NOON + number if number in within else NOON - SECOND - number,
        )
        for number, mensagem in enumerate(messages)
    ]
    store.write(account, reports, sizes=SMALL)
    ask, asked = sql.statement, 0

    def counting(lookup: LookUp, owner: Owner, dialect: Dialect) -> Statement:
        nonlocal asked
        asked += 1
        return ask(lookup, owner, dialect)

    monkeypatch.setattr(sql, "statement", counting)
    monkeypatch.setattr(across, "way", lambda *_: "guess")
    first = acme.get(f"/relatorios?sort=-mensagem&atualizado_em_de={render_instant(NOON)}{status}")
    matching = [each for each in reports if each.atualizado_em >= NOON and (not status or each.status == "CONCLUIDO")]
    matching.sort(key=lambda each: each.numero)
    matching.sort(key=lambda each: each.mensagem, reverse=True)
    assert [item["numero"] for item in first.itens] == [each.numero for each in matching[:25]]
    assert asked < 120


def test_a_walk_by_descending_message_skips_no_report_with_a_common_one(
    account: Account, store: Store, acme: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A walk that gives up among many reports with one message must not go on after them, though a page is there."""
    monkeypatch.setattr(walking.Matching, "collect_cost", lambda *_: 1_000_000)
    monkeypatch.setattr(walking.Matching, "patience", lambda *_: 100)
    apart = 200 * SECOND
    messages = ["C"] * 24 + ["B"] * 200 + ["A"] * 100
    within = [number not in range(25, 223) for number in range(len(messages))]
    store.write(
        account,
        [
            relatorio(number, mensagem=message, atualizado_em=NOON if inside else NOON - apart)
            for number, (message, inside) in enumerate(zip(messages, within, strict=True))
        ],
    )
    pages = acme.walk(f"/relatorios?sort=-mensagem&atualizado_em_de={render_instant(NOON - SECOND)}")
    numeros = [item["numero"] for page in pages for item in page.itens]
    assert len(numeros) == len(set(numeros)) == sum(within)


@pytest.mark.parametrize("status", ["", "&status=CONCLUIDO"])
def test_a_page_of_a_small_period_does_not_count_all_of_a_common_message(
    account: Account, store: Store, acme: Client, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    """Finding the place of the message's first report within the period would mean counting half of the account."""
    for module, name in ((guesses, "NEAR"), (guesses, "GUESSING"), (guesses, "LOCATING")):
        monkeypatch.setattr(module, name, 5)
    within = set(Random(2).sample(range(4000), 60))
    reports = [
        relatorio(
            number,
            status="PENDENTE" if number % 50 == 1 else "CONCLUIDO",
            mensagem="Inválido." if number % 2 else "Válido.",
            atualizado_em=NOON + number if number in within else NOON - SECOND - number,
        )
        for number in range(4000)
    ]
    store.write(account, reports, sizes=SIZES)
    keys = sorted((each.mensagem, numero_key(each.numero)) for each in reports)
    ask, counted = sql.statement, 0

    def counting(lookup: LookUp, owner: Owner, dialect: Dialect) -> Statement:
        nonlocal counted
        if isinstance(lookup, Count) and lookup.across and not lookup.through:
            first = 0 if lookup.lower is None else bisect_left(keys, lookup.lower)
            counted += (len(keys) if lookup.upper is None else bisect_left(keys, lookup.upper)) - first
        return ask(lookup, owner, dialect)

    monkeypatch.setattr(sql, "statement", counting)
    monkeypatch.setattr(across, "way", lambda *_: "guess")
    asked = f"/relatorios?sort=-mensagem&page=2&atualizado_em_de={render_instant(NOON)}{status}"
    matching = [each for each in reports if each.atualizado_em >= NOON and (not status or each.status == "CONCLUIDO")]
    matching.sort(key=lambda each: each.numero)
    matching.sort(key=lambda each: each.mensagem, reverse=True)
    assert [item["numero"] for item in acme.get(asked).itens] == [each.numero for each in matching[25:50]]
    assert counted < 400


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make plans walk rather than collect, and give up soon if they meet no row."""
    monkeypatch.setattr(plan, "FEW", 0)
    monkeypatch.setattr(walking.Matching, "collect_cost", lambda *_: 1_000_000)
    monkeypatch.setattr(walking.Matching, "patience", lambda *_: 100)


@pytest.mark.usefixtures("impatient")
def test_a_walk_finds_the_remaining_rows_after_earlier_ones_were_deleted(
    account: Account, store: Store, acme: Client
) -> None:
    """As many rows were deleted as are left, and these are too far away for one look; finding none is not the end."""
    names = ["Maria"] * 25 + ["Ana"] * 400 + ["Maria"] * 25
    reports = [
        relatorio(number, nome_pessoa=name, numero_documento=cpf(number), atualizado_em=NOON - number)
        for number, name in enumerate(names)
    ]
    store.write(account, reports)
    first = acme.get("/pessoas?nome=maria")
    store.delete(account, *range(25))
    following = acme.get(first.links["next"])
    assert [item["cpf"] for item in following.itens] == [cpf(number) for number in range(425, 450)]


@pytest.mark.usefixtures("impatient")
def test_a_walk_by_a_field_crosses_a_gap_within_a_value(account: Account, store: Store, acme: Client) -> None:
    """As many rows of the first status were passed as are left of the next one, farther away than a walk looks."""
    store.write(
        account,
        [
            relatorio(
                number,
                status="CONCLUIDO" if number < 25 else "EM ANALISE",
                atualizado_em=NOON if number < 50 or number >= 450 else NOON - SECOND,
            )
            for number in range(475)
        ],
    )
    pages = acme.walk(f"/relatorios?sort=status&atualizado_em_de={render_instant(NOON)}")
    numeros = [item["numero"] for page in pages for item in page.itens]
    assert numeros == [numero(number) for number in (*range(50), *range(450, 475))]


@pytest.mark.usefixtures("impatient")
def test_a_walk_by_a_field_never_collects_the_rows_after_its_item(
    account: Account, store: Store, acme: Client, noted: Noted
) -> None:
    """How many rows with that value follow the item is known from the counts of the next values."""
    ends = (60, 130, 190)
    reports = [
        relatorio(
            number,
            status=("CONCLUIDO", "EM ANALISE", "PENDENTE")[bisect_left(ends, number % 190 + 1)],
            atualizado_em=NOON if number < 190 else NOON - SECOND,
        )
        for number in range(500)
    ]
    store.write(account, reports)
    pages = acme.walk(f"/relatorios?sort=status&atualizado_em_de={render_instant(NOON)}")
    assert [item["numero"] for page in pages for item in page.itens] == [numero(number) for number in range(190)]
    assert not any(isinstance(lookup, Plain) and lookup.collect and lookup.after for lookup, _ in noted)


@pytest.mark.usefixtures("impatient")
def test_a_walk_by_a_field_is_complete_after_earlier_rows_were_deleted(
    account: Account, store: Store, acme: Client
) -> None:
    """As many rows of the status were deleted as are left, farther away than a walk looks.

    Together with the next status, all rows then seem to be accounted for.
    """
    gap = range(45, 255)
    store.write(
        account,
        [
            relatorio(
                number,
                status="CONCLUIDO" if number < 270 else "PENDENTE",
                atualizado_em=NOON - SECOND if number in gap else NOON,
            )
            for number in range(500)
        ],
    )
    first = acme.get(f"/relatorios?sort=status&atualizado_em_de={render_instant(NOON)}")
    store.delete(account, *range(15))
    numeros = [item["numero"] for page in acme.walk(first.links["next"]) for item in page.itens]
    assert numeros == [numero(number) for number in range(25, 500) if number not in gap]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "asked", ["pessoas?nome=maria&sort=-nome", "relatorios?atualizado_em_de=2026-01-01&sort=-mensagem"]
)
def test_a_walk_does_not_read_beyond_a_value_that_fills_the_page(
    account: Account,
    store: Store,
    acme: Client,
    store_url: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    noted: Noted,
    asked: str,
) -> None:
    """This counts SQLite's own steps; tests of plans show how many rows PostgreSQL reads."""
    monkeypatch.setattr(walking.Matching, "collect_cost", lambda *_: 1_000_000)
    names = ["Maria"] * 4000 + ["Ana"] * 4000
    reports = [
        relatorio(number, nome_pessoa=name, mensagem=name, numero_documento=cpf(number), atualizado_em=NOON)
        for number, name in enumerate(names)
    ]
    store.write(account, reports, sizes=SIZES)
    first = acme.get(f"/{asked}")
    assert len(acme.get(first.links["next"]).itens) == 25
    assert steps(store_url, noted[-1][1]) < 100


@pytest.mark.parametrize("sort", ["mensagem", "-mensagem"])
def test_a_walk_skips_rows_of_other_facets_with_the_same_message(
    account: Account, store: Store, acme: Client, monkeypatch: pytest.MonkeyPatch, *, noted: Noted, sort: str
) -> None:
    """The tally shows where the next matching rows are, so no lookup reads all the others."""
    for module, name in ((plan, "FEW"), (reading, "FARTHEST")):
        monkeypatch.setattr(module, name, 0)
    ends = (*range(30), *range(930, 960))
    store.write(account, [relatorio(each, status="PENDENTE" if each in ends else "CONCLUIDO") for each in range(960)])
    first = acme.get(f"/relatorios?sort={sort}&status=PENDENTE")
    noted.clear()
    following = acme.get(first.links["next"])
    assert [item["numero"] for item in following.itens] == [numero(number) for number in ends[25:50]]
    assert sum(lookup.most or 960 for lookup, _ in noted if isinstance(lookup, Read)) < 100


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "asked",
    [
        "atualizado_em_ate=2026-01-31T13:00:00Z",
        "atualizado_em_de=2026-01-31&sort=atualizado_em",
        *(f"busca=0&sort={sort}" for sort in ("cpf", "-cpf", "nome", "-nome")),
    ],
)
def test_late_pages_of_a_walk_within_a_range_cost_no_more_than_early_ones(
    store: Store, store_url: str, account: Account, acme: Client, noted: Noted, *, asked: str
) -> None:
    """This holds for a period and for CPFs or names that begin alike; SQLite's steps are counted."""
    names = (f"Maria {number // 30}" for number in range(3100))
    reports = [
        relatorio(number, nome_pessoa=name, numero_documento=cpf(number), atualizado_em=NOON + number)
        for number, name in enumerate(names)
    ]
    store.write(account, reports, sizes=SIZES)
    cost = []
    for page in (1, 110):
        first = acme.get(f"/pessoas?nome=maria&{asked}&page={page}")
        assert len(acme.get(first.links["next"]).itens) == 25
        cost.append(steps(store_url, noted[-1][1]))
    assert cost[1] < cost[0] + 10
