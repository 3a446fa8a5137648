"""Sends requests to a WSGI application without a socket, and returns exactly what it answers."""

import io
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import unquote_to_bytes, urlencode, urljoin
from wsgiref.types import WSGIApplication

from laudo.server.database import Database

_LINK: Final = re.compile(r'<([^<>]*)>; rel="(\w+)"(?:, |$)').findall


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON is anything
        return json.loads(self.body)

    @property
    def itens(self) -> list[dict[str, Any]]:
        assert self.status == 200, self.body
        itens: list[dict[str, Any]] = self.json["result"]["itens"]
        return itens

    @property
    def total(self) -> int:
        assert self.status == 200, self.body
        return int(self.json["result"]["paginacao"]["total"])

    @property
    def keys(self) -> list[str]:
        """The parameters that a 400 names."""
        assert self.status == 400, self.body
        keys: list[str] = self.json["validation"]["keys"]
        return keys

    @property
    def links(self) -> dict[str, str]:
        """The URLs of the `Link` header by relation, resolved against the root, where the lists are."""
        return {relation: urljoin("/", url) for url, relation in _LINK(self.headers["link"])}

    @property
    def relations(self) -> set[str]:
        """The relations of the `Link` header, which suffice for most comparisons."""
        return {relation for _, relation in _LINK(self.headers["link"])}

    @property
    def stable_headers(self) -> dict[str, str]:
        """All headers except the one that differs with every request."""
        return {name: value for name, value in self.headers.items() if name != "x-request-id"}


class Client:
    """Sends requests with one token, or without any."""

    def __init__(self, app: WSGIApplication, token: str | None) -> None:
        self._app = app
        self._headers = {} if token is None else {"Authorization": token}

    def nobody(self) -> "Client":
        """Return a client of the same application without a token."""
        return Client(self._app, None)

    def get(self, url: str, /, **parameters: object) -> Answer:
        """Send GET; `parameters` are encoded and appended to those in the URL."""
        return self.ask("GET", _joined(url, parameters))

    def walk(self, url: str) -> Iterator[Answer]:
        """Yield a page and all that follow it by `next`."""
        following: str | None = url
        while following is not None:
            answer = self.get(following)
            yield answer
            following = answer.links.get("next")

    def head(self, url: str) -> Answer:
        return self.ask("HEAD", url)

    def ask(self, method: str, url: str, *, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Answer:
        """Send any request; the query string is sent as it is written, in UTF-8."""
        environ = _environ(method, url, {**self._headers, **(headers or {})}, body)
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, answered: list[tuple[str, str]], _error: object = None) -> None:
            started.append((status, answered))

        chunks = self._app(environ, start)  # type: ignore[arg-type]
        content = b"".join(chunks)
        getattr(chunks, "close", int)()
        [(status, answered)] = started
        named = {name.lower(): value for name, value in answered}
        assert len(named) == len(answered), "a header appears twice"
        return Answer(int(status[:3]), named, content)


class NewClient(Protocol):
    def __call__(self, token: str | None, /, **settings: object) -> Client:
        """Make a client of an application with these settings."""


class NewApp(Protocol):
    def __call__(self, database: Database | None = None, /, **settings: object) -> WSGIApplication:
        """Make an application over the test's store, or over another database."""


def _joined(url: str, parameters: Mapping[str, object]) -> str:
    if not parameters:
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}"


def _environ(method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    path, _, query_string = url.partition("?")
    named = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if f"HTTP_{name}" in named:
            named[name] = named.pop(f"HTTP_{name}")
    return {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query_string.encode().decode("latin-1"),
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        **named,
    }
