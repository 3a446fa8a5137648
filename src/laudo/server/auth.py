"""Tokens and callers: the one place that makes, checks and hashes tokens; no repr or error shows one."""

import hmac
import os
import re
import secrets
import string
import zlib
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

import msgspec

from laudo.core.sql import Owner, Statement
from laudo.server.database import Mark, Reader, Row, Served

PREFIX: Final = "laudo_"
_DIGITS: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_BODY: Final = 32
_CHECKSUM: Final = 6
_KEY_BYTES: Final = 32
_ROOT: Final = 0
_OTHERS: Final = 0o077
_STRANGERS: Final = 0o037
"""Root hands secrets out by group, as in Kubernetes: who is in it was meant, and may change nothing."""
_LOST: Final = "without the key no token works; hint: restore it, or name it with --key-file"

_LONGEST: Final = 200
_plausible: Final = re.compile(rf"[!-+\--~]{{16,{_LONGEST}}}").fullmatch  # visible ASCII without the comma
_ours: Final = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_BODY + _CHECKSUM}}}").fullmatch

_HOLDER: Final = """
SELECT t.id_organizacao, t.id_conta, t.id_usuario, t.id_token, t.expires_at
FROM token t
WHERE t.hash = ? AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > ?)
"""
_REST: Final = "u.email, u.nome_usuario, c.webhook_url, o.nome_organizacao, c.version, o.version"
_ABOVE: Final = """
FROM usuario u
JOIN conta c ON c.id_organizacao = u.id_organizacao
JOIN organizacao o ON o.id_organizacao = u.id_organizacao
"""
_ENABLED: Final = """
WHERE u.id_organizacao = ? AND c.id_conta = ? AND u.id_usuario = ?
  AND u.enabled = 1 AND c.enabled = 1 AND o.enabled = 1
"""
_CALLER: Final = f"SELECT {_REST}{_ABOVE}{_ENABLED}"
_CALLER_AGAIN: Final = f"SELECT t.*, {_REST}{_ABOVE}CROSS JOIN ({_HOLDER}) t{_ENABLED}"


class AuthError(Exception):
    """A key file that cannot be used, or a text that cannot be a token; says what to do, never the secret."""


class Caller(msgspec.Struct, frozen=True, dict=True):
    """Who asks: everything that the endpoints need to know of a token's owner, without the token."""

    id_organizacao: int
    id_conta: int
    id_usuario: int
    id_token: int
    expires_at: int | None
    email: str
    nome_usuario: str
    webhook_url: str
    nome_organizacao: str
    version_conta: int
    version_organizacao: int
    as_of: Mark = None
    """The state of the store in which all of this was so."""

    @cached_property
    def owner(self) -> Owner:
        return Owner(self.id_organizacao, self.id_conta)

    def __repr__(self) -> str:
        """Show no name and no address."""
        return f"Caller(id_organizacao={self.id_organizacao}, id_conta={self.id_conta}, id_token={self.id_token})"


def caller(reader: Reader, token_hash: bytes, *, now_ms: int, mark: Mark = None) -> Caller | None:
    """Find whose token it is, unless it, its user, account or organization may not ask now; `mark` is of before.

    The token tells the owner, and all else starts from there: no statement looks among other organizations' rows.
    """
    for found in reader.fetch(Statement(_HOLDER, (token_hash, now_ms))):
        for row in reader.fetch(Statement(_CALLER, found[:3])):
            return Caller(*(*found, *row, mark))
    return None


def caller_again(
    database: Served, token_hash: bytes, before: Caller, beside: Statement | None, *, now_ms: int, mark: Mark = None
) -> tuple[Caller | None, list[Row] | None]:
    """The same, of a token whose caller was found `before`; None too where a restored store gives it to somebody else.

    One more query may go `beside` it, after it; its rows come with the caller.
    """
    whose = (*before.owner, before.id_usuario)
    asked = [Statement(_CALLER_AGAIN, (token_hash, now_ms, *whose))]
    [callers, *others], seen = database.fetch_marked(asked if beside is None else [*asked, beside])
    found = next((Caller(*(*row, mark or seen)) for row in callers if row[:3] == whose), None)
    return found, others[0] if others else None


def presented(header: str | None) -> str | None:
    """Give the token of an Authorization header, or None when it cannot be one: no store is needed then."""
    token = (header or "").strip(" \t")
    if len(token) > _LONGEST:
        return None
    could_be = not _is_damaged(token) if token.startswith(PREFIX) else _plausible(token)
    return token if could_be else None


def hash_token(key: bytes, token: str) -> bytes:
    """HMAC-SHA-256: what the store holds in place of a token (32 bytes)."""
    return hmac.digest(key, token.encode(), "sha256")


def new_token() -> str:
    return _signed("".join(secrets.choice(_DIGITS) for _ in range(_BODY)))


def derived_token(key: bytes, purpose: str) -> str:
    """Make the token that belongs to this key and purpose: always the same, so that it need not be stored."""
    number = int.from_bytes(hmac.digest(key, f"token:{purpose}".encode(), "sha256"), "big")
    return _signed(_base62(number, _BODY))


def adopted_token(text: str) -> str:
    """Check a token made elsewhere, 16–200 characters; raises AuthError."""
    token = text.strip(" \t\r\n")
    if not _plausible(token):
        raise AuthError("a token is 16 to 200 visible ASCII characters, without blanks and commas")
    if token.startswith(PREFIX) and _is_damaged(token):
        raise AuthError(f"the token begins with {PREFIX}, but its checksum is wrong; hint: copy all of it")
    return token


def load_key(path: str | Path) -> bytes:
    """Read the key (32 bytes) under which tokens are hashed.

    Raises AuthError when the file is missing, malformed or may be read by others, not counting the group of root's.
    """
    file = Path(path)
    try:
        with file.open("rb") as stream:
            status, text = os.fstat(stream.fileno()), stream.read(1024)
    except FileNotFoundError:
        raise AuthError(f"the key file {file} does not exist, and {_LOST}") from None
    except OSError as error:
        raise AuthError(f"cannot read the key file {file}: {error.strerror}") from error
    is_handed_out = status.st_uid == _ROOT != os.geteuid()
    if status.st_mode & (_STRANGERS if is_handed_out else _OTHERS):
        raise AuthError(f"the key file {file} can be read by others; hint: chmod 600 {file}")
    if not re.fullmatch(rb"[0-9a-f]{64}\n?", text):
        raise AuthError(f"the key file {file} is not 64 hexadecimal digits; hint: restore it, tokens need it")
    return bytes.fromhex(text.decode())


def make_key(path: str | Path) -> bool:
    """Make a missing key file, whole or not at all; tells whether it did. Of two at once, the first one's key stays.

    Raises AuthError.
    """
    file = Path(path)
    if file.exists():
        return False
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(secrets.token_hex(_KEY_BYTES) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        return _publish(temporary, file)
    except OSError as error:
        raise AuthError(f"cannot make the key file {file}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _publish(temporary: Path, file: Path) -> bool:
    try:
        file.hardlink_to(temporary)
    except FileExistsError:
        return False
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True


@lru_cache(maxsize=1000)
def _is_damaged(token: str) -> bool:
    return not _ours(token) or token[-_CHECKSUM:] != _checksum(token[:-_CHECKSUM])


def _signed(body: str) -> str:
    return PREFIX + body + _checksum(PREFIX + body)


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECKSUM)


def _base62(number: int, width: int) -> str:
    """Write a number's last digits, so many."""
    digits = []
    for _ in range(width):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
