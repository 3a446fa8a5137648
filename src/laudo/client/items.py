"""What answers hold, as frozen values, and the filters that questions take; neither shows personal data in a `repr`."""

from datetime import UTC, date, datetime
from typing import Any, ClassVar, Literal, TypedDict
from uuid import UUID

import msgspec

from laudo.core import disclosure

Status = Literal["PROCESSANDO", "EM ANALISE", "CONCLUIDO", "PRE-PROCESSANDO", "PENDENTE"]
TipoPessoa = Literal["PESSOA", "EMPRESA"]
Resultado = Literal["VALID", "INVALID"]
Moment = date | datetime | str
"""A day (UTC), or an instant with its zone, or either as ISO 8601 text."""


class Item(msgspec.Struct, frozen=True, gc=False):
    """An item of a list."""

    key_field: ClassVar[str]

    @property
    def key(self) -> str:
        """The value that no other item of the list has."""
        return str(getattr(self, self.key_field))

    def to_dict(self) -> dict[str, Any]:
        """Give the fields in the order of the wire; `atualizado_em` stays a datetime."""
        return msgspec.structs.asdict(self)

    def to_wire(self) -> dict[str, str | bool | None]:
        """Give the fields as the service wrote them: instants as text with three decimals."""
        return {name: render(value) for name, value in self.to_dict().items()}


@disclosure.only("numero", "status")
class Relatorio(Item, frozen=True, gc=False):
    """One report.

    `status` and `resultado` are what the service says, which may be values that this version does not know.
    `atualizado_em` is in UTC. The `repr` shows `numero` and `status` only.
    """

    numero: str
    status: str
    tipo_pessoa: str
    nome: str
    atualizado_em: datetime
    resultado: str | None
    mensagem: str
    pendente_validacao_manual: bool
    numero_documento: str

    key_field: ClassVar[str] = "numero"

    def __post_init__(self) -> None:
        _move_to_utc(self)


class Pessoa(Item, frozen=True, gc=False):
    """One person whose CPF was consulted; `atualizado_em` is in UTC. The `repr` shows neither CPF nor name."""

    cpf: str
    nome: str
    atualizado_em: datetime

    key_field: ClassVar[str] = "cpf"

    def __post_init__(self) -> None:
        _move_to_utc(self)

    def __repr__(self) -> str:
        return "Pessoa(cpf='***', nome='***')"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return []


@disclosure.only("id_organizacao")
class Usuario(msgspec.Struct, frozen=True):
    """The caller. The `repr` shows `id_organizacao` only."""

    api_token: str
    email: str
    nome_usuario: str
    webhook_url: str
    nome_organizacao: str
    id_organizacao: str


class RelatorioFilters(TypedDict, total=False):
    """Filters of the list of reports; None means not given. Only laudo's own service knows the last two."""

    numero_documento: str | None
    tipo_pessoa: TipoPessoa | None
    nome: str | None
    numero: str | UUID | None
    resultado: Resultado | None
    status: Status | None
    pendente_validacao_manual: bool | None
    atualizado_em_de: Moment | None
    atualizado_em_ate: Moment | None


class PessoaFilters(TypedDict, total=False):
    """Filters of the list of persons; None means not given. Not every service has the last three."""

    cpf: str | None
    nome: str | None
    busca: str | None
    atualizado_em_de: Moment | None
    atualizado_em_ate: Moment | None


def render(value: str | bool | datetime | None) -> str | bool | None:  # noqa: FBT001 - a value of any field
    """Write a field as the wire has it."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value


def _move_to_utc(item: Relatorio | Pessoa) -> None:
    """Raises ValueError for an instant without a zone, or in a year that Python does not have."""
    instant = item.atualizado_em
    if instant.tzinfo is UTC:
        return
    if instant.tzinfo is None:
        raise ValueError("an instant without a time zone")
    try:
        msgspec.structs.force_setattr(item, "atualizado_em", instant.astimezone(UTC))
    except OverflowError:
        raise ValueError("an instant outside the years 1 to 9999") from None
