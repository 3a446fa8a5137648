"""Query → Statement: every SELECT of the lists is here, and every one starts from the owner."""

from typing import Any, Final, NamedTuple

from laudo.core.query import Condition, Order, Query
from laudo.core.resources import PESSOAS, RELATORIOS, Match, Resource
from laudo.core.values import Stored, words


class Statement(NamedTuple):
    """A text with `?` placeholders and its parameters; a list is bound as one array."""

    text: str
    params: tuple[Any, ...]


class Owner(NamedTuple):
    """Whose rows a statement may see: an account of an organization."""

    id_organizacao: int
    id_conta: int


def total(query: Query, owner: Owner) -> Statement:
    """Count the items that a query matches: one row, one number."""
    where, params = _where(query, owner)
    return Statement(f"SELECT count(*) FROM {_SOURCE[query.resource.name]} WHERE {where}", params)


def page(query: Query, owner: Owner) -> Statement:
    """Give a query's page: one row, the items' JSON joined by commas, null when there are none."""
    where, params = _where(query, owner)
    ordered = (
        f"SELECT item FROM {_SOURCE[query.resource.name]} WHERE {where} "
        f"ORDER BY {_order(query.order, query.resource)} LIMIT ? OFFSET ?"
    )
    return Statement(f"SELECT group_concat(item, ',') FROM ({ordered})", (*params, query.rows, query.offset))


def numero_key(numero: str) -> bytes:
    """Give the 16 bytes under which a report's numero is stored; they sort as its text does."""
    return bytes.fromhex(numero.replace("-", ""))


_SOURCE: Final = {
    RELATORIOS.name: "relatorio JOIN facet USING (id_organizacao, id_conta, facet)",
    PESSOAS.name: "pessoa",
}
_COLUMN: Final = {(PESSOAS.name, "nome"): "nome_busca"}


def _where(query: Query, owner: Owner) -> tuple[str, tuple[Any, ...]]:
    clauses = ["id_organizacao = ?"]
    params: list[Any] = [owner.id_organizacao]
    if query.resource.name == RELATORIOS.name:
        clauses.append("id_conta = ?")
        params.append(owner.id_conta)
    for condition in query.conditions:
        for clause, value in _clauses(condition):
            clauses.append(clause)
            params.append(value)
    return " AND ".join(clauses), tuple(params)


def _clauses(condition: Condition) -> list[tuple[str, Stored | bytes]]:
    name, value = condition.filter.name, condition.value
    match condition.filter.match:
        case Match.EQUAL:
            return [(f"{name} = ?", numero_key(str(value)) if name == RELATORIOS.key else value)]
        case Match.SEARCH if str(value).isascii() and str(value).isdigit():
            return [("instr(cpf, ?) = 1", value)]
        case Match.WORDS | Match.SEARCH:
            return [("instr(' ' || nome_busca, ?) > 0", f" {word}") for word in words(str(value))]


def _order(order: Order, resource: Resource) -> str:
    column = _COLUMN.get((resource.name, order.field.name), order.field.name)
    direction = " DESC" if order.descending else ""
    nulls = f"{column} IS NULL, " if order.field.nullable else ""
    return f"{nulls}{column}{direction}, {resource.key}"
