"""What a transaction that stays open, such as a long dump's, costs on PostgreSQL, which keeps all that it may see.

    python bench/held.py --store postgresql://… --commits 3000

Milliseconds of wall time, medians: of commits that write one report anew, and of lists asked for in process, by who
keeps no answers, each after such a commit. First with nobody in the way, then four times as many commits while a
snapshot is held, then after it was released.
"""

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, time_ns
from typing import Final

from msgspec.structs import replace

from inside import FILTERS, LIST, Client
from laudo import demo
from laudo.core.sql import Statement
from laudo.server import app, keys, migrations
from laudo.server.config import Settings
from laudo.server.database import Database
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store

ASKED: Final = {"page 1": LIST, "two filters": FILTERS, "page 100": f"{LIST}?page=100", "people": "/pessoas"}
TIMES: Final = 9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, help="an empty PostgreSQL database, which is filled")
    parser.add_argument("--reports", type=int, default=20_000, help="how many the store has (default: 20,000)")
    parser.add_argument("--commits", type=int, default=3_000, help="between two looks (default: 3,000)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="laudo-bench-") as folder, ExitStack() as stack:
        key_file = Path(folder) / "laudo.key"
        writing = stack.enter_context(closing(open_store(arguments.store, write=True)))
        migrations.migrate(writing)
        keys.make(key_file)
        access = demo.fill(writing, keys.load(key_file), count=arguments.reports).accesses[0]
        settings = Settings(store=arguments.store, key_file=str(key_file), log=False, cache_bytes=0)
        opened = stack.enter_context(closing(open_store(arguments.store)))
        client = Client(app.create(settings, database=opened), access.token)
        write = partial(next, _writes(writing, access.id_conta, arguments.reports))
        print(f"{'':24}{'a commit':>12}" + "".join(f"{name:>12}" for name in ASKED))
        _look("nobody in the way", client, write, arguments.commits)
        holding = stack.enter_context(closing(open_store(arguments.store)))
        with holding.snapshot() as connection:
            connection.fetch(Statement("SELECT count(*) FROM conta"))
            for number in range(1, 5):
                _look(f"held for {number * arguments.commits:,}", client, write, arguments.commits)
        _look("released", client, write, TIMES)


def _writes(database: Database, id_conta: int, count: int) -> Iterator[object]:
    """Write one of the invented reports anew each time."""
    ingest, reports, seeded = Ingest(database, id_conta), list(demo.relatorios(count)), random.Random(1)
    while True:
        yield ingest.write([replace(seeded.choice(reports), atualizado_em=time_ns() // 1_000_000)])


def _look(name: str, client: Client, write: Callable[[], object], commits: int) -> None:
    """Write `commits` times, and print what the last of these took, and lists after them."""
    taken = [_milliseconds(write) for _ in range(commits)][-100:]
    shown = f"{name:24}{median(taken):>12.1f}"
    for target in ASKED.values():
        asked = []
        for _ in range(TIMES):
            write()
            asked.append(_milliseconds(partial(client.get, target)))
        shown += f"{median(asked):>12.1f}"
    print(shown)


def _milliseconds(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return (perf_counter() - began) * 1000


if __name__ == "__main__":
    main()
