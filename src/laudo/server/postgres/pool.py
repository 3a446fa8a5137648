"""The connections of a process: limited in number, kept when idle, and made by the thread that needs one.

psycopg_pool makes them in threads of its own, which wait longer after each failure: after a server had been away for a
minute, its return was noticed up to 16 s late. It does not recognize a hung server either. Here each request finds out
by itself, at once.
"""

import math
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final

from laudo.server.database import Bounds, Busy, Unavailable
from laudo.server.postgres.session import Hung, Session
from laudo.server.postgres.slots import Slots

_PAUSE_SECONDS: Final = 0.5
_NO_PAUSE: Final = 0.0
_SLOW_SECONDS: Final = 1
"""A failure to connect that takes longer means that one of the URL's hosts is silent, even if another one refuses."""
_BUSY: Final = "every connection to PostgreSQL is in use; try again, or raise pool_size"
_PAUSED: Final = "PostgreSQL did not answer a moment ago; check the server and the network"


class Pool:
    """Lends sessions, the most recently used one first, so that few stay open when there is little to do.

    After a session was lost, older ones are not used again: the server has been restarted, or has ended all of them.
    After a server, or one of the URL's hosts, did not answer in time, requests are refused at once for half a second,
    the pause. Then one thread tries, and the others are still refused until it succeeds, so that not all of them hang.
    """

    def __init__(self, make: Callable[[], Session], bounds: Bounds) -> None:
        """`make` opens a session; it is called when none is idle."""
        self._make = make
        self._bounds = bounds
        self._slots = Slots(bounds.pool_size)
        self._idle: list[Session] = []
        self._lock = threading.Lock()
        self._generation = 0
        self._pause_ends = _NO_PAUSE

    def borrow(self) -> Session:
        """Give a session, to be given back; raises Unavailable, StoreError."""
        if monotonic() < self._pause_ends:
            raise Unavailable(_PAUSED)
        if not self._slots.take(self._bounds.pool_timeout_ms / 1000):
            raise Busy(_BUSY)
        try:
            return self._idle_session() or self._new_session()
        except BaseException:
            self._slots.give_back()
            raise

    def renew(self, session: Session) -> Session:
        """Give another session in place of a broken one, which stays borrowed if there is no other."""
        self._discard(session)
        return self._idle_session() or self._new_session()

    def give_back(self, session: Session) -> None:
        if session.broken:
            self._discard(session)
        elif self._is_reusable(session):
            self._idle.append(session)
        else:
            session.close()
        self._slots.give_back()

    def close(self) -> None:
        """Close idle sessions now, and lent ones when they are given back; a session can still be borrowed."""
        with self._lock:
            self._generation += 1
        self._close_idle()

    def _discard(self, session: Session) -> None:
        """Close a broken session, and with it all of its generation."""
        session.close()
        with self._lock:
            if session.generation != self._generation:
                return
            self._generation += 1
            self._pause_ends = monotonic() + _PAUSE_SECONDS if session.hung else _NO_PAUSE
        self._close_idle()

    def _is_reusable(self, session: Session) -> bool:
        age_ms = (monotonic() - session.opened_at) * 1000
        return session.generation == self._generation and age_ms < self._bounds.lifetime_ms

    def _idle_session(self) -> Session | None:
        while self._idle:
            with suppress(IndexError):
                session = self._idle.pop()
                if self._is_reusable(session):
                    return session
                session.close()
        return None

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _new_session(self) -> Session:
        generation = self._start_attempt()
        pause_ends, began = _NO_PAUSE, monotonic()
        try:
            session = self._make()
        except Unavailable as error:
            if isinstance(error, Hung) or monotonic() - began > _SLOW_SECONDS:
                pause_ends = monotonic() + _PAUSE_SECONDS
            raise
        finally:
            self._pause_ends = pause_ends
        session.generation = generation
        return session

    def _start_attempt(self) -> int:
        """Give the generation of the session to be made; raises Unavailable in a pause, or if another thread tries."""
        with self._lock:
            if monotonic() < self._pause_ends:
                raise Unavailable(_PAUSED)
            if self._pause_ends != _NO_PAUSE:
                self._pause_ends = math.inf
            return self._generation
