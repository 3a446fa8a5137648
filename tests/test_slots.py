"""Which threads wait for a connection, and which are refused instead."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from time import monotonic, process_time, sleep
from typing import Final

import pytest

from laudo.server.postgres import slots as waits
from laudo.server.postgres.slots import Slots

PATIENCE: Final = 30.0


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(20) as threads:
        yield threads


def waiting(threads: ThreadPoolExecutor, slots: Slots, number: int, seconds: float) -> list[Future[bool]]:
    """Let several threads begin to wait, one after the other."""
    futures = []
    for _ in range(number):
        before = list(slots._waiting)
        futures.append(threads.submit(slots.take, seconds))
        # This thread may be delayed for so long that this wait, or an earlier one, has already ended.
        while not futures[-1].done() and all(waiter in before for waiter in list(slots._waiting)):
            sleep(0.001)
    return futures


def test_a_slot_goes_to_the_thread_that_has_waited_longest(threads: ThreadPoolExecutor) -> None:
    slots = Slots(1)
    assert slots.take(0)
    queue = waiting(threads, slots, 5, PATIENCE)
    for place, each in enumerate(queue):
        assert not any(later.done() for later in queue[place:])
        slots.give_back()
        assert each.result(PATIENCE)
    slots.give_back()
    assert slots.take(0)


def test_a_wait_ends_at_its_timeout(threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "_LONG_SECONDS", 2 * PATIENCE)
    slots = Slots(1)
    assert slots.take(0)
    [one, other] = [*waiting(threads, slots, 1, 0.05), *waiting(threads, slots, 1, PATIENCE)]
    assert not one.result(PATIENCE)
    slots.give_back()
    assert other.result(PATIENCE)
    [patient, behind] = [*waiting(threads, slots, 1, PATIENCE), *waiting(threads, slots, 1, 0.05)]
    assert not behind.result(PATIENCE)
    slots.give_back()
    assert patient.result(PATIENCE)


def test_once_waits_are_long_only_as_many_threads_wait_as_there_are_slots(
    threads: ThreadPoolExecutor,
) -> None:
    slots = Slots(2)
    assert slots.take(0)
    assert slots.take(0)
    patient, others = waiting(threads, slots, 2, PATIENCE), waiting(threads, slots, 6, PATIENCE)
    assert not any(each.result(PATIENCE) for each in others)
    assert not any(each.done() for each in patient)
    before = monotonic()
    assert not any(slots.take(PATIENCE) for _ in range(1000))
    assert monotonic() - before < PATIENCE
    slots.give_back()
    slots.give_back()
    assert all(each.result(PATIENCE) for each in patient)


@pytest.mark.timed
def test_any_number_of_threads_may_wait_again_once_waits_are_short(threads: ThreadPoolExecutor) -> None:
    slots = Slots(1)
    assert slots.take(0)
    [patient] = waiting(threads, slots, 1, PATIENCE)
    [other] = waiting(threads, slots, 1, PATIENCE)
    assert not other.result(PATIENCE)
    # First a thread gets the slot after a long wait, then one after a short wait.
    slots.give_back()
    assert patient.result(PATIENCE)
    [patient] = waiting(threads, slots, 1, PATIENCE)
    slots.give_back()
    assert patient.result(PATIENCE)
    queue = waiting(threads, slots, 10, PATIENCE)
    for each in queue:
        slots.give_back()
        assert each.result(PATIENCE)


def test_a_timed_out_wait_counts_as_long_until_a_slot_is_free(
    threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "_LONG_SECONDS", PATIENCE)
    slots = Slots(1)
    assert slots.take(0)
    assert not slots.take(0)
    [patient, other] = waiting(threads, slots, 2, PATIENCE)
    assert other.done()
    assert not other.result()
    slots.give_back()
    assert patient.result(PATIENCE)
    assert not slots.take(0)
    slots.give_back()
    assert slots.take(0)
    for each in waiting(threads, slots, 3, PATIENCE):
        slots.give_back()
        assert each.result(PATIENCE)


def test_a_slot_handed_over_at_the_timeout_is_not_lost() -> None:
    slots = Slots(1)
    assert slots.take(0)
    lock, entries = slots._lock, count()

    class Contested:
        def __enter__(self) -> None:
            if next(entries) == 1:  # A thread at its timeout checks once more; the slot is given back just before.
                slots.give_back()
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()

    slots._lock = Contested()  # type: ignore[assignment]
    assert slots.take(0)


def test_nobody_is_refused_while_slots_are_given_back(
    threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the clock advances only when a slot is given back, so a stalled machine causes no refusal."""
    slots, seconds = Slots(2), 0.005
    given_back: list[float] = []
    monkeypatch.setattr(waits, "monotonic", lambda: sum(given_back))

    def use() -> bool:
        taken = slots.take(PATIENCE)
        sleep(seconds)
        given_back.append(seconds)
        slots.give_back()
        return taken

    assert all(each.result(PATIENCE) for each in [threads.submit(use) for _ in range(300)])


@pytest.mark.timed
def test_waiting_takes_almost_no_cpu_time(threads: ThreadPoolExecutor) -> None:
    slots = Slots(4)
    assert all(slots.take(0) for _ in range(4))
    before = process_time()
    waits = waiting(threads, slots, 10, 1.5)
    assert not any(each.result(PATIENCE) for each in waits)
    assert process_time() - before < 0.5
