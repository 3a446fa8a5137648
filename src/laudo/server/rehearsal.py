"""What some requests meet by intention, so that clients can rehearse it: a refusal, or an answer that comes late."""

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from laudo.core import errors
from laudo.core.errors import ApiError

_PERCENT: Final = 100
_SEED: Final = 0
"""Each worker draws alike, and alike after each start: with one worker, a test meets the same each time."""


class Rehearsal:
    """Draws for each request whether it meets something, and what."""

    def __init__(self, planned: Sequence[str]) -> None:
        """`planned` is as in the settings: `503=10`, `5s=2`, shares of a hundred requests; nothing when it is empty."""
        self._planned = [_read(each) for each in planned]
        self._rng = random.Random(_SEED)  # noqa: S311 - chance, not secrets

    def meet(self) -> None:
        """Let a request that was admitted meet what is drawn for it; raises ApiError."""
        if not self._planned:
            return
        drawn = self._rng.random() * _PERCENT
        for share, happen in self._planned:
            if drawn < share:
                happen()
                return
            drawn -= share


def _read(text: str) -> tuple[int, Callable[[], None]]:
    what, _, share = text.partition("=")
    if what.endswith("s"):
        return int(share), partial(time.sleep, float(what.removesuffix("s")))
    return int(share), partial(_refuse, int(what))


def _refuse(status: int) -> None:
    raise ApiError(next(kind for kind in errors.TABLE if kind.status == status))
