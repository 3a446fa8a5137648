"""How many threads may do something at once, how many more may wait for it, and who is next."""

import threading
from collections import deque
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

_LONG_SECONDS: Final = 0.5
"""The wait after which there is more to do than can be done: who comes then is refused rather than left waiting."""


@dataclass(slots=True, eq=False)
class _Turn:
    since: float = field(default_factory=monotonic)
    come: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.come.acquire()

    @property
    def is_long(self) -> bool:
        return monotonic() - self.since > _LONG_SECONDS


class Slots:
    """Hands each free slot to whoever has waited longest.

    A semaphore of Python's lets a thread that has just given its slot back take it again before any that waits has
    woken up: with more threads than connections, some waited for seconds while others asked hundreds of times.

    As many threads as there are slots may wait until their time is up, and any number while waits are short. Once they
    are long, the others are refused at once, until a slot is handed on after a short wait again. Otherwise every thread
    of a process came to wait for a server that does not answer, and nobody would be left for requests without need of
    it.
    """

    def __init__(self, number: int) -> None:
        """Begin with all of them free."""
        self._free = number
        self._patient = number
        self._waits_are_long = False
        self._waiting: deque[_Turn] = deque()
        self._lock = threading.Lock()

    def take(self, timeout: float) -> bool:
        """Wait for a slot, for so many seconds at most; tells whether there is one."""
        with self._lock:
            if self._free:
                self._free -= 1
                self._waits_are_long = False
                return True
            turn, place = _Turn(), len(self._waiting)
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
        """Tell whether somebody may wait at this place of the queue."""
        self._waits_are_long |= bool(self._waiting) and self._waiting[0].is_long
        return place < self._patient or not self._waits_are_long

    def _until(self, place: int, deadline: float) -> float:
        """Give the instant at which somebody at this place has to look whether they may go on waiting."""
        return deadline if place < self._patient else min(deadline, self._waiting[0].since + _LONG_SECONDS)
