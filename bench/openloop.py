"""Sends requests when they are due, whether or not earlier ones have been answered.

Clients that know nothing of one another do so. Clients that wait for an answer before they ask again hide a collapse.
"""

import asyncio
import time
from collections.abc import Iterable
from itertools import cycle
from random import Random
from typing import Final, NamedTuple
from urllib.parse import quote

from laudo.client import Laudo

OK: Final = 200
FAILED: Final = 0
"""The status of a request that got no answer in time."""
_SEARCHED: Final = 20
"""How many names are searched for."""
_LENGTH: Final = b"content-length:"

_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Asked(NamedTuple):
    """The outcome of one request: its status, and the seconds since it was due."""

    status: int
    seconds: float


class Asker:
    """Asks one service with one token, on connections that are kept open, as clients do."""

    def __init__(self, port: int, token: str, patience: float = 30) -> None:
        """A request is given up, with its connection, after `patience` seconds."""
        self._port = port
        self._token = token
        self._patience = patience
        self._free: list[_Connection] = []

    async def steadily(self, targets: Iterable[str], rate: float, seconds: float) -> list[Asked]:
        """Ask `rate` times a second; gives the outcome of each request, in order."""
        begun = time.monotonic()
        asking = []
        for number, target in zip(range(round(rate * seconds)), cycle(targets), strict=False):
            due = begun + number / rate
            await asyncio.sleep(due - time.monotonic())
            asking.append(asyncio.create_task(self.one(target, due)))
        return await asyncio.gather(*asking)

    async def at_once(self, targets: Iterable[str], number: int, seconds: float) -> list[Asked]:
        """Ask with `number` requests under way all the time."""
        until, left = time.monotonic() + seconds, cycle(targets)

        async def again() -> list[Asked]:
            came = []
            while (now := time.monotonic()) < until:
                came.append(await self.one(next(left), now))
            return came

        return [each for came in await asyncio.gather(*(again() for _ in range(number))) for each in came]

    async def one(self, target: str, due: float) -> Asked:
        """Ask once; the time runs from when the request was due."""
        used: _Connection | None = None
        try:
            async with asyncio.timeout(due + self._patience - time.monotonic()):
                used = self._free.pop() if self._free else await asyncio.open_connection("127.0.0.1", self._port)
                status = await self._answered(used, target)
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            if used:
                used[1].close()
            return Asked(FAILED, time.monotonic() - due)
        self._free.append(used)
        return Asked(status, time.monotonic() - due)

    async def _answered(self, used: _Connection, target: str) -> int:
        reader, writer = used
        writer.write(f"GET {target} HTTP/1.1\r\nHost: laudo\r\nAuthorization: {self._token}\r\n\r\n".encode("ascii"))
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(_LENGTH)[2].split(b"\r\n", 1)[0]))
        return int(head.split(b" ", 2)[1])


def cheap(port: int, token: str) -> list[str]:
    """Give cheap targets: a first page, and the reports of a hundred documents."""
    with Laudo(f"http://127.0.0.1:{port}", token) as client:
        documents = [each.numero_documento for each in client.relatorios(rows=100).itens]
    return ["/relatorios", *(f"/relatorios?numero_documento={each}" for each in documents)]


def dear(port: int, token: str) -> list[str]:
    """Give expensive targets: pages in the middle of searches for common names, each of them once."""
    with Laudo(f"http://127.0.0.1:{port}", token) as client:
        names = {each.nome.split()[0] for each in client.pessoas(rows=1000).itens}
        totals = {name: client.pessoas(nome=name).total for name in names}
    common = sorted(totals, key=totals.__getitem__)[-_SEARCHED:]
    pages = [(name, page) for name in common for page in range(1 + totals[name] // 100, totals[name] // 34)]
    return [f"/pessoas?nome={quote(name)}&page={page}" for name, page in Random(1).sample(pages, k=len(pages))]
