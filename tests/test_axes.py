"""Keys of rows as bytes: many keys are encoded as each one is, and the bytes sort in the order of the keys."""

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


@pytest.mark.parametrize("axis", [*axes.OF_RELATORIO, *axes.OF_PESSOA], ids=lambda axis: " ".join(axis.names))
@given(given=st.data())
def test_encoding_keys_together_equals_encoding_each_alone(axis: Axis, given: st.DataObject) -> None:
    keys = given.draw(st.lists(st.tuples(*(VALUES[name] for name in axis.names)), max_size=20))
    written = list(axis.encoded(zip(*keys, strict=True) if keys else [()] * len(axis.names)))
    assert written == [axis.encode(key) for key in keys]
    assert [axis.decode(each) for each in written] == keys
    assert sorted(written) == [axis.encode(key) for key in sorted(keys)]
