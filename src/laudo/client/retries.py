"""When a call is tried again, and how long it may take in all; it neither sends nor waits."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from laudo.client.errors import LaudoError, ParameterError, RateLimitError, StatusError, TransportError


@dataclass(frozen=True, slots=True)
class Timing:
    """The clock, the pauses and the chance of a client; tests give their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    asleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class Limits:
    """What a call may cost. Seconds: `deadline` for all of it, `connect` and `read` for one wait of one try.

    `retries` are made where the service may be in trouble; one that says when to come back (429 with Retry-After) is
    asked then, unless there are to be none. Raises ParameterError for what is no such number.
    """

    deadline: float = 60.0
    connect: float = 10.0
    read: float = 30.0
    retries: int = 2

    def __post_init__(self) -> None:
        for name in ("deadline", "connect", "read"):
            check_seconds(name, getattr(self, name))
        check_count("retries", self.retries, least=0)


def check_seconds(name: str, seconds: object) -> None:
    """Raise ParameterError for what is no number above 0: for no bound there is infinity, not None."""
    if not isinstance(seconds, int | float) or not seconds > 0:
        raise ParameterError(f"{name} must be a number of seconds above 0")


def check_count(name: str, count: object, *, least: int) -> None:
    """Raise ParameterError for what is no whole number from `least` on."""
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise ParameterError(f"{name} must be a whole number from {least} on")


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

    __slots__ = ("_budget", "_end", "_limits", "_patience", "_timing", "_tries")

    def __init__(self, limits: Limits, budget: Budget, timing: Timing, *, patience: float = 0.0) -> None:
        """`patience` are the seconds beyond the deadline for which to wait where the service says when to come back."""
        self._limits = limits
        self._budget = budget
        self._timing = timing
        self._patience = patience
        self._end = timing.now() + limits.deadline
        self._tries = 0

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self._end - self._timing.now()

    def timeout(self) -> dict[str, float | None]:
        """Give the timeouts of the next try, in the form of httpx."""
        left = min(max(self.left, _LEAST), _MOST_SECONDS)
        connect, read = min(self._limits.connect, left), min(self._limits.read, left)
        return {"connect": connect, "read": read, "write": read, "pool": left}

    def settle(self) -> None:
        """Note that an answer came."""
        self._budget.earn()

    def pause(self, failure: LaudoError) -> float:
        """Give the seconds to wait before the next try; raises the failure when there is to be none."""
        pause, is_told = self._backoff(failure), _is_told(failure)
        if is_told and pause <= self._patience:
            self._patience -= pause
            self._end += pause
        if pause >= self.left or not self._limits.retries or not (is_told or self._may_retry(failure)):
            raise failure
        return pause

    def _may_retry(self, failure: LaudoError) -> bool:
        if self._tries >= self._limits.retries or not is_passing(failure) or not self._budget.spend():
            return False
        self._tries += 1
        return True

    def _backoff(self, failure: LaudoError) -> float:
        """Double from a quarter of a second, between half and all of it; never less than the service asks for."""
        pause = _FIRST_PAUSE * (1 << self._tries) * (0.5 + self._timing.chance() / 2)
        asked = failure.retry_after if isinstance(failure, StatusError) else None
        return pause if asked is None else asked + pause


def _is_told(failure: LaudoError) -> bool:
    """Tell whether the service has said when to come back, and is in no trouble: to do so is no burden to it."""
    return isinstance(failure, RateLimitError) and bool(failure.retry_after)


def is_passing(failure: LaudoError) -> bool:
    """Tell whether the same call may have an answer a little later; a proxy that refuses it goes on to do so."""
    lost = isinstance(failure, TransportError) and failure.status is None
    return lost or isinstance(failure, RateLimitError) or failure.status in _PASSING


PATIENCE: Final = 900.0
"""Seconds for which a walk waits in all for one page: a limit by the minute, or by the hour's quarter, stops none."""
_MOST_SECONDS: Final = 1e6
"""More than anybody waits, and less than what sockets refuse."""
_MOST: Final = 10.0
_EARNED: Final = 0.1
_FIRST_PAUSE: Final = 0.25
_LEAST: Final = 0.001
_PASSING: Final = (502, 503, 504)
