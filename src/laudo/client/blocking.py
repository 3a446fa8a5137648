"""The blocking client: sends what the calls describe, pauses and tries again as they say."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from threading import Thread
from types import TracebackType
from typing import Generic, NoReturn, Self, TypeVar, Unpack, cast
from uuid import UUID

import httpx

from laudo.client import errors, failures, parameters, questions
from laudo.client.calls import Body, Call, I, ListCall, Listed, Unchanged, UsuarioCall, Wire
from laudo.client.errors import AnswerError, LaudoError, StatusError
from laudo.client.items import Pessoa, PessoaFilters, Relatorio, RelatorioFilters, Usuario
from laudo.client.retries import PATIENCE, Attempts, Budget, Limits, Timing, check_count
from laudo.client.transports import Network
from laudo.client.walk import Batch, Place, Walk
from laudo.client.watch import Watch

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Page(Generic[I]):
    """One page of a list: its `itens`, the `total` over all pages, the number `pagina`, its size `linhas`.

    Iterating over a page goes over **all** items of the list, from the first one, and asks for more pages as needed.
    `item` is the class of the items, even if there are none.
    """

    itens: tuple[I, ...] = field(repr=False)
    total: int
    pagina: int
    linhas: int
    item: type[I] = field(repr=False)
    _all: Callable[[int], Iterator[I]] = field(repr=False, compare=False)

    def __iter__(self) -> Iterator[I]:
        return self._all(1)

    def all(self, *, workers: int = 1) -> Iterator[I]:
        """Iterate over all items in order; with `workers` above 1, that many pages are under way at a time."""
        check_count("workers", workers, least=1)
        return Items(self._all(workers), self.item)


class Items(Iterator[I]):
    """Items one by one, with their class, which is known even if there are none."""

    __slots__ = ("_itens", "item")

    def __init__(self, itens: Iterator[I], item: type[I]) -> None:
        self._itens = itens
        self.item = item

    def __next__(self) -> I:
        return next(self._itens)


class Laudo:
    """Asks a service of this contract. May be shared by threads; close it, or use it as a context manager.

    Every method raises ParameterError before anything is sent, and otherwise a LaudoError (see `errors`). A call is
    tried again as `limits` allows, and takes `limits.deadline` seconds in all. It may take one `limits.read` more if
    the service stops in the middle of a body, and longer still if the service sends its headers a few bytes at a time
    or has several addresses of which none answers.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        limits: Limits | None = None,
        network: Network | None = None,
        transport: httpx.BaseTransport | None = None,
        timing: Timing | None = None,
    ) -> None:
        """`transport` and `timing` are for tests; with a `transport`, `network` is not used."""
        self._wire = Wire(base_url, token)
        self._limits = parameters.checked("limits", limits, Limits)
        network = parameters.checked("network", network, Network)
        if transport is not None:
            parameters.checked("transport", transport, httpx.BaseTransport)
        self._transport = transport or network.transport(self._wire.base_url)
        self._proxy = None if transport else network.proxy_before(self._wire.base_url)
        self._timing = parameters.checked("timing", timing, Timing)
        self._budget = Budget()
        self._closed = False
        self._under_way: set[Attempts] = set()

    def relatorios(
        self, *, page: int = 1, rows: int | None = None, sort: str | None = None, **filters: Unpack[RelatorioFilters]
    ) -> Page[Relatorio]:
        """Ask for a page of reports, of 25 unless `rows` (a multiple of 25) says otherwise, the newest first."""
        return self._page(questions.relatorios(filters, sort=sort), page=page, rows=rows)

    def pessoas(
        self, *, page: int = 1, rows: int | None = None, sort: str | None = None, **filters: Unpack[PessoaFilters]
    ) -> Page[Pessoa]:
        """Ask for a page of persons, of 25 unless `rows` (a multiple of 25) says otherwise, the newest first."""
        return self._page(questions.pessoas(filters, sort=sort), page=page, rows=rows)

    def usuario(self) -> Usuario:
        """Ask for the caller's profile."""
        return self._ask(UsuarioCall())

    def contar(self, **filters: Unpack[RelatorioFilters]) -> int:
        """Count reports."""
        return self._ask(questions.counted(questions.relatorios(filters))).total

    def contar_pessoas(self, **filters: Unpack[PessoaFilters]) -> int:
        """Count persons."""
        return self._ask(questions.counted(questions.pessoas(filters))).total

    def wait_for(self, numero: str | UUID, timeout: float = 600.0) -> Relatorio:
        """Wait until a report is CONCLUIDO; raises NotReadyError after `timeout` seconds, or the latest failure."""
        watch = Watch(numero, timeout=timeout, timing=self._timing)
        while True:
            try:
                if done := watch.take(self._answer(watch.call(), watch.limits(self._limits))):
                    return done
            except LaudoError as error:
                watch.note_failure(error)
            self._timing.sleep(watch.pause())

    def relatorios_in_batches(
        self,
        *,
        rows: int | None = None,
        sort: str | None = None,
        workers: int = 1,
        start: Place | None = None,
        **filters: Unpack[RelatorioFilters],
    ) -> Iterator[Batch[Relatorio]]:
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
    ) -> Iterator[Batch[Pessoa]]:
        """Iterate over all persons, a page at a time; each batch has the `place` from which to `start` again."""
        return self._batches(questions.pessoas(filters, sort=sort), rows=rows, workers=workers, start=start)

    def close(self) -> None:
        """Close the connections, once the requests of other threads have ended; any later one raises RuntimeError."""
        self._closed = True
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        """Close a connection only if no thread waits for an answer on it: that thread would wait until its timeout."""
        if not self._under_way:
            self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Laudo({self._wire.base_url!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(errors.NOT_PICKLABLE)

    def _page(self, call: ListCall[I], *, page: int, rows: int | None) -> Page[I]:
        listed = self._ask(questions.page(call, page=page, rows=rows))
        everything = partial(self._all, call, rows, listed)
        return Page(listed.itens, listed.total, listed.pagina, listed.linhas, call.item, everything)

    def _all(self, call: ListCall[I], rows: int | None, listed: Listed[I], workers: int) -> Iterator[I]:
        if questions.holds_all(listed):
            yield from listed.itens
            return
        for batch in self._batches(call, rows=rows, workers=workers):
            yield from batch.itens

    def _batches(
        self, call: ListCall[I], *, rows: int | None, workers: int, start: Place | None = None
    ) -> Iterator[Batch[I]]:
        return self._walk(questions.walk(call, rows=rows, workers=workers, start=start), workers)

    def _walk(self, walk: Walk[I], workers: int) -> Iterator[Batch[I]]:
        """Keep up to `workers` calls under way, and take their answers in the order of the calls."""
        pending: deque[Callable[[], Listed[I]]] = deque()
        while True:
            while len(pending) < workers and (call := walk.next_call()):
                ask = partial(self._ask, call, patience=PATIENCE)
                pending.append(_in_thread(ask) if workers > 1 else ask)
            if not pending:
                return
            try:
                listed = pending.popleft()()
            except StatusError as error:
                walk.refused(error)
            else:
                if walk.accepts(listed):
                    yield walk.take(listed)

    def _ask(self, call: Call[A], *, patience: float = 0.0) -> A:
        answer = self._answer(call, self._limits, patience=patience)
        if isinstance(answer, Unchanged):
            raise AnswerError(errors.UNEXPECTED_304)
        return answer

    def _answer(self, call: Call[A], limits: Limits, *, patience: float = 0.0) -> A | Unchanged:
        attempts = Attempts(limits, self._budget, self._timing, patience=patience)
        while True:
            answer = self._try(call, attempts)
            if not isinstance(answer, LaudoError):
                attempts.note_answer()
                return answer
            self._timing.sleep(attempts.pause(answer))

    def _try(self, call: Call[A], attempts: Attempts) -> A | Unchanged | LaudoError:
        """Send once; a failure is returned, not raised."""
        self._under_way.add(attempts)
        try:
            if self._closed:
                raise RuntimeError(errors.CLOSED)
            return self._exchange(call, attempts)
        finally:
            self._under_way.discard(attempts)
            if self._closed:
                self._close_if_idle()

    def _exchange(self, call: Call[A], attempts: Attempts) -> A | Unchanged | LaudoError:
        """Ask, and read the answer: httpx's exceptions, which hold the address, end here."""
        try:
            response = self._transport.handle_request(self._wire.request(call, attempts.timeout()))
            try:
                body = _read(response, attempts)
            finally:
                response.close()
        except failures.UNANSWERED as error:
            return failures.unanswered(self._wire.base_url, error, proxy=self._proxy)
        return self._wire.answer(call, response.status_code, response.headers, body)


def _in_thread(ask: Callable[[], A]) -> Callable[[], A]:
    """Ask in a new thread; gives a function that waits for the answer.

    The thread is not from a pool, since Python waits for those at exit: leaving a walk, as with Ctrl-C, takes no time.
    """
    future: Future[A] = Future()

    def run() -> None:
        try:
            future.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future.result


def _read(response: httpx.Response, attempts: Attempts) -> bytes:
    """Read the body; raises AnswerError if `Body` does, and httpx.ReadTimeout if the deadline passes meanwhile."""
    body = Body(response)
    for part in _timed(response, attempts).iter_bytes():
        body.add(part)
    return body.whole()


def _timed(response: httpx.Response, attempts: Attempts) -> httpx.Response:
    """Give the response with the deadline for its body, unless a transport has read that already."""
    if response.is_stream_consumed:
        return response
    timed = _TimedStream(cast("httpx.SyncByteStream", response.stream), attempts)
    return httpx.Response(response.status_code, headers=response.headers, stream=timed)


class _TimedStream(httpx.SyncByteStream):
    """A body as it is sent: httpx gives nothing of what decompresses to nothing, which could go on for ever."""

    def __init__(self, stream: httpx.SyncByteStream, attempts: Attempts) -> None:
        self._stream = stream
        self._attempts = attempts

    def __iter__(self) -> Iterator[bytes]:
        for part in self._stream:
            yield part
            if self._attempts.left <= 0:
                raise httpx.ReadTimeout("the deadline has passed")
