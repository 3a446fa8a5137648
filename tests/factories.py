"""Makes the data that tests put into a store: organizations, accounts, users, tokens, documents and reports."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from laudo.core import documents
from laudo.core.sql import Statement
from laudo.server import accounts, keys
from laudo.server.accounts import Level
from laudo.server.database import Database
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.tallies import Sizes
from laudo.server.ingest.writer import Counts, Ingest
from laudo.server.tokens import hash_token, new_token

NOON: Final = 1_769_860_800_000
"""2026-01-31T12:00:00.000Z."""
NEWER: Final = "INSERT INTO migration (name, applied_at) VALUES ('9999_newer.sql', 0)"
"""Makes a store one that a newer version has migrated."""

SMALL: Final = Sizes(most_rows=12, most_children=4)
"""Buckets so small that they split and merge even with few reports."""

_TYPICAL: Final = Relatorio(
    numero="00000000-0000-4000-8000-000000000000",
    status="CONCLUIDO",
    tipo_pessoa="Pessoa",
    nome="consultaPessoaDefault",
    atualizado_em=NOON,
    resultado="VALID",
    mensagem="Válido.",
    pendente_validacao_manual=False,
    numero_documento="52998224725",
    nome_pessoa="Maria da Silva",
)


def numero(number: int) -> str:
    """Make a UUID; a larger number sorts later."""
    return f"{number:08x}-0000-4000-8000-000000000000"


def cpf(number: int) -> str:
    """Make a valid CPF; a larger number sorts later."""
    base = f"{number:09}"
    return base + documents.cpf_digits(base)


def cnpj(number: int) -> str:
    """Make a valid CNPJ; a larger number sorts later."""
    base = f"{number:012}"
    return base + documents.cnpj_digits(base)


def relatorio(number: int = 0, **changes: object) -> Relatorio:
    """Make a typical report with `changes`; its numero comes from `number`."""
    return msgspec.structs.replace(_TYPICAL, **{"numero": numero(number), **changes})


def empresa(number: int = 0, **changes: object) -> Relatorio:
    """Make a report of a company."""
    return relatorio(number, **{"tipo_pessoa": "Empresa", "numero_documento": cnpj(1), "nome_pessoa": "", **changes})


@dataclass(frozen=True, slots=True)
class Account:
    """An account with a user and a token."""

    id_organizacao: int
    id_conta: int
    id_usuario: int
    id_token: int
    token: str


class Store:
    """A migrated store for tests to write to, with the key of its tokens."""

    def __init__(self, database: Database, key_file: Path) -> None:
        self.database = database
        self.key_file = key_file
        keys.make(key_file)
        self._key = keys.load(key_file)

    def account(self, id_organizacao: int | None = None, *, nome: str = "Acme", webhook_url: str = "") -> Account:
        """Make an account with one user and one token, in a new organization unless one is named."""
        with self.database.transaction() as connection:
            if id_organizacao is None:
                _, conta = accounts.create_organizacao(connection, nome, webhook_url=webhook_url)
            else:
                conta = accounts.create_conta(connection, id_organizacao, nome, webhook_url=webhook_url)
            usuario = accounts.create_usuario(
                connection, conta.id_conta, email=f"analista{conta.id_conta}@example.com", nome="Analista"
            )
        id_token, token = self.token(usuario.id_usuario)
        return Account(conta.id_organizacao, conta.id_conta, usuario.id_usuario, id_token, token)

    def token(
        self, id_usuario: int, *, text: str | None = None, now_ms: int | None = None, expires_at: int | None = None
    ) -> tuple[int, str]:
        """Make another token for a user; gives its id and its text."""
        token = text or new_token()
        now = now_ms or time.time_ns() // 1_000_000
        hashed = hash_token(self._key, token)
        with self.database.transaction() as connection:
            made = accounts.create_token(connection, id_usuario, hashed, now_ms=now, expires_at=expires_at)
        return made.id_token, token

    def revoke(self, id_token: int) -> None:
        with self.database.transaction() as connection:
            accounts.revoke_token(connection, id_token, now_ms=NOON)

    def disable(self, level: Level, number: int) -> None:
        with self.database.transaction() as connection:
            accounts.set_enabled(connection, level, number, enabled=False)

    def enable(self, level: Level, number: int) -> None:
        with self.database.transaction() as connection:
            accounts.set_enabled(connection, level, number, enabled=True)

    def write(self, account: Account, relatorios: Sequence[Relatorio], *, sizes: Sizes = SMALL) -> Counts:
        """Write one batch. For thousands of reports use the normal bucket sizes: with small ones it takes minutes."""
        return Ingest(self.database, account.id_conta, sizes=sizes).write(relatorios)

    def delete(self, account: Account, *numbers: int) -> int:
        """Delete the reports that `relatorio` makes of these numbers."""
        return Ingest(self.database, account.id_conta, sizes=SMALL).delete([numero(number) for number in numbers])


TABLES: Final = ("facet", "bucket", "tally", "relatorio", "pessoa", "word")


def contents(database: Database) -> dict[str, list[tuple[object, ...]]]:
    """Give every row of the tables that an import changes, without the versions, which depend on the clock."""
    with database.snapshot() as connection:
        return {table: sorted(connection.fetch(Statement(f"SELECT * FROM {table}")), key=repr) for table in TABLES}


def versions(database: Database) -> tuple[int, ...]:
    """Give the versions of the organizations, then those of the accounts."""
    with database.snapshot() as connection:
        found = [
            *connection.fetch(Statement("SELECT version FROM organizacao ORDER BY id_organizacao")),
            *connection.fetch(Statement("SELECT version FROM conta ORDER BY id_conta")),
        ]
    return tuple(int(version) for (version,) in found)
