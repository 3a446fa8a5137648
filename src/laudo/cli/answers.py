"""Prints what a service answers, as table, columns, JSON, CSV or through jq; people see masked CPFs."""

import csv
import os
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import accumulate, chain
from typing import Final

import click

from laudo.cli import output, terminal
from laudo.cli.ranges import Fields

Wire = dict[str, str | bool | None]
"""An item as the service sent it."""

Command = Callable[..., int | None]


def formats(names: Sequence[str]) -> Callable[[Command], Command]:
    """Add the options that choose the output format of items with these fields."""

    def decorate(command: Command) -> Command:
        for option in reversed((with_json(names, "a JSON array"), *_FORMATS, _with_columns(names))):
            command = option(command)
        return command

    return decorate


def with_json(names: Sequence[str], what: str) -> Callable[[Command], Command]:
    """Add `--json`, which prints `what`, with those of these fields that are given."""
    text = f"Print {what} with these comma-separated fields."
    return click.option("--json", "json_", type=Fields(names), metavar="FIELDS", help=text)


def _with_columns(names: Sequence[str]) -> Callable[[Command], Command]:
    text = "Print only these comma-separated fields, as table or CSV."
    return click.option("--columns", type=Fields(names), metavar="FIELDS", help=text)


def show(
    pages: Iterable[Iterable[Wire]],
    names: Sequence[str],
    *,
    json_: Sequence[str] | None,
    jq: str | None,
    csv_: bool,
    reveal: bool,
    columns: Sequence[str] | None,
    most_lines: int | None = None,
) -> None:
    """Print items in the format that the options choose: unchanged for programs, with masked CPFs for people.

    With `most_lines`, a person sees only the first items, as many as fit on these lines, and how many there are more.
    """
    fields = json_ or columns or names
    picked = ({name: item[name] for name in fields} for item in chain.from_iterable(pages))
    if jq is not None:
        query(list(picked), jq)
    elif json_ is not None:
        _array(picked)
    elif csv_:
        _csv(picked, fields)
    else:
        table(([item if reveal else masked(item) for item in page] for page in pages), fields, most_lines=most_lines)


def in_columns(*, json_: Sequence[str] | None, jq: str | None, csv_: bool, **_: object) -> bool:
    """Tell whether `show` prints for a person: on a terminal, and not in a format for programs."""
    return sys.stdout.isatty() and json_ is None and jq is None and not csv_


def query(value: object, expression: str) -> None:
    """Print the results of a jq expression on a value; strings are printed raw, as by `jq -r`."""
    with _without_environment():
        results = _results(value, expression)
    for result in results:
        _print_raw(result if isinstance(result, str) else terminal.as_json(result), end="\n")


def _results(value: object, expression: str) -> list[object]:
    try:
        program = import_module("jq").compile(_PRELUDE + expression)
    except ModuleNotFoundError:
        raise output.Failure("--jq needs the package jq; hint: pip install jq") from None
    except ValueError as error:
        raise _jq_failure(_PLACE(_without_prelude, str(error)).removeprefix("jq: error: ")) from None
    try:
        return list(program.input_value(value))
    except ValueError as error:
        raise _jq_failure(_QUOTED(_hidden, str(error)), of_array=isinstance(value, list)) from None


@contextmanager
def _without_environment() -> Iterator[None]:
    """Empty the environment: it may hold the token, and a jq expression may come from somebody else."""
    kept = dict(os.environ)
    os.environ.clear()
    try:
        yield
    finally:
        os.environ.update(kept)


def _jq_failure(message: str, *, of_array: bool = False) -> output.Failure:
    first_line = next(iter(message.splitlines()), "")
    misses_items = of_array and first_line.startswith("Cannot index array with string")
    hint = "; hint: the expression gets an array; .[] gives its items" if misses_items else ""
    return output.Failure(f"--jq: {_REWORDED.get(first_line, first_line.removesuffix(':'))}{hint}")


def _without_prelude(place: re.Match[str]) -> str:
    return f" at line {int(place[1]) - 1}"


def _hidden(values: re.Match[str]) -> str:
    """Hide the values of items in an error of jq, but not the type of the second one of two."""
    second = _SECOND_TYPE(values[0])
    return f"… and {second[1]} …" if second else "…"


def table(pages: Iterable[Iterable[Wire]], fields: Sequence[str], *, most_lines: int | None = None) -> None:
    """Print columns: on a terminal aligned for the first page, or item by item if too wide; elsewhere tab-separated."""
    rows = ([[_shown(item[name]) for name in fields] for item in page] for page in pages)
    if not sys.stdout.isatty():
        for row in chain.from_iterable(rows):
            click.echo("\t".join(row))
        return
    from laudo.cli.columns import fitting

    first = next(rows, [])
    all_rows = chain(first, chain.from_iterable(rows))
    if columns := fitting([fields, *first]):
        columns.head(fields)
        blocks: Iterable[list[str]] = map(columns.lines, all_rows)
        most_lines = most_lines and most_lines - len(columns.lines(fields))
    else:
        if not first:
            click.echo("  ".join(fields))
        items = (dict(zip(fields, row, strict=True)) for row in all_rows)
        blocks = (["", *_pair_lines(item)] if number else _pair_lines(item) for number, item in enumerate(items))
    _print_blocks(blocks, most_lines)


def _print_blocks(blocks: Iterable[list[str]], most_lines: int | None) -> None:
    """Print blocks of lines: each as it comes or, with `most_lines`, as many as fit but at least one."""
    hidden = 0
    if most_lines is not None:
        blocks = list(blocks)
        ends = list(accumulate(map(len, blocks)))
        if ends and ends[-1] > most_lines:
            fitting = max(1, bisect_right(ends, most_lines - 1))  # One line is for the remark.
            blocks, hidden = blocks[:fitting], len(blocks) - fitting
    for block in blocks:
        click.echo("\n".join(block))
    if hidden:
        click.echo(f"… {hidden} more")


def pairs(item: Wire) -> None:
    """Print one item, a line for each field: aligned on a terminal, separated by a tab elsewhere."""
    click.echo("\n".join(_pair_lines(item)))


def _pair_lines(item: Mapping[str, str | bool | None]) -> list[str]:
    if not sys.stdout.isatty():
        return [f"{name}\t{_shown(value)}" for name, value in item.items()]
    width = max(map(len, item))
    return [f"{name:{width}}  {_shown(value)}".rstrip() for name, value in item.items()]


def csv_lines(rows: Iterable[Sequence[str | bool | None]]) -> Iterator[str]:
    """Format rows as CSV lines that end in a line feed, from which a reader gets the same texts."""
    writer = csv.writer(_Line(), lineterminator=_Line.END)
    return (writer.writerow(map(_cell, row)) for row in rows)


class _Line:
    """A stream whose `write` returns the row; with both characters in END, the writer quotes a CR and an LF."""

    END: Final = "\r\n"

    def write(self, text: str) -> str:
        return text.removesuffix(self.END) + "\n"


def _cell(value: str | bool | None) -> str:
    """Format a value for CSV or a column."""
    return str(value).lower() if isinstance(value, bool) else value or ""


def masked(item: Wire) -> Wire:
    """Give an item whose CPFs show only their six middle digits."""
    return {name: _mask(value) if name in _DOCUMENTS else value for name, value in item.items()}


def _mask(value: str | bool | None) -> str | bool | None:
    found = _CPF(value) if isinstance(value, str) else None
    return f"***{found[1]}**" if found else value


def _array(items: Iterable[Wire]) -> None:
    """Print a JSON array item by item, since it may not fit in memory."""
    separator = "[\n"
    for item in items:
        click.echo(f"{separator}  {terminal.as_json(item)}", nl=False)
        separator = ",\n"
    click.echo("[]" if separator == "[\n" else "\n]")


def _csv(items: Iterable[Wire], fields: Sequence[str]) -> None:
    rows = ([item[name] for name in fields] for item in items)
    for line in csv_lines(chain([fields], rows)):
        _print_raw(line)


def _print_raw(text: str, *, end: str = "") -> None:
    """Print a text unchanged for a program; for a terminal, without the characters that it would obey.

    `color=True` keeps click from removing what looks like colour codes.
    """
    click.echo((terminal.plain(text) if sys.stdout.isatty() else text) + end, nl=False, color=True)


def _shown(value: str | bool | None) -> str:
    """Format a value for a column, with each run of blanks as one blank."""
    return terminal.plain(" ".join(_cell(value).split()))


_DOCUMENTS: Final = ("cpf", "numero_documento")
_CPF: Final = re.compile(r"\d{3}(\d{6})\d{2}", re.ASCII).fullmatch
_PRELUDE: Final = "def halt_error(_): error; def halt_error: error;\n"
"""A first line that makes `halt_error` a failure, which the package jq treats as a normal end. After a definition jq
refuses `import` and `include`, which could read files, such as the one with the saved token."""
_PLACE: Final = re.compile(r" at <top-level>, line (\d+)").sub
_QUOTED: Final = re.compile(r"""["(\[{\d].*(?:["\])}\d]|\.{3})""", re.DOTALL).sub
"""Finds the values of items that jq quotes in an error, from the first one to the last."""
_SECOND_TYPE: Final = re.compile(r"\) and (null|boolean|number|string|array|object) \(").search
_REWORDED: Final = {
    "": "an error without a message",
    "…": "an error whose message is not a text",
    "break": "there is no further input",
}
"""What jq or its package says -> what that means."""
_FORMATS: Final[tuple[Callable[[Command], Command], ...]] = (
    click.option("--jq", metavar="EXPRESSION", help="Filter the JSON array with a jq expression."),
    click.option("--csv", "csv_", is_flag=True, help="Print CSV."),
    click.option("--reveal", is_flag=True, help="Do not mask CPFs in the table."),
)
