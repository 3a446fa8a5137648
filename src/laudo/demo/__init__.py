"""Invented data, seeded: reports as objects or as import lines, and a store filled for a first look."""

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from laudo.core import disclosure
from laudo.core.values import render_instant
from laudo.demo import live
from laudo.demo.invent import EARLIEST_MS, NOW_MS, relatorios
from laudo.server import accounts
from laudo.server.accounts import Conta, Usuario
from laudo.server.database import Connection, Database
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.writer import Ingest
from laudo.server.tokens import derived_token, hash_token

__all__ = ["EARLIEST_MS", "NOW_MS", "Access", "Demo", "demo_token", "fill", "ndjson_lines", "relatorios", "run_live"]

_BATCH: Final = 1000
_EXEMPLO: Final = "Organização Exemplo"
_VIZINHA: Final = "Organização Vizinha"
_WEBHOOK: Final = "https://example.com/webhook"
_STRIDE: Final = 3
"""The step from one report's place in the cycle of accounts to the next one's: each gets its share evenly."""


@disclosure.only("tenths")
class Member(NamedTuple):
    """A user of the demonstration (a role, nobody real) and how many tenths of the reports its account gets."""

    nome_organizacao: str
    email: str
    nome_usuario: str
    tenths: int


_MEMBERS: Final = (
    Member(_EXEMPLO, "analista@example.com", "Analista", 7),
    Member(_EXEMPLO, "integracao@example.com", "Integração", 0),
    Member(_VIZINHA, "analista@example.net", "Analista", 3),
)


@dataclass(frozen=True, slots=True)
class Access:
    """The account of one user of the demonstration, and the token to ask with."""

    id_conta: int
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Demo:
    """What `fill` left in the store; the first access is the one to show."""

    accesses: tuple[Access, ...]
    written: int
    """Reports written by this call: 0 when the store was filled before."""


def fill(database: Database, key: bytes, *, count: int = 10_000, until_ms: int = NOW_MS) -> Demo:
    """Fill a migrated store, opened for writing, with two organizations and `count` reports between them.

    The newest report is shortly before `until_ms`; all else is the same each time. Some CPFs are known to both
    organizations. The tokens come last: if they exist, even revoked, so does all the rest, and nothing is done. What an
    interrupted call wrote is found again, not doubled.
    """
    with database.transaction() as connection:
        connection.lock(accounts.LOCK)
        usuarios = [_usuario(connection, member) for member in _MEMBERS]
        tokens = [demo_token(key, number) for number in range(1, len(usuarios) + 1)]
        complete = accounts.has_token(connection, hash_token(key, tokens[-1]))
    accesses = tuple(Access(usuario.id_conta, token) for usuario, token in zip(usuarios, tokens, strict=True))
    if complete:
        return Demo(accesses, written=0)
    written = _write(database, usuarios, relatorios(count, until_ms=until_ms))
    with database.transaction() as connection:
        connection.lock(accounts.LOCK)
        hashes = [hash_token(key, token) for token in tokens]
        if not accounts.has_token(connection, hashes[-1]):  # Another call may have begun at the same time.
            for usuario, token_hash in zip(usuarios, hashes, strict=True):
                accounts.create_token(connection, usuario.id_usuario, token_hash, now_ms=_now_ms())
    return Demo(accesses, written)


def run_live(database: Database, filled: Demo) -> None:
    """Invent reports that arrive and change, and write each change when it happens; each call invents other reports.

    It never ends.
    """
    cycle = _account_cycle([access.id_conta for access in filled.accesses])
    ingests = {id_conta: Ingest(database, id_conta) for id_conta in set(cycle)}
    for number, relatorio in live.changes(secrets.randbits(64), _now_ms()):
        time.sleep(max(0, relatorio.atualizado_em - _now_ms()) / 1000)
        ingests[cycle[number * _STRIDE % len(cycle)]].write([relatorio])


def demo_token(key: bytes, number: int) -> str:
    """The token of user `number` (from 1), derived from the key, so that it is never stored."""
    return derived_token(key, f"demo token {number}")


def ndjson_lines(relatorios: Iterable[Relatorio]) -> Iterator[bytes]:
    """Each report as one line, with its newline, of a file for `laudo import`."""
    encode = msgspec.json.Encoder().encode
    for relatorio in relatorios:
        item = msgspec.structs.asdict(relatorio)
        item["atualizado_em"] = render_instant(relatorio.atualizado_em)
        yield encode(item) + b"\n"


def _usuario(connection: Connection, member: Member) -> Usuario:
    """The member's user, found or made, in the first account of its organization."""
    conta = _conta(connection, member.nome_organizacao)
    for usuario in accounts.usuarios(connection):
        if (usuario.id_conta, usuario.email) == (conta.id_conta, member.email):
            return usuario
    return accounts.create_usuario(connection, conta.id_conta, email=member.email, nome=member.nome_usuario)


def _conta(connection: Connection, nome_organizacao: str) -> Conta:
    contas = accounts.contas(connection)
    for organizacao in accounts.organizacoes(connection):
        if organizacao.nome_organizacao == nome_organizacao:
            return next(conta for conta in contas if conta.id_organizacao == organizacao.id_organizacao)
    return accounts.create_organizacao(connection, nome_organizacao, webhook_url=_WEBHOOK)[1]


def _write(database: Database, usuarios: Sequence[Usuario], invented: Iterable[Relatorio]) -> int:
    """Deal out the reports by tenths, in batches; gives how many were new."""
    ingests = {usuario.id_conta: Ingest(database, usuario.id_conta) for usuario in usuarios}
    cycle = _account_cycle([usuario.id_conta for usuario in usuarios])
    batches: dict[int, list[Relatorio]] = {id_conta: [] for id_conta in ingests}
    inserted = 0
    for index, relatorio in enumerate(invented):
        id_conta = cycle[index % len(cycle)]
        batches[id_conta].append(relatorio)
        if len(batches[id_conta]) == _BATCH:
            inserted += ingests[id_conta].write(batches[id_conta]).inserted
            batches[id_conta] = []
    return inserted + sum(ingests[id_conta].write(batch).inserted for id_conta, batch in batches.items() if batch)


def _account_cycle(id_contas: Sequence[int]) -> list[int]:
    """The members' accounts, each once for every tenth of the reports that it gets."""
    return [id_conta for id_conta, member in zip(id_contas, _MEMBERS, strict=True) for _ in range(member.tenths)]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
