"""Which session is lent, which is no longer used, and who is refused while a server that failed is left alone."""

from collections.abc import Callable
from time import monotonic

import pytest

from laudo.server.database import Bounds, Busy, Unavailable
from laudo.server.postgres import pool as lending
from laudo.server.postgres.pool import Pool
from laudo.server.postgres.session import Hung, Session


class Idle(Session):
    """A session without a server, over which nothing is sent."""

    def __init__(self) -> None:
        self.generation = 0
        self.opened = monotonic()
        self.spoilt = self.hung = self.closed = False

    def close(self) -> None:
        self.closed = True


def spoil(pool: Pool, session: Session, *, hung: bool = False) -> None:
    session.spoilt, session.hung = True, hung
    pool.give_back(session)


def of(most: int, make: Callable[[], Session] = Idle, *, lifetime_ms: int = 1_800_000) -> Pool:
    return Pool(make, Bounds(pool_size=most, pool_timeout_ms=20, lifetime_ms=lifetime_ms))


def test_the_session_used_last_is_lent_first() -> None:
    pool = of(2)
    one, other = pool.borrow(), pool.borrow()
    pool.give_back(one)
    pool.give_back(other)
    assert pool.borrow() is other
    assert pool.borrow() is one
    with pytest.raises(Busy):
        pool.borrow()


def test_one_that_is_lost_takes_those_made_before_it_along() -> None:
    pool = of(3)
    idle, lent, lost = (pool.borrow() for _ in range(3))
    pool.give_back(idle)
    spoil(pool, lost)
    assert isinstance(lost, Idle)
    assert lost.closed
    assert isinstance(idle, Idle)
    assert idle.closed, "at once: the server may have room for no more"
    pool.give_back(lent)
    assert isinstance(lent, Idle)
    assert lent.closed
    assert pool.borrow() not in {idle, lent, lost}


def test_for_one_that_is_spoilt_another_is_given_an_idle_one_if_there_is() -> None:
    pool = of(2)
    lost, noticed_later = pool.borrow(), pool.borrow()
    lost.spoilt = noticed_later.spoilt = True
    made = pool.renew(lost)
    assert made not in {lost, noticed_later}
    pool.give_back(made)
    assert pool.renew(noticed_later) is made


def test_what_is_closed_has_no_session_left() -> None:
    pool = of(2)
    idle, lent = pool.borrow(), pool.borrow()
    pool.give_back(idle)
    pool.close()
    assert isinstance(idle, Idle)
    assert isinstance(lent, Idle)
    assert (idle.closed, lent.closed) == (True, False)
    pool.give_back(lent)
    assert lent.closed


@pytest.mark.parametrize("hung", [False, True])
def test_one_that_is_noticed_to_be_lost_later_takes_nothing_of_the_server_that_is_back(*, hung: bool) -> None:
    pool = of(2)
    lost, noticed_later = pool.borrow(), pool.borrow()
    spoil(pool, lost)
    back = pool.borrow()
    pool.give_back(back)
    spoil(pool, noticed_later, hung=hung)
    assert pool.borrow() is back


def test_one_that_has_grown_old_while_it_was_idle_is_closed_and_not_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = of(1, lifetime_ms=1000)
    old = pool.borrow()
    pool.give_back(old)
    monkeypatch.setattr(lending, "monotonic", lambda: old.opened + 1)
    assert pool.borrow() is not old
    assert isinstance(old, Idle)
    assert old.closed


def test_while_a_server_rests_nobody_waits_for_a_session_that_another_one_has() -> None:
    pool = of(2)
    lent, hung = pool.borrow(), pool.borrow()
    spoil(pool, hung, hung=True)
    for _ in range(3):
        with pytest.raises(Unavailable, match="did not answer a moment ago"):
            pool.borrow()
    pool.give_back(lent)


def test_while_one_tries_others_are_refused_at_once_and_need_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "_REST_SECONDS", 0)
    refusals: list[Unavailable] = []

    def make() -> Session:
        if pool._generation:
            with pytest.raises(Unavailable) as refused:
                pool.borrow()
            refusals.append(refused.value)
        return Idle()

    pool = of(1, make)
    spoil(pool, pool.borrow(), hung=True)
    pool.borrow()
    assert [(type(each), str(each)[:23]) for each in refusals] == [(Unavailable, "PostgreSQL did not answ")]


def test_who_finds_that_the_server_hangs_leaves_room_for_who_tries_after_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lending, "_REST_SECONDS", 0)
    hangs = True

    def make() -> Session:
        if hangs:
            raise Hung
        return Idle()

    pool = of(1, make)
    with pytest.raises(Hung):
        pool.borrow()
    hangs = False
    assert isinstance(pool.borrow(), Idle)
