"""Refuses a wrong parameter before anything is sent, by the same table as the service; the only writer of queries."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import TypeVar
from uuid import UUID

from laudo.client.errors import ParameterError
from laudo.core.likeness import suggestion
from laudo.core.query import MOST_CHARACTERS
from laudo.core.resources import Filter, Resource
from laudo.core.values import SINCE, UNTIL, fold, unwritable

T = TypeVar("T")

Parameters = tuple[tuple[str, str], ...]


def from_filters(resource: Resource, given: Mapping[str, object]) -> Parameters:
    """Write filters in the order of the table, without those that are None; raises ParameterError."""
    accepted = {filter_.name: filter_ for filter_ in resource.filters}
    for name in given:
        if name not in accepted:
            found = suggestion(name, accepted)
            hint = f"the nearest is {found}" if found else f"the filters are {', '.join(accepted)}"
            raise ParameterError(f"{resource.name} has no such filter; {hint}")
    return tuple(_pairs(resource, accepted, given))


def from_sort(resource: Resource, sort: str | None) -> Parameters:
    """Write `sort`; raises ParameterError unless it is a field of the list, with or without - before it."""
    if sort is None:
        return ()
    names, text = [field.name for field in resource.fields], _text(sort) or ""
    if text.removeprefix("-") not in names:
        message = f"sort must be one of these fields, with - before it for descending order: {', '.join(names)}"
        raise ParameterError(message)
    return (("sort", text),)


def number(name: str, value: object, *, step: int = 1) -> str:
    """Write a number that is `step` or a multiple of it; raises ParameterError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < step or value % step:
        raise ParameterError(f"{name} must be a " + (f"multiple of {step}" if step > 1 else "whole number, 1 or more"))
    return str(value)


def checked(name: str, value: T | None, kind: type[T]) -> T:
    """Give a client's argument, or the default of its class if it is None; raises ParameterError for any other."""
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise ParameterError(f"{name} must be an instance of {kind.__name__}")
    return value


def _pairs(
    resource: Resource, accepted: Mapping[str, Filter], given: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    for name, filter_ in accepted.items():
        value = given.get(name)
        if value is None:
            continue
        text = _text(value)
        if text is None or not _accepts(filter_, text):
            raise ParameterError(f"{name} of {resource.name} must be {_accepted(filter_, value)}")
        yield name, _canonical(filter_, text)


def _text(value: object) -> str | None:
    """Write a Python value as text, None if no filter takes it; a member of an enumeration of texts is its text."""
    if isinstance(value, bool | UUID):
        return str(value).lower()
    if isinstance(value, datetime):
        return _instant(value)
    if isinstance(value, date):
        return value.isoformat()
    return str.__str__(value) if isinstance(value, str) else None


def _instant(value: datetime) -> str | None:
    if value.tzinfo is None:
        return None
    try:
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return None


def _accepted(filter_: Filter, value: object) -> str:
    """Say what a filter takes, or that an instant lacks its zone."""
    lacks_zone = isinstance(value, datetime) and value.tzinfo is None and filter_.kind in {SINCE, UNTIL}
    return "a datetime with a time zone (tzinfo), such as datetime.now(UTC)" if lacks_zone else filter_.kind.english


def _accepts(filter_: Filter, text: str) -> bool:
    if len(text) > MOST_CHARACTERS or unwritable(text):
        return False
    try:
        filter_.parse(text)
    except ValueError:
        return False
    return True


def _canonical(filter_: Filter, text: str) -> str:
    """Spell a value of an enumeration as the documentation does: not every service ignores case and accents."""
    spelled = {fold(choice): choice for choice in filter_.kind.choices}
    return spelled.get(fold(text), text)
