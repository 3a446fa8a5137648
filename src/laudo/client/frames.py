"""Items as dictionaries and as data frames; pandas and polars are loaded only when they are asked for."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from importlib import import_module
from typing import Any

import msgspec

from laudo.client.blocking import Items, Page
from laudo.client.items import Item


def to_dicts(itens: Iterable[Item]) -> list[dict[str, Any]]:
    """Give a dictionary of the fields for each item; `atualizado_em` stays a datetime."""
    return [item.to_dict() for item in itens]


def to_pandas(itens: Iterable[Item]) -> Any:  # noqa: ANN401 - pandas is optional, and its types with it
    """Give a pandas.DataFrame with a column for each field; ModuleNotFoundError without pandas.

    A column has its field's type even if no item has a value, so frames of different days fit together. An empty page,
    and its `all`, still have their columns; any other empty iterable gives a frame without columns.
    """
    pandas = import_module("pandas")
    types = {datetime: "datetime64[us, UTC]", bool: "bool"}
    series = {name: pandas.Series(values, dtype=types.get(kind, "str")) for name, kind, values in _columns(itens)}
    return pandas.DataFrame(series)


def to_polars(itens: Iterable[Item]) -> Any:  # noqa: ANN401 - the same
    """Give a polars.DataFrame in the same way; ModuleNotFoundError without polars."""
    polars = import_module("polars")
    types = {datetime: polars.Datetime("us", "UTC"), bool: polars.Boolean}
    series = [polars.Series(name, values, types.get(kind, polars.String)) for name, kind, values in _columns(itens)]
    return polars.DataFrame(series)


def _columns(itens: Iterable[Item]) -> Iterator[tuple[str, Any, list[Any]]]:
    """Give the name of each field, its type, and the values that the items have."""
    known = list(itens)
    kind = itens.item if isinstance(itens, Page | Items) else type(known[0]) if known else msgspec.Struct
    for field in msgspec.structs.fields(kind):
        yield field.name, field.type, [getattr(item, field.name) for item in known]
