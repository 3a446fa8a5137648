"""The connections of a process: limited in number, kept when idle, and made by the thread that needs one.

psycopg_pool makes them in threads of its own, which wait longer after each failure: after a server had been away for a
minute, its return was noticed up to 16 s late. Nor does it recognize a hung server. Here a request finds out by itself,
and at once.
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

_REST_SECONDS: Final = 0.5
_NEVER_RESTED: Final = 0.0
_BUSY: Final = "every connection to PostgreSQL is in use; try again, or raise pool_size"
_RESTING: Final = "PostgreSQL did not answer a moment ago; check the server and the network"


class Pool:
    """Lends sessions, the one used last first, so that few are kept open when there is little to do.

    After a session was lost, those made before are not used again: the server has been restarted, or all were ended.
    After a server did not answer in time, requests are refused at once for half a second. Then one thread tries, and
    the others are still refused until it succeeds, so that not all of them hang.
    """

    def __init__(self, make: Callable[[], Session], bounds: Bounds) -> None:
        """`make` opens a session, when one is needed and none is idle."""
        self._make = make
        self._bounds = bounds
        self._slots = Slots(bounds.pool_size)
        self._idle: list[Session] = []
        self._lock = threading.Lock()
        self._generation = 0
        self._rest_ends = _NEVER_RESTED

    def borrow(self) -> Session:
        """Give a session, to be given back; raises Unavailable, StoreError."""
        if monotonic() < self._rest_ends:
            raise Unavailable(_RESTING)
        if not self._slots.take(self._bounds.pool_timeout_ms / 1000):
            raise Busy(_BUSY)
        try:
            return self._kept() or self._made()
        except BaseException:
            self._slots.give_back()
            raise

    def renew(self, session: Session) -> Session:
        """Give another session in place of a spoilt one, which stays borrowed if there is no other."""
        self._end(session)
        return self._kept() or self._made()

    def give_back(self, session: Session) -> None:
        """Take a session back."""
        if session.spoilt:
            self._end(session)
        elif self._is_good(session):
            self._idle.append(session)
        else:
            session.close()
        self._slots.give_back()

    def close(self) -> None:
        """Close idle sessions now, and lent ones when they are given back; a session can still be borrowed."""
        with self._lock:
            self._generation += 1
        self._drop()

    def _end(self, session: Session) -> None:
        """Close a spoilt session, and with it all of its generation."""
        session.close()
        with self._lock:
            if session.generation != self._generation:
                return
            self._generation += 1
            self._rest_ends = monotonic() + _REST_SECONDS if session.hung else _NEVER_RESTED
        self._drop()

    def _is_good(self, session: Session) -> bool:
        age_ms = (monotonic() - session.opened) * 1000
        return session.generation == self._generation and age_ms < self._bounds.lifetime_ms

    def _kept(self) -> Session | None:
        while self._idle:
            with suppress(IndexError):
                session = self._idle.pop()
                if self._is_good(session):
                    return session
                session.close()
        return None

    def _drop(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _made(self) -> Session:
        generation = self._try()
        rest = _NEVER_RESTED
        try:
            session = self._make()
        except Hung:
            rest = monotonic() + _REST_SECONDS
            raise
        finally:
            self._rest_ends = rest
        session.generation = generation
        return session

    def _try(self) -> int:
        """Give the generation of the session to be made; raises Unavailable while the server rests or another tries."""
        with self._lock:
            if monotonic() < self._rest_ends:
                raise Unavailable(_RESTING)
            if self._rest_ends != _NEVER_RESTED:
                self._rest_ends = math.inf
            return self._generation
