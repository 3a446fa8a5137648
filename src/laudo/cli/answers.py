"""What a service answers, for people and for programs: table, columns, JSON, CSV, jq; people read masked CPFs."""

import csv
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import chain
from typing import Final

import click

from laudo.cli import output

Wire = dict[str, str | bool | None]
"""An item as the service wrote it."""

Command = Callable[..., int | None]


def formats(command: Command) -> Command:
    """Add the options that say how to print."""
    for option in reversed(_FORMATS):
        command = option(command)
    return command


def chosen(names: Sequence[str], text: str | None) -> tuple[str, ...]:
    """Read `--json FIELDS`; Failure names the fields there are."""
    if text is None:
        return tuple(names)
    wanted = tuple(name.strip() for name in text.split(",") if name.strip())
    if not wanted or set(wanted) - set(names):
        raise output.Failure(f"--json takes fields separated by commas, of: {', '.join(names)}")
    return wanted


def show(
    items: Iterable[Wire], names: Sequence[str], *, json_: str | None, jq: str | None, csv_: bool, reveal: bool
) -> None:
    """Print items in the one way that the options say: for programs whole, for people with CPFs masked."""
    fields = chosen(names, json_)
    picked = ({name: item[name] for name in fields} for item in items)
    if jq is not None:
        query(list(picked), jq)
    elif json_ is not None:
        _array(picked)
    elif csv_:
        _csv(picked, fields)
    else:
        table((item if reveal else masked(item) for item in picked), fields)


def query(value: object, expression: str) -> None:
    """Print what jq makes of a value, texts as they are."""
    try:
        program = import_module("jq").compile(expression)
        results = list(program.input_value(value))
    except ModuleNotFoundError:
        raise output.Failure("--jq needs the package jq; hint: pip install '.[jq]' in a clone") from None
    except ValueError as error:
        said = next(iter(str(error).splitlines()), "an error without a text")
        raise output.Failure(f"--jq: {said}") from None
    for result in results:
        click.echo(result if isinstance(result, str) else as_json(result))


def table(items: Iterable[Wire], fields: Sequence[str]) -> None:
    """Print columns: aligned on a terminal, separated by tabs elsewhere."""
    if not sys.stdout.isatty():
        for item in items:
            click.echo("\t".join(_shown(item[name]) for name in fields))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(*fields, box=None, pad_edge=False, header_style="bold" if output.colour() is None else "")
    for item in items:
        shown.add_row(*(Text(_shown(item[name])) for name in fields))
    Console(highlight=False).print(shown)


def cell(value: str | bool | None) -> str:
    """Write a value into CSV."""
    return str(value).lower() if isinstance(value, bool) else value or ""


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def masked(item: Wire) -> Wire:
    """Give an item without the parts of a CPF that would tell whose it is."""
    return {name: _mask(value) if name in _DOCUMENTS else value for name, value in item.items()}


def _mask(value: str | bool | None) -> str | bool | None:
    found = _CPF(value) if isinstance(value, str) else None
    return f"***{found[1]}**" if found else value


def _array(items: Iterable[Wire]) -> None:
    """Print a JSON array item by item: it may be longer than memory."""
    separator = "[\n"
    for item in items:
        click.echo(f"{separator}  {as_json(item)}", nl=False)
        separator = ",\n"
    click.echo("[]" if separator == "[\n" else "\n]")


def _csv(items: Iterable[Wire], fields: Sequence[str]) -> None:
    rows = ([item[name] for name in fields] for item in items)
    writer = csv.writer(_Echo(), lineterminator="\n")
    for row in chain([fields], rows):
        writer.writerow(cell(value) for value in row)


class _Echo:
    """A stream that prints as all else is printed: also where the output's encoding is said to be ASCII."""

    def write(self, text: str) -> None:
        click.echo(text, nl=False)


def _shown(value: str | bool | None) -> str:
    """Write a value into a column, where blanks are as good as one."""
    return " ".join(cell(value).split())


_DOCUMENTS: Final = ("cpf", "numero_documento")
_CPF: Final = re.compile(r"\d{3}(\d{6})\d{2}", re.ASCII).fullmatch
_FORMATS: Final[tuple[Callable[[Command], Command], ...]] = (
    click.option(
        "--json", "json_", metavar="FIELDS", help="Print a JSON array with these fields, separated by commas."
    ),
    click.option("--jq", metavar="EXPRESSION", help="Print what jq makes of the JSON array."),
    click.option("--csv", "csv_", is_flag=True, help="Print CSV."),
    click.option("--reveal", is_flag=True, help="Do not mask CPFs in the table."),
)
