"""The HTTP application: routes, and one function that narrates a request for a list."""

from functools import cache, partial
from time import perf_counter
from typing import Final
from wsgiref.types import WSGIApplication

import falcon

from laudo.core import errors, openapi, query, resources, response
from laudo.core.errors import ApiError
from laudo.core.resources import Resource
from laudo.server import console, keys, metrics, schema, tokens
from laudo.server.callers import Caller, Callers, MakeExtra
from laudo.server.config import Settings
from laudo.server.database import NO_SCHEMA, Row, Served, StoreError, Unavailable, read
from laudo.server.edges import JSON, Edges, add_error_handlers, stages
from laudo.server.endpoint import Constant, Endpoint
from laudo.server.forecast import Forecast
from laudo.server.limits import Limits
from laudo.server.pages import Drafter, Pages
from laudo.server.rehearsal import Rehearsal, cutting
from laudo.server.repeats import MARK, Repeats
from laudo.server.replicas import Replicas
from laudo.server.stores import file_path, open_store


def create(settings: Settings, *, database: Served | None = None, key: bytes | None = None) -> WSGIApplication:
    """Build the application; raises StoreError or KeyFileError if it could not answer."""
    service = Service(settings, database or open_served(settings), key or keys.load(settings.key_file))
    edges = Edges(settings, service.repeats, service.limits)
    app = falcon.App(middleware=[edges])
    for path, endpoint in (
        ("/relatorios", List(service, resources.RELATORIOS)),
        ("/pessoas", List(service, resources.PESSOAS)),
        ("/usuario", Profile(service)),
        ("/ready", Ready(service)),
        *_constant_routes(settings.max_rows),
    ):
        app.add_route(path, endpoint)
    add_error_handlers(app)
    return edges.wrap(cutting(app) if settings.rehearse else app)


@cache
def _constant_routes(max_rows: int) -> tuple[tuple[str, Endpoint], ...]:
    """Make the routes whose answers are the same for all applications of a process."""
    document = openapi.document(max_rows=max_rows)
    assets = console.Assets()
    return (
        ("/health", Constant("health", b'{"status":"ok"}')),
        ("/openapi.json", Constant("openapi", openapi.encode(document))),
        ("/docs", assets.docs(document)),
        ("/docs.md", console.markdown(document)),
        ("/", assets.home()),
        *assets.routes,
    )


def open_served(settings: Settings) -> Served:
    """Open what requests are answered from: the store, or the store with its replicas; raises StoreError."""
    if not settings.read_store:
        return open_store(settings.store, bounds=settings.bounds)
    if file_path(settings.store):
        raise StoreError("read_store needs a store on PostgreSQL: a SQLite file has no replicas")
    return Replicas(
        settings.store,
        settings.read_store,
        lag_ms=settings.read_lag_ms,
        bounds=settings.bounds,
        report=metrics.reporter(settings),
    )


class Service:
    """What the endpoints share: the store, who may ask, and the answers that are kept."""

    def __init__(self, settings: Settings, database: Served, key: bytes) -> None:
        """`key` is the one under which tokens are hashed."""
        self.settings = settings
        self.database = database
        self.limits = Limits(settings.rate_limit, settings.busy_limit_ms)
        forecast = Forecast()
        self.callers = Callers(database, key, self.limits, forecast)
        self.pages = Pages(key, cache_bytes=settings.cache_bytes)
        self._rehearsal = Rehearsal(settings.rehearse)
        is_per_request = settings.server_timing or settings.rehearse  # either belongs to one request only
        repeated_bytes = 0 if is_per_request else settings.cache_bytes
        self.repeats = Repeats(database, self.limits, forecast, cache_bytes=repeated_bytes)

    def admit(
        self, request: falcon.Request, token: str, make_extra: MakeExtra | None = None
    ) -> tuple[Caller, list[Row] | None]:
        """Give the caller, and the rows of the query from `make_extra`; raises ApiError (401, 429, or as rehearsed)."""
        caller, rows = self.callers.admit(request.env[MARK], token, make_extra)
        request.context.caller = caller
        self.limits.spend(caller.id_token)
        request.context.delay = self._rehearsal.befall(request.env)
        return caller, rows


class List(Endpoint):
    """One of the two lists."""

    def __init__(self, service: Service, resource: Resource) -> None:
        self.name = resource.name
        self._service = service
        self._resource = resource

    def on_get(self, request: falcon.Request, answer: falcon.Response) -> None:
        """Narrate a request: the token, the caller, the question; then a kept answer, or one snapshot of the store."""
        service = self._service
        began = perf_counter()
        token = presented(request)
        if_none_match = request.env.get("HTTP_IF_NONE_MATCH")
        parse = partial(query.parse, self._resource, request.env["QUERY_STRING"], max_rows=service.settings.max_rows)
        drafter = Drafter(service.pages, service.database.dialect, parse, if_none_match=if_none_match)
        caller, rows = service.admit(request, token, drafter)
        admitted = perf_counter()
        question = parse()
        request.context.filters = question.names
        parsed = perf_counter()
        found = service.pages.kept(caller, question, if_none_match=if_none_match)
        if found is None:
            found = service.pages.answer_in_one_statement(service.database, caller, question, drafter.draft, rows)
        if found is None:
            found = read(
                service.database,
                lambda connection: service.pages.answer(connection, caller, question, if_none_match=if_none_match),
            )
        if isinstance(found, str):
            answer.status = falcon.HTTP_304
            answer.set_headers((*_LIST_HEADERS, ("ETag", found)))
        else:
            answer.data = found.body
            answer.set_headers((*_LIST_HEADERS, ("Content-Type", JSON), ("ETag", found.etag), ("Link", found.link)))
        if service.settings.server_timing:
            answer.set_header("Server-Timing", stages(began, auth=admitted, parse=parsed, answer=perf_counter()))

    on_head = on_get


class Profile(Endpoint):
    """`/usuario`: the user who is asking."""

    name = "usuario"

    def __init__(self, service: Service) -> None:
        self._service = service

    def on_get(self, request: falcon.Request, answer: falcon.Response) -> None:
        """Narrate a request for the profile."""
        service, token = self._service, presented(request)
        caller, _ = service.admit(request, token)
        query.parse_none(request.env["QUERY_STRING"])
        answer.data = response.profile(
            {
                "api_token": token,
                "email": caller.email,
                "nome_usuario": caller.nome_usuario,
                "webhook_url": caller.webhook_url,
                "nome_organizacao": caller.nome_organizacao,
                "id_organizacao": str(caller.id_organizacao),
            }
        )
        answer.content_type = JSON
        answer.set_header("Cache-Control", "no-store")

    on_head = on_get


class Ready(Endpoint):
    """`/ready`: whether the store answers and its schema is not older than this version's."""

    name = "ready"

    def __init__(self, service: Service) -> None:
        self._service = service

    def on_get(self, _request: falcon.Request, answer: falcon.Response) -> None:
        """Ask the store; raises Unavailable."""
        if not read(self._service.database, schema.is_current):
            raise Unavailable(NO_SCHEMA)
        answer.data = b'{"status":"ok"}'
        answer.content_type = JSON

    on_head = on_get


def presented(request: falcon.Request) -> str:
    """Give the token of a request; raises ApiError (401) when there is none that could be one."""
    token = tokens.presented(request.env.get("HTTP_AUTHORIZATION"))
    if token is None:
        raise ApiError(errors.UNAUTHORIZED)
    return token


_LIST_HEADERS: Final = (("Cache-Control", "private, no-cache"), ("Vary", "Authorization"))
