"""How PostgreSQL is asked: rows found again by primary key, words in a full-text index, many rows as arrays.

The plan of a prepared statement knows neither how few rows a LIMIT lets through nor which values are rare. So
subqueries say what is done first, and OFFSET 0 or a LIMIT of its own keeps the planner from flattening one. Rows are
read by their keys in a LATERAL subquery, which runs for each key in their order.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

from laudo.core.axes import Axis
from laudo.core.sql.dialect import Ordered, Owner, Statement, listed, renamed
from laudo.core.sql.writes import How, Write


class Postgres:
    """The dialect of PostgreSQL, with or without Citus."""

    name: Final = "postgres"
    keeps_words: Final = False
    chooses_index: Final = True
    position: Final = "strpos"
    most_fetched: Final = 10
    """Finding a row by its key takes 4 µs among millions."""
    analyze: Final = "ANALYZE (SKIP_LOCKED) relatorio, tally, bucket, facet, pessoa, word"

    def member(self, column: str) -> str:
        return f"{column} = ANY(?)"

    def among(self, column: str) -> str:
        """Test by a hash: a generic plan would compare each row with every element of an array. It becomes no join."""
        return f"({column} IN (SELECT unnest(?::bigint[]))) IS TRUE"

    def unindexed(self, column: str, *, is_text: bool = False) -> str:
        return f"{column} || ''" if is_text else f"{column} + 0"

    def source(self, table: str, _index: str | None) -> str:
        return table

    def joined(self, items: str) -> str:
        return f"SELECT count(*), string_agg(item, ',')::varchar FROM ({items}) AS items"

    def key(self, table: str) -> str:
        return f"{table}.{_KEYS[table]} AS key"

    def items(self, table: str, keys: Statement, owner: Owner, *, columns: str = "item") -> Statement:
        owned = "id_organizacao = ? AND id_conta = ?" if table == "relatorio" else "id_organizacao = ?"
        text = (
            f"SELECT {columns} FROM ({keys.text}) AS keys CROSS JOIN LATERAL "
            f"(SELECT {columns} FROM {table} WHERE {owned} AND {_KEYS[table]} = keys.key OFFSET 0) AS found"
        )
        return Statement(text, (*keys.params, *owner[: owned.count("?")]))

    def first(self, rows: str, most: int) -> str:
        """Say roughly how many rows are taken; else the planner expects a tenth of all, and would sort the account."""
        return f"SELECT * FROM ({rows} LIMIT {10 ** len(str(most - 1))}) AS first LIMIT ? OFFSET ?"

    def collected(self, table: str, source: str, where: Statement, ordered: Ordered) -> Statement:
        columns, ordering = renamed(ordered)
        text = (
            f"SELECT key FROM (SELECT {self.key(table)}, {columns} FROM {source} WHERE {where.text} OFFSET 0) "
            f"AS few ORDER BY {ordering} LIMIT ? OFFSET ?"
        )
        return Statement(text, where.params)

    def firsts(
        self, axis: Axis, column: str, within: Statement, facets: Sequence[int], *, ordered: Ordered, most: int
    ) -> Statement:
        names = ", ".join(axis.names)
        text = (
            f"SELECT firsts.* FROM unnest(?::bigint[]) AS wanted (facet) CROSS JOIN LATERAL "
            f"(SELECT {column}, {names} FROM {axis.table} WHERE {within.text} "
            f"AND facet = wanted.facet ORDER BY {listed(ordered)} LIMIT ?) AS firsts"
        )
        return Statement(text, (list(facets), *within.params, most))

    def having(self, words: Sequence[str], owner: Owner) -> Statement:
        return Statement(f"{WORDS} @@ ?::tsquery", (_query(words, owner),))

    def found(self, words: Sequence[str], owner: Owner) -> Statement:
        text = f"SELECT count(*) FROM pessoa WHERE id_organizacao = ? AND {WORDS} @@ ?::tsquery"
        return Statement(text, (owner.id_organizacao, _query(words, owner)))

    def written(self, write: Write) -> str:
        return _written(write)


@cache
def _written(write: Write) -> str:
    """Take the organization once, and each further column as one array of all rows' values.

    A test for a total of 0 is written as a sum, about which the planner knows nothing. Otherwise, having seen no total
    of 0, it expects one row at most, and compares every row of the table with each row given.
    """
    table, names = write.table.name, write.names
    arrays = ", ".join(f"?{number}::{write.table.types[name]}[]" for number, name in enumerate(names[1:], 2))
    rows = f"unnest({arrays}) AS given ({', '.join(names[1:])})"
    inserted = f"INSERT INTO {table} ({', '.join(names)}) SELECT ?1::bigint, given.* FROM {rows}"
    same = (f"{table}.{name} = given.{name}" for name in write.table.key[1:])
    where = " AND ".join([f"{table}.{names[0]} = ?1", *same])
    added = {name: f"{table}.{name} + " if write.how in {How.COUNT, How.ADD} else "" for name in write.columns}
    match write.how:
        case How.INSERT:
            return inserted
        case How.UPSERT | How.COUNT:
            changed = ", ".join(f"{name} = {sum_}excluded.{name}" for name, sum_ in added.items())
            return f"{inserted} ON CONFLICT ({', '.join(write.table.key)}) DO UPDATE SET {changed}"
        case How.SET | How.ADD:
            changed = ", ".join(f"{name} = {sum_}given.{name}" for name, sum_ in added.items())
            return f"UPDATE {table} SET {changed} FROM {rows} WHERE {where}"
        case How.DELETE:
            return f"DELETE FROM {table} USING {rows} WHERE {where}"
        case How.DELETE_EMPTY:
            return f"DELETE FROM {table} USING {rows} WHERE {where} AND {table}.total + 0 = 0"


def _query(words: Sequence[str], owner: Owner) -> str:
    """Write words for the index, each with its organization before it, so that a search finds no other's words."""
    return " & ".join(f"'{owner.id_organizacao}·{word}':*" for word in words)


WORDS: Final = (
    "array_to_tsvector(string_to_array("
    "id_organizacao::text || '·' || replace(nome_busca, ' ', ' ' || id_organizacao::text || '·'), ' '))"
)
"""The words of a person's name, each with its organization before it; the index is on exactly this expression."""

_KEYS: Final = {"relatorio": "numero", "pessoa": "cpf"}
POSTGRES: Final = Postgres()
