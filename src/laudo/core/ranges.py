"""A range read in the order of its own axis: a period, CPFs or names that begin alike, one document's reports."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from laudo.core import axes, reading, tally
from laudo.core.axes import Bounds, Key
from laudo.core.cursor import After
from laudo.core.facets import Group
from laudo.core.lookups import Asking
from laudo.core.query import Query
from laudo.core.reading import Stretch, Taken
from laudo.core.resources import Order
from laudo.core.tally import Span
from laudo.core.target import Target
from laudo.core.values import prefix_end

_DOCUMENTO: Final = axes.RELATORIO_DOCUMENTO


def asked(query: Query) -> list[Bounds]:
    """Give the ranges that a query asks for: first its period, then CPFs that begin alike."""
    bounds = []
    if query.period:
        axis, (lower, upper) = query.resource.newest_axis, query.period.recency
        floors = (None if end is None else axis.floor(end) for end in (lower, upper))
        bounds.append(Bounds(axis, *floors))
    if query.prefix:
        bounds.append(Bounds(axes.PESSOA_CPF, (query.prefix,), (prefix_end(query.prefix),)))
    return bounds


def of_document(document: object) -> Bounds:
    """Give the range of one document's reports."""
    return Bounds(_DOCUMENTO, _DOCUMENTO.floor(document), _DOCUMENTO.ceiling(document))


def of_names(word: str) -> Bounds:
    """Give the range of the names that begin with a word."""
    axis = axes.PESSOA_NOME
    return Bounds(axis, axis.floor(word), axis.floor(prefix_end(word)))


def lies_in(bounds: Bounds, order: Order) -> bool:
    """Tell whether a range's rows lie in an order: that of its axis or, for one document's reports, that of ties."""
    axis = order.field.axis
    if bounds.axis is not _DOCUMENTO:
        return axis is bounds.axis
    return axis in {None, _DOCUMENTO} or (axis is axes.RELATORIO_NUMERO and not order.falling)


def read(taken: Taken, target: Target, bounds: Bounds, span: Span | None) -> Asking[int]:
    """Take a page in an order in which a range's rows lie (`lies_in`), and give the total.

    `span` says where they are, if that is known. In a sort by a field of few values, the rows with each value are read
    in turn.
    """
    group, skip = target.group, target.skip
    if target.query.order.field.axis is None:
        total, parts = yield from _parts(target, bounds)
    else:
        span = span or (yield from tally.span(bounds, group))
        total, parts = span.total, [(group, span)]
    if skip < total:
        taken.among = taken.among * total // group.total
        yield from reading.read(taken, _stretches(target, bounds, parts), skip)
    return total


def _parts(target: Target, bounds: Bounds) -> Asking[tuple[int, list[tuple[Group, Span]]]]:
    """Count a range's rows, and give each group with its span, from the item's group on."""
    facets = target.facets
    before, held = yield from tally.span_by_facet(bounds, facets.totals(target.group))
    parts = [(each, Span(facets.sum(before, each), facets.sum(held, each))) for each in target.groups]
    return held.total(), parts


def _stretches(target: Target, bounds: Bounds, parts: list[tuple[Group, Span]]) -> Iterator[Stretch]:
    axis, lower, upper = bounds
    falling = target.query.order.falling and axis is not _DOCUMENTO  # All reports of one document have the same value.
    for group, span in parts:
        item = target.item_in(group)
        yield Stretch(
            axis,
            falling=falling,
            group=replace(group, total=span.total),
            first=span.first,
            lower=lower,
            upper=upper,
            after=_key(bounds, item) if item else None,
        )


def _key(bounds: Bounds, after: After) -> Key:
    """Give the key of an item on the range's axis; all of one document's reports have the document as their value."""
    value = bounds.lower[0] if bounds.lower and bounds.axis is _DOCUMENTO else after.value
    return bounds.axis.key(value, after.key)
