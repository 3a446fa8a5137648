"""The only place that writes reports: a batch is one transaction, durable when `Ingest.write` returns."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from laudo.core import response
from laudo.core.sql import Owner, Statement, numero_key
from laudo.server.database import Connection, Database, StoreError
from laudo.server.ingest import pessoas
from laudo.server.ingest.facets import Facets
from laudo.server.ingest.records import Relatorio


class Counts(NamedTuple):
    """What became of the reports of a batch."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    stale: int = 0
    """Not newer than what the store already has under this numero."""


class Content(NamedTuple):
    """What the store keeps of one report, beside its key and its item's JSON."""

    facet: int
    atualizado_em: int
    numero_documento: str
    nome_pessoa: str
    mensagem: str


class Change(NamedTuple):
    """One report before and after a transaction; None where there was, or is, none."""

    numero: bytes
    before: Content | None
    after: Content | None


class Ingest:
    """Writes reports of one account."""

    def __init__(self, database: Database, id_conta: int) -> None:
        """Raises StoreError when there is no such account."""
        self._database = database
        with database.snapshot() as connection:
            rows = connection.fetch(Statement("SELECT id_organizacao FROM conta WHERE id_conta = ?", (id_conta,)))
        if not rows:
            message = f"there is no account {id_conta}; `laudo account list` shows them"
            raise StoreError(message)
        self.owner = Owner(rows[0][0], id_conta)
        self._facets = Facets(self.owner)

    def write(self, batch: Sequence[Relatorio]) -> Counts:
        """Write a batch: the newer `atualizado_em` wins, one not newer changes nothing; all of it or nothing."""
        try:
            with self._database.transaction() as connection:
                return self._write(connection, batch)
        except BaseException:
            self._facets.forget()
            raise

    def _write(self, connection: Connection, batch: Sequence[Relatorio]) -> Counts:
        before = _stored(connection, self.owner, [numero_key(relatorio.numero) for relatorio in batch])
        after = dict(before)
        items: dict[bytes, Relatorio] = {}
        inserted = updated = unchanged = stale = 0
        for relatorio in batch:
            key = numero_key(relatorio.numero)
            content = Content(
                self._facets.number(connection, relatorio),
                relatorio.atualizado_em,
                relatorio.numero_documento,
                relatorio.nome_pessoa,
                relatorio.mensagem,
            )
            current = after.get(key)
            if current is None:
                inserted += 1
            elif content == current:
                unchanged += 1
                continue
            elif content.atualizado_em <= current.atualizado_em:
                stale += 1
                continue
            else:
                updated += 1
            after[key] = content
            items[key] = relatorio
        if items:
            changes = [Change(key, before.get(key), after[key]) for key in items]
            self._apply(connection, changes, items)
        return Counts(inserted, updated, unchanged, stale)

    def _apply(self, connection: Connection, changes: list[Change], items: dict[bytes, Relatorio]) -> None:
        connection.write_many(
            _UPSERT,
            [(*self.owner, change.numero, *(change.after or ()), _item(items[change.numero])) for change in changes],
        )
        if pessoas.follow(connection, self.owner.id_organizacao, changes):
            connection.write_many(_BUMP_ORGANIZACAO, [(self.owner.id_organizacao,)])
        connection.write_many(_BUMP_CONTA, [self.owner])


def _stored(connection: Connection, owner: Owner, keys: list[bytes]) -> dict[bytes, Content]:
    return {row[0]: Content(*row[1:]) for row in connection.fetch(Statement(_STORED, (*owner, keys)))}


def _item(relatorio: Relatorio) -> str:
    return response.relatorio(
        {
            "numero": relatorio.numero,
            "status": relatorio.status,
            "tipo_pessoa": relatorio.tipo_pessoa,
            "nome": relatorio.nome,
            "atualizado_em": relatorio.atualizado_em,
            "resultado": relatorio.resultado,
            "mensagem": relatorio.mensagem,
            "pendente_validacao_manual": relatorio.pendente_validacao_manual,
            "numero_documento": relatorio.numero_documento,
        }
    )


_STORED: Final = """
SELECT numero, facet, atualizado_em, numero_documento, nome_pessoa, mensagem
FROM relatorio
WHERE id_organizacao = ? AND id_conta = ? AND numero IN (SELECT value FROM carray(?))
"""
_UPSERT: Final = """
INSERT INTO relatorio (id_organizacao, id_conta, numero,
    facet, atualizado_em, numero_documento, nome_pessoa, mensagem, item)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id_organizacao, id_conta, numero) DO UPDATE SET
    facet = excluded.facet, atualizado_em = excluded.atualizado_em, numero_documento = excluded.numero_documento,
    nome_pessoa = excluded.nome_pessoa, mensagem = excluded.mensagem, item = excluded.item
"""
_BUMP_CONTA: Final = "UPDATE conta SET version = version + 1 WHERE id_organizacao = ? AND id_conta = ?"
_BUMP_ORGANIZACAO: Final = "UPDATE organizacao SET version = version + 1 WHERE id_organizacao = ?"
