"""Standard input, as commands read it: the only place that knows that it may be closed."""

import sys
from typing import Any, TextIO

import click

from laudo.cli import output


class File(click.File):
    """A file to read, of which - is standard input."""

    def __init__(self) -> None:
        super().__init__("rb")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's
        """Open it; Failure when it is standard input, and closed."""
        if value == "-":
            opened()
        return super().convert(value, param, ctx)


def opened() -> TextIO:
    """Give standard input; Failure when it is closed."""
    if sys.stdin is None:
        raise output.Failure("standard input is closed")
    return sys.stdin
