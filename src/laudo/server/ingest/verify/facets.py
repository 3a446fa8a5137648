"""Compares the facets of an account with its reports; restores a lost one from what most of its items say.

A facet is lost if it has no row, or if its `pendente_validacao_manual` is neither 0 nor 1.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec

from laudo.core import axes
from laudo.core.facets import FIELDS
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.parts import source
from laudo.core.sql.writes import FACET
from laudo.server.database import Connection
from laudo.server.ingest import counting
from laudo.server.ingest.counting import FacetCounts
from laudo.server.ingest.verify.differences import Difference

REMEDY: Final = "restore from a backup the facets whose values no item has"

_Text = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00-\x1f\x7f-\x9f]*\Z")]
"""A text without the control characters that `values.unwritable` finds."""


class Values(msgspec.Struct, frozen=True, gc=False):
    """The values of a facet, in the order of FIELDS."""

    status: _Text
    tipo_pessoa: _Text
    nome: _Text
    resultado: _Text | None
    pendente_validacao_manual: bool


def differences(connection: Connection, owner: Owner, totals: FacetCounts) -> Iterator[Difference]:
    """Compare an account's facets with its reports, which `totals` counts by facet."""
    rows = connection.fetch(Statement(_STORED, owner))
    stored: dict[int, int] = {facet: total for facet, total, _ in rows}
    lost = dict(_lost(connection, owner, totals))
    for facet in sorted(stored.keys() | totals.keys()):
        kept, counted = stored.get(facet), totals[facet]
        if kept != counted:
            remedy = REMEDY if kept is None and lost[facet] is None else None
            what = "total of the facet"
            yield Difference(**owner._asdict(), what=what, facet=facet, stored=kept, counted=counted, remedy=remedy)
    for facet, _, pendente in rows:
        if facet in lost:
            values = lost[facet]
            expected, remedy = (None, REMEDY) if values is None else (int(values.pendente_validacao_manual), None)
            what = "pendente_validacao_manual of the facet"
            yield Difference(
                **owner._asdict(), what=what, facet=facet, stored=pendente, counted=expected, remedy=remedy
            )


def restore(connection: Connection, owner: Owner, totals: FacetCounts) -> bool:
    """Write the rows of lost facets that reports have, unless no item has their values; tells whether it did."""
    restorable = [(facet, values) for facet, values in _lost(connection, owner, totals) if values]
    connection.write(_RESTORE, [(*owner, facet, *msgspec.structs.astuple(values)) for facet, values in restorable])
    return bool(restorable)


def known(connection: Connection, owner: Owner) -> dict[int, tuple[Any, ...]]:
    """Give the values of each facet that is not lost, in the order of FIELDS."""
    rows = connection.fetch(Statement(_KNOWN, owner))
    return {facet: (*values, bool(pendente)) for facet, *values, pendente in rows}


def _lost(connection: Connection, owner: Owner, totals: FacetCounts) -> Iterator[tuple[int, Values | None]]:
    """Give the lost facets that reports have, each with what its items say."""
    for facet in sorted(totals.keys() - known(connection, owner).keys()):
        yield facet, _most_frequent(connection, owner, facet)


def _most_frequent(connection: Connection, owner: Owner, facet: int) -> Values | None:
    """Give the values that most items of a facet have; None if none can be read."""
    axis = axes.RELATORIO_NUMERO
    text = _ITEMS.format(source=source(axis, connection.dialect, by_facet=True))
    votes: Counter[Values | None] = Counter()
    lower: axes.Key = (b"",)
    while chunk := connection.fetch(Statement(text, (*owner, facet, *lower, counting.CHUNK))):
        votes.update(_values(item) for _, item in chunk)
        lower = axis.past((chunk[-1][0],))
    del votes[None]
    return max(votes, key=votes.__getitem__, default=None)


def _values(item: str) -> Values | None:
    try:
        return msgspec.json.decode(item, type=Values)
    except msgspec.DecodeError:
        return None


_OWNER: Final = "id_organizacao = ? AND id_conta = ?"
_STORED: Final = f"SELECT facet, total, pendente_validacao_manual FROM facet WHERE {_OWNER} ORDER BY facet"
_KNOWN: Final = f"""
SELECT facet, {", ".join(FIELDS)} FROM facet WHERE {_OWNER} AND pendente_validacao_manual IN (0, 1)
"""
_ITEMS: Final = f"""
SELECT numero, item FROM {{source}} WHERE {_OWNER} AND facet = ? AND numero >= ? ORDER BY numero LIMIT ?
"""
_RESTORE: Final = Write(How.UPSERT, FACET, FIELDS)
