"""★ The one table: the resources, their fields, filters and orders; parser, plan, SQL, JSON and OpenAPI read it."""

from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Final

from laudo.core import axes, values
from laudo.core.axes import Axis
from laudo.core.values import Kind, Stored


class Match(Enum):
    """What a filter asks of its field."""

    EQUAL = auto()
    WORDS = auto()
    """Every word given begins a word of the field, in any order."""
    SEARCH = auto()
    """Digits begin the CPF; anything else is WORDS."""
    SINCE = auto()
    """Not before an instant."""
    UNTIL = auto()
    """Before an instant."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field of an item, in the order of the wire.

    `axis` is the order for a sort by the field. A field without one has few values in an account, and is part of a
    facet.
    """

    name: str
    kind: Kind
    axis: Axis | None
    description: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """The field to sort by; ties are always by the resource's key, ascending."""

    field: Field
    descending: bool

    @property
    def falling(self) -> bool:
        """Whether the first column of its axis is read downwards; without an axis, whether the field's values are."""
        axis = self.field.axis
        return self.descending is not (axis is not None and axis.falls)


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """One query parameter that narrows a list: `description` says how in Portuguese, `english` the same in English."""

    name: str
    kind: Kind
    description: str
    english: str
    match: Match = Match.EQUAL
    may_be_empty: bool = False

    def parse(self, text: str) -> Stored:
        """Read a value; raises ValueError when it is not of the kind, or empty where it may not be."""
        if not text and not self.may_be_empty:
            raise ValueError
        return self.kind.parse(text)


@dataclass(frozen=True, eq=False)
class Resource:
    """One list: what an item holds, what narrows it, and its default order.

    `key` is the field that ends every order. `whole_organization` says that the items are those of all accounts of an
    organization. `echo` names the filters whose value `result.busca` repeats; the first one present wins.
    `total_is_text` is the contract's: `paginacao.total` is a number in one list and a string in the other.
    """

    name: str
    fields: tuple[Field, ...]
    filters: tuple[Filter, ...]
    key: str
    summary: str
    total_is_text: bool = False
    echo: tuple[str, ...] = ()
    whole_organization: bool = False

    @cached_property
    def newest_axis(self) -> Axis:
        """The axis of the default order."""
        axis = self.field(NEWEST).axis
        if axis is None:
            raise LookupError(self.name)
        return axis

    @cached_property
    def facet_fields(self) -> tuple[str, ...]:
        """The fields that make a facet."""
        return tuple(field.name for field in self.fields if field.axis is None)

    def field(self, name: str) -> Field:
        """Give the field of this name; KeyError when there is none."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)


_RANGE: Final = (
    Filter(
        "atualizado_em_de",
        values.SINCE,
        "Somente os atualizados a partir deste instante; uma data vale desde o início do dia (UTC).",
        "Only what was updated at or after this instant; a date counts from the beginning of the day (UTC).",
        Match.SINCE,
    ),
    Filter(
        "atualizado_em_ate",
        values.UNTIL,
        "Somente os atualizados antes deste instante; uma data vale até o fim do dia (UTC).",
        "Only what was updated before this instant; a date counts to the end of the day (UTC).",
        Match.UNTIL,
    ),
)

NEWEST: Final = "atualizado_em"
"""The field of the default order of every list, newest first."""

RELATORIOS: Final = Resource(
    name="relatorios",
    summary="Lista os relatórios da conta.",
    key="numero",
    fields=(
        Field("numero", values.UUID, axes.RELATORIO_NUMERO, "Identificador do relatório."),
        Field("status", values.STATUS, None, "Situação do relatório."),
        Field("tipo_pessoa", values.TIPO_PESSOA, None, "Pessoa (física) ou Empresa."),
        Field("nome", values.TEXT, None, "Nome da matriz que deu origem ao relatório."),
        Field("atualizado_em", values.INSTANT, axes.RELATORIO_RECENCY, "Última atualização, em UTC."),
        Field("resultado", values.RESULTADO, None, "VALID ou INVALID; null até a decisão.", nullable=True),
        Field("mensagem", values.TEXT, axes.RELATORIO_MENSAGEM, "Mensagem sobre a situação; pode ser vazia."),
        Field("pendente_validacao_manual", values.BOOLEAN, None, "Se aguarda validação manual."),
        Field(
            "numero_documento", values.DOCUMENTO, axes.RELATORIO_DOCUMENTO, "CPF (11 dígitos) ou CNPJ (14 caracteres)."
        ),
    ),
    filters=(
        Filter(
            "numero_documento",
            values.DOCUMENTO,
            "Somente os relatórios deste CPF ou CNPJ.",
            "Only the reports of this CPF or CNPJ.",
        ),
        Filter(
            "tipo_pessoa", values.TIPO_PESSOA, "Somente pessoas ou somente empresas.", "Only persons or only companies."
        ),
        Filter(
            "nome",
            values.TEXT,
            "Somente os relatórios da matriz com este nome exato.",
            "Only the reports of the matriz with exactly this name.",
        ),
        Filter("numero", values.UUID, "Somente o relatório com este identificador.", "Only the report with this UUID."),
        Filter(
            "resultado",
            values.RESULTADO,
            "Somente os relatórios com este resultado.",
            "Only the reports with this decision.",
        ),
        Filter("status", values.STATUS, "Somente os relatórios nesta situação.", "Only the reports in this state."),
        Filter(
            "pendente_validacao_manual",
            values.BOOLEAN,
            "Com true, somente os que aguardam validação manual; com false, somente os demais.",
            "With true, only the reports that await manual validation; with false, only the others.",
        ),
        *_RANGE,
    ),
)

PESSOAS: Final = Resource(
    name="pessoas",
    summary="Lista os CPFs consultados pela organização.",
    key="cpf",
    total_is_text=True,
    whole_organization=True,
    echo=("busca", "nome", "cpf"),
    fields=(
        Field("cpf", values.CPF, axes.PESSOA_CPF, "CPF, somente dígitos."),
        Field("nome", values.TEXT, axes.PESSOA_NOME, "Nome da pessoa, conforme seu relatório mais recente."),
        Field(
            "atualizado_em",
            values.INSTANT,
            axes.PESSOA_RECENCY,
            "Última atualização de um relatório da pessoa, em UTC.",
        ),
    ),
    filters=(
        Filter("cpf", values.CPF, "Somente a pessoa com este CPF.", "Only the person with this CPF."),
        Filter(
            "nome",
            values.NAME,
            "Palavras do nome, inteiras ou só o início, em qualquer ordem; todas devem constar.",
            "Words of the name, whole or only their beginnings, in any order; all must occur.",
            Match.WORDS,
        ),
        Filter(
            "busca",
            values.SEARCH,
            "Só dígitos: CPFs que começam assim. Outro texto: como em nome. Vazia: sem filtro.",
            "Only digits: CPFs that begin with them. Other text: as in --nome. Empty: no filter.",
            Match.SEARCH,
            may_be_empty=True,
        ),
        *_RANGE,
    ),
)

LISTS: Final = (RELATORIOS, PESSOAS)

PROFILE: Final = (
    ("api_token", "O token apresentado nesta requisição."),
    ("email", "E-mail do usuário."),
    ("nome_usuario", "Nome do usuário."),
    ("webhook_url", "Endereço do webhook da conta; vazio quando não configurado."),
    ("nome_organizacao", "Nome da organização."),
    ("id_organizacao", "Identificador da organização: um número, escrito como texto."),
)
"""The fields of `/usuario`, in the order of the wire."""
