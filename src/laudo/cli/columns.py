"""Columns on a terminal: rich chooses their widths for some rows; wider values in later rows are folded, never cut."""

import shutil
import sys
from collections.abc import Sequence
from itertools import zip_longest

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from laudo.cli import terminal


class Columns:
    """Columns of these widths."""

    def __init__(self, console: Console, widths: Sequence[int]) -> None:
        self._console = console
        self._widths = widths

    def head(self, names: Sequence[str]) -> None:
        for line in self.lines(names):
            self._console.out(line, style="bold" if terminal.colour() is None else None, highlight=False)

    def lines(self, row: Sequence[str]) -> list[str]:
        """Give the lines of a row: several, if a value is wider than its column."""
        folded = zip_longest(*map(self._folded, row, self._widths), fillvalue="")
        return ["  ".join(map(set_cell_size, parts, self._widths)).rstrip() for parts in folded]

    def _folded(self, value: str, width: int) -> list[str]:
        if cell_len(value) <= width:
            return [value]
        return [line.plain for line in Text(value).wrap(self._console, width, overflow="fold")]


def fitting(rows: Sequence[Sequence[str]]) -> Columns | None:
    """Give columns that fit these rows, None if the terminal is too narrow for the longest word of each column.

    A table of rich would cut what does not fit, and part of a numero is useless for asking.
    """
    width, height = shutil.get_terminal_size()  # rich takes a dumb terminal to be 80 wide.
    console = Console(highlight=False, width=width, height=height)
    measured = [_Measured(values) for values in zip(*rows, strict=True)]
    columns = (Column(no_wrap=not each.has_blanks) for each in measured)
    table = Table(*columns, box=None, pad_edge=False, show_header=False)
    table.add_row(*measured)
    unbounded = console.options.update_width(sys.maxsize)
    if Measurement.get(console, unbounded, table).minimum > console.width:
        return None
    console.render_lines(table)
    return Columns(console, [each.width for each in measured])


class _Measured:
    """Stands for all values of a column in a table of rich, and learns from it how wide the column is."""

    def __init__(self, values: Sequence[str]) -> None:
        longest_word = max(cell_len(word) for value in values for word in value.split())
        self._measurement = Measurement(longest_word, max(map(cell_len, values)))
        self.has_blanks = any(" " in value for value in values)
        self.width = 0

    def __rich_measure__(self, _console: Console, _options: ConsoleOptions) -> Measurement:
        return self._measurement

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        self.width = options.max_width
        return ()
