"""Compares each report's item with the columns it is made from; an impossible instant is restored from the item."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from laudo.core import axes, disclosure, response
from laudo.core.sql import How, Owner, Write
from laudo.core.sql.writes import RELATORIO
from laudo.core.values import INSTANTS, parse_instant
from laudo.server.database import Connection
from laudo.server.ingest import counting
from laudo.server.ingest.progress import SILENT, Progress
from laudo.server.ingest.verify import facets


@disclosure.nothing
class Wrong(NamedTuple):
    """Wrong reports of a chunk, by numero: `items` with the right item, `undated` with the instant of the item."""

    items: list[tuple[bytes, str]]
    undated: list[tuple[bytes, int | None]]


@disclosure.nothing
class _Report(msgspec.Struct, gc=False):
    """What `response.relatorio` reads; FIELDS come last, in their order."""

    numero: str
    atualizado_em: int
    mensagem: str
    numero_documento: str
    status: str
    tipo_pessoa: str
    nome: str
    resultado: str | None
    pendente_validacao_manual: bool


def wrong(connection: Connection, owner: Owner, progress: Progress) -> Iterator[Wrong]:
    """Give what is wrong in each chunk; items of lost facets are left out.

    Reports are read from the newest on, which is about the order in which they were written.
    """
    known = facets.known(connection, owner)
    for chunk in progress.track(counting.chunks(connection, axes.RELATORIO_RECENCY, owner, _COLUMNS)):
        found = Wrong([], [])
        for recency, numero, facet, mensagem, numero_documento, item in chunk:
            if -recency not in INSTANTS:
                found.undated.append((numero, _instant(item)))
            elif facet in known:
                report = _Report(_uuid(numero), -recency, mensagem, numero_documento, *known[facet])
                expected = response.relatorio(report)
                if expected != item:
                    found.items.append((numero, expected))
        yield found


def repair(connection: Connection, owner: Owner) -> None:
    """Repair wrong items, and impossible instants, unless the item has none either."""
    for found in wrong(connection, owner, SILENT):
        connection.write(_SET_ITEM, [(*owner, *each) for each in found.items])
        restored = [(*owner, numero, -instant) for numero, instant in found.undated if instant is not None]
        connection.write(_SET_RECENCY, restored)


def _instant(item: str) -> int | None:
    try:
        return parse_instant(msgspec.json.decode(item, type=dict[str, Any])["atualizado_em"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return None


def _uuid(numero: bytes) -> str:
    digits = numero.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_COLUMNS: Final = "facet, mensagem, numero_documento, item"
_SET_ITEM: Final = Write(How.SET, RELATORIO, ("item",))
_SET_RECENCY: Final = Write(How.SET, RELATORIO, ("recency",))
