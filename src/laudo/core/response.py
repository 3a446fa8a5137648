"""Rows, profile and errors → JSON bytes, keys in the order of the wire and never one more."""

from collections.abc import Mapping
from typing import Final

import msgspec

from laudo.core import values
from laudo.core.errors import ApiError
from laudo.core.query import Query
from laudo.core.resources import PESSOAS, PROFILE, RELATORIOS, Resource
from laudo.core.values import Stored

_encode: Final = msgspec.json.Encoder().encode


def page(query: Query, *, items: str | None, total: int) -> bytes:
    """Write a list's body. `items` are the items' JSON joined by commas, None when there are none."""
    resource = query.resource
    shown = f'"{total}"' if resource.total_is_text else str(total)
    echo = f'"busca":{text(query.echo)},' if resource.echo else ""
    return (
        f'{{"result":{{{echo}"itens":[{items or ""}],'
        f'"paginacao":{{"atual":{query.page},"linhas":{query.rows},"total":{shown}}}}},"status_code":200}}'
    ).encode()


def relatorio(fields: Mapping[str, Stored]) -> str:
    """Write one report as an item of `/relatorios`; `atualizado_em` is given in milliseconds."""
    return _item(RELATORIOS, fields)


def pessoa(fields: Mapping[str, Stored]) -> str:
    """Write one person as an item of `/pessoas`; `atualizado_em` is given in milliseconds."""
    return _item(PESSOAS, fields)


def profile(fields: Mapping[str, str]) -> bytes:
    """Write the body of `/usuario`."""
    return _encode({"result": {name: fields[name] for name, _ in PROFILE}, "status_code": 200})


def error(refusal: ApiError) -> bytes:
    """Write the body of a refusal, one shape everywhere."""
    body: dict[str, object] = {"error": refusal.kind.error, "message": refusal.message}
    if refusal.kind.status == 400:  # noqa: PLR2004 - only a 400 has parameters at fault
        body["validation"] = {"source": "query", "keys": refusal.keys}
    body["status_code"] = refusal.kind.status
    return _encode(body)


def text(value: str) -> str:
    """Write a text as JSON, UTF-8 unescaped."""
    return _encode(value).decode()


def _item(resource: Resource, fields: Mapping[str, Stored]) -> str:
    shown = {field.name: fields[field.name] for field in resource.fields}
    shown["atualizado_em"] = values.render_instant(int(fields["atualizado_em"] or 0))
    return _encode(shown).decode()
