"""The one description of each call: what is sent, and how its answer is read; it neither sends nor waits."""

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Generic, Protocol, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import msgspec

from laudo import __version__
from laudo.client import errors
from laudo.client.errors import AnswerError, LaudoError, ParameterError
from laudo.client.items import Item, Pessoa, Relatorio, Usuario
from laudo.client.parameters import Parameters
from laudo.client.transports import has_valid_host
from laudo.core.resources import Resource

LARGEST: Final = 100_000_000
"""The most bytes of an answer: a page of a thousand items has half a million, or ten million with the longest texts."""

A_co = TypeVar("A_co", covariant=True)
I = TypeVar("I", bound=Item)  # noqa: E741 - an item


class Call(Protocol[A_co]):
    """One question."""

    @property
    def path(self) -> str: ...
    @property
    def parameters(self) -> Parameters: ...
    @property
    def etag(self) -> str | None: ...

    def read(self, headers: Mapping[str, str], body: bytes) -> A_co:
        """Read the body of a 200; raises msgspec.DecodeError, ValueError or RecursionError for any other body."""


@dataclass(frozen=True, slots=True)
class Listed(Generic[I]):
    """One page as it came. `cursor` leads to the next one if the service offers that; `linhas` is its stated size."""

    itens: tuple[I, ...] = field(repr=False)
    total: int
    pagina: int
    linhas: int
    etag: str | None = None
    cursor: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The answer is still the one whose ETag was sent."""


@dataclass(frozen=True, slots=True)
class ListCall(Generic[I]):
    """A page of a list."""

    resource: Resource = field(repr=False)
    item: type[I]
    parameters: Parameters = field(default=(), repr=False)
    etag: str | None = None

    @property
    def path(self) -> str:
        return self.resource.name

    def read(self, headers: Mapping[str, str], body: bytes) -> Listed[I]:
        result = _LISTS[self.item](body).result
        paginacao = result.paginacao
        return Listed(
            result.itens,
            int(paginacao.total),
            paginacao.atual,
            paginacao.linhas,
            _etag(headers),
            _cursor(headers.get("link")),
        )

    def at(self, **place: str) -> "ListCall[I]":
        """Give the same question for another place in the list: `page`, `cursor`, `rows`."""
        others = tuple(pair for pair in self.parameters if pair[0] not in {"page", "cursor", *place})
        return ListCall(self.resource, self.item, (*place.items(), *others))

    def if_none_match(self, etag: str | None) -> "ListCall[I]":
        """Give the same question, to be answered in full only if its answer no longer has this ETag."""
        return ListCall(self.resource, self.item, self.parameters, etag)


@dataclass(frozen=True, slots=True)
class UsuarioCall:
    """The caller."""

    path: ClassVar[str] = "usuario"
    parameters: Parameters = field(default=(), repr=False)
    etag: str | None = None

    def read(self, _headers: Mapping[str, str], body: bytes) -> Usuario:
        return _PROFILE(body).result


class Body:
    """The body of an answer as it arrives, decompressed, with a limit: a service must not fill the client's memory."""

    __slots__ = ("_left", "_parts", "_response")

    def __init__(self, response: httpx.Response) -> None:
        """Raises AnswerError for a compression whose next bytes could decompress to more than memory holds."""
        self._response = response
        self._left = LARGEST
        self._parts: list[bytes] = []
        encoding = response.headers.get("content-encoding", "")
        if encoding.lower() == "x-gzip":
            response.headers["content-encoding"] = "gzip"  # The same in HTTP; httpx knows only this name.
        if not _SAFE_ENCODING(encoding):
            raise self._error("the answer is compressed in a way that was not requested")

    def add(self, part: bytes) -> None:
        """Keep a part of the body; raises AnswerError if the whole is larger than any page."""
        self._left -= len(part)
        if self._left < 0:
            raise self._error(f"the answer is larger than {LARGEST // 1_000_000} MB")
        self._parts.append(part)

    def _error(self, message: str) -> AnswerError:
        status, request_id = self._response.status_code, self._response.headers.get("x-request-id")
        return AnswerError(message, status=status, request_id=request_id)

    def whole(self) -> bytes:
        """Give the whole body, without a byte order mark, which JSON allows to ignore."""
        return b"".join(self._parts).removeprefix(BOM_UTF8)


class Wire:
    """A service's address and a token: makes requests from calls, and values from answers. Shows no token."""

    def __init__(self, base_url: str, token: str) -> None:
        """Raises ParameterError if either is malformed."""
        check(base_url, token, names=("base_url", "token"))
        self.base_url = base_url.rstrip("/")
        self._headers = {
            "Authorization": token,
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": f"laudo/{__version__}",
        }

    def __repr__(self) -> str:
        return f"Wire({self.base_url!r})"

    def request(self, call: Call[Any], timeout: dict[str, float | None]) -> httpx.Request:
        """Make the request; the specification asks for a Content-Type even without a body."""
        kind = "application/x-www-form-urlencoded" if call.parameters else "application/json"
        headers = self._headers | {"Content-Type": kind}
        if call.etag:
            headers["If-None-Match"] = call.etag
        return httpx.Request("GET", address(self.base_url, call), headers=headers, extensions={"timeout": timeout})

    def answer(
        self, call: Call[A_co], status: int, headers: Mapping[str, str], body: bytes
    ) -> A_co | Unchanged | LaudoError:
        """Read an answer: gives its value, or the exception to raise."""
        if status == errors.NOT_MODIFIED and call.etag:
            return Unchanged()
        if status != _OK:
            return errors.refusal(self.base_url, status, headers, body)
        text = "the answer does not follow this API"
        try:
            return call.read(headers, body)
        except msgspec.DecodeError as error:
            # msgspec names fields and kinds of values; none of our types makes it repeat a value.
            text = self._not_json(body) or f"{text}: {error}"
        except (ValueError, RecursionError):
            pass
        return AnswerError(text, status=status, request_id=headers.get("x-request-id"))

    def _not_json(self, body: bytes) -> str | None:
        """Say what an answer is that is not JSON; None if it may be JSON."""
        text = body.lstrip()
        if text and not text.startswith(b"<"):
            return None
        what = "a web page, not JSON" if text else "empty"
        hint = "check the address, and whether a proxy or a login page is in front of it"
        return f"the answer of {self.base_url} is {what}: {hint}"


def check(base_url: str, token: str, *, names: tuple[str, str]) -> None:
    """Raise ParameterError, with these names for the two, if either is malformed."""
    check_address(base_url, name=names[0])
    if not _is_token(token):
        raise ParameterError(f"{names[1]} must be 1 to 4000 visible ASCII characters, without spaces")


def check_address(base_url: str, *, name: str) -> None:
    """Raise ParameterError, with this name, if the base URL is malformed."""
    if not _is_address(base_url):
        raise ParameterError(f"{name} must be http:// or https:// and a host, with nothing after the path")


def _is_address(text: object) -> bool:
    """Tell whether requests can be made to this address."""
    if not isinstance(text, str) or not _ADDRESS(text):
        return False
    try:
        return has_valid_host(httpx.URL(text))
    except (httpx.InvalidURL, ValueError):
        return False


def _is_token(text: object) -> bool:
    return isinstance(text, str) and bool(_TOKEN(text))


def address(base_url: str, call: Call[Any]) -> str:
    query = urlencode(call.parameters)
    return f"{base_url}/{call.path}{'?' if query else ''}{query}"


class _Paginacao(msgspec.Struct, gc=False):
    atual: int
    linhas: int
    total: Annotated[int, msgspec.Meta(ge=0, lt=10**15)] | Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,15}\Z")]


class _Itens(msgspec.Struct, Generic[I], gc=False):
    itens: tuple[I, ...]
    paginacao: _Paginacao


class _List(msgspec.Struct, Generic[I], gc=False):
    result: _Itens[I]


class _Profile(msgspec.Struct):
    result: Usuario


def _etag(headers: Mapping[str, str]) -> str | None:
    """Give the ETag of an answer; None if it is not ASCII, since it could not be sent back."""
    etag = headers.get("etag")
    return etag if etag and etag.isascii() else None


def _cursor(link: str | None) -> str | None:
    """Find the cursor in a Link header; nothing else of that address is used, so no token is sent to another host."""
    found = _NEXT(link) if link else None
    return dict(parse_qsl(urlsplit(found[1]).query)).get("cursor") if found else None


_OK: Final = 200
_SAFE_ENCODING: Final = re.compile(r"(?!br|zstd)[^,]*", re.IGNORECASE).fullmatch
"""Accepts one compression that turns a byte into at most a thousand; neither nested compressions nor any others."""
_TOKEN: Final = re.compile(r"[!-~]{1,4000}").fullmatch
_ADDRESS: Final = re.compile(r"https?://[^/?#@\s\\]+(/[^?#\s]*)?", re.IGNORECASE).fullmatch
_NEXT: Final = re.compile(r'<([^<>]*)>\s*;\s*rel="?next"?').search
_PROFILE: Final = msgspec.json.Decoder(_Profile).decode
_LISTS: Final[dict[type[Item], Any]] = {
    Relatorio: msgspec.json.Decoder(_List[Relatorio]).decode,
    Pessoa: msgspec.json.Decoder(_List[Pessoa]).decode,
}
