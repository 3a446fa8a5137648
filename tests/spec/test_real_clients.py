"""Requests that published clients of such APIs really send: every entry of real-client-requests.json."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from factories import NOON, Account, Store, cpf, empresa, relatorio
from wsgi import Answer, NewClient

ENTRIES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("real-client-requests.json").read_text("utf-8"))[
    "requests"
]
CPF = "52998224725"
CNPJ = "12ABC34501DE35"
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
RELATORIO_KEYS = [
    *("numero", "status", "tipo_pessoa", "nome", "atualizado_em", "resultado", "mensagem"),
    *("pendente_validacao_manual", "numero_documento"),
]


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends the requests of one entry with its headers, and with the account's token or another one."""

    token: str
    new: NewClient
    headers: Mapping[str, str] = field(default_factory=dict)

    def get(self, url: str, *, body: bytes = b"") -> Answer:
        length = {"Content-Length": str(len(body))} if body else {}
        return self.new(self.token).ask("GET", url, headers={**self.headers, **length}, body=body)

    def get_as(self, token: str | None, url: str) -> Answer:
        return self.new(token).ask("GET", url, headers=self.headers)


Check = Callable[[Sender], None]
CHECKS: dict[str, Check] = {}


def entry(send: str) -> Callable[[Check], Check]:
    def add(check: Check) -> Check:
        assert send not in CHECKS
        CHECKS[send] = check
        return check

    return add


def only(url: str, name: str, value: object) -> Check:
    """Make a check that a filter finds only items with the value, and fewer than there are without it."""

    def check(sender: Sender) -> None:
        answer = sender.get(url)
        assert {item[name] for item in answer.itens} == {value}
        assert len(answer.itens) < sender.get("/relatorios").total

    return check


def assert_strict(answer: Answer) -> None:
    """Check that an answer has exactly the keys that the strict client accepts: one more would break it."""
    assert list(answer.json) == ["result", "status_code"]
    result = answer.json["result"]
    assert list(result["paginacao"]) == ["atual", "linhas", "total"]
    if "busca" in result:
        assert list(result) == ["busca", "itens", "paginacao"]
        assert isinstance(result["paginacao"]["total"], str)
        assert {tuple(item) for item in answer.itens} <= {("cpf", "nome", "atualizado_em")}
    else:
        assert list(result) == ["itens", "paginacao"]
        assert isinstance(result["paginacao"]["total"], int)
        assert {tuple(item) for item in answer.itens} <= {tuple(RELATORIO_KEYS)}


@entry("GET /relatorios")
@entry("GET /relatorios?page=1&rows=25")
def first_page(sender: Sender) -> None:
    for url in ("/relatorios", "/relatorios?page=1&rows=25"):
        answer = sender.get(url)
        assert_strict(answer)
        assert answer.json["result"]["paginacao"] == {"atual": 1, "linhas": 25, "total": 4}


@entry("GET /relatorios?page=1&rows=25&numero_documento={cpf}")
def by_document(sender: Sender) -> None:
    only(f"/relatorios?page=1&rows=25&numero_documento={CPF}", "numero_documento", CPF)(sender)


CHECKS |= {
    "GET /relatorios?page=1&rows=25&tipo_pessoa=Pessoa": only(
        "/relatorios?page=1&rows=25&tipo_pessoa=Pessoa", "tipo_pessoa", "Pessoa"
    ),
    "GET /relatorios?page=1&rows=25&tipo_pessoa=EMPRESA": only(
        "/relatorios?page=1&rows=25&tipo_pessoa=EMPRESA", "tipo_pessoa", "Empresa"
    ),
    "GET /relatorios?page=1&rows=25&nome=consultaPessoaDefault": only(
        "/relatorios?page=1&rows=25&nome=consultaPessoaDefault", "nome", "consultaPessoaDefault"
    ),
    "GET /relatorios?page=1&rows=25&resultado=VALID": only(
        "/relatorios?page=1&rows=25&resultado=VALID", "resultado", "VALID"
    ),
    "GET /relatorios?page=1&rows=25&status=CONCLUIDO": only(
        "/relatorios?page=1&rows=25&status=CONCLUIDO", "status", "CONCLUIDO"
    ),
}


@entry("GET /relatorios?sort=tipo_pessoa=Pessoa")
def sort_with_a_value(sender: Sender) -> None:
    answer = sender.get("/relatorios?sort=tipo_pessoa=Pessoa")
    assert answer.keys == ["sort"]
    assert ", ".join(RELATORIO_KEYS) in answer.json["message"]


@entry("GET /relatorios?page=1&limit=25&sort=-atualizado_em")
def limit(sender: Sender) -> None:
    assert sender.get("/relatorios?page=1&limit=25&sort=-atualizado_em").body == sender.get("/relatorios").body


@entry("GET /relatorios?numero_documento={cnpj}&tipo_pessoa=Empresa&numero={uuid}")
def one_company(sender: Sender) -> None:
    answer = sender.get(f"/relatorios?numero_documento={CNPJ}&tipo_pessoa=Empresa&numero={UUID}")
    assert answer.json["result"]["paginacao"] == {"atual": 1, "linhas": 25, "total": 1}
    assert [item["numero"] for item in answer.itens] == [UUID]


@entry("GET /relatorios with a JSON body")
def json_body(sender: Sender) -> None:
    assert sender.get("/relatorios", body=b'{"page": 2, "rows": "x"}').body == sender.get("/relatorios").body


@entry("GET /pessoas?cpf={cpf}")
def one_person(sender: Sender) -> None:
    answer = sender.get(f"/pessoas?cpf={CPF}")
    assert_strict(answer)
    assert answer.json["result"]["paginacao"] == {"atual": 1, "linhas": 25, "total": "1"}


@entry("GET /pessoas?page=1&rows=25&busca={part of a name, or first digits of a CPF}")
def search(sender: Sender) -> None:
    for text, shown in (("mar", "mar"), ("Silva", "Silva"), (CPF[:4], CPF[:4]), ("s%C3%ADl%20mar", "síl mar")):
        answer = sender.get(f"/pessoas?page=1&rows=25&busca={text}")
        assert_strict(answer)
        assert [item["nome"] for item in answer.itens] == ["Maria da Silva"]
        assert answer.json["result"]["busca"] == shown


@entry("GET /pessoas?nome={name}&page=1&rows=25&sort=nome")
def people_by_name(sender: Sender) -> None:
    answer = sender.get("/pessoas?nome=Maria+da+Silva&page=1&rows=25&sort=nome")
    assert [item["cpf"] for item in answer.itens] == [CPF]


@entry("GET /usuario")
def profile(sender: Sender) -> None:
    answer = sender.get("/usuario")
    assert answer.status == 200
    assert answer.json["result"]["api_token"] == sender.token
    assert isinstance(answer.json["result"]["id_organizacao"], str)
    assert int(answer.json["result"]["id_organizacao"]) > 0


@entry("GET /relatorios, /pessoas, /usuario with a wrong token, and without any")
def wrong_token(sender: Sender) -> None:
    answers = [
        sender.get_as(token, path)
        for token in (None, "", "Bearer x", sender.token[:-1])
        for path in ("/relatorios", "/pessoas", "/usuario")
    ]
    assert {answer.status for answer in answers} == {401}
    assert len({answer.body for answer in answers}) == 1


@entry("GET /{uuid} with a good token")
def unknown_path(sender: Sender) -> None:
    answer = sender.get(f"/{UUID}")
    assert list(answer.json) == ["error", "message", "status_code"]
    assert answer.json["status_code"] == answer.status == 404


@entry("GET /usuarios without a token")
def unknown_path_without_a_token(sender: Sender) -> None:
    assert sender.get_as(None, "/usuarios").status == 404


@entry("GET /health without a token")
def health(sender: Sender) -> None:
    answer = sender.get_as(None, "/health")
    assert answer.status == 200
    assert isinstance(answer.json, dict)


@entry("GET /relatorios with Authorization alone (no Accept, no Content-Type)")
def authorization_alone(sender: Sender) -> None:
    assert not sender.headers
    assert_strict(sender.get("/relatorios"))


@pytest.fixture
def sender(store: Store, account: Account, client: NewClient) -> Sender:
    store.write(
        account,
        [
            relatorio(1, numero_documento=CPF, nome_pessoa="Maria da Silva", atualizado_em=NOON + 9),
            relatorio(2, numero_documento=cpf(7), nome_pessoa="José", nome="outraMatriz", status="PENDENTE"),
            relatorio(3, numero_documento=cpf(8), nome_pessoa="Ana", resultado=None, status="EM ANALISE"),
            empresa(4, numero=UUID, numero_documento=CNPJ, resultado="INVALID"),
        ],
    )
    return Sender(account.token, client)


@pytest.mark.parametrize("number", range(len(ENTRIES)), ids=[entry["send"] for entry in ENTRIES])
def test_requests_of_published_clients_are_answered_as_they_expect(sender: Sender, number: int) -> None:
    sent = ENTRIES[number]
    assert sent["send"] in CHECKS, "this entry has no check"
    CHECKS[sent["send"]](Sender(sender.token, sender.new, sent.get("headers", {})))


def test_every_check_belongs_to_an_entry() -> None:
    assert sorted(CHECKS) == sorted(entry["send"] for entry in ENTRIES)
