"""No `repr` of laudo's values shows personal text; classes that are added later are checked too."""

import dataclasses
import pkgutil
from collections.abc import Callable, Generator, Iterator
from datetime import date, datetime
from importlib import import_module
from ssl import SSLContext
from threading import Lock
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import pytest
from rich.pretty import pretty_repr

import laudo
from laudo.core import disclosure

PLAIN: Final = {
    "cli.deletes.Kind": "name",
    "cli.login.Access": "base_url",
    "client.calls.ListCall": "etag",
    "client.calls.Listed": "etag",
    "client.calls.UsuarioCall": "etag",
    "client.calls._Paginacao": "total",
    "client.items.Relatorio": "numero status",
    "client.items.Usuario": "id_organizacao",
    "client.transports.NamedProxy": "address chosen_by",
    "core.axes.Axis": "table index facet_index gathering",
    "core.axes.Column": "name",
    "core.axes.Tie": "name least most",
    "core.errors.Kind": "error message",
    "core.facets.Group": "value",
    "core.reference.parts.Answer": "status description headers example",
    "core.reference.parts.Field": "name kind description",
    "core.reference.parts.Route": "path summary parameters",
    "core.resources.Field": "name description",
    "core.resources.Filter": "name description english",
    "core.resources.Resource": "name key summary echo",
    "core.sql.dialect.By": "name",
    "core.sql.dialect.Statement": "text",
    "core.sql.writes.Table": "name key types",
    "core.sql.writes.Write": "columns",
    "core.values.Kind": "accepts english example json_type pattern choices format encoding",
    "demo.invent.Outcome": "nome status mensagem",
    "mirror.State": "list",
    "server.citus._Installed": "version plan_mode",
    "server.config.Setting": "name accepts default default_shown about",
    "server.config.Settings": "store key_file host allowed_origins read_store metrics_host rehearse",
    "server.config._Given": "source",
    "server.config.kinds.Kind": "accepts",
    "server.ingest.copying.callers.Kind": "noun fixed known_by changing",
    "server.ingest.fields.Relatorio": "numero",
    "server.ingest.lines.Unread": "reason",
    "server.ingest.records.Rejected": "reason",
    "server.ingest.tabular.Header": "separator",
    "server.ingest.verify.differences.Difference": "what remedy",
    "server.ingest.verify.facets.Values": "status tipo_pessoa nome resultado",
    "server.ingest.verify.orphans._Level": "name table key counted",
    "server.logs.Line": "request_id route method filters",
    "server.logs.Entry": "route filters",
    "server.pages.Answer": "etag",
    "server.repeats.KeptAnswer": "status",
    "server.roles.Place": "database schema",
}
"""The text fields that classes may show: they hold no person's name or number, and no token."""
HARMLESS: Final = (bool, int, float, type(None), date, datetime, Lock, SSLContext, ...)
WITHOUT_VALUES: Final = (Callable, Generator, Literal, type)
"""Types of fields that show no text; generic types in WITHOUT_VALUES show none with any arguments."""


class Checked(NamedTuple):
    """A class with fields; `name` is its qualified name without `laudo.`."""

    name: str
    cls: type
    fields: tuple[str, ...]


def fields(cls: type) -> tuple[str, ...]:
    """Return the names of a class's fields; none if it has no declared fields."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return getattr(cls, "__struct_fields__", ()) or getattr(cls, "_fields", ())


def classes() -> Iterator[Checked]:
    for module in pkgutil.walk_packages(laudo.__path__, "laudo."):
        if not module.name.endswith("__main__"):
            for cls in vars(import_module(module.name)).values():
                if isinstance(cls, type) and cls.__module__ == module.name and fields(cls):
                    yield Checked(f"{module.name.removeprefix('laudo.')}.{cls.__name__}", cls, fields(cls))


CLASSES: Final = list(classes())
BY_NAME: Final = {checked.cls.__name__: checked.cls for checked in CLASSES}
"""Resolves names in annotations that a module imports only for type checking."""


def value(cls: Any) -> object:  # noqa: ANN401 - of any kind
    """Make a value in which each field holds its own name, in angle brackets."""
    texts = {name: f"<{name}>" for name in fields(cls)}
    if issubclass(cls, msgspec.Struct):
        return type(cls)(cls.__name__, (cls,), {"__post_init__": lambda _: None})(**texts)
    if issubclass(cls, tuple):
        return cls(**texts)
    made = object.__new__(cls)
    for name, text in texts.items():
        object.__setattr__(made, name, text)
    return made


def is_harmless(kind: Any) -> bool:  # noqa: ANN401 - types of types have no common name
    """Tell whether a field of this type shows no personal text; laudo's own classes are checked by themselves."""
    origin = get_origin(kind)
    if isinstance(kind, TypeVar):
        return is_harmless(kind.__bound__)
    if origin is None:
        return kind in HARMLESS or kind.__module__.startswith("laudo.")
    return origin in WITHOUT_VALUES or all(map(is_harmless, get_args(kind)))


def texts(cls: type) -> list[str]:
    """Return the names of fields that a value shows and that may hold personal text."""
    kinds, made = get_type_hints(cls, localns=BY_NAME), value(cls)
    shown = repr(made) + pretty_repr(made)
    return [name for name in fields(cls) if f"<{name}>" in shown and not is_harmless(kinds[name])]


def test_only_the_listed_text_fields_appear_in_a_repr() -> None:
    assert {checked.name: " ".join(found) for checked in CLASSES if (found := texts(checked.cls))} == PLAIN


class Structured(msgspec.Struct):
    nome: str
    total: int


class Tupled(NamedTuple):
    nome: list[tuple[int, str]]
    total: int


@dataclasses.dataclass
class Plain:
    nome: object
    total: int | None


@pytest.mark.parametrize("cls", [Structured, Tupled, Plain])
def test_a_repr_that_shows_personal_text_is_detected(cls: type) -> None:
    assert texts(cls) == ["nome"]
    assert texts(disclosure.only("total")(cls)) == []
    assert (repr(value(cls)), pretty_repr(value(cls))) == (f"{cls.__name__}(total='<total>')",) * 2
