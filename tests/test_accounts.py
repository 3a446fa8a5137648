from collections.abc import Iterator
from contextlib import closing

import apsw
import pytest

from laudo.core.sql import Statement
from laudo.server import accounts
from laudo.server.accounts import AccountError, Conta, Level, Organizacao, Token, Usuario
from laudo.server.database import Connection, Database
from laudo.server.stores import file_path

NOW = 1_800_000_000_000
HASH = bytes(range(32))


@pytest.fixture
def connection(database: Database) -> Iterator[Connection]:
    with database.transaction() as connection:
        yield connection


def test_a_new_organization_starts_with_one_account(connection: Connection) -> None:
    made = accounts.create_organizacao(connection, "  Modelo ", webhook_url="https://example.com/hook")
    organizacao = Organizacao(1, "Modelo", enabled=True)
    conta = Conta(1, 1, "principal", "https://example.com/hook", enabled=True)
    assert made == (organizacao, conta)
    assert accounts.organizacoes(connection) == [organizacao]
    assert accounts.contas(connection) == [conta]


def test_ids_of_accounts_and_users_are_unique_over_organizations(connection: Connection) -> None:
    for nome in ("Um", "Dois"):
        accounts.create_organizacao(connection, nome)
    third = accounts.create_conta(connection, 1, "Filial")
    users = [accounts.create_usuario(connection, number, email="a@b.c", nome="Ana") for number in (1, 2, 3)]
    assert third == Conta(1, 3, "Filial", "", enabled=True)
    assert [(user.id_organizacao, user.id_conta, user.id_usuario) for user in users] == [
        (1, 1, 1),
        (2, 2, 2),
        (1, 3, 3),
    ]


def test_a_user_belongs_to_the_organization_of_the_account(connection: Connection) -> None:
    accounts.create_organizacao(connection, "Um")
    accounts.create_organizacao(connection, "Dois")
    user = accounts.create_usuario(connection, 2, email="ana@example.com", nome="Ana")
    assert user == Usuario(2, 2, 1, "ana@example.com", "Ana", enabled=True)
    assert accounts.usuarios(connection) == [user]


def test_a_user_may_have_several_tokens(connection: Connection) -> None:
    accounts.create_organizacao(connection, "Um")
    accounts.create_usuario(connection, 1, email="a@b.c", nome="Ana")
    first = accounts.create_token(connection, 1, HASH, now_ms=NOW)
    second = accounts.create_token(connection, 1, HASH[::-1], now_ms=NOW, expires_at=NOW + 1)
    assert first == Token(1, 1, 1, 1, NOW, expires_at=None, revoked_at=None)
    assert second == Token(2, 1, 1, 1, NOW, expires_at=NOW + 1, revoked_at=None)
    assert accounts.tokens(connection) == [first, second]


def test_numbers_of_lost_rows_are_not_given_again(connection: Connection) -> None:
    """Otherwise whoever gets them would have the reports and tokens of the former ones."""
    for nome in ("Um", "Dois"):
        accounts.create_organizacao(connection, nome)
    accounts.create_usuario(connection, 2, email="a@b.c", nome="Ana")
    accounts.create_token(connection, 1, HASH, now_ms=NOW)
    connection.run_script("DELETE FROM usuario; DELETE FROM conta WHERE id_conta = 2")
    assert accounts.create_usuario(connection, 1, email="a@b.c", nome="Ana").id_usuario == 2
    assert accounts.create_conta(connection, 1, "Filial").id_conta == 3
    connection.run_script(
        "INSERT INTO facet (id_organizacao, id_conta, facet, nome, tipo_pessoa, status, pendente_validacao_manual)"
        " SELECT 1, 3, 1, '', '', '', 0; DELETE FROM conta WHERE id_conta = 3"
    )
    assert accounts.create_conta(connection, 1, "Filial").id_conta == 4


@pytest.mark.engines("sqlite", reason="PostgreSQL lets nobody delete the row of an organization that has accounts")
def test_the_number_of_a_lost_organization_is_not_given_again(database: Database, store_url: str) -> None:
    with database.transaction() as connection:
        accounts.create_organizacao(connection, "Um")
    with closing(apsw.Connection(str(file_path(store_url)))) as shell:  # It ignores foreign keys.
        shell.execute("DELETE FROM organizacao")
    with database.transaction() as connection:
        made, conta = accounts.create_organizacao(connection, "Dois")
    assert (made.id_organizacao, conta.id_conta) == (2, 2)


def test_a_revoked_token_keeps_the_instant_of_its_first_revocation(connection: Connection) -> None:
    accounts.create_organizacao(connection, "Um")
    accounts.create_usuario(connection, 1, email="a@b.c", nome="Ana")
    accounts.create_token(connection, 1, HASH, now_ms=NOW)
    accounts.create_token(connection, 1, HASH[::-1], now_ms=NOW)
    accounts.revoke_token(connection, 1, now_ms=NOW + 5)
    accounts.revoke_token(connection, 1, now_ms=NOW + 9)
    assert [token.revoked_at for token in accounts.tokens(connection)] == [NOW + 5, None]


def test_a_token_is_active_disabled_expired_or_revoked() -> None:
    def state(expires_at: int | None, revoked_at: int | None, *, disabled: bool = False) -> str:
        return Token(1, 1, 1, 1, NOW, expires_at, revoked_at).state(NOW, disabled=disabled)

    assert state(None, None) == "active"
    assert state(NOW + 1, None) == "active"
    assert state(NOW, None) == "expired"
    assert state(NOW, NOW) == "revoked"
    assert state(None, None, disabled=True) == "disabled"
    assert state(NOW, None, disabled=True) == "expired"


def test_a_token_cannot_be_created_twice_even_after_revocation(connection: Connection) -> None:
    accounts.create_organizacao(connection, "Um")
    accounts.create_usuario(connection, 1, email="a@b.c", nome="Ana")
    accounts.create_token(connection, 1, HASH, now_ms=NOW)
    accounts.revoke_token(connection, 1, now_ms=NOW)
    with pytest.raises(AccountError, match="already has this token"):
        accounts.create_token(connection, 1, HASH, now_ms=NOW)


def test_an_expired_token_cannot_be_created(connection: Connection) -> None:
    with pytest.raises(AccountError, match="already have expired"):
        accounts.create_token(connection, 1, HASH, now_ms=NOW, expires_at=NOW)


@pytest.mark.parametrize("level", Level)
def test_disabling_and_enabling_touch_one_row_and_may_be_repeated(connection: Connection, level: Level) -> None:
    for nome in ("Um", "Dois"):
        id_conta = accounts.create_organizacao(connection, nome)[1].id_conta
        accounts.create_usuario(connection, id_conta, email="a@b.c", nome="Ana")

    def enabled() -> list[bool]:
        match level:
            case Level.ORGANIZATION:
                return [one.enabled for one in accounts.organizacoes(connection)]
            case Level.ACCOUNT:
                return [one.enabled for one in accounts.contas(connection)]
            case Level.USER:
                return [one.enabled for one in accounts.usuarios(connection)]

    accounts.set_enabled(connection, level, 1, enabled=False)
    accounts.set_enabled(connection, level, 1, enabled=False)
    assert enabled() == [False, True]
    accounts.set_enabled(connection, level, 1, enabled=True)
    assert enabled() == [True, True]


def test_an_unknown_id_is_named_with_a_hint(connection: Connection) -> None:
    for level in Level:
        with pytest.raises(AccountError) as error:
            accounts.set_enabled(connection, level, 7, enabled=False)
        assert str(error.value) == f"there is no {level.value[0]} 7; hint: laudo {level.value[0]} list"
    with pytest.raises(AccountError, match="there is no organization 7"):
        accounts.create_conta(connection, 7, "Filial")
    with pytest.raises(AccountError, match="there is no account 7"):
        accounts.create_usuario(connection, 7, email="a@b.c", nome="Ana")
    with pytest.raises(AccountError, match="there is no user 7"):
        accounts.create_token(connection, 7, HASH, now_ms=NOW)
    with pytest.raises(AccountError, match="there is no token 7"):
        accounts.revoke_token(connection, 7, now_ms=NOW)


@pytest.mark.parametrize("nome", ["", "  ", "x" * 201, "a\nb", "a\x1b[31mb"])
def test_a_name_must_be_visible_text(connection: Connection, nome: str) -> None:
    with pytest.raises(AccountError, match="1 to 200 characters"):
        accounts.create_organizacao(connection, nome)


@pytest.mark.parametrize("nome", ["a\u00a0b", "\U0001f469\u200d\U0001f52c"])
def test_a_name_is_any_text_that_a_report_may_hold(connection: Connection, nome: str) -> None:
    assert accounts.create_organizacao(connection, nome)[0].nome_organizacao == nome


@pytest.mark.parametrize("email", ["", "ana", "ana@", "@b.c", "a b@c.d", "a@b@c", "a\x1b@b.c", "a" * 251 + "@b.c"])
def test_an_invalid_email_is_refused(connection: Connection, email: str) -> None:
    accounts.create_organizacao(connection, "Um")
    with pytest.raises(AccountError, match="an e-mail address must look like"):
        accounts.create_usuario(connection, 1, email=email, nome="Ana")


@pytest.mark.parametrize(
    "url", ["example.com", "ftp://example.com", "https://", "https://a b", "https://a/ação", "https://" + "x" * 2000]
)
def test_an_invalid_webhook_url_is_refused(connection: Connection, url: str) -> None:
    with pytest.raises(AccountError, match=r"must begin with https://.* visible ASCII"):
        accounts.create_organizacao(connection, "Um", webhook_url=url)


def test_a_webhook_url_may_have_2000_characters(connection: Connection) -> None:
    url = "https://example.com/".ljust(2000, "x")
    _, conta = accounts.create_organizacao(connection, "Um", webhook_url=url)
    assert conta.webhook_url == url
    with pytest.raises(AccountError, match="2000"):
        accounts.create_conta(connection, 1, "Dois", webhook_url=url + "x")


def test_a_failed_creation_writes_nothing(database: Database) -> None:
    with pytest.raises(AccountError), database.transaction() as connection:
        accounts.create_organizacao(connection, "Um", webhook_url="nowhere")
    with database.snapshot() as connection:
        assert accounts.organizacoes(connection) == []


def test_the_repr_of_a_token_never_shows_its_hash(connection: Connection) -> None:
    accounts.create_organizacao(connection, "Um")
    accounts.create_usuario(connection, 1, email="a@b.c", nome="Ana")
    token = accounts.create_token(connection, 1, HASH, now_ms=NOW)
    assert HASH.hex() not in repr(token)
    assert repr(HASH) not in repr(token)
    assert connection.fetch(Statement("SELECT hash FROM token")) == [(HASH,)]
