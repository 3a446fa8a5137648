"""The plain way, for questions that name few rows or that no tally answers: filter, sort, skip."""

from collections.abc import Iterable
from typing import Any

from laudo.core.axes import numero_key
from laudo.core.cursor import After
from laudo.core.lookups import Found, Plain
from laudo.core.query import Order, Query
from laudo.core.sql.pages import joined
from laudo.core.sql.parts import Owner, Statement, Where, order


def plain(lookup: Plain, owner: Owner) -> Statement:
    query = lookup.query
    where = _where(lookup, owner)
    source = f"{query.resource.newest_axis.table} {_index(lookup)}"
    if query.order.field.axis is None:
        source += " JOIN facet USING (id_organizacao, id_conta, facet)"
    counted = Statement("NULL", ())
    if lookup.counted:
        counted = Statement(f"(SELECT count(*) FROM {source} WHERE {where})", where.params)
    if lookup.after is not None:
        _add_after(where, query.order, lookup.after)
    offset = 0 if lookup.after is not None else query.offset
    table = query.resource.newest_axis.table
    ids = f"SELECT {table}.rowid AS id_ FROM {source} WHERE {where} ORDER BY {_order(query)} LIMIT ? OFFSET ?"
    items = f"SELECT item FROM ({ids}) CROSS JOIN {table} ON {table}.rowid = id_"
    page = joined(items, (*where.params, query.rows, offset))
    return Statement(page.text.replace("SELECT", f"SELECT {counted.text},", 1), (*counted.params, *page.params))


def found(lookup: Found, owner: Owner) -> Statement:
    return Statement("SELECT count(*) FROM pessoa_words WHERE pessoa_words MATCH ?", (_match(lookup.words, owner),))


def _where(lookup: Plain, owner: Owner) -> Where:
    query = lookup.query
    where = Where(query.resource.newest_axis, owner).having(lookup.facets)
    for condition in query.exact:
        name, value = condition.filter.name, condition.value
        where.add(f"{name} = ?", numero_key(str(value)) if name == "numero" else value)
    if query.since is not None:
        where.add("recency <= ?", -query.since)
    if query.until is not None:
        where.add("recency > ?", -query.until)
    if query.prefix:
        where.add("cpf >= ? AND cpf < ?", query.prefix, query.prefix + ":")
    if query.words and lookup.few:
        where.add("id IN (SELECT rowid FROM pessoa_words WHERE pessoa_words MATCH ?)", _match(query.words, owner))
    elif query.words:
        for word in query.words:
            where.add("instr(' ' || nome_busca, ?) > 0", f" {word}")
    return where


def _index(lookup: Plain) -> str:
    """Name the index that leads to the few rows, or that has the order in which many are walked."""
    query = lookup.query
    if not lookup.few and query.order.field.axis is not None:
        return f"INDEXED BY {query.order.field.axis.index}"
    exact = [condition.filter.name for condition in query.exact]
    for name, index in _BY_FILTER:
        if name in exact:
            return f"INDEXED BY {index}"
    if query.words:
        return "NOT INDEXED"
    if query.prefix:
        return "INDEXED BY pessoa_cpf"
    if query.since is not None or query.until is not None:
        return f"INDEXED BY {query.resource.newest_axis.index}"
    return "" if lookup.facets is None else "INDEXED BY relatorio_facet_recency"


def _order(query: Query) -> str:
    field, descending = query.order.field, query.order.descending
    if field.axis is not None:
        return order(field.axis, falling=descending is not field.axis.falls)
    nulls = f"{field.name} IS NULL, " if field.nullable else ""
    return f"{nulls}{field.name}{' DESC' if descending else ''}, numero"


def _add_after(where: Where, asked: Order, after: After) -> None:
    """Leave out what stands up to an item, in the order asked for."""
    field = asked.field
    if field.axis is not None:
        column, tie = field.axis.names[0], field.axis.names[-1]
        *_, value, key = (None, *field.axis.key(after.value, after.key))
        falling = asked.descending is not field.axis.falls
    else:
        column, tie, value, key, falling = field.name, "numero", after.value, numero_key(after.key), asked.descending
    past = f"{column} {'<' if falling else '>'} ?"
    if column == tie:
        where.add(past, key)
    elif value is None:
        where.add(f"{column} IS NULL AND {tie} > ?", key)
    else:
        nulls = f" OR {column} IS NULL" if field.nullable else ""
        where.add(f"({past} OR ({column} = ? AND {tie} > ?){nulls})", value, value, key)


def _match(words: Iterable[str], owner: Owner) -> str:
    """Write words for the index, each with its organization before it."""
    return " AND ".join(f'"{indexed(owner.id_organizacao, word)}" *' for word in words)


def indexed(id_organizacao: int, word: str) -> str:
    """Give a word as the index holds it: no search of one organization meets a word of another."""
    return f"{id_organizacao}·{word}"


_BY_FILTER: tuple[tuple[str, Any], ...] = (
    ("numero", "relatorio_numero"),
    ("numero_documento", "relatorio_documento"),
    ("cpf", "pessoa_cpf"),
)
