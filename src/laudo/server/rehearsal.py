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
"""Every worker deals in the same order, after every start: with one worker, a test meets the same each time."""


class Rehearsal:
    """Deals each request what it meets: exactly the planned shares of each hundred requests, in a random order."""

    def __init__(self, planned: Sequence[str]) -> None:
        """`planned` is as in the settings: `503=10`, `5s=2`, shares of a hundred requests; empty, it deals nothing."""
        some = [happen for share, happen in map(_read, planned) for _ in range(share)]
        self._hundred = [*some, *[_in_time] * (_HUNDRED - len(some))] if some else []
        self._left: list[Callable[[], float]] = []
        self._dealing = Lock()
        self._rng = random.Random(_SEED)  # noqa: S311 - chance, not secrets

    def meet(self) -> float:
        """Refuse an admitted request (raises ApiError) or delay it, as dealt; gives the seconds of the delay."""
        return self._deal()() if self._hundred else 0.0

    def _deal(self) -> Callable[[], float]:
        with self._dealing:
            if not self._left:
                self._left = self._rng.sample(self._hundred, _HUNDRED)
            return self._left.pop()


def _read(text: str) -> tuple[int, Callable[[], float]]:
    what, _, share = text.partition("=")
    if what.endswith("s"):
        return int(share), partial(_late, float(what.removesuffix("s")))
    return int(share), partial(_refuse, int(what))


def _refuse(status: int) -> NoReturn:
    raise ApiError(next(kind for kind in errors.TABLE if kind.status == status))


def _late(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def _in_time() -> float:
    return 0.0
