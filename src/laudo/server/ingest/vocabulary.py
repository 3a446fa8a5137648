"""Keeps `word`, which tells how many persons have a word that begins in some way, without reading any person.

The different words of a name are sorted, and each is counted with the number of letters that it shares with the word
before it. Of the words that begin with the same n letters, only the first in each name shares fewer than n with the
word before it. So the words that begin with these and share fewer than n are as many as the persons that have one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from laudo.core import axes
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.writes import WORD
from laudo.server.database import Connection
from laudo.server.ingest import counting

Entry = tuple[str, int]
"""A word, and how many letters it shares with the one before it."""

_MOST_IN_MEMORY: Final = 100_000
"""Entries that are counted in memory before they are written."""


def update(connection: Connection, id_organizacao: int, added: Iterable[str], removed: Iterable[str]) -> None:
    """Count the words of persons that were added and removed, each given by nome_busca."""
    deltas = Counter(entry for nome_busca in added for entry in _entries(nome_busca))
    deltas.subtract(entry for nome_busca in removed for entry in _entries(nome_busca))
    _add(connection, id_organizacao, deltas)


def rebuild(connection: Connection, id_organizacao: int) -> None:
    """Recount the words of all persons of an organization."""
    connection.fetch(Statement(_DELETE_ALL, (id_organizacao,)))
    for part in _recounted_parts(connection, id_organizacao):
        _add(connection, id_organizacao, part)


def recounted(connection: Connection, id_organizacao: int) -> Iterator[tuple[Entry, int]]:
    """Give the entries that should be kept, with their totals; an entry may come in several parts."""
    for part in _recounted_parts(connection, id_organizacao):
        yield from part.items()


def stored(connection: Connection, id_organizacao: int) -> Iterator[tuple[Entry, int]]:
    """Give the entries that are kept, with their totals."""
    last: Entry = ("", -1)
    while chunk := connection.fetch(Statement(_STORED, (id_organizacao, *last, counting.CHUNK))):
        yield from (((word, shared), total) for word, shared, total in chunk)
        last = chunk[-1][:2]


def _recounted_parts(connection: Connection, id_organizacao: int) -> Iterator[Counter[Entry]]:
    found: Counter[Entry] = Counter()
    for chunk in counting.rows(connection, axes.PESSOA_NOME, Owner(id_organizacao, 0)):
        found.update(entry for nome_busca, *_ in chunk for entry in _entries(nome_busca))
        if len(found) > _MOST_IN_MEMORY:
            yield found
            found = Counter()
    yield found


def _entries(nome_busca: str) -> Iterator[Entry]:
    words = sorted(set(nome_busca.split()))
    return zip(words, map(_shared, ("", *words), words), strict=True)


def _shared(before: str, word: str) -> int:
    """Count the letters that two words share; most names have words that begin with different ones."""
    if before[:1] != word[:1]:
        return 0
    return next((n for n, (one, other) in enumerate(zip(before, word, strict=False)) if one != other), len(before))


def _add(connection: Connection, id_organizacao: int, deltas: Counter[Entry]) -> None:
    """Add to the totals; rows whose total becomes 0 are deleted."""
    rows = sorted((entry, by) for entry, by in deltas.items() if by)
    connection.write(_COUNT, [(id_organizacao, *entry, by) for entry, by in rows])
    connection.write(_CLEAN, [(id_organizacao, *entry) for entry, by in rows if by < 0])


_COUNT: Final = Write(How.COUNT, WORD, ("total",))
_CLEAN: Final = Write(How.DELETE_EMPTY, WORD)
_DELETE_ALL: Final = "DELETE FROM word WHERE id_organizacao = ?"
_STORED: Final = """
SELECT word, shared, total FROM word WHERE id_organizacao = ? AND (word, shared) > (?, ?) ORDER BY word, shared LIMIT ?
"""
