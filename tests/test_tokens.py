import re
import string
import tracemalloc

import pytest

from laudo.server.tokens import PREFIX, TokenError, adopted_token, derived_token, hash_token, new_token, presented

KEY = bytes(range(32))
TOKEN = "a-token-from-elsewhere"
OURS = derived_token(KEY, "test")


def test_a_new_token_is_prefix_32_characters_and_checksum() -> None:
    assert re.fullmatch(r"laudo_[0-9A-Za-z]{38}", new_token())


def test_new_tokens_differ() -> None:
    assert len({new_token() for _ in range(1000)}) == 1000


def test_a_new_token_can_be_presented() -> None:
    token = new_token()
    assert presented(token) == token


def test_blanks_around_a_token_are_trimmed() -> None:
    assert presented(f" \t{TOKEN}\t ") == TOKEN


def test_any_wrong_character_in_a_laudo_token_is_detected() -> None:
    token = new_token()
    for place in range(len(PREFIX), len(token)):
        for character in string.ascii_letters + string.digits:
            changed = token[:place] + character + token[place + 1 :]
            assert changed == token or presented(changed) is None


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
def test_a_malformed_token_is_rejected(header: str | None) -> None:
    assert presented(header) is None


def test_long_malformed_tokens_are_not_kept_in_memory() -> None:
    tracemalloc.start()
    try:
        for number in range(500):
            assert presented(f"{PREFIX}{number:020000}") is None
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("header", ["!" * 16, "~" * 200, "Laudo_abcdefghij", "a.b-c_d/e+f/g-h=="])
def test_tokens_made_elsewhere_can_be_presented(header: str) -> None:
    assert presented(header) == adopted_token(header) == header


def test_a_derived_token_depends_only_on_key_and_purpose() -> None:
    token = derived_token(KEY, "demo")
    assert token == derived_token(KEY, "demo")
    assert token != derived_token(KEY, "other")
    assert token != derived_token(bytes(32), "demo")
    assert presented(token) == token


@pytest.mark.parametrize("text", ["abcdefghijklmnop", "~" * 200, "abcdefghijklmnop\r\n", OURS])
def test_a_token_made_elsewhere_can_be_adopted(text: str) -> None:
    assert adopted_token(text) == text.strip()


@pytest.mark.parametrize("text", ["", "abcdefghijklmno", "x" * 201, "abcdefgh ijklmnop", "abcdefgh,ijklmnop", "é" * 20])
def test_a_weak_or_unsendable_token_is_not_adopted(text: str) -> None:
    with pytest.raises(TokenError, match="16 to 200 visible ASCII characters") as error:
        adopted_token(text)
    assert not text or text not in str(error.value)


def test_a_damaged_laudo_token_is_not_adopted() -> None:
    token = new_token()[:-1] + "!"
    with pytest.raises(TokenError, match="checksum") as error:
        adopted_token(token)
    assert token not in str(error.value)


def test_a_hash_depends_on_the_key() -> None:
    assert hash_token(KEY, TOKEN) == hash_token(KEY, TOKEN)
    assert hash_token(KEY, TOKEN) != hash_token(bytes(32), TOKEN)
    assert len(hash_token(KEY, TOKEN)) == 32
