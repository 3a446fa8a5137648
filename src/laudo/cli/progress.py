"""Shows on stderr how far a long command is: a bar with its rate on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, Final, Protocol, cast

from laudo.cli import output, terminal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from laudo.server.ingest.progress import OnProgress

EVERY_LINES: Final = 50_000
"""Lines of the file between two plain lines."""
EVERY_SECONDS: Final = 10
"""Seconds between two plain lines of a command that reads no file."""


class Display(Protocol):
    """Shows a person how far the reading of a file is."""

    def update(self, lines: int, consumed: int) -> None:
        """Show that `lines` lines of the file are done, for which `consumed` bytes of it were read."""

    def say(self, text: str) -> None:
        """Print a line without disturbing the progress shown."""


@contextmanager
def reading(size: int | None, doing: str) -> Iterator[Display]:
    """Show how far the reading of a source of `size` bytes is, None if unknown, until the block ends."""
    if not _can_draw_bars():
        yield PlainDisplay()
        return
    with _bar() as bar:
        yield BarDisplay(bar, bar.add_task(doing, total=size, count="0 lines", rate=""))


@contextmanager
def counting(doing: str, unit: str = "rows", *, done_before: int = 0) -> "Iterator[OnProgress]":
    """Give a function that shows how many of a total are done, such as rows, until the block ends.

    The first `done_before` of them were done by an earlier run, and do not count for the rate.
    """
    since = monotonic()
    if not _can_draw_bars():
        yield _plain_lines(doing, unit, since, done_before)
        return
    with _bar() as bar:
        task = bar.add_task(doing, total=None, completed=done_before, count=f"{done_before} {unit}", rate="")

        def update(done: int, total: int) -> None:
            shown = rate(done - done_before, since, unit)
            bar.update(task, completed=done, total=total, count=f"{done} {unit}", rate=shown)

        yield update


class PlainDisplay:
    """Writes a plain line now and then."""

    def __init__(self) -> None:
        self._since = monotonic()
        self._next = EVERY_LINES

    def update(self, lines: int, consumed: int) -> None:  # noqa: ARG002 - plain lines do not show bytes
        if lines >= self._next:
            self._next = lines - lines % EVERY_LINES + EVERY_LINES
            output.note(f"{lines} lines, {rate(lines, self._since)}")

    def say(self, text: str) -> None:
        output.note(text)


class BarDisplay:
    """Moves rich's bar, which counts bytes, since the number of lines to come is not known."""

    def __init__(self, bar: "Progress", task: "TaskID") -> None:
        self._since = monotonic()
        self._bar = bar
        self._task = task

    def update(self, lines: int, consumed: int) -> None:
        shown = rate(lines, self._since)
        self._bar.update(self._task, completed=consumed, count=f"{lines} lines", rate=shown)

    def say(self, text: str) -> None:
        self._bar.console.print(text, markup=False, soft_wrap=True)


def rate(count: int, since: float, unit: str = "lines") -> str:
    return f"{round(count / max(monotonic() - since, 0.001))} {unit}/s"


def _plain_lines(doing: str, unit: str, since: float, done_before: int) -> "OnProgress":
    due = since + EVERY_SECONDS

    def update(done: int, total: int) -> None:
        nonlocal due
        if monotonic() >= due:
            due = monotonic() + EVERY_SECONDS
            output.note(f"{doing}: {done} of {total} {unit}, {rate(done - done_before, since, unit)}")

    return update


class _TolerantStream:
    """A stream whose writes may fail without stopping the command, as after its terminal was closed."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)


def _can_draw_bars() -> bool:
    """Tell whether stderr is a terminal that can draw a bar and draw over it."""
    return sys.stderr.isatty() and not terminal.is_dumb()


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    class Stderr(Console):
        def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002, FBT002 - rich's signature
            """Leave the cursor as it is: a process that is stopped or killed could not restore it."""
            return False

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[count]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Stderr(file=cast("IO[str]", _TolerantStream(sys.stderr)), highlight=False),
    )


@contextmanager
def counting_lists() -> Iterator[Callable[[str, int, int], None]]:
    """Show how far each of several lists is, one after the other."""
    with ExitStack() as stack:
        current: dict[str, OnProgress] = {}

        def update(name: str, items: int, total: int) -> None:
            if name not in current:
                stack.close()
                current.clear()
                current[name] = stack.enter_context(counting(name, "items"))
            current[name](items, total)

        yield update
