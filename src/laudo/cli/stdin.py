"""Standard input, as commands read it: the only place that knows that it may be closed, or have nobody behind it."""

import getpass
import sys
import warnings
from io import TextIOWrapper
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
    """Give standard input, with a mark in the place of what is no text; Failure when it is closed."""
    if sys.stdin is None:
        raise output.Failure("standard input is closed")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    return sys.stdin


def asked(what: str, *, hint: str, hidden: bool = False) -> str:
    """Ask a person; Failure with the hint when there is nobody, or no terminal that hides what is typed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)
            answer = str(click.prompt(what, hide_input=hidden, err=True))
    except getpass.GetPassWarning:
        raise output.Failure(f"there is no terminal to ask at; hint: {hint}") from None
    except click.Abort as error:
        if hidden or not isinstance(error.__context__, EOFError):
            raise
        output.note("")  # The question has left its line open.
        raise output.Failure(f"standard input has ended; hint: {hint}") from None
    if not hidden and not sys.stdin.isatty():
        output.note("")  # Nobody has pressed Enter.
    return answer
