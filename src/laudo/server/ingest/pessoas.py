"""Keeps `pessoa`: one row per organization and CPF, named after its newest report, within the reports' transaction."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from laudo.core import axes, response
from laudo.core.sql import Owner, Statement
from laudo.core.values import words
from laudo.server.database import Connection
from laudo.server.ingest import words as word_index
from laudo.server.ingest.changes import Change
from laudo.server.ingest.tallies import SIZES, Sizes, Tally

CPF_LENGTH: Final = 11
"""Only persons have documents this long; companies do not appear among the persons."""


class Newest(NamedTuple):
    """What the newest report of a CPF says."""

    recency: int
    nome: str


class Known(NamedTuple):
    """A person as the store has it."""

    id: int
    newest: Newest


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

    def follow(self, connection: Connection, changes: Iterable[Change]) -> bool:
        """Bring the persons of changed reports up to date; tells whether any person changed.

        A report newer than the person decides at once. Where that does not settle it (a report left the CPF, or two
        are equally new) the CPF's reports are asked.
        """
        newest, unsettled = _claims(changes)
        known = self._known(connection, [*newest, *unsettled])
        for cpf, claim in newest.items():
            if cpf in known and claim.recency == known[cpf].newest.recency:
                unsettled.add(cpf)
        after = {cpf: claim for cpf, claim in newest.items() if cpf not in known or claim < known[cpf].newest}
        gone = []
        for cpf in unsettled:
            found = connection.fetch(Statement(_NEWEST, (self._id_organizacao, cpf)))
            if found:
                after[cpf] = Newest(*found[0])
            else:
                after.pop(cpf, None)
                gone.append(cpf)
        return self._write(connection, known, after, [cpf for cpf in gone if cpf in known])

    def _known(self, connection: Connection, cpfs: list[str]) -> dict[str, Known]:
        rows = connection.fetch(Statement(_KNOWN, (self._id_organizacao, cpfs)))
        return {cpf: Known(id_, Newest(recency, nome)) for id_, cpf, recency, nome in rows}

    def _write(
        self, connection: Connection, known: dict[str, Known], after: dict[str, Newest], gone: Sequence[str]
    ) -> bool:
        """Write what differs: persons that are new or renamed, whose words and places change, and the others."""
        new, renamed, seen = [], [], []
        for cpf, newest in sorted(after.items()):
            if cpf not in known:
                new.append(cpf)
            elif known[cpf].newest.nome != newest.nome:
                renamed.append(cpf)
            elif known[cpf].newest.recency != newest.recency:
                seen.append(cpf)
        if not (new or renamed or seen or gone):
            return False
        rows = {cpf: row(cpf, after[cpf]) for cpf in (*new, *renamed)}
        folded = {cpf: nome_busca for cpf, (_, _, nome_busca, *_) in rows.items()}
        insert(connection, self._id_organizacao, [rows[cpf] for cpf in new])
        connection.write_many(_RENAME, [(*rows[cpf][1:], known[cpf].id) for cpf in renamed])
        connection.write_many(_SEE, [(*_seen(cpf, after[cpf]), known[cpf].id) for cpf in seen])
        word_index.remove(connection, (known[cpf].id for cpf in renamed))
        word_index.add(connection, self._id_organizacao, ((known[cpf].id, folded[cpf]) for cpf in renamed))
        remove(connection, (known[cpf].id for cpf in gone))
        self._count_names(known, folded, (*renamed, *gone))
        self._count_instants(known, after, (*new, *renamed, *seen, *gone))
        for tally in self._tallies:
            tally.write(connection, ())
        return True

    def _count_names(self, known: dict[str, Known], folded: dict[str, str], ended: Sequence[str]) -> None:
        """Count the CPFs and names that came, and those that ended."""
        _, by_cpf, by_nome = self._tallies
        for cpf in ended:
            by_cpf.add(cpf.encode(), 0, -1)
            by_nome.add(by_nome.axis.encode((" ".join(words(known[cpf].newest.nome)), cpf)), 0, -1)
        for cpf, nome_busca in folded.items():
            by_cpf.add(cpf.encode(), 0, 1)
            by_nome.add(by_nome.axis.encode((nome_busca, cpf)), 0, 1)

    def _count_instants(self, known: dict[str, Known], after: dict[str, Newest], cpfs: Sequence[str]) -> None:
        tally = self._tallies[0]
        for cpf in cpfs:
            if cpf in known:
                tally.add(tally.axis.encode((known[cpf].newest.recency, cpf)), 0, -1)
            if cpf in after:
                tally.add(tally.axis.encode((after[cpf].recency, cpf)), 0, 1)


def insert(connection: Connection, id_organizacao: int, rows: Sequence[Row]) -> None:
    """Write persons that are new, and their words."""
    if not rows:
        return
    [(last,)] = connection.fetch(Statement(_LAST_ID, ()))
    connection.write_many(_INSERT, ((id_, id_organizacao, *row) for id_, row in enumerate(rows, last + 1)))
    word_index.add(connection, id_organizacao, ((id_, row[2]) for id_, row in enumerate(rows, last + 1)))


def remove(connection: Connection, ids: Iterable[int]) -> None:
    """Delete persons, and their words."""
    ended = sorted(ids)
    word_index.remove(connection, ended)
    connection.write_many(_DELETE, ((id_,) for id_ in ended))


def row(cpf: str, newest: Newest) -> Row:
    """Give what the store keeps of a person."""
    return cpf, newest.nome, " ".join(words(newest.nome)), *_seen(cpf, newest)


def _seen(cpf: str, newest: Newest) -> tuple[int, str]:
    """Give what changes with each newer report: the recency and the item."""
    return newest.recency, response.pessoa(cpf=cpf, nome=newest.nome, atualizado_em=-newest.recency)


def _claims(changes: Iterable[Change]) -> tuple[dict[str, Newest], set[str]]:
    """Give each CPF's newest changed report, and the CPFs whose reports must be asked."""
    newest: dict[str, Newest] = {}
    unsettled: set[str] = set()
    for _, before, after in changes:
        left = before and (after is None or after.numero_documento != before.numero_documento)
        if before and left and len(before.numero_documento) == CPF_LENGTH:
            unsettled.add(before.numero_documento)
        if after and len(after.numero_documento) == CPF_LENGTH:
            cpf, claim = after.numero_documento, Newest(after.recency, after.nome_pessoa)
            known = newest.get(cpf)
            if known is None or claim.recency < known.recency:
                newest[cpf] = claim
            elif claim.recency == known.recency:
                unsettled.add(cpf)
    return newest, unsettled


_KNOWN: Final = """
SELECT id, cpf, recency, nome FROM pessoa
WHERE id_organizacao = ? AND cpf IN (SELECT value FROM carray(?))
"""
_NEWEST: Final = """
SELECT recency, nome_pessoa
FROM conta CROSS JOIN relatorio INDEXED BY relatorio_documento USING (id_organizacao, id_conta)
WHERE id_organizacao = ? AND numero_documento = ?
ORDER BY recency, numero, id_conta LIMIT 1
"""
_LAST_ID: Final = "SELECT coalesce(max(id), 0) FROM pessoa"
_INSERT: Final = """
INSERT INTO pessoa (id, id_organizacao, cpf, nome, nome_busca, recency, item) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_RENAME: Final = "UPDATE pessoa SET nome = ?, nome_busca = ?, recency = ?, item = ? WHERE id = ?"
_SEE: Final = "UPDATE pessoa SET recency = ?, item = ? WHERE id = ?"
_DELETE: Final = "DELETE FROM pessoa WHERE id = ?"
