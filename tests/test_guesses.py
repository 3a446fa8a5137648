"""Guessing the place of a period's row in another order, and how many rows are counted for it; without a store."""

from bisect import bisect_left
from random import Random
from typing import Final, TypeVar

import pytest

from laudo.core import axes, guesses, query
from laudo.core.axes import Axis, Bounds, Key
from laudo.core.facets import Group, Numbers
from laudo.core.lookups import Asking, Children, Count
from laudo.core.part import Across, Part
from laudo.core.points import Point, Points
from laudo.core.resources import RELATORIOS, Order
from laudo.core.walking import Matching

T = TypeVar("T")

ROWS: Final = 1_000_000
OF_PERIOD: Final = 2_500
EACH: Final = ROWS // OF_PERIOD
"""How many rows of the order there are for each row of the period."""
ORDER: Final = Order(RELATORIOS.field("numero"), descending=False)

PERIOD: Final = Bounds(axes.RELATORIO_RECENCY, None, (0, b""))
FETCHED: Final = Across(PERIOD, (1,), covers=False)


class Layout(list[int]):
    """The places of a period's rows in an order; `counted` is the number of rows read to count those between places."""

    counted = 0

    def between(self, low: Point, high: Point) -> Asking[int]:
        self.counted += high.place - low.place
        return _at_once(bisect_left(self, high.place) - bisect_left(self, low.place))


def _at_once(value: T) -> Asking[T]:
    yield from ()
    return value


def _key(_axis: Axis, _group: Group, place: int) -> Asking[Key]:
    return _at_once((place.to_bytes(16, "big"),))


def _narrowed(layout: Layout, row: int, *, upper: bool) -> tuple[Point, Point]:
    axis, group = axes.RELATORIO_NUMERO, Group(None, None, ROWS)
    matching = Matching(query.parse(RELATORIOS, "", max_rows=25), None, ORDER, len(layout), ROWS)
    shown = Across(PERIOD, None, covers=True)
    part = Part(axis, group, matching, Points((), end=Point(None, ROWS, len(layout))), None, shown)
    assert not list(guesses._narrow(part, row, upper=upper))
    return part.points.around_row(row)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("row", [0, 24, 49, OF_PERIOD // 2, OF_PERIOD - 25, OF_PERIOD - 1])
def test_evenly_spread_rows_are_counted_about_once_from_the_nearer_end(
    monkeypatch: pytest.MonkeyPatch, row: int, *, upper: bool
) -> None:
    """Otherwise the first page of a short period would sometimes count half of all reports."""
    monkeypatch.setattr(guesses, "locate", _key)
    monkeypatch.setattr(guesses, "_between", lambda *_: _at_once([]))
    distance = min(row, OF_PERIOD - row) * EACH
    for seed in range(300):
        layout = Layout(sorted(Random(seed).sample(range(ROWS), OF_PERIOD)))
        with monkeypatch.context() as patched:
            patched.setattr(Part, "count", lambda _part, low, high, layout=layout: layout.between(low, high))
            low, high = _narrowed(layout, row, upper=upper)
        assert (bisect_left(layout, low.place), low.held <= row < high.held) == (low.held, True)
        near = (high.held - row if upper else row - low.held) * EACH
        assert near <= max(2 * guesses.NEAR, 2 * guesses.FEW_OF_RANGE * EACH)
        assert layout.counted <= distance + 120 * EACH + 4 * guesses.NEAR, seed


@pytest.mark.parametrize(
    ("below", "above", "numbers", "rises"),
    [
        (("Válido.", 100), ("Válido.", 300), (1,), True),
        (("Pendente.", 100), ("Válido.", 300), (1,), False),
        (("Válido.", 300), (None, 100), (1,), True),
        (("Válido.", 900), ("Verificado.", 100), (1,), False),
        (("Pendente.", 100), (None, 300), (1,), True),
        (("Pendente.", 100), ("Válido.", 300), None, True),
    ],
)
def test_rows_are_counted_from_a_near_point_preferably_of_the_same_value(
    below: tuple[str | None, int], above: tuple[str | None, int], numbers: Numbers, *, rises: bool
) -> None:
    """Other facets may have very many rows between two values; counting them made a page three times as slow."""
    axis, group = axes.RELATORIO_MENSAGEM, Group(None, numbers, ROWS)
    matching = Matching(query.parse(RELATORIOS, "", max_rows=25), numbers, ORDER, OF_PERIOD, ROWS)
    part = Part(axis, group, matching, Points((), end=Point(None, ROWS, OF_PERIOD)), None, FETCHED)
    place = 5_000
    low, high = (
        Point(None if value is None else (value, bytes(16)), place + apart, 0)
        for value, apart in ((below[0], -below[1]), above)
    )
    assert guesses._counts_up(part, Point(("Válido.", bytes(16)), place, 0), low, high) is rises


@pytest.mark.parametrize(("of_group", "is_long"), [(ROWS, False), (ROWS // 100, True)])
def test_a_distance_includes_the_rows_of_other_groups(of_group: int, *, is_long: bool) -> None:
    """A long distance is split where coarse buckets begin, so that those without rows of the group are not counted."""
    axis, numbers = axes.RELATORIO_MENSAGEM, (1,)
    matching = Matching(query.parse(RELATORIOS, "", max_rows=25), numbers, ORDER, OF_PERIOD, ROWS)
    points = Points((), end=Point(None, of_group, OF_PERIOD))
    part = Part(axis, Group(None, numbers, of_group), matching, points, None, FETCHED)
    asked = next(guesses._between(part, Point(("A", bytes(16)), 0, 0), Point(("B", bytes(16)), 2_000, 0)), None)
    assert asked == (Children(axis, 0, numbers) if is_long else None)


@pytest.mark.parametrize(("axis", "counts"), [(axes.RELATORIO_DOCUMENTO, True), (axes.RELATORIO_MENSAGEM, False)])
def test_points_with_the_same_place_may_have_rows_in_between(axis: Axis, *, counts: bool) -> None:
    """A guess counts to the beginning of a value, but its place may be that of a later row with this value."""
    matching = Matching(query.parse(RELATORIOS, "", max_rows=25), None, ORDER, OF_PERIOD, ROWS)
    points = Points((), end=Point(None, ROWS, OF_PERIOD))
    part = Part(axis, Group(None, None, ROWS), matching, points, None, FETCHED)
    low, high = axis.floor("A"), axis.floor("B")
    asked = next(part.count(Point(low, 5, 0), Point(high, 5, 0)), None)
    assert asked == (Count(axis, low, high, None, across=PERIOD) if counts else None)
