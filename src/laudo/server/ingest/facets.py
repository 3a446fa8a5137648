"""The numbers of an account's facets: found, or made for a combination that is new."""

from typing import Final

from laudo.core.sql import Owner, Statement
from laudo.server.database import Connection
from laudo.server.ingest.records import Relatorio

Combination = tuple[str, str, str, str | None, bool]


class Facets:
    """The facets of one account, as far as its writer has met them."""

    def __init__(self, owner: Owner) -> None:
        """Start knowing none."""
        self._owner = owner
        self._numbers: dict[Combination, int] = {}

    def number(self, connection: Connection, relatorio: Relatorio) -> int:
        """Give the number of a report's facet, writing the facet when the account had none such."""
        combination = (
            relatorio.nome,
            relatorio.tipo_pessoa,
            relatorio.status,
            relatorio.resultado,
            relatorio.pendente_validacao_manual,
        )
        number = self._numbers.get(combination)
        return self._learn(connection, combination) if number is None else number

    def forget(self) -> None:
        """Unlearn all, since a transaction that may have made facets did not commit."""
        self._numbers.clear()

    def _learn(self, connection: Connection, combination: Combination) -> int:
        self._numbers = {
            (*row[1:5], bool(row[5])): row[0] for row in connection.fetch(Statement(_ALL, tuple(self._owner)))
        }
        if combination not in self._numbers:
            self._numbers[combination] = number = max(self._numbers.values(), default=0) + 1
            connection.write_many(_INSERT, [(*self._owner, number, *combination)])
        return self._numbers[combination]


_ALL: Final = """
SELECT facet, nome, tipo_pessoa, status, resultado, pendente_validacao_manual
FROM facet WHERE id_organizacao = ? AND id_conta = ?
"""
_INSERT: Final = """
INSERT INTO facet (id_organizacao, id_conta, facet, nome, tipo_pessoa, status, resultado, pendente_validacao_manual)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
