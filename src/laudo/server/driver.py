"""Drives plans: asks the store what each wants to know, all that it asks at once in one round trip."""

from collections.abc import Iterator, Mapping

from laudo.core import plan, sql
from laudo.core.lookups import Asked, LookUp, Rows, Together
from laudo.core.plan import Page
from laudo.core.resources import Resource
from laudo.core.sql import Owner, Statement
from laudo.server.database import Connection, Row


def step(steps: plan.Steps, rows: Rows | None = None) -> Asked | Page:
    """Begin a plan, or send it what it has asked for; gives what it asks next, or the page."""
    try:
        return next(steps) if rows is None else steps.send(rows)
    except StopIteration as done:
        page: Page = done.value
        return page


def drive(steps: plan.Steps, connection: Connection, owner: Owner) -> Page:
    """Ask the store what a plan wants to know, until it has the page."""
    return _drive_on(steps, step(steps), connection, owner)


def drive_if(expected: int, steps: plan.Steps, connection: Connection, resource: Resource, owner: Owner) -> Page | None:
    """Do the same with a plan made for one version of a list; None when the snapshot sees another one.

    Which one it sees is asked together with what the plan asks first.
    """
    reached = step(steps)
    first = Together(()) if isinstance(reached, Page) else reached
    rows, [seen] = _ask(connection, owner, first, sql.version(resource, owner))
    if seen != [(expected,)]:
        return None
    return _drive_on(steps, reached if isinstance(reached, Page) else step(steps, rows), connection, owner)


def _drive_on(steps: plan.Steps, reached: Asked | Page, connection: Connection, owner: Owner) -> Page:
    while not isinstance(reached, Page):
        rows, _ = _ask(connection, owner, reached)
        reached = step(steps, rows)
    return reached


def _ask(connection: Connection, owner: Owner, asked: Asked, *beside: Statement) -> tuple[Rows, list[list[Row]]]:
    """Give the rows of what a plan asks, and those of the statements beside it, in one round trip.

    What several parts of the plan ask in the same words is asked once.
    """
    lookups = list(dict.fromkeys(_lookups(asked)))
    statements = (sql.statement(lookup, owner, connection.dialect) for lookup in lookups)
    found = connection.fetch_each([*beside, *statements])
    rows = dict(zip(lookups, found[len(beside) :], strict=True))
    return _shaped(asked, rows), found[: len(beside)]


def _lookups(asked: Asked) -> Iterator[LookUp]:
    if isinstance(asked, Together):
        for each in asked.asked:
            yield from _lookups(each)
    else:
        yield asked


def _shaped(asked: Asked, rows: Mapping[LookUp, Rows]) -> Rows:
    return [tuple(_shaped(each, rows)) for each in asked.asked] if isinstance(asked, Together) else rows[asked]
