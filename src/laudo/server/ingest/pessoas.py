"""Keeps `pessoa`: one row per organization and CPF, named after its newest report, within the reports' transaction."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Final, NamedTuple

from laudo.core import axes, disclosure
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.parts import source
from laudo.core.sql.writes import PESSOA
from laudo.server.database import Connection
from laudo.server.ingest import claims, deltas, vocabulary, words
from laudo.server.ingest.changes import Diff
from laudo.server.ingest.claims import CPF, CPF_LENGTH, NOME, NOME_BUSCA, RECENCY, Claims, PessoaRow
from laudo.server.ingest.deltas import Delta
from laudo.server.ingest.remembered import Remembered
from laudo.server.ingest.rows import DOCUMENTO, NUMERO
from laudo.server.ingest.rows import RECENCY as REPORT_RECENCY
from laudo.server.ingest.tallies import SIZES, Sizes, Tally


@disclosure.only("recency")
class Known(NamedTuple):
    """What the store knows of a person."""

    recency: int
    nome: str


class Pessoas:
    """The persons of one organization, for the writer of one of its accounts."""

    def __init__(self, id_organizacao: int, sizes: Sizes = SIZES) -> None:
        self._id_organizacao = id_organizacao
        self._tallies = tuple(Tally(axis, Owner(id_organizacao, 0), sizes) for axis in axes.OF_PESSOA)
        self.has_old_names = False
        """Whether some were renamed or deleted: the index of words still has their old names, until they are erased."""

    @property
    def total(self) -> int:
        return self._tallies[0].total

    @property
    def parts(self) -> Sequence[Remembered]:
        return self._tallies

    def update(self, connection: Connection, diff: Diff, claimed: Claims) -> bool:
        """Bring the persons of changed reports up to date; tells whether any person changed.

        `claimed` is what the added reports say; a claim newer than the person decides at once. If none decides (the
        newest report left the CPF, or a claim is as new as the person), the reports of the CPF are read.
        """
        lost = _lost_cpfs(diff)
        known = self._known(connection, [*claimed, *lost])
        unsettled = {cpf for cpf in lost if cpf not in known or lost[cpf] <= known[cpf].recency}
        after: dict[str, PessoaRow] = {}
        for cpf, row in claimed.items():
            before = known.get(cpf)
            if before is None or row[RECENCY] < before.recency:
                after[cpf] = row
            elif row[RECENCY] == before.recency:
                unsettled.add(cpf)
        found = self._newest(connection, sorted(unsettled))
        after |= found
        deleted = sorted((unsettled - found.keys()) & known.keys())
        return self._write(connection, known, after, deleted)

    def _known(self, connection: Connection, cpfs: list[str]) -> dict[str, Known]:
        statement = Statement(f"{_KNOWN} AND {connection.dialect.member('cpf')}", (self._id_organizacao, cpfs))
        return {cpf: Known(recency, nome) for cpf, recency, nome in connection.fetch(statement)}

    def _newest(self, connection: Connection, cpfs: list[str]) -> dict[str, PessoaRow]:
        """Read the newest report of each of these CPFs in all accounts."""
        if not cpfs:
            return {}
        dialect = connection.dialect
        conta = "+id_conta" if self._reads_all(connection, len(cpfs)) else "id_conta"
        source_, member = source(axes.RELATORIO_DOCUMENTO, dialect), dialect.member("numero_documento")
        text = _NEWEST.format(source=source_, conta=conta, member=member)
        found = connection.fetch(Statement(text, (self._id_organizacao, self._id_organizacao, cpfs)))
        return {cpf: claims.row(cpf, recency, nome) for cpf, recency, nome in found}

    def _reads_all(self, connection: Connection, cpfs: int) -> bool:
        """Tell whether reading every report costs less than looking up each CPF in each account."""
        if connection.dialect.chooses_index or cpfs < _MANY:
            return False
        [(contas, reports)] = connection.fetch(Statement(_SIZE, (self._id_organizacao,)))
        return bool(cpfs * contas * _LOOKUP_COST > reports)

    def _write(
        self, connection: Connection, known: dict[str, Known], after: dict[str, PessoaRow], deleted: Sequence[str]
    ) -> bool:
        """Write what differs: persons that are new, renamed, deleted, or only have a newer or older report."""
        new: list[PessoaRow] = []
        renamed: list[PessoaRow] = []
        redated: list[PessoaRow] = []
        for cpf in sorted(after):
            row, before = after[cpf], known.get(cpf)
            if before is None:
                new.append(row)
            elif before.nome != row[NOME]:
                renamed.append(row)
            elif before.recency != row[RECENCY]:
                redated.append(row)
        if not (new or renamed or redated or deleted):
            return False
        self.has_old_names = self.has_old_names or bool(renamed or deleted)
        insert(connection, self._id_organizacao, new)
        words.remove(connection, self._id_organizacao, [row[CPF] for row in renamed])
        connection.write(_RENAME, [(self._id_organizacao, *row) for row in renamed])
        _add_words(connection, self._id_organizacao, renamed)
        connection.write(_REDATE, [(self._id_organizacao, cpf, recency, item) for cpf, _, _, recency, item in redated])
        remove(connection, self._id_organizacao, deleted)
        old_names = {cpf: axes.nome_busca(known[cpf].nome) for cpf in (*(row[CPF] for row in renamed), *deleted)}
        new_names = {row[CPF]: row[NOME_BUSCA] for row in (*new, *renamed)}
        vocabulary.update(connection, self._id_organizacao, new_names.values(), old_names.values())
        old_recencies = {cpf: known[cpf].recency for cpf in (*(row[CPF] for row in (*renamed, *redated)), *deleted)}
        new_recencies = {row[CPF]: row[RECENCY] for row in (*new, *renamed, *redated)}
        deltas.apply(
            connection, [*self._deltas(old_names, old_recencies, -1), *self._deltas(new_names, new_recencies, 1)]
        )
        for tally in self._tallies:
            tally.write(connection, ())
        return True

    def _deltas(self, names: dict[str, str], recencies: dict[str, int], by: int) -> list[Delta]:
        """Give what the tallies have to count for names and recencies, by CPF, that were added (1) or removed (-1)."""
        by_instant, by_cpf, by_nome = self._tallies
        return [
            Delta(by_instant, (recencies.values(), recencies), repeat(0), by),
            Delta(by_cpf, (names,), repeat(0), by),
            Delta(by_nome, (names.values(), names), repeat(0), by),
        ]


def insert(connection: Connection, id_organizacao: int, rows: Sequence[PessoaRow]) -> None:
    """Write persons that are new, and their words."""
    connection.write(_INSERT, [(id_organizacao, *row) for row in rows])
    _add_words(connection, id_organizacao, rows)


def remove(connection: Connection, id_organizacao: int, cpfs: Sequence[str]) -> None:
    """Delete persons, and their words."""
    words.remove(connection, id_organizacao, cpfs)
    connection.write(_DELETE, [(id_organizacao, cpf) for cpf in sorted(cpfs)])


def _add_words(connection: Connection, id_organizacao: int, rows: Iterable[PessoaRow]) -> None:
    words.add(connection, id_organizacao, {row[CPF]: row[NOME_BUSCA] for row in rows})


def _lost_cpfs(diff: Diff) -> dict[str, int]:
    """Give the CPFs that a report no longer has, each with the recency of the newest such report."""
    current = {report[NUMERO]: report[DOCUMENTO] for report in diff.after} if diff.before else {}
    lost: dict[str, int] = {}
    for report in diff.before:
        documento = report[DOCUMENTO]
        if len(documento) == CPF_LENGTH and current.get(report[NUMERO]) != documento:
            lost[documento] = min(lost.get(documento, report[REPORT_RECENCY]), report[REPORT_RECENCY])
    return lost


_KNOWN: Final = "SELECT cpf, recency, nome FROM pessoa WHERE id_organizacao = ?"
_NEWEST: Final = """
SELECT numero_documento, recency, nome_pessoa FROM (
    SELECT numero_documento, recency, nome_pessoa,
        row_number() OVER (PARTITION BY numero_documento ORDER BY recency, numero, id_conta) AS place
    FROM {source}
    WHERE id_organizacao = ? AND {conta} IN (SELECT id_conta FROM conta WHERE id_organizacao = ?) AND {member}
) AS newest
WHERE place = 1
"""
_MANY: Final = 100
"""From this many CPFs on, asking for the numbers of accounts and reports is cheap compared with the look-ups."""
_LOOKUP_COST: Final = 3
"""Reports that are read in sequence in the time that it takes to look up one CPF in one account."""
_SIZE: Final = "SELECT count(*), sum(total) FROM conta WHERE id_organizacao = ?"
_INSERT: Final = Write(How.INSERT, PESSOA, ("nome", "nome_busca", "recency", "item"))
_RENAME: Final = Write(How.SET, PESSOA, ("nome", "nome_busca", "recency", "item"))
_REDATE: Final = Write(How.SET, PESSOA, ("recency", "item"))
_DELETE: Final = Write(How.DELETE, PESSOA)
