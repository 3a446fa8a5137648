"""Counts reports and persons along an axis: reads all its rows in order, chunk by chunk, in bounded memory."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from laudo.core import axes, sql
from laudo.core.axes import Axis, Key
from laudo.core.lookups import At
from laudo.core.sql import Owner, Statement
from laudo.core.sql.parts import Where, source
from laudo.server.database import Connection, Row

CHUNK: Final = 20_000
"""Rows that are read at once."""

KeyAndFacet = tuple[Any, ...]
"""The key of a row, and last its facet (0 for a person)."""

FacetCounts = Counter[int]
"""Facet -> how many rows have it."""


def totals(connection: Connection, owner: Owner) -> FacetCounts:
    """Count an account's reports by facet."""
    source_ = source(axes.RELATORIO_NUMERO, connection.dialect, by_facet=True)
    text = f"SELECT facet, count(*) FROM {source_} WHERE id_organizacao = ? AND id_conta = ? GROUP BY facet"
    return Counter(dict(connection.fetch(Statement(text, owner))))


def rows(connection: Connection, axis: Axis, owner: Owner) -> Iterator[list[KeyAndFacet]]:
    """Give all rows of an owner in the order of an axis, some 20,000 at once; never an empty list."""
    if axis.faceted and not axis.covers_facet:
        return _by_facets(connection, axis, owner)
    return chunks(connection, axis, owner, "facet" if axis.faceted else "0")


class Range(NamedTuple):
    """The rows from one key, or from the beginning, up to the next one; `key_exists` if a row has exactly that key."""

    counts: FacetCounts
    key_exists: bool = True


def between(chunks: Iterable[list[KeyAndFacet]], ends: Sequence[Key]) -> Iterator[Range]:
    """Count the rows before each of the ascending `ends`, and finally those from the last one on."""
    found, index = Range(FacetCounts()), 0
    for chunk in chunks:
        start = 0
        while index < len(ends) and ends[index] <= chunk[-1]:
            end = bisect_left(chunk, ends[index], start)
            found.counts.update(map(_FACET, chunk[start:end]))
            yield found
            found, index, start = Range(FacetCounts(), chunk[end][:-1] == ends[index]), index + 1, end
        found.counts.update(map(_FACET, chunk[start:]))
    yield found
    for _ in ends[index:]:
        yield Range(FacetCounts(), key_exists=False)


def grouped(chunks: Iterable[list[KeyAndFacet]], size: int) -> Iterator[tuple[Key, FacetCounts]]:
    """Count rows in groups of `size`: gives the key of the first one, and the rows by facet."""
    pending: list[KeyAndFacet] = []
    for chunk in chunks:
        pending += chunk
        full = len(pending) // size * size
        for start in range(0, full, size):
            yield _counted(pending[start : start + size])
        del pending[:full]
    if pending:
        yield _counted(pending)


def _counted(part: list[KeyAndFacet]) -> tuple[Key, FacetCounts]:
    return part[0][:-1], FacetCounts(map(_FACET, part))


def chunks(connection: Connection, axis: Axis, owner: Owner, columns: str) -> Iterator[list[Row]]:
    """Read rows in the order of an axis: their keys, then other columns."""
    names = ", ".join(axis.names)
    lower: Key | None = None
    while True:
        where = Where(axis, owner, connection.dialect).between(lower, None)
        text = (
            f"SELECT {names}, {columns} FROM {source(axis, connection.dialect)} WHERE {where} ORDER BY {names} LIMIT ?"
        )
        chunk = connection.fetch(Statement(text, (*where.params, CHUNK)))
        if chunk:
            yield chunk
        if len(chunk) < CHUNK:
            return
        lower = axis.past(chunk[-1][: len(axis.names)])


def _by_facets(connection: Connection, axis: Axis, owner: Owner) -> Iterator[list[KeyAndFacet]]:
    """Read by facet, between keys of an index without the facet, which would have to be fetched for each row."""
    names = ", ".join(axis.names)
    facets = tuple(totals(connection, owner))
    lower: Key | None = None
    while True:
        found = connection.fetch(sql.statement(At(axis, lower, None, None, CHUNK), owner, connection.dialect))
        upper = found[0] if found else None
        where = Where(axis, owner, connection.dialect).between(lower, upper).having(facets)
        text = f"SELECT {names}, facet FROM {source(axis, connection.dialect, by_facet=True)} WHERE {where}"
        if chunk := connection.fetch(Statement(text, where.params)):
            chunk.sort()
            yield chunk
        if upper is None:
            return
        lower = upper


_FACET: Final = itemgetter(-1)
