"""What reports say of persons: the newest report of each CPF, as a row of `pessoa`, made without the store."""

from collections.abc import Iterable
from typing import Final

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


Claims = dict[str, PessoaRow]
"""The newest claim of each CPF."""


def claims(reports: Iterable[tuple[str, int, str]]) -> Claims:
    """Give the claims of one account's reports, each given by numero_documento, recency and nome_pessoa.

    The reports are sorted by numero, so that of two that are equally new the first one names the person.
    """
    newest: dict[str, tuple[int, str]] = {}
    for cpf, recency, nome in reports:
        if len(cpf) == CPF_LENGTH and (cpf not in newest or recency < newest[cpf][0]):
            newest[cpf] = recency, nome
    return {cpf: row(cpf, *claim) for cpf, claim in newest.items()}


def row(cpf: str, recency: int, nome: str) -> PessoaRow:
    """Give what the store keeps of a person whose newest report has this recency and nome_pessoa."""
    return cpf, nome, nome_busca(nome), recency, response.pessoa(cpf=cpf, nome=nome, atualizado_em=-recency)
