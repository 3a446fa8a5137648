"""Numbers, instants, choices and fields as the command line takes them: the only place that words their errors.

click's own errors speak of an "integer range", and repeat what was typed.
"""

import math
import time
from collections.abc import Sequence
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem


class Whole(click.IntRange):
    """A whole number."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - click's
        number: int = super().convert(_plain(value), param, ctx)
        return number

    def fail(self, message: str, param: click.Parameter | None = None, ctx: click.Context | None = None) -> NoReturn:
        """Say what is accepted, in place of the message."""
        del message
        super().fail(f"must be {self.accepts}", param, ctx)

    @property
    def accepts(self) -> str:
        return f"a whole number {_bounds(self)}"


class Id(Whole):
    """The number of an organization, an account, a user or a token."""

    def __init__(self, noun: str) -> None:
        super().__init__(1, 2**31 - 1)
        self._noun = noun

    @property
    def accepts(self) -> str:
        return f"a number that `laudo {self._noun} list` shows"


class Multiple(Whole):
    """A multiple of a number, at least that number."""

    def __init__(self, divisor: int) -> None:
        super().__init__(divisor)
        self._divisor = divisor

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - click's
        number: int = super().convert(value, param, ctx)
        return self.fail("", param, ctx) if number % self._divisor else number

    @property
    def accepts(self) -> str:
        return f"a multiple of {self._divisor}"


class Real(click.FloatRange):
    """A number that may have a fraction."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - click's
        number: float = super().convert(_plain(value), param, ctx)
        return self.fail("", param, ctx) if math.isnan(number) else number

    def fail(self, message: str, param: click.Parameter | None = None, ctx: click.Context | None = None) -> NoReturn:
        """Say what is accepted, in place of the message."""
        del message
        super().fail(f"must be a number {_bounds(self)}", param, ctx)


class Word(click.Choice[str]):
    """One of a few words."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:  # noqa: ANN401 - click's
        del value, ctx
        return f"must be {' or '.join(self.choices)}"


class Fields(click.ParamType[tuple[str, ...]]):
    """Fields of an item, separated by commas."""

    name = "fields"

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    @property
    def accepts(self) -> str:
        return f"one or more of these fields, separated by commas: {', '.join(self._names)}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:  # noqa: ANN401 - click's
        wanted = tuple(name.strip() for name in value.split(",") if name.strip())
        if not wanted or not set(wanted) <= set(self._names):
            self.fail(f"must be {self.accepts}", param, ctx)
        return wanted

    # Quoted, because in click 8.4 the class takes no type argument.
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[str]]":
        """Complete the last field, among those not given before it."""
        del ctx, param
        before, comma, last = incomplete.rpartition(",")
        left = (name for name in self._names if name not in before.split(","))
        return [CompletionItem(f"{before}{comma}{name}") for name in left if name.startswith(last)]


class Instant(click.ParamType[int]):
    """An instant with offset, converted to ms since 1970."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - click's
        from laudo.core.values import parse_instant

        try:
            return parse_instant(value)
        except ValueError:
            self.fail("must be an instant such as 2027-01-31T12:00:00Z", param, ctx)


class Past(click.ParamType[int]):
    """A past date, from its beginning in UTC, or a past instant with offset, converted to ms since 1970."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - click's
        from laudo.core.values import SINCE

        try:
            since = SINCE.parse(value)
        except ValueError:
            self.fail("must be a date such as 2021-01-31, or an instant such as 2021-01-31T12:00:00Z", param, ctx)
        if not isinstance(since, int) or since > time.time_ns() // 1_000_000:
            self.fail("must be a date or an instant in the past", param, ctx)
        return since


def _plain(value: Any) -> Any:  # noqa: ANN401 - click's
    """Give an empty text in place of one that only Python reads as a number: `1_0`, or digits of other scripts."""
    return "" if isinstance(value, str) and ("_" in value or not value.isascii()) else value


def _bounds(kind: click.IntRange | click.FloatRange) -> str:
    return f"of at least {kind.min}" if kind.max is None else f"from {kind.min} to {kind.max}"
