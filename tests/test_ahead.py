"""An iterator run in a process of its own yields what it would yield here, and that process always ends."""

import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Final

import pytest

from awaiting import PATIENCE, until
from laudo.cli import output
from laudo.server.ingest import ahead
from laudo.server.ingest.ahead import EndedError
from laudo.server.ingest.records import RecordsError

WAITING: Final = "import sys, test_ahead; test_ahead.wait_in_two_processes(int(sys.argv[1]))"

# The command has one thread when it forks. The tests have more, about which Python warns from 3.12 on.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def processes(*, count: int = 3) -> Iterator[int]:
    for _ in range(count):
        yield os.getpid()


def test_items_come_from_one_other_process() -> None:
    with ahead.run(processes()) as given:
        others = list(given)
    assert len(others) == 3
    assert len({*others, os.getpid()}) == 2


def test_items_of_any_size_arrive_complete_and_in_order() -> None:
    items = [b"", b"x" * 5_000_000, ["ç" * n for n in range(1000)], None, 7]
    with ahead.run(items) as given:
        assert list(given) == items


@pytest.mark.parametrize("error", [RecordsError("no header"), FileNotFoundError(2, "gone", "a.csv"), ValueError()])
def test_an_exception_of_the_iterator_is_raised_here_after_its_items(error: Exception) -> None:
    def items() -> Iterator[int]:
        yield 1
        raise error

    with ahead.run(items()) as given:
        assert next(given) == 1
        with pytest.raises(type(error)) as raised:
            next(given)
    assert raised.value.args == error.args


def test_a_bug_is_reported_with_the_line_where_it_is() -> None:
    def items() -> Iterator[float]:
        yield 1 / 0

    with ahead.run(items()) as given, pytest.raises(ZeroDivisionError) as raised:
        next(given)
    assert output.reason(raised.value).startswith(f"a bug in laudo: ZeroDivisionError at {__file__}:")


class UnsendableError(Exception):
    """An exception that cannot be rebuilt from its arguments."""

    def __init__(self, *, needed: object) -> None:
        super().__init__()
        self.needed = needed


@pytest.mark.parametrize("needed", ["a text", lambda: "what no process can send"])
def test_an_exception_that_cannot_be_pickled_is_still_reported(needed: object) -> None:
    def items() -> Iterator[int]:
        yield 1
        raise UnsendableError(needed=needed)

    with ahead.run(items()) as given:
        assert next(given) == 1
        with pytest.raises(RuntimeError) as raised:
            next(given)
    assert output.reason(raised.value).startswith(f"a bug in laudo: UnsendableError at {__file__}:")


def test_the_process_works_at_most_one_item_ahead(tmp_path: Path) -> None:
    """Items larger than a socket's buffer wait until they are taken, so not even the second one is sent early."""
    begun = tmp_path / "begun"

    def items() -> Iterator[bytes]:
        for number in range(5):
            begun.write_text(str(number))
            yield b"x" * 5_000_000

    with ahead.run(items()) as given:
        for taken in range(1, 5):
            next(given)
            until(lambda taken=taken: begun.read_text() == str(taken))  # type: ignore[misc]
        sleep(0.2)
        assert begun.read_text() == "4"


class Large:
    """An item larger than a socket's buffer."""

    def __init__(self) -> None:
        self.content = b"x" * 5_000_000


def test_an_item_waiting_to_be_taken_is_held_in_memory_only_once(tmp_path: Path) -> None:
    freed = tmp_path / "freed"

    def items() -> Iterator[Large]:
        yield noticed(Large())

    def noticed(item: Large) -> Large:
        weakref.finalize(item, freed.touch)
        return item

    with ahead.run(items()) as given:
        until(freed.exists)
        assert len(next(given).content) == 5_000_000


def test_the_process_ends_with_the_block() -> None:
    with ahead.run(processes()) as given:
        child = next(given)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_the_process_ignores_sigint_sigterm_and_sighup() -> None:
    def items() -> Iterator[int]:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
            yield number

    with ahead.run(items()) as given:
        assert len(list(given)) == 3


def test_a_killed_process_is_reported() -> None:
    with ahead.run(processes(count=1_000_000)) as given:
        os.kill(next(given), signal.SIGKILL)
        with pytest.raises(EndedError, match="the process that reads the file was killed"):
            list(given)


def wait_in_two_processes(untaken: int) -> None:
    """Print the child's process id; the child sends items that nobody takes, and waits for input."""

    def items() -> Iterator[int]:
        yield os.getpid()
        sys.stdin.readline()
        yield from range(untaken)
        say("waiting")
        sys.stdin.readline()

    signal.signal(signal.SIGINT, signal.default_int_handler)  # as a shell's background job ignores this signal
    with ahead.run(items()) as given:
        say(str(next(given)))
        signal.pause() if untaken else next(given)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@pytest.mark.parametrize("untaken", [0, 3])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_process_ends_with_its_parent_even_while_waiting_for_input(number: int, untaken: int) -> None:
    command = [sys.executable, "-c", WAITING, str(untaken)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=Path(__file__).parent
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            child = int(process.stdout.readline())
            process.stdin.write(b"\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"waiting\n"
            process.send_signal(number)
            process.wait(PATIENCE)
            until(lambda: has_ended(child))
        finally:
            process.kill()


def has_ended(process: int) -> bool:
    """Tell whether a process has ended; a zombie counts as ended: it has no memory any more."""
    try:
        return not Path(f"/proc/{process}/maps").read_text()
    except OSError:
        return True
