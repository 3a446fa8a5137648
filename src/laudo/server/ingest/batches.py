"""Gathers what is found in a file into batches: reports prepared to be written, and rejected lines."""

from collections.abc import Iterable, Iterator
from sys import getsizeof
from time import monotonic
from typing import Final, NamedTuple

from laudo.server.ingest.records import Found, Rejected, Relatorio, Source
from laudo.server.ingest.rows import Prepared, prepared

LEAST: Final = 2_500
MOST: Final = 20_000
"""Lines of a batch, unless no more come for a while. The first batch has LEAST. After one that took less than SOON,
the next has twice as many, up to MOST; after one that took longer than LONG, half as many."""
SOON: Final = 0.5
LONG: Final = 1.5
"""Seconds."""
WEIGHT: Final = 7_000_000
"""Bytes that the texts of a batch may take in memory: with long texts it has fewer lines."""


class Batch(NamedTuple):
    """The reports and rejections of some lines, and how many bytes of the source had been read by then."""

    reports: Prepared
    rejected: list[Rejected]
    consumed: int

    @property
    def lines(self) -> int:
        """How many lines they come from, without blank ones."""
        return len(self.reports) + len(self.rejected)


def batches(found: Iterable[Found | None], source: Source) -> Iterator[Batch]:
    """Gather what is found in a source into batches, whose size follows the pace at which they are consumed.

    No batch waits for lines that have not come yet.
    """
    reports: list[Relatorio] = []
    rejected: list[Rejected] = []
    lines, weight, limit, started = 0, 0, LEAST, monotonic()
    for each in found:
        if each:
            lines += 1
        if isinstance(each, tuple):
            relatorio = each[1]
            reports.append(relatorio)
            weight += _weight(relatorio.nome) + _weight(relatorio.mensagem) + _weight(relatorio.nome_pessoa)
        elif each:
            rejected.append(each)
        if lines >= limit or weight >= WEIGHT or (lines and not each):
            yield Batch(prepared(reports), rejected, source.consumed)
            reports, rejected, lines, weight = [], [], 0, 0
            limit, started = _next_size(limit, monotonic() - started), monotonic()
    if lines:
        yield Batch(prepared(reports), rejected, source.consumed)


def _weight(text: str) -> int:
    """Give the bytes that a text takes after it was sent: if it is not ASCII, Python then also keeps it as UTF-8."""
    return getsizeof(text) if text.isascii() else getsizeof(text) + len(text.encode())


def _next_size(limit: int, seconds: float) -> int:
    if seconds < SOON:
        return min(2 * limit, MOST)
    return max(limit // 2, LEAST) if seconds > LONG else limit
