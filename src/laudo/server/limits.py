"""How many requests a token may make, and how long they may take: buckets of each worker, refilled with time."""

import threading
from math import ceil
from time import monotonic
from typing import Final

from laudo.core import errors
from laudo.core.errors import ApiError
from laudo.server.recent import Recent

_REMEMBERED: Final = 10_000
"""Tokens whose buckets are kept; one that was quiet for longest is forgotten first, and starts full again."""
_MS: Final = 1000


class Buckets:
    """One for each token, which holds what a second brings; one from which more was taken waits for that, too."""

    def __init__(self, per_second: float) -> None:
        """With 0 nothing is limited."""
        self.per_second = per_second
        self._held: Recent[int, tuple[float, float]] = Recent(_REMEMBERED)

    def left(self, id_token: int) -> float:
        """Tell what a bucket holds now."""
        held, since = self._held.get(id_token) or (self.per_second, monotonic())
        return min(self.per_second, held + (monotonic() - since) * self.per_second)

    def take(self, id_token: int, amount: float) -> None:
        """Take from a bucket what may be more than it holds."""
        self._held.keep(id_token, (self.left(id_token) - amount, monotonic()))

    def wait(self, id_token: int, least: float) -> float:
        """Tell in how many seconds a bucket will hold so much; 0 if it does, or if nothing is limited."""
        return max(0.0, (least - self.left(id_token)) / self.per_second) if self.per_second else 0.0


class Limits:
    """What each token may ask of a worker: requests by their number, and by the time that answering them took."""

    def __init__(self, per_second: int, busy_ms: int = 0) -> None:
        """Of either, 0 limits nothing; `busy_ms` is of each second."""
        self._requests = Buckets(per_second)
        self._seconds = Buckets(busy_ms / _MS)
        self._are_any = bool(per_second or busy_ms)
        self._lock = threading.Lock()

    def allow(self, id_token: int) -> bool:
        """Tell whether a request would be admitted now, without counting one."""
        return not self._are_any or not self._wait(id_token)

    def spend(self, id_token: int) -> None:
        """Count one request; raises ApiError (429), which says when to come back, where the token has to wait."""
        if not self._are_any:
            return
        with self._lock:
            if wait := self._wait(id_token):
                raise ApiError(errors.TOO_MANY, retry_after=ceil(wait))
            if self._requests.per_second:
                self._requests.take(id_token, 1)

    def charge(self, id_token: int, seconds: float) -> None:
        """Count how long it took to answer a request that was admitted: it is known only then."""
        if self._seconds.per_second:
            with self._lock:
                self._seconds.take(id_token, seconds)

    def _wait(self, id_token: int) -> float:
        return max(self._requests.wait(id_token, 1), self._seconds.wait(id_token, 0))
