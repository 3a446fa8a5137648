"""The only place that reads CSV of an import: a header that names the columns, then one row, one draft."""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Final, cast

from laudo.server.ingest.fields import ACCEPTED, OPTIONAL, Draft, FaultError
from laudo.server.ingest.lines import LONGEST, TOO_LONG, Line, Unread
from laudo.server.ingest.ndjson import NOT_UTF8, nearest

_Places = Callable[[list[str]], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Header:
    """What the first line says: how many columns, what separates them, and where each field is."""

    columns: int
    separator: str
    places: _Places

    def parse(self, row: bytes) -> Draft | None:
        """Give the draft of a row, None if it is blank; FaultError when it is no row of this header."""
        if not row.strip():
            return None
        cells = _cells(row, self.separator)
        if len(cells) != self.columns:
            raise FaultError(f"the number of columns is {len(cells)}; accepted: {self.columns}, as in the header")
        cells.append("")
        numero, status, tipo_pessoa, nome, instant, resultado, mensagem, pendente, documento, pessoa = self.places(
            cells
        )
        return Draft(
            numero,
            status,
            tipo_pessoa,
            nome,
            instant,
            documento,
            resultado=resultado or None,
            mensagem=mensagem,
            pendente_validacao_manual=pendente or None,
            nome_pessoa=pessoa,
        )


def header(line: Line) -> Header:
    """Read the line that names the columns; FaultError when it does not name each required one once, or others.

    Columns are separated by commas, or by semicolons as spreadsheets of Brazil write them.
    """
    if isinstance(line, Unread):
        raise FaultError(f"the header is {line.reason}")
    separator = "," if b"," in line or b";" not in line else ";"
    if _stays_open(line, separator.encode(), inside=False):
        raise FaultError("the header has a quote that is never closed")
    names = [cell.strip() for cell in _cells(line, separator)]
    _require_header(names)
    places = [names.index(name) if name in names else len(names) for name in ACCEPTED]
    return Header(len(names), separator, cast("_Places", itemgetter(*places)))


def rows(lines: Iterator[tuple[int, Line] | None], separator: str) -> Iterator[tuple[int, Line] | None]:
    """Join the lines of a row whose quotes span several; it goes by the number of its first line.

    A row ends where its quotes close, however far that is: what a quoted text holds is never taken for a row.
    """
    separating = separator.encode()
    for each in lines:
        if each is None or (isinstance(each[1], bytes) and b'"' not in each[1]):
            yield each
        else:
            yield each[0], _joined(each[1], lines, separating)


def _joined(line: Line, lines: Iterator[tuple[int, Line] | None], separator: bytes) -> Line:
    kept, overlong, inside = bytearray(), False, False
    for part in chain((line,), map(_LINE, filter(None, lines))):
        if isinstance(part, Unread):
            if part.final:
                return part
            inside ^= part.quotes % 2 == 1
            overlong = True
        else:
            inside = _stays_open(part, separator, inside=inside)
            kept += part + b"\n"
            overlong = overlong or len(kept) > LONGEST
        if overlong:
            kept.clear()
        if not inside:
            return Unread(TOO_LONG) if overlong else bytes(kept[:-1])
    return Unread(_NEVER_CLOSED, final=True)


def _stays_open(line: bytes, separator: bytes, *, inside: bool) -> bool:
    """Tell whether a quoted cell is still open at the end of a line that began `inside` one or not."""
    place = 0
    if not inside and line.startswith(b'"'):
        inside, place = True, 1
    while True:
        place = line.find(b'"' if inside else separator + b'"', place)
        if place < 0:
            return inside
        if not inside:
            inside, place = True, place + 2
        elif line[place + 1 : place + 2] == b'"':
            place += 2
        else:
            inside, place = False, place + 1


def _cells(row: bytes, separator: str) -> list[str]:
    try:
        text = row.decode().removesuffix("\r")
    except UnicodeDecodeError:
        raise FaultError(NOT_UTF8) from None
    if '"' not in text:
        return text.split(separator)
    try:
        return next(csv.reader((text,), delimiter=separator, strict=True))
    except csv.Error:
        raise FaultError("the quotes are not those of CSV") from None


def _require_header(names: list[str]) -> None:
    if not any(name in ACCEPTED for name in names):
        columns = ", ".join(ACCEPTED)
        raise FaultError(f"no header; the first line names columns, between commas or semicolons, of {columns}")
    for place, name in enumerate(names, 1):
        if name not in ACCEPTED:
            raise FaultError(f"column {place} of the header is unknown; {nearest(name)}")
        if name in names[: place - 1]:
            raise FaultError(f"the header names {name} twice")
    missing = [name for name in ACCEPTED if name not in OPTIONAL and name not in names]
    if missing:
        raise FaultError(f"the header lacks {', '.join(missing)}")


_LINE: Final = itemgetter(1)
_NEVER_CLOSED: Final = "a quote that opens on this line is never closed; nothing after it was read"
