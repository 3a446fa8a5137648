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


def changes(look: Callable[[], T], *, every: float) -> Iterator[T]:
    """Give what is seen first, and then whatever has changed; looks every `every` seconds."""
    before = None
    for seen in _looks(look, every):
        if seen != before:
            yield seen
            before = seen


def _looks(look: Callable[[], T], every: float) -> Iterator[T]:
    """Give what each look sees, for ever; says once that the service is away, and once that it is back."""
    from laudo.client import RateLimitError, ServerError, TransportError

    is_away = False
    while True:
        try:
            seen = look()
        except (TransportError, ServerError, RateLimitError) as error:
            if not is_away:
                output.note(f"{error}; trying again every {every:g} s")
            is_away = True
        else:
            if is_away:
                output.note("the service answers again")
            is_away = False
            yield seen
        _pause(every)


def _pause(seconds: float) -> None:
    """Wait; raises Unheard as soon as nobody reads what is printed, on systems that can tell."""
    if not hasattr(select, "poll") or not _is_conveyed():
        time.sleep(seconds)
        return
    reader = select.poll()
    reader.register(sys.stdout, 0)  # It always tells when the reader has gone.
    if reader.poll(seconds * 1000):
        raise output.Unheard


def _is_conveyed() -> bool:
    """Tell whether what is printed goes to another program: through a pipe or a socket."""
    try:
        mode = os.fstat(sys.stdout.fileno()).st_mode
    except OSError:  # It is no file.
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
