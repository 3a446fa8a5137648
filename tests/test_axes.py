"""Keys of rows: as bytes they sort as the keys do, and the bounds of a value enclose all rows that can have it."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laudo.core import axes
from laudo.core.axes import Axis
from laudo.core.values import INSTANTS

VALUES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "recency": st.sampled_from(INSTANTS).map(lambda instant: -instant),
    "numero": st.binary(min_size=16, max_size=16),
    "numero_documento": st.from_regex(r"[0-9]{11}|[0-9A-Z]{12}[0-9]{2}", fullmatch=True),
    "mensagem": st.text(st.characters(exclude_categories=["C"]), max_size=20),
    "nome_busca": st.text("abñ ", max_size=8),
    "cpf": st.from_regex(r"[0-9]{11}", fullmatch=True),
}

TIES: Final[dict[str, tuple[Any, ...]]] = {
    "numero": (bytes(16), bytes(15) + b"\1", b"\xff" * 16),
    "cpf": ("00000000000", "00000000001", "99999999999"),
}
"""The first, the second and the last value of each last column."""


@pytest.mark.parametrize("axis", [*axes.OF_RELATORIO, *axes.OF_PESSOA], ids=lambda axis: " ".join(axis.names))
@given(given=st.data())
def test_encoding_keys_together_equals_encoding_each_alone(axis: Axis, given: st.DataObject) -> None:
    keys = given.draw(st.lists(st.tuples(*(VALUES[name] for name in axis.names)), max_size=20))
    written = list(axis.encoded(zip(*keys, strict=True) if keys else [()] * len(axis.names)))
    assert written == [axis.encode(key) for key in keys]
    assert [axis.decode(each) for each in written] == keys
    assert sorted(written) == [axis.encode(key) for key in sorted(keys)]


@pytest.mark.parametrize("axis", [axis for axis in (*axes.OF_RELATORIO, *axes.OF_PESSOA) if len(axis.columns) > 1])
def test_the_bounds_of_a_value_enclose_all_rows_that_have_it(axis: Axis) -> None:
    first, second, last = ((0, tie) for tie in TIES[axis.names[1]])
    assert axis.floor(0) <= first < axis.past(first) <= second < last < axis.past(last) <= axis.ceiling(0)
