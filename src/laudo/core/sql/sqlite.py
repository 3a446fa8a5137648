"""How SQLite wants to be asked: indexes named, rows found again by rowid, words in a table of FTS5."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from laudo.core.axes import Axis
from laudo.core.sql.dialect import Clause, Owner
from laudo.core.sql.writes import How, Write


class Sqlite:
    """The dialect of SQLite."""

    name: Final = "sqlite"
    keeps_words: Final = True
    position: Final = "instr"
    most_fetched: Final = 0
    analyze: Final = ""

    def member(self, column: str) -> str:
        return f"{column} IN (SELECT value FROM carray(?))"

    def unsought(self, column: str) -> str:
        return column

    def source(self, table: str, index: str | None) -> str:
        return f"{table} INDEXED BY {index}" if index else f"{table} NOT INDEXED"

    def joined(self, items: str) -> str:
        return f"SELECT count(*), CAST(group_concat(item, ',') AS BLOB) FROM ({items})"

    def key(self, table: str) -> str:
        return f"{table}.rowid AS key"

    def items(self, table: str, keys: Clause, _owner: Owner) -> Clause:
        return Clause(f"SELECT item FROM ({keys.text}) CROSS JOIN {table} ON {table}.rowid = key", keys.params)

    def collected(self, table: str, source: str, where: Clause, ordered: Sequence[str]) -> Clause:
        text = (
            f"SELECT {self.key(table)} FROM {source} WHERE {where.text} ORDER BY {', '.join(ordered)} LIMIT ? OFFSET ?"
        )
        return Clause(text, where.params)

    def firsts(
        self, axis: Axis, column: str, within: Clause, facets: Sequence[int], *, ordered: str, most: int
    ) -> Clause:
        names = ", ".join(axis.names)
        branch = (
            f"SELECT * FROM (SELECT {column}, {names} FROM {self.source(axis.table, axis.facet_index)} "
            f"WHERE {within.text} AND facet = ? ORDER BY {ordered} LIMIT ?)"
        )
        padded = (*facets, *(_NO_FACET,) * (_power_of_two(len(facets)) - len(facets)))
        return Clause(
            " UNION ALL ".join([branch] * len(padded)),
            tuple(param for facet in padded for param in (*within.params, facet, most)),
        )

    def having(self, words: Sequence[str], owner: Owner) -> Clause:
        return Clause("id IN (SELECT rowid FROM pessoa_words WHERE pessoa_words MATCH ?)", (_match(words, owner),))

    def found(self, words: Sequence[str], owner: Owner) -> Clause:
        return Clause("SELECT count(*) FROM pessoa_words WHERE pessoa_words MATCH ?", (_match(words, owner),))

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
    """Give a word as the index holds it: no search of one organization meets a word of another."""
    return f"{id_organizacao}·{word}"


def _match(words: Sequence[str], owner: Owner) -> str:
    return " AND ".join(f'"{indexed(owner.id_organizacao, word)}" *' for word in words)


def _power_of_two(number: int) -> int:
    """Give the next one up, so that merges have few distinct texts to prepare."""
    return 1 << (number - 1).bit_length()


_NO_FACET: Final = 0
SQLITE: Final = Sqlite()
