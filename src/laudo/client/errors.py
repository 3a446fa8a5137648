"""What can go wrong with a call: the tree of exceptions, and the one place that turns an answer into one of them.

LaudoError
├── ParameterError      refused before anything was sent: a parameter that no service of this contract accepts
├── TransportError      no whole answer: no connection, a reset, half a body
│   └── DeadlineError   no whole answer in time
├── AnswerError         an answer that is not of this contract
├── StatusError         an answer that refuses
│   ├── BadRequestError     400, or 422 as others answer; `keys` names the parameters
│   ├── UnauthorizedError   401
│   ├── RateLimitError      429, `retry_after` in seconds
│   └── ServerError         500 and above, `retry_after` in seconds
└── NotReadyError       `wait_for` has waited long enough
"""

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from time import time
from typing import Annotated, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from laudo.core import disclosure

S = TypeVar("S", bound=msgspec.Struct)

NOT_MODIFIED: Final = 304
CLOSED: Final = "the client is closed"
NOT_PICKLABLE: Final = (
    "clients hold a token, so they and their pages cannot be pickled; create a client in each process"
)
UNEXPECTED_304: Final = "the service says that nothing has changed, but the request did not ask that"


class LaudoError(Exception):
    """Any failure of a call.

    `status` is that of the answer, or of a proxy's refusal, and `request_id` its X-Request-Id; None where there is
    none. No text holds a token or a value of a parameter, unless the service put one into `message`.
    """

    def __init__(self, message: str, *, status: int | None = None, request_id: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.request_id = request_id

    def __str__(self) -> str:
        notes = self._notes()
        return f"{self.message} ({', '.join(notes)})" if notes else self.message

    def _notes(self) -> list[str]:
        status = [f"status {self.status}"] if self.status is not None else []
        return [*status, *([f"request {self.request_id}"] if self.request_id else [])]


class ParameterError(LaudoError, ValueError):
    """A parameter was refused before anything was sent."""


class TransportError(LaudoError):
    """No whole answer came."""


class DeadlineError(TransportError):
    """No whole answer came in time."""


class AnswerError(LaudoError):
    """The answer is not of this contract; the text names the field and the place, never the value found there."""


class NotReadyError(LaudoError):
    """The report is not CONCLUIDO yet, or not listed yet, and the time to wait is over."""


class StatusError(LaudoError):
    """The service refused; `keys` are the parameters at fault, `retry_after` the seconds that it asks to wait."""

    keys: tuple[str, ...] = ()
    retry_after: float | None = None

    def _notes(self) -> list[str]:
        wait = [f"retry after {max(1.0, self.retry_after):.0f} s"] if self.retry_after else []
        return [*super()._notes(), *wait]


class BadRequestError(StatusError):
    """400, or 422 as others answer: a parameter is not accepted."""


class UnauthorizedError(StatusError):
    """401: the token is not valid."""


class RateLimitError(StatusError):
    """429: too many requests."""


class ServerError(StatusError):
    """500 and above: the service cannot answer."""


def refusal(base_url: str, status: int, headers: Mapping[str, str], body: bytes) -> LaudoError:
    """Make the exception for an answer that is no 200."""
    request_id = headers.get("x-request-id")
    if status < _FIRST_REFUSAL:
        return AnswerError(_unexpected_status(base_url, status, headers), status=status, request_id=request_id)
    message = _decoded(body, _Message).message or _fallback_message(status)
    error = _kind(status)(message, status=status, request_id=request_id)
    error.keys = _decoded(body, _Fault).validation.keys
    error.retry_after = _seconds(headers.get("retry-after"))
    return error


@disclosure.nothing
class _Message(msgspec.Struct):
    message: Annotated[str, msgspec.Meta(max_length=10_000)] = ""
    """No longer than what our service says about 32 parameters: more would only fill a log."""


@disclosure.nothing
class _Validation(msgspec.Struct):
    keys: tuple[str, ...] = ()


class _Fault(msgspec.Struct):
    validation: _Validation = msgspec.field(default_factory=_Validation)


def _unexpected_status(base_url: str, status: int, headers: Mapping[str, str]) -> str:
    if status == NOT_MODIFIED:
        return UNEXPECTED_304
    if status < _FIRST_REDIRECT:
        return "the status is not 200"
    is_to_https = _redirects_to_https(base_url, headers.get("location", ""))
    hint = "its address probably begins with https://" if is_to_https else "check the address"
    return f"the service redirects, and redirects are not followed; {hint}"


def _redirects_to_https(base_url: str, location: str) -> bool:
    """Tell whether a redirect leads from http to https on the same host."""
    try:
        source, target = urlsplit(base_url), urlsplit(location)
    except ValueError:
        return False
    return (source.scheme, target.scheme) == ("http", "https") and source.hostname == target.hostname


def _fallback_message(status: int) -> str:
    """Say what a refusal without a message means: it may come from a proxy or from another kind of service."""
    if status >= _FIRST_SERVER_ERROR:
        return "the service, or a proxy in front of it, cannot answer"
    return _FALLBACK_MESSAGES.get(status, "the service refused the request")


def _decoded(body: bytes, kind: type[S]) -> S:
    """Read one part of a refusal's body; a body of another form, such as a proxy's page, gives the defaults."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return kind()


def _kind(status: int) -> type[StatusError]:
    return ServerError if status >= _FIRST_SERVER_ERROR else _KINDS.get(status, StatusError)


def _seconds(text: str | None) -> float | None:
    """Read Retry-After, a number of seconds or a date (UTC if it has no zone); None if it is neither."""
    if not text:
        return None
    if text.isdecimal():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time())
    except (ValueError, OverflowError):
        return None


_FIRST_REDIRECT: Final = 300
_FIRST_REFUSAL: Final = 400
_FIRST_SERVER_ERROR: Final = 500
_FALLBACK_MESSAGES: Final = {
    404: "this API was not found there; check the address",
    407: "the proxy refused the request; check the user name and password in its address",
}
_KINDS: Final[dict[int, type[StatusError]]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    422: BadRequestError,
    429: RateLimitError,
}
