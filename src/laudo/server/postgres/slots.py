"""How many may do something at once, in the order in which they came."""

import threading
from collections import deque


class Slots:
    """A semaphore that hands a free slot to whoever has waited longest.

    Python's own lets a thread that has just given its slot back take it again before any that waits has woken up: with
    more threads than connections, some waited for seconds while others asked hundreds of times.
    """

    def __init__(self, number: int) -> None:
        self._free = number
        self._lock = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()

    def take(self, timeout: float) -> bool:
        """Wait for a slot, and tell whether there is one after so many seconds."""
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        if turn.acquire(timeout=timeout):
            return True
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return False
        return True

    def give_back(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1
