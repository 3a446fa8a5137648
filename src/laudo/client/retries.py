"""When a call is tried again, and how long it may take in all; it neither sends nor waits."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from laudo.client.errors import LaudoError, RateLimitError, StatusError, TransportError


@dataclass(frozen=True, slots=True)
class Timing:
    """The clock, the pauses and the chance of a client; tests give their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    asleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class Limits:
    """What a call may cost. Seconds: `deadline` for all of it, `connect` and `read` for one wait of one try."""

    deadline: float = 60.0
    connect: float = 10.0
    read: float = 30.0
    retries: int = 2


class Budget:
    """Retries that a client may still make: each costs one, each answer gives back a tenth.

    A service that is down is so asked little more often than by clients that never retry.
    """

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _MOST

    def spend(self) -> bool:
        """Take one; False when there is none."""
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def earn(self) -> None:
        self._left = min(_MOST, self._left + _EARNED)


class Attempts:
    """The tries of one call."""

    __slots__ = ("_budget", "_end", "_limits", "_timing", "_tries")

    def __init__(self, limits: Limits, budget: Budget, timing: Timing) -> None:
        self._limits = limits
        self._budget = budget
        self._timing = timing
        self._end = timing.now() + limits.deadline
        self._tries = 0

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self._end - self._timing.now()

    def timeout(self) -> dict[str, float | None]:
        """Give the timeouts of the next try, in the form of httpx."""
        left = max(self.left, _LEAST)
        connect, read = min(self._limits.connect, left), min(self._limits.read, left)
        return {"connect": connect, "read": read, "write": read, "pool": left}

    def settle(self) -> None:
        """Note that an answer came."""
        self._budget.earn()

    def pause(self, failure: LaudoError) -> float:
        """Give the seconds to wait before the next try; raises the failure when there is to be none."""
        pause = self._backoff(failure)
        final = self._tries >= self._limits.retries or not _is_passing(failure) or pause >= self.left
        if final or not self._budget.spend():
            raise failure
        self._tries += 1
        return pause

    def _backoff(self, failure: LaudoError) -> float:
        """Double from a quarter of a second, between half and all of it; never less than the service asks for."""
        pause = _FIRST_PAUSE * (1 << self._tries) * (0.5 + self._timing.chance() / 2)
        asked = failure.retry_after if isinstance(failure, StatusError) else None
        return pause if asked is None else asked + pause


def _is_passing(failure: LaudoError) -> bool:
    return isinstance(failure, TransportError | RateLimitError) or failure.status in _PASSING


_MOST: Final = 10.0
_EARNED: Final = 0.1
_FIRST_PAUSE: Final = 0.25
_LEAST: Final = 0.001
_PASSING: Final = (502, 503, 504)
