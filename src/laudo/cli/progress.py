"""How far an import is, on stderr: a bar with its rate on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from laudo.cli import output

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from laudo.server.ingest.records import Source

EVERY: Final = 50_000
"""Lines of the file between two plain lines."""


class Report(Protocol):
    """What tells a person how far it is."""

    def reached(self, lines: int) -> None:
        """Show that so many lines of the file are done."""

    def say(self, text: str) -> None:
        """Print a line without disturbing the rest."""


@contextmanager
def following(source: "Source") -> Iterator[Report]:
    """Follow the reading of a source until the block ends."""
    if not sys.stderr.isatty():
        yield Plain()
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    with _bar(console) as bar:
        yield Bar(source, bar, bar.add_task("importing", total=source.size, lines=0, rate=""))


class Plain:
    """Writes a line now and then."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._next = EVERY

    def reached(self, lines: int) -> None:
        if lines >= self._next:
            self._next = lines - lines % EVERY + EVERY
            output.note(f"{lines} lines, {rate(lines, self._since)}")

    def say(self, text: str) -> None:
        output.note(text)


class Bar:
    """Moves rich's bar, which counts bytes, for nobody knows how many lines are still to come."""

    def __init__(self, source: "Source", bar: "Progress", task: "TaskID") -> None:
        self._since = time.monotonic()
        self._source = source
        self._bar = bar
        self._task = task

    def reached(self, lines: int) -> None:
        shown = rate(lines, self._since)
        self._bar.update(self._task, completed=self._source.consumed, lines=lines, rate=shown)

    def say(self, text: str) -> None:
        self._bar.console.print(text, markup=False, soft_wrap=True)


def rate(lines: int, since: float) -> str:
    return f"{round(lines / max(time.monotonic() - since, 0.001))} lines/s"


def _bar(console: "Console") -> "Progress":
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    return Progress(
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[lines]} lines"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=console,
    )
