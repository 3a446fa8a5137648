"""A client's connections, unless it gets others: no redirects, cookies, netrc, or logging of addresses.

httpx's own client logs every address, which may hold a CPF. Its transports do not, so they are used without it.
"""

import os
import re
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from typing import Final, NamedTuple
from urllib.request import getproxies, proxy_bypass

import httpx

from laudo.client.errors import ParameterError

MOST_CONNECTIONS: Final = 100
"""How many connections a client may have at a time."""

CONNECTIONS: Final = httpx.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=20, keepalive_expiry=30)
UNLIMITED: Final = httpx.Limits(max_keepalive_connections=20, keepalive_expiry=30)


class NamedProxy(NamedTuple):
    """The proxy before a service: its address without user name and password, and what chose it."""

    address: str
    chosen_by: str

    def __str__(self) -> str:
        return self.address


@dataclass(frozen=True, slots=True)
class Network:
    """How to reach a service: whose certificates to trust, and through which proxy; by default the environment's."""

    verify: ssl.SSLContext | bool = True
    proxy: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Raises ParameterError for any other kind of value."""
        if not isinstance(self.verify, bool | ssl.SSLContext):
            raise ParameterError("verify must be True, False or an ssl.SSLContext")
        if not isinstance(self.proxy, str | None):
            raise ParameterError(_INVALID_PROXY)

    def transport(self, base_url: str) -> httpx.BaseTransport:
        proxy, trust = self._proxy_and_trust(base_url)
        return ForkSafeTransport(lambda: httpx.HTTPTransport(verify=trust, proxy=proxy, limits=CONNECTIONS))

    def async_transports(self, base_url: str) -> Callable[[], httpx.AsyncBaseTransport]:
        """Give a function that makes a transport for an event loop.

        The caller must limit connections to MOST_CONNECTIONS: a task that waits for httpcore's pool cannot be cancelled
        safely.
        """
        proxy, trust = self._proxy_and_trust(base_url)
        return lambda: httpx.AsyncHTTPTransport(verify=trust, proxy=proxy, limits=UNLIMITED)

    def proxy_before(self, base_url: str) -> NamedProxy | None:
        """Name the proxy before a service; None if there is none."""
        if (proxy := self._proxy(base_url)) is None:
            return None
        variables = f"the variables {httpx.URL(base_url).scheme}_proxy, all_proxy and no_proxy"
        chosen_by = "the argument proxy of Network" if self.proxy else variables
        return NamedProxy(f"{proxy.url.scheme}://{proxy.url.netloc.decode()}", chosen_by)

    def _proxy_and_trust(self, base_url: str) -> tuple[httpx.Proxy | None, ssl.SSLContext | bool]:
        """Give the proxy before a service, and whose certificates to trust; a proxy on https gets the same trust."""
        proxy = self._proxy(base_url)
        trust = self._trust(base_url, proxy)
        if proxy and proxy.url.scheme == "https":
            proxy.ssl_context = trust if isinstance(trust, ssl.SSLContext) else httpx.create_ssl_context(verify=trust)
        return proxy, trust

    def _trust(self, base_url: str, proxy: httpx.Proxy | None) -> ssl.SSLContext | bool:
        """Choose whose certificates to trust; reading them takes some 20 ms, which is saved if neither speaks TLS."""
        schemes = {httpx.URL(base_url).scheme, proxy.url.scheme if proxy else ""}
        if "https" not in schemes:
            return False
        return _default_trust() if self.verify is True else self.verify

    def _proxy(self, base_url: str) -> httpx.Proxy | None:
        """Read the proxy's address, in which http:// may be left out; the error shows nothing of it."""
        address = self.proxy or _environment_proxy(httpx.URL(base_url))
        if not address:
            return None
        with suppress(httpx.InvalidURL, ValueError):
            proxy = httpx.Proxy(address if "://" in address else f"http://{address}")
            if has_valid_host(proxy.url) and (not proxy.url.scheme.startswith("socks") or find_spec("socksio")):
                return proxy
        raise ParameterError(_INVALID_PROXY)


class ForkSafeTransport(httpx.BaseTransport):
    """Makes new connections after a fork: on a shared one, each process would read the other's answers."""

    def __init__(self, make: Callable[[], httpx.BaseTransport]) -> None:
        self._make = make
        self._transport = make()
        self._pid = os.getpid()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self._pid != os.getpid():
            self._transport = self._make()
            self._pid = os.getpid()
        return self._transport.handle_request(request)

    def close(self) -> None:
        if self._pid == os.getpid():
            self._transport.close()


class Step:
    """What httpcore is doing in an exchange.

    It never frees a connection if it is cancelled between two steps, or in the one that frees it: encode/httpcore#1093.
    """

    __slots__ = ("is_cancellable",)

    def __init__(self) -> None:
        self.is_cancellable = True

    async def note(self, name: str, _info: object) -> None:
        """Take a name such as `http11.receive_response_headers.started`."""
        self.is_cancellable = name.endswith(".started") and "response_closed" not in name


def has_valid_host(url: httpx.URL) -> bool:
    """Tell whether a URL has a host name that can be looked up and a possible port; may raise ValueError if not."""
    return bool(_HOST(url.raw_host) and url.host) and (url.port is None or url.port in _PORTS)


def _default_trust() -> ssl.SSLContext:
    """Trust what the environment names, or else httpx's default; ParameterError names what cannot be read."""
    name = next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), "SSL_CERT_FILE")
    path = os.environ.get(name, "")
    try:
        if name == "SSL_CERT_DIR":
            os.scandir(path).close()  # Otherwise a missing folder would show only when a certificate is not trusted.
        return httpx.create_ssl_context()
    except OSError as error:
        reason = getattr(error, "reason", None) or error.strerror
        raise ParameterError(f"cannot read the certificates to trust: {name} is {path}, {reason}") from None


def _environment_proxy(url: httpx.URL) -> str | None:
    proxies = getproxies()
    host = f"[{url.host}]" if ":" in url.host else url.host
    hosts = (url.host, f"{host}:{url.port or _DEFAULT_PORTS.get(url.scheme)}")
    exempt = (entry.strip().strip("[]") for entry in proxies.get("no", "").split(","))
    if any(map(proxy_bypass, hosts)) or any(_is_within(url.host, entry) for entry in exempt):
        return None
    return proxies.get(url.scheme) or proxies.get("all")


def _is_within(host: str, network: str) -> bool:
    """Tell whether a host is an address in a network such as 10.0.0.0/8 or a single one: urllib compares only texts."""
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


_INVALID_PROXY: Final = "the proxy must be http:// or https:// and a host, or socks5:// with the package socksio"
_HOST: Final = re.compile(rb"([\w-]{1,63}\.)*[\w-]{1,63}\.?|[\w.]*:[\w:.]*(%\w+)?").fullmatch
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_PORTS: Final = range(1, 2**16)
