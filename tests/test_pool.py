"""Which session the pool lends, which it closes, and whom it refuses during the pause after a failure."""

from collections.abc import Callable
from time import monotonic

import pytest

from laudo.server.database import Bounds, Busy, StoreError, Unavailable
from laudo.server.postgres import pool as lending
from laudo.server.postgres.pool import Pool
from laudo.server.postgres.session import Hung, Session


class Idle(Session):
    """A session without a server, which sends nothing."""

    def __init__(self) -> None:
        self.generation = 0
        self.opened_at = monotonic()
        self.broken = self.hung = self.closed = False

    def close(self) -> None:
        self.closed = True


def interrupt(pool: Pool, session: Session, *, hung: bool = False) -> None:
    session.broken, session.hung = True, hung
    pool.give_back(session)


def pool_of(most: int, make: Callable[[], Session] = Idle, *, lifetime_ms: int = 1_800_000) -> Pool:
    return Pool(make, Bounds(pool_size=most, pool_timeout_ms=20, lifetime_ms=lifetime_ms))


def test_the_session_used_last_is_lent_first() -> None:
    pool = pool_of(2)
    one, other = pool.borrow(), pool.borrow()
    pool.give_back(one)
    pool.give_back(other)
    assert pool.borrow() is other
    assert pool.borrow() is one
    with pytest.raises(Busy):
        pool.borrow()


def test_a_lost_session_closes_all_older_sessions() -> None:
    pool = pool_of(3)
    idle, lent, lost = (pool.borrow() for _ in range(3))
    pool.give_back(idle)
    interrupt(pool, lost)
    assert isinstance(lost, Idle)
    assert lost.closed
    assert isinstance(idle, Idle)
    assert idle.closed, "at once, as the server may accept no more sessions"
    pool.give_back(lent)
    assert isinstance(lent, Idle)
    assert lent.closed
    assert pool.borrow() not in {idle, lent, lost}


def test_a_broken_session_is_replaced_by_an_idle_or_a_new_one() -> None:
    pool = pool_of(2)
    lost, noticed_later = pool.borrow(), pool.borrow()
    lost.broken = noticed_later.broken = True
    made = pool.renew(lost)
    assert made not in {lost, noticed_later}
    pool.give_back(made)
    assert pool.renew(noticed_later) is made


def test_a_closed_pool_closes_idle_and_returned_sessions() -> None:
    pool = pool_of(2)
    idle, lent = pool.borrow(), pool.borrow()
    pool.give_back(idle)
    pool.close()
    assert isinstance(idle, Idle)
    assert isinstance(lent, Idle)
    assert (idle.closed, lent.closed) == (True, False)
    pool.give_back(lent)
    assert lent.closed


@pytest.mark.parametrize("hung", [False, True])
def test_a_loss_noticed_late_does_not_close_newer_sessions(*, hung: bool) -> None:
    pool = pool_of(2)
    lost, noticed_later = pool.borrow(), pool.borrow()
    interrupt(pool, lost)
    back = pool.borrow()
    pool.give_back(back)
    interrupt(pool, noticed_later, hung=hung)
    assert pool.borrow() is back


def test_an_expired_idle_session_is_closed_and_not_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = pool_of(1, lifetime_ms=1000)
    old = pool.borrow()
    pool.give_back(old)
    monkeypatch.setattr(lending, "monotonic", lambda: old.opened_at + 1)
    assert pool.borrow() is not old
    assert isinstance(old, Idle)
    assert old.closed


def test_borrowers_do_not_wait_for_a_session_while_a_hung_server_rests() -> None:
    pool = pool_of(2)
    lent, hung = pool.borrow(), pool.borrow()
    interrupt(pool, hung, hung=True)
    for _ in range(3):
        with pytest.raises(Unavailable, match="did not answer a moment ago"):
            pool.borrow()
    pool.give_back(lent)


def test_borrowers_are_refused_while_another_one_probes_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "_PAUSE_SECONDS", 0)
    refusals: list[Unavailable] = []

    def make() -> Session:
        if pool._generation:
            with pytest.raises(Unavailable) as refused:
                pool.borrow()
            refusals.append(refused.value)
        return Idle()

    pool = pool_of(1, make)
    interrupt(pool, pool.borrow(), hung=True)
    pool.borrow()
    assert [(type(each), str(each)[:23]) for each in refusals] == [(Unavailable, "PostgreSQL did not answ")]


@pytest.mark.parametrize("failure", [Hung, StoreError, KeyboardInterrupt])
def test_a_failed_connection_attempt_frees_its_place_in_the_pool(
    monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    monkeypatch.setattr(lending, "_PAUSE_SECONDS", 0)
    fails = True

    def make() -> Session:
        if fails:
            raise failure
        return Idle()

    pool = pool_of(1, make)
    with pytest.raises(failure):
        pool.borrow()
    fails = False
    assert isinstance(pool.borrow(), Idle)


def test_a_session_is_not_reused_if_another_one_was_lost_while_it_was_made() -> None:
    def make() -> Session:
        if lost:
            interrupt(pool, lost.pop())
        return Idle()

    lost: list[Session] = []
    pool = pool_of(2, make)
    lost.append(pool.borrow())
    made = pool.borrow()
    pool.give_back(made)
    assert isinstance(made, Idle)
    assert made.closed
