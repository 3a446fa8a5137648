"""Reports imported per second, beside apsw's own executemany of the same rows into the same indexed table.

    python bench/importing.py --reports 200000 --rounds 3

`laudo import` reads NDJSON, checks it, and also keeps facets, tallies, persons and words. `executemany` gets rows made
beforehand, in the order of the file, and only inserts them into `relatorio` with its indexes. Both write batches, each
one durable transaction: the importer its own, `executemany` batches of 1,000 and of the importer's largest size. The
importer's time begins with its start, that of `executemany` with the first row; both end when the store is closed.

Rounds alternate. Shown are medians, and the most memory that the importer's two processes had at once, with shared
pages counted once (PSS). With `--letter ç` all texts are of this letter, and as long as may be.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from statistics import median
from typing import Final

import msgspec
import psutil

from laudo.core.sql import Owner
from laudo.demo import invent, ndjson_lines
from laudo.server import accounts, migrations
from laudo.server.database import Database
from laudo.server.ingest import rows
from laudo.server.ingest.batches import MOST
from laudo.server.ingest.facets import FacetNumbers
from laudo.server.ingest.records import Relatorio
from laudo.server.stores import open_store
from stores import INSERT

BATCHES: Final = (1000, MOST)
LOOK: Final = 0.1
"""Seconds between two readings of the memory."""
LAUDO: Final = Path(sys.executable).with_name("laudo")


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        file = folder / "relatorios.ndjson"
        with file.open("wb") as stream:
            stream.writelines(ndjson_lines(_relatorios(arguments.reports, arguments.letter)))
        imported, peak = [], 0.0
        inserted: dict[int, list[float]] = {size: [] for size in BATCHES}
        for number in range(arguments.rounds):
            seconds, memory = _import(folder / f"import-{number}.db", file)
            imported.append(arguments.reports / seconds)
            peak = max(peak, memory)
            print(f"round {number + 1}: import {imported[-1]:,.0f}/s", flush=True)
            for size, rates in inserted.items():
                reports = _relatorios(arguments.reports, arguments.letter)
                rates.append(arguments.reports / _insert(folder / f"{size}-{number}.db", reports, size))
                print(f"round {number + 1}: executemany by {size:,} {rates[-1]:,.0f}/s", flush=True)
    print(f"laudo import          {median(imported):>8,.0f} reports/s, {peak:.0f} MB at most")
    for size, rates in inserted.items():
        ratio = median(one / other for one, other in zip(imported, rates, strict=True))
        print(f"executemany by {size:,}  {median(rates):>8,.0f} rows/s, import : this {ratio:.2f}")


def _relatorios(count: int, letter: str) -> Iterable[Relatorio]:
    """Invent reports; if a letter is given, their texts are of it and as long as may be."""
    if not letter:
        return invent.relatorios(count)
    texts = {"nome": letter * 200, "mensagem": letter * 500, "nome_pessoa": letter * 200}
    return (msgspec.structs.replace(each, **texts) for each in invent.relatorios(count))


def _import(store: Path, file: Path) -> tuple[float, float]:
    """The seconds that `laudo import` takes, and the most megabytes that it had."""
    database, owner = _prepared(store)
    database.close()
    command = [str(LAUDO), "import", str(file), "--account", str(owner.id_conta), "--store", f"sqlite:///{store}"]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        peak = _peak(process)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds, peak


def _peak(process: subprocess.Popen[bytes]) -> float:
    """Watch a process and its children until it ends; gives the most megabytes that they had."""
    watched, peak = psutil.Process(process.pid), 0
    while process.poll() is None:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            peak = max(peak, sum(each.memory_full_info().pss for each in (watched, *watched.children())))
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK)
    return peak / 1e6


def _insert(store: Path, reports: Iterable[Relatorio], size: int) -> float:
    """The seconds that inserting rows made beforehand takes, in batches of `size`."""
    database, owner = _prepared(store)
    numbers = FacetNumbers(owner)
    with database.transaction() as connection:
        each = (rows.complete(rows.prepared([one]), owner, numbers.number) for one in reports)
        whole = list(chain.from_iterable(each))
        numbers.write(connection)
    started = time.perf_counter()
    for batch in _batches(whole, size):
        with database.transaction() as connection:
            connection.write(INSERT, batch)
    database.close()
    return time.perf_counter() - started


def _prepared(store: Path) -> tuple[Database, Owner]:
    database = open_store(f"sqlite:///{store}", write=True)
    migrations.migrate(database)
    with database.transaction() as connection:
        organizacao, conta = accounts.create_organizacao(connection, "Organização Exemplo")
    return database, Owner(organizacao.id_organizacao, conta.id_conta)


def _batches(rows: Sequence[tuple[object, ...]], size: int) -> Iterator[list[tuple[object, ...]]]:
    waiting = iter(rows)
    while batch := list(islice(waiting, size)):
        yield batch


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(sys.modules[__name__].__doc__ or "").partition("\n")[0])
    parser.add_argument("--reports", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--letter", default="", help="what all texts are of, in full length; invented texts if not given"
    )
    parser.add_argument(
        "--folder", type=Path, help="where the stores are made; the system's temporary folder if not given"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
