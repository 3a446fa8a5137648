"""What the command line says: answers on stdout, everything else on stderr, failures in one line."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NoReturn, TextIO

import click

from laudo.cli import terminal, usage

IN_PART: Final = 1
NOTHING_DONE: Final = 2
INTERRUPTED: Final = 130

_STDOUT: Final = 1
_STDERR: Final = 2

SERVER_PACKAGES: Final = ("apsw", "falcon", "granian", "prometheus_client")
"""Packages that the service imports, whatever its store."""

_EXPECTED: Final = (
    ("laudo.client.errors", "LaudoError"),
    ("laudo.server.accounts", "AccountError"),
    ("laudo.server.config", "ConfigError"),
    ("laudo.server.database", "StoreError"),
    ("laudo.server.ingest.ahead", "EndedError"),
    ("laudo.server.ingest.records", "RecordsError"),
    ("laudo.server.keys", "KeyFileError"),
    ("laudo.server.metrics", "MetricsError"),
    ("laudo.server.tokens", "TokenError"),
)
"""Errors whose text says what is wrong and what to do."""

_NO_THREAD: Final = "cannot start a thread; hint: raise the limits on processes and memory"

Item = Mapping[str, str | int | bool | None]


class NoReader(Exception):  # noqa: N818 - what happened, in two words
    """Nobody reads what is printed any more, as in `laudo … | head`, so nobody needs to be told."""


class Failure(Exception):  # noqa: N818 - what happened, in one word
    """A command cannot go on; its text is shown to the user."""


@contextmanager
def failures_in_one_line() -> Iterator[None]:
    """End the program on any failure with one line on stderr, which says what to do, and never with a traceback."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(NOTHING_DONE)
    except click.ClickException as error:
        fail(usage.describe(error))
    except (click.Abort, KeyboardInterrupt):
        end_on_next_interrupt()
        fail("interrupted", code=INTERRUPTED)
    except NoReader:
        exit_with(NOTHING_DONE)
    except Exception as error:  # noqa: BLE001 - the program ends here; nothing else may see it
        fail(reason(error), code=IN_PART if _is_doubtful(error) else NOTHING_DONE)


@contextmanager
def ended_by_signal() -> Iterator[None]:
    """End a program that Ctrl-C interrupted by that signal: from a mere exit code, a script's loop would go on."""
    try:
        yield
    except SystemExit as end:
        if end.code == INTERRUPTED and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.raise_signal(signal.SIGINT)  # It does not end the first process of a container.
        raise


@contextmanager
def flushed() -> Iterator[None]:
    """Flush what the block prints; raises NoReader if nobody reads it any more.

    click would handle the broken pipe itself, and exit with 1.
    """
    if sys.stdout is None:
        sys.stdout = _replace_closed(_STDOUT, os.O_RDONLY)  # Writing is refused.
    if sys.stderr is None:
        sys.stderr = _replace_closed(_STDERR, os.O_WRONLY)
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise NoReader from error


def _replace_closed(number: int, flags: int) -> TextIO:
    """Open the null device in place of a closed stream; otherwise a file opened later would get its number."""
    return os.fdopen(os.dup2(os.open(os.devnull, flags), number), "w")


def exit_with(code: int | None) -> NoReturn:
    """Exit with this code; Python would exit with another one if output is left that cannot be printed."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, AttributeError):
            _discard(stream)
    sys.exit(code)


def fail(text: str, *, code: int = NOTHING_DONE) -> NoReturn:
    """Print the text as one line on stderr, and exit."""
    note(" ".join(text.split()), label="error: ")
    exit_with(code)


@contextmanager
def resumable(so_far: Callable[[], str], code: Callable[[], int] = lambda: IN_PART) -> Iterator[None]:
    """If a block that another run can continue fails or is interrupted, say what is kept and how to get the rest.

    `so_far` gives both as one text, empty if nothing is kept; if something is, `code` gives a failure's exit code.
    """
    try:
        with _interruptible():
            yield
    except KeyboardInterrupt as error:
        _exit_interrupted(error, so_far())
    except Exception as error:
        if kept := so_far():
            fail(f"{reason(error)}; kept: {kept}", code=IN_PART if _is_doubtful(error) else code())
        raise


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGTERM, and SIGHUP unless nohup ignores it, interrupt the block as Ctrl-C does."""

    def interrupt(number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt(number)

    caught = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in caught:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_DFL)


def _exit_interrupted(interrupt: KeyboardInterrupt, so_far: str) -> NoReturn:
    """Say what is kept and exit; if it was not Ctrl-C, end by the same signal, so that the parent process sees it."""
    end_on_next_interrupt()
    note(f"interrupted; kept: {' '.join(so_far.split()) or 'nothing'}", label="error: ")
    for number in interrupt.args:
        os.kill(os.getpid(), number)
    exit_with(INTERRUPTED)


def end_on_next_interrupt() -> None:
    """Let the next Ctrl-C end the program at once and silently; during the exit, Python would print a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def note(text: str, *, label: str = "") -> None:
    """Tell a person something on stderr that is not an answer; if that cannot be written, the command goes on."""
    head = click.style(label, fg="red", bold=True) if label else ""
    with suppress(OSError):
        click.echo(head + terminal.plain(text), err=True, color=terminal.colour())


def counted(number: int, noun: str) -> str:
    """Write a number with its noun; `noun` is the singular."""
    return f"{number} {noun}{'s' * (number != 1)}"


def listing(items: Sequence[Item], *, as_json: bool) -> None:
    """Print items as a JSON array, or as columns under their names; if there are none, stderr says so."""
    if as_json:
        click.echo(terminal.as_json(items, indent=2))
    elif items:
        _columns([list(items[0]), *([_cell(value) for value in item.values()] for item in items)])
    else:
        note("none")


def answer(item: Item, text: str, *, as_json: bool) -> None:
    """Print what was made, as JSON or as a sentence; exits with IN_PART if it cannot be printed."""
    if problem := try_print(terminal.as_json(item) if as_json else text):
        fail(_unprinted(text, problem), code=IN_PART)


def summary(text: str) -> None:
    """Print what was done; if that is impossible, stderr says so, and the exit code stays the same."""
    if problem := try_print(terminal.plain(text)):
        note(_unprinted(text, problem), label="error: ")


def try_print(text: str) -> str | None:
    """Print a text; gives the reason if it cannot be printed, so that the command can still go on."""
    try:
        click.echo(text)
    except OSError as error:
        _discard(sys.stdout)
        return error.strerror
    except UnicodeEncodeError:
        return "the encoding of the output lacks some of the characters"
    return None


def _unprinted(text: str, problem: str) -> str:
    return f"{' '.join(text.split())}: done, but this could not be printed: {problem}"


def _discard(stream: TextIO | None) -> None:
    """Send what a stream still holds, and all that is written to it later, to the null device."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _columns(rows: list[list[str]]) -> None:
    from rich.cells import cell_len, set_cell_size

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        line = "  ".join(map(set_cell_size, row, widths)).rstrip()
        click.echo(click.style(line, bold=True) if number == 0 else line, color=terminal.colour())


def _cell(value: str | int | bool | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else terminal.plain(str(value))


def reason(error: Exception) -> str:
    """Describe an error to the user in one line."""
    if isinstance(error, Failure) or any(_is_instance(error, *names) for names in _EXPECTED):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in SERVER_PACKAGES:
        return without_server(error.name or "")
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "out of memory; hint: close other programs, or raise the memory limit"
    if isinstance(error, UnicodeEncodeError) and not error.encoding.startswith("utf"):
        return "the encoding of the output lacks some of the characters; hint: set PYTHONIOENCODING=utf-8"
    return _NO_THREAD if str(error) == "can't start new thread" else _bug(error)  # It is a plain RuntimeError.


def _is_doubtful(error: Exception) -> bool:
    """Tell whether the work may be done in spite of the error."""
    return _is_instance(error, "laudo.server.database", "Doubtful")


def without_server(name: str) -> str:
    return f"this command needs the service, and {name} is not installed; hint: pip install '.[server]' in a clone"


def _is_instance(error: Exception, module: str, name: str) -> bool:
    """Tell whether an error is of a class; if the class's module is not loaded, it is not."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(error, getattr(loaded, name))


def _bug(error: Exception) -> str:
    """Say where it broke, never with which value: the text of an exception may quote a record."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)[-1:]
    what = type(error).__name__ + "".join(f" at {frame.filename}:{frame.lineno}" for frame in frames)
    for noted in getattr(error, "__notes__", ()):  # The error is of another process.
        what = noted
    return f"a bug in laudo: {what}; hint: report it with this line"
