"""Keeps `pessoa`: one row per organization and CPF, named after its newest report, within the reports' transaction."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from laudo.core import response
from laudo.core.sql import Statement
from laudo.core.values import words
from laudo.server.database import Connection

if TYPE_CHECKING:
    from laudo.server.ingest.writer import Change

CPF_LENGTH: Final = 11
"""Only persons have documents this long; companies do not appear among the persons."""


class Newest(NamedTuple):
    """What the newest report of a CPF says."""

    atualizado_em: int
    nome: str


def follow(connection: Connection, id_organizacao: int, changes: Iterable["Change"]) -> bool:
    """Bring the persons of changed reports up to date; tells whether any person changed.

    A report newer than the person decides at once. Where that does not settle it (a report left the CPF, or two are
    equally new) the CPF's reports are asked.
    """
    newest, unsettled = _claims(changes)
    stored = _stored(connection, id_organizacao, [*newest, *unsettled])
    rows = {}
    for cpf, claim in newest.items():
        known = stored.get(cpf)
        if known is None or claim.atualizado_em > known.atualizado_em:
            rows[cpf] = claim
        elif claim.atualizado_em == known.atualizado_em:
            unsettled.add(cpf)
    gone = []
    for cpf in unsettled:
        found = connection.fetch(Statement(_NEWEST, (id_organizacao, cpf)))
        if found:
            rows[cpf] = Newest(*found[0])
        elif cpf in stored:
            gone.append(cpf)
    rows = {cpf: row for cpf, row in rows.items() if stored.get(cpf) != row}
    connection.write_many(_UPSERT, [_row(id_organizacao, cpf, rows[cpf]) for cpf in sorted(rows)])
    connection.write_many(_DELETE, [(id_organizacao, cpf) for cpf in sorted(gone)])
    return bool(rows or gone)


def _claims(changes: Iterable["Change"]) -> tuple[dict[str, Newest], set[str]]:
    """Give each CPF's newest changed report, and the CPFs whose reports must be asked."""
    newest: dict[str, Newest] = {}
    unsettled: set[str] = set()
    for _, before, after in changes:
        if (
            before
            and len(before.numero_documento) == CPF_LENGTH
            and (after is None or after.numero_documento != before.numero_documento)
        ):
            unsettled.add(before.numero_documento)
        if after and len(after.numero_documento) == CPF_LENGTH:
            cpf, claim = after.numero_documento, Newest(after.atualizado_em, after.nome_pessoa)
            known = newest.get(cpf)
            if known is None or claim.atualizado_em > known.atualizado_em:
                newest[cpf] = claim
            elif claim.atualizado_em == known.atualizado_em:
                unsettled.add(cpf)
    return newest, unsettled


def _stored(connection: Connection, id_organizacao: int, cpfs: list[str]) -> dict[str, Newest]:
    return {cpf: Newest(*rest) for cpf, *rest in connection.fetch(Statement(_STORED, (id_organizacao, cpfs)))}


def _row(id_organizacao: int, cpf: str, newest: Newest) -> tuple[int, str, str, str, int, str]:
    item = response.pessoa({"cpf": cpf, "nome": newest.nome, "atualizado_em": newest.atualizado_em})
    return (id_organizacao, cpf, newest.nome, " ".join(words(newest.nome)), newest.atualizado_em, item)


_STORED: Final = """
SELECT cpf, atualizado_em, nome FROM pessoa
WHERE id_organizacao = ? AND cpf IN (SELECT value FROM carray(?))
"""
_NEWEST: Final = """
SELECT atualizado_em, nome_pessoa
FROM conta JOIN relatorio USING (id_organizacao, id_conta)
WHERE id_organizacao = ? AND numero_documento = ?
ORDER BY atualizado_em DESC, numero, id_conta LIMIT 1
"""
_UPSERT: Final = """
INSERT INTO pessoa (id_organizacao, cpf, nome, nome_busca, atualizado_em, item) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (id_organizacao, cpf) DO UPDATE SET
    nome = excluded.nome, nome_busca = excluded.nome_busca, atualizado_em = excluded.atualizado_em, item = excluded.item
"""
_DELETE: Final = "DELETE FROM pessoa WHERE id_organizacao = ? AND cpf = ?"
