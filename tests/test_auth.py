import os
import re
import stat
import string
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from errno import ENOSPC
from pathlib import Path

import pytest

from laudo.server import accounts, auth
from laudo.server.accounts import Level
from laudo.server.auth import AuthError, Caller
from laudo.server.database import Database

KEY = bytes(range(32))
NOW = 1_800_000_000_000
TOKEN = "a-token-from-elsewhere"
OURS = auth.derived_token(KEY, "test")


@pytest.fixture
def store(database: Database) -> Database:
    with database.transaction() as connection:
        accounts.create_organizacao(connection, "Modelo", webhook_url="https://example.com/hook")
        accounts.create_usuario(connection, 1, email="ana@example.com", nome="Ana")
        accounts.create_token(connection, 1, auth.hash_token(KEY, TOKEN), now_ms=NOW, expires_at=NOW + 1000)
    return database


def ask(store: Database, token: str = TOKEN, *, key: bytes = KEY, now_ms: int = NOW) -> Caller | None:
    with store.snapshot() as connection:
        return auth.caller(connection, auth.hash_token(key, token), now_ms=now_ms)


# Tokens.


def test_a_new_token_is_prefix_32_characters_and_checksum() -> None:
    assert re.fullmatch(r"laudo_[0-9A-Za-z]{38}", auth.new_token())


def test_new_tokens_differ() -> None:
    assert len({auth.new_token() for _ in range(1000)}) == 1000


def test_a_new_token_can_be_presented() -> None:
    token = auth.new_token()
    assert auth.presented(token) == token


def test_blanks_around_a_token_are_trimmed() -> None:
    assert auth.presented(f" \t{TOKEN}\t ") == TOKEN


def test_any_wrong_character_in_our_token_is_noticed() -> None:
    token = auth.new_token()
    for place in range(len(auth.PREFIX), len(token)):
        for character in string.ascii_letters + string.digits:
            changed = token[:place] + character + token[place + 1 :]
            assert changed == token or auth.presented(changed) is None


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        " ",
        "x" * 15,
        "x" * 201,
        "Bearer abcdefghijkl",
        "abcdefgh,ijklmnop",
        "abcdefgh, ijklmnop",
        *(f"abcdefgh{character}ijklmnop" for character in "\t\n\0\x7f\xe9"),
        "\xa0abcdefghijklmno",
        "laudo_",
        "laudo_abcdefgh",
        "laudo_" + "0" * 38,
        OURS + "0",
        OURS[:-1],
        OURS.replace("laudo_", "laudo_laudo_"),
    ],
)
def test_what_cannot_be_a_token_needs_no_store(header: str | None) -> None:
    assert auth.presented(header) is None


def test_what_cannot_be_a_token_is_not_remembered_where_it_is_long() -> None:
    tracemalloc.start()
    try:
        for number in range(500):
            assert auth.presented(f"{auth.PREFIX}{number:020000}") is None
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("header", ["!" * 16, "~" * 200, "Laudo_abcdefghij", "a.b-c_d/e+f/g-h=="])
def test_tokens_made_elsewhere_can_be_presented(header: str) -> None:
    assert auth.presented(header) == auth.adopted_token(header) == header


def test_a_derived_token_depends_on_key_and_purpose_alone() -> None:
    token = auth.derived_token(KEY, "demo")
    assert token == auth.derived_token(KEY, "demo")
    assert token != auth.derived_token(KEY, "other")
    assert token != auth.derived_token(bytes(32), "demo")
    assert auth.presented(token) == token


@pytest.mark.parametrize("text", ["abcdefghijklmnop", "~" * 200, "abcdefghijklmnop\r\n", OURS])
def test_a_token_made_elsewhere_can_be_adopted(text: str) -> None:
    assert auth.adopted_token(text) == text.strip()


@pytest.mark.parametrize("text", ["", "abcdefghijklmno", "x" * 201, "abcdefgh ijklmnop", "abcdefgh,ijklmnop", "é" * 20])
def test_a_weak_or_unsendable_token_is_not_adopted(text: str) -> None:
    with pytest.raises(AuthError, match="16 to 200 visible ASCII characters") as error:
        auth.adopted_token(text)
    assert not text or text not in str(error.value)


def test_a_damaged_token_of_ours_is_not_adopted() -> None:
    token = auth.new_token()[:-1] + "!"
    with pytest.raises(AuthError, match="checksum") as error:
        auth.adopted_token(token)
    assert token not in str(error.value)


def test_a_hash_depends_on_the_key() -> None:
    assert auth.hash_token(KEY, TOKEN) == auth.hash_token(KEY, TOKEN)
    assert auth.hash_token(KEY, TOKEN) != auth.hash_token(bytes(32), TOKEN)
    assert len(auth.hash_token(KEY, TOKEN)) == 32


# Callers.


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
    assert ask(store, auth.new_token()) is None


def test_another_key_knows_no_token(store: Database) -> None:
    assert ask(store, key=bytes(32)) is None


def test_a_token_ends_at_its_instant(store: Database) -> None:
    assert ask(store, now_ms=NOW + 999) is not None
    assert ask(store, now_ms=NOW + 1000) is None


def test_a_revoked_token_has_no_caller(store: Database) -> None:
    with store.transaction() as connection:
        accounts.revoke_token(connection, 1, now_ms=NOW)
    assert ask(store) is None


@pytest.mark.parametrize("level", Level)
def test_who_is_disabled_has_no_caller_until_enabled_again(store: Database, level: Level) -> None:
    with store.transaction() as connection:
        accounts.disable(connection, level, 1)
    assert ask(store) is None
    with store.transaction() as connection:
        accounts.enable(connection, level, 1)
    assert ask(store) is not None


# The key.


def test_a_key_is_made_on_first_use_and_then_stays(tmp_path: Path) -> None:
    file = tmp_path / "laudo.key"
    assert auth.make_key(file)
    key = auth.load_key(file)
    assert len(key) == 32
    assert file.read_text() == key.hex() + "\n"
    assert not auth.make_key(file)
    assert auth.load_key(file) == key


def test_a_key_is_readable_by_its_owner_only_and_nothing_else_is_left(tmp_path: Path) -> None:
    file = tmp_path / "laudo.key"
    auth.make_key(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_key_that_finds_no_room_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "there.key"
    auth.make_key(there)

    def full(_: int) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AuthError, match="No space left on device"):
        auth.make_key(tmp_path / "laudo.key")
    assert not auth.make_key(there)
    assert list(tmp_path.iterdir()) == [there]


def test_processes_that_begin_at_once_agree_on_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has found no key before the first of them has made one."""
    file, written = tmp_path / "laudo.key", threading.Barrier(8)

    def wait(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            written.wait(60)

    def begin(_: int) -> tuple[bool, bytes]:
        return auth.make_key(file), auth.load_key(file)

    monkeypatch.setattr(os, "fsync", wait)
    with ThreadPoolExecutor(8) as pool:
        begun = list(pool.map(begin, range(8)))
    assert sorted(made for made, _ in begun) == [*[False] * 7, True]
    assert {key for _, key in begun} == {auth.load_key(file)}


def test_a_missing_key_is_not_made_unasked(tmp_path: Path) -> None:
    with pytest.raises(AuthError, match="does not exist"):
        auth.load_key(tmp_path / "laudo.key")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "laudo.key"
    auth.make_key(file)
    file.chmod(mode)
    with pytest.raises(AuthError, match="can be read by others; hint: chmod 600"):
        auth.load_key(file)


@pytest.mark.parametrize(
    ("mode", "owner", "is_taken"),
    [
        (0o440, 0, True),
        (0o640, 0, True),
        (0o660, 0, False),
        (0o444, 0, False),
        (0o440, 10001, False),
        (0o440, 7, False),
    ],
)
def test_a_key_that_root_hands_out_by_group_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, owner: int, *, is_taken: bool
) -> None:
    file = tmp_path / "laudo.key"
    auth.make_key(file)
    monkeypatch.setattr(os, "geteuid", lambda: 10001)
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result((0o100000 | mode, 0, 0, 1, owner, 10001, 65, 0, 0, 0)))
    with nullcontext() if is_taken else pytest.raises(AuthError, match="can be read by others"):
        auth.load_key(file)


def test_root_keeps_its_own_key_from_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "laudo.key"
    auth.make_key(file)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result((0o100640, 0, 0, 1, 0, 0, 65, 0, 0, 0)))
    with pytest.raises(AuthError, match="can be read by others"):
        auth.load_key(file)


@pytest.mark.parametrize("content", [b"", b"00" * 31, b"00" * 33, b"zz" * 32, b"00" * 32 + b"\n\n", b"\xff" * 64])
def test_a_malformed_key_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "laudo.key"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(AuthError, match="is not 64 hexadecimal digits") as error:
        auth.load_key(file)
    assert "0000" not in str(error.value).replace(str(file), "")


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AuthError, match="cannot make the key file"):
        auth.make_key(tmp_path / "none" / "laudo.key")


def test_a_key_may_be_a_link_as_mounted_secrets_are(tmp_path: Path) -> None:
    auth.make_key(tmp_path / "real.key")
    (tmp_path / "laudo.key").symlink_to(tmp_path / "real.key")
    assert not auth.make_key(tmp_path / "laudo.key")
    assert auth.load_key(tmp_path / "laudo.key") == auth.load_key(tmp_path / "real.key")
