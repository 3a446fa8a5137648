"""Compares `pessoa`, and the counts and index of its words, with the newest report of each CPF in any account."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from typing import Any, Final

from laudo.core import axes
from laudo.core.sql import Owner, Statement
from laudo.core.sql.parts import source
from laudo.core.values import INSTANTS
from laudo.server.database import Connection, WordsDamagedError
from laudo.server.ingest import counting, vocabulary, words
from laudo.server.ingest.claims import CPF_LENGTH, PessoaRow, row
from laudo.server.ingest.pessoas import insert, remove
from laudo.server.ingest.progress import Progress
from laudo.server.ingest.verify.differences import Difference

_WORDS: Final = "words whose entries in the index differ"
_UNREMOVABLE: Final = "persons whose words cannot be removed from the index"
_DAMAGED: Final = "the index of words is damaged"
INDEX_FAULTS: Final = frozenset({_WORDS, _UNREMOVABLE, _DAMAGED})
"""What is repaired by rebuilding the index, which is one for all organizations."""

_COLUMNS: Final = ("cpf", "nome", "nome_busca", "recency", "item")
_SLOTS: Final = 1 << 16

Pair = tuple[PessoaRow | None, PessoaRow | None]
"""A person as the store has it, and as the reports say; None if there is none."""


@dataclass(slots=True)
class Entries:
    """The entries that an index has, or should have, summed up in constant memory: words share slots."""

    entries: Counter[int] = field(default_factory=Counter)
    ids: Counter[int] = field(default_factory=Counter)

    def add(self, word: str, entries: int, ids: int) -> None:
        """Add a word's entries; `ids` is the sum of their persons' ids."""
        slot = hash(word) % _SLOTS
        self.entries[slot] += entries
        self.ids[slot] += ids

    def differing(self, other: "Entries") -> int:
        """Count the slots, about as many as words, whose entries differ."""
        slots = self.entries.keys() | other.entries.keys()
        return sum(self.entries[slot] != other.entries[slot] or self.ids[slot] != other.ids[slot] for slot in slots)


def differences(
    connection: Connection, id_organizacao: int, progress: Progress, *, is_sound: bool
) -> Iterator[Difference]:
    """Compare the persons of an organization, the counts of their words, and the index of words, if it `is_sound`."""
    found: Counter[str] = Counter()
    for stored, expected in _pairs(connection, id_organizacao, progress):
        found.update(_faults(stored, expected))
    for what, rows in sorted(found.items()):
        yield Difference(id_organizacao=id_organizacao, what=what, rows=rows)
    yield from _vocabulary(connection, id_organizacao)
    if connection.dialect.keeps_words:
        yield from _indexed(connection, id_organizacao, is_sound=is_sound)


def _vocabulary(connection: Connection, id_organizacao: int) -> Iterator[Difference]:
    """Compare the words that are counted with the names that persons have."""
    expected, kept = Entries(), Entries()
    for entries, found in (expected, vocabulary.recounted), (kept, vocabulary.stored):
        for (word, shared), total in found(connection, id_organizacao):
            entries.add(f"{word} {shared}", total, 0)
    yield from _compared(id_organizacao, "words whose totals differ", kept, expected)


def _indexed(connection: Connection, id_organizacao: int, *, is_sound: bool) -> Iterator[Difference]:
    """Compare the index of words with the names that persons have."""
    if not is_sound:
        yield Difference(id_organizacao=id_organizacao, what=_DAMAGED)
        return
    expected, kept = Entries(), Entries()
    unremovable = 0
    for id_, nome_busca, removable in words.persons(connection, id_organizacao):
        unremovable += not removable
        for word in dict.fromkeys(nome_busca.split()):
            expected.add(word, 1, id_)
    try:
        for word, entries, ids in words.stored(connection, id_organizacao):
            kept.add(word, entries, ids)
    except (WordsDamagedError, UnicodeDecodeError):  # What is not UTF-8 was never a word.
        yield Difference(id_organizacao=id_organizacao, what=_DAMAGED)
        return
    if differing := list(_compared(id_organizacao, _WORDS, kept, expected)):
        yield from differing
    elif unremovable:
        yield Difference(id_organizacao=id_organizacao, what=_UNREMOVABLE, rows=unremovable)


def _compared(id_organizacao: int, what: str, kept: Entries, expected: Entries) -> Iterator[Difference]:
    if rows := kept.differing(expected):
        stored, counted = kept.entries.total(), expected.entries.total()
        yield Difference(id_organizacao=id_organizacao, what=what, rows=rows, stored=stored, counted=counted)


def repair(connection: Connection, id_organizacao: int, progress: Progress) -> None:
    """Rewrite the persons that differ, and their words; other names stay in the index until `words.erase_removed`."""
    wrong: list[str] = []
    new: list[PessoaRow] = []
    for stored, expected in _pairs(connection, id_organizacao, progress):
        if stored != expected:
            wrong += [] if stored is None else [stored[0]]
            new += [] if expected is None else [expected]
        if len(wrong) + len(new) >= counting.CHUNK:
            _replace(connection, id_organizacao, wrong, new)
    _replace(connection, id_organizacao, wrong, new)


def rows_to_read(connection: Connection, owners: Iterable[Owner]) -> int:
    """Count the rows of persons to be read: the CPFs of each account, once by themselves and once for each axis.

    That is too many if accounts share persons.
    """
    text = _COUNT.format(source=source(axes.RELATORIO_DOCUMENTO, connection.dialect))
    cpfs = sum(connection.fetch(Statement(text, (*owner, CPF_LENGTH)))[0][0] for owner in owners)
    return int(cpfs) * (1 + len(axes.OF_PESSOA))


def _faults(stored: PessoaRow | None, expected: PessoaRow | None) -> list[str]:
    if stored is None:
        return ["persons missing"]
    if expected is None:
        return ["persons too many"]
    if stored == expected:
        return []
    pairs = zip(_COLUMNS, stored, expected, strict=True)
    return [f"persons whose {column} differs" for column, kept, right in pairs if kept != right]


def _replace(connection: Connection, id_organizacao: int, wrong: list[str], new: list[PessoaRow]) -> None:
    remove(connection, id_organizacao, wrong)
    insert(connection, id_organizacao, new)
    wrong.clear()
    new.clear()


def _pairs(connection: Connection, id_organizacao: int, progress: Progress) -> Iterator[Pair]:
    """Give every person that the store has or should have, in the order of CPFs.

    Persons already given may be written meanwhile.
    """
    stored_rows = _stored(connection, id_organizacao)
    expected_rows = _expected(connection, id_organizacao, progress)
    stored, expected = next(stored_rows, None), next(expected_rows, None)
    while stored or expected:
        if expected is None or (stored and stored[0] < expected[0]):
            yield stored, None
            stored = next(stored_rows, None)
        elif stored is None or expected[0] < stored[0]:
            yield None, expected
            expected = next(expected_rows, None)
        else:
            yield stored, expected
            stored, expected = next(stored_rows, None), next(expected_rows, None)


def _stored(connection: Connection, id_organizacao: int) -> Iterator[PessoaRow]:
    for chunk in counting.chunks(connection, axes.PESSOA_CPF, Owner(id_organizacao, 0), _ALL_BUT_CPF):
        yield from chunk


def _expected(connection: Connection, id_organizacao: int, progress: Progress) -> Iterator[PessoaRow]:
    """Give what each person should be: the newest of the accounts' newest reports decides, the first of equally new.

    A report with an impossible instant is ignored.
    """
    contas = [conta for (conta,) in connection.fetch(Statement(_CONTAS, (id_organizacao,)))]
    limit = max(counting.CHUNK // max(len(contas), 1), 1)
    newest = (_newest(connection, Owner(id_organizacao, id_conta), limit, progress) for id_conta in contas)
    previous = None
    for cpf, recency, _, _, nome in merge(*newest):
        if cpf != previous:
            yield row(cpf, recency, nome)
        previous = cpf


def _newest(connection: Connection, owner: Owner, limit: int, progress: Progress) -> Iterator[tuple[Any, ...]]:
    """Give the newest report of each CPF in one account: cpf, recency, numero, id_conta, nome."""
    source_ = source(axes.RELATORIO_DOCUMENTO, connection.dialect)
    last: str | None = ""
    while last is not None:
        ends = connection.fetch(Statement(_END.format(source=source_), (*owner, last, limit)))
        end = ends[0][0] if ends else None
        chunk = connection.fetch(
            Statement(_NEWEST.format(source=source_), (*owner, last, end or _AFTER_ALL, CPF_LENGTH, *_RECENCIES))
        )
        yield from chunk
        progress.add(len(chunk))
        last = end


_CONTAS: Final = "SELECT id_conta FROM conta WHERE id_organizacao = ?"
_ALL_BUT_CPF: Final = ", ".join(_COLUMNS[1:])
"""What is read of a person besides the CPF."""
_AFTER_ALL: Final = "~"
_RECENCIES: Final = (-INSTANTS[-1], -INSTANTS[0])
_END: Final = """
SELECT numero_documento FROM {source}
WHERE id_organizacao = ? AND id_conta = ? AND numero_documento > ?
ORDER BY numero_documento LIMIT 1 OFFSET ?
"""
_NEWEST: Final = """
SELECT numero_documento, recency, numero, id_conta, nome_pessoa
FROM (
    SELECT id_conta, numero_documento, recency, numero, nome_pessoa,
        row_number() OVER (PARTITION BY numero_documento ORDER BY recency, numero) AS place
    FROM {source}
    WHERE id_organizacao = ? AND id_conta = ? AND numero_documento > ? AND numero_documento <= ?
    AND length(numero_documento) = ? AND recency BETWEEN ? AND ?
) AS newest
WHERE place = 1
ORDER BY numero_documento
"""
"""The name is read with its report. A server without statistics of the table would plan a join with the newest reports
for a few rows, and read the whole account for each of them."""
_COUNT: Final = """
SELECT count(DISTINCT numero_documento) FROM {source}
WHERE id_organizacao = ? AND id_conta = ? AND length(numero_documento) = ?
"""
