"""What every request passes on its way in and out: repeats, ids, one shape of refusals, CORS, metrics and the log."""

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
from laudo.server.logs import Entry
from laudo.server.repeats import Repeats

JSON: Final = "application/json; charset=utf-8"
METHODS: Final = "GET, HEAD, OPTIONS"

_FAILURE: Final = "laudo.failure"
"""Key of a request's `environ`: the store's error, if it failed before the application was reached."""
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch
_HALF_BYTES: Final = 4
"""Random bytes in each half of an id: too few digits for the log to mistake them for a CPF."""
_HALVES_DRAWN: Final = 256
"""Halves drawn at once: drawing a single one from the system takes longer than everything else in making an id."""
_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
"""Any other method becomes `other`: it is a text that a client made up, and may be one that Falcon uses itself."""

_TEMPORARY: Final = frozenset({errors.TOO_MANY, errors.UNAVAILABLE})
_CHALLENGE: Final = 'Token realm="api"'
_ALLOWED_HEADERS: Final = "Authorization, Content-Type, If-None-Match, X-Request-Id"
_EXPOSED_HEADERS: Final = "ETag, Link, Retry-After, X-Request-Id"


class Edges:
    """The first and last code to see a request: wraps Falcon's application, and is its middleware."""

    def __init__(self, settings: Settings, repeats: Repeats, limits: Limits) -> None:
        """Request ids are a prefix of this process and random digits, which the log cannot mistake for a CPF."""
        self._prefix = f"{''.join(secrets.choice(ascii_lowercase) for _ in range(9))}-{os.getpid():x}"
        self._halves: list[str] = []
        self._log = settings.log
        self._origins = frozenset(settings.allowed_origins)
        self._observe = metrics.observer(settings)
        self._repeats = repeats
        self._limits = limits

    def wrap(self, app: WSGIApplication) -> WSGIApplication:
        """Wrap `app`: repeated requests are answered without it, and unknown methods are hidden from it."""

        def served(environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
            started = perf_counter()
            if environ["REQUEST_METHOD"] not in _METHODS:
                environ["REQUEST_METHOD"] = "other"
            try:
                repeated = self._repeats.find(environ)
            except StoreError as error:
                repeated, environ[_FAILURE] = None, error
            if repeated is None:
                return app(environ, start)
            request_id = self._request_id(environ)
            start(repeated.status, [*repeated.headers, ("x-request-id", request_id)])
            self._record(request_id, "GET", perf_counter() - started, repeated.entry)
            return repeated.chunks

        return served

    def process_request(self, request: falcon.Request, _answer: falcon.Response) -> None:
        """Start the clock; refuse a path that only looks like a route's."""
        context = request.context
        context.started = perf_counter()
        context.caller = None
        context.filters = ()
        context.is_charged = True
        context.delay = 0.0
        if request.path.startswith("//"):
            raise ApiError(errors.NOT_FOUND)

    def process_resource(
        self, request: falcon.Request, _answer: falcon.Response, _resource: object, _params: object
    ) -> None:
        """Refuse a request if the store has already failed for it."""
        if failure := request.env.get(_FAILURE):
            raise failure

    def process_response(
        self,
        request: falcon.Request,
        answer: falcon.Response,
        resource: Any,  # noqa: ANN401 - Falcon's resources have no common type
        succeeded: bool,  # noqa: FBT001 - Falcon passes it so
    ) -> None:
        """Add the headers of every answer, count it and log it; keep a caller's answer for repeats."""
        answer.set_header("X-Content-Type-Options", "nosniff")
        if self._origins:
            self._allow_origin(request, answer)
        context = request.context
        caller = context.caller
        entry = Entry(
            route=resource.name if resource else "none",
            status=answer.status_code,
            size=0 if request.method == "HEAD" else len(answer.data or b""),
            id_token=caller.id_token if caller else None,
            filters=context.filters,
        )
        if succeeded and caller:
            self._repeats.keep(request.env, caller, entry, answer.headers, answer.data)
        seconds = perf_counter() - context.started
        if caller and context.is_charged:
            self._limits.charge(caller.id_token, seconds - context.delay)
        request_id = self._request_id(request.env)
        answer.set_header("X-Request-Id", request_id)
        self._record(request_id, request.method, seconds, entry)

    def _request_id(self, environ: dict[str, Any]) -> str:
        requested = environ.get("HTTP_X_REQUEST_ID")
        return requested if requested and _REQUEST_ID(requested) else self._new_id()

    def _new_id(self) -> str:
        """Make an id that does not show how many requests came since another one."""
        try:
            return f"{self._prefix}-{self._halves.pop()}-{self._halves.pop()}"
        except IndexError:
            self._halves += secrets.token_bytes(_HALF_BYTES * _HALVES_DRAWN).hex("-", _HALF_BYTES).split("-")
            return self._new_id()

    def _record(self, request_id: str, method: str, seconds: float, entry: Entry) -> None:
        """Count an answer and log it."""
        if self._observe:
            self._observe(entry.route, method, entry.status, seconds)
        if self._log:
            logs.request_line(request_id, method, seconds, entry)

    def _allow_origin(self, request: falcon.Request, answer: falcon.Response) -> None:
        answer.append_header("Vary", "Origin")
        origin = request.env.get("HTTP_ORIGIN")
        if origin not in self._origins:
            return
        answer.set_header("Access-Control-Allow-Origin", origin)
        answer.set_header("Access-Control-Expose-Headers", _EXPOSED_HEADERS)
        if request.method == "OPTIONS":
            answer.set_header("Access-Control-Allow-Methods", METHODS)
            answer.set_header("Access-Control-Allow-Headers", _ALLOWED_HEADERS)
            answer.set_header("Access-Control-Max-Age", "600")


def stages(began: float, **ended: float) -> str:
    """Write `Server-Timing`, the duration of each stage of a request; `ended` has their ends (seconds of one clock)."""
    starts = (began, *ended.values())
    spans = zip(ended.items(), starts, strict=False)
    return ", ".join(f"{name};dur={(end - start) * 1000:.3f}" for (name, end), start in spans)


def add_error_handlers(app: falcon.App[falcon.Request, falcon.Response]) -> None:
    """Make an application answer every error in the same shape."""
    app.add_error_handler(Exception, _on_bug)
    app.add_error_handler(StoreError, _OnStoreFailure(errors.UNAVAILABLE))
    app.add_error_handler(DamagedError, _OnStoreFailure(errors.INTERNAL))
    app.add_error_handler(falcon.HTTPError, _on_falcon_error)
    app.add_error_handler(ApiError, _on_refusal)


def _on_refusal(request: falcon.Request, answer: falcon.Response, refusal: ApiError, _params: object) -> None:
    answer.status = refusal.kind.status
    answer.data = response.error(refusal)
    answer.content_type = JSON
    if refusal.kind is errors.UNAUTHORIZED:
        answer.set_header("WWW-Authenticate", _CHALLENGE)
    if refusal.kind in _TEMPORARY:
        request.context.is_charged = False
        answer.set_header("Retry-After", str(refusal.retry_after))


class _OnStoreFailure:
    """Refuses a request that the store does not answer, and tells the operator why."""

    def __init__(self, kind: errors.Kind) -> None:
        self._kind = kind
        self._log = logs.Throttled()

    def __call__(self, request: falcon.Request, answer: falcon.Response, error: Exception, params: object) -> None:
        self._log.notice(f"store: {error.args[0]}")  # laudo's own text.
        _on_refusal(request, answer, ApiError(self._kind), params)
        request.context.is_charged = isinstance(error, Slow)  # Other failures are no caller's fault.


def _on_falcon_error(request: falcon.Request, answer: falcon.Response, error: falcon.HTTPError, params: object) -> None:
    """Translate Falcon's refusals: unknown paths (404), and methods unknown to a route (405) or to Falcon (400)."""
    if error.status_code == errors.NOT_FOUND.status:
        _on_refusal(request, answer, ApiError(errors.NOT_FOUND), params)
        return
    _on_refusal(request, answer, ApiError(errors.NOT_ALLOWED), params)
    answer.set_header("Allow", METHODS)


def _on_bug(request: falcon.Request, answer: falcon.Response, error: Exception, params: object) -> None:
    """Log the place of a bug, never a value: the text of an exception may quote the request."""
    frames = (f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__))
    logs.notice(f"bug: {type(error).__name__} at {' > '.join(frames)}")
    _on_refusal(request, answer, ApiError(errors.INTERNAL), params)
