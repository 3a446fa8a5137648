"""Every unauthorized request gets the same answer, whatever is wrong with its token."""

import base64
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from factories import Account, Store, relatorio
from laudo.core.sql import Statement
from laudo.server import accounts, keys
from laudo.server.accounts import Level
from laudo.server.tokens import new_token
from wsgi import Answer, Client, NewClient

ENDPOINTS = ("/relatorios", "/pessoas", "/usuario")
ADOPTED = "chave-de-outro-servico.2f9c"
REFUSAL = (
    '{"error":"Unauthorized",'
    '"message":"Falha na autenticação. Verifique o token utilizado e se o acesso foi liberado.",'
    '"status_code":401}'
).encode()
HEADERS = {
    "content-type": "application/json; charset=utf-8",
    "content-length": str(len(REFUSAL)),
    "www-authenticate": 'Token realm="api"',
    "x-content-type-options": "nosniff",
}


def bad_headers(store: Store, account: Account) -> Iterator[str | None]:
    """Give values of Authorization that must be refused, although most of them look like a valid one."""
    token = account.token
    yield None
    yield from ("", " ", "\t", "Bearer", "Bearer ", "Bearer x", "Token", "null", "undefined", "{token}", "<API_TOKEN>")
    yield from (f"{word} {token}" for word in ("Bearer", "bearer", "Token", "Basic", "Digest", "laudo", "x"))
    yield f"Basic {base64.b64encode(f'{token}:'.encode()).decode()}"
    yield from (f"{token},{token}", f"{token}, {token}", f"{token},", f",{token}", f"{token},x", f"x, {token}")
    yield from (f"{token}{end}" for end in (";", ".", "=", "==", '"', "'", "0", "\x00", "\r\nX: y", f" {token}", " x"))
    yield from (f"{start}{token}" for start in ('"', "'", "=", "0", "\x00", "\u00a0", "\ufeff", "laudo_"))
    yield from (token.upper(), token.lower(), token.swapcase(), token[::-1], token.replace("_", "-"), token * 3)
    yield from (token[:end] for end in range(1, len(token), 3))
    yield from (token[start:] for start in range(1, 10))
    yield from _near_misses(token)
    yield from _near_misses(ADOPTED)
    yield from (f"{token[:20]}{chr(code)}{token[20:]}" for code in (*range(33), 0x7F, 0x80, 0xA0, 0xE9, 0xFF))
    yield from ("é" * 40, "ｌ" + token[1:], "token-secreto-ç", "🙂" * 20, "\u200b" + token)
    yield from ("x" * length for length in (1, 7, 8, 16, 44, 200, 201, 10_000, 100_000))
    yield from (new_token() for _ in range(5))
    yield from _ended_tokens(store, account)


def _near_misses(token: str) -> Iterator[str]:
    for place, character in enumerate(token):
        yield f"{token[:place]}{'z' if character == 'y' else 'y'}{token[place + 1 :]}"


def _ended_tokens(store: Store, account: Account) -> Iterator[str]:
    """Give tokens that were valid before they expired, were revoked, or their owner was disabled."""
    id_token, revoked = store.token(account.id_usuario)
    store.revoke(id_token)
    yield revoked
    yield store.token(account.id_usuario, now_ms=1, expires_at=2)[1]
    for level in Level:
        other = store.account()
        number = {
            Level.ORGANIZATION: other.id_organizacao,
            Level.ACCOUNT: other.id_conta,
            Level.USER: other.id_usuario,
        }[level]
        store.disable(level, number)
        yield other.token


def assert_refused(answer: Answer, *, body: bytes = REFUSAL) -> None:
    assert (answer.status, answer.stable_headers, answer.body) == (401, HEADERS, body)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_bad_header_gets_the_same_refusal_on_every_endpoint(
    endpoint: str, store: Store, account: Account, client: NewClient
) -> None:
    store.token(account.id_usuario, text=ADOPTED)
    store.write(account, [relatorio(1)])
    headers = list(bad_headers(store, account))
    assert len(set(headers)) >= 200
    for header in headers:
        refused = client(header)
        assert_refused(refused.get(endpoint))
        assert_refused(refused.head(endpoint), body=b"")
    for good in (account.token, ADOPTED):
        assert client(good).get(endpoint).status == 200


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("query", ["", "page=0", "nome=%ff", "cpf=52998224725", "&".join(["x=1"] * 40)])
def test_a_refusal_does_not_depend_on_the_query(endpoint: str, query: str, client: NewClient) -> None:
    assert_refused(client("x" * 20).get(f"{endpoint}?{query}"))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("around", ["{}", " {}", "{} ", "\t{}\t", "  {}  "])
def test_blanks_around_a_token_are_trimmed(endpoint: str, around: str, account: Account, client: NewClient) -> None:
    assert client(around.format(account.token)).get(endpoint).status == 200


def test_a_token_that_has_not_expired_is_accepted(store: Store, account: Account, client: NewClient) -> None:
    in_an_hour = time.time_ns() // 1_000_000 + 3_600_000
    _, token = store.token(account.id_usuario, expires_at=in_an_hour)
    assert client(token).get("/usuario").status == 200


def test_a_token_that_a_restored_store_gives_to_another_user_is_read_anew(
    store: Store, account: Account, acme: Client, client: NewClient
) -> None:
    other = store.account(nome="Outra")
    store.write(other, [relatorio(1)])
    assert [acme.get(path).status for path in ("/usuario", "/relatorios")] == [200, 200]
    ids = (other.id_organizacao, other.id_conta, other.id_usuario, account.id_token)
    text = "UPDATE token SET id_organizacao = ?, id_conta = ?, id_usuario = ? WHERE id_token = ?"
    store.database.fetch(Statement(text, ids))
    assert acme.get("/usuario").status == 401
    assert acme.get("/relatorios").body == client(other.token).get("/relatorios").body
    assert f"analista{other.id_conta}@example.com" in acme.get("/usuario").body.decode()


def test_revoking_one_token_leaves_the_users_other_tokens_valid(store: Store, account: Account, acme: Client) -> None:
    id_token, _ = store.token(account.id_usuario)
    store.revoke(id_token)
    assert acme.get("/usuario").status == 200
    store.revoke(account.id_token)
    assert_refused(acme.get("/usuario"))


def test_a_token_reassigned_by_a_restore_shows_only_its_new_owner(store: Store, account: Account, acme: Client) -> None:
    """Only the first request may be refused."""
    other = store.account(account.id_organizacao)
    store.write(other, [relatorio(1)])
    assert acme.get("/usuario").json["result"]["email"] == "analista1@example.com"
    assert acme.get("/relatorios").total == 0
    text = "UPDATE token SET id_conta = ?, id_usuario = ? WHERE id_token = ?"
    with store.database.transaction() as connection:
        connection.fetch(Statement(text, (other.id_conta, other.id_usuario, account.id_token)))
    asked = [acme.get("/usuario") for _ in range(3)]
    assert [answer.status for answer in asked[1:]] == [200, 200]
    shown = {answer.json["result"]["email"] for answer in asked if answer.status == 200}
    assert (shown, acme.get("/relatorios").total) == ({"analista2@example.com"}, 1)


@pytest.mark.parametrize("level", Level)
def test_disabling_and_enabling_take_effect_with_the_next_request(
    level: Level, store: Store, account: Account, acme: Client
) -> None:
    number = getattr(account, level.value[2])
    assert acme.get("/relatorios").status == 200
    store.disable(level, number)
    assert_refused(acme.get("/relatorios"))
    store.enable(level, number)
    assert acme.get("/relatorios").status == 200


def test_disabling_an_account_or_user_refuses_only_its_own_tokens(
    store: Store, account: Account, client: NewClient
) -> None:
    with store.database.transaction() as connection:
        colleague = accounts.create_usuario(connection, account.id_conta, email="outra@example.com", nome="Outra")
    sister = store.account(account.id_organizacao)
    of_account, of_sister, of_colleague = account.token, sister.token, store.token(colleague.id_usuario)[1]
    for level, number, refused in (
        (Level.ACCOUNT, account.id_conta, {of_account, of_colleague}),
        (Level.ACCOUNT, sister.id_conta, {of_sister}),
        (Level.USER, account.id_usuario, {of_account}),
        (Level.USER, colleague.id_usuario, {of_colleague}),
    ):
        store.disable(level, number)
        for token in (of_account, of_sister, of_colleague):
            assert client(token).get("/relatorios").status == (401 if token in refused else 200)
        store.enable(level, number)


def test_a_worker_says_once_that_its_key_file_may_be_the_wrong_one(
    account: Account, client: NewClient, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.key"
    keys.make(other)
    service = client(account.token, key_file=str(other))
    assert {service.get("/usuario").status for _ in range(2)} == {401}
    assert capfd.readouterr().err == ""
    assert {service.get("/usuario").status for _ in range(5)} == {401}
    assert capfd.readouterr().err == (
        "tokens: every token of laudo's form was refused since this worker started; if they should work, "
        "its key file is not the one under which they were created\n"
    )


def test_a_worker_that_has_admitted_somebody_does_not_doubt_its_key_file(
    account: Account, client: NewClient, capfd: pytest.CaptureFixture[str]
) -> None:
    assert client(account.token).get("/usuario").status == 200
    assert [client(new_token()).get("/usuario").status for _ in range(5)] == [401] * 5
    assert capfd.readouterr().err == ""


def test_refused_tokens_made_elsewhere_cast_no_doubt_on_the_key_file(
    client: NewClient, capfd: pytest.CaptureFixture[str]
) -> None:
    assert [client(ADOPTED).get("/usuario").status for _ in range(5)] == [401] * 5
    assert capfd.readouterr().err == ""
