"""Points of an order: the nearest ones are found, and only a few are kept, however many were counted."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laudo.core import axes, points
from laudo.core.lookups import DamagedError
from laudo.core.points import Counted, Point, Points

ROWS = 2_000_000
END = Point(None, ROWS, ROWS // 2)


def _point(place: int) -> Point:
    """Return a point of an order in which every second row matches."""
    return Point((f"{place:07}",), place, place // 2)


counted = st.lists(st.integers(1, ROWS - 1), max_size=300, unique=True)


@given(places=counted, known=counted, row=st.integers(0, END.held - 1), other=st.integers(0, ROWS))
def test_the_nearest_points_are_found(places: list[int], known: list[int], row: int, other: int) -> None:
    found = Points(map(_point, sorted(known)), end=END)
    found.add(*(_point(place) for place in places if place not in known))
    everything = [Point(None, 0, 0), *map(_point, sorted({*known, *places})), END]
    low, high = found.around_row(row)
    assert low == max((each for each in everything if each.held <= row), key=lambda each: each.place)
    assert high == min((each for each in everything if each.held > row), key=lambda each: each.place)
    low, high = found.around_key((f"{other:07}",))
    assert low == max((each for each in everything[:-1] if each.place < max(other, 1)), key=lambda each: each.place)
    assert high == min((each for each in everything[1:] if each.place >= other), key=lambda each: each.place)


@pytest.mark.parametrize("row", [-1, END.held])
def test_a_row_that_the_range_does_not_have_is_not_looked_for(row: int) -> None:
    with pytest.raises(DamagedError, match="`laudo verify --repair` repairs it"):
        Points((), end=END).around_row(row)


@pytest.mark.parametrize(("place", "held"), [(100, 501), (1_500, 499), (1_999_999, END.held + 1)])
def test_a_point_that_contradicts_another_one_is_not_added(place: int, held: int) -> None:
    found = Points([_point(1_000)], end=END)
    with pytest.raises(DamagedError, match="`laudo verify --repair` repairs it"):
        found.add(_point(place)._replace(held=held))


@given(places=counted)
def test_points_that_are_kept_are_far_apart(places: list[int]) -> None:
    found = Points((), end=END)
    found.add(*map(_point, places))
    kept = [0, *(each.place for each in found.kept), ROWS]
    assert all(high - low >= points.APART for low, high in pairwise(kept))
    assert all(any(abs(place - each) <= points.APART for each in kept) for place in places)


def test_a_limited_number_of_points_is_kept_of_many_rows() -> None:
    many = 1_000 * points.MOST
    found = Points((), end=Point(None, 100_000 * many, many))
    found.add(*(Point((f"{number:07}",), 100_000 * number, number) for number in range(1, many, 100)))
    kept = found.kept
    assert points.MOST // 2 < len(kept) <= points.MOST
    weight = Counted(many, {(axes.RELATORIO_DOCUMENTO, None): kept}).weight
    assert 200 * len(kept) < weight - Counted(many).weight < 400 * len(kept)


def test_a_point_with_a_longer_key_weighs_more() -> None:
    short, long = (
        Counted(2, {(axes.RELATORIO_MENSAGEM, None): (Point((mensagem,), 1, 1),)}) for mensagem in ("", "á" * 500)
    )
    assert 900 < long.weight - short.weight < 2_100
