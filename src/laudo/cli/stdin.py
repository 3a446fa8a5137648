"""Standard input as commands read it: the only place that handles a closed one, or one where nobody answers."""

import getpass
import sys
import warnings
from io import TextIOWrapper
from typing import Any, TextIO

import click

from laudo.cli import output


class File(click.File):
    """A file to read; - is standard input."""

    def __init__(self) -> None:
        super().__init__("rb")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's
        """Open the file; raises Failure if it is standard input, and that is closed."""
        if value == "-":
            opened()
        return super().convert(value, param, ctx)


def opened() -> TextIO:
    """Give standard input, with a mark in place of bytes that are not text; raises Failure if it is closed."""
    if sys.stdin is None:
        raise output.Failure("standard input is closed")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    return sys.stdin


def prompt(what: str, *, hint: str, hidden: bool = False) -> str:
    """Ask a person; raises Failure with the hint if nobody is there, or no terminal can hide what is typed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)
            answer = str(click.prompt(what, hide_input=hidden, err=True))
    except getpass.GetPassWarning:
        raise output.Failure(f"there is no terminal to prompt on; hint: {hint}") from None
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        if not hidden:  # Else click has done so.
            output.note("")  # Ends the line of the question.
        raise output.Failure(f"standard input ended before the answer; hint: {hint}") from None
    if not hidden and not sys.stdin.isatty():
        output.note("")  # The same: nobody has pressed Enter.
    return answer
