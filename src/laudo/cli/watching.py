"""`--watch`: asks again and again, until it is interrupted or nobody reads what it prints any more."""

import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from laudo.cli import output

T = TypeVar("T")


def changes(fetch: Callable[[], T], *, every: float) -> Iterator[T]:
    """Give the first result, and then each that differs from the one before; fetches every `every` seconds."""
    previous = None
    for found in _fetches(fetch, every):
        if found != previous:
            yield found
            previous = found


def _fetches(fetch: Callable[[], T], every: float) -> Iterator[T]:
    """Fetch for ever, and give each result; says once that the service is away, and once that it is back."""
    from laudo.client import RateLimitError, ServerError, TransportError

    is_failing = False
    while True:
        try:
            found = fetch()
        except (TransportError, ServerError, RateLimitError) as error:
            if not is_failing:
                output.note(f"{error}; trying again every {every:g} s")
            is_failing = True
        else:
            if is_failing:
                output.note("the service answers again")
            is_failing = False
            yield found
        _pause(every)


def _pause(seconds: float) -> None:
    """Wait; raises NoReader as soon as nobody reads what is printed, on systems that can tell."""
    if not hasattr(select, "poll") or not _is_piped():
        time.sleep(seconds)
        return
    reader = select.poll()
    reader.register(sys.stdout, 0)  # It reports a reader that has gone even so.
    if reader.poll(seconds * 1000):
        raise output.NoReader


def _is_piped() -> bool:
    """Tell whether what is printed goes to another program: through a pipe or a socket."""
    try:
        mode = os.fstat(sys.stdout.fileno()).st_mode
    except OSError:  # It is not a file.
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
