"""Refuses some requests, or answers them late, on purpose, so that clients can rehearse that."""

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Final, NoReturn

from laudo.core import errors
from laudo.core.errors import ApiError

_HUNDRED: Final = 100
_SEED: Final = 0
"""The order is the same in every worker, after every start: with one worker, a test gets the same each time."""


class Rehearsal:
    """Gives each request an outcome: exactly the planned shares of each hundred requests, in a random order."""

    def __init__(self, planned: Sequence[str]) -> None:
        """`planned` is as in the settings: `503=10`, `5s=2`, shares of a hundred requests; empty, it does nothing."""
        troubles = [outcome for share, outcome in map(_parse, planned) for _ in range(share)]
        self._outcomes = [*troubles, *[_no_delay] * (_HUNDRED - len(troubles))] if troubles else []
        self._remaining: list[Callable[[], float]] = []
        self._lock = Lock()
        self._rng = random.Random(_SEED)  # noqa: S311 - chance, not secrets

    def refuse_or_delay(self) -> float:
        """Refuse an admitted request (raises ApiError), delay it, or let it pass; gives the seconds of the delay."""
        return self._next_outcome()() if self._outcomes else 0.0

    def _next_outcome(self) -> Callable[[], float]:
        with self._lock:
            if not self._remaining:
                self._remaining = self._rng.sample(self._outcomes, _HUNDRED)
            return self._remaining.pop()


def _parse(text: str) -> tuple[int, Callable[[], float]]:
    what, _, share = text.partition("=")
    if what.endswith("s"):
        return int(share), partial(_delay, float(what.removesuffix("s")))
    return int(share), partial(_refuse, int(what))


def _refuse(status: int) -> NoReturn:
    raise ApiError(next(kind for kind in errors.TABLE if kind.status == status))


def _delay(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def _no_delay() -> float:
    return 0.0
