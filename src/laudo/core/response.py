"""Rows, profile and errors → JSON bytes, keys in the order of the wire and never one more."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final

import msgspec

from laudo.core import disclosure, errors, values
from laudo.core.errors import ApiError
from laudo.core.query import Query
from laudo.core.resources import PESSOAS, PROFILE, RELATORIOS, Resource

_encode: Final = msgspec.json.Encoder().encode


def page(query: Query, *, page: int, items: bytes, total: int) -> bytes:
    """Write a list's body; `items` are the items' JSON joined by commas, as the store has it."""
    resource = query.resource
    echo = b'"busca":%s,' % _encode(query.echo) if resource.echo else b""
    shown = b'"%d"' if resource.total_is_text else b"%d"
    place = b'"paginacao":{"atual":%d,"linhas":%d,"total":%s}' % (page, query.rows, shown % total)
    return b'{"result":{%s"itens":[%s],%s},"status_code":200}' % (echo, items, place)


def relatorio(report: object) -> str:
    """Write one report, whose attributes are the fields, as an item; its `atualizado_em` is in milliseconds."""
    item = _Relatorio(*_relatorio_fields(report))
    item.atualizado_em = values.render_instant(item.atualizado_em)
    return _encode(item).decode()


def pessoa(*, cpf: str, nome: str, atualizado_em: int) -> str:
    """Write one person as an item; `atualizado_em` is in milliseconds."""
    return _encode(_Pessoa(cpf, nome, values.render_instant(atualizado_em))).decode()


def profile(fields: Mapping[str, str]) -> bytes:
    """Write the body of `/usuario`."""
    return _encode({"result": {name: fields[name] for name, _ in PROFILE}, "status_code": 200})


def error(refusal: ApiError) -> bytes:
    """Write the body of a refusal, in the one shape that all have."""
    body: dict[str, object] = {"error": refusal.kind.error, "message": refusal.message}
    if refusal.kind is errors.INVALID:
        body["validation"] = {"source": "query", "keys": refusal.keys}
    body["status_code"] = refusal.kind.status
    return _encode(body)


def _struct(resource: Resource) -> Any:  # noqa: ANN401 - made of the table, so no type is known before
    return disclosure.nothing(msgspec.defstruct(resource.name, [field.name for field in resource.fields], gc=False))


_Relatorio: Final = _struct(RELATORIOS)
_Pessoa: Final = _struct(PESSOAS)
_relatorio_fields: Final = attrgetter(*(field.name for field in RELATORIOS.fields))
