"""Waits for coroutines, and for data on a file descriptor."""

import asyncio
import select
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

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
