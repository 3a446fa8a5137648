import re

import httpx
from playwright.sync_api import Route

from console.driver import Console
from console.lists import CHOICES, LISTS, answered, count


def number(text: str) -> int:
    return int(text.replace(".", ""))


def test_totals_are_exact_and_link_to_their_lists(tab: Console, api: httpx.Client) -> None:
    tab.enter("#/painel")
    assert tab.total == count(api)
    for choice in CHOICES[:9]:
        value = choice.partition("=")[2]
        shown = tab.page.locator(f'.bars [data-value="{value}"] .number').inner_text()
        assert number(shown) == count(api, **dict([choice.split("=")]))
    tab.page.locator(".bars").get_by_role("link", name="Em análise").click()
    tab.await_total(count(api, status="EM ANALISE"))


def test_reports_awaiting_manual_validation_come_first(tab: Console, api: httpx.Client) -> None:
    tab.enter("#/painel")
    total = count(api, pendente_validacao_manual="true")
    assert number(tab.page.locator("[data-pending]").inner_text()) == total
    assert tab.page.locator(".card").first.locator("h2").inner_text() == "Aguardando validação manual"
    oldest = api.get("/relatorios", params={"pendente_validacao_manual": "true", "sort": "atualizado_em"}).json()
    shown = [link.get_attribute("href") or "" for link in tab.page.locator(".waiting li a").all()]
    assert [href[-36:] for href in shown] == [item["numero"] for item in oldest["result"]["itens"][:4]]
    tab.page.locator("[data-pending]").click()
    tab.await_total(total)
    assert tab.rows.first.get_attribute("title") == shown[0][-36:]


def test_the_volume_is_shown_as_a_chart_and_as_a_table(tab: Console, api: httpx.Client) -> None:
    tab.enter("#/painel")
    tab.page.locator(".volume .chart").wait_for()
    rows = tab.page.locator(".volume tbody tr")
    assert rows.count() == 30
    row = rows.nth(1)
    day, month = row.locator("th").inner_text().split("/")[:2]
    row.get_by_role("link").click()
    tab.settle()
    begins = f"2026-{month}-{day}T03:00:00Z"
    total = count(api, atualizado_em_de=begins, atualizado_em_ate=f"2026-{month}-{int(day) + 1:02}T03:00:00Z")
    tab.await_total(total)
    tab.page.go_back()
    tab.page.get_by_role("link", name="12 meses").click()
    tab.until("document.querySelectorAll('.volume tbody tr').length === 12")
    assert tab.hash == "/painel?volume=meses"
    tab.page.locator(".volume .chart").wait_for()


def test_shares_stay_within_100_percent_if_counts_disagree(wide: Console) -> None:
    twice = answered(lambda result: result["paginacao"].update(total=2 * result["paginacao"]["total"]))
    wide.intercept(re.compile(r"/relatorios\?(status|resultado)="), twice)
    wide.enter("#/painel")
    shares = wide.page.locator(".bars .share").all_inner_texts()
    assert len(shares) == 10
    assert all(0 <= float(share.removesuffix("%").replace(",", ".")) <= 100 for share in shares), shares
    assert number(wide.page.locator('.bars [data-value="none"] .number').inner_text()) == 0
    wide.page.unroute_all(behavior="wait")


def test_days_are_not_shown_as_months_if_counting_the_months_fails(wide: Console) -> None:
    wide.refusals_expected = True
    wide.enter("#/painel")
    wide.page.locator(".volume .chart").wait_for()
    wide.intercept(LISTS, lambda route: route.abort())
    wide.page.get_by_role("link", name="12 meses").click()
    wide.page.locator(".volume .trouble").wait_for()
    assert not wide.page.locator(".volume .chart, .volume table").count()
    wide.page.unroute_all(behavior="wait")


def test_the_dashboard_shows_when_it_was_counted_and_can_be_refreshed(wide: Console, api: httpx.Client) -> None:
    wide.refusals_expected = True
    wide.enter("#/painel")
    rows = wide.page.locator(".volume tbody .number")
    rows.first.wait_for()
    assert re.fullmatch(r"atualizado às \d\d:\d\d:\d\d", wide.page.locator(".checked").inner_text())
    wide.page.wait_for_load_state("networkidle")
    shown, more = rows.first.inner_text(), answered(lambda result: result["paginacao"].update(total=54321))
    wide.intercept(LISTS, lambda route: route.fulfill(status=503, body="{}"))
    wide.page.evaluate("dispatchEvent(new Event('online'))")
    wide.page.get_by_text("não foi possível verificar desde então").wait_for()
    wide.intercept(LISTS, more)
    wide.page.evaluate("dispatchEvent(new Event('online'))")
    wide.page.get_by_text("houve mudanças desde então").wait_for()
    wide.until(
        "document.querySelector('[role=status]').textContent.endsWith(given)",
        "Houve mudanças desde a última atualização.",
    )
    assert (wide.total, rows.first.inner_text()) == (count(api), shown)
    again = wide.page.get_by_role("button", name="Atualizar")
    again.focus()
    wide.page.keyboard.press("Enter")
    wide.until("!document.querySelector('.checked').textContent.includes('mudanças')")
    wide.until("document.querySelector('.volume tbody .number').textContent === '54.321'")
    assert wide.total == number(wide.page.locator("[data-pending]").inner_text()) == 54321
    held = wide.hold("**/relatorios**")
    wide.page.keyboard.press("Enter")
    wide.page.locator(".head").get_by_text("Ainda buscando…").wait_for()
    wide.intercept("**/relatorios**", lambda route: route.abort())
    for route in held:
        route.abort()
    wide.page.get_by_text("Abaixo, os últimos dados recebidos.").wait_for()
    assert wide.total == number(wide.page.locator("[data-pending]").inner_text()) == 54321
    assert again.evaluate("(e) => e === document.activeElement")
    wide.page.unroute_all(behavior="wait")


def test_changes_during_the_count_are_reported(wide: Console, api: httpx.Client) -> None:
    asked: list[str] = []
    more = answered(lambda result: result["paginacao"].update(total=54321))

    def later(route: Route) -> None:
        asked.append(route.request.url)
        answer = more if len(asked) > 1 else Route.continue_
        answer(route)

    wide.intercept(re.compile(r"/relatorios$"), later)
    wide.enter("#/painel")
    wide.page.locator(".checked.off", has_text="houve mudanças desde então").wait_for()
    assert (wide.total, len(asked)) == (count(api), 2)
    wide.page.unroute_all(behavior="wait")


def test_a_count_of_zero_shows_no_bar_and_no_pending_reports(wide: Console) -> None:
    none = answered(lambda result: result.update(itens=[], paginacao=result["paginacao"] | {"total": 0}))
    asked = re.compile(r"/relatorios\?(status=PENDENTE|resultado=INVALID|pendente_validacao_manual=true)(&sort=.*)?$")
    wide.intercept(asked, none)
    wide.enter("#/painel")
    assert wide.page.locator(".waiting").inner_text().splitlines()[-1] == "Nenhum relatório."
    assert not wide.page.locator(".waiting a").count()
    for value, bars in (("PENDENTE", 0), ("INVALID", 0), ("CONCLUIDO", 1)):
        assert wide.page.locator(f'.bars [data-value="{value}"] .bar-line span').count() == bars, value
    wide.page.unroute_all(behavior="wait")


HEIGHTS = """() => {
    const { height } = document.querySelector('.columns').getBoundingClientRect()
    return [...document.querySelectorAll('.columns li')].map((day) =>
        ((day.querySelector('span')?.getBoundingClientRect().height ?? 0) / height).toFixed(2))
}"""


def test_a_bar_shows_its_number_as_height_and_in_its_title(wide: Console) -> None:
    wide.enter("#/painel")
    wide.page.locator(".volume .chart").wait_for()
    counts = [number(text) for text in reversed(wide.page.locator(".volume tbody .number").all_inner_texts())]
    marks = [number(text) for text in wide.page.locator(".marks li").all_inner_texts()]
    assert max(counts) <= marks[-1]
    assert wide.page.evaluate(HEIGHTS) == [f"{count / marks[-1]:.2f}" for count in counts]
    titles = [day.get_attribute("title") for day in wide.page.locator(".columns li").all()]
    assert [number(str(title).partition(": ")[2]) for title in titles] == counts


def test_shortcut_hints_are_hidden_on_touch_screens(phone: Console) -> None:
    phone.enter("#/painel")
    key = phone.page.get_by_role("button", name="Atualizar").locator("kbd")
    assert key.is_visible()
    phone.lasting.context.new_cdp_session(phone.page).send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    assert not key.is_visible()


def test_bars_have_room_to_be_compared_at_any_width(wide: Console) -> None:
    wide.enter("#/painel")
    for width in range(360, 1440, 60):
        wide.page.set_viewport_size({"width": width, "height": 800})
        widths = wide.page.locator(".bar-line").evaluate_all("(all) => all.map((e) => e.getBoundingClientRect().width)")
        assert len(widths) == 10
        assert min(widths) > 60, width
        assert wide.fits_its_width(), width
