"""Six accounts of three organizations have the same CPFs, names and numeros: nobody sees data of another owner."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

import pytest

from factories import NOON, Account, Store, cnpj, cpf, numero, relatorio
from laudo.server.ingest.records import Relatorio
from strategies import PESSOA_SORTS, RELATORIO_SORTS, STATUS
from wsgi import Client, NewClient

Report = Relatorio
Condition = tuple[str, str, Callable[[Report], bool]]
"""A parameter, its value, and an independent test of whether a report matches."""

MATRIZES: Final = ("padrao", "completa", "rapida")
NAMES: Final = ("Maria Silva", "Jose Souza", "Ana Maria")
CPFS: Final = tuple(cpf(number) for number in range(100_000_000, 100_000_040))


@dataclass(frozen=True, slots=True)
class Owner:
    """One account, its reports, and all reports of its organization."""

    account: Account
    reports: tuple[Report, ...]
    organization: tuple[Report, ...]
    client: Client


def tag(account: Account) -> str:
    return f"conta{account.id_conta}"


@pytest.fixture
def owners(store: Store, client: NewClient) -> list[Owner]:
    accounts = []
    for _ in range(3):
        first = store.account()
        accounts += [first, store.account(first.id_organizacao)]
    written = {account: _reports(account) for account in accounts}
    for account, reports in written.items():
        store.write(account, reports)
    return [
        Owner(
            account,
            written[account],
            tuple(r for other in accounts if other.id_organizacao == account.id_organizacao for r in written[other]),
            client(account.token),
        )
        for account in accounts
    ]


def _reports(account: Account) -> tuple[Report, ...]:
    """Make reports with 60 of 90 numeros; all accounts draw numeros and values from the same few."""
    seeded = random.Random(account.id_conta)
    return tuple(_report(seeded, number, account) for number in seeded.sample(range(90), 60))


def _report(seeded: random.Random, number: int, account: Account) -> Report:
    is_pessoa = seeded.random() < 0.7
    return relatorio(
        number,
        tipo_pessoa="Pessoa" if is_pessoa else "Empresa",
        numero_documento=seeded.choice(CPFS) if is_pessoa else cnpj(1),
        nome_pessoa=f"{seeded.choice(NAMES)} {tag(account)}",
        mensagem=tag(account),
        status=seeded.choice(STATUS),
        resultado=seeded.choice((None, "VALID", "INVALID")),
        nome=seeded.choice(MATRIZES),
        pendente_validacao_manual=seeded.random() < 0.5,
        # Different for all reports of all accounts, so that each person has exactly one newest report.
        atualizado_em=NOON + 10 * (number * 37 % 90) + account.id_conta,
    )


def equal(name: str, field: str, value: object) -> Condition:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return name, text, lambda report: bool(getattr(report, field) == value)


def relatorio_conditions() -> list[Condition]:
    values: dict[str, tuple[object, ...]] = {
        "status": STATUS,
        "nome": MATRIZES,
        "tipo_pessoa": ("Pessoa", "Empresa"),
        "resultado": ("VALID", "INVALID"),
        "numero": (numero(0), numero(44), numero(89)),
        "numero_documento": (*CPFS[:3], cnpj(1)),
        "pendente_validacao_manual": (True, False),
    }
    return [equal(name, name, value) for name, accepted in values.items() for value in accepted]


def test_no_list_of_reports_contains_or_counts_items_of_another_account(owners: list[Owner]) -> None:
    conditions = relatorio_conditions()
    asked = [(), *((one,) for one in conditions), *_pairs(conditions)]
    for owner, filters in product(owners, asked):
        parameters = {name: value for name, value, _ in filters}
        matching = {r.numero for r in owner.reports if all(test(r) for _, _, test in filters)}
        # The order does not affect whose items are listed, so pairs of filters are tested in one order only.
        for sort in RELATORIO_SORTS if len(filters) < 2 else RELATORIO_SORTS[:1]:
            answer = owner.client.get("/relatorios", rows=100, sort=sort, **parameters)
            assert answer.total == len(matching)
            assert {item["mensagem"] for item in answer.itens} <= {tag(owner.account)}
            assert {item["numero"] for item in answer.itens} == matching


def _pairs(conditions: list[Condition]) -> Iterator[tuple[Condition, ...]]:
    return (pair for pair in product(conditions, repeat=2) if pair[0][0] < pair[1][0])


def word(name: str, text: str) -> Condition:
    return name, text, lambda report: text in report.nome_pessoa.lower().split()


def pessoa_conditions() -> list[Condition]:
    words = ("maria", "jose", "souza", *(f"conta{number}" for number in range(1, 7)))
    start = CPFS[7][:9]
    return [
        *(equal("cpf", "numero_documento", one) for one in CPFS[:6]),
        *(word(name, one) for name, one in product(("nome", "busca"), words)),
        ("busca", start, lambda report: report.numero_documento.startswith(start)),
    ]


def test_no_list_of_people_contains_or_counts_items_of_other_organizations(owners: list[Owner]) -> None:
    conditions = pessoa_conditions()
    for owner, filters in product(owners, [(), *((one,) for one in conditions), *_pairs(conditions)]):
        parameters = {name: value for name, value, _ in filters}
        people = _people(owner.organization)
        matching = {cpf: r.nome_pessoa for cpf, r in people.items() if all(test(r) for _, _, test in filters)}
        for sort in PESSOA_SORTS if len(filters) < 2 else PESSOA_SORTS[:1]:
            answer = owner.client.get("/pessoas", rows=100, sort=sort, **parameters)
            assert answer.total == len(matching)
            assert {item["cpf"]: item["nome"] for item in answer.itens} == matching


def _people(reports: tuple[Report, ...]) -> dict[str, Report]:
    """Give the newest report of each CPF."""
    oldest_first = sorted(reports, key=lambda report: report.atualizado_em)
    return {report.numero_documento: report for report in oldest_first if report.tipo_pessoa == "Pessoa"}


def test_all_accounts_share_numeros_and_documents(owners: list[Owner]) -> None:
    for one, other in product(owners, owners):
        assert {r.numero for r in one.reports} & {r.numero for r in other.reports}
        assert {r.numero_documento for r in one.reports} & {r.numero_documento for r in other.reports}


def test_the_pages_of_an_account_contain_exactly_its_reports(owners: list[Owner]) -> None:
    for owner, sort in product(owners, RELATORIO_SORTS):
        pages = [owner.client.get("/relatorios", page=page, sort=sort).itens for page in (1, 2, 3, 4)]
        seen = [item["numero"] for page in pages for item in page]
        assert len(seen) == len(set(seen)) == 60
        assert {item["mensagem"] for page in pages for item in page} == {tag(owner.account)}


def test_a_profile_is_the_callers_own(owners: list[Owner]) -> None:
    for owner in owners:
        result = owner.client.get("/usuario").json["result"]
        assert result["id_organizacao"] == str(owner.account.id_organizacao)
        assert result["email"] == f"analista{owner.account.id_conta}@example.com"


def test_a_write_to_one_account_changes_nothing_for_other_organizations(owners: list[Owner], store: Store) -> None:
    urls = ("/relatorios?rows=100", "/pessoas?rows=100", "/usuario")
    before = {owner.account: [owner.client.get(url) for url in urls] for owner in owners}
    store.write(
        owners[0].account, [relatorio(n, numero_documento=CPFS[n % 40], atualizado_em=NOON * 2) for n in range(90)]
    )
    for owner in owners[2:]:
        after = [owner.client.get(url) for url in urls]
        assert [(a.body, a.stable_headers) for a in after] == [
            (a.body, a.stable_headers) for a in before[owner.account]
        ]
