import pytest

from laudo.server import accounts, callers
from laudo.server.accounts import Level
from laudo.server.callers import Caller, caller_of, has_expired
from laudo.server.database import Database
from laudo.server.tokens import hash_token, new_token

KEY = bytes(range(32))
NOW = 1_800_000_000_000
TOKEN = "a-token-from-elsewhere"


@pytest.fixture
def store(database: Database) -> Database:
    with database.transaction() as connection:
        accounts.create_organizacao(connection, "Modelo", webhook_url="https://example.com/hook")
        accounts.create_usuario(connection, 1, email="ana@example.com", nome="Ana")
        accounts.create_token(connection, 1, hash_token(KEY, TOKEN), now_ms=NOW, expires_at=NOW + 1000)
    return database


def ask(store: Database, token: str = TOKEN, *, key: bytes = KEY, now_ms: int = NOW) -> Caller | None:
    with store.snapshot() as connection:
        return caller_of(connection, hash_token(key, token), now_ms=now_ms)


def test_the_caller_is_the_tokens_owner(store: Database) -> None:
    assert ask(store) == Caller(
        id_organizacao=1,
        id_conta=1,
        id_usuario=1,
        id_token=1,
        email="ana@example.com",
        nome_usuario="Ana",
        webhook_url="https://example.com/hook",
        nome_organizacao="Modelo",
        version_conta=0,
        version_organizacao=0,
        expires_at=NOW + 1000,
    )


def test_a_caller_carries_no_token() -> None:
    assert not {"token", "hash", "api_token"} & set(Caller.__struct_fields__)


def test_an_unknown_token_has_no_caller(store: Database) -> None:
    assert ask(store, new_token()) is None


def test_a_token_is_unknown_under_another_key(store: Database) -> None:
    assert ask(store, key=bytes(32)) is None


def test_a_token_is_valid_until_its_expiry_only(store: Database) -> None:
    assert ask(store, now_ms=NOW + 999) is not None
    assert ask(store, now_ms=NOW + 1000) is None


def test_a_remembered_token_is_valid_until_the_same_instant(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = ask(store)
    assert caller
    for now_ms, expired in ((NOW + 999, False), (NOW + 1000, True)):
        monkeypatch.setattr(callers, "time_ns", lambda now_ms=now_ms: now_ms * 1_000_000)
        assert has_expired(caller) is expired


def test_a_revoked_token_has_no_caller(store: Database) -> None:
    with store.transaction() as connection:
        accounts.revoke_token(connection, 1, now_ms=NOW)
    assert ask(store) is None


@pytest.mark.parametrize("level", Level)
def test_a_token_has_no_caller_while_its_owner_is_disabled(store: Database, level: Level) -> None:
    with store.transaction() as connection:
        accounts.set_enabled(connection, level, 1, enabled=False)
    assert ask(store) is None
    with store.transaction() as connection:
        accounts.set_enabled(connection, level, 1, enabled=True)
    assert ask(store) is not None


def test_the_caller_has_the_texts_of_the_last_update(store: Database) -> None:
    with store.transaction() as connection:
        accounts.update(connection, Level.ORGANIZATION, 1, nome_organizacao="Nova")
        accounts.update(connection, Level.ACCOUNT, 1, webhook_url="")
        accounts.update(connection, Level.USER, 1, email="rui@example.com", nome_usuario="Rui")
    caller = ask(store)
    assert caller
    shown = (caller.nome_organizacao, caller.webhook_url, caller.email, caller.nome_usuario)
    assert shown == ("Nova", "", "rui@example.com", "Rui")
