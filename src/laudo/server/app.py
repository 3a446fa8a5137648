"""The HTTP application: routes, and one function that narrates a request for a list."""

from contextlib import AbstractContextManager
from functools import lru_cache, partial
from time import time_ns
from typing import Final

import falcon

from laudo.core import errors, openapi, query, reference, resources, response, sql
from laudo.core.errors import ApiError
from laudo.core.resources import Resource
from laudo.core.sql import Owner
from laudo.server import auth, migrations
from laudo.server.auth import Caller
from laudo.server.config import Settings
from laudo.server.database import Connection, Database, Reader, Unavailable, open_store
from laudo.server.edges import JSON, Edges, Stages, refuse
from laudo.server.limits import Limits

App = falcon.App[falcon.Request, falcon.Response]

_REMEMBERED: Final = 1000
"""Tokens whose hashes a worker keeps in memory."""

_PAGES: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def create(settings: Settings, *, database: Database | None = None) -> App:
    """Build the WSGI application; raises StoreError or AuthError when it could not answer."""
    service = Service(settings, database or open_store(settings.store))
    app = falcon.App(middleware=[Edges(settings)])
    document = openapi.document(max_rows=settings.max_rows)
    for path, endpoint in (
        ("/relatorios", List(service, resources.RELATORIOS)),
        ("/pessoas", List(service, resources.PESSOAS)),
        ("/usuario", Profile(service)),
        ("/health", Constant("health", b'{"status":"ok"}')),
        ("/ready", Ready(service)),
        ("/openapi.json", Constant("openapi", openapi.encode(document))),
        ("/docs", Constant("docs", reference.page(document), content_type=falcon.MEDIA_HTML, policy=_PAGES)),
        ("/", Constant("home", reference.home(), content_type=falcon.MEDIA_HTML, policy=_PAGES)),
    ):
        app.add_route(path, endpoint)
    refuse(app)
    return app


class Service:
    """What the endpoints share: the store, the tokens' key, the limits."""

    def __init__(self, settings: Settings, database: Database) -> None:
        """Raises AuthError when the key file cannot be used."""
        self.settings = settings
        self.database = database
        key = auth.load_key(settings.key_file, create=False)
        # A client sends one token with all its requests; whether it may still ask is read from the store each time.
        self._hash = lru_cache(maxsize=_REMEMBERED)(partial(auth.hash_token, key))
        self._limits = Limits(settings.rate_limit)

    def snapshot(self) -> AbstractContextManager[Connection]:
        """Give a connection whose reads all see one state of the store."""
        return self.database.snapshot()

    def admit(self, reader: Reader, token: str) -> Caller:
        """Tell whose token it is; raises ApiError (401, 429)."""
        caller = auth.caller(reader, self._hash(token), now_ms=time_ns() // 1_000_000)
        if caller is None:
            raise ApiError(errors.UNAUTHORIZED)
        self._limits.spend(caller.id_token)
        return caller


class Endpoint:
    """What every route answers beside GET."""

    name: str

    def on_options(self, _request: falcon.Request, answer: falcon.Response) -> None:
        """Name the methods."""
        answer.status = falcon.HTTP_204
        answer.set_header("Allow", "GET, HEAD, OPTIONS")


class List(Endpoint):
    """One of the two lists."""

    def __init__(self, service: Service, resource: Resource) -> None:
        """Answer for one resource of the table."""
        self.name = resource.name
        self._service = service
        self._resource = resource

    def on_get(self, request: falcon.Request, answer: falcon.Response) -> None:
        """Narrate a request: the token, the caller, the question, one snapshot of the store, the body."""
        stages = Stages(answer, shown=self._service.settings.server_timing)
        token = presented(request)
        with self._service.snapshot() as connection:
            caller = self._service.admit(connection, token)
            request.context.id_token = caller.id_token
            stages.mark("auth")
            asked = query.parse(self._resource, request.env["QUERY_STRING"], max_rows=self._service.settings.max_rows)
            request.context.filters = asked.names
            stages.mark("parse")
            owner = Owner(caller.id_organizacao, caller.id_conta)
            [(total,)] = connection.fetch(sql.total(asked, owner))
            [(items,)] = connection.fetch(sql.page(asked, owner))
            stages.mark("database")
        answer.data = response.page(asked, items=items, total=total)
        answer.content_type = JSON
        answer.set_headers(_LIST_HEADERS)
        stages.mark("encode")
        stages.write()

    on_head = on_get


class Profile(Endpoint):
    """`/usuario`: who asks."""

    name = "usuario"

    def __init__(self, service: Service) -> None:
        """Answer for the callers of a service."""
        self._service = service

    def on_get(self, request: falcon.Request, answer: falcon.Response) -> None:
        """Narrate a request for the profile."""
        token = presented(request)
        caller = self._service.admit(self._service.database, token)
        request.context.id_token = caller.id_token
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
    """`/ready`: whether the store answers and its schema is this version's."""

    name = "ready"

    def __init__(self, service: Service) -> None:
        """Answer for the store of a service."""
        self._service = service

    def on_get(self, _request: falcon.Request, answer: falcon.Response) -> None:
        """Ask the store; raises Unavailable."""
        with self._service.snapshot() as connection:
            if not migrations.is_current(connection):
                message = "the store's schema is not current"
                raise Unavailable(message)
        answer.data = b'{"status":"ok"}'
        answer.content_type = JSON

    on_head = on_get


class Constant(Endpoint):
    """A route whose answer never changes while the process lives."""

    def __init__(self, name: str, body: bytes, *, content_type: str = JSON, policy: str = "") -> None:
        """`policy` is the Content-Security-Policy of a page."""
        self.name = name
        self._body = body
        self._content_type = content_type
        self._policy = policy

    def on_get(self, _request: falcon.Request, answer: falcon.Response) -> None:
        """Give the body."""
        answer.data = self._body
        answer.content_type = self._content_type
        if self._policy:
            answer.set_header("Content-Security-Policy", self._policy)

    on_head = on_get


def presented(request: falcon.Request) -> str:
    """Give the token of a request; raises ApiError (401) when there is none that could be one."""
    token = auth.presented(request.env.get("HTTP_AUTHORIZATION"))
    if token is None:
        raise ApiError(errors.UNAUTHORIZED)
    return token


_LIST_HEADERS: Final = {"Cache-Control": "private, no-cache", "Vary": "Authorization"}
