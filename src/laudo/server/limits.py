"""Limits how many requests a token may make, and how much time they may take, by buckets in each worker."""

import threading
from math import ceil
from time import monotonic
from typing import Final

from laudo.core import errors
from laudo.core.errors import ApiError
from laudo.server.recent import Recent

REMEMBERED: Final = 10_000
"""Tokens that a worker remembers; the least recently used one is forgotten first, and starts with a full bucket."""
_MS: Final = 1000


class Buckets:
    """A bucket for each token, which refills with time, up to the amount of one second; it may be overdrawn."""

    def __init__(self, per_second: float) -> None:
        """With 0 nothing is limited."""
        self.per_second = per_second
        self._levels: Recent[int, tuple[float, float]] = Recent(REMEMBERED)

    def level(self, id_token: int) -> float:
        """Give the amount that a bucket holds now."""
        level, since = self._levels.get(id_token) or (self.per_second, monotonic())
        return min(self.per_second, level + (monotonic() - since) * self.per_second)

    def take(self, id_token: int, amount: float) -> None:
        """Take an amount from a bucket, even if it holds less."""
        self._levels.keep(id_token, (self.level(id_token) - amount, monotonic()))

    def wait(self, id_token: int, least: float) -> float:
        """Give the seconds until a bucket holds `least`; 0 if it does, or if nothing is limited."""
        return max(0.0, (least - self.level(id_token)) / self.per_second) if self.per_second else 0.0


class Limits:
    """What each token may ask of a worker, by the number of requests, and by the time that answering them took."""

    def __init__(self, per_second: int, busy_ms: int = 0) -> None:
        """Requests per second, and milliseconds of each second; 0 limits nothing."""
        self._requests = Buckets(per_second)
        self._seconds = Buckets(busy_ms / _MS)
        self._is_limited = bool(per_second or busy_ms)
        self._lock = threading.Lock()

    def allow(self, id_token: int) -> bool:
        """Tell whether a request would be admitted now, without counting one."""
        return not self._is_limited or not self._wait(id_token)

    def spend(self, id_token: int) -> None:
        """Count one request; raises ApiError (429) if the token has to wait, with the time to wait."""
        if not self._is_limited:
            return
        with self._lock:
            if wait := self._wait(id_token):
                raise ApiError(errors.TOO_MANY, retry_after=ceil(wait))
            if self._requests.per_second:
                self._requests.take(id_token, 1)

    def charge(self, id_token: int, seconds: float) -> None:
        """Count the time that it took to answer an admitted request, which is known only afterwards."""
        if self._seconds.per_second:
            with self._lock:
                self._seconds.take(id_token, seconds)

    def _wait(self, id_token: int) -> float:
        return max(self._requests.wait(id_token, 1), self._seconds.wait(id_token, 0))
