"""The counts beside filter choices, and how many requests they need."""

import re
from collections.abc import Callable

import httpx
from playwright.sync_api import Route

from console.driver import Console
from console.lists import CHOICES, LISTS, LOOKS_AGAIN, answered, answers, count

ANALYSIS = '[data-filter="status=EM ANALISE"]'


def requests_after_click(console: Console, press: str) -> int:
    """Click an element and wait for all counts; gives the number of list requests that this took."""
    console.await_counts()
    before = list_requests(console)
    console.page.locator(press).click()
    console.settle()
    console.await_counts()
    return list_requests(console) - before


def list_requests(console: Console) -> int:
    return sum(LISTS.search(request.url) is not None for request in console.requests)


def test_a_filter_costs_one_request_for_the_list_and_one_per_count(wide: Console) -> None:
    wide.enter()
    assert requests_after_click(wide, ANALYSIS) == 1 + len(CHOICES)


def test_paging_and_sorting_request_no_new_counts(wide: Console) -> None:
    wide.enter()
    for press in ("a[rel=next]", "th.c-nome button"):
        assert requests_after_click(wide, press) == 1, press


def test_a_page_with_a_different_total_refreshes_the_counts(wide: Console) -> None:
    wide.enter()
    wide.await_counts()
    total = wide.total
    wide.intercept("**/relatorios?page=2", answered(lambda result: result["paginacao"].update(total=total + 1)))
    with wide.page.expect_request("**/relatorios?status=PENDENTE"):
        wide.page.locator("a[rel=next]").click()
    wide.page.unroute_all(behavior="wait")


def test_old_counts_are_dimmed_until_the_new_ones_arrive(wide: Console, api: httpx.Client) -> None:
    wide.enter()
    wide.await_counts()
    valid = wide.page.locator('[data-filter="resultado=VALID"] .number')
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)
        if len(held) > 1:
            route.continue_()

    wide.intercept(re.compile(r"/relatorios\?status=EM\+ANALISE$"), hold)
    asked = list_requests(wide)
    wide.page.locator(ANALYSIS).click()
    wide.page.locator(".number[aria-busy=true]").first.wait_for()
    wide.until("getComputedStyle(document.querySelector('.number[aria-busy=true]')).opacity < 1")
    # The counts are requested only after the list has arrived.
    assert list_requests(wide) == asked + 1
    held[0].continue_()
    wide.await_counts()
    assert valid.inner_text().replace(".", "") == str(count(api, status="EM ANALISE", resultado="VALID"))


def test_old_counts_disappear_when_the_list_request_fails(wide: Console) -> None:
    wide.refusals_expected = True
    wide.enter()
    wide.await_counts()
    wide.intercept(LISTS, answers(500, "Erro interno."))
    wide.page.locator(ANALYSIS).click()
    wide.page.locator(".list > .trouble").wait_for()
    assert not any(wide.page.locator("[data-filter] .number").all_inner_texts())
    wide.page.unroute(LISTS)
    wide.page.get_by_role("button", name="Tentar novamente").click()
    wide.await_counts()


def test_showing_the_news_refreshes_the_counts(wide: Console) -> None:
    wide.lasting.clock.install()
    wide.enter()
    wide.await_counts()
    wide.intercept(LISTS, answered(lambda result: result["paginacao"].update(total=7)))
    wide.page.clock.fast_forward(LOOKS_AGAIN)
    wide.page.locator("[data-news]").click()
    wide.until("[...document.querySelectorAll('[data-filter] .number')].every((one) => one.textContent === '7')")
    wide.page.unroute_all(behavior="wait")


def test_counts_of_matrices_refresh_with_the_list_and_on_reopening(wide: Console) -> None:
    wide.lasting.clock.install()
    wide.enter()
    summary = wide.page.locator(".matriz summary")
    summary.click()
    numbers = wide.page.locator(".matriz .number")
    numbers.first.wait_for()
    before = [int(text.replace(".", "")) for text in numbers.all_inner_texts()]
    wide.await_counts()
    wide.intercept(re.compile(r"/relatorios(\?nome=[^&]+)?$"), more(1))
    wide.page.clock.fast_forward(LOOKS_AGAIN)
    wide.page.locator("[data-news]").click()
    wide.until(SHOWN, [number + 1 for number in before])
    wide.intercept(re.compile(r"/relatorios\?nome=[^&]+$"), more(2))
    summary.click()
    numbers.first.wait_for(state="hidden")
    summary.click()
    wide.until(SHOWN, [number + 2 for number in before])
    wide.page.unroute_all(behavior="wait")


SHOWN = """String(given) === String([...document.querySelectorAll('.matriz .number')].map(({ textContent }) =>
    textContent.replace('.', '')))"""


def more(by: int) -> Callable[[Route], None]:
    """Answer with a total that is too large by `by`."""
    return answered(lambda result: result["paginacao"].update(total=result["paginacao"]["total"] + by))
