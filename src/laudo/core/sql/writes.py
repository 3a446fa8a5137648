"""What is written: the tables as a writer knows them, and the few kinds of writing, each for many rows at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table; `key` names the columns that identify its rows, and `types` gives every column's PostgreSQL type."""

    name: str
    key: tuple[str, ...]
    types: Mapping[str, str]


class How(Enum):
    """What is done with a row, given as the values of its table's key and then those of the write's columns."""

    INSERT = auto()
    """The row is new."""
    UPSERT = auto()
    """The row is new, or takes the place of the one with its key."""
    COUNT = auto()
    """The row is new, or its one value is added to that of the row with its key."""
    SET = auto()
    """The row with the key gets the values."""
    ADD = auto()
    """The one value is added to that of the row with the key."""
    DELETE = auto()
    """The row with the key is deleted; there are no values."""
    DELETE_EMPTY = auto()
    """The row with the key is deleted if its total is 0."""


@dataclass(frozen=True, slots=True)
class Write:
    """One kind of writing. All its rows are of one organization, and no two have the same key."""

    how: How
    table: Table
    columns: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of a row, in order; the organization is the first."""
        return (*self.table.key, *self.columns)


def _table(name: str, key: str, **types: str) -> Table:
    columns = {column: types.pop(column, NUMBER) for column in key.split()}
    return Table(name, tuple(columns), MappingProxyType(columns | types))


NUMBER: Final = "bigint"
TEXT: Final = "text"
BYTES: Final = "bytea"

_CONTA: Final = "id_organizacao id_conta"

ORGANIZACAO: Final = _table(
    "organizacao", "id_organizacao", nome_organizacao=TEXT, enabled=NUMBER, version=NUMBER, total=NUMBER, copied=NUMBER
)
CONTA: Final = _table(
    "conta",
    _CONTA,
    nome_conta=TEXT,
    webhook_url=TEXT,
    enabled=NUMBER,
    version=NUMBER,
    total=NUMBER,
    copied=NUMBER,
    pulled=NUMBER,
)
USUARIO: Final = _table(
    "usuario", "id_organizacao id_usuario", id_conta=NUMBER, email=TEXT, nome_usuario=TEXT, enabled=NUMBER
)
TOKEN: Final = _table(
    "token",
    "id_organizacao hash",
    hash=BYTES,
    id_token=NUMBER,
    id_conta=NUMBER,
    id_usuario=NUMBER,
    created_at=NUMBER,
    expires_at=NUMBER,
    revoked_at=NUMBER,
)
"""Its hash alone is unique, so it is inserted or set, never upserted."""

FACET: Final = _table(
    "facet",
    f"{_CONTA} facet",
    nome=TEXT,
    tipo_pessoa=TEXT,
    status=TEXT,
    resultado=TEXT,
    pendente_validacao_manual=NUMBER,
    total=NUMBER,
)
BUCKET: Final = _table("bucket", f"{_CONTA} axis parent bucket", lower=BYTES, total=NUMBER)
TALLY: Final = _table("tally", f"{_CONTA} axis parent facet bucket", total=NUMBER)
RELATORIO: Final = _table(
    "relatorio",
    f"{_CONTA} numero",
    numero=BYTES,
    facet=NUMBER,
    recency=NUMBER,
    numero_documento=TEXT,
    nome_pessoa=TEXT,
    mensagem=TEXT,
    item=TEXT,
)
WORD: Final = _table("word", "id_organizacao word shared", word=TEXT, total=NUMBER)
PESSOA: Final = _table("pessoa", "id_organizacao cpf", cpf=TEXT, nome=TEXT, nome_busca=TEXT, recency=NUMBER, item=TEXT)
