"""Items as dictionaries and as data frames; pandas and polars are loaded when they are asked for."""

from collections.abc import Iterable
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

    A page that has no items, and its `all`, still say which fields they would have; any other iterable without items
    makes no column.
    """
    return import_module("pandas").DataFrame(_columns(itens))


def to_polars(itens: Iterable[Item]) -> Any:  # noqa: ANN401 - the same
    """Give a polars.DataFrame, in the same way; ModuleNotFoundError without polars."""
    return import_module("polars").DataFrame(_columns(itens))


def _columns(itens: Iterable[Item]) -> dict[str, list[Any]]:
    known = list(itens)
    kind = itens.item if isinstance(itens, Page | Items) else type(known[0]) if known else msgspec.Struct
    return {name: [getattr(item, name) for item in known] for name in kind.__struct_fields__}
