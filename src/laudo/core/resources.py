"""★ The one table: the resources, their fields, filters and orders; parser, plan, SQL, JSON and OpenAPI read it."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from laudo.core import values
from laudo.core.values import Kind


class Kept(Enum):
    """How the store keeps a field, which decides how a list is ordered by it."""

    FACET = auto()
    """One of the five that make a facet: few distinct values."""
    AXIS = auto()
    """A column with an ordered index and a tally."""
    PLAIN = auto()
    """A column with an ordered index only."""


class Match(Enum):
    """What a filter asks of its field."""

    EQUAL = auto()
    WORDS = auto()
    """Every word given begins a word of the field, in any order."""
    SEARCH = auto()
    """Digits begin the CPF; anything else is WORDS."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an item, in the order of the wire."""

    name: str
    kind: Kind
    kept: Kept
    description: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """One query parameter that narrows a list."""

    name: str
    kind: Kind
    description: str
    match: Match = Match.EQUAL
    may_be_empty: bool = False


@dataclass(frozen=True, slots=True)
class Resource:
    """One list: what an item holds, what narrows it, how it is ordered when nobody asks.

    `key` is the field that ends every order; `echo` names the filters, first present wins, that `result.busca`
    repeats; `total_is_text` is the contract's: `paginacao.total` is a number in one list and a string in the other.
    """

    name: str
    fields: tuple[Field, ...]
    filters: tuple[Filter, ...]
    key: str
    summary: str
    total_is_text: bool = False
    echo: tuple[str, ...] = ()

    def field(self, name: str) -> Field:
        """Give the field of this name; KeyError when there is none."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)


NEWEST: Final = "atualizado_em"
"""The field by which every list is ordered, newest first, when nobody asks for another order."""

RELATORIOS: Final = Resource(
    name="relatorios",
    summary="Lista os relatórios da conta.",
    key="numero",
    fields=(
        Field("numero", values.UUID, Kept.AXIS, "Identificador do relatório."),
        Field("status", values.STATUS, Kept.FACET, "Situação do relatório."),
        Field("tipo_pessoa", values.TIPO_PESSOA, Kept.FACET, "Pessoa (física) ou Empresa."),
        Field("nome", values.TEXT, Kept.FACET, "Nome da matriz que deu origem ao relatório."),
        Field("atualizado_em", values.INSTANT, Kept.AXIS, "Última atualização, em UTC."),
        Field("resultado", values.RESULTADO, Kept.FACET, "VALID ou INVALID; null até a decisão.", nullable=True),
        Field("mensagem", values.TEXT, Kept.PLAIN, "Mensagem da situação; pode ser vazia."),
        Field("pendente_validacao_manual", values.BOOLEAN, Kept.FACET, "Se depende de validação manual."),
        Field("numero_documento", values.DOCUMENTO, Kept.AXIS, "CPF (11 dígitos) ou CNPJ (14 caracteres)."),
    ),
    filters=(
        Filter("numero_documento", values.DOCUMENTO, "Somente os relatórios deste CPF ou CNPJ."),
        Filter("tipo_pessoa", values.TIPO_PESSOA, "Somente pessoas ou somente empresas."),
        Filter("nome", values.TEXT, "Somente os relatórios da matriz com este nome exato."),
        Filter("numero", values.UUID, "Somente o relatório com este identificador."),
        Filter("resultado", values.RESULTADO, "Somente os relatórios com este resultado."),
        Filter("status", values.STATUS, "Somente os relatórios nesta situação."),
        Filter("pendente_validacao_manual", values.BOOLEAN, "Somente os que dependem, ou não, de validação manual."),
    ),
)

PESSOAS: Final = Resource(
    name="pessoas",
    summary="Lista os CPFs consultados pela organização.",
    key="cpf",
    total_is_text=True,
    echo=("busca", "nome", "cpf"),
    fields=(
        Field("cpf", values.CPF, Kept.AXIS, "CPF, somente dígitos."),
        Field("nome", values.TEXT, Kept.AXIS, "Nome da pessoa, do seu relatório mais recente."),
        Field("atualizado_em", values.INSTANT, Kept.AXIS, "Última atualização de um relatório da pessoa, em UTC."),
    ),
    filters=(
        Filter("cpf", values.CPF, "Somente a pessoa com este CPF."),
        Filter("nome", values.NAME, "Cada palavra dada inicia uma palavra do nome, em qualquer ordem.", Match.WORDS),
        Filter(
            "busca",
            values.SEARCH,
            "Dígitos: CPFs que começam assim. Texto: como nome. Vazia: sem filtro.",
            Match.SEARCH,
            may_be_empty=True,
        ),
    ),
)

LISTS: Final = (RELATORIOS, PESSOAS)

PROFILE: Final = (
    ("api_token", "O token apresentado nesta requisição."),
    ("email", "E-mail do usuário."),
    ("nome_usuario", "Nome do usuário."),
    ("webhook_url", "Endereço de webhook da conta; vazio quando não configurado."),
    ("nome_organizacao", "Nome da organização."),
    ("id_organizacao", "Identificador da organização: um número, escrito como texto."),
)
"""The fields of `/usuario`, in the order of the wire."""
