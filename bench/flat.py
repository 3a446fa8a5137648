"""What a page costs as an account grows: every filter, combinations and every sort, at the first, middle and last page.

    python bench/flat.py --sizes 10k,100k,1M,10M [--store postgresql://…]

Builds a store of each size (kept in --folder; 10 M reports of 3 M persons take some 8 GB) and asks it in process, with
nothing kept from earlier answers. Prints the median and the 99th percentile beside the least that the plain way, COUNT
and OFFSET, takes on the same store. Two further kinds of page use what was counted for others: pages at random after
eight others, and pages from the middle on, as a client with four under way asks for them. With --picture it draws the
curves for docs/performance.md; with --json it writes every figure.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Final, NamedTuple

from laudo.core import query as questions
from laudo.core import sql
from laudo.core.facets import Facets
from laudo.core.lookups import Plain
from laudo.core.query import Query
from laudo.core.resources import PESSOAS, RELATORIOS, Resource
from laudo.core.sql import Statement
from laudo.server.callers import Caller
from laudo.server.database import Database, read
from laudo.server.pages import Answer, Pages
from laudo.server.stores import open_store
from stores import Built, Plan, build

PAGES: Final = ("first", "middle", "last", "random", "abreast")
SLOWEST_MS: Final = 3.0
SLOWEST_ON_SERVER_MS: Final = 8.0
GROWTH: Final = 1.5
SHAPES: Final = {
    "among": "how many accounts with two reports each the store has besides",
    "names": "how many values the reports' nome has, other than the usual few",
    "documents": "how many documents the reports have, other than any number",
    "messages": "how many different messages the reports have, other than the usual few",
    "instants": "how many instants the reports share, other than one each",
    "timed": "1 for UUIDs that follow time (version 7)",
}
_WARMING: Final = 8
"""How many pages, evenly spread, are asked for before those at random."""
_BUDGET: Final = 0.4
"""Seconds spent on one figure, unless one answer takes longer."""
_LEAST_LED: Final = 24
"""The fewest pages asked for where counts are kept: with few, the expensive first ones would be the median."""


class Row(NamedTuple):
    """What is asked, without the page; {documento}, {numero} and {cpf} stand for values in the data."""

    name: str
    resource: Resource
    asked: str


class Figure(NamedTuple):
    """Milliseconds that one page of one row takes."""

    p50: float
    p99: float
    plain: float


def _rows() -> Iterator[Row]:
    yield Row("no filter", RELATORIOS, "")
    for asked in (
        "numero_documento={documento}",
        "tipo_pessoa=PESSOA",
        "nome=consultaPessoaDefault",
        "numero={numero}",
        "resultado=VALID",
        "resultado=INVALID",
        "status=CONCLUIDO",
        "status=PENDENTE",
        "pendente_validacao_manual=true",
        "atualizado_em_de=2026-06-01",
        "atualizado_em_ate=2024-06-30",
    ):
        yield Row(asked, RELATORIOS, asked)
    for asked in (
        "status=CONCLUIDO&resultado=INVALID",
        "status=PENDENTE&tipo_pessoa=EMPRESA",
        "nome=consultaPessoaDefault&resultado=VALID&status=CONCLUIDO",
        "status=EM ANALISE&pendente_validacao_manual=true&tipo_pessoa=PESSOA",
        "status=PROCESSANDO&sort=atualizado_em",
        "resultado=INVALID&sort=nome",
        "status=PENDENTE&sort=numero",
        "tipo_pessoa=EMPRESA&sort=-numero_documento",
        "nome=consultaEmpresaFornecedor&status=PENDENTE&sort=numero_documento",
        "nome=consultaEmpresaFornecedor&status=PENDENTE&sort=-numero_documento",
        "status=PENDENTE&sort=mensagem",
        "status=PENDENTE&sort=-mensagem",
        "atualizado_em_de=2025-01-01&atualizado_em_ate=2025-06-30",
        "status=CONCLUIDO&atualizado_em_de=2025-01-01",
    ):
        yield Row(asked, RELATORIOS, asked)
    for given in (
        "nome=consultaEmpresaFornecedor&status=PENDENTE",
        "sort=numero",
        "sort=status",
        "sort=-nome",
        "sort=-mensagem",
        "atualizado_em_de=2025-06-01",
        "atualizado_em_de=2025-06-01&sort=mensagem",
    ):
        asked = f"numero_documento={{documento}}&{given}"
        yield Row(asked, RELATORIOS, asked)
    for sort in ("numero", "-numero_documento", "status", "-nome", "-mensagem"):
        asked = f"atualizado_em_de=2026-06-01&sort={sort}"
        yield Row(asked, RELATORIOS, asked)
    for sort in ("numero", "mensagem", "numero_documento"):
        asked = f"atualizado_em_de=2025-06-01&sort={sort}"
        yield Row(asked, RELATORIOS, asked)
    for end, sort in (
        ("de=2026-09-01", "numero"),
        ("de=2026-09-24", "-numero_documento"),
        ("de=2026-09-24", "status"),
        ("de=2026-09-30T12:00:00Z", "nome"),
        ("ate=2026-12-31", "numero"),
        ("ate=2026-12-31", "-mensagem"),
        ("ate=2026-09-24", "-numero"),
        ("ate=2026-09-24", "status"),
        ("ate=2026-09-24", "mensagem"),
    ):
        asked = f"atualizado_em_{end}&sort={sort}"
        yield Row(asked, RELATORIOS, asked)
    asked = "status=CONCLUIDO&atualizado_em_de=2026-09-01&sort=-mensagem"
    yield Row(asked, RELATORIOS, asked)
    for field in RELATORIOS.fields:
        for sign in ("", "-"):
            yield Row(f"sort={sign}{field.name}", RELATORIOS, f"sort={sign}{field.name}")
    yield Row("people", PESSOAS, "")
    for asked in (
        "cpf={cpf}",
        "nome=maria",
        "nome=mar sil",
        "nome=maria aparecida da silva santos",
        "nome=maria leao",
        "nome=maria silva",
        "nome=maria&cpf={cpf}",
        "nome=maria&sort=nome",
        "nome=maria&sort=cpf",
        "nome=silva",
        "nome=maria&atualizado_em_de=2026-06-01",
        "nome=maria&atualizado_em_ate=2026-09-24",
        "nome=silva&atualizado_em_ate=2026-09-24",
        "busca=1",
        "busca=1&sort=-nome",
        "busca=1234",
        "atualizado_em_de=2026-06-01",
        "atualizado_em_de=2026-06-01&sort=nome",
        "atualizado_em_de=2026-06-01&sort=cpf",
        "atualizado_em_de=2026-09-24&sort=nome",
        "atualizado_em_ate=2026-09-24&sort=nome",
        *(f"sort={sign}{field.name}" for field in PESSOAS.fields for sign in ("", "-")),
    ):
        yield Row(f"people, {asked}", PESSOAS, asked)


ROWS: Final = tuple(_rows())


def main() -> None:
    arguments = _arguments()
    sizes = [number(size) for size in arguments.sizes.split(",")]
    figures: dict[int, dict[str, list[Figure]]] = {}
    for size in sizes:
        plan = Plan(size, **{name: number(getattr(arguments, name)) for name in SHAPES})
        built = build(arguments.store or arguments.folder, plan)
        took = f"built in {built.seconds:.0f} s, " if built.seconds > 1 else ""
        print(f"{_short(size)} reports: {took}{built.gigabytes:.2f} GB", flush=True)
        figures[size] = _measure(built, only=arguments.only, plain=not arguments.no_plain)
    _print(figures)
    _judge(figures, slowest_ms=SLOWEST_ON_SERVER_MS if arguments.store else SLOWEST_MS)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if arguments.picture:
        from picture import draw  # noqa: PLC0415 - matplotlib is needed for this alone

        draw(figures, arguments.picture)


def _measure(built: Built, *, only: str, plain: bool) -> dict[str, list[Figure]]:
    database = open_store(built.url)
    asker = Asker(database, built)
    found = {}
    for row in (row for row in ROWS if only in row.name):
        asked = asker.filled(row.asked)
        total = asker.total(row.resource, asked)
        last = max(1, -(-total // questions.STEP))
        found[row.name] = [
            *(asker.figure(row.resource, asked, page=page, plain=plain) for page in (1, (last + 1) // 2, last)),
            asker.anywhere(row.resource, asked, last=last),
            asker.abreast(row.resource, asked, last=last),
        ]
        print(f"  {row.name:68} {total:>10,}  " + "  ".join(f"{each.p50:8.3f}" for each in found[row.name]), flush=True)
    database.close()
    return found


class Asker:
    """Asks one store as a worker does for one caller: it knows the account's facets, but keeps no answers.

    `_led` keeps what was counted for other pages, and is asked for pages that follow none of those.
    """

    def __init__(self, database: Database, built: Built) -> None:
        self._database = database
        self._owner = built.owner
        self._pages = Pages(bytes(32), cache_bytes=0)
        self._led = Pages(bytes(32), cache_bytes=1)
        with database.snapshot() as connection:
            versions = [connection.fetch(sql.version(list_, built.owner))[0][0] for list_ in (RELATORIOS, PESSOAS)]
            self._caller = Caller(*built.owner, 1, 1, None, "", "", "", "", *versions)
            statement = Statement(
                "SELECT item FROM relatorio WHERE id_organizacao = ? AND id_conta = ? "
                "AND length(numero_documento) = 11 ORDER BY recency LIMIT 1 OFFSET 7",
                built.owner,
            )
            item = json.loads(connection.fetch(statement)[0][0])
        self._values = {
            "documento": item["numero_documento"],
            "cpf": item["numero_documento"],
            "numero": item["numero"],
        }

    def filled(self, asked: str) -> str:
        return asked.format(**self._values).replace(" ", "+")

    def total(self, resource: Resource, asked: str) -> int:
        """Tell how many items a list has."""
        found = re.search(rb'"total":"?(\d+)', self.answer(parsed(resource, asked, 1)))
        return int(found[1]) if found else 0

    def figure(self, resource: Resource, asked: str, *, page: int, plain: bool) -> Figure:
        query = parsed(resource, asked, page)
        samples = self.timed(lambda: self.answer(query))
        plainly = self.timed(lambda: self._plainly(query), least=1, most=3) if plain else [0.0]
        return _figure(samples, min(plainly))

    def anywhere(self, resource: Resource, asked: str, *, last: int) -> Figure:
        seeded = Random(last)
        for part in range(_WARMING):
            self.answer(parsed(resource, asked, 1 + (2 * part + 1) * last // (2 * _WARMING)), self._led)
        return self._led_to(resource, asked, iter(lambda: seeded.randint(1, last), 0), self._led)

    def abreast(self, resource: Resource, asked: str, *, last: int) -> Figure:
        led = Pages(bytes(32), cache_bytes=1)
        pages = cycle(first + each for first in range((last + 1) // 2, last + 1, 4) for each in (1, 0, 3, 2))
        return self._led_to(resource, asked, pages, led)

    def _led_to(self, resource: Resource, asked: str, pages: Iterator[int], led: Pages) -> Figure:
        return _figure(self.timed(lambda: self.answer(parsed(resource, asked, next(pages)), led), least=_LEAST_LED))

    def answer(self, query: Query, pages: Pages | None = None) -> bytes:
        """Ask as a worker does; nothing is kept unless `pages` keep it."""
        asked = pages or self._pages
        found = asked.answer_in_one_statement(self._database, self._caller, query, None, None) or read(
            self._database, lambda connection: asked.answer(connection, self._caller, query)
        )
        return found.body if isinstance(found, Answer) else b""

    def _plainly(self, query: Query) -> None:
        with self._database.snapshot() as connection:
            facets = Facets(connection.fetch(sql.facets(query.resource, self._owner)))
            few = bool(query.exact) or query.order.field.axis is None or bool(query.words)
            numbers = facets.matching(query).numbers
            lookup = Plain(
                query,
                numbers,
                query.order,
                query.rows,
                query.offset,
                None,
                collect=few,
                counted=True,
                through=query.words[:2] or None,
            )
            connection.fetch(sql.statement(lookup, self._owner, connection.dialect))

    def timed(self, ask: Callable[[], object], *, least: int = 2, most: int = 400) -> list[float]:
        """Give the milliseconds of as many answers as fit the budget, without the first of several, which warms up."""
        samples: list[float] = []
        ends = time.perf_counter() + _BUDGET
        while len(samples) < most and (len(samples) < least or time.perf_counter() < ends):
            started = time.perf_counter()
            ask()
            samples.append((time.perf_counter() - started) * 1000)
        return samples[1:] or samples


def _figure(samples: list[float], plain: float = 0.0) -> Figure:
    return Figure(median(samples), quantiles(samples, n=100)[98] if len(samples) > 1 else samples[0], plain)


def parsed(resource: Resource, asked: str, page: int) -> Query:
    return questions.parse(resource, "&".join(filter(None, (asked, f"page={page}"))), max_rows=1000)


def _print(figures: dict[int, dict[str, list[Figure]]]) -> None:
    sizes = list(figures)
    print(
        f"\n{'milliseconds, p50 / p99 (plain COUNT and OFFSET)':68} "
        + " ".join(f"{_short(size):>24}" for size in sizes)
    )
    for name in figures[sizes[0]]:
        for place, page in enumerate(PAGES):
            cells = [figures[size][name][place] for size in sizes]
            shown = (f"{each.p50:.3f} / {each.p99:.3f} ({each.plain:.1f})" for each in cells)
            print(f"{'' if place else name:60} {page:7} " + " ".join(f"{cell:>24}" for cell in shown))


def _judge(figures: dict[int, dict[str, list[Figure]]], *, slowest_ms: float) -> None:
    """Print each row that misses a target."""
    small, large = figures[min(figures)], figures[max(figures)]
    print(f"\npage 1 at {_short(max(figures))} over {_short(min(figures))}, target {GROWTH}:")
    for name in large:
        growth = large[name][0].p50 / small[name][0].p50
        if growth > GROWTH:
            print(f"  missed: {name}: {growth:.2f} ({large[name][0].p50:.3f} ms)")
    print(f"slowest p50 at {_short(max(figures))}, target {slowest_ms} ms:")
    for name in large:
        slowest = max(figure.p50 for figure in large[name][:3])
        if slowest > slowest_ms:
            print(f"  missed: {name}: {slowest:.2f} ms")
    for size, found in figures.items():
        if search := found.get("people, nome=maria"):
            print(f"search by a common first name at {_short(size)}: {search[0].p50:.2f} ms")


def number(text: str) -> int:
    scale = {"k": 1_000, "M": 1_000_000}.get(text[-1], 1)
    return int(text.rstrip("kM")) * scale


def _short(size: int) -> str:
    return f"{size // 1_000_000}M" if size >= 1_000_000 else f"{size // 1000}k"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(sys.modules[__name__].__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default="10k,100k,1M", help="comma separated, with k or M")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"), help="where the stores are kept")
    parser.add_argument("--store", help="a PostgreSQL database, postgresql://…, on whose server the stores are made")
    for name, text in SHAPES.items():
        parser.add_argument(f"--{name}", default="0", metavar="N", help=text)
    parser.add_argument("--only", default="", metavar="TEXT", help="ask only what has this text in its name")
    parser.add_argument("--no-plain", action="store_true", help="do not time COUNT and OFFSET")
    parser.add_argument("--picture", type=Path, help="draw the curves into this file (SVG)")
    parser.add_argument("--json", type=Path, help="write every figure into this file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
