"""What every route answers besides GET, and the routes whose answer never changes while the process lives."""

from collections.abc import Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Final

import falcon

from laudo.server.edges import JSON, METHODS

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Endpoint:
    """What every route answers besides GET."""

    name: str

    def on_options(self, _request: falcon.Request, answer: falcon.Response) -> None:
        answer.status = falcon.HTTP_204
        answer.set_header("Allow", METHODS)


class Constant(Endpoint):
    """A route whose answer never changes while the process lives."""

    def __init__(self, name: str, body: bytes, *, content_type: str = JSON, headers: Mapping[str, str] = _NONE) -> None:
        """With `Cache-Control` among `headers`, the answer has an ETag, and is 304 for a client that has it."""
        self.name = name
        self._body = body
        self._content_type = content_type
        self._headers = dict(headers)
        if "Cache-Control" in headers:
            self._headers["ETag"] = f'"{blake2b(body, digest_size=12).hexdigest()}"'

    def on_get(self, request: falcon.Request, answer: falcon.Response) -> None:
        answer.set_headers(self._headers)
        etag = self._headers.get("ETag")
        if etag and matches(request.env.get("HTTP_IF_NONE_MATCH"), etag):
            answer.status = falcon.HTTP_304
            return
        answer.data = self._body
        answer.content_type = self._content_type

    on_head = on_get


def matches(if_none_match: str | None, etag: str) -> bool:
    """Tell whether an If-None-Match lists an ETag, perhaps among others."""
    if if_none_match is None:
        return False
    if if_none_match == etag or if_none_match.strip() == "*":
        return True
    before, found, after = if_none_match.partition(etag)
    is_separate = before.removesuffix("W/").rstrip()[-1:] in {"", ","} and after.lstrip()[:1] in {"", ","}
    return bool(found) and is_separate
