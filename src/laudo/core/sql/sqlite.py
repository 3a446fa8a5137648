"""How SQLite is asked: indexes are named, rows found again by rowid, and words are in an FTS5 table."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from laudo.core.axes import Axis
from laudo.core.sql.dialect import By, Ordered, Owner, Statement, is_mixed, listed
from laudo.core.sql.writes import How, Write


class Sqlite:
    """The dialect of SQLite."""

    name: Final = "sqlite"
    keeps_words: Final = True
    chooses_index: Final = False
    position: Final = "instr"
    most_fetched: Final = 0
    analyze: Final = ""

    def member(self, column: str) -> str:
        return f"{column} IN (SELECT value FROM carray(?))"

    def among(self, column: str) -> str:
        return self.member(column)

    def unindexed(self, column: str, *, is_text: bool = False) -> str:  # noqa: ARG002 - the index is named
        return column

    def source(self, table: str, index: str | None) -> str:
        return f"{table} INDEXED BY {index}" if index else f"{table} NOT INDEXED"

    def joined(self, items: str) -> str:
        return f"SELECT count(*), CAST(group_concat(item, ',') AS BLOB) FROM ({items})"

    def key(self, table: str) -> str:
        return f"{table}.rowid AS key"

    def items(self, table: str, keys: Statement, _owner: Owner, *, columns: str = "item") -> Statement:
        return Statement(f"SELECT {columns} FROM ({keys.text}) CROSS JOIN {table} ON {table}.rowid = key", keys.params)

    def first(self, rows: str, _most: int) -> str:
        return f"{rows} LIMIT ? OFFSET ?"

    def collected(self, table: str, source: str, where: Statement, ordered: Ordered) -> Statement:
        text = f"SELECT {self.key(table)} FROM {source} WHERE {where.text} ORDER BY {listed(ordered)} LIMIT ? OFFSET ?"
        return Statement(text, where.params)

    def firsts(
        self, axis: Axis, column: str, within: Statement, facets: Sequence[int], *, ordered: Ordered, most: int
    ) -> Statement:
        """Take the first of the facets' next rows from a queue, again and again: one short text for any facets."""
        table, source = axis.table, self.source(axis.table, axis.facet_index)
        named = ", ".join(f"{table}.{name}" for name in axis.names)
        queue = listed(tuple(By(str(place), each.falling) for place, each in enumerate(ordered, 3)))
        downwards = is_mixed(ordered)
        first, following = _next_downwards(axis, source, within) if downwards else _next(axis, source, within, ordered)
        text = (
            f"WITH RECURSIVE queue AS (SELECT {column}, {table}.facet, {named} FROM carray(?) AS wanted "
            f"CROSS JOIN {table} ON {table}.rowid = {first.text} UNION ALL SELECT {column}, {table}.facet, {named} "
            f"FROM queue CROSS JOIN {table} ON {table}.rowid = {following.text} ORDER BY {queue} LIMIT ?) "
            "SELECT * FROM queue"
        )
        return Statement(text, (list(facets), *first.params, *following.params, most))

    def having(self, words: Sequence[str], owner: Owner) -> Statement:
        return Statement("id IN (SELECT rowid FROM pessoa_words WHERE pessoa_words MATCH ?)", (_match(words, owner),))

    def found(self, words: Sequence[str], owner: Owner) -> Statement:
        return Statement("SELECT count(*) FROM pessoa_words WHERE pessoa_words MATCH ?", (_match(words, owner),))

    def written(self, write: Write) -> str:
        return _written(write)


@cache
def _written(write: Write) -> str:
    table, key, names = write.table.name, write.table.key, write.names
    inserted = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    where = " AND ".join(f"{name} = ?{number}" for number, name in enumerate(key, 1))
    added = {name: f"{name} + " if write.how in {How.COUNT, How.ADD} else "" for name in write.columns}
    match write.how:
        case How.INSERT:
            return inserted
        case How.UPSERT | How.COUNT:
            changed = ", ".join(f"{name} = {sum_}excluded.{name}" for name, sum_ in added.items())
            return f"{inserted} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"
        case How.SET | How.ADD:
            numbered = enumerate(added.items(), len(key) + 1)
            changed = ", ".join(f"{name} = {sum_}?{number}" for number, (name, sum_) in numbered)
            return f"UPDATE {table} SET {changed} WHERE {where}"
        case How.DELETE:
            return f"DELETE FROM {table} WHERE {where}"
        case How.DELETE_EMPTY:
            return f"DELETE FROM {table} WHERE {where} AND total = 0"


def indexed(id_organizacao: int, word: str) -> str:
    """Give a word as the index holds it: a search of one organization meets no word of another."""
    return f"{id_organizacao}·{word}"


def _match(words: Sequence[str], owner: Owner) -> str:
    return " AND ".join(f'"{indexed(owner.id_organizacao, word)}" *' for word in words)


def _next(axis: Axis, source: str, within: Statement, ordered: Ordered) -> tuple[Statement, Statement]:
    """Find a facet's first row, and the one that follows a row of the queue."""
    names = ", ".join(axis.names)
    queued = ", ".join(f"queue.{name}" for name in axis.names)
    row = f"SELECT rowid FROM {source} WHERE {within.text} AND facet ="
    past = f"({names}) {'<' if ordered[0].falling else '>'} ({queued})"
    return (
        Statement(f"({row} wanted.value ORDER BY {listed(ordered)} LIMIT 1)", within.params),
        Statement(f"({row} queue.facet AND {past} ORDER BY {listed(ordered)} LIMIT 1)", within.params),
    )


def _next_downwards(axis: Axis, source: str, within: Statement) -> tuple[Statement, Statement]:
    """Find the same where values fall and ties rise, which no index has: first the value, then the row."""
    value, tie = axis.names
    row = f"SELECT rowid FROM {source} WHERE {within.text} AND facet ="
    top = f"SELECT max({value}) FROM {source} WHERE {within.text} AND facet ="
    tied = f"{row} queue.facet AND {value} = queue.{value} AND {tie} > queue.{tie} ORDER BY {tie} LIMIT 1"
    below = f"{row} queue.facet AND {value} = ({top} queue.facet AND {value} < queue.{value}) ORDER BY {tie} LIMIT 1"
    return (
        Statement(f"({row} wanted.value AND {value} = ({top} wanted.value) ORDER BY {tie} LIMIT 1)", within.params * 2),
        Statement(f"coalesce(({tied}), ({below}))", within.params * 3),
    )


SQLITE: Final = Sqlite()
