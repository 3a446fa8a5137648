"""The plain way, for questions that name few rows or that no tally answers: filter, sort, skip."""

from typing import Final, TypeVar

from laudo.core.axes import PESSOA_CPF, PESSOA_NOME, RELATORIO_DOCUMENTO, RELATORIO_NUMERO, numero_key
from laudo.core.cursor import After
from laudo.core.lookups import Found, Plain
from laudo.core.resources import Order
from laudo.core.sql.dialect import By, Dialect, Ordered, Owner, Statement, is_mixed, listed, renamed
from laudo.core.sql.parts import REACHED, Clauses, Where, compared, order, reaching, with_first_column
from laudo.core.values import prefix_end

T = TypeVar("T")


def plain(lookup: Plain, owner: Owner, dialect: Dialect) -> Statement:
    query = lookup.query
    table = query.resource.newest_axis.table
    source = dialect.source(table, _index(lookup))
    within, filters = Where(query.resource.newest_axis, owner, dialect), Clauses()
    _add_ranges(within, filters, lookup, dialect)
    met = f"SELECT count(*) FROM (SELECT 1 FROM {source} WHERE {within} LIMIT ?) AS met"
    few = Statement(f"({met}) < ?", (*within.params, lookup.most, lookup.most))
    if lookup.order.field.axis is None:
        source += " JOIN facet USING (id_organizacao, id_conta, facet)"
    _add_filters(filters, lookup, owner, dialect)
    if lookup.collect and lookup.counted and isinstance(lookup.through, tuple) and lookup.after is None:
        return _found_once(lookup, source, _both(within, filters), owner, dialect)
    counted = _counted(lookup, source, _both(within, filters), few) if lookup.counted else Statement("NULL")
    if lookup.collect:
        keys = _collected(lookup, source, within, filters, few=few, owner=owner, dialect=dialect)
    else:
        keys = _walked(lookup, source, within, filters, dialect)
    items = dialect.items(table, Statement(keys.text, (*keys.params, lookup.limit, lookup.skip)), owner)
    return with_first_column(counted, Statement(dialect.joined(items.text), items.params))


def found(lookup: Found, owner: Owner, dialect: Dialect) -> Statement:
    """Count the persons with one word by its counters, and those with several by the index of words."""
    if len(lookup.words) > 1:
        return dialect.found(lookup.words, owner)
    [word] = lookup.words
    return Statement(_HAVE_WORD, (owner.id_organizacao, word, prefix_end(word), len(word)))


def _counted(lookup: Plain, source: str, where: Statement, few: Statement) -> Statement:
    """Count the matching rows; null if `most` rows or more are met."""
    counted = Statement(f"SELECT count(*) FROM {source} WHERE {where.text}", where.params)
    if lookup.most is None:
        return counted
    return Statement(f"SELECT CASE WHEN {few.text} THEN ({counted.text}) END", (*few.params, *counted.params))


def _collected(
    lookup: Plain, source: str, within: Where, filters: Clauses, *, few: Statement, owner: Owner, dialect: Dialect
) -> Statement:
    """Collect few rows and sort them; none if `most` or more are met."""
    table = lookup.query.resource.newest_axis.table
    outer = Clauses() if dialect.chooses_index and _is_sorted_later(lookup) else None
    if lookup.after is not None:
        _add_after(within if outer is None else outer, lookup.order, lookup.after)
    where = _both(within, filters)
    if lookup.most is not None:
        source = f"(SELECT {few.text} AS few) AS before CROSS JOIN {source}"
        where = Statement(f"{where.text} AND few", (*few.params, *where.params))
    if outer is not None:
        keys = Statement(f"SELECT {dialect.key(table)} FROM {source} WHERE {where.text}", where.params)
        rows = dialect.items(table, keys, owner, columns=", ".join(_columns(lookup.order)))
        source, where = f"({rows.text}) AS {table}", Statement(str(outer), (*rows.params, *outer.params))
    return dialect.collected(table, source, where, _order(lookup.order))


def _found_once(lookup: Plain, source: str, where: Statement, owner: Owner, dialect: Dialect) -> Statement:
    """Find rows once, both to count and to collect them: testing those that words lead to is nearly all the work."""
    table = lookup.query.resource.newest_axis.table
    columns, ordering = renamed(_order(lookup.order))
    rows = f"SELECT {dialect.key(table)}, {columns} FROM {source} WHERE {where.text}"
    keys = Statement(f"SELECT key FROM few ORDER BY {ordering} LIMIT ? OFFSET ?", (lookup.limit, lookup.skip))
    items = dialect.items(table, keys, owner)
    both = with_first_column(Statement("SELECT count(*) FROM few"), Statement(dialect.joined(items.text), items.params))
    return Statement(f"WITH few AS MATERIALIZED ({rows}) {both.text}", (*where.params, *both.params))


def _is_sorted_later(lookup: Plain) -> bool:
    """Tell whether the index that leads to few rows lacks the columns to sort by, while another index has both."""
    newest, axis, index = lookup.query.resource.newest_axis, lookup.order.field.axis, _index(lookup)
    if axis is None or index is None or index not in {newest.index, newest.facet_index}:
        return False
    return not axis.is_covered_by(newest, by_facet=index == newest.facet_index)


def _walked(lookup: Plain, source: str, within: Where, filters: Clauses, dialect: Dialect) -> Statement:
    """Walk down an order, or up from its end."""
    table, exact = lookup.query.resource.newest_axis.table, (each.filter.name for each in lookup.query.exact)
    columns = ", ".join(dict.fromkeys((*_TEST_COLUMNS[table], *exact, *_columns(lookup.order))))
    select = f"SELECT {dialect.key(table)}, {columns} FROM {source}"
    ordered = _order(lookup.order)
    walked = tuple(By(each.name, not each.falling) for each in ordered) if lookup.backwards else ordered
    mixed = lookup.order.field.axis is not None and is_mixed(walked)
    if lookup.after is not None and (lookup.backwards or not mixed):
        _add_after(within, lookup.order, lookup.after)
    test = _tested_mixed if mixed else _tested
    found = test(lookup, select, within.clause, filters, walked, dialect=dialect)
    text = dialect.first(found.text, lookup.limit + lookup.skip)
    if lookup.backwards:
        text = f"SELECT * FROM ({text}) AS last ORDER BY {listed(ordered)}"
    return Statement(f"SELECT key FROM ({text}) AS found", found.params)


def _tested(
    lookup: Plain, select: str, within: Statement, filters: Clauses, walked: Ordered, *, dialect: Dialect
) -> Statement:
    """Test the first rows of an order; a LIMIT, even of all rows, prevents an engine from choosing another index."""
    if lookup.most is None and not dialect.chooses_index:
        text = f"{select} WHERE {within.text} AND {filters} ORDER BY {listed(walked)}"
        return Statement(text, (*within.params, *filters.params))
    first = f"{select} WHERE {within.text} ORDER BY {listed(walked)} LIMIT ?"
    most = _ALL if lookup.most is None else lookup.most
    return Statement(f"SELECT * FROM ({first}) AS walked WHERE {filters}", (*within.params, most, *filters.params))


def _tested_mixed(
    lookup: Plain, select: str, within: Statement, filters: Clauses, walked: Ordered, *, dialect: Dialect
) -> Statement:
    """Test the first rows of a mixed order, whose ties go in the other direction than its values.

    After an item, its own ties come first. Rows with other values are looked at only if all of those ties have been
    looked at and are too few.
    """
    value, wanted = walked[0].name, lookup.limit + lookup.skip

    def first(by: Ordered, clause: str, *params: object) -> Statement:
        clauses = Statement(f"{within.text}{clause}", (*within.params, *params))
        found = _tested(lookup, select, clauses, filters, by, dialect=dialect)
        return Statement(dialect.first(found.text, wanted), (*found.params, wanted, 0))

    def both(clause: str, *params: object) -> Statement:
        met, tied = first(walked[:1], clause, *params), first(walked[1:], f"{clause} AND {value} {REACHED}", *params)
        return reaching(met, tied, walked)

    axis, after = lookup.order.field.axis, lookup.after
    if axis is None or after is None or lookup.backwards:
        return both("")
    key = axis.key(after.value, after.key)
    tied = f" AND {value} = ? AND {walked[1].name} > ?"
    alike = first(walked[1:], tied, *key)
    too_few, params = "(SELECT count(*) FROM alike) < ?", (wanted,)
    if lookup.most is not None:
        left = f"SELECT 1 FROM ({select} WHERE {within.text}{tied} ORDER BY {walked[1]} LIMIT 1 OFFSET ?) AS tied"
        too_few, params = f"{too_few} AND NOT EXISTS ({left})", (*params, *within.params, *key, lookup.most)
    # Below null there is nothing; with the value as bound, SQLite would test every row against a false condition.
    others = both(f" AND {value} < CASE WHEN {too_few} THEN ? END", *params, key[0])
    found = f"SELECT * FROM alike UNION ALL SELECT * FROM ({others.text}) AS others ORDER BY {listed(walked)}"
    return Statement(f"WITH alike AS MATERIALIZED ({alike.text}) {found}", (*alike.params, *others.params))


def _both(within: Where, filters: Clauses) -> Statement:
    return Statement(f"{within} AND {filters}", (*within.params, *filters.params))


def _add_ranges(within: Where, filters: Clauses, lookup: Plain, dialect: Dialect) -> None:
    """Add the query's values and ranges: to `within` if they bound the walk or lead to few rows, else to `filters`."""
    query, ordered = lookup.query, _columns(lookup.order)[:1]
    for condition in query.exact:
        name, value = condition.filter.name, condition.value
        clauses = within if lookup.collect or (name,) == ordered else filters
        column = name if lookup.through is None else dialect.unindexed(name, is_text=True)
        clauses.add(f"{column} = ?", numero_key(str(value)) if name == "numero" else value)
    if query.period and (lookup.collect or ordered != ("recency",)):
        filters.values("recency", *query.period.recency)
    elif query.period:
        within.values("recency", *_without_passed_end(lookup, *query.period.recency))
    if query.prefix and ordered == ("cpf",):
        within.values("cpf", *_without_passed_end(lookup, query.prefix, prefix_end(query.prefix)))
    elif query.prefix:
        filters.values("cpf", query.prefix, prefix_end(query.prefix))
    if lookup.beginning:
        is_indexed = lookup.through is PESSOA_NOME if lookup.collect else ordered == PESSOA_NOME.names[:1]
        ends = lookup.beginning, prefix_end(lookup.beginning)
        if is_indexed:
            within.values("nome_busca", *_without_passed_end(lookup, *ends))
        else:
            filters.values(dialect.unindexed("nome_busca", is_text=True), *ends)


def _without_passed_end(lookup: Plain, lower: T, upper: T) -> tuple[T | None, T | None]:
    """Drop the end of a range that the item `after` has already passed: with both ends, SQLite may begin at either."""
    if lookup.collect or lookup.after is None:
        return lower, upper
    return (lower, None) if lookup.order.falling else (None, upper)


def _add_filters(filters: Clauses, lookup: Plain, owner: Owner, dialect: Dialect) -> None:
    query = lookup.query
    if lookup.facets is not None:
        filters.add((dialect.member if lookup.collect else dialect.among)("facet"), list(lookup.facets))
    searched = lookup.through if lookup.collect and isinstance(lookup.through, tuple) else ()
    if searched:
        filters.also(dialect.having(searched, owner))
    for word in query.words:
        if word not in searched and word != lookup.beginning:
            filters.add(f"{dialect.position}(' ' || nome_busca, ?) > 0", f" {word}")


def _index(lookup: Plain) -> str | None:
    """Name the index that leads to the few rows, or in whose order rows are walked."""
    query = lookup.query
    if not lookup.collect and lookup.order.field.axis is not None:
        return lookup.order.field.axis.index
    through = lookup.through
    if isinstance(through, tuple):
        return None
    if through is None:
        exact = [condition.filter.name for condition in query.exact]
        for axis in _EXACT_AXES:
            if axis.names[0] in exact:
                return axis.index
        through = PESSOA_CPF if query.prefix else query.resource.newest_axis
    return (lookup.facets and through.facet_index) or through.index


def _columns(sort: Order) -> tuple[str, ...]:
    return sort.field.axis.names if sort.field.axis else ()


def _order(sort: Order) -> Ordered:
    field = sort.field
    if field.axis is not None:
        return order(field.axis, falling=sort.falling)
    nulls = [By(f"{field.name} IS NULL")] if field.nullable else []
    return (*nulls, By(field.name, sort.falling), By("numero"))


def _add_after(where: Clauses, sort: Order, after: After) -> None:
    """Leave out everything up to an item, in the order asked for."""
    axis, past = sort.field.axis, "<" if sort.falling else ">"
    if axis is None:
        column, tie, value, key = sort.field.name, "numero", after.value, numero_key(after.key)
    elif not is_mixed(_order(sort)):
        where.add(compared(axis, past), *axis.key(after.value, after.key))
        return
    else:
        (column, tie), (value, key) = axis.names, axis.key(after.value, after.key)
        where.add(f"{column} <= ?", value)
    if value is None:
        where.add(f"{column} IS NULL AND {tie} > ?", key)
        return
    nulls = f" OR {column} IS NULL" if sort.field.nullable else ""
    where.add(f"({column} {past} ? OR ({column} = ? AND {tie} > ?){nulls})", value, value, key)


_ALL: Final = 1 << 62
"""More rows than there are."""
_TEST_COLUMNS: Final = {"relatorio": ("facet", "recency"), "pessoa": ("cpf", "nome_busca", "recency")}
"""The columns for which filters test rows."""
_HAVE_WORD: Final = """
SELECT CAST(coalesce(sum(total), 0) AS bigint) FROM word
WHERE id_organizacao = ? AND word >= ? AND word < ? AND shared < ?
"""
_EXACT_AXES: Final = (RELATORIO_NUMERO, RELATORIO_DOCUMENTO, PESSOA_CPF)
"""The axes whose first column a filter may give a value for; the one that leaves the fewest rows comes first."""
