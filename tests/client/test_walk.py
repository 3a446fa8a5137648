import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from random import Random
from threading import Event
from typing import Any

import httpx
import msgspec
import pytest

import awaiting
from client.conftest import Client
from client.service import TOKEN, Clock, Service, listed, pessoa, refused, relatorio
from client.socket_service import listening
from laudo.client import (
    AnswerError,
    AsyncLaudo,
    BadRequestError,
    Laudo,
    ParameterError,
    RateLimitError,
    Relatorio,
    StatusError,
    awaited,
)
from laudo.client.calls import Listed
from laudo.client.questions import pessoas, relatorios
from laudo.client.walk import Place, Walk


def newest_first(count: int) -> list[dict[str, object]]:
    return [relatorio(number) for number in range(count, 0, -1)]


def numeros(found: list[object]) -> list[str]:
    return [str(getattr(item, "numero", "")) for item in found]


@pytest.mark.parametrize("count", [0, 1, 25, 26, 100, 101, 1000, 2500])
@pytest.mark.parametrize("workers", [1, 4])
def test_a_walk_gives_every_item_once_and_in_order(client: Client, service: Service, count: int, workers: int) -> None:
    service.relatorios = newest_first(count)
    assert numeros(client.all("relatorios", workers=workers)) == numeros_of(service)


def numeros_of(service: Service) -> list[str]:
    return [str(item["numero"]) for item in service.relatorios]


def test_closing_a_walk_does_not_wait_for_pending_pages(service: Service) -> None:
    service.relatorios = newest_first(200)
    are_released = Event()
    waiting: list[int] = []

    def handler(request: httpx.Request) -> httpx.Response:
        if (page := int(request.url.params["page"])) > 2:
            waiting.append(page)
            are_released.wait(10)
            are_released.set()
        return service(request)

    client = Laudo("http://service.test", TOKEN, transport=httpx.MockTransport(handler))
    batches = client.relatorios_in_batches(rows=25, workers=3)
    assert len([next(batches), next(batches)]) == 2
    awaiting.until(lambda: sorted(waiting) == [3, 4])
    batches.close()  # type: ignore[attr-defined]  # typed as an iterator, but really a generator
    assert not are_released.is_set()
    are_released.set()


def test_closing_an_async_walk_and_its_client_leaves_no_task(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(awaited, "_CANCEL_DELAY", 3600)
    service.relatorios = newest_first(200)
    are_pending = asyncio.Barrier(3)  # pages 3 and 4, and the test

    async def handler(request: httpx.Request) -> httpx.Response:
        if int(request.url.params["page"]) > 2:
            await are_pending.wait()
            await asyncio.Event().wait()
        return service(request)

    async def leave() -> set[asyncio.Task[Any]]:
        client = AsyncLaudo("http://service.test", TOKEN, transport=httpx.MockTransport(handler))
        batches = client.relatorios_in_batches(rows=25, workers=3)
        assert len([await anext(batches), await anext(batches)]) == 2
        async with asyncio.timeout(10):
            await are_pending.wait()
            await batches.aclose()  # type: ignore[attr-defined]  # typed as an iterator, but really a generator
            await client.close()
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert awaiting.run(leave()) == set()
    assert caplog.messages == []


LEAVING = """
import sys
from laudo.client import Laudo

batches = Laudo(sys.argv[1], sys.argv[2]).relatorios_in_batches(rows=25, workers=2)
print(len([next(batches), next(batches)]))
"""


def test_a_program_that_leaves_a_walk_does_not_wait_for_pending_pages(service: Service) -> None:
    service.relatorios = newest_first(100)
    is_over = Event()

    def handler(request: httpx.Request) -> httpx.Response:
        if int(request.url.params["page"]) > 2:
            is_over.wait()
            raise ConnectionError
        return service(request)

    with listening(handler) as base:
        command = [sys.executable, "-c", LEAVING, base, TOKEN]
        try:
            assert subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=25).stdout == b"2\n"
        finally:
            is_over.set()


def test_a_list_of_one_page_needs_one_request(client: Client, service: Service) -> None:
    service.relatorios = newest_first(25)
    assert len(client.all("relatorios")) == 25
    assert len(service.requests) == 1


@pytest.mark.parametrize("most", [25, 100, 500, 750])
def test_a_walk_completes_if_the_service_refuses_large_pages(client: Client, service: Service, most: int) -> None:
    service.relatorios = newest_first(1200)
    service.most_rows = most
    assert numeros(client.all("relatorios")) == numeros_of(service)


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(("keys", "asked"), [(["rows"], 2), ([], 2), (["page"], 1)])
def test_smaller_pages_are_tried_only_if_rows_may_be_the_cause(
    client: Client, service: Service, status: int, keys: list[str], asked: int
) -> None:
    body = {"message": "Não.", "validation": {"source": "query", "keys": keys}}
    service.script = [httpx.Response(status, json=body)]
    with nullcontext() if asked > 1 else pytest.raises(StatusError):
        client.batches("relatorios_in_batches")
    assert len(service.requests) == asked


def test_an_explicit_page_size_is_not_reduced(client: Client, service: Service) -> None:
    service.most_rows = 100
    with pytest.raises(BadRequestError):
        client.batches("relatorios_in_batches", rows=200)


def test_a_walk_completes_if_the_service_silently_shrinks_pages(client: Client, service: Service) -> None:
    service.relatorios = newest_first(60)
    service.answer = lambda request: service.list(  # type: ignore[method-assign]
        "/relatorios", {}, page=int(request.url.params.get("page", "1")), rows=25
    )
    assert numeros(client.all("relatorios")) == numeros_of(service)


@pytest.mark.parametrize("workers", [1, 3])
def test_insertions_during_a_walk_cause_no_repeats_and_no_gaps(client: Client, service: Service, workers: int) -> None:
    service.relatorios = newest_first(500)
    before = numeros_of(service)

    def write(asked: int) -> None:
        for number in range(7):
            service.relatorios.insert(0, relatorio(1000 + asked * 10 + number))

    service.after = write
    found = numeros(client.all("relatorios", rows=25, workers=workers))
    assert len(found) == len(set(found))
    assert set(before) <= set(found)


@pytest.mark.parametrize("workers", [1, 3])
def test_deletions_during_a_walk_cause_no_repeats_and_no_gaps(client: Client, service: Service, workers: int) -> None:
    service.relatorios = newest_first(500)
    gone: set[str] = set()

    def delete(asked: int) -> None:
        if asked % 3 == 0 and len(gone) < 60:
            gone.update(str(item["numero"]) for item in service.relatorios[:9])
            del service.relatorios[:9]

    service.after = delete
    before = set(numeros_of(service))
    found = numeros(client.all("relatorios", rows=25, workers=workers))
    assert len(found) == len(set(found))
    assert before - gone <= set(found)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_list_that_loses_most_items_is_reread_with_few_requests(
    client: Client, service: Service, workers: int
) -> None:
    service.relatorios = newest_first(500)

    def delete(asked: int) -> None:
        if asked == 5:
            del service.relatorios[:-30]

    service.after = delete
    found = numeros(client.all("relatorios", rows=25, workers=workers))
    assert {*numeros_of(service)} <= {*found}
    assert len(service.requests) <= 5 + workers + 2


def insert(items: Service) -> None:
    newest = int(str(items.relatorios[0]["numero"])[:8], 16)
    items.relatorios[:0] = [relatorio(newest + number) for number in range(7, 0, -1)]


def delete(items: Service) -> None:
    del items.relatorios[:7]


@pytest.mark.parametrize("change", [insert, delete])
@pytest.mark.parametrize("seed", range(50))
def test_no_item_is_missed_or_repeated_in_any_order_of_answers(change: Callable[[Service], None], seed: int) -> None:
    """The list changes meanwhile, and the service may handle calls in any order."""
    seeded, items = Random(seed), Service(newest_first(300))
    before, found = numeros_of(items), list[object]()
    walk = Walk(relatorios({}), rows=25, workers=3)
    under_way: list[tuple[int, list[Listed[Relatorio]]]] = []
    while True:
        while len(under_way) < 3 and (call := walk.next_call()):
            under_way.append((int(dict(call.parameters)["page"]), []))
        if not under_way:
            break
        page, answer = seeded.choice([each for each in under_way if not each[1]])
        answer.append(relatorios({}).read({}, items.list("/relatorios", {}, page=page, rows=25).content))
        if seeded.random() < 0.2:
            change(items)
        while under_way and under_way[0][1]:
            found += walk.take(under_way.pop(0)[1][0]).itens
    assert len(numeros(found)) == len(set(numeros(found)))
    assert {*before} & {*numeros_of(items)} <= {*numeros(found)}


def test_a_walk_retries_transient_failures(client: Client, service: Service) -> None:
    service.relatorios = newest_first(2500)
    service.script = [None, refused(503), None, refused(429, Retry_After="1"), None]
    assert len(client.all("relatorios")) == 2500


def test_a_low_rate_limit_delays_a_walk_but_does_not_end_it(client: Client, service: Service, clock: Clock) -> None:
    service.relatorios = newest_first(40_000)
    service.script = [each for _ in range(40) for each in (refused(429, Retry_After="1"), None)]
    assert len(client.all("relatorios")) == 40_000
    assert clock.pauses == [1.25] * 40


def test_a_walk_waits_at_most_15_minutes_for_a_page(client: Client, service: Service, clock: Clock) -> None:
    service.relatorios = newest_first(2500)
    service.script = [None, *[refused(429, Retry_After="60")] * 14, None, refused(429, Retry_After="800"), None]
    assert len(client.all("relatorios")) == 2500
    assert clock.pauses == [60.25] * 14 + [800.25]
    service.script = [None, *[refused(429, Retry_After="60")] * 100]
    with pytest.raises(RateLimitError):
        client.all("relatorios")
    assert clock.pauses[15:] == [60.25] * 14


def test_a_walk_does_not_outwait_its_deadline_for_a_service_in_trouble(
    client: Client, service: Service, clock: Clock
) -> None:
    service.relatorios = newest_first(2500)
    service.script = [None, None, refused(503, Retry_After="100")]
    with pytest.raises(StatusError):
        client.all("relatorios")
    assert clock.pauses == []


@pytest.mark.parametrize("status", [400, 500])
def test_a_permanent_failure_ends_a_walk(client: Client, service: Service, status: int) -> None:
    service.relatorios = newest_first(2500)
    service.script = [None, None, refused(status)]
    with pytest.raises(StatusError):
        client.all("relatorios")
    assert len(service.requests) == 3


def test_a_walk_follows_the_cursor_if_the_service_offers_one(client: Client, service: Service) -> None:
    items = newest_first(75)
    link = '</relatorios?page=1>; rel="first", </relatorios?cursor={}&rows=25>; rel="next"'
    service.script = [
        listed(items[:25], total=75, headers={"Link": link.format("a%3D")}),
        listed(items[25:50], total=75, headers={"Link": link.format("b")}),
        listed(items[50:], total=75),
    ]
    batches = client.batches("relatorios_in_batches", rows=25, status="CONCLUIDO")
    assert [len(batch.itens) for batch in batches] == [25, 25, 25]
    assert [dict(request.url.params).get("cursor") for request in service.requests] == [None, "a=", "b"]
    assert all(dict(request.url.params)["status"] == "CONCLUIDO" for request in service.requests)
    assert [batch.place and batch.place.cursor for batch in batches] == ["a=", "b", None]


def test_a_walk_by_cursor_resumes_by_cursor_even_with_workers(client: Client, service: Service) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        page = int(request.url.params.get("cursor", "0"))
        following = {"Link": f'</relatorios?cursor={page + 1}>; rel="next"'} if page < 3 else {}
        return listed(service.relatorios[page * 25 :][:25], total=100, headers=following)

    service.relatorios = newest_first(100)
    service.script = [answer] * 10
    places = [batch.place for batch in client.batches("relatorios_in_batches", rows=25)]
    assert [place and place.page for place in places] == [2, 3, 4, None]
    for place in places[:2]:
        rest = client.batches("relatorios_in_batches", start=place, workers=3)
        assert numeros([item for batch in rest for item in batch.itens]) == numeros_of(service)[(place.page - 1) * 25 :]
        assert rest[-1].place is None


def test_a_page_with_a_cursor_may_have_fewer_items_than_its_rows(client: Client, service: Service) -> None:
    items = newest_first(75)
    following = {"Link": '</relatorios?cursor=a>; rel="next"'}
    service.script = [listed(items[:10], total=75, rows=1000, headers=following), listed(items[10:], total=75)]
    assert [len(batch.itens) for batch in client.batches("relatorios_in_batches")] == [10, 65]


@pytest.mark.parametrize(("before", "circle"), [(0, 1), (0, 2), (1, 1), (2, 3), (20, 7)])
def test_a_cycle_of_cursors_raises_answer_error(client: Client, service: Service, before: int, circle: int) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        page = int(request.url.params.get("cursor", 0)) + 1
        following = page if page < before + circle else before
        return listed(newest_first(25), total=75, headers={"Link": f'</relatorios?cursor={following}>; rel="next"'})

    service.script = [answer] * 100
    with pytest.raises(AnswerError, match="lead in a circle: the next one was already requested"):
        client.batches("relatorios_in_batches", rows=25)
    assert len(service.requests) <= 3 * (before + circle) + 1


@pytest.mark.parametrize(("empty", "ends"), [(100, False), (101, True)])
def test_more_than_100_empty_pages_in_a_row_raise_answer_error(
    client: Client, service: Service, empty: int, *, ends: bool
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        page = int(request.url.params.get("cursor", 0)) + 1
        items = newest_first(25) if page in {1, empty + 2, 2 * empty + 3} else []
        following = {"Link": f'</relatorios?cursor={page}>; rel="next"'} if page < 2 * empty + 3 else {}
        return listed(items, total=75, headers=following)

    service.script = [answer] * 300
    with pytest.raises(AnswerError, match="101 pages in a row are empty") if ends else nullcontext():
        batches = client.batches("relatorios_in_batches", rows=25)
        assert sum(len(batch.itens) for batch in batches) == 75
    assert len(service.requests) == (102 if ends else 203)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("most", [0, 100, 999])
def test_a_page_with_missing_items_raises_answer_error(
    client: Client, service: Service, most: int, workers: int
) -> None:
    def short(request: httpx.Request) -> httpx.Response:
        place = request.url.params
        rows = int(place["rows"])
        return listed(service.pessoas[: min(most, rows - 1)], total=2500, page=int(place["page"]), rows=rows)

    service.pessoas = [pessoa(number) for number in range(2500)]
    service.script = [None, *[short] * 5]
    with pytest.raises(AnswerError, match="fewer items"):
        client.all("pessoas", workers=workers)


def capped(service: Service, most: int, *, more: int = 0) -> None:
    """Make the service echo the requested `rows`, but return at most `most` items and a total `more` too high."""

    def answer(request: httpx.Request) -> httpx.Response:
        page, rows = (int(request.url.params.get(name, "1")) for name in ("page", "rows"))
        shown = service.relatorios[(page - 1) * rows :][: min(most, rows)]
        return listed(shown, total=len(service.relatorios) + more, page=page, rows=rows)

    service.script = [answer] * 100


@pytest.mark.parametrize("count", [26, 60, 600, 1100])
@pytest.mark.parametrize("most", [25, 100, 700])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_walk_completes_if_the_service_fills_only_small_pages(
    client: Client, service: Service, count: int, most: int, workers: int
) -> None:
    service.relatorios = newest_first(count)
    capped(service, most)
    assert numeros(client.all("relatorios", workers=workers)) == numeros_of(service)
    batches = client.batches("relatorios_in_batches")
    for batch in batches[:-1]:
        rest = client.batches("relatorios_in_batches", start=batch.place)
        assert numeros([item for each in rest for item in each.itens])[-1] == numeros_of(service)[-1]


@pytest.mark.parametrize("count", [26, 60, 1100])
def test_an_explicit_page_size_that_is_not_filled_raises_answer_error(
    client: Client, service: Service, count: int
) -> None:
    service.relatorios = newest_first(count)
    capped(service, 25)
    with pytest.raises(AnswerError, match="smaller pages"):
        client.batches("relatorios_in_batches", rows=500)


@pytest.mark.parametrize("count", [9, 60, 1060])
def test_a_total_may_exceed_the_items_by_two_but_not_by_three(client: Client, service: Service, count: int) -> None:
    service.relatorios = newest_first(count)
    capped(service, 1000, more=2)
    assert numeros(client.all("relatorios")) == numeros_of(service)
    capped(service, 1000, more=3)
    with pytest.raises(AnswerError, match="fewer items"):
        client.all("relatorios")


def test_a_walk_follows_no_link_to_another_host(client: Client, service: Service) -> None:
    elsewhere = '<https://elsewhere.test/relatorios?cursor=a>; rel="next"'
    service.script = [listed(newest_first(25), total=26, headers={"Link": elsewhere}), listed([], total=26)]
    client.batches("relatorios_in_batches", rows=25)
    assert {request.url.host for request in service.requests} == {"service.test"}


@pytest.mark.parametrize("change", [insert, delete])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("stop", range(1, 5))
def test_a_walk_resumes_where_it_stopped(
    client: Client, service: Service, change: Callable[[Service], None], workers: int, stop: int
) -> None:
    service.relatorios = newest_first(110)
    before = numeros_of(service)
    batches = client.batches("relatorios_in_batches", rows=25, workers=workers)
    change(service)
    rest = client.batches("relatorios_in_batches", start=batches[stop - 1].place)
    found = [item.numero for batch in (*batches[:stop], *rest) for item in batch.itens]
    assert sorted(found) == sorted(before)


def test_resuming_after_many_insertions_repeats_items_but_misses_none(client: Client, service: Service) -> None:
    service.relatorios = newest_first(200)
    before = numeros_of(service)
    batches = client.batches("relatorios_in_batches", rows=25)
    service.relatorios = [relatorio(number) for number in range(1100, 1000, -1)] + service.relatorios
    rest = client.batches("relatorios_in_batches", start=batches[3].place)
    found = Counter(item.numero for batch in (*batches[:4], *rest) for item in batch.itens)
    assert [numero for numero in before if found[numero] == 2] == before[:50]
    assert set(before) <= set(found)


def test_a_walk_by_page_number_ignores_cursors_when_it_resumes(client: Client, service: Service) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        given = service.answer(request)
        given.headers["Link"] = '</relatorios?cursor=a>; rel="next"'
        return given

    service.relatorios = newest_first(110)
    before = numeros_of(service)
    first, *_ = client.batches("relatorios_in_batches", rows=25, workers=3)
    insert(service)
    service.script = [answer] * 10
    rest = client.batches("relatorios_in_batches", start=first.place)
    assert sorted(item.numero for batch in (first, *rest) for item in batch.itens) == sorted(before)


@pytest.mark.parametrize("offered", [None, '</relatorios?cursor=a>; rel="next"'], ids=["by number", "by cursor"])
@pytest.mark.parametrize(
    ("method", "other"),
    [
        ("relatorios_in_batches", {"status": "CONCLUIDO"}),
        ("relatorios_in_batches", {"status": "CONCLUIDO", "sort": "-nome"}),
        ("relatorios_in_batches", {"status": "PENDENTE", "sort": "nome"}),
        ("relatorios_in_batches", {"sort": "nome"}),
        ("pessoas_in_batches", {"sort": "nome"}),
    ],
)
def test_a_place_of_another_query_is_refused_without_a_request(
    client: Client, service: Service, method: str, other: dict[str, str], offered: str | None
) -> None:
    asked = {"status": "CONCLUIDO", "sort": "nome"}
    headers = {"Link": offered} if offered else {}
    service.script = [listed(newest_first(25), total=26, headers=headers), listed([relatorio(26)], total=26, page=2)]
    place = client.batches("relatorios_in_batches", rows=25, **asked)[0].place
    assert "CONCLUIDO" not in str(msgspec.json.encode(place))
    service.requests.clear()
    with pytest.raises(ParameterError, match="start belongs to another list"):
        client.batches(method, start=place, **other)
    assert service.requests == []
    service.script = [listed([relatorio(26)], total=26, page=2)]
    assert len(client.batches("relatorios_in_batches", start=place, **asked)) == 1


@pytest.mark.parametrize("workers", [1, 3])
def test_a_walk_resumes_only_with_the_same_page_size(client: Client, service: Service, workers: int) -> None:
    service.relatorios = newest_first(200)
    place = client.batches("relatorios_in_batches", rows=50, workers=workers)[0].place
    asked = len(service.requests)
    with pytest.raises(ParameterError, match=r"^rows must be 50, as in the walk that start belongs to, or left out$"):
        client.batches("relatorios_in_batches", start=place, rows=25)
    assert len(service.requests) == asked
    assert len(client.batches("relatorios_in_batches", start=place, rows=50)) == 3


@pytest.mark.parametrize("start", ["", "eyJwIjo", 0, 3, {}, {"page": 2}])
def test_a_start_that_is_not_a_place_is_refused_without_a_request(
    client: Client, service: Service, start: object
) -> None:
    with pytest.raises(ParameterError, match=r"^start must be the place of a batch$"):
        client.batches("relatorios_in_batches", start=start)
    assert service.requests == []


def test_an_answer_with_another_page_number_raises_answer_error(client: Client, service: Service) -> None:
    """For example, if a proxy drops the query, every answer is the first page again."""
    service.script = [listed(newest_first(25), total=250)] * 10
    with pytest.raises(AnswerError, match="not the page that was requested"):
        client.batches("relatorios_in_batches", rows=25)
    assert len(service.requests) == 2


def test_a_place_fits_its_query_at_any_page_and_parameter_order() -> None:
    call = relatorios({"status": "CONCLUIDO"}, sort="nome")
    turned = replace(call, parameters=call.parameters[::-1]).at(page="3", rows="50", cursor="a")
    walk = Walk(call, rows=25)
    assert walk.next_call()
    place = walk.take(call.read({}, listed(newest_first(25), total=26).content)).place
    assert Walk(turned, rows=None, start=place).next_call()


def test_a_walk_ends_if_every_page_has_the_same_items() -> None:
    walk, items = Walk(relatorios({}), rows=25), newest_first(25)
    seen, pages = list[object](), list[str]()
    while (call := walk.next_call()) and len(pages) < 10:
        pages.append(dict(call.parameters)["page"])
        answer = listed(items, total=100, page=int(pages[-1]))
        seen += walk.take(relatorios({}).read({}, answer.content)).itens
    assert pages == ["1", "2", "3", "4"]
    assert numeros(seen) == [item["numero"] for item in items]


def test_a_walk_ends_if_the_total_depends_on_the_page() -> None:
    """The first page always reports a larger total than the others."""
    walk, items = Walk(relatorios({}), rows=25), newest_first(100)
    seen: list[object] = []
    for _ in range(2000):
        if not (call := walk.next_call()):
            break
        page = int(dict(call.parameters)["page"])
        answer = listed(items[(page - 1) * 25 : page * 25], total=100 if page == 1 else 90, page=page)
        seen += walk.take(relatorios({}).read({}, answer.content)).itens
    assert walk.next_call() is None
    assert len(seen) == len(set(numeros(seen))) >= 90


def test_a_walk_remembers_at_most_20000_keys() -> None:
    walk = Walk(pessoas({}), rows=1000)
    place: Place | None = None
    for page in range(1, 60):
        assert walk.next_call()
        items = [pessoa(page * 1000 + number) for number in range(1000)]
        place = walk.take(pessoas({}).read({}, listed(items, total="100000", page=page, rows=1000).content)).place
    assert place is not None
    assert (place.page, len(walk._seen._keys)) == (60, 20_000)
    assert place.seen == tuple(f"{number:011}" for number in range(58_000, 60_000))


def test_parallel_pages_are_returned_in_order(client: Client, service: Service) -> None:
    service.relatorios = newest_first(1000)
    found = numeros(client.all("relatorios", rows=25, workers=8))
    assert all(a > b for a, b in pairwise(found))
    assert len(service.requests) == 1 + 40
