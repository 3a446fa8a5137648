"""Waits for one report to be CONCLUIDO: what to ask, and how long to pause; it neither sends nor sleeps."""

from dataclasses import replace
from typing import Final
from uuid import UUID

from laudo.client import questions
from laudo.client.calls import ListCall, Listed, Unchanged
from laudo.client.errors import AnswerError, DeadlineError, LaudoError, NotReadyError, StatusError
from laudo.client.items import Relatorio
from laudo.client.retries import Limits, Timing, check_seconds, is_passing

DONE: Final = "CONCLUIDO"


class Watch:
    """One wait. If the service knows ETags, an answer that has not changed costs it next to nothing."""

    __slots__ = ("_call", "_end", "_etag", "_failure", "_last", "_least", "_numero", "_pause", "_status", "_timing")

    def __init__(self, numero: str | UUID, *, timeout: float, timing: Timing) -> None:
        """`timeout` is in seconds, above 0; raises ParameterError, also if `numero` is malformed."""
        check_seconds("timeout", timeout)
        self._call = questions.counted(questions.relatorios({"numero": numero or ""}))
        self._numero = str(numero).lower()
        self._timing = timing
        self._end = timing.now() + timeout
        self._last = min(_LAST, timeout / 10)
        self._pause = _FIRST
        self._etag: str | None = None
        self._failure: LaudoError | None = None
        self._least = 0.0
        self._status: str | None = None

    def call(self) -> ListCall[Relatorio]:
        return self._call.unless(self._etag)

    def limits(self, usual: Limits) -> Limits:
        """Give the limits of the next call, which takes no longer than the wait."""
        return replace(usual, deadline=max(min(usual.deadline, self._left), _LEAST))

    def see(self, answer: Listed[Relatorio] | Unchanged) -> Relatorio | None:
        """Give the report if it is done; raises AnswerError if another report came."""
        self._failure, self._least = None, 0.0
        if isinstance(answer, Unchanged):
            return None
        self._etag = answer.etag
        if any(item.numero.lower() != self._numero for item in answer.itens):
            raise AnswerError("the answer holds a report that was not requested")
        for item in answer.itens:
            self._status = item.status
        return next((item for item in answer.itens if item.status == DONE), None)

    def missed(self, failure: LaudoError) -> None:
        """Note why there was no answer; raises the failure if it will not pass while the wait lasts.

        A question that the end of the wait cuts off counts as no failure.
        """
        asked = isinstance(failure, StatusError) and failure.retry_after
        if not is_passing(failure) or (asked and asked > self._until_last):
            raise failure
        if self._until_last > 0 or not isinstance(failure, DeadlineError):
            self._failure = failure
        self._least = asked or 0.0

    def pause(self) -> float:
        """Give the seconds until the next question, more each time; raises NotReadyError if the time is over.

        If the last questions had no answer, their failure is raised instead. The last question comes a second before
        the end, or less, so that it can be answered.
        """
        left = self._until_last
        if left <= 0:
            raise self._failure or NotReadyError(f"timed out: {self._seen}")
        pause = min(left, max(self._least, self._pause * (0.75 + self._timing.chance() / 2)))
        self._pause = min(_LONGEST, self._pause * _GROWTH)
        return pause

    @property
    def _seen(self) -> str:
        """Say what was seen of the report; if nothing was, its numero or the token may be wrong."""
        if self._status is None:
            return "the service shows no report with this numero to this token"
        return f"the report is {self._status}, not {DONE}"

    @property
    def _left(self) -> float:
        return self._end - self._timing.now()

    @property
    def _until_last(self) -> float:
        return self._left - self._last


_LEAST: Final = 0.001
_FIRST: Final = 0.5
_LAST: Final = 1.0
_GROWTH: Final = 1.5
_LONGEST: Final = 15.0
