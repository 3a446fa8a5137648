"""What an open list shows about its freshness as time passes; the tests control the clock."""

import re
from typing import Any

import httpx
import pytest

from console.driver import Console
from console.lists import LOOKS_AGAIN, answered, answers, count, first

LIST = re.compile(r"/relatorios$")
A_DAY = 86_400_000


def open_with_clock(console: Console) -> str:
    """Open the list with a clock that the test controls; gives its freshness text."""
    console.lasting.clock.install()
    console.enter()
    return console.page.locator(".checked").inner_text()


def test_a_change_of_nothing_visible_is_not_reported_as_news(wide: Console) -> None:
    before = open_with_clock(wide)
    wide.intercept(LIST, answered(lambda result: result["paginacao"].update(outro=1)))
    wide.page.clock.fast_forward(LOOKS_AGAIN)
    wide.until("document.querySelector('.checked').textContent !== given", before)
    assert wide.page.locator(".checked").inner_text().startswith("atualizado")
    assert not wide.page.locator(".news").count()
    wide.page.unroute_all(behavior="wait")


def test_a_304_updates_the_time_of_the_last_check(wide: Console) -> None:
    before = open_with_clock(wide)
    with wide.page.expect_response(LIST) as answer:
        wide.page.clock.fast_forward(LOOKS_AGAIN)
    assert answer.value.status == 304
    wide.until("document.querySelector('.checked').textContent !== given", before)
    assert wide.page.locator(".checked").inner_text().startswith("atualizado às ")


def test_a_failed_refresh_marks_the_list_as_stale(wide: Console) -> None:
    wide.refusals_expected = True
    before = open_with_clock(wide).removeprefix("atualizado às ")
    wide.intercept(LIST, lambda route: route.fulfill(status=503, body="{}"))
    wide.page.clock.fast_forward(LOOKS_AGAIN)
    wide.page.locator(".checked.off").wait_for()
    assert wide.page.locator(".checked").inner_text() == f"sem atualização desde {before}"
    assert wide.rows.count() == 25
    wide.page.unroute(LIST)
    wide.page.clock.fast_forward(LOOKS_AGAIN)
    wide.until("document.querySelector('.checked').textContent.startsWith('atualizado')")


def test_a_stale_list_shows_its_date_on_another_day(wide: Console) -> None:
    wide.refusals_expected = True
    before = open_with_clock(wide).removeprefix("atualizado às ")
    today = wide.page.evaluate("new Date().toLocaleDateString('pt-BR')")
    wide.intercept(LIST, lambda route: route.fulfill(status=503, body="{}"))
    wide.page.clock.fast_forward(A_DAY)
    wide.page.locator(".checked.off").wait_for()
    assert wide.page.locator(".checked").inner_text() == f"sem atualização desde {before} de {today}"


def test_the_dashboard_shows_its_date_on_another_day(wide: Console) -> None:
    wide.lasting.clock.install()
    wide.enter("#/painel")
    wide.page.locator(".volume .chart").wait_for()
    counted = wide.page.locator(".checked").inner_text()
    today = wide.page.evaluate("new Date().toLocaleDateString('pt-BR')")
    wide.page.clock.fast_forward(A_DAY)
    wide.until("document.querySelector('.checked').textContent !== given", counted)
    assert wide.page.locator(".checked").inner_text() == f"{counted} de {today}"


def test_a_refresh_notices_a_revoked_token(wide: Console) -> None:
    wide.refusals_expected = True
    open_with_clock(wide)
    wide.intercept(LIST, lambda route: route.fulfill(status=401, body="{}"))
    wide.page.clock.fast_forward(LOOKS_AGAIN)
    wide.page.get_by_text("O token não é mais aceito. Entre novamente.").wait_for()


def test_a_failed_refresh_after_going_back_shows_the_last_check(wide: Console) -> None:
    wide.refusals_expected = True
    before = open_with_clock(wide).removeprefix("atualizado às ")
    first_row = wide.rows.first.get_attribute("title")
    wide.page.clock.fast_forward(LOOKS_AGAIN // 3)
    wide.page.keyboard.press("ArrowRight")
    wide.until("document.querySelector('[data-row]').title !== given", first_row)
    wide.settle()
    wide.intercept(LIST, lambda route: route.fulfill(status=503, body="{}"))
    wide.page.go_back()
    wide.page.locator(".checked.off").wait_for()
    assert wide.page.locator(".checked").inner_text() == f"sem atualização desde {before}"
    assert wide.rows.first.get_attribute("title") == first_row


def check_news_on_coming_online(console: Console) -> None:
    total = console.total
    console.intercept(LIST, answered(lambda result: result["paginacao"].update(total=total + 1)))
    stop_the_clock(console)
    console.page.evaluate("dispatchEvent(new Event('online'))")
    console.page.locator(".news").wait_for()
    assert console.total == total
    console.page.unroute_all(behavior="wait")


def test_coming_online_shows_news_without_changing_the_list(wide: Console) -> None:
    open_with_clock(wide)
    check_news_on_coming_online(wide)


def test_coming_online_after_an_error_shows_news_too(wide: Console) -> None:
    wide.refusals_expected = True
    wide.lasting.clock.install()
    wide.intercept(LIST, answers(500, "Erro interno."))
    wide.enter()
    wide.page.unroute(LIST)
    wide.page.get_by_role("button", name="Tentar novamente").click()
    wide.rows.first.wait_for()
    check_news_on_coming_online(wide)


def test_a_hidden_tab_sends_no_requests_and_refreshes_when_shown(wide: Console) -> None:
    open_with_clock(wide)
    wide.await_counts()
    wide.intercept(LIST, answered(lambda result: result["paginacao"].update(total=1)))
    wide.page.evaluate("Object.defineProperty(document, 'hidden', { configurable: true, get: () => true })")
    asked = len(wide.requests)
    for _ in range(3):
        wide.page.clock.fast_forward(LOOKS_AGAIN)
    assert len(wide.requests) == asked
    stop_the_clock(wide)
    wide.page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    wide.page.locator(".news").wait_for()
    wide.page.unroute_all(behavior="wait")


def stop_the_clock(tab: Console) -> None:
    """Stop the clock, so that no timer runs."""
    tab.page.clock.pause_at(tab.page.evaluate("Date.now() / 1000") + 1)


def test_news_count_new_reports_and_changed_rows(wide: Console) -> None:
    open_with_clock(wide)

    def change(result: Any) -> None:  # noqa: ANN401 - the body of an answer
        result["paginacao"]["total"] += 1
        result["itens"].insert(0, result["itens"].pop() | {"numero": "6f0c7b52-93a6-4d0e-8a55-1f6f3f1f2a10"})
        for item in result["itens"][1:4]:
            item["mensagem"] = "Decidido."

    wide.intercept(LIST, answered(change))
    wide.page.clock.fast_forward(LOOKS_AGAIN)
    news = wide.page.locator(".news")
    news.get_by_text("Há novidades: 1 relatório a mais; 3 linhas desta página mudaram.").wait_for()
    wide.page.unroute_all(behavior="wait")


@pytest.mark.parametrize(
    ("more", "changed", "said"),
    [
        (-1, 1, "1 relatório a menos; 1 linha desta página mudou."),
        (-2, 0, "2 relatórios a menos."),
        (0, 2, "2 linhas desta página mudaram."),
    ],
)
def test_news_say_whether_reports_were_added_or_removed(wide: Console, more: int, changed: int, said: str) -> None:
    open_with_clock(wide)

    def change(result: Any) -> None:  # noqa: ANN401 - the body of an answer
        result["paginacao"]["total"] += more
        for item in result["itens"][:changed]:
            item["mensagem"] = "Decidido."

    wide.intercept(LIST, answered(change))
    wide.page.clock.fast_forward(LOOKS_AGAIN)
    news = wide.page.locator(".news span")
    news.wait_for()
    assert news.inner_text() == f"Há novidades: {said}"
    wide.page.unroute_all(behavior="wait")


def test_news_move_no_row_cover_no_focused_one_and_show_the_top(tab: Console) -> None:
    open_with_clock(tab)
    tops = "[...document.querySelectorAll('[data-row]')].map((row) => row.getBoundingClientRect().top)"
    before, total = tab.page.evaluate(tops), tab.total
    tab.intercept(LIST, answered(lambda result: result["paginacao"].update(total=total + 1)))
    tab.page.clock.fast_forward(LOOKS_AGAIN)
    news = tab.page.locator(".news")
    news.wait_for()
    assert tab.page.evaluate(tops) == before
    for _ in range(len(before)):
        tab.page.keyboard.press("ArrowDown")
        assert tab.page.evaluate(
            "document.querySelector('tr:focus-within').getBoundingClientRect().bottom"
            " <= document.querySelector('.news').getBoundingClientRect().top"
        )
    assert news.evaluate("(e) => e.getBoundingClientRect().bottom <= innerHeight")
    assert tab.fits_its_width()
    assert tab.page.evaluate("scrollY")
    tab.page.locator("[data-news]").click()
    tab.await_total(total + 1)
    assert not tab.page.evaluate("scrollY")
    tab.page.unroute_all(behavior="wait")


def test_news_of_one_page_are_not_shown_over_another(wide: Console) -> None:
    open_with_clock(wide)
    total = wide.total
    wide.intercept(LIST, answered(lambda result: result["paginacao"].update(total=total + 1)))
    wide.page.clock.fast_forward(LOOKS_AGAIN)
    wide.page.locator(".news").wait_for()
    held = wide.hold("**/relatorios?page=2")
    wide.page.get_by_role("link", name="Próxima página").click()
    wide.await_first(held)
    assert not wide.page.locator(".news").count()
    wide.page.unroute_all(behavior="ignoreErrors")


def test_unchanged_news_are_announced_once(wide: Console) -> None:
    before = open_with_clock(wide)
    total = wide.total
    wide.intercept(LIST, answered(lambda result: result["paginacao"].update(total=total + 1)))
    for _ in range(2):
        wide.page.clock.fast_forward(LOOKS_AGAIN)
        wide.until("document.querySelector('.checked').textContent !== given", before)
        before = wide.page.locator(".checked").inner_text()
    wide.page.unroute_all(behavior="wait")
    said = wide.page.locator("[role=status] p").get_by_text("Há novidades")
    assert said.count() == 1


def test_news_of_the_list_and_of_the_open_report_are_both_announced(wide: Console, api: httpx.Client) -> None:
    total, opened = count(api), first(api)["numero"]
    wide.lasting.clock.install()
    wide.enter(f"#/relatorios?aberto={opened}")
    wide.intercept(LIST, answered(lambda result: result["paginacao"].update(total=total + 1)))
    wide.intercept(re.compile(r"\?numero="), answered(lambda result: result["itens"][0].update(mensagem="Decidido.")))
    wide.page.clock.fast_forward(LOOKS_AGAIN)
    for said in ("Há novidades: 1 relatório a mais.", "Este relatório mudou enquanto estava aberto: mensagem."):
        wide.until("[...document.querySelector('[role=status]').children].some((p) => p.textContent === given)", said)
    assert wide.page.locator("[role=status][aria-atomic=false] p").count() <= 3
    wide.page.unroute_all(behavior="wait")


def test_a_late_refresh_is_not_reported_as_news(wide: Console, api: httpx.Client) -> None:
    open_with_clock(wide)
    total = wide.total
    wide.intercept(LIST, answered(lambda result: result["paginacao"].update(total=total + 5)))
    wide.page.evaluate("dispatchEvent(new Event('online'))")
    wide.page.locator(".news").wait_for()
    wide.page.unroute_all(behavior="wait")
    held = wide.hold(LIST)
    wide.page.evaluate("['online', 'online'].forEach((name) => dispatchEvent(new Event(name)))")
    first = wide.await_first(held)
    wide.page.wait_for_timeout(200)
    assert held == [first]
    late = api.get("/relatorios")
    wide.intercept(LIST, answered(lambda result: result["paginacao"].update(total=total + 5)))
    wide.page.locator("[data-news]").click()
    wide.await_total(total + 5)
    first.fulfill(status=200, headers={"ETag": '"late"'}, body=late.text)
    wide.page.wait_for_timeout(300)
    assert not wide.page.locator(".news").count()
    wide.page.unroute_all(behavior="wait")
