"""When a call is tried again, and how long it may take in all; it neither sends nor sleeps."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from laudo.client.errors import LaudoError, ParameterError, RateLimitError, StatusError, TransportError


@dataclass(frozen=True, slots=True)
class Timing:
    """A client's clock, pauses and randomness; tests replace them."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    asleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a call. In seconds: `deadline` for all of it, `connect` and `read` for one wait of one try.

    `retries` counts tries after failures of a service in trouble. A service that says when to come back (429 with
    Retry-After) is asked again then, unless `retries` is 0. Raises ParameterError for values that are no such numbers.
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
    """Raise ParameterError unless this is a number above 0; infinity, not None, means no limit."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise ParameterError(f"{name} must be a number of seconds above 0")


def check_count(name: str, count: object, *, least: int) -> None:
    """Raise ParameterError unless this is a whole number of at least `least`."""
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}")


class Budget:
    """The retries that a client may still make: each costs one, and each answer gives back a tenth.

    So a service that is down gets few more requests than from clients that never retry.
    """

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _FULL_BUDGET

    def spend(self) -> bool:
        """Spend one retry; False if none is left."""
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def earn(self) -> None:
        self._left = min(_FULL_BUDGET, self._left + _EARNED_PER_ANSWER)


class Attempts:
    """The tries of one call."""

    __slots__ = ("_budget", "_end", "_limits", "_patience", "_retries", "_timing")

    def __init__(self, limits: Limits, budget: Budget, timing: Timing, *, patience: float = 0.0) -> None:
        """`patience` is how many seconds beyond the deadline to wait if the service says when to come back."""
        self._limits = limits
        self._budget = budget
        self._timing = timing
        self._patience = patience
        self._end = timing.now() + limits.deadline
        self._retries = 0

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self._end - self._timing.now()

    def timeout(self) -> dict[str, float | None]:
        """Give the timeouts of the next try, in the form of httpx."""
        left = min(max(self.left, _LEAST_SECONDS), _MOST_SECONDS)
        connect, read = min(self._limits.connect, left), min(self._limits.read, left)
        return {"connect": connect, "read": read, "write": read, "pool": left}

    def note_answer(self) -> None:
        self._budget.earn()

    def pause(self, failure: LaudoError) -> float:
        """Give the seconds to wait before the next try; raises the failure if there is to be none."""
        pause, says_when = self._backoff(failure), _says_when(failure)
        if says_when and pause <= self._patience:
            self._patience -= pause
            self._end += pause
        if pause >= self.left or not self._limits.retries or not (says_when or self._may_retry(failure)):
            raise failure
        return pause

    def _may_retry(self, failure: LaudoError) -> bool:
        if self._retries >= self._limits.retries or not is_transient(failure) or not self._budget.spend():
            return False
        self._retries += 1
        return True

    def _backoff(self, failure: LaudoError) -> float:
        """Give a quarter of a second, doubled for each retry, times a half to one, plus what the service asks for."""
        pause = _FIRST_PAUSE * (1 << self._retries) * (0.5 + self._timing.chance() / 2)
        retry_after = failure.retry_after if isinstance(failure, StatusError) else None
        return pause if retry_after is None else retry_after + pause


def _says_when(failure: LaudoError) -> bool:
    """Tell whether a service that is not in trouble has said when to come back: asking again then is no burden."""
    return isinstance(failure, RateLimitError) and bool(failure.retry_after)


def is_transient(failure: LaudoError) -> bool:
    """Tell whether the same call may have an answer a little later; a proxy's refusal counts by its status, if any."""
    lost = isinstance(failure, TransportError) and failure.status is None
    return lost or isinstance(failure, RateLimitError) or failure.status in _TRANSIENT


PATIENCE: Final = 900.0
"""How many seconds in all a walk waits for one page: enough for rate limits per minute or per quarter of an hour."""
_MOST_SECONDS: Final = 1e6
"""More than anybody waits, but not more than sockets accept."""
_FULL_BUDGET: Final = 10.0
_EARNED_PER_ANSWER: Final = 0.1
_FIRST_PAUSE: Final = 0.25
_LEAST_SECONDS: Final = 0.001
_TRANSIENT: Final = (502, 503, 504)
