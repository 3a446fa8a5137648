"""CPU that a request takes inside a worker, without a server and a socket around it.

    python bench/inside.py --reports 100000 --rounds 15
    python bench/inside.py --store postgresql://…

Microseconds of this process, medians over the rounds; in each round every row is asked in turn. `constant` is the
framework giving a constant body; who is `cold` keeps no answers; of others, who keep them, `another document` is one
that was not asked for before, and `after a write` the first request after one report was written, to the account that
asks or to another.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from io import BytesIO
from itertools import count
from pathlib import Path
from statistics import median
from time import process_time, time_ns
from typing import Final, NamedTuple
from wsgiref.types import WSGIApplication

from msgspec.structs import replace

from constant import application
from laudo import demo
from laudo.core.sql import Statement
from laudo.server import app, keys, migrations
from laudo.server.config import Settings
from laudo.server.database import Database
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store

LIST: Final = "/relatorios"
FILTERS: Final = f"{LIST}?tipo_pessoa=PESSOA&status=CONCLUIDO"
_BODY: Final = 7_300
_TIMES: Final = 300


class Client:
    """Asks one application, always with the same token; gives an answer's headers."""

    def __init__(self, asked: WSGIApplication, token: str) -> None:
        self._asked = asked
        self._token = token
        self._headers: dict[str, str] = {}

    def get(self, target: str, *, known: str | None = None) -> dict[str, str]:
        """Ask once; `known` is an ETag."""
        path, _, question = target.partition("?")
        environ = {
            "REQUEST_METHOD": "GET",
            "SCRIPT_NAME": "",
            "PATH_INFO": path,
            "QUERY_STRING": question,
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "localhost",
            "HTTP_AUTHORIZATION": self._token,
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": BytesIO(),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": False,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
        }
        if known is not None:
            environ["HTTP_IF_NONE_MATCH"] = known
        self._asked(environ, self._start)
        return self._headers

    def _start(self, _status: str, given: list[tuple[str, str]], _error: object = None) -> Callable[[bytes], object]:
        self._headers = dict(given)
        return bytes


class Row(NamedTuple):
    """One request, how often a round asks it, and what is done before each time, which is not measured."""

    name: str
    ask: Callable[[], object]
    times: int = _TIMES
    before: Callable[[], object] = int


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="laudo-bench-") as folder, ExitStack() as stack:
        store, key_file = arguments.store or f"sqlite:///{folder}/laudo.db", Path(folder) / "laudo.key"
        writing = stack.enter_context(closing(open_store(store, write=True)))
        migrations.migrate(writing)
        keys.make(key_file)
        accesses = demo.fill(writing, keys.load(key_file), count=arguments.reports).accesses

        def client(cache_bytes: int) -> Client:
            settings = Settings(store=store, key_file=str(key_file), log=False, cache_bytes=cache_bytes)
            opened = stack.enter_context(closing(open_store(store)))
            return Client(app.create(settings, database=opened), accesses[0].token)

        writes = [partial(next, _writes(writing, access.id_conta)) for access in (accesses[0], accesses[-1])]
        documents = _documents(writing, accesses[0].id_conta, wanted=arguments.rounds * _TIMES)
        rows = _rows(client(8_000_000), client(0), documents, *writes)
        found: dict[str, list[float]] = {row.name: [] for row in rows}
        for _ in range(arguments.rounds):
            for row in rows:
                found[row.name].append(_measured(row))
    for name, samples in found.items():
        print(f"{name:32}{median(samples):>8,.1f} µs")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=100_000, help="how many the store has (default: 100,000)")
    parser.add_argument("--rounds", type=int, default=15, help="how often everything is measured (default: 15)")
    parser.add_argument("--store", help="a PostgreSQL database, which is filled if it is empty")
    return parser.parse_args()


def _rows(
    kept: Client, cold: Client, documents: Iterator[str], own: Callable[[], object], other: Callable[[], object]
) -> list[Row]:
    constant = Client(application([_BODY]), "none")
    known = kept.get(LIST)["etag"]
    return [
        Row("constant body of 7.3 kB", partial(constant.get, f"/{_BODY}")),
        Row("page 1, again", partial(kept.get, LIST)),
        Row("page 1, 304", partial(kept.get, LIST, known=known)),
        Row("page 1, cold", partial(cold.get, LIST)),
        Row("two filters, cold", partial(cold.get, FILTERS)),
        Row("1,000 items, cold", partial(cold.get, f"{LIST}?rows=1000"), 100),
        Row("another document", lambda: kept.get(f"{LIST}?numero_documento={next(documents)}")),
        Row("page 1, after a write", partial(kept.get, LIST), 30, own),
        Row("page 100, after a write", partial(kept.get, f"{LIST}?page=100"), 30, own),
        Row("two filters, after a write", partial(kept.get, FILTERS), 30, own),
        Row("page 1, after another's write", partial(kept.get, LIST), 30, other),
    ]


def _writes(database: Database, id_conta: int) -> Iterator[object]:
    """Write one report anew each time, dated one millisecond later: a write may take less time than that."""
    ingest = Ingest(database, id_conta)
    [invented] = demo.relatorios(1)
    for now in count(time_ns() // 1_000_000):
        yield ingest.write([replace(invented, atualizado_em=now)])


def _documents(database: Database, id_conta: int, *, wanted: int) -> Iterator[str]:
    """Give the documents of an account in an order that no page has; ends the program if there are too few."""
    found = database.fetch(Statement("SELECT DISTINCT numero_documento FROM relatorio WHERE id_conta = ?", (id_conta,)))
    if len(found) < wanted:
        hint = "take fewer --rounds, or a new store and more --reports"
        sys.exit(f"the account has {len(found):,} documents, and {wanted:,} are asked for, one at a time; hint: {hint}")
    return (numero for (numero,) in sorted(found, key=lambda row: str(row[0])[::-1]))


def _measured(row: Row) -> float:
    """Give the microseconds of CPU that one request takes."""
    spent = 0.0
    for _ in range(row.times):
        row.before()
        began = process_time()
        row.ask()
        spent += process_time() - began
    return spent / row.times * 1e6


if __name__ == "__main__":
    main()
