"""Keeps `pessoa`: one row per organization and CPF, named after its newest report, within the reports' transaction."""

from collections.abc import Sequence
from itertools import repeat
from typing import Final, NamedTuple

from laudo.core import axes, response
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.writes import PESSOA
from laudo.core.values import words
from laudo.server.database import Connection
from laudo.server.database import Row as Report
from laudo.server.ingest import vocabulary
from laudo.server.ingest import words as word_index
from laudo.server.ingest.changes import Moved
from laudo.server.ingest.rows import DOCUMENTO, NOME, NUMERO, RECENCY
from laudo.server.ingest.tallies import SIZES, Sizes, Tally

CPF_LENGTH: Final = 11
"""Only persons have documents this long; companies do not appear among the persons."""


class Newest(NamedTuple):
    """What the newest report of a CPF says."""

    recency: int
    nome: str


Row = tuple[str, str, str, int, str]
"""cpf, nome, nome_busca, recency and item."""


class Pessoas:
    """The persons of one organization, for the writer of one of its accounts."""

    def __init__(self, id_organizacao: int, sizes: Sizes = SIZES) -> None:
        """Start knowing none."""
        self._id_organizacao = id_organizacao
        self._tallies = tuple(Tally(axis, Owner(id_organizacao, 0), sizes) for axis in axes.OF_PESSOA)

    def load(self, connection: Connection) -> None:
        """Remember what the store has counted."""
        for tally in self._tallies:
            tally.load(connection)

    def follow(self, connection: Connection, moved: Moved) -> bool:
        """Bring the persons of changed reports up to date; tells whether any person changed.

        A report newer than the person decides at once. Where that does not settle it (a report left the CPF, or two
        are equally new) the CPF's reports are asked.
        """
        newest, unsettled = _claims(moved)
        known = self._known(connection, [*newest, *unsettled])
        after: dict[str, Newest] = {}
        for cpf, report in newest.items():
            before = known.get(cpf)
            if before is None or report[RECENCY] < before.recency:
                after[cpf] = Newest(report[RECENCY], report[NOME])
            elif report[RECENCY] == before.recency:
                unsettled.add(cpf)
        found = self._asked(connection, sorted(unsettled))
        after |= found
        gone = sorted((unsettled - found.keys()) & known.keys())
        return self._write(connection, known, after, gone)

    def _known(self, connection: Connection, cpfs: list[str]) -> dict[str, Newest]:
        asked = Statement(f"{_KNOWN} AND {connection.dialect.member('cpf')}", (self._id_organizacao, cpfs))
        return {cpf: Newest(recency, nome) for cpf, recency, nome in connection.fetch(asked)}

    def _asked(self, connection: Connection, cpfs: list[str]) -> dict[str, Newest]:
        """Ask the reports of these CPFs, in all accounts, for the newest one of each."""
        if not cpfs:
            return {}
        dialect = connection.dialect
        source = dialect.source("relatorio", axes.RELATORIO_DOCUMENTO.index)
        text = _NEWEST.format(source=source, member=dialect.member("numero_documento"))
        rows = connection.fetch(Statement(text, (self._id_organizacao, self._id_organizacao, cpfs)))
        return {cpf: Newest(recency, nome) for cpf, recency, nome in rows}

    def _write(
        self, connection: Connection, known: dict[str, Newest], after: dict[str, Newest], gone: Sequence[str]
    ) -> bool:
        """Write what differs: persons that are new or renamed, whose words and places change, and the others."""
        new, renamed, seen = [], [], []
        for cpf in sorted(after):
            before = known.get(cpf)
            if before is None:
                new.append(cpf)
            elif before.nome != after[cpf].nome:
                renamed.append(cpf)
            elif before.recency != after[cpf].recency:
                seen.append(cpf)
        if not (new or renamed or seen or gone):
            return False
        rows = {cpf: row(cpf, after[cpf]) for cpf in (*new, *renamed)}
        folded = {cpf: nome_busca for cpf, (_, _, nome_busca, *_) in rows.items()}
        insert(connection, self._id_organizacao, [rows[cpf] for cpf in new])
        word_index.remove(connection, self._id_organizacao, renamed)
        connection.write(_RENAME, [(self._id_organizacao, *rows[cpf]) for cpf in renamed])
        word_index.add(connection, self._id_organizacao, ((cpf, folded[cpf]) for cpf in renamed))
        connection.write(_SEE, [(self._id_organizacao, cpf, *_seen(cpf, after[cpf])) for cpf in seen])
        remove(connection, self._id_organizacao, gone)
        ended = [_folded(known[cpf].nome) for cpf in (*renamed, *gone)]
        vocabulary.move(connection, self._id_organizacao, folded.values(), ended)
        self._count_names(known, folded, (*renamed, *gone))
        self._count_instants(known, after, (*new, *renamed, *seen, *gone))
        for tally in self._tallies:
            tally.write(connection, ())
        return True

    def _count_names(self, known: dict[str, Newest], folded: dict[str, str], ended: Sequence[str]) -> None:
        """Count the CPFs and names that came, and those that ended."""
        _, by_cpf, by_nome = self._tallies
        for cpfs, names, by in (
            (ended, [_folded(known[cpf].nome) for cpf in ended], -1),
            (folded.keys(), folded.values(), 1),
        ):
            by_cpf.add((cpfs,), repeat(0), by)
            by_nome.add((names, cpfs), repeat(0), by)

    def _count_instants(self, known: dict[str, Newest], after: dict[str, Newest], cpfs: Sequence[str]) -> None:
        for persons, by in ((known, -1), (after, 1)):
            there = [cpf for cpf in cpfs if cpf in persons]
            self._tallies[0].add(([persons[cpf].recency for cpf in there], there), repeat(0), by)


def insert(connection: Connection, id_organizacao: int, rows: Sequence[Row]) -> None:
    """Write persons that are new, and their words."""
    connection.write(_INSERT, [(id_organizacao, *each) for each in rows])
    word_index.add(connection, id_organizacao, ((cpf, nome_busca) for cpf, _, nome_busca, *_ in rows))


def remove(connection: Connection, id_organizacao: int, cpfs: Sequence[str]) -> None:
    """Delete persons, and their words."""
    word_index.remove(connection, id_organizacao, cpfs)
    connection.write(_DELETE, [(id_organizacao, cpf) for cpf in sorted(cpfs)])


def row(cpf: str, newest: Newest) -> Row:
    """Give what the store keeps of a person."""
    return cpf, newest.nome, _folded(newest.nome), *_seen(cpf, newest)


def _folded(nome: str) -> str:
    """Give nome_busca."""
    return " ".join(words(nome))


def _seen(cpf: str, newest: Newest) -> tuple[int, str]:
    """Give what changes with each newer report: the recency and the item."""
    return newest.recency, response.pessoa(cpf=cpf, nome=newest.nome, atualizado_em=-newest.recency)


def _claims(moved: Moved) -> tuple[dict[str, Report], set[str]]:
    """Give each CPF's newest report of those that came, and the CPFs whose reports must be asked."""
    newest: dict[str, Report] = {}
    unsettled = _left(moved)
    for report in moved.came:
        cpf = report[DOCUMENTO]
        if len(cpf) == CPF_LENGTH:
            newer = newest.get(cpf)
            if newer is None or report[RECENCY] < newer[RECENCY]:
                newest[cpf] = report
            elif report[RECENCY] == newer[RECENCY]:
                unsettled.add(cpf)
    return newest, unsettled


def _left(moved: Moved) -> set[str]:
    """Give the CPFs that a report no longer has."""
    now = {report[NUMERO]: report[DOCUMENTO] for report in moved.came} if moved.went else {}
    left = {report[DOCUMENTO] for report in moved.went if now.get(report[NUMERO]) != report[DOCUMENTO]}
    return {documento for documento in left if len(documento) == CPF_LENGTH}


_KNOWN: Final = "SELECT cpf, recency, nome FROM pessoa WHERE id_organizacao = ?"
_NEWEST: Final = """
SELECT numero_documento, recency, nome_pessoa FROM (
    SELECT numero_documento, recency, nome_pessoa,
        row_number() OVER (PARTITION BY numero_documento ORDER BY recency, numero, id_conta) AS place
    FROM {source}
    WHERE id_organizacao = ? AND id_conta IN (SELECT id_conta FROM conta WHERE id_organizacao = ?) AND {member}
) AS newest
WHERE place = 1
"""
_INSERT: Final = Write(How.INSERT, PESSOA, ("nome", "nome_busca", "recency", "item"))
_RENAME: Final = Write(How.SET, PESSOA, ("nome", "nome_busca", "recency", "item"))
_SEE: Final = Write(How.SET, PESSOA, ("recency", "item"))
_DELETE: Final = Write(How.DELETE, PESSOA)
