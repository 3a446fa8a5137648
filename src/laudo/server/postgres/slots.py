"""Limits how many threads do something at once, and how many more wait for it, and says who is next."""

import threading
from collections import deque
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

_LONG_SECONDS: Final = 0.5
"""A longer wait means overload: whoever comes then is refused rather than left waiting."""


@dataclass(slots=True, eq=False)
class _Turn:
    since: float
    come: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.come.acquire()

    @property
    def is_long(self) -> bool:
        return monotonic() - self.since > _LONG_SECONDS


class Slots:
    """Hands each free slot to the thread that has waited longest.

    With a semaphore of Python's, a thread that has just given its slot back can take it again before a waiting thread
    has woken up: with more threads than connections, some waited for seconds while others asked hundreds of times.

    While waits are short, any number of threads may wait. Once they are long, only as many as there are slots may wait
    until their time is up. The others are refused at once, until a slot is handed on after a short wait again.
    Otherwise all threads of a process would come to wait for a server that does not answer, and none would be left for
    requests that do not need it.
    """

    def __init__(self, number: int) -> None:
        """Begin with all of them free."""
        self._free = number
        self._patient = number
        self._waits_are_long = False
        self._waiting: deque[_Turn] = deque()
        self._lock = threading.Lock()

    def take(self, timeout: float) -> bool:
        """Wait for a slot, for `timeout` seconds at most; tells whether there is one."""
        with self._lock:
            if self._free:
                self._free -= 1
                self._waits_are_long = False
                return True
            turn, place = _Turn(monotonic()), len(self._waiting)
            if not self._may_wait(place):
                return False
            self._waiting.append(turn)
            deadline = turn.since + timeout
            until = self._until(place, deadline)
        while not turn.come.acquire(timeout=max(0.0, until - monotonic())):
            with self._lock:
                if turn not in self._waiting:
                    return True
                place = self._waiting.index(turn)
                if monotonic() >= deadline or not self._may_wait(place):
                    self._waiting.remove(turn)
                    self._waits_are_long = True
                    return False
                until = self._until(place, deadline)
        return True

    def give_back(self) -> None:
        """Hand a slot on, or free it."""
        with self._lock:
            if self._waiting:
                turn = self._waiting.popleft()
                self._waits_are_long = turn.is_long
                turn.come.release()
            else:
                self._free += 1

    def _may_wait(self, place: int) -> bool:
        """Tell whether a thread may wait at this place of the queue."""
        self._waits_are_long |= bool(self._waiting) and self._waiting[0].is_long
        return place < self._patient or not self._waits_are_long

    def _until(self, place: int, deadline: float) -> float:
        """Give the instant at which a thread at this place has to check whether it may go on waiting."""
        return deadline if place < self._patient else min(deadline, self._waiting[0].since + _LONG_SECONDS)
