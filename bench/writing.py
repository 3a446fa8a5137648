"""What one report costs to write, as the account grows: by one writer, by two in turn, and by one that has just begun.

    python bench/writing.py --sizes 10k,1M,10M
    python bench/writing.py --sizes 10k,1M --store postgresql://…

Each report is a transaction of its own, newer than all others, mostly of a person the organization knows. Milliseconds,
medians: as the clock says, and of this process' CPU, in which is no waiting for the disk or for PostgreSQL. Who writes
in turn finds at each report that another writer has come between: into the same account, or into another one of the
organization, which is made where there is none, and stays. What was written is deleted at the end.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count, cycle
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Final, NamedTuple

from msgspec.structs import replace

import stores
from flat import number as size_of
from laudo.core.sql import Statement
from laudo.demo import invent
from laudo.server import accounts
from laudo.server.database import Database
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store

_WARM: Final = 5
_OTHERS: Final = "SELECT id_conta FROM conta WHERE id_organizacao = ? AND id_conta > ? ORDER BY id_conta LIMIT 1"


class Taken(NamedTuple):
    """The milliseconds that writing a report took."""

    clock: float
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10k,100k,1M", help="comma separated, with k or M")
    parser.add_argument("--reports", type=int, default=100, help="how many are written in each way (default: 100)")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"), help="where the stores are kept")
    parser.add_argument("--store", help="a PostgreSQL database, beside which the stores are made")
    arguments = parser.parse_args()
    for size in map(size_of, arguments.sizes.split(",")):
        built = stores.build(arguments.store or arguments.folder, stores.Plan(size))
        with closing(open_store(built.url, write=True)) as database:
            for name, taken in _measured(database, built, arguments.reports):
                clock, cpu = median(each.clock for each in taken), median(each.cpu for each in taken)
                print(f"{size:>12,} reports  {name:<34}{clock:>8.2f} ms, of CPU {cpu:>6.2f}", flush=True)


def _measured(database: Database, built: stores.Built, number: int) -> Iterator[tuple[str, list[Taken]]]:
    """Write `number` reports in each way, then delete them all."""
    conta, other = built.owner.id_conta, _other(database, built)
    reports = _newer(number)

    def new() -> Ingest:
        return Ingest(database, conta)

    def in_turn(*writers: Ingest) -> Callable[[], Ingest]:
        return cycle(writers).__next__

    ways = {
        "one writer": in_turn(new()),
        "in turn with another account's": in_turn(new(), Ingest(database, other)),
        "in turn with the same account's": in_turn(new(), new()),
        "a new writer each time": new,
    }
    for name, writer in ways.items():
        yield name, [_write(writer, next(reports)) for _ in range(_WARM + number)][_WARM:]
    written = [each.numero for each in invent.relatorios(4 * (_WARM + number), seed=_SEED)]
    for id_conta in (conta, other):
        Ingest(database, id_conta).delete(written)


def _newer(number: int) -> Iterator[Relatorio]:
    """Invent reports, each newer than the one before and than all in the store."""
    for relatorio, after in zip(invent.relatorios(4 * (_WARM + number), seed=_SEED), count(1), strict=False):
        yield replace(relatorio, atualizado_em=invent.NOW_MS + after)


def _write(writer: Callable[[], Ingest], relatorio: Relatorio) -> Taken:
    clock, cpu = perf_counter(), process_time()
    writer().write([relatorio])
    return Taken((perf_counter() - clock) * 1e3, (process_time() - cpu) * 1e3)


def _other(database: Database, built: stores.Built) -> int:
    """Give another account of the organization, made if there is none."""
    owner = built.owner
    with database.transaction() as connection:
        found = connection.fetch(Statement(_OTHERS, owner))
        return int(found[0][0]) if found else accounts.create_conta(connection, owner.id_organizacao, "Outra").id_conta


_SEED: Final = 2
"""Not the seed of the stores' own reports, so that these are others."""


if __name__ == "__main__":
    main()
