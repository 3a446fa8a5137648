"""What is found in a file, gathered into batches: reports made ready to be written, and lines that are none."""

from collections.abc import Iterable, Iterator
from sys import getsizeof
from time import monotonic
from typing import Final, NamedTuple

from laudo.server.ingest.records import Found, Rejected, Relatorio, Source
from laudo.server.ingest.rows import Prepared, prepared

LEAST: Final = 2_500
MOST: Final = 20_000
"""Lines of a batch, unless nothing more comes for a while: the first has the least, and each that took less than SOON
is followed by one of twice as many, up to the most; one that took longer than LONG by one of half as many."""
SOON: Final = 0.5
LONG: Final = 1.5
"""Seconds."""
WEIGHT: Final = 7_000_000
"""Bytes that a batch's texts may take: there are fewer of long ones, or of such as take more for each letter."""


class Batch(NamedTuple):
    """Some lines' reports and rejections, and how many bytes of the source had been read by then."""

    reports: Prepared
    rejected: list[Rejected]
    consumed: int

    @property
    def lines(self) -> int:
        """How many lines they were on; blank ones do not count."""
        return len(self.reports) + len(self.rejected)


def batches(found: Iterable[Found | None], source: Source) -> Iterator[Batch]:
    """Give what is found in a source as it is to be written: batches grow with the pace at which they are taken.

    None of them waits for lines that have not come yet.
    """
    reports: list[Relatorio] = []
    rejected: list[Rejected] = []
    lines, weight, most, since = 0, 0, LEAST, monotonic()
    for each in found:
        if each:
            lines += 1
        if isinstance(each, tuple):
            relatorio = each[1]
            reports.append(relatorio)
            weight += _weight(relatorio.nome) + _weight(relatorio.mensagem) + _weight(relatorio.nome_pessoa)
        elif each:
            rejected.append(each)
        if lines >= most or weight >= WEIGHT or (lines and not each):
            yield Batch(prepared(reports), rejected, source.consumed)
            reports, rejected, lines, weight = [], [], 0, 0
            most, since = _next(most, monotonic() - since), monotonic()
    if lines:
        yield Batch(prepared(reports), rejected, source.consumed)


def _weight(text: str) -> int:
    """Give the bytes that a text takes once it was sent: beside what is not ASCII, Python then keeps its UTF-8."""
    return getsizeof(text) if text.isascii() else getsizeof(text) + len(text.encode())


def _next(most: int, took: float) -> int:
    if took < SOON:
        return min(2 * most, MOST)
    return max(most // 2, LEAST) if took > LONG else most
