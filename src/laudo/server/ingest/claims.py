"""What reports say of persons: the newest report of each CPF, as a row of `pessoa`, made without the store."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from laudo.core import response
from laudo.core.axes import nome_busca

CPF_LENGTH: Final = 11
"""Only persons have documents this long; companies do not appear among the persons."""

PessoaRow = tuple[str, str, str, int, str]
"""(cpf, nome, nome_busca, recency, item)."""
CPF: Final = 0
NOME: Final = 1
NOME_BUSCA: Final = 2
RECENCY: Final = 3


class Claims(NamedTuple):
    """The newest claim of each CPF, and the CPFs with two equally new ones, which all reports together must settle."""

    newest: dict[str, PessoaRow]
    tied: set[str]

    def __repr__(self) -> str:
        return f"Claims(newest={len(self.newest)}, tied={len(self.tied)})"


NO_CLAIMS: Final = Claims({}, set())


def claims(reports: Iterable[tuple[str, int, str]]) -> Claims:
    """Give the claims of reports, each given by numero_documento, recency and nome_pessoa."""
    newest: dict[str, tuple[int, str]] = {}
    tied: set[str] = set()
    for cpf, recency, nome in reports:
        if len(cpf) == CPF_LENGTH:
            known = newest.get(cpf)
            if known is None or recency < known[0]:
                newest[cpf] = recency, nome
            elif recency == known[0]:
                tied.add(cpf)
    return Claims({cpf: row(cpf, *claim) for cpf, claim in newest.items()}, tied)


def row(cpf: str, recency: int, nome: str) -> PessoaRow:
    """Give what the store keeps of a person whose newest report has this recency and nome_pessoa."""
    return cpf, nome, nome_busca(nome), recency, response.pessoa(cpf=cpf, nome=nome, atualizado_em=-recency)
