"""The pages that take longest, of every order with filters and periods: where to look for what could be quicker.

    python bench/slowest.py --sizes 1M --json before.json
    python bench/slowest.py --sizes 1M --beside before.json [--store postgresql://…]

Asks stores that bench/flat.py builds for some six thousand pages, each twice with nothing kept, and prints the slowest
by the quicker of the two, in milliseconds; beside what another version took, those that differ most instead.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Final

from flat import Asker, number, parsed
from laudo.core import query
from laudo.core.resources import PESSOAS, RELATORIOS, Resource
from laudo.server.stores import open_store
from stores import Plan, build

FILTERS: Final[Mapping[Resource, tuple[str, ...]]] = {
    RELATORIOS: (
        "",
        "&status=CONCLUIDO",
        "&status=PENDENTE",
        "&status=PENDENTE&tipo_pessoa=EMPRESA",
        "&resultado=VALID",
        "&nome=consultaPessoaDefault",
        "&pendente_validacao_manual=true",
    ),
    PESSOAS: ("", "&busca=12", "&nome=maria", "&nome=mar+sil", "&nome=leao"),
}
PERIODS: Final = (
    "",
    "&atualizado_em_de=2026-09-30",
    "&atualizado_em_de=2026-09-24",
    "&atualizado_em_de=2026-06-01",
    "&atualizado_em_de=2026-03-01&atualizado_em_ate=2026-05-01",
    "&atualizado_em_ate=2025-06-01",
    "&atualizado_em_ate=2026-09-24",
)

Taken = dict[str, float]
"""The milliseconds that each page took, by what was asked."""


def main() -> None:
    arguments = _arguments()
    before: Taken = json.loads(arguments.beside.read_text()) if arguments.beside else {}
    found: Taken = {}
    for size in arguments.sizes.split(","):
        built = build(arguments.store or arguments.folder, Plan(number(size)))
        with closing(open_store(built.url)) as database:
            taken = {f"{size} {asked}": ms for asked, ms in _taken(Asker(database, built))}
        found |= taken
        if before:
            _compare(before, taken, arguments.most)
        else:
            for asked in sorted(taken, key=taken.__getitem__, reverse=True)[: arguments.most]:
                print(f"{taken[asked]:>9.1f}  {asked}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found))


def _taken(asker: Asker) -> Iterator[tuple[str, float]]:
    for resource, filters in FILTERS.items():
        sorts = [f"{sign}{field.name}" for field in resource.fields for sign in ("", "-")]
        for sort, given, period in product(sorts, filters, PERIODS):
            asked = f"sort={sort}{given}{period}"
            last = max(1, -(-asker.total(resource, asked) // query.STEP))
            for page in sorted({1, 2, 10, 100, (last + 1) // 2, last - 1, last} & set(range(1, last + 1))):
                yield f"{resource.name} {asked}&page={page}", _ms(asker, resource, asked, page)


def _ms(asker: Asker, resource: Resource, asked: str, page: int) -> float:
    question, times = parsed(resource, asked, page), [perf_counter()]
    for _ in range(2):
        asker.answer(question)
        times.append(perf_counter())
    return 1000 * min(times[1] - times[0], times[2] - times[1])


def _compare(before: Taken, now: Taken, most: int) -> None:
    """Print the pages that have become faster most and slower most, and the sum of all."""
    both = sorted(now.keys() & before.keys(), key=lambda asked: now[asked] - before[asked])
    for asked in (*both[:most], *both[-most:]) if len(both) > 2 * most else both:
        print(f"{before[asked]:>9.1f} -> {now[asked]:>9.1f}  {asked}")
    print(f"{sum(before[each] for each in both):>9.1f} -> {sum(now[each] for each in both):>9.1f}  all")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1M", help="comma separated, with k or M (default: 1M)")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"), help="where the stores are kept")
    parser.add_argument("--store", help="a PostgreSQL database, beside which the stores are made")
    parser.add_argument("--most", type=int, default=40, help="how many pages to print (default: 40)")
    parser.add_argument("--json", type=Path, help="write what each page took into this file")
    parser.add_argument("--beside", type=Path, help="such a file of another version, to compare with")
    return parser.parse_args()


if __name__ == "__main__":
    main()
