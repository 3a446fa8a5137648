"""GET /usuario: the profile of the caller."""

import pytest

from factories import Account, Store
from laudo.server import accounts
from wsgi import Client, NewClient


def test_it_shows_the_caller_and_the_presented_token_in_the_contracts_order(acme: Client, account: Account) -> None:
    assert acme.get("/usuario").body.decode() == (
        f'{{"result":{{"api_token":"{account.token}","email":"analista{account.id_conta}@example.com",'
        '"nome_usuario":"Analista","webhook_url":"https://acme.example/webhook",'
        f'"nome_organizacao":"Acme Validações","id_organizacao":"{account.id_organizacao}"}},"status_code":200}}'
    )


def test_each_user_is_shown_with_their_own_name_and_account(store: Store, account: Account, client: NewClient) -> None:
    with store.database.transaction() as connection:
        colleague = accounts.create_usuario(connection, account.id_conta, email="outra@example.com", nome="Outra")
    sister = store.account(account.id_organizacao, webhook_url="https://sister.example/webhook")
    tokens = (account.token, store.token(colleague.id_usuario)[1], sister.token)
    shown = [client(token).get("/usuario").json["result"] for token in tokens * 2]
    assert [(each["email"], each["nome_usuario"], each["webhook_url"]) for each in shown] == [
        (f"analista{account.id_conta}@example.com", "Analista", "https://acme.example/webhook"),
        ("outra@example.com", "Outra", "https://acme.example/webhook"),
        (f"analista{sister.id_conta}@example.com", "Analista", "https://sister.example/webhook"),
    ] * 2


def test_the_answer_forbids_caching(acme: Client) -> None:
    headers = acme.get("/usuario").stable_headers
    assert headers.pop("content-length").isdigit()
    assert headers == {
        "content-type": "application/json; charset=utf-8",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }


def test_webhook_url_is_empty_when_none_is_configured(store: Store, client: NewClient) -> None:
    assert client(store.account().token).get("/usuario").json["result"]["webhook_url"] == ""


def test_the_profile_echoes_the_token_of_the_request(store: Store, account: Account, client: NewClient) -> None:
    tokens = [account.token, store.token(account.id_usuario)[1], store.token(account.id_usuario, text="x" * 16)[1]]
    shown = [client(token).get("/usuario").json["result"]["api_token"] for token in tokens]
    assert shown == tokens


def test_blanks_around_the_token_are_not_echoed(account: Account, client: NewClient) -> None:
    shown = client(f" \t{account.token} ").get("/usuario").json["result"]["api_token"]
    assert shown == account.token


@pytest.mark.parametrize("query", ["page=1", "x", "api_token=1", "limit=1", "=", "%ff", "page=1&page=1"])
def test_any_parameter_is_refused(empty: Client, query: str) -> None:
    answer = empty.get(f"/usuario?{query}")
    assert answer.status == 400
    assert answer.json["validation"]["source"] == "query"


def test_a_refused_parameter_is_named(empty: Client) -> None:
    answer = empty.get("/usuario?page=1&rows=25")
    assert answer.keys == ["page", "rows"]
    assert "não aceita parâmetros" in answer.json["message"]


def test_a_question_mark_alone_is_no_parameter(empty: Client) -> None:
    assert empty.get("/usuario?").body == empty.get("/usuario").body
