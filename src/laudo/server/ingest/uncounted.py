"""Finds and refuses accounts and organizations that no copy has counted yet: no other writer could go on from there."""

from collections.abc import Iterator
from typing import Final

from laudo.core.sql import Owner, Statement
from laudo.core.values import PESSOA
from laudo.server.database import Connection, StoreError


def require_none(connection: Connection, id_organizacao: int, id_conta: int | None = None, *, where: str = "") -> None:
    """Raise StoreError if an organization, or its account (None for any), is not counted: only a copy may change it."""
    for owner in find(connection, id_organizacao, id_conta):
        raise StoreError(f"{name(owner)}{where} was never counted; hint: {HINT}")


def name(owner: Owner) -> str:
    """Name an account, or an organization (account 0)."""
    return f"account {owner.id_conta}" if owner.id_conta else f"organization {owner.id_organizacao}"


def find(connection: Connection, id_organizacao: int, id_conta: int | None) -> Iterator[Owner]:
    """Give the organization (as account 0) if it is not counted, and an account (None for any, 0 for none) before."""
    first, last = (0, _LAST) if id_conta is None else (id_conta, id_conta)
    contas = Statement(_CONTAS, (id_organizacao, first, last, id_organizacao))
    organizacao = Statement(_ORGANIZACAO, (id_organizacao, id_organizacao, PESSOA))
    for rows in connection.fetch_each([contas, organizacao]):
        yield from (Owner(*row) for row in rows)


HINT: Final = (
    "finish the copy that made it; if you cannot, `laudo verify --repair` there counts what came, perhaps not all"
)
_LAST: Final = 2**63 - 1
_CONTAS: Final = """
SELECT id_organizacao, id_conta FROM conta
WHERE id_organizacao = ? AND id_conta BETWEEN ? AND ? AND version = 0 AND EXISTS (
    SELECT 1 FROM relatorio WHERE relatorio.id_organizacao = ? AND relatorio.id_conta = conta.id_conta
)
ORDER BY id_conta LIMIT 1
"""
_ORGANIZACAO: Final = """
SELECT id_organizacao, 0 FROM organizacao
WHERE id_organizacao = ? AND (version < 0 OR version = 0 AND EXISTS (
    SELECT 1 FROM facet WHERE facet.id_organizacao = ? AND tipo_pessoa = ? AND total > 0
))
"""
