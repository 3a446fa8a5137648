"""Keeps the index of persons' words where the engine does not do so by itself, which PostgreSQL does and SQLite not.

An entry is a word, with its organization before it, and the id of a person whose name has that word.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from laudo.core import axes
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.sqlite import indexed
from laudo.core.sql.writes import NUMBER, TEXT, Table
from laudo.core.values import beyond
from laudo.server.database import Connection, Row
from laudo.server.ingest import counting


def add(connection: Connection, id_organizacao: int, named: Mapping[str, str]) -> None:
    """Enter persons that are not in the index: nome_busca of each CPF."""
    if connection.dialect.keeps_words:
        ids = _ids(connection, id_organizacao, named)
        connection.write(_ENTER, ((id_, _entered(id_organizacao, named[cpf])) for id_, cpf in ids))


def remove(connection: Connection, id_organizacao: int, cpfs: Iterable[str]) -> None:
    """Take persons out of the index, before they change or go."""
    if connection.dialect.keeps_words:
        connection.write(_REMOVE, [(id_,) for id_, _ in _ids(connection, id_organizacao, cpfs)])


def forget(connection: Connection) -> None:
    """Leave nothing of what was removed in the index, which only notes that it is gone; 0.1 s for a million persons."""
    if connection.dialect.keeps_words:
        connection.run_script(_MERGE)


def rebuild(connection: Connection) -> None:
    """Make the whole index anew: it is one for all organizations."""
    connection.run_script(_CLEAR)
    last = _BEFORE_ALL
    while chunk := connection.fetch(Statement(_ALL, (last, counting.CHUNK))):
        connection.write(
            _ENTER, ((id_, _entered(id_organizacao, nome_busca)) for id_, id_organizacao, nome_busca in chunk)
        )
        last = chunk[-1][0]


def named(connection: Connection, id_organizacao: int) -> Iterator[tuple[int, str]]:
    """Give the ids of an organization's persons, and nome_busca of each."""
    for chunk in counting.chunks(connection, axes.PESSOA_CPF, Owner(id_organizacao, 0), "id, nome_busca"):
        yield from ((id_, nome_busca) for _, id_, nome_busca in chunk)


def held(connection: Connection, id_organizacao: int) -> Iterator[tuple[str, int, int]]:
    """Give the words of an organization, in order: each with how many entries it has, and the sum of their ids."""
    _open_vocabulary(connection)
    lower = prefix = indexed(id_organizacao, "")
    while chunk := connection.fetch(Statement(_HELD, (lower, beyond(prefix), counting.CHUNK))):
        for term, entries, ids in chunk:
            yield term[len(prefix) :], entries, ids
        lower = chunk[-1][0] + "\0"


def _ids(connection: Connection, id_organizacao: int, cpfs: Iterable[str]) -> list[Row]:
    """Give id and CPF of each of these persons, by id: FTS5 writes a segment wherever the next id is a smaller one."""
    asked = f"{_IDS} AND {connection.dialect.member('cpf')} ORDER BY id"
    return connection.fetch(Statement(asked, (id_organizacao, list(cpfs))))


def _entered(id_organizacao: int, nome_busca: str) -> str:
    before = indexed(id_organizacao, "")
    return " ".join(map(before.__add__, dict.fromkeys(nome_busca.split())))


def _open_vocabulary(connection: Connection) -> None:
    """Make the view of the index, which lives in this connection only; a reader may not make even that otherwise."""
    [(reads_only,)] = connection.fetch(Statement("PRAGMA query_only"))
    connection.run_script(f"PRAGMA query_only = OFF; {_VOCABULARY}; PRAGMA query_only = {reads_only}")


# The one table whose rows know no organization: their words do.
_WORDS: Final = Table("pessoa_words", ("rowid",), {"rowid": NUMBER, "words": TEXT})
_IDS: Final = "SELECT id, cpf FROM pessoa WHERE id_organizacao = ?"
_ENTER: Final = Write(How.INSERT, _WORDS, ("words",))
_REMOVE: Final = Write(How.DELETE, _WORDS)
_ALL: Final = "SELECT id, id_organizacao, nome_busca FROM pessoa WHERE id > ? ORDER BY id LIMIT ?"
_BEFORE_ALL: Final = -(1 << 63)
"""No id that was given is below 1; one of a store that was damaged may be."""
_MERGE: Final = "INSERT INTO pessoa_words (pessoa_words) VALUES ('optimize')"
_CLEAR: Final = "INSERT INTO pessoa_words (pessoa_words) VALUES ('delete-all')"
_VOCABULARY: Final = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.pessoa_vocabulary USING fts5vocab (main, pessoa_words, instance)"
)
_HELD: Final = """
SELECT term, count(*), sum(doc) FROM temp.pessoa_vocabulary WHERE term >= ? AND term < ?
GROUP BY term ORDER BY term LIMIT ?
"""
