"""Waits for one report to be CONCLUIDO: what to ask, and how long to pause; it neither sends nor waits."""

from typing import Final

from laudo.client.calls import ListCall, Listed, Unchanged
from laudo.client.errors import NotReadyError, ParameterError
from laudo.client.items import Relatorio
from laudo.client.retries import Timing

DONE: Final = "CONCLUIDO"


class Watch:
    """One wait. An answer that has not changed costs the service, where it knows ETags, next to nothing."""

    __slots__ = ("_call", "_end", "_etag", "_pause", "_timing")

    def __init__(self, call: ListCall[Relatorio], *, timeout: float, timing: Timing) -> None:
        """`timeout` in seconds, above 0."""
        if timeout <= 0:
            raise ParameterError("timeout must be above 0 seconds")
        self._call = call
        self._timing = timing
        self._end = timing.now() + timeout
        self._pause = _FIRST
        self._etag: str | None = None

    def call(self) -> ListCall[Relatorio]:
        return self._call.unless(self._etag)

    def see(self, answer: Listed[Relatorio] | Unchanged) -> Relatorio | None:
        """Give the report if it is done."""
        if isinstance(answer, Unchanged):
            return None
        self._etag = answer.etag
        return next((item for item in answer.itens if item.status == DONE), None)

    def pause(self) -> float:
        """Give the seconds until the next question, more each time; raises NotReadyError when the time is over."""
        left = self._end - self._timing.now()
        if left <= 0:
            raise NotReadyError("the report is not CONCLUIDO, and the time to wait is over")
        pause = min(left, self._pause * (0.75 + self._timing.chance() / 2))
        self._pause = min(_LONGEST, self._pause * _GROWTH)
        return pause


_FIRST: Final = 0.5
_GROWTH: Final = 1.5
_LONGEST: Final = 15.0
