"""What each way to a page of a range in another order takes, and what it was estimated to cost.

    python bench/ways.py --sizes 1M,10M [--store postgresql://…]

Asks stores that bench/flat.py builds for pages of periods, and of persons whose names or CPFs begin alike. It takes
each page in every way that is worth a try: collecting all matching rows, walking past those before the page, or
guessing its place. Prints the milliseconds of each way beside the cost that `laudo.core.across` estimates, and marks
the chosen one (*). Last come, for each way, the nanoseconds that one unit of its cost took, and the pages that another
way would have found sooner. The constants of that estimate, in `laudo.core.walking` and `guesses`, come from here.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import median, quantiles
from typing import Final, NamedTuple
from unittest.mock import patch

from flat import Asker, number, parsed
from laudo.core import across, query
from laudo.core.across import Costs
from laudo.core.cursor import After
from laudo.core.part import Part
from laudo.core.resources import PESSOAS, RELATORIOS, Resource
from laudo.server.stores import open_store
from stores import Plan, build

ENDS: Final = (
    *(f"de={day}" for day in ("2026-09-30", "2026-09-24", "2026-09-01", "2026-06-01", "2025-06-01")),
    *(f"ate={day}" for day in ("2026-09-24", "2026-06-01")),
)
ORDERS: Final = ("numero", "-numero", "numero_documento", "mensagem", "-mensagem")
FILTERS: Final = ("", "&status=CONCLUIDO", "&status=PENDENTE")
ALIKE: Final = ("busca=1", "busca=12", "busca=123", "nome=maria")
LISTS: Final = (
    *((RELATORIOS, f"sort={sort}&atualizado_em_{end}{given}") for sort, end, given in product(ORDERS, ENDS, FILTERS)),
    *((PESSOAS, f"sort={sort}&atualizado_em_{end}") for sort, end in product(("nome", "cpf"), ENDS)),
    *(
        (PESSOAS, f"sort={sort}&{given}")
        for given, sort in product(ALIKE, ("atualizado_em", "-atualizado_em", "nome", "-nome"))
    ),
)
WORSE: Final = 1.5
FARTHEST: Final = 10
"""A way is tried if it is the chosen one, or estimated at no more than this many times the cheapest."""
LONG_MS: Final = 1.0
"""Faster pages mostly cost what every page does, so the choice matters little."""


class Taken(NamedTuple):
    """One page, taken in one way."""

    ms: float
    cost: int


class Page(NamedTuple):
    """One page: what was asked, how it would have been taken, and what each way took."""

    asked: str
    number: int
    chosen: str
    taken: dict[str, Taken]


def main() -> None:
    arguments = _arguments()
    for size in arguments.sizes.split(","):
        built = build(arguments.store or arguments.folder, Plan(number(size)))
        database = open_store(built.url)
        print(f"{size} reports: milliseconds, (nanoseconds of one unit of the cost), * as chosen", flush=True)
        pages = list(_pages(Asker(database, built)))
        database.close()
        _judge(pages)


def _pages(asker: Asker) -> Iterator[Page]:
    print(f"  {'':72}{'page':>7}" + "".join(f"{way:>20}" for way in across.WAYS))
    for resource, asked in LISTS:
        last = max(1, -(-asker.total(resource, asked) // query.STEP))
        for page in sorted({1, min(10, last), (last + 1) // 2}):
            if (found := _page(asker, resource, asked, page)) is None:
                continue
            cells = "".join(f"{_cell(found, way):>20}" for way in across.WAYS)
            print(f"  {found.asked:72}{page:>7}{cells}", flush=True)
            yield found


def _page(asker: Asker, resource: Resource, asked: str, page: int) -> Page | None:
    """Take a page in each way that is worth a try; None if nothing has to be estimated."""
    query, chosen, taken = parsed(resource, asked, page), "", {}
    with _taking("collect") as estimated:
        asker.answer(query)
    if not estimated:
        return None
    costs, chosen = estimated[-1]
    for way, cost in costs._asdict().items():
        # A walk gives up after twice the cost of collecting, and collects.
        worth = cost <= FARTHEST * min(costs) and (way != "walk" or cost <= 2 * costs.collect)
        if worth or way == chosen:
            with _taking(way):
                taken[way] = Taken(median(asker.timed(lambda: asker.answer(query))), cost)
    return Page(f"{resource.name}: {asked}", page, chosen, taken)


def _cell(page: Page, way: str) -> str:
    if way not in page.taken:
        return "-"
    each = page.taken[way]
    return f"{each.ms:.3f} ({_unit(each):.0f}){'*' if way == page.chosen else ' '}"


def _unit(taken: Taken) -> float:
    """Give the nanoseconds that one unit of the cost took."""
    return taken.ms * 1e6 / max(taken.cost, 1)


@contextmanager
def _taking(way: str) -> Iterator[list[tuple[Costs, str]]]:
    """Take pages in one way, whatever it costs; gives what each was estimated to cost, and what would be chosen."""
    estimated: list[tuple[Costs, str]] = []
    chosen = across.way

    def forced(part: Part, limit: int, skip: int, after: After | None) -> str:
        estimated.append((across.estimate(part, limit, skip), chosen(part, limit, skip, after)))
        return way

    with patch.object(across, "way", forced):
        yield estimated


def _judge(pages: list[Page]) -> None:
    for way in across.WAYS:
        long = [page.taken[way] for page in pages if way in page.taken and page.taken[way].ms > LONG_MS]
        if len(long) > 1:
            low, middle, high = quantiles(map(_unit, long), n=4)
            print(f"{way}, {len(long)} pages: one unit took {middle:.0f} ns, of half of them {low:.0f} to {high:.0f}")
    worse = [page for page in pages if _worse(page) > WORSE and page.taken[page.chosen].ms > LONG_MS]
    print(f"{len(worse)} of {len(pages)} pages another way would have found {WORSE} times as fast, or faster:")
    for page in worse:
        took = page.taken[page.chosen].ms
        print(f"  {page.asked}, page {page.number}: {page.chosen} {took:.2f} ms, {_worse(page):.1f} times as long")


def _worse(page: Page) -> float:
    return page.taken[page.chosen].ms / min(each.ms for each in page.taken.values())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(sys.modules[__name__].__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default="1M", help="comma separated, with k or M")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"), help="where the stores are kept")
    parser.add_argument("--store", help="a PostgreSQL database, postgresql://…, on whose server the stores are made")
    return parser.parse_args()


if __name__ == "__main__":
    main()
