"""What every request meets on its way in and out: repeats, its id, one shape of refusals, CORS, metrics and the log."""

import os
import re
import secrets
import traceback
from collections.abc import Iterable
from string import ascii_lowercase
from time import perf_counter
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIApplication

import falcon

from laudo.core import errors, response
from laudo.core.errors import ApiError
from laudo.core.lookups import DamagedError
from laudo.server import logs, metrics
from laudo.server.config import Settings
from laudo.server.database import Slow, StoreError
from laudo.server.limits import Limits
from laudo.server.logs import Told
from laudo.server.repeats import Repeats

JSON: Final = "application/json; charset=utf-8"
METHODS: Final = "GET, HEAD, OPTIONS"

_FAILURE: Final = "laudo.failure"
"""Key of a request's `environ`: the store's error, if it failed before the application was reached."""
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch
_HALF: Final = 4
"""Random bytes in each half of an id: too few digits for the log to take them for a CPF."""
_AT_ONCE: Final = 256
"""Halves drawn at once: asking the system for a single one takes longer than all the rest of making an id."""
_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
"""Any other method becomes `other`: it is a text that a client made up, and may be one that Falcon uses itself."""

_MAY_PASS: Final = frozenset({errors.TOO_MANY, errors.UNAVAILABLE})
_CHALLENGE: Final = 'Token realm="api"'
_TAKEN_FROM_SCRIPTS: Final = "Authorization, Content-Type, If-None-Match, X-Request-Id"
_SHOWN_TO_SCRIPTS: Final = "ETag, Link, Retry-After, X-Request-Id"


class Edges:
    """The first and the last to see a request: wraps Falcon's application, and is its middleware."""

    def __init__(self, settings: Settings, repeats: Repeats, limits: Limits) -> None:
        """Request ids are a prefix of this process and random digits, which the log cannot take for a CPF."""
        self._prefix = f"{''.join(secrets.choice(ascii_lowercase) for _ in range(9))}-{os.getpid():x}"
        self._drawn: list[str] = []
        self._log = settings.log
        self._origins = frozenset(settings.allowed_origins)
        self._observe = metrics.observer(settings)
        self._repeats = repeats
        self._limits = limits

    def around(self, app: WSGIApplication) -> WSGIApplication:
        """Wrap `app`: repeated requests are answered without it, and unknown methods are hidden from it."""

        def served(environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
            started = perf_counter()
            if environ["REQUEST_METHOD"] not in _METHODS:
                environ["REQUEST_METHOD"] = "other"
            try:
                given = self._repeats.find(environ)
            except StoreError as error:
                given, environ[_FAILURE] = None, error
            if given is None:
                return app(environ, start)
            request_id = self._request_id(environ)
            start(given.status, [*given.headers, ("x-request-id", request_id)])
            self._tell(request_id, "GET", perf_counter() - started, given.told)
            return given.chunks

        return served

    def process_request(self, request: falcon.Request, _answer: falcon.Response) -> None:
        """Start the clock; refuse a path that only looks like a route's."""
        context = request.context
        context.started = perf_counter()
        context.caller = None
        context.filters = ()
        context.is_charged = True
        context.late = 0.0
        if request.path.startswith("//"):
            raise ApiError(errors.NOT_FOUND)

    def process_resource(
        self, request: falcon.Request, _answer: falcon.Response, _resource: object, _params: object
    ) -> None:
        """Refuse a request for which the store has failed already."""
        if failure := request.env.get(_FAILURE):
            raise failure

    def process_response(
        self,
        request: falcon.Request,
        answer: falcon.Response,
        resource: Any,  # noqa: ANN401 - Falcon's resources have no common type
        succeeded: bool,  # noqa: FBT001 - Falcon passes it so
    ) -> None:
        """Add what every answer carries, count it and log it; keep a caller's answer for repeats."""
        answer.set_header("X-Content-Type-Options", "nosniff")
        if self._origins:
            self._allow_origin(request, answer)
        context = request.context
        caller = context.caller
        told = Told(
            route=resource.name if resource else "none",
            status=answer.status_code,
            size=0 if request.method == "HEAD" else len(answer.data or b""),
            id_token=caller.id_token if caller else None,
            filters=context.filters,
        )
        if succeeded and caller:
            self._repeats.keep(request.env, caller, told, answer.headers, answer.data)
        seconds = perf_counter() - context.started
        if caller and context.is_charged:
            self._limits.charge(caller.id_token, seconds - context.late)
        request_id = self._request_id(request.env)
        answer.set_header("X-Request-Id", request_id)
        self._tell(request_id, request.method, seconds, told)

    def _request_id(self, environ: dict[str, Any]) -> str:
        given = environ.get("HTTP_X_REQUEST_ID")
        return given if given and _REQUEST_ID(given) else self._new_id()

    def _new_id(self) -> str:
        """Make an id from which nobody can tell how many requests came since another one."""
        try:
            return f"{self._prefix}-{self._drawn.pop()}-{self._drawn.pop()}"
        except IndexError:
            self._drawn += secrets.token_bytes(_HALF * _AT_ONCE).hex("-", _HALF).split("-")
            return self._new_id()

    def _tell(self, request_id: str, method: str, seconds: float, told: Told) -> None:
        """Count an answer and log it."""
        if self._observe:
            self._observe(told.route, method, told.status, seconds)
        if self._log:
            logs.request_line(request_id, method, seconds, told)

    def _allow_origin(self, request: falcon.Request, answer: falcon.Response) -> None:
        answer.append_header("Vary", "Origin")
        origin = request.env.get("HTTP_ORIGIN")
        if origin not in self._origins:
            return
        answer.set_header("Access-Control-Allow-Origin", origin)
        answer.set_header("Access-Control-Expose-Headers", _SHOWN_TO_SCRIPTS)
        if request.method == "OPTIONS":
            answer.set_header("Access-Control-Allow-Methods", METHODS)
            answer.set_header("Access-Control-Allow-Headers", _TAKEN_FROM_SCRIPTS)
            answer.set_header("Access-Control-Max-Age", "600")


def stages(began: float, **ended: float) -> str:
    """Write `Server-Timing`: how long each stage of a request took, given when it ended (seconds of one clock)."""
    starts = (began, *ended.values())
    spans = zip(ended.items(), starts, strict=False)
    return ", ".join(f"{name};dur={(end - start) * 1000:.3f}" for (name, end), start in spans)


def refuse(app: falcon.App[falcon.Request, falcon.Response]) -> None:
    """Make an application answer every error in the one shape."""
    app.add_error_handler(Exception, _on_bug)
    app.add_error_handler(StoreError, _Unanswered(errors.UNAVAILABLE))
    app.add_error_handler(DamagedError, _Unanswered(errors.INTERNAL))
    app.add_error_handler(falcon.HTTPError, _on_falcon)
    app.add_error_handler(ApiError, _on_refusal)


def _on_refusal(request: falcon.Request, answer: falcon.Response, refusal: ApiError, _params: object) -> None:
    answer.status = refusal.kind.status
    answer.data = response.error(refusal)
    answer.content_type = JSON
    if refusal.kind is errors.UNAUTHORIZED:
        answer.set_header("WWW-Authenticate", _CHALLENGE)
    if refusal.kind in _MAY_PASS:
        request.context.is_charged = False
        answer.set_header("Retry-After", str(refusal.retry_after))


class _Unanswered:
    """Refuses what the store does not answer, and tells the operator why, who may have to act."""

    def __init__(self, kind: errors.Kind) -> None:
        self._kind = kind
        self._told = logs.Sparing()

    def __call__(self, request: falcon.Request, answer: falcon.Response, error: Exception, params: object) -> None:
        self._told.notice(f"store: {error.args[0]}")  # The text of laudo's own.
        _on_refusal(request, answer, ApiError(self._kind), params)
        request.context.is_charged = isinstance(error, Slow)  # Other failures are no caller's fault.


def _on_falcon(request: falcon.Request, answer: falcon.Response, error: falcon.HTTPError, params: object) -> None:
    """Translate what Falcon refuses: unknown paths (404), and methods unknown to a route (405) or to Falcon (400)."""
    if error.status_code == errors.NOT_FOUND.status:
        _on_refusal(request, answer, ApiError(errors.NOT_FOUND), params)
        return
    _on_refusal(request, answer, ApiError(errors.NOT_ALLOWED), params)
    answer.set_header("Allow", METHODS)


def _on_bug(request: falcon.Request, answer: falcon.Response, error: Exception, params: object) -> None:
    """Log where it broke, never with which value: the text of an exception may quote the request."""
    frames = (f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__))
    logs.notice(f"bug: {type(error).__name__} at {' > '.join(frames)}")
    _on_refusal(request, answer, ApiError(errors.INTERNAL), params)
