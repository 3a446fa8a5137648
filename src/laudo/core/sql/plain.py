"""The plain way, for questions that name few rows or that no tally answers: filter, sort, skip."""

from typing import Final

from laudo.core.axes import numero_key
from laudo.core.cursor import After
from laudo.core.lookups import Found, Plain
from laudo.core.query import Order
from laudo.core.reading import MOST_MERGED
from laudo.core.sql.dialect import Clause, Dialect, Owner
from laudo.core.sql.parts import Clauses, Statement, Where, order
from laudo.core.values import beyond


def plain(lookup: Plain, owner: Owner, dialect: Dialect) -> Statement:
    query = lookup.query
    table = query.resource.newest_axis.table
    source = dialect.source(table, _index(lookup))
    if lookup.order.field.axis is None:
        source += " JOIN facet USING (id_organizacao, id_conta, facet)"
    within = Where(query.resource.newest_axis, owner, dialect)
    filters = _filters(lookup, owner, dialect)
    counted = Clause("NULL", ())
    if lookup.counted:
        where = _both(within, filters)
        counted = Clause(f"(SELECT count(*) FROM {source} WHERE {where.text})", where.params)
    if lookup.after is not None:
        _add_after(within, lookup.order, lookup.after)
    if lookup.few:
        keys = dialect.collected(table, source, _both(within, filters), _order(lookup.order))
    else:
        keys = _walked(lookup, f"SELECT {dialect.key(table)}, {_TESTED[table]} FROM {source}", within, filters)
    items = dialect.items(table, Clause(keys.text, (*keys.params, lookup.limit, lookup.skip)), owner)
    page = dialect.joined(items.text)
    return Statement(page.replace("SELECT", f"SELECT {counted.text},", 1), (*counted.params, *items.params))


def found(lookup: Found, owner: Owner, dialect: Dialect) -> Statement:
    """Of one word the persons are counted; of several the index tells who has them all."""
    if len(lookup.words) > 1:
        return Statement(*dialect.found(lookup.words, owner))
    [word] = lookup.words
    return Statement(_HAVE_WORD, (owner.id_organizacao, word, beyond(word), len(word)))


def _walked(lookup: Plain, looked_at: str, within: Where, filters: Clauses) -> Clause:
    """Test the first rows of the order; a LIMIT, even of all, keeps a planner from another index."""
    limit, most = (_ALL, ()) if lookup.most is None else ("?", (lookup.most,))
    first = f"{looked_at} WHERE {within} ORDER BY {', '.join(_order(lookup.order))} LIMIT {limit}"
    text = f"SELECT key FROM ({first}) AS walked WHERE {filters} LIMIT ? OFFSET ?"
    return Clause(text, (*within.params, *most, *filters.params))


def _both(within: Where, filters: Clauses) -> Clause:
    return Clause(f"{within} AND {filters}", (*within.params, *filters.params))


def _filters(lookup: Plain, owner: Owner, dialect: Dialect) -> Clauses:
    query = lookup.query
    filters = Clauses()
    if lookup.facets is not None:
        filters.add(dialect.member("facet"), list(lookup.facets))
    for condition in query.exact:
        name, value = condition.filter.name, condition.value
        filters.add(f"{name} = ?", numero_key(str(value)) if name == "numero" else value)
    filters.during(query.period)
    if query.prefix:
        filters.add("cpf >= ? AND cpf < ?", query.prefix, query.prefix + ":")
    if query.words and lookup.few:
        filters.also(dialect.having(query.words, owner))
    elif query.words:
        for word in query.words:
            filters.add(f"{dialect.position}(' ' || nome_busca, ?) > 0", f" {word}")
    return filters


def _index(lookup: Plain) -> str | None:
    """Name the index that leads to the few rows, or that has the order in which many are walked."""
    query = lookup.query
    if not lookup.few and lookup.order.field.axis is not None:
        return lookup.order.field.axis.index
    exact = [condition.filter.name for condition in query.exact]
    for name, index in _BY_FILTER:
        if name in exact:
            return index
    if query.words:
        return None
    if query.prefix:
        return "pessoa_cpf"
    by_facet = lookup.facets and len(lookup.facets) <= MOST_MERGED
    return "relatorio_facet_recency" if by_facet else query.resource.newest_axis.index


def _order(asked: Order) -> list[str]:
    field, falling = asked.field, asked.descending
    if field.axis is not None:
        return order(field.axis, falling=falling is not field.axis.falls).split(", ")
    nulls = [f"{field.name} IS NULL"] if field.nullable else []
    return [*nulls, f"{field.name} DESC" if falling else field.name, "numero"]


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
    if field.axis is not None and column != tie:
        where.add(f"{column} {'<=' if falling else '>='} ?", value)
    if column == tie:
        where.add(past, key)
    elif value is None:
        where.add(f"{column} IS NULL AND {tie} > ?", key)
    else:
        nulls = f" OR {column} IS NULL" if field.nullable else ""
        where.add(f"({past} OR ({column} = ? AND {tie} > ?){nulls})", value, value, key)


_ALL: Final = 1 << 62
"""More rows than there are."""
_TESTED: Final = {"relatorio": "facet, recency", "pessoa": "cpf, nome_busca, recency"}
"""The columns for which rows are tested on the way down an order."""
_HAVE_WORD: Final = """
SELECT CAST(coalesce(sum(total), 0) AS bigint) FROM word
WHERE id_organizacao = ? AND word >= ? AND word < ? AND shared < ?
"""
_BY_FILTER: Final = (
    ("numero", "relatorio_numero"),
    ("numero_documento", "relatorio_documento"),
    ("cpf", "pessoa_cpf"),
)
