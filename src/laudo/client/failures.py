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
from laudo.client.transports import NamedProxy

T = TypeVar("T", bound=TransportError)


def _socks_errors() -> tuple[type[Exception], ...]:
    """Give the SOCKS library's error, raised if the proxy breaks off or speaks no SOCKS: httpx does not convert it."""
    with suppress(ImportError):
        return (import_module("socksio.exceptions").SOCKSError,)
    return ()


_PROXY_ERRORS: Final[tuple[type[Exception], ...]] = (httpx.ProxyError, *_socks_errors())
UNANSWERED: Final[tuple[type[Exception], ...]] = (httpx.RequestError, httpx.StreamError, *_PROXY_ERRORS)
"""What the HTTP library raises if no whole answer came."""


def unanswered(base_url: str, error: Exception, *, proxy: NamedProxy | None) -> TransportError:
    """Make the exception for a call that had no whole answer, from the service or from a proxy before it.

    The library's exception is kept as the cause only if there was no connection: later ones may quote what was sent or
    received.
    """
    if isinstance(error, httpx.ConnectTimeout):
        text = f"connecting to {_route(base_url, proxy)} timed out; check the address and the network"
        return _with_cause(error, DeadlineError(text))
    if isinstance(error, httpx.TimeoutException):
        return timed_out(base_url)
    if isinstance(error, _PROXY_ERRORS):
        return _refused_by_proxy(base_url, error, proxy)
    if isinstance(error, httpx.ConnectError):
        return _with_cause(error, TransportError(_unconnected(base_url, _system_error(error), proxy)))
    return TransportError(f"incomplete answer from {base_url}: {_why_incomplete(error)}")


def timed_out(base_url: str) -> DeadlineError:
    """Make the exception for an answer that takes too long."""
    return DeadlineError(f"{base_url} did not answer in time")


def _unconnected(base_url: str, error: OSError | None, proxy: NamedProxy | None) -> str:
    """Say to whom there is no connection, and why; if service and proxy both speak TLS, either may be at fault."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message.rstrip(".")
        hint = _CERTIFICATE_CHECKS.get(error.verify_code, "with whoever runs the service")
        return f"the certificate of {_tls_peer(base_url, proxy)} is not trusted: {reason}; check {hint}"
    if isinstance(error, ssl.SSLError):
        what, hint = (
            error.reason or "the connection was closed",
            "its port, and whether its address should begin with http://",
        )
        return f"cannot establish TLS with {_tls_peer(base_url, proxy)}: {what}; check {hint}"
    what, hint = _meaning(error)
    if proxy and not isinstance(error, _CONNECTION_LOST):
        return f"cannot connect to the proxy {proxy} for {base_url}: {what}; check {hint}, or {proxy.chosen_by}"
    return f"cannot connect to {_route(base_url, proxy)}: {what}; check {hint}"


def _refused_by_proxy(base_url: str, error: Exception, proxy: NamedProxy | None) -> TransportError:
    """Say that a proxy refuses; a SOCKS proxy gives no status."""
    found = _STATUS(str(error))
    status = int(found[1]) if found else None
    hint = "the user name and password in its address" if status == _PROXY_AUTH_REQUIRED else "with whoever runs it"
    # The proxy of a transport that the caller made is unknown.
    name, chosen_by = (f"the proxy {proxy}", f", or {proxy.chosen_by}") if proxy else ("the proxy", "")
    text = f"{name} did not connect to {base_url}; check {hint}{chosen_by}"
    return _with_cause(error, TransportError(text, status=status))


def _tls_peer(base_url: str, proxy: NamedProxy | None) -> str:
    """Name who speaks TLS: only the proxy if the service does not."""
    return _route(base_url, proxy) if base_url.startswith("https:") else f"the proxy {proxy} for {base_url}"


def _route(base_url: str, proxy: NamedProxy | None) -> str:
    return f"{base_url} through the proxy {proxy}" if proxy else base_url


def _meaning(error: OSError | None) -> tuple[str, str]:
    """Say what an error of the system means, and what to check."""
    if isinstance(error, socket.gaierror):
        return _LOOKUP_ERRORS.get(error.errno or 0, (error.strerror or _NO_REASON, _NETWORK))
    number = error.errno if error else None
    return _SYSTEM_ERRORS.get(number or 0, (os.strerror(number) if number else _NO_REASON, _NETWORK))


def _why_incomplete(error: Exception) -> str:
    """Say why an answer is incomplete; for an error without a text here, give its class name, which quotes nothing."""
    if isinstance(error, httpx.NetworkError):
        found = _system_error(error)
        reason = os.strerror(found.errno) if found and found.errno else ""
        return f"the connection was lost{', ' if reason else ''}{reason}"
    return next((words for kind, words in _ANSWER_FAULTS if isinstance(error, kind)), type(error).__name__)


def _with_cause(error: Exception, failure: T) -> T:
    """Keep the library's exception as the cause, and the system's as the cause of that.

    Everything else is dropped: frames that hold the token, and any failure that the caller was handling.
    """
    system = _system_error(error)
    for exception, cause in ((error, system), (system, None)):
        if exception is not None:
            exception.with_traceback(None).__cause__ = cause
            exception.__context__ = None
    failure.__cause__ = error
    return failure


def _system_error(error: Exception) -> OSError | None:
    """Find the system's error: a network failure comes from one, other kinds need not.

    Causes of other kinds may be failures that the caller was handling, and not ours.
    """
    causes = _cause_chain(error) if isinstance(error, httpx.NetworkError) else ()
    return next((cause for cause in causes if isinstance(cause, OSError) and cause.errno), None)


def _cause_chain(error: BaseException | None) -> Iterator[BaseException]:
    """Give an error and its causes; of a group, which has an error for each address of a host, only the first."""
    while error is not None:
        yield error
        error = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__ or error.__context__


_PROXY_AUTH_REQUIRED: Final = 407
_STATUS: Final = re.compile(r"([45]\d\d)\b", re.ASCII).match
_CONNECTION_LOST: Final = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
"""The errors of a connection that a proxy had already made to the service."""
_NO_REASON: Final = "it failed"
_NETWORK: Final = "the address and the network"
_UNKNOWN_HOST: Final = ("there is no host with that name", "the address for a misspelling")
_LOOKUP_ERRORS: Final = {
    **{getattr(socket, name): _UNKNOWN_HOST for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)},
    socket.EAI_AGAIN: ("host names cannot be resolved now", "the network of this machine and the address"),
}
"""The result of looking up a host -> what it means, and what to check."""
_SYSTEM_ERRORS: Final = {
    errno.ECONNREFUSED: ("nothing listens there", "that it is running, and its host and port"),
}
"""An error number of the system -> the same; the system's own text is enough for all others."""
_ISSUER: Final = "the address, or set SSL_CERT_FILE to a file with the certificates to trust"
_CLOCK: Final = "the clock of this machine, or tell whoever runs the service"
_CERTIFICATE_CHECKS: Final = {
    **dict.fromkeys((2, 18, 19, 20, 21), _ISSUER),
    **dict.fromkeys((9, 10), _CLOCK),
    **dict.fromkeys((62, 64), "the address: the certificate is for another one"),
}
"""OpenSSL's number for a certificate's fault (X509_V_ERR_) -> what to check."""
_ANSWER_FAULTS: Final = (
    (httpx.ProtocolError, "it breaks off or is not HTTP"),
    (httpx.DecodingError, "its body is not compressed as it says"),
)
"""The class of an error while an answer arrives -> why the answer is incomplete."""
