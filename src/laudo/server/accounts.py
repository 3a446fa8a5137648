"""Organizations, accounts, users and tokens: makes and lists them, and disables or revokes them.

Every function works on the connection it is given; the caller opens the transaction. Those that make or change
something raise AccountError. Ids of accounts, users and tokens are unique in the whole store, so that on the command
line one number names one thing. Instants are integer milliseconds, UTC.
"""

import re
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Final

from laudo.core.sql import Owner, Statement
from laudo.core.values import unwritable
from laudo.server.database import Connection, Row

FIRST_CONTA: Final = "principal"
"""Name of the account with which an organization starts."""
LOCK: Final = "accounts"
"""Name of the lock that is held while one of these is made: no id is used twice, and what was checked stays true."""
_MAX_WEBHOOK_LENGTH: Final = 2000


class AccountError(Exception):
    """The request cannot be fulfilled; the text says why."""


@dataclass(frozen=True, slots=True)
class Organizacao:
    id_organizacao: int
    nome_organizacao: str = field(repr=False)
    enabled: bool


@dataclass(frozen=True, slots=True)
class Conta:
    id_organizacao: int
    id_conta: int
    nome_conta: str = field(repr=False)
    webhook_url: str = field(repr=False)
    enabled: bool


@dataclass(frozen=True, slots=True)
class Usuario:
    id_organizacao: int
    id_conta: int
    id_usuario: int
    email: str = field(repr=False)
    nome_usuario: str = field(repr=False)
    enabled: bool


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token: neither its text nor its hash."""

    id_token: int
    id_organizacao: int
    id_conta: int
    id_usuario: int
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def state(self, now_ms: int, *, disabled: bool) -> str:
        """Tell whether the token works, and if not, why; `disabled` says that its user, account or organization is."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= now_ms:
            return "expired"
        return "disabled" if disabled else "active"


class Level(Enum):
    """A level that can be disabled with everything below it: its name for people, its table, its id column."""

    ORGANIZATION = ("organization", "organizacao", "id_organizacao")
    ACCOUNT = ("account", "conta", "id_conta")
    USER = ("user", "usuario", "id_usuario")


def create_organizacao(connection: Connection, nome: str, *, webhook_url: str = "") -> tuple[Organizacao, Conta]:
    """Make an organization and its first account."""
    connection.lock(LOCK)
    organizacao = Organizacao(_next_id(connection, "id_organizacao", "organizacao", "conta"), _name(nome), enabled=True)
    _insert(connection, "organizacao", **asdict(organizacao), version=0)
    conta = create_conta(connection, organizacao.id_organizacao, FIRST_CONTA, webhook_url=webhook_url)
    return organizacao, conta


def create_conta(connection: Connection, id_organizacao: int, nome: str, *, webhook_url: str = "") -> Conta:
    connection.lock(LOCK)
    _owner(connection, Level.ORGANIZATION, id_organizacao)
    id_conta = _next_id(connection, "id_conta", "conta", "usuario", "token", "facet")
    conta = Conta(id_organizacao, id_conta, _name(nome), _webhook(webhook_url), enabled=True)
    _insert(connection, "conta", **asdict(conta), version=0)
    return conta


def create_usuario(connection: Connection, id_conta: int, *, email: str, nome: str) -> Usuario:
    connection.lock(LOCK)
    id_organizacao = _owner(connection, Level.ACCOUNT, id_conta)
    id_usuario = _next_id(connection, "id_usuario", "usuario", "token")
    usuario = Usuario(id_organizacao, id_conta, id_usuario, _email(email), _name(nome), enabled=True)
    _insert(connection, "usuario", **asdict(usuario))
    return usuario


def owners(connection: Connection, id_organizacao: int) -> list[Owner]:
    """Give all accounts of an organization; raises AccountError if there is no such organization."""
    text = "SELECT id_organizacao, id_conta FROM conta WHERE id_organizacao = ? ORDER BY id_conta"
    found = [Owner(*row) for row in connection.fetch(Statement(text, (id_organizacao,)))]
    if not found:
        raise _unknown(Level.ORGANIZATION, id_organizacao)
    return found


def owner_of(connection: Connection, id_usuario: int) -> Owner:
    """Give the owner whose reports a user sees; raises AccountError if there is no such user."""
    text = "SELECT id_organizacao, id_conta FROM usuario WHERE id_usuario = ?"
    rows = connection.fetch(Statement(text, (id_usuario,)))
    if not rows:
        raise _unknown(Level.USER, id_usuario)
    return Owner(*rows[0])


def create_token(
    connection: Connection, id_usuario: int, token_hash: bytes, *, now_ms: int, expires_at: int | None = None
) -> Token:
    """Give the user one more token, of which the store gets only the hash."""
    if expires_at is not None and expires_at <= now_ms:
        raise AccountError("the token would already have expired")
    connection.lock(LOCK)
    if has_token(connection, token_hash):
        raise AccountError("the store already has this token; hint: a revoked token stays revoked, create another one")
    id_organizacao, id_conta = owner_of(connection, id_usuario)
    id_token = _next_id(connection, "id_token", "token")
    token = Token(id_token, id_organizacao, id_conta, id_usuario, now_ms, expires_at, revoked_at=None)
    _insert(connection, "token", **asdict(token), hash=token_hash)
    return token


def revoke_token(connection: Connection, id_token: int, *, now_ms: int) -> None:
    """End a token for ever; revoking it again changes nothing."""
    if not connection.fetch(Statement("SELECT id_token FROM token WHERE id_token = ?", (id_token,))):
        raise AccountError(f"there is no token {id_token}; hint: laudo token list")
    text = "UPDATE token SET revoked_at = ? WHERE id_token = ? AND revoked_at IS NULL"
    connection.fetch(Statement(text, (now_ms, id_token)))


def set_enabled(connection: Connection, level: Level, number: int, *, enabled: bool) -> None:
    """Let the tokens of this organization, account or user work, or refuse all of them, from the next request on."""
    _set(connection, level, number, enabled=int(enabled))


def update(connection: Connection, level: Level, number: int, **texts: str) -> None:
    """Replace names and addresses, given by their columns, from the next request on."""
    _set(connection, level, number, **{column: _CHECKS[column](text) for column, text in texts.items()})


def organizacoes(connection: Connection) -> list[Organizacao]:
    text = "SELECT id_organizacao, nome_organizacao, enabled FROM organizacao ORDER BY id_organizacao"
    return [Organizacao(*_with_bool_enabled(row)) for row in connection.fetch(Statement(text))]


def contas(connection: Connection) -> list[Conta]:
    text = "SELECT id_organizacao, id_conta, nome_conta, webhook_url, enabled FROM conta ORDER BY id_conta"
    return [Conta(*_with_bool_enabled(row)) for row in connection.fetch(Statement(text))]


def usuarios(connection: Connection) -> list[Usuario]:
    text = "SELECT id_organizacao, id_conta, id_usuario, email, nome_usuario, enabled FROM usuario ORDER BY id_usuario"
    return [Usuario(*_with_bool_enabled(row)) for row in connection.fetch(Statement(text))]


def disabled(connection: Connection) -> frozenset[int]:
    """Give the ids of the users whose tokens are refused: they, or their account or organization, are disabled."""
    organizations = {each.id_organizacao for each in organizacoes(connection) if not each.enabled}
    accounts = {each.id_conta for each in contas(connection) if not each.enabled}
    return frozenset(
        each.id_usuario
        for each in usuarios(connection)
        if not each.enabled or each.id_conta in accounts or each.id_organizacao in organizations
    )


def tokens(connection: Connection) -> list[Token]:
    text = (
        "SELECT id_token, id_organizacao, id_conta, id_usuario, created_at, expires_at, revoked_at"
        " FROM token ORDER BY id_token"
    )
    return [Token(*row) for row in connection.fetch(Statement(text))]


def has_token(connection: Connection, token_hash: bytes) -> bool:
    """Tell whether the store has this token, in whatever state."""
    return bool(connection.fetch(Statement("SELECT id_token FROM token WHERE hash = ?", (token_hash,))))


def has_tokens(connection: Connection) -> bool:
    """Tell whether the store has any token, in whatever state."""
    return bool(connection.fetch(Statement("SELECT id_token FROM token LIMIT 1")))


def _insert(connection: Connection, table: str, **values: str | int | bytes | None) -> None:
    names, placeholders = ", ".join(values), ", ".join("?" * len(values))
    text = f"INSERT INTO {table} ({names}) VALUES ({placeholders})"  # noqa: S608 - names of this module
    connection.fetch(Statement(text, tuple(values.values())))


def _with_bool_enabled(row: Row) -> Row:
    *others, enabled = row
    return (*others, bool(enabled))


def _set(connection: Connection, level: Level, number: int, **values: str | int) -> None:
    _, table, column = level.value
    id_organizacao = _owner(connection, level, number)
    changes = ", ".join(f"{name} = ?" for name in values)
    text = f"UPDATE {table} SET {changes} WHERE id_organizacao = ? AND {column} = ?"  # noqa: S608 - names of this module
    connection.fetch(Statement(text, (*values.values(), id_organizacao, number)))


def _owner(connection: Connection, level: Level, number: int) -> int:
    _, table, column = level.value
    text = f"SELECT id_organizacao FROM {table} WHERE {column} = ?"  # noqa: S608 - names of Level
    rows = connection.fetch(Statement(text, (number,)))
    if not rows:
        raise _unknown(level, number)
    return int(rows[0][0])


def _next_id(connection: Connection, column: str, *tables: str) -> int:
    """Give a number above all that these tables name, as the row of a number may be lost; the caller holds LOCK."""
    texts = (f"SELECT COALESCE(MAX({column}), 0) FROM {table}" for table in tables)  # noqa: S608 - names of this module
    return 1 + max(int(highest) for [(highest,)] in connection.fetch_each([Statement(text) for text in texts]))


def _unknown(level: Level, number: int) -> AccountError:
    noun = level.value[0]
    return AccountError(f"there is no {noun} {number}; hint: laudo {noun} list")


def _name(text: str) -> str:
    name = text.strip()
    if not name or len(name) > 200 or unwritable(name):  # noqa: PLR2004 - the message says it
        raise AccountError("a name must have 1 to 200 characters and no control characters")
    return name


def _email(text: str) -> str:
    if len(text) > 254 or not text.isprintable() or not re.fullmatch(r"[^\s@]+@[^\s@]+", text):  # noqa: PLR2004 - the longest address
        raise AccountError("an e-mail address must look like name@example.com")
    return text


def _webhook(text: str) -> str:
    if text and (len(text) > _MAX_WEBHOOK_LENGTH or not re.fullmatch(r"https?://[\x21-\x7e]+", text)):
        raise AccountError(
            "a webhook address must begin with https:// or http:// and have at most "
            f"{_MAX_WEBHOOK_LENGTH} visible ASCII characters"
        )
    return text


_CHECKS: Final = {
    "nome_organizacao": _name,
    "nome_conta": _name,
    "nome_usuario": _name,
    "email": _email,
    "webhook_url": _webhook,
}
"""Column -> the function that checks a text for it and gives the text to keep."""
