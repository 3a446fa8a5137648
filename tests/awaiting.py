"""Waits for coroutines, for data on a file descriptor, and until something is true."""

import asyncio
import select
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep
from typing import Any, Final, TypeVar

PATIENCE: Final = 60.0
"""Seconds to wait for something before the test fails."""

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, but in another thread, because browser tests keep an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def readable(descriptor: int, seconds: float) -> bool:
    """Wait until something can be read; unlike `select.select`, this works with any number of open descriptors."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def until(condition: Callable[[], T], fault: str = "the condition did not become true") -> T:
    """Ask again and again until the answer is true, and return it; fails with `fault` if that takes too long."""
    ends = monotonic() + PATIENCE
    while not (answer := condition()):
        assert monotonic() < ends, f"{fault} in {PATIENCE:.0f} s"
        sleep(0.01)
    return answer
