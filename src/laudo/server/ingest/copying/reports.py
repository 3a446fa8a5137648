"""Copies the facets and reports of one account, and computes a digest of them."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from laudo.core import axes, disclosure
from laudo.core.facets import FIELDS
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.parts import source
from laudo.core.sql.writes import FACET
from laudo.server.database import Connection, Database, Row, StoreError
from laudo.server.ingest import uncounted
from laudo.server.ingest.changes import lock_writers
from laudo.server.ingest.progress import Progress
from laudo.server.ingest.rows import ALL_BUT_KEY, DELETE, UPSERT
from laudo.server.ingest.statistics import Statistics

CHUNK: Final = 5_000
"""Reports that are read at once, and written in one transaction."""


class Copied(NamedTuple):
    """What became of reports."""

    written: int = 0
    deleted: int = 0
    unchanged: int = 0

    def plus(self, other: "Copied") -> "Copied":
        return Copied(*map(sum, zip(self, other, strict=True)))


@disclosure.nothing
class Range(NamedTuple):
    """All reports of an account above one numero and up to another; a row is the numero, then the other columns."""

    above: bytes
    upto: bytes
    rows: list[Row]


def copy(reading: Connection, target: Database, owner: Owner, *, seen: int) -> Iterator[Copied]:
    """Make an account's facets and reports equal to those in a snapshot of the source; gives each chunk's counts.

    A chunk is durable before its counts are given. If it changes anything, the account is marked as not counted. Raises
    StoreError if somebody else has written to the account since it had the version `seen`.
    """
    facets = _facets(reading, owner)
    chunks = _ranges(reading, owner, _FIRST, _LAST)
    chunk = next(chunks, None)
    statistics, copied = Statistics(), 0
    while chunk is not None:
        with target.transaction() as writing:
            lock_writers(writing, owner.id_organizacao)
            _refuse_written(writing, owner, seen)
            if chunk.above == _FIRST:
                _add_facets(writing, owner, facets)
            counts = _write_differences(writing, owner, chunk)
            copied += len(chunk.rows)
            statistics.analyze_if_grown(writing, copied)
            # The next one is read while the server is still writing this one.
            chunk = next(chunks, None)
        yield counts


def has_foreign_facets(target: Connection, source: Connection, owner: Owner) -> bool:
    """Tell whether the target has facets that the source lacks: none is ever deleted, so they come from elsewhere."""
    return not set(_facets(target, owner)) <= set(_facets(source, owner))


def digest(connection: Connection, owner: Owner, progress: Progress) -> tuple[int, bytes]:
    """Count an account's reports, and digest them and its facets."""
    state = blake2b(msgspec.msgpack.encode(_facets(connection, owner)))
    total = 0
    for chunk in _ranges(connection, owner, _FIRST, _LAST):
        state.update(msgspec.msgpack.encode(chunk.rows))
        total += len(chunk.rows)
        progress.add(len(chunk.rows))
    return total, state.digest()


def mark_uncounted(writing: Connection, owner: Owner) -> None:
    """Mark an account, or an organization (account 0), as not counted."""
    if owner.id_conta:
        writing.fetch(Statement(_CLEAR_TOTALS, owner))
        writing.fetch(Statement(_CLEAR_VERSION_OF_CONTA, owner))
    else:
        writing.fetch(Statement(_CLEAR_VERSION_OF_ORGANIZACAO, (owner.id_organizacao,)))


def _refuse_written(writing: Connection, owner: Owner, seen: int) -> None:
    """Raise StoreError if the account has a version that is neither the one `seen` nor one that a copy has noted."""
    for version, copied in writing.fetch(Statement(_VERSION, owner)):
        if version > copied and version != seen:
            raise _written(owner)


def _written(owner: Owner) -> StoreError:
    return StoreError(f"{uncounted.name(owner)} of the target was written to by others since this copy began")


def _add_facets(writing: Connection, owner: Owner, facets: list[Row]) -> None:
    """Write the facets that the target lacks, with the source's numbers and nothing counted."""
    known = set(_facets(writing, owner))
    if not known <= set(facets):
        raise _written(owner)
    writing.write(_NEW_FACETS, [(*owner, *row) for row in facets if row not in known])


def _write_differences(writing: Connection, owner: Owner, source_range: Range) -> Copied:
    """Read what the target has in a range, and write what differs."""
    missing = {row[0]: row for row in source_range.rows}
    deleted = unchanged = 0
    for target_range in _ranges(writing, owner, source_range.above, source_range.upto):
        surplus = [numero for numero, *_ in target_range.rows if numero not in missing]
        for row in target_range.rows:
            if missing.get(row[0]) == row:
                del missing[row[0]]
                unchanged += 1
        if surplus:
            mark_uncounted(writing, owner)
            writing.write(DELETE, [(*owner, numero) for numero in surplus])
            deleted += len(surplus)
    if missing:
        mark_uncounted(writing, owner)
        writing.write(UPSERT, [(*owner, *row) for row in missing.values()])
    return Copied(len(missing), deleted, unchanged)


def _ranges(connection: Connection, owner: Owner, above: bytes, upto: bytes) -> Iterator[Range]:
    """Divide a range into ranges of `CHUNK` reports, which together cover all of it, also where it has none."""
    text = _REPORTS.format(source=source(axes.RELATORIO_NUMERO, connection.dialect))
    while above != upto:
        rows = connection.fetch(Statement(text, (*owner, above, upto, CHUNK)))
        end = rows[-1][0] if len(rows) == CHUNK else upto
        yield Range(above, end, rows)
        above = end


def _facets(connection: Connection, owner: Owner) -> list[Row]:
    return connection.fetch(Statement(_FACETS, owner))


_FIRST: Final = b""
_LAST: Final = b"\xff" * 17
"""Above every numero, which has 16 bytes."""
_OWNED: Final = "WHERE id_organizacao = ? AND id_conta = ?"
_REPORTS: Final = (
    f"SELECT numero, {', '.join(ALL_BUT_KEY)} FROM {{source}} "
    f"{_OWNED} AND numero > ? AND numero <= ? ORDER BY numero LIMIT ?"
)
_VERSION: Final = f"SELECT version, copied FROM conta {_OWNED}"
_FACETS: Final = f"SELECT facet, {', '.join(FIELDS)} FROM facet {_OWNED} ORDER BY facet"
_NEW_FACETS: Final = Write(How.INSERT, FACET, FIELDS)
_CLEAR_TOTALS: Final = f"UPDATE facet SET total = 0 {_OWNED} AND total <> 0"
_CLEAR_VERSION_OF_CONTA: Final = f"UPDATE conta SET version = 0, total = 0 {_OWNED} AND version <> 0"
_CLEAR_VERSION_OF_ORGANIZACAO: Final = (
    "UPDATE organizacao SET version = -version WHERE id_organizacao = ? AND version > 0"
)
"""Negative, not 0: its persons stay visible, and 0 is the version of an organization without persons."""
