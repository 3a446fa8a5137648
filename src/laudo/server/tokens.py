"""Tokens: the one place that makes, checks and hashes them; no repr or error shows one."""

import hmac
import re
import secrets
import string
import zlib
from functools import lru_cache
from typing import Final

PREFIX: Final = "laudo_"
_DIGITS: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_BODY: Final = 32
_CHECKSUM: Final = 6

_MAX_LENGTH: Final = 200
_plausible: Final = re.compile(rf"[!-+\--~]{{16,{_MAX_LENGTH}}}").fullmatch  # visible ASCII without the comma
_ours: Final = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_BODY + _CHECKSUM}}}").fullmatch


class TokenError(Exception):
    """A text cannot be a token; the error says why, and never shows it."""


def presented(header: str | None) -> str | None:
    """Give the token of an Authorization header; None if it cannot be one, so that the store need not be asked."""
    token = (header or "").strip(" \t")
    if len(token) > _MAX_LENGTH:
        return None
    could_be = not _is_damaged(token) if token.startswith(PREFIX) else _plausible(token)
    return token if could_be else None


def hash_token(key: bytes, token: str) -> bytes:
    """HMAC-SHA-256: what the store holds in place of a token (32 bytes)."""
    return hmac.digest(key, token.encode(), "sha256")


def new_token() -> str:
    return _with_checksum("".join(secrets.choice(_DIGITS) for _ in range(_BODY)))


def derived_token(key: bytes, purpose: str) -> str:
    """Make the token that belongs to this key and purpose: always the same, so that it need not be stored."""
    number = int.from_bytes(hmac.digest(key, f"token:{purpose}".encode(), "sha256"), "big")
    return _with_checksum(_base62(number, _BODY))


def adopted_token(text: str) -> str:
    """Check a token made elsewhere, 16–200 characters; raises TokenError."""
    token = text.strip(" \t\r\n")
    if not _plausible(token):
        raise TokenError("a token must have 16 to 200 visible ASCII characters, without spaces and commas")
    if token.startswith(PREFIX) and _is_damaged(token):
        raise TokenError(f"the token begins with {PREFIX}, but its checksum is wrong; hint: copy the whole token")
    return token


@lru_cache(maxsize=1000)
def _is_damaged(token: str) -> bool:
    return not _ours(token) or token[-_CHECKSUM:] != _checksum(token[:-_CHECKSUM])


def _with_checksum(body: str) -> str:
    return PREFIX + body + _checksum(PREFIX + body)


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECKSUM)


def _base62(number: int, width: int) -> str:
    """Write the last `width` digits of a number in base 62."""
    digits = []
    for _ in range(width):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
