from datetime import UTC, datetime

import httpx
import pytest

from client.service import TOKEN, Service, relatorio
from laudo.client import Laudo, to_dicts, to_pandas, to_polars
from laudo.core.resources import RELATORIOS

NAMES = [field.name for field in RELATORIOS.fields]


@pytest.fixture
def client() -> Laudo:
    service = Service([relatorio(2, status="PROCESSANDO", resultado=None), relatorio(1)])
    return Laudo("http://service.test", TOKEN, transport=httpx.MockTransport(service))


def test_to_dicts_keeps_the_field_order_of_the_api(client: Laudo) -> None:
    first, second = to_dicts(client.relatorios())
    assert list(first) == NAMES
    assert (first["resultado"], second["atualizado_em"]) == (None, datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC))


def test_to_pandas_makes_a_column_of_each_field(client: Laudo) -> None:
    pytest.importorskip("pandas")
    frame = to_pandas(client.relatorios())
    assert list(frame.columns) == NAMES
    types = {name: str(frame[name].dtype) for name in ("atualizado_em", "pendente_validacao_manual")}
    assert types == {"atualizado_em": "datetime64[us, UTC]", "pendente_validacao_manual": "bool"}
    assert len(to_pandas([])) == 0
    none = client.relatorios(status="PENDENTE")
    assert list(to_pandas(none).columns) == list(to_pandas(none.all(workers=4)).columns) == NAMES


def test_pandas_column_types_do_not_depend_on_the_items(client: Laudo) -> None:
    pandas = pytest.importorskip("pandas")
    frames = [to_pandas(client.relatorios(status=status)) for status in (None, "PROCESSANDO", "PENDENTE")]
    assert [len(frame) for frame in frames] == [2, 1, 0]
    types = dict(frames[0].dtypes)
    assert [dict(frame.dtypes) for frame in (*frames, pandas.concat(reversed(frames)))] == [types] * 4


def test_a_frame_can_be_made_from_any_iterable_of_items(client: Laudo) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    page = client.relatorios()
    for to_frame in (to_pandas, to_polars):
        whole = to_frame(page)
        assert all(to_frame(itens).equals(whole) for itens in (page.itens, page.all(), iter(page.itens)))
        assert list(to_frame(page.itens[:1]).columns) == NAMES


def test_to_polars_makes_a_column_of_each_field(client: Laudo) -> None:
    polars = pytest.importorskip("polars")
    frame = to_polars(client.relatorios())
    assert frame.columns == NAMES
    types = [frame.schema[name] for name in ("atualizado_em", "pendente_validacao_manual")]
    assert types == [polars.Datetime("us", "UTC"), polars.Boolean]
    assert frame["resultado"].to_list() == [None, "VALID"]
    assert len(to_polars([])) == 0
    none = client.relatorios(status="PENDENTE")
    assert to_polars(none).columns == to_polars(none.all(workers=4)).columns == NAMES


def test_polars_column_types_do_not_depend_on_the_items(client: Laudo) -> None:
    polars = pytest.importorskip("polars")
    frames = [to_polars(client.relatorios(status=status)) for status in (None, "PROCESSANDO", "PENDENTE")]
    assert [len(frame) for frame in frames] == [2, 1, 0]
    types = frames[0].schema
    assert [frame.schema for frame in (*frames, polars.concat(reversed(frames)))] == [types] * 4
