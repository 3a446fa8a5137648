"""Each page equals the reference's, for every way in which a plan can find it and any distribution of reports.

The thresholds by which a plan chooses its way are so small that a few hundred reports suffice to try every way.
"""

from collections import Counter
from itertools import product
from pathlib import Path
from random import Random
from typing import Final

import pytest
from msgspec.structs import replace

from engines import Stores
from factories import NOON
from laudo.core import across, guesses, part, plan, points, reading, walking
from laudo.core.values import render_instant
from laudo.server.ingest.tallies import Sizes
from strategies import PESSOA_SORTS, RELATORIO_SORTS, History, any_relatorio
from world import List, World, opened, written

SEED: Final = 7
STORES: Final = 20
LISTS: Final = 12
"""How many lists are requested from each store."""
MOST_PAGES: Final = 8
"""The most pages that are requested of each list."""
REPORTS: Final = (60, 200, 400)
MINUTE: Final = 60_000
CHOICES: Final = {
    (guesses, "GUESSING"): (0, 0, 20),
    (guesses, "LOCATING"): (0, 10),
    (guesses, "COUNTING"): (0, 1),
    (across, "COMBINATION"): (0, 0, 40),
    (guesses, "NEAR"): (0, 1, 5, 30),
    (guesses, "FEW_OF_RANGE"): (0, 1, 5),
    (part, "FETCH"): (0, 1, 10),
    (points, "APART"): (1, 3, 10, 60),
    (points, "MOST"): (5, 1000),
    (plan, "FEW"): (0, 0, 50),
    (plan, "FAR"): (0, 0, 500),
    (walking, "SORT"): (0, 1, 1_000_000),
    (walking, "LEAST"): (0, 256),
    (reading, "LEAST"): (1, 256),
    (reading, "PATIENCE"): (0, 4),
    (reading, "FARTHEST"): (0, 10, 4000),
    (reading, "TIES"): (0, 2, 256),
}
SIZES: Final = tuple(Sizes(*each) for each in product((2, 8, 50), (2, 3, 10)))
OFTEN: Final = "00000000003"
FILTERS: Final[dict[List, tuple[str, ...]]] = {
    "relatorios": (
        *("", "status=CONCLUIDO", "tipo_pessoa=PESSOA", "resultado=VALID", "pendente_validacao_manual=true"),
        *(f"numero_documento={OFTEN}", f"numero_documento={OFTEN}&status=CONCLUIDO"),
    ),
    "pessoas": ("", "nome=m", "nome=mar", "nome=mar+s", "busca=0", "busca=1", "busca=silva", "nome=m&busca=0"),
}


@pytest.mark.parametrize("share", range(3))
def test_every_page_equals_the_reference_after_any_earlier_requests(
    stores: Stores, key_file: Path, monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    answered = Counter[str]()
    for number in range(STORES):
        seeded = Random(f"{SEED} {share} {number}")
        chosen = {name: seeded.choice(values) for name, values in CHOICES.items()}
        for (module, name), value in chosen.items():
            monkeypatch.setattr(module, name, value)
        history, instants = _history(seeded)
        with (
            stores.passing() as url,
            opened(written(url, key_file, history, sizes=seeded.choice(SIZES))) as world,
        ):
            for _ in range(LISTS):
                answered.update(_compared(seeded, world, instants))
    assert answered["items"] > answered.total() / 5, answered


def _history(seeded: Random) -> tuple[History, list[int]]:
    """Return one account's reports and their instants: one, few or many instants, and few or many documents."""
    count = seeded.choice(REPORTS)
    instants = [NOON + minute * MINUTE for minute in range(seeded.choice((1, 5, 40, count)))]
    reports = [any_relatorio(seeded, number, instants=instants) for number in range(count)]
    if seeded.random() < 0.7:
        documents = [f"{number:011}" for number in range(seeded.choice((4, 20)))]
        reports = [replace(each, numero_documento=seeded.choice(documents), tipo_pessoa="Pessoa") for each in reports]
    return History((1,), ((0, tuple(reports)),)), instants


def _compared(seeded: Random, world: World, instants: list[int]) -> list[str]:
    resource: List = seeded.choice(("relatorios", "relatorios", "pessoas"))
    sort = seeded.choice(RELATORIO_SORTS if resource == "relatorios" else PESSOA_SORTS)
    since, until = sorted(seeded.choice(instants) + seeded.choice((-1, 0, 1)) for _ in range(2))
    bounds = [f"atualizado_em_de={render_instant(since)}", f"atualizado_em_ate={render_instant(until)}"]
    filters = [seeded.choice(FILTERS[resource]), *seeded.sample(bounds, seeded.choice((0, 1, 1, 2)))]
    asked = [f"sort={sort}", *filter(None, filters), f"rows={seeded.choice((25, 25, 50))}"]
    pages = range(1, len(world.api.reports) // 25 + 2)
    return [
        world.compare(resource, 0, "&".join((*asked, f"page={page}")))
        for page in seeded.sample(pages, min(MOST_PAGES, len(pages)))
    ]
