"""The connections that clients make unless they are given others: no redirects, cookies, netrc or logs of addresses.

httpx's own client logs every address, which may hold a CPF; its transports do not, so they are used without it.
"""

import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

CONNECTIONS: Final = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=30)


@dataclass(frozen=True, slots=True)
class Network:
    """How to reach a service: whose certificates to trust, and through which proxy, else the environment's."""

    verify: ssl.SSLContext | bool = True
    proxy: str | None = None

    def transport(self, base_url: str) -> httpx.HTTPTransport:
        return httpx.HTTPTransport(verify=self._trust(base_url), proxy=self._proxy(base_url), limits=CONNECTIONS)

    def async_transport(self, base_url: str) -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport(verify=self._trust(base_url), proxy=self._proxy(base_url), limits=CONNECTIONS)

    def _trust(self, base_url: str) -> ssl.SSLContext | bool:
        """Spare the reading of certificates, some 20 ms, where none will be looked at."""
        proxy = self._proxy(base_url) or ""
        return self.verify if "https" in {urlsplit(base_url).scheme, urlsplit(proxy).scheme} else False

    def _proxy(self, base_url: str) -> str | None:
        parts = urlsplit(base_url)
        if self.proxy or proxy_bypass(parts.hostname or ""):
            return self.proxy
        known = getproxies()
        return known.get(parts.scheme) or known.get("all")
