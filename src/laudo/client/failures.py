"""Why no answer came: the one place that turns what the HTTP library and the system say into our own words."""

import errno
import os
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Final, TypeVar

import httpx

from laudo.client.errors import DeadlineError, TransportError

T = TypeVar("T", bound=TransportError)


def _of_socks() -> tuple[type[Exception], ...]:
    """Give the error of a SOCKS proxy's library, raised if the proxy breaks off or is none: httpx lets it through."""
    with suppress(ImportError):
        return (import_module("socksio.exceptions").SOCKSError,)
    return ()


_PROXY: Final[tuple[type[Exception], ...]] = (httpx.ProxyError, *_of_socks())
UNANSWERED: Final[tuple[type[Exception], ...]] = (httpx.RequestError, httpx.StreamError, *_PROXY)
"""What the HTTP library raises if no whole answer came."""


def unanswered(base_url: str, error: Exception, *, proxy: str | None) -> TransportError:
    """Make the exception for a call that had no whole answer, from the service or from a proxy before it.

    The library's exception is kept as the cause only if there was no connection: later ones may quote what was sent or
    received.
    """
    if isinstance(error, httpx.ConnectTimeout):
        text = f"connecting to {_by_way(base_url, proxy)} timed out; check the address and the network"
        return _because(error, DeadlineError(text))
    if isinstance(error, httpx.TimeoutException):
        return late(base_url)
    if isinstance(error, _PROXY):
        return _refused_by_proxy(base_url, error, proxy)
    if isinstance(error, httpx.ConnectError):
        return _because(error, TransportError(_unconnected(base_url, _of_system(error), proxy)))
    return TransportError(f"incomplete answer from {base_url}: {_broken_off(error)}")


def late(base_url: str) -> DeadlineError:
    """Make the exception for an answer that takes too long."""
    return DeadlineError(f"{base_url} did not answer in time")


def _unconnected(base_url: str, error: OSError | None, proxy: str | None) -> str:
    """Say to whom there is no connection, and why; if service and proxy both speak TLS, nobody knows which it was."""
    if isinstance(error, ssl.SSLCertVerificationError):
        said = error.verify_message.rstrip(".")
        hint = _CERTIFICATES.get(error.verify_code, "with whoever runs the service")
        return f"the certificate of {_with_tls(base_url, proxy)} is not trusted: {said}; check {hint}"
    if isinstance(error, ssl.SSLError):
        what, hint = (
            error.reason or "the connection was closed",
            "its port, and whether its address should begin with http://",
        )
        return f"cannot establish TLS with {_with_tls(base_url, proxy)}: {what}; check {hint}"
    what, hint = _meaning(error)
    if proxy and not isinstance(error, _BROKEN_OFF):
        return f"cannot connect to the proxy {proxy} for {base_url}: {what}; check {hint}, or {_settings(base_url)}"
    return f"cannot connect to {_by_way(base_url, proxy)}: {what}; check {hint}"


def _refused_by_proxy(base_url: str, error: Exception, proxy: str | None) -> TransportError:
    """Say that a proxy refuses; a SOCKS proxy gives no status."""
    found = _STATUS(str(error))
    status = int(found[1]) if found else None
    hint = "the user name and password in its address" if status == _UNAUTHORIZED else "with whoever runs it"
    text = f"the proxy {proxy} did not connect to {base_url}; check {hint}, or {_settings(base_url)}"
    return _because(error, TransportError(text, status=status))


def _settings(base_url: str) -> str:
    """Name the variables that choose a proxy."""
    scheme = httpx.URL(base_url).scheme
    return f"the variables {scheme}_proxy, all_proxy and no_proxy"


def _with_tls(base_url: str, proxy: str | None) -> str:
    """Name who speaks TLS: only the proxy, if the service does not."""
    return _by_way(base_url, proxy) if base_url.startswith("https:") else f"the proxy {proxy} for {base_url}"


def _by_way(base_url: str, proxy: str | None) -> str:
    return f"{base_url} through the proxy {proxy}" if proxy else base_url


def _meaning(error: OSError | None) -> tuple[str, str]:
    """Say what an error of the system means, and what to check."""
    if isinstance(error, socket.gaierror):
        return _NAMES.get(error.errno or 0, (error.strerror or _UNTOLD, _NETWORK))
    number = error.errno if error else None
    return _ERRORS.get(number or 0, (os.strerror(number) if number else _UNTOLD, _NETWORK))


def _broken_off(error: Exception) -> str:
    """Say what became of an answer; for an error that we have no words for, give its kind, which quotes nothing."""
    if isinstance(error, httpx.NetworkError):
        found = _of_system(error)
        said = os.strerror(found.errno) if found and found.errno else ""
        return f"the connection was lost{', ' if said else ''}{said}"
    return next((words for kind, words in _ANSWERS if isinstance(error, kind)), type(error).__name__)


def _because(error: Exception, failure: T) -> T:
    """Keep the library's exception as the cause, and the system's as the cause of that.

    Everything else is dropped: frames that hold the token, and any failure that the caller was handling.
    """
    system = _of_system(error)
    for each, cause in ((error, system), (system, None)):
        if each is not None:
            each.with_traceback(None).__cause__ = cause
            each.__context__ = None
    failure.__cause__ = error
    return failure


def _of_system(error: Exception) -> OSError | None:
    """Find the system's error: a network failure comes from one, other kinds need not.

    Errors farther back may be failures that the caller was handling, and not ours.
    """
    came_of = _below(error) if isinstance(error, httpx.NetworkError) else ()
    return next((each for each in came_of if isinstance(each, OSError) and each.errno), None)


def _below(error: BaseException | None) -> Iterator[BaseException]:
    """Give an error and those that it came from; of a group, one for each address of a host, only the first."""
    while error is not None:
        yield error
        error = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__ or error.__context__


_UNAUTHORIZED: Final = 407
_STATUS: Final = re.compile(r"([45]\d\d)\b", re.ASCII).match
_BROKEN_OFF: Final = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
"""What ends a connection that a proxy has already made to the service."""
_UNTOLD: Final = "it failed"
_NETWORK: Final = "the address and the network"
_UNKNOWN: Final = ("there is no host with that name", "the address for a misspelling")
_NAMES: Final = {
    **{getattr(socket, name): _UNKNOWN for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)},
    socket.EAI_AGAIN: ("host names cannot be resolved now", "the network of this machine and the address"),
}
"""The result of looking up a host -> what it means, and what to check."""
_ERRORS: Final = {
    errno.ECONNREFUSED: ("nothing listens there", "that it is running, and its host and port"),
}
"""An error number of the system -> the same; all other errors speak for themselves."""
_ISSUER: Final = "the address, or set SSL_CERT_FILE to a file with the certificates to trust"
_CLOCK: Final = "the clock of this machine, or tell whoever runs the service"
_CERTIFICATES: Final = {
    **dict.fromkeys((2, 18, 19, 20, 21), _ISSUER),
    **dict.fromkeys((9, 10), _CLOCK),
    **dict.fromkeys((62, 64), "the address: the certificate is for another one"),
}
"""OpenSSL's number for a certificate's fault (X509_V_ERR_) -> what to check."""
_ANSWERS: Final = (
    (httpx.ProtocolError, "it breaks off or is not HTTP"),
    (httpx.DecodingError, "its body is not compressed as it says"),
)
"""The kind of an error that comes with an answer -> what became of the answer."""
