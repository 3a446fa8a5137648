"""Keeps the index of persons' words; the only place that knows how the engine has it, beside the search itself.

An entry is a word, with its organization before it, and the id of a person whose name has that word.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from laudo.core import sql
from laudo.core.sql import Statement
from laudo.server.database import Connection
from laudo.server.ingest import counting


def add(connection: Connection, id_organizacao: int, named: Iterable[tuple[int, str]]) -> None:
    """Enter persons that are not in the index: their ids, and nome_busca."""
    add_all(connection, ((id_, id_organizacao, nome_busca) for id_, nome_busca in named))


def add_all(connection: Connection, named: Iterable[tuple[Any, ...]]) -> None:
    """Enter persons of any organizations: id, id_organizacao and nome_busca of each."""
    connection.write_many(_ADD, ((id_, _entered(owner, nome_busca)) for id_, owner, nome_busca in named))


def remove(connection: Connection, ids: Iterable[int]) -> None:
    """Take persons out of the index."""
    connection.write_many(_REMOVE, ((id_,) for id_ in ids))


def clear(connection: Connection) -> None:
    """Empty the index, of all organizations."""
    connection.run_script(_CLEAR)


def held(connection: Connection, id_organizacao: int) -> Iterator[tuple[str, int, int]]:
    """Give the words of an organization, in order: each with how many entries it has, and the sum of their ids."""
    _open_vocabulary(connection)
    last = prefix = sql.indexed(id_organizacao, "")
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    while chunk := connection.fetch(Statement(_HELD, (last, end, counting.CHUNK))):
        for term, entries, ids in chunk:
            yield term[len(prefix) :], entries, ids
        last = chunk[-1][0]


def _entered(id_organizacao: int, nome_busca: str) -> str:
    return " ".join(sql.indexed(id_organizacao, word) for word in dict.fromkeys(nome_busca.split()))


def _open_vocabulary(connection: Connection) -> None:
    """Make the view of the index, which lives in this connection only; a reader may not make even that otherwise."""
    [(reads_only,)] = connection.fetch(Statement("PRAGMA query_only", ()))
    connection.run_script(f"PRAGMA query_only = OFF; {_VOCABULARY}; PRAGMA query_only = {reads_only}")


_ADD: Final = "INSERT INTO pessoa_words (rowid, words) VALUES (?, ?)"
_REMOVE: Final = "DELETE FROM pessoa_words WHERE rowid = ?"
_CLEAR: Final = "INSERT INTO pessoa_words (pessoa_words) VALUES ('delete-all')"
_VOCABULARY: Final = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.pessoa_vocabulary USING fts5vocab (main, pessoa_words, instance)"
)
_HELD: Final = """
SELECT term, count(*), sum(doc) FROM temp.pessoa_vocabulary WHERE term > ? AND term < ?
GROUP BY term ORDER BY term LIMIT ?
"""
