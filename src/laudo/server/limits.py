"""How many requests a token may make: one bucket a token and worker, refilled with time."""

import threading
from time import monotonic
from typing import Final

from laudo.core import errors
from laudo.core.errors import ApiError
from laudo.server.recent import Recent

_REMEMBERED: Final = 10_000
"""Tokens whose buckets are kept; one that was quiet for longest is forgotten first, and starts full again."""


class Limits:
    """Buckets that hold one second's requests: an empty one has room for one more within a second."""

    def __init__(self, per_second: int) -> None:
        """With 0 nothing is limited."""
        self._per_second = per_second
        self._buckets: Recent[int, tuple[float, float]] = Recent(_REMEMBERED)
        self._lock = threading.Lock()

    def allow(self, id_token: int) -> bool:
        """Tell whether a request would be admitted now, without counting one."""
        return not self._per_second or self._left(id_token, monotonic()) >= 1

    def spend(self, id_token: int) -> None:
        """Count one request; raises ApiError (429) when the token's bucket is empty."""
        if not self._per_second:
            return
        with self._lock:
            now = monotonic()
            left = self._left(id_token, now)
            self._buckets.keep(id_token, (left if left < 1 else left - 1, now))
        if left < 1:
            raise ApiError(errors.TOO_MANY)

    def _left(self, id_token: int, now: float) -> float:
        left, since = self._buckets.get(id_token) or (float(self._per_second), now)
        return min(float(self._per_second), left + (now - since) * self._per_second)
