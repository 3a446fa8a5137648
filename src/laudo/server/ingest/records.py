"""From a file to reports: `laudo import` reads each line as a `Relatorio`, or as the reason why it is none."""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Final, Literal

from laudo.server.ingest import fields, ndjson, tabular
from laudo.server.ingest.fields import Draft, FaultError, Relatorio
from laudo.server.ingest.lines import Line, NotGzipError, Source, Unread

__all__ = ["Format", "Found", "RecordsError", "Rejected", "Relatorio", "Source", "read"]

Format = Literal["ndjson", "csv"]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line that is no report; `reason` is English and repeats nothing of the line."""

    line_number: int
    reason: str
    final: bool = False
    """Nothing after it was read, even if there is more."""


Found = tuple[int, Relatorio] | Rejected
"""A report with the number of its line, or the line's rejection."""


class RecordsError(Exception):
    """A file of which no line can be read; the text says why and what is accepted."""


def read(
    source: Source, *, file_format: Format | None = None, accept_invalid_documents: bool = False
) -> Iterator[Found | None]:
    """Give what is found on each line of a file (from 1), in order.

    None says that nothing more has come for a while, from a stream that is still being written. The format is
    `file_format`, or what the name of the source says, or NDJSON if the first character is `{` and CSV otherwise.
    Raises RecordsError, at the first step, if the file or the header of a CSV cannot be read, and OSError as the
    stream does. Memory is bounded whatever the stream holds; only one block is read ahead.
    """
    lines = _lines(source)
    first = next((each for each in lines if each and (isinstance(each[1], Unread) or each[1].strip())), None)
    if first is None:
        return
    number, line = first
    if isinstance(line, Unread) and line.final:
        yield Rejected(number, line.reason, final=True)
        return
    if (file_format or _format(source.name, line)) == "csv":
        columns = _header(number, line)
        rows = tabular.rows(lines, columns.separator)
        yield from _records(rows, columns.parse, verify=not accept_invalid_documents)
    else:
        yield from _records(chain((first,), lines), ndjson.parse, verify=not accept_invalid_documents)


def _records(
    lines: Iterator[tuple[int, Line] | None], parse: Callable[[bytes], Draft | None], *, verify: bool
) -> Iterator[Found | None]:
    for each in lines:
        if each is None:
            yield None
            continue
        number, line = each
        if isinstance(line, Unread):
            yield Rejected(number, line.reason, final=line.final)
            continue
        try:
            draft = parse(line)
            relatorio = draft and fields.accept(draft, verify=verify)
        except FaultError as fault:
            yield Rejected(number, str(fault))
            continue
        if relatorio:
            yield number, relatorio


def _lines(source: Source) -> Iterator[tuple[int, Line] | None]:
    """Give the lines of a source, the first one without its byte order mark; raises RecordsError."""
    lines = source.lines()
    try:
        for each in lines:
            if each and isinstance(each[1], bytes):
                yield each[0], _without_bom(each[1])
            else:
                yield each
            if each:
                break
        yield from lines
    except NotGzipError:
        raise RecordsError("the name ends in .gz, but the content is not gzip") from None


def _without_bom(line: bytes) -> bytes:
    for encoding, matches in _OTHER_ENCODINGS.items():
        if matches(line):
            raise RecordsError(f"the file is {encoding}; accepted: UTF-8")
    return line.removeprefix(BOM_UTF8)


def _format(name: str, line: Line) -> Format:
    beginning = line.beginning if isinstance(line, Unread) else line
    if beginning.lstrip().startswith(b"["):
        raise RecordsError("the file is a JSON array; accepted: NDJSON, one object per line, or CSV")
    if _ANSWER(beginning):
        hint = "write its items one per line, as `jq -c '.result.itens[]'` does, and add nome_pessoa"
        raise RecordsError(f"the file is an answer of the API; {hint}")
    if beginning.strip() == b"{":
        hint = "write one object per line, as `jq -c .` does, or `jq -c '.result.itens[]'` for an answer of the API"
        raise RecordsError(f"the file has an object on several lines; {hint}")
    by_name = _SUFFIXES.get(PurePath(name.lower().removesuffix(".gz")).suffix)
    if by_name or isinstance(line, Unread):
        return by_name or "ndjson"
    return "ndjson" if line.lstrip().startswith(b"{") else "csv"


def _header(number: int, line: Line) -> tabular.Header:
    try:
        return tabular.header(line)
    except FaultError as fault:
        raise RecordsError(f"line {number}: {fault}") from None


_ANSWER: Final = re.compile(rb'\s*\{\s*"result"\s*:\s*\{').match
_OTHER_ENCODINGS: Final = {
    "UTF-32": re.compile(rb"\xff\xfe\0\0|\0\0(\xfe\xff|\0[^\0])|[^\0]\0\0\0").match,
    "UTF-16": re.compile(rb"\xff\xfe|\xfe\xff|\0[^\0]|[^\0]\0").match,
}
"""How a file in another encoding begins, with its byte order mark or without; no valid line begins so."""
_SUFFIXES: Final[dict[str, Format]] = {".ndjson": "ndjson", ".jsonl": "ndjson", ".csv": "csv"}
