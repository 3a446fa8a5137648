"""Keeps the index of persons' words on SQLite; PostgreSQL keeps its own by itself.

An entry is a word, with its organization as a prefix, and the id of a person whose name has that word.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from laudo.core import axes
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.sqlite import indexed
from laudo.core.sql.writes import NUMBER, TEXT, Table
from laudo.core.values import prefix_end
from laudo.server.database import Connection, Row, StoreError, WordsDamagedError
from laudo.server.ingest import counting


def add(connection: Connection, id_organizacao: int, names: Mapping[str, str]) -> None:
    """Add persons that are not in the index, given as CPF -> nome_busca."""
    if connection.dialect.keeps_words:
        ids = _ids(connection, id_organizacao, names)
        connection.write(_INSERT, ((id_, _prefixed(id_organizacao, names[cpf])) for id_, cpf in ids))


def remove(connection: Connection, id_organizacao: int, cpfs: Iterable[str]) -> None:
    """Remove persons from the index, before they change or are deleted."""
    if connection.dialect.keeps_words:
        connection.write(_DELETE, [(id_,) for id_, _ in _ids(connection, id_organizacao, cpfs)])


def erase_removed(connection: Connection) -> None:
    """Erase from the index what `remove` has only marked as deleted; 0.1 s for a million persons."""
    if connection.dialect.keeps_words:
        connection.run_script(_MERGE)


def rebuild(connection: Connection) -> None:
    """Rebuild the whole index, which is one for all organizations."""
    connection.run_script(f"{_TABLES}; {_FORMAT}; {_CLEAR}")
    last = _BEFORE_ALL
    while chunk := connection.fetch(Statement(_ALL, (last, counting.CHUNK))):
        connection.write(
            _INSERT, ((id_, _prefixed(id_organizacao, nome_busca)) for id_, id_organizacao, nome_busca in chunk)
        )
        last = chunk[-1][0]


def is_sound(connection: Connection) -> bool:
    """Tell whether the index, which is one for all organizations, is consistent, as far as FTS5 checks.

    Raises StoreError if it cannot be rebuilt: the pages that hold it are damaged, not only what is on them.
    """
    [(tables,)] = connection.fetch(Statement(_COUNT_TABLES))
    if tables and connection.fetch(Statement(_CHECK_PAGES)) != [("ok",)]:
        raise StoreError("pages of the store's file that hold the index of words are damaged; restore it from a backup")
    if tables < _TABLES.count("TABLE"):
        return False
    try:
        connection.fetch(Statement(_RELOAD_SEGMENTS))
        return connection.fetch(Statement(_CHECK)) == [("ok", True)]
    except WordsDamagedError:
        return False


def persons(connection: Connection, id_organizacao: int) -> Iterator[tuple[int, str, bool]]:
    """Give id and nome_busca of an organization's persons, and whether the index can remove their words."""
    for chunk in counting.chunks(
        connection, axes.PESSOA_CPF, Owner(id_organizacao, 0), f"id, nome_busca, {_REMOVABLE}"
    ):
        yield from ((id_, nome_busca, bool(removable)) for _, id_, nome_busca, removable in chunk)


def stored(connection: Connection, id_organizacao: int) -> Iterator[tuple[str, int, int]]:
    """Give the words of an organization: each with how many entries it has, and the sum of their ids.

    Each is looked up, as a search does: one that is there but cannot be found is not given.
    """
    _open_vocabulary(connection)
    lower = prefix = indexed(id_organizacao, "")
    while chunk := connection.fetch(Statement(_TERMS, (lower, prefix_end(prefix), counting.CHUNK))):
        terms = [term for (term,) in chunk]
        for term, entries, ids in connection.fetch(Statement(_ENTRIES, (terms,))):
            yield term[len(prefix) :], entries, ids
        lower = terms[-1] + "\0"


def _ids(connection: Connection, id_organizacao: int, cpfs: Iterable[str]) -> list[Row]:
    """Give id and CPF of these persons, sorted by id: FTS5 begins a new segment whenever the next id is smaller."""
    text = f"{_IDS} AND {connection.dialect.member('cpf')} ORDER BY id"
    return connection.fetch(Statement(text, (id_organizacao, list(cpfs))))


def _prefixed(id_organizacao: int, nome_busca: str) -> str:
    prefix = indexed(id_organizacao, "")
    return " ".join(map(prefix.__add__, dict.fromkeys(nome_busca.split())))


def _open_vocabulary(connection: Connection) -> None:
    """Make the temporary view of the index, in this connection only; for that, a reader must be allowed to write."""
    [(reads_only,)] = connection.fetch(Statement("PRAGMA query_only"))
    connection.run_script(f"PRAGMA query_only = OFF; {_VOCABULARY}; PRAGMA query_only = {reads_only}")


# The only table whose rows have no organization: their words do.
_WORDS: Final = Table("pessoa_words", ("rowid",), {"rowid": NUMBER, "words": TEXT})
_IDS: Final = "SELECT id, cpf FROM pessoa WHERE id_organizacao = ?"
_INSERT: Final = Write(How.INSERT, _WORDS, ("words",))
_DELETE: Final = Write(How.DELETE, _WORDS)
_ALL: Final = "SELECT id, id_organizacao, nome_busca FROM pessoa WHERE id > ? ORDER BY id LIMIT ?"
_BEFORE_ALL: Final = -(1 << 63)
"""Ids begin at 1, but in a damaged store one may be lower."""
_MERGE: Final = "INSERT INTO pessoa_words (pessoa_words) VALUES ('optimize')"
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS pessoa_words_data (id INTEGER PRIMARY KEY, block BLOB);
CREATE TABLE IF NOT EXISTS pessoa_words_idx (segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pessoa_words_docsize (id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);
CREATE TABLE IF NOT EXISTS pessoa_words_config (k PRIMARY KEY, v) WITHOUT ROWID
"""
"""The tables of an index, as FTS5 makes them: it does not open one that lacks any."""
_FORMAT: Final = "INSERT OR REPLACE INTO pessoa_words_config (k, v) VALUES ('version', 4)"
"""What FTS5 writes there when it makes an index; without it, the index cannot even be cleared."""
_CLEAR: Final = "INSERT INTO pessoa_words (pessoa_words) VALUES ('delete-all')"
_VOCABULARY: Final = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.pessoa_vocabulary USING fts5vocab (main, pessoa_words, instance)"
)
_RELOAD_SEGMENTS: Final = "SELECT rowid FROM pessoa_words LIMIT 1"
"""Makes FTS5 read the list of segments again: else it would check those that this connection last searched."""
_CHECK: Final = """
SELECT integrity_check, EXISTS (SELECT 1 FROM pessoa_words_data WHERE id = 1)
FROM pragma_integrity_check('pessoa_words')
"""
"""Row 1 has the totals: without it nothing can be removed, but FTS5's own check does not notice."""
_IS_PART: Final = "name IN ('pessoa_words_data', 'pessoa_words_idx', 'pessoa_words_docsize', 'pessoa_words_config')"
_COUNT_TABLES: Final = f"SELECT count(*) FROM sqlite_schema WHERE {_IS_PART}"
_CHECK_PAGES: Final = f"""
SELECT DISTINCT quick_check FROM sqlite_schema AS kept CROSS JOIN pragma_quick_check(kept.name) WHERE kept.{_IS_PART}
"""
_REMOVABLE: Final = "EXISTS (SELECT 1 FROM pessoa_words_docsize AS noted WHERE noted.id = pessoa.id)"
"""FTS5 never removes the words of an id that this table lacks."""
_TERMS: Final = """
SELECT DISTINCT term FROM temp.pessoa_vocabulary WHERE term >= ? AND term < ? ORDER BY term LIMIT ?
"""
_ENTRIES: Final = """
SELECT value, count(*), sum(doc) FROM carray(?) CROSS JOIN temp.pessoa_vocabulary ON term = value GROUP BY value
"""
