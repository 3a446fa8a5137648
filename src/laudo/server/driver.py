"""Drives plans: runs the look-ups that they ask for, and those asked for together in one round trip."""

from collections.abc import Iterator, Mapping

from laudo.core import plan, sql
from laudo.core.lookups import Asked, LookUp, Rows, Together
from laudo.core.plan import Page
from laudo.core.resources import Resource
from laudo.core.sql import Owner, Statement
from laudo.server.database import Connection, Row


def step(steps: plan.Steps, rows: Rows | None = None) -> Asked | Page:
    """Begin a plan, or send it the rows that it asked for; gives what it asks for next, or the page."""
    try:
        return next(steps) if rows is None else steps.send(rows)
    except StopIteration as done:
        page: Page = done.value
        return page


def drive(steps: plan.Steps, connection: Connection, owner: Owner) -> Page:
    """Run the look-ups of a plan until it has the page."""
    return _drive_on(steps, step(steps), connection, owner)


def drive_if(expected: int, steps: plan.Steps, connection: Connection, resource: Resource, owner: Owner) -> Page | None:
    """Do the same with a plan made for the version `expected` of a list; None if the snapshot sees another version.

    The version is read together with the plan's first look-ups.
    """
    next_step = step(steps)
    first = Together(()) if isinstance(next_step, Page) else next_step
    rows, [seen] = _ask(connection, owner, first, sql.version(resource, owner))
    if seen != [(expected,)]:
        return None
    return _drive_on(steps, next_step if isinstance(next_step, Page) else step(steps, rows), connection, owner)


def _drive_on(steps: plan.Steps, next_step: Asked | Page, connection: Connection, owner: Owner) -> Page:
    while not isinstance(next_step, Page):
        rows, _ = _ask(connection, owner, next_step)
        next_step = step(steps, rows)
    return next_step


def _ask(connection: Connection, owner: Owner, asked: Asked, *extra: Statement) -> tuple[Rows, list[list[Row]]]:
    """Give the rows that a plan asks for, and those of the statements `extra`, in one round trip.

    A look-up that several parts of the plan ask for is run once.
    """
    lookups = list(dict.fromkeys(_lookups(asked)))
    statements = (sql.statement(lookup, owner, connection.dialect) for lookup in lookups)
    found = connection.fetch_each([*extra, *statements])
    rows = dict(zip(lookups, found[len(extra) :], strict=True))
    return _shaped(asked, rows), found[: len(extra)]


def _lookups(asked: Asked) -> Iterator[LookUp]:
    if isinstance(asked, Together):
        for each in asked.asked:
            yield from _lookups(each)
    else:
        yield asked


def _shaped(asked: Asked, rows: Mapping[LookUp, Rows]) -> Rows:
    return [tuple(_shaped(each, rows)) for each in asked.asked] if isinstance(asked, Together) else rows[asked]
