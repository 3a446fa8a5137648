"""A least-recently-used cache of a limited size, which the threads of a worker share."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _one(_value: Any) -> int:  # noqa: ANN401 - values of any kind
    return 1


class Recent(Generic[K, V]):
    """Values by key; the least recently used make room for new ones; each call is atomic for other threads."""

    def __init__(self, room: int, size: Callable[[V], int] = _one) -> None:
        """Keep values whose sizes add up to at most `room`; without `size`, each counts as one."""
        self._capacity = self._free = room
        self._size = size
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """Give a value, which counts as a use of it; None if it is not kept."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def keep(self, key: K, value: V) -> None:
        """Keep a value in place of the key's old one; a value that is larger than all the room is not kept."""
        size = self._size(value)
        with self._lock:
            if key in self._values:
                self._drop(key)
            if size > self._capacity:
                return
            self._values[key] = value
            self._free -= size
            while self._free < 0:
                self._drop(next(iter(self._values)))

    def drop(self, key: K) -> None:
        with self._lock:
            if key in self._values:
                self._drop(key)

    def _drop(self, key: K) -> None:
        self._free += self._size(self._values.pop(key))
