"""Runs every test twice: with the blocking client and with the asynchronous one."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol

import httpx
import pytest

import awaiting
from client.service import TOKEN, Clock, Service
from laudo.client import AsyncLaudo, Laudo, Limits, Timing


class Client(Protocol):
    """Either client, with blocking methods; `all` walks a list to its end."""

    def call(self, method: str, /, **arguments: Any) -> Any:  # noqa: ANN401
        ...

    def all(self, method: str, /, *, workers: int = 1, **arguments: Any) -> list[Any]: ...  # noqa: ANN401

    def batches(self, method: str, /, **arguments: Any) -> list[Any]: ...  # noqa: ANN401


Handler = Callable[[httpx.Request], httpx.Response]


class Blocking:
    def __init__(self, handler: Handler, token: str, clock: Clock, limits: Limits) -> None:
        timing = Timing(clock.now, clock.sleep, clock.asleep, clock.chance)
        transport = httpx.MockTransport(handler)
        self.client = Laudo("http://service.test", token, limits=limits, transport=transport, timing=timing)

    def call(self, method: str, /, **arguments: Any) -> Any:  # noqa: ANN401
        return getattr(self.client, method)(**arguments)

    def all(self, method: str, /, *, workers: int = 1, **arguments: Any) -> list[Any]:  # noqa: ANN401
        return list(self.call(method, **arguments).all(workers=workers))

    def batches(self, method: str, /, **arguments: Any) -> list[Any]:  # noqa: ANN401
        found: Iterator[Any] = self.call(method, **arguments)
        return list(found)


class Awaited:
    def __init__(self, handler: Handler, token: str, clock: Clock, limits: Limits) -> None:
        timing = Timing(clock.now, clock.sleep, clock.asleep, clock.chance)
        transport = httpx.MockTransport(handler)
        self.client = AsyncLaudo("http://service.test", token, limits=limits, transport=transport, timing=timing)

    def call(self, method: str, /, **arguments: Any) -> Any:  # noqa: ANN401
        return awaiting.run(getattr(self.client, method)(**arguments))

    def all(self, method: str, /, *, workers: int = 1, **arguments: Any) -> list[Any]:  # noqa: ANN401
        async def walk() -> list[Any]:
            page = await getattr(self.client, method)(**arguments)
            return [item async for item in page.all(workers=workers)]

        return awaiting.run(walk())

    def batches(self, method: str, /, **arguments: Any) -> list[Any]:  # noqa: ANN401
        async def walk() -> list[Any]:
            found: AsyncIterator[Any] = getattr(self.client, method)(**arguments)
            return [batch async for batch in found]

        return awaiting.run(walk())


class NewClient(Protocol):
    def __call__(self, handler: Handler, token: str = TOKEN, *, limits: Limits | None = None) -> Client: ...


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=[Blocking, Awaited], ids=["Laudo", "AsyncLaudo"])
def new_client(request: pytest.FixtureRequest, clock: Clock) -> NewClient:
    def new(handler: Handler, token: str = TOKEN, *, limits: Limits | None = None) -> Client:
        made: Client = request.param(handler, token, clock, limits or Limits())
        return made

    return new


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def client(new_client: NewClient, service: Service) -> Client:
    return new_client(service)
