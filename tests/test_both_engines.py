"""SQLite and PostgreSQL get the same requests and must answer with the same bodies, which equal the reference's.

LAUDO_TEST_REQUESTS sets the number of requests. They are split into twenty parts, each with a store of its own.
"""

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from engines import Engine, Stores
from strategies import (
    History,
    any_query,
    any_relatorio,
)
from world import LISTS, World, kind, world
from wsgi import Answer

REQUESTS: Final = int(os.environ.get("LAUDO_TEST_REQUESTS", "50000"))
PARTS: Final = 20


@contextmanager
def worlds(engines: tuple[Engine, ...], folder: Path, history: History) -> Iterator[list[World]]:
    """Write the same history to a new store of each engine, so that accounts have the same ids in all of them."""
    with ExitStack() as stack:
        made = []
        for number, engine in enumerate(engines):
            url = stack.enter_context(Stores(engine, folder / str(number))).new()
            made.append(stack.enter_context(world(url, folder / "laudo.key", history)))
        yield made


@pytest.mark.parametrize("part", range(PARTS))
def test_both_engines_answer_every_request_like_the_reference(
    sqlite: Engine, postgres: Engine, tmp_path: Path, part: int
) -> None:
    for number in range(2):
        (tmp_path / str(number)).mkdir()
    seeded = random.Random(part)
    batches = [
        (account, tuple(any_relatorio(seeded, number) for number in seeded.sample(range(150), 90)))
        for account in (0, 1, 2, 0)
    ]
    answered = Counter[str]()
    with worlds((sqlite, postgres), tmp_path, History((2, 1), tuple(batches))) as (one, other):
        for _ in range(REQUESTS // PARTS):
            resource, values, sorts = seeded.choice(LISTS)
            account, question = seeded.randrange(3), any_query(seeded, values, sorts)
            answer = one.answer(resource, account, question)
            assert comparable(answer) == comparable(other.clients[account].get(f"/{resource}?{question}")), question
            answered[kind(answer)] += 1
    assert answered["items"] > answered["nothing"] > answered["refused"] > 0, answered


def comparable(answer: Answer) -> tuple[int, bytes, set[str]]:
    """Return what both engines must have in common; cursors and ETags differ, as they hold the time of a change."""
    return (
        answer.status,
        answer.body,
        answer.relations if answer.status == 200 else set(),
    )
