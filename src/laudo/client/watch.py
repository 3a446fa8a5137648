"""Waits for one report to be CONCLUIDO: what to ask, and how long to pause; it neither sends nor sleeps."""

from dataclasses import replace
from typing import Final
from uuid import UUID

from laudo.client import questions
from laudo.client.calls import ListCall, Listed, Unchanged
from laudo.client.errors import AnswerError, DeadlineError, LaudoError, NotReadyError, StatusError
from laudo.client.items import Relatorio
from laudo.client.retries import Limits, Timing, check_seconds, is_transient

DONE: Final = "CONCLUIDO"


class Watch:
    """One wait. If the service knows ETags, an answer that has not changed costs it next to nothing."""

    def __init__(self, numero: str | UUID, *, timeout: float, timing: Timing) -> None:
        """`timeout` is in seconds, above 0; raises ParameterError, also if `numero` is malformed."""
        check_seconds("timeout", timeout)
        self._call = questions.counted(questions.relatorios({"numero": numero or ""}))
        self._numero = str(numero).lower()
        self._timing = timing
        self._end = timing.now() + timeout
        self._margin = min(_MARGIN, timeout / 10)
        self._pause = _FIRST_PAUSE
        self._etag: str | None = None
        self._failure: LaudoError | None = None
        self._retry_after = 0.0
        self._status: str | None = None

    def call(self) -> ListCall[Relatorio]:
        return self._call.if_none_match(self._etag)

    def limits(self, usual: Limits) -> Limits:
        """Give the limits of the next call, which takes no longer than the wait."""
        return replace(usual, deadline=max(min(usual.deadline, self._left), _LEAST_DEADLINE))

    def take(self, answer: Listed[Relatorio] | Unchanged) -> Relatorio | None:
        """Give the report if it is done; raises AnswerError if another report came."""
        self._failure, self._retry_after = None, 0.0
        if isinstance(answer, Unchanged):
            return None
        self._etag = answer.etag
        if any(item.numero.lower() != self._numero for item in answer.itens):
            raise AnswerError("the answer holds a report that was not requested")
        for item in answer.itens:
            self._status = item.status
        return next((item for item in answer.itens if item.status == DONE), None)

    def note_failure(self, failure: LaudoError) -> None:
        """Note why there was no answer; raises the failure if it will not pass while the wait lasts.

        A question cut off by the end of the wait is no failure.
        """
        retry_after = isinstance(failure, StatusError) and failure.retry_after
        if not is_transient(failure) or (retry_after and retry_after > self._until_last_call):
            raise failure
        if self._until_last_call > 0 or not isinstance(failure, DeadlineError):
            self._failure = failure
        self._retry_after = retry_after or 0.0

    def pause(self) -> float:
        """Give the seconds until the next question, more each time; raises NotReadyError if the time is over.

        If the last questions had no answer, their failure is raised instead. The last question comes a second before
        the end, or less, so that it can be answered.
        """
        left = self._until_last_call
        if left <= 0:
            raise self._failure or NotReadyError(f"timed out: {self._last_seen}")
        pause = min(left, max(self._retry_after, self._pause * (0.75 + self._timing.chance() / 2)))
        self._pause = min(_LONGEST_PAUSE, self._pause * _GROWTH)
        return pause

    @property
    def _last_seen(self) -> str:
        """Say what was last seen of the report; if it was never seen, its numero or the token may be wrong."""
        if self._status is None:
            return "the service shows no report with this numero to this token"
        return f"the report is {self._status}, not {DONE}"

    @property
    def _left(self) -> float:
        return self._end - self._timing.now()

    @property
    def _until_last_call(self) -> float:
        return self._left - self._margin


_LEAST_DEADLINE: Final = 0.001
_FIRST_PAUSE: Final = 0.5
_MARGIN: Final = 1.0
_GROWTH: Final = 1.5
_LONGEST_PAUSE: Final = 15.0
