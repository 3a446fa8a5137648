"""The client for asyncio: sends what the calls describe, pauses and tries again as they say."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Final, Generic, NoReturn, Self, TypeVar, Unpack
from uuid import UUID

import httpx

from laudo.client import errors, failures, parameters, questions, transports
from laudo.client.calls import Body, Call, I, ListCall, Listed, Unchanged, UsuarioCall, Wire
from laudo.client.errors import AnswerError, LaudoError, StatusError
from laudo.client.items import Pessoa, PessoaFilters, Relatorio, RelatorioFilters, Usuario
from laudo.client.retries import PATIENCE, Attempts, Budget, Limits, Timing, check_count
from laudo.client.transports import Network, Step
from laudo.client.walk import Batch, Place, Walk
from laudo.client.watch import Watch

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class AsyncPage(Generic[I]):
    """One page of a list: its `itens`, the `total` over all pages, the number `pagina`, its size `linhas`.

    Iterating over a page goes over **all** items of the list, from the first one, and asks for more pages as needed.
    """

    itens: tuple[I, ...] = field(repr=False)
    total: int
    pagina: int
    linhas: int
    _all: Callable[[int], AsyncIterator[I]] = field(repr=False, compare=False)

    def __aiter__(self) -> AsyncIterator[I]:
        return self._all(1)

    def all(self, *, workers: int = 1) -> AsyncIterator[I]:
        """Iterate over all items in order; with `workers` above 1, that many pages are under way at a time."""
        check_count("workers", workers, least=1)
        return self._all(workers)


class AsyncLaudo:
    """Asks a service of this contract. Close it, or use it as a context manager.

    Each event loop gets connections of its own. Every method raises ParameterError before anything is sent, and
    otherwise a LaudoError (see `errors`). A call is tried again as `limits` allows, and takes `limits.deadline` seconds
    in all.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        limits: Limits | None = None,
        network: Network | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        timing: Timing | None = None,
    ) -> None:
        """`transport` and `timing` are for tests; with a `transport`, `network` is not used."""
        self._wire = Wire(base_url, token)
        self._limits = parameters.checked("limits", limits, Limits)
        network = parameters.checked("network", network, Network)
        if transport is not None:
            parameters.checked("transport", transport, httpx.AsyncBaseTransport)
        self._make_transport: Callable[[], httpx.AsyncBaseTransport] = (
            (lambda: transport) if transport else network.async_transports(self._wire.base_url)
        )
        self._proxy = None if transport else network.proxy_before(self._wire.base_url)
        self._timing = parameters.checked("timing", timing, Timing)
        self._budget = Budget()
        self._loops: dict[asyncio.AbstractEventLoop, _LoopState] = {}
        self._closed = False

    async def relatorios(
        self, *, page: int = 1, rows: int | None = None, sort: str | None = None, **filters: Unpack[RelatorioFilters]
    ) -> AsyncPage[Relatorio]:
        """Ask for a page of reports, of 25 unless `rows` (a multiple of 25) says otherwise, the newest first."""
        return await self._page(questions.relatorios(filters, sort=sort), page=page, rows=rows)

    async def pessoas(
        self, *, page: int = 1, rows: int | None = None, sort: str | None = None, **filters: Unpack[PessoaFilters]
    ) -> AsyncPage[Pessoa]:
        """Ask for a page of persons, of 25 unless `rows` (a multiple of 25) says otherwise, the newest first."""
        return await self._page(questions.pessoas(filters, sort=sort), page=page, rows=rows)

    async def usuario(self) -> Usuario:
        """Ask for the caller's profile."""
        return await self._ask(UsuarioCall())

    async def contar(self, **filters: Unpack[RelatorioFilters]) -> int:
        """Count reports."""
        return (await self._ask(questions.counted(questions.relatorios(filters)))).total

    async def contar_pessoas(self, **filters: Unpack[PessoaFilters]) -> int:
        """Count persons."""
        return (await self._ask(questions.counted(questions.pessoas(filters)))).total

    async def wait_for(self, numero: str | UUID, timeout: float = 600.0) -> Relatorio:  # noqa: ASYNC109 - as `Laudo` has it
        """Wait until a report is CONCLUIDO; raises NotReadyError after `timeout` seconds, or the latest failure."""
        watch = Watch(numero, timeout=timeout, timing=self._timing)
        while True:
            try:
                if done := watch.take(await self._answer(watch.call(), watch.limits(self._limits))):
                    return done
            except LaudoError as error:
                watch.note_failure(error)
            await self._timing.asleep(watch.pause())

    def relatorios_in_batches(
        self,
        *,
        rows: int | None = None,
        sort: str | None = None,
        workers: int = 1,
        start: Place | None = None,
        **filters: Unpack[RelatorioFilters],
    ) -> AsyncIterator[Batch[Relatorio]]:
        """Iterate over all reports, a page at a time; each batch has the `place` from which to `start` again."""
        return self._batches(questions.relatorios(filters, sort=sort), rows=rows, workers=workers, start=start)

    def pessoas_in_batches(
        self,
        *,
        rows: int | None = None,
        sort: str | None = None,
        workers: int = 1,
        start: Place | None = None,
        **filters: Unpack[PessoaFilters],
    ) -> AsyncIterator[Batch[Pessoa]]:
        """Iterate over all persons, a page at a time; each batch has the `place` from which to `start` again."""
        return self._batches(questions.pessoas(filters, sort=sort), rows=rows, workers=workers, start=start)

    async def close(self) -> None:
        """Close the connections; any later call raises RuntimeError."""
        self._closed = True
        state = self._loop_state
        await state.transport.aclose()
        for exchange in state.abandoned:
            exchange.cancel()
        await asyncio.gather(*state.abandoned, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncLaudo({self._wire.base_url!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(errors.NOT_PICKLABLE)

    async def _page(self, call: ListCall[I], *, page: int, rows: int | None) -> AsyncPage[I]:
        listed = await self._ask(questions.page(call, page=page, rows=rows))
        return AsyncPage(
            listed.itens, listed.total, listed.pagina, listed.linhas, partial(self._all, call, rows, listed)
        )

    async def _all(self, call: ListCall[I], rows: int | None, listed: Listed[I], workers: int) -> AsyncIterator[I]:
        if questions.holds_all(listed):
            for item in listed.itens:
                yield item
            return
        async for batch in self._batches(call, rows=rows, workers=workers):
            for item in batch.itens:
                yield item

    def _batches(
        self, call: ListCall[I], *, rows: int | None, workers: int, start: Place | None = None
    ) -> AsyncIterator[Batch[I]]:
        return self._walk(questions.walk(call, rows=rows, workers=workers, start=start), workers)

    async def _walk(self, walk: Walk[I], workers: int) -> AsyncIterator[Batch[I]]:
        """Keep up to `workers` calls under way, and take their answers in the order of the calls."""
        pending: deque[asyncio.Task[Listed[I]]] = deque()
        try:
            while True:
                while len(pending) < workers and (call := walk.next_call()):
                    pending.append(asyncio.create_task(self._ask(call, patience=PATIENCE)))
                if not pending:
                    return
                try:
                    listed = await pending[0]
                except StatusError as error:
                    walk.refused(error)
                else:
                    if walk.accepts(listed):
                        yield walk.take(listed)
                pending.popleft()
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    async def _ask(self, call: Call[A], *, patience: float = 0.0) -> A:
        answer = await self._answer(call, self._limits, patience=patience)
        if isinstance(answer, Unchanged):
            raise AnswerError(errors.UNEXPECTED_304)
        return answer

    async def _answer(self, call: Call[A], limits: Limits, *, patience: float = 0.0) -> A | Unchanged:
        attempts = Attempts(limits, self._budget, self._timing, patience=patience)
        while True:
            answer = await self._try(call, attempts)
            if not isinstance(answer, LaudoError):
                attempts.note_answer()
                return answer
            await self._timing.asleep(attempts.pause(answer))

    async def _try(self, call: Call[A], attempts: Attempts) -> A | Unchanged | LaudoError:
        """Send once; a failure is returned, not raised."""
        step = Step()
        exchange = asyncio.create_task(self._exchange(call, attempts.timeout(), step))
        try:
            await asyncio.wait((exchange,), timeout=attempts.left)
            return exchange.result() if exchange.done() else failures.timed_out(self._wire.base_url)
        finally:
            self._abandon(exchange, step)

    async def _exchange(
        self, call: Call[A], timeouts: dict[str, float | None], step: Step
    ) -> A | Unchanged | LaudoError:
        """Ask, and read the answer: httpx's exceptions, which hold the address, end here."""
        state = self._loop_state
        try:
            async with state.slots:
                if self._closed:
                    raise RuntimeError(errors.CLOSED)
                request = self._wire.request(call, timeouts)
                request.extensions["trace"] = step.note
                response = await state.transport.handle_async_request(request)
                try:
                    body = Body(response)
                    async for part in response.aiter_bytes():
                        body.add(part)
                finally:
                    await response.aclose()
        except failures.UNANSWERED as error:
            return failures.unanswered(self._wire.base_url, error, proxy=self._proxy)
        return self._wire.answer(call, response.status_code, response.headers, body.whole())

    def _abandon(self, exchange: asyncio.Task[Any], step: Step) -> None:
        """End an exchange that nobody waits for any more, after a delay: it may still leave a connection to reuse."""
        if exchange.done():
            self._forget(exchange)
        else:
            self._loop_state.abandoned.add(exchange)
            exchange.add_done_callback(self._forget)
            asyncio.get_running_loop().call_later(_CANCEL_DELAY, _cancel, exchange, step)

    def _forget(self, exchange: asyncio.Task[Any]) -> None:
        self._loop_state.abandoned.discard(exchange)
        if not exchange.cancelled():
            exchange.exception()  # Otherwise asyncio would log that it was never retrieved.

    @property
    def _loop_state(self) -> "_LoopState":
        """Give the state of this event loop, made if there is none; that of closed loops is dropped."""
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            for other in tuple(self._loops):
                if other.is_closed():
                    self._loops.pop(other, None)
            self._loops[loop] = _LoopState(self._make_transport())
        return self._loops[loop]


class _LoopState:
    """What belongs to one event loop: connections, slots for requests, and exchanges that nobody waits for any more."""

    __slots__ = ("abandoned", "slots", "transport")

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self.transport = transport
        self.slots = asyncio.Semaphore(transports.MOST_CONNECTIONS)
        self.abandoned: set[asyncio.Task[Any]] = set()


def _cancel(exchange: asyncio.Task[Any], step: Step) -> None:
    """Cancel an exchange, as soon as it can be."""
    if step.is_cancellable:
        exchange.cancel()
    elif not exchange.done():
        asyncio.get_running_loop().call_later(_CANCEL_PAUSE, _cancel, exchange, step)


_CANCEL_DELAY: Final = 1.0
"""How many seconds later an abandoned exchange is cancelled."""
_CANCEL_PAUSE: Final = 0.01
