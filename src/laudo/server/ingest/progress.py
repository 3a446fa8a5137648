"""How far a long reading of the store is: the rows done, out of all."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

OnProgress = Callable[[int, int], None]
"""Called with the rows done, and how many there are in all."""


class Progress:
    """Counts rows done, and calls a function with their number."""

    __slots__ = ("_done", "_on_progress", "_total")

    def __init__(self, on_progress: OnProgress | None = None, total: int = 0) -> None:
        """Without `on_progress`, nothing is reported."""
        self._on_progress = on_progress
        self._total = total
        self._done = 0

    def track(self, chunks: Iterable[list[Any]]) -> Iterator[list[Any]]:
        """Pass chunks of rows on, and count each when the next one is requested."""
        for chunk in chunks:
            yield chunk
            self.add(len(chunk))

    def add(self, rows: int) -> None:
        self._done += rows
        if self._on_progress:
            self._on_progress(min(self._done, self._total), self._total)

    def end(self) -> None:
        """Report that all is done: the total was counted beforehand, in part roughly."""
        self.add(self._total - self._done)


SILENT: Final = Progress()
