"""A batch is as large as allowed, and no report waits in one for lines that have not arrived."""

import io
import pickle
from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import ceil
from operator import attrgetter
from sys import getsizeof
from typing import Final

import pytest

from factories import numero, relatorio
from laudo.core.axes import numero_key
from laudo.server.ingest import batches as module
from laudo.server.ingest.batches import LEAST, LONG, MOST, SOON, WEIGHT, Batch, batches
from laudo.server.ingest.records import Found, Rejected, Source

SOURCE: Final = Source(io.BytesIO())


class Clock:
    """A clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "monotonic", clock)
    return clock


def rejected(count: int) -> Iterator[Found]:
    return (Rejected(number, "a reason") for number in range(1, count + 1))


def sizes(clock: Clock, seconds: Iterable[float]) -> list[int]:
    """Return the numbers of lines of successive batches, if each takes the given number of seconds."""
    taking = iter(seconds)
    found = []
    for batch in batches(rejected(20 * MOST), SOURCE):
        found.append(batch.lines)
        took = next(taking, None)
        if took is None:
            break
        clock.now += took
    return found


def test_the_first_batch_is_small_and_quick_batches_grow(clock: Clock) -> None:
    found = sizes(clock, [0.9 * SOON] * 8)
    assert found[:3] == [LEAST, 2 * LEAST, 4 * LEAST]
    assert found[-2:] == [MOST, MOST]


def test_slow_batches_shrink_down_to_a_minimum(clock: Clock) -> None:
    found = sizes(clock, [0.0] * 5 + [1.1 * LONG] * 8)
    assert max(found) == MOST
    assert all(later == max(earlier // 2, LEAST) for earlier, later in pairwise(found[5:]))
    assert found[-1] == LEAST


def test_batches_that_take_about_a_second_keep_their_size(clock: Clock) -> None:
    assert set(sizes(clock, [(SOON + LONG) / 2] * 5)) == {LEAST}


def test_a_batch_ends_when_no_more_input_has_arrived() -> None:
    found = [(1, relatorio(1)), None, None, (2, relatorio(2)), Rejected(3, "a reason"), None, (4, relatorio(4))]
    assert [(len(batch.reports), len(batch.rejected)) for batch in batches(found, SOURCE)] == [(1, 0), (1, 1), (1, 0)]
    assert list(batches([None], SOURCE)) == []


def full(letter: str) -> Batch:
    """Return the largest possible batch of reports whose texts are as long as allowed."""
    texts = {"nome": letter * 200, "mensagem": letter * 500, "nome_pessoa": letter * 200}
    found = ((number, relatorio(number, **texts)) for number in range(MOST))
    return max(batches(found, SOURCE), key=attrgetter("lines"))


def held(batch: Batch) -> int:
    """Return the bytes that a batch's texts take after it was sent to the process that writes."""
    pickle.dumps(batch)
    *_, nomes, mensagens, items = batch.reports.columns
    return sum(map(getsizeof, (*nomes, *mensagens, *items)))


@pytest.mark.usefixtures("clock")
def test_batches_of_long_texts_have_fewer_reports() -> None:
    assert full("a").lines == ceil(WEIGHT / (getsizeof("a" * 500) + 2 * getsizeof("a" * 200))) < MOST


@pytest.mark.parametrize("letter", ["ç", "ж", "語", "😀"])
@pytest.mark.usefixtures("clock")
def test_letters_with_more_bytes_do_not_increase_a_batchs_memory(letter: str) -> None:
    most = 1.01 * held(full("a"))
    assert held(full(letter)) <= most


def test_a_batch_sorts_its_reports_by_numero_and_keeps_ties_in_order() -> None:
    given = [relatorio(number, mensagem=text) for number, text in [(3, "a"), (1, "z"), (2, "c"), (1, "b"), (3, "d")]]
    [batch] = batches(enumerate(given, 1), SOURCE)
    numeros, *_, mensagens, _ = batch.reports.columns
    keys = [numero_key(numero(number)) for number in (1, 1, 2, 3, 3)]
    assert list(zip(numeros, mensagens, strict=True)) == list(zip(keys, "zbcad", strict=True))


def test_a_batch_states_how_far_its_source_is_read() -> None:
    source = Source(io.BytesIO(b"x" * 10))

    def found() -> Iterator[Found]:
        for number in range(5):
            source.consumed += 2
            yield number, relatorio(number)

    [batch] = batches(found(), source)
    assert batch.consumed == 10
