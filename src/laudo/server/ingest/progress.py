"""How far a long reading of the store is: the rows done, out of all."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

Told = Callable[[int, int], None]
"""Called with the rows done, and how many there are in all."""


class Progress:
    """Counts rows done and tells of them."""

    __slots__ = ("_done", "_told", "_total")

    def __init__(self, told: Told | None = None, total: int = 0) -> None:
        """Without `told`, nothing is reported."""
        self._told = told
        self._total = total
        self._done = 0

    def following(self, chunks: Iterable[list[Any]]) -> Iterator[list[Any]]:
        """Pass chunks of rows on, and count each once the next one is asked for."""
        for chunk in chunks:
            yield chunk
            self.add(len(chunk))

    def add(self, rows: int) -> None:
        """Count rows done."""
        self._done += rows
        if self._told:
            self._told(min(self._done, self._total), self._total)

    def end(self) -> None:
        """Report that all is done: the total was counted beforehand, in part roughly."""
        self.add(max(self._total - self._done, 0))


SILENT: Final = Progress()
