"""Limits how many threads do something at once, and how many more wait for it, and chooses the next one."""

import threading
from collections import deque
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

_LONG_SECONDS: Final = 0.5
"""A longer wait means overload: then new threads are refused rather than left waiting."""


@dataclass(slots=True, eq=False)
class _Waiter:
    since: float
    wakeup: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.wakeup.acquire()

    @property
    def has_waited_long(self) -> bool:
        return monotonic() - self.since > _LONG_SECONDS


class Slots:
    """Hands each free slot to the thread that has waited longest.

    With Python's semaphore, a thread that has just given its slot back can take it again before a waiting thread has
    woken up: with more threads than connections, some waited for seconds while others got a slot hundreds of times.

    While waits are short, any number of threads may wait. Once they are long, only as many as there are slots may wait
    until their time is up. The others are refused at once, until a thread gets a slot after a short wait again.
    Otherwise all threads of a process would end up waiting for a server that does not answer, and none would be left
    for requests that do not need it.
    """

    def __init__(self, number: int) -> None:
        self._free = number
        self._number = number
        self._waits_are_long = False
        self._waiting: deque[_Waiter] = deque()
        self._lock = threading.Lock()

    def take(self, timeout: float) -> bool:
        """Wait for a slot, for `timeout` seconds at most; tells whether there is one."""
        with self._lock:
            if self._free:
                self._free -= 1
                self._waits_are_long = False
                return True
            waiter, place = _Waiter(monotonic()), len(self._waiting)
            if not self._may_wait(place):
                return False
            self._waiting.append(waiter)
            deadline = waiter.since + timeout
            next_check = self._next_check(place, deadline)
        while not waiter.wakeup.acquire(timeout=max(0.0, next_check - monotonic())):
            with self._lock:
                if waiter not in self._waiting:
                    return True
                place = self._waiting.index(waiter)
                if monotonic() >= deadline or not self._may_wait(place):
                    self._waiting.remove(waiter)
                    self._waits_are_long = True
                    return False
                next_check = self._next_check(place, deadline)
        return True

    def give_back(self) -> None:
        """Hand a slot on, or free it."""
        with self._lock:
            if self._waiting:
                waiter = self._waiting.popleft()
                self._waits_are_long = waiter.has_waited_long
                waiter.wakeup.release()
            else:
                self._free += 1

    def _may_wait(self, place: int) -> bool:
        """Tell whether a thread may wait at this place of the queue."""
        self._waits_are_long |= bool(self._waiting) and self._waiting[0].has_waited_long
        return place < self._number or not self._waits_are_long

    def _next_check(self, place: int, deadline: float) -> float:
        """Give the instant at which a thread at this place has to check whether it may go on waiting."""
        return deadline if place < self._number else min(deadline, self._waiting[0].since + _LONG_SECONDS)
