"""The only place that reads the CSV of an import: a header that names the columns, then one row, one draft."""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Final, cast

from laudo.server.ingest.fields import ACCEPTED, NOT_UTF8, OPTIONAL, Draft, FaultError, nearest
from laudo.server.ingest.lines import LONGEST, TOO_LONG, Line, Unread

_Places = Callable[[list[str]], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Header:
    """What the first line says: how many columns, what separates them, and where each field is."""

    columns: int
    separator: str
    places: _Places

    def parse(self, row: bytes) -> Draft | None:
        """Give the draft of a row, None if it is blank; raises FaultError if it does not fit this header."""
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
    """Read the line that names the columns; raises FaultError if one is missing, repeated or unknown.

    Columns are separated by commas, or by semicolons, as Brazilian spreadsheets write them.
    """
    if isinstance(line, Unread):
        raise FaultError(f"the header is {line.reason}")
    separator = "," if b"," in line or b";" not in line else ";"
    if _open_cell(line, separator.encode(), inside=False) is not None:
        raise FaultError("the header has a quote that is never closed")
    names = [cell.strip() for cell in _cells(line, separator)]
    _require_header(names)
    positions = [names.index(name) if name in names else len(names) for name in ACCEPTED]
    return Header(len(names), separator, cast("_Places", itemgetter(*positions)))


def rows(lines: Iterator[tuple[int, Line] | None], separator: str) -> Iterator[tuple[int, Line] | None]:
    """Join the lines of a row whose quoted cells span several; the row has the number of its first line.

    A row ends where its quotes close, however far away: what a quoted cell holds is never taken for a row.
    """
    separator_bytes = separator.encode()
    for each in lines:
        if each is None or (isinstance(each[1], bytes) and b'"' not in each[1]):
            yield each
        else:
            yield from _joined(each, lines, separator_bytes)


def _joined(
    first: tuple[int, Line], lines: Iterator[tuple[int, Line] | None], separator: bytes
) -> Iterator[tuple[int, Line] | None]:
    """Give the row that begins on a line, after a None for each time that the next line has not come yet."""
    row = bytearray()
    open_line: int | None = None
    """The line on which the cell began whose quote is still open."""
    long_cell_line: int | None = None
    """The same for the cell that made the row too long."""
    overlong = False
    for each in chain((first,), lines):
        if each is None:
            yield None
            continue
        number, part = each
        open_line_before = open_line
        if isinstance(part, Unread):
            if part.final:
                yield first[0], part
                return
            if part.quotes % 2:
                open_line = number if open_line is None else None
            overlong = True
        else:
            place = _open_cell(part, separator, inside=open_line is not None)
            open_line = open_line if place == _EARLIER_LINE else None if place is None else number
            row += part + b"\n"
            overlong = overlong or len(row) > LONGEST
        if overlong:
            long_cell_line = long_cell_line or open_line_before or open_line
            row.clear()
        if open_line is None:
            yield first[0], Unread(_too_long(long_cell_line, number)) if overlong else bytes(row[:-1])
            return
    yield first[0], Unread(_NEVER_CLOSED.format(open_line), final=True)


def _too_long(first: int | None, last: int) -> str:
    """Say that a row is too long; if a quote has joined several lines, also on which line it is."""
    return TOO_LONG if first is None or first == last else _PROBABLY_NEVER_CLOSED.format(last, first)


def _open_cell(line: bytes, separator: bytes, *, inside: bool) -> int | None:
    """Give the position of the quoted cell that is still open at the end of a line, None if there is none.

    It is _EARLIER_LINE if the line began `inside` that cell.
    """
    start, place = _EARLIER_LINE if inside else None, 0
    if not inside and line.startswith(b'"'):
        start, place = 0, 1
    while True:
        place = line.find(separator + b'"' if start is None else b'"', place)
        if place < 0:
            return start
        if start is None:
            start, place = place + 1, place + 2
        elif line[place + 1 : place + 2] == b'"':
            place += 2
        else:
            start, place = None, place + 1


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
        raise FaultError("the quotes are not valid in CSV") from None


def _require_header(names: list[str]) -> None:
    if not any(name in ACCEPTED for name in names):
        columns = ", ".join(ACCEPTED)
        case = " in lower case" if any(name.lower() in ACCEPTED for name in names) else ""
        raise FaultError(
            f"no header; the first line must name columns{case}, separated by commas or semicolons: {columns}"
        )
    for place, name in enumerate(names, 1):
        if name not in ACCEPTED:
            raise FaultError(f"column {place} of the header is unknown; {nearest(name)}")
        if name in names[: place - 1]:
            raise FaultError(f"the header names {name} twice")
    missing = [name for name in ACCEPTED if name not in OPTIONAL and name not in names]
    if missing:
        raise FaultError(f"the header lacks {', '.join(missing)}")


_EARLIER_LINE: Final = -1
_HINT: Final = "hint: close or remove that quote, and import the file again"
_NEVER_CLOSED: Final = f"the quote that opens a cell on line {{}} is never closed; nothing after it was read; {_HINT}"
_PROBABLY_NEVER_CLOSED: Final = (
    f"{TOO_LONG}, up to line {{}}: the quote that opens a cell on line {{}} was probably never closed; {_HINT}"
)
