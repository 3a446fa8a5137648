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
from laudo.client.transports import can_be_reached
from laudo.core.resources import Resource

LARGEST: Final = 100_000_000
"""Bytes that an answer may have: a page of a thousand items has half a million, of the longest texts ten."""

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
        """Read the body of a 200; raises msgspec.DecodeError."""


@dataclass(frozen=True, slots=True)
class Listed(Generic[I]):
    """One page as it came. `cursor` leads to the next where the service offers one; `linhas` is its size as it says."""

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
        shown = result.paginacao
        return Listed(
            result.itens, int(shown.total), shown.atual, shown.linhas, _etag(headers), _cursor(headers.get("link"))
        )

    def at(self, **place: str) -> "ListCall[I]":
        """Give the same question for another place: `page`, `cursor`, `rows`."""
        others = tuple(pair for pair in self.parameters if pair[0] not in {"page", "cursor", *place})
        return ListCall(self.resource, self.item, (*place.items(), *others))

    def unless(self, etag: str | None) -> "ListCall[I]":
        """Give the same question, to be answered only if the answer is not the one with this ETag."""
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
    """The body of an answer as it comes, unpacked: memory is not the service's to fill."""

    __slots__ = ("_left", "_parts", "_response")

    def __init__(self, response: httpx.Response) -> None:
        """Raises AnswerError for one whose next bytes, unpacked, could be more than memory holds."""
        self._response = response
        self._left = LARGEST
        self._parts: list[bytes] = []
        packed = response.headers.get("content-encoding", "")
        if packed.lower() == "x-gzip":
            response.headers["content-encoding"] = "gzip"  # The same, as HTTP has it; httpx knows the one name alone.
        if not _BOUNDED(packed):
            raise self._refused("the answer is packed in another way than was asked for")

    def add(self, part: bytes) -> None:
        """Keep what has come; raises AnswerError when that is more than any page has."""
        self._left -= len(part)
        if self._left < 0:
            raise self._refused(f"the answer is larger than {LARGEST // 1_000_000} MB")
        self._parts.append(part)

    def _refused(self, message: str) -> AnswerError:
        status, request_id = self._response.status_code, self._response.headers.get("x-request-id")
        return AnswerError(message, status=status, request_id=request_id)

    def whole(self) -> bytes:
        """Give all of it, without a mark of its encoding before the text, which JSON allows to pass over."""
        return b"".join(self._parts).removeprefix(BOM_UTF8)


class Wire:
    """Where a service is and who asks: makes requests of calls and values of answers. Shows no token."""

    def __init__(self, base_url: str, token: str) -> None:
        """Raises ParameterError when either cannot be what it should be."""
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
        """Make the request; the specification wants a Content-Type also without a body."""
        kind = "application/x-www-form-urlencoded" if call.parameters else "application/json"
        headers = self._headers | {"Content-Type": kind}
        if call.etag:
            headers["If-None-Match"] = call.etag
        return httpx.Request("GET", address(self.base_url, call), headers=headers, extensions={"timeout": timeout})

    def answer(
        self, call: Call[A_co], status: int, headers: Mapping[str, str], body: bytes
    ) -> A_co | Unchanged | LaudoError:
        """Read an answer: the value, or the exception to raise."""
        if status == errors.NOT_MODIFIED and call.etag:
            return Unchanged()
        if status != _OK:
            return errors.refusal(self.base_url, status, headers, body)
        text = "the answer is not of this contract"
        try:
            return call.read(headers, body)
        except msgspec.DecodeError as error:
            # It names fields and kinds of values: none of ours is of values that it would repeat.
            text = self._foreign(body) or f"{text}: {error}"
        except (ValueError, RecursionError):
            pass
        return AnswerError(text, status=status, request_id=headers.get("x-request-id"))

    def _foreign(self, body: bytes) -> str | None:
        """Say what an answer is that no service of this contract gives; None when it may be JSON."""
        text = body.lstrip()
        if text and not text.startswith(b"<"):
            return None
        what = "a web page, no JSON" if text else "empty"
        hint = "check the address, or whether a proxy or a login stands before it"
        return f"the answer of {self.base_url} is {what}: {hint}"


def check(base_url: str, token: str, *, names: tuple[str, str]) -> None:
    """Raise ParameterError, which calls the two by these names, when either cannot be what it should be."""
    if not _is_address(base_url):
        raise ParameterError(f"{names[0]} must be http:// or https:// and a host, with nothing after its path")
    if not _is_token(token):
        raise ParameterError(f"{names[1]} must be 1 to 4000 visible ASCII characters, without blanks")


def _is_address(text: object) -> bool:
    """Tell whether requests can be made of it."""
    if not isinstance(text, str) or not _ADDRESS(text):
        return False
    try:
        return can_be_reached(httpx.URL(text))
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
    """Give the name of an answer, but for one that cannot be sent back, since it is not ASCII: none is needed."""
    etag = headers.get("etag")
    return etag if etag and etag.isascii() else None


def _cursor(link: str | None) -> str | None:
    """Find the cursor in a Link header; only this is taken of the address, so that no token goes astray."""
    found = _NEXT(link) if link else None
    return dict(parse_qsl(urlsplit(found[1]).query)).get("cursor") if found else None


_OK: Final = 200
_BOUNDED: Final = re.compile(r"(?!br|zstd)[^,]*", re.IGNORECASE).fullmatch
"""Tells one way of packing, of which a byte gives a thousand at most, from several in one another and from others."""
_TOKEN: Final = re.compile(r"[!-~]{1,4000}").fullmatch
_ADDRESS: Final = re.compile(r"https?://[^/?#@\s\\]+(/[^?#\s]*)?", re.IGNORECASE).fullmatch
_NEXT: Final = re.compile(r'<([^<>]*)>\s*;\s*rel="?next"?').search
_PROFILE: Final = msgspec.json.Decoder(_Profile).decode
_LISTS: Final[dict[type[Item], Any]] = {
    Relatorio: msgspec.json.Decoder(_List[Relatorio]).decode,
    Pessoa: msgspec.json.Decoder(_List[Pessoa]).decode,
}
