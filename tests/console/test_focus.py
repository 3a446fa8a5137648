"""Where the focus goes when its element disappears, and how a dialog keeps the focus."""

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from playwright.sync_api import Route

from console.driver import Console
from console.lists import people

FOCUSED = "document.activeElement"


def test_modal_filters_hold_the_focus_and_return_it(phone: Console) -> None:
    phone.enter()
    phone.filters()
    phone.until("document.querySelector('.filters').matches(':modal') && document.activeElement.closest('.filters')")
    phone.page.keyboard.press("Escape")
    phone.page.locator(".filters").wait_for(state="detached")
    assert phone.page.evaluate(f"{FOCUSED}.textContent").startswith("Filtros")
    phone.filters()
    phone.page.locator(".filters").wait_for()


def test_a_heading_that_gets_the_focus_is_not_outlined_but_the_next_control_is(wide: Console) -> None:
    wide.enter()
    wide.page.keyboard.press("ArrowDown")
    wide.page.keyboard.press("3")  # The focused row disappears.
    wide.until(f"{FOCUSED}.textContent === 'Painel' && {FOCUSED}.matches('h1')")
    outline = f"getComputedStyle({FOCUSED}).outlineStyle"
    assert wide.page.evaluate(outline) == "none"
    wide.page.keyboard.press("Tab")
    assert wide.page.evaluate(outline) == "solid"


def test_back_closes_modal_filters_and_undoes_the_last_filter(phone: Console) -> None:
    phone.enter("#/relatorios?status=CONCLUIDO")
    total = phone.total
    phone.filters()
    phone.page.locator('[data-filter="resultado=VALID"]').click()
    phone.page.wait_for_url("**resultado=VALID")
    phone.settle()
    assert phone.page.locator(".filters").evaluate("(filters) => filters.matches(':modal')")
    phone.page.go_back()
    phone.page.locator(".filters").wait_for(state="detached")
    phone.await_total(total)


def test_a_modal_report_takes_the_focus_and_returns_it(phone: Console) -> None:
    phone.page.set_viewport_size({"width": 360, "height": 780})
    phone.enter()
    phone.rows.nth(1).focus()
    phone.page.keyboard.press("Enter")
    phone.page.locator(".detalhe dl").wait_for()
    assert phone.page.evaluate("document.querySelector('.detalhe').matches(':modal')")
    assert phone.page.evaluate(f"{FOCUSED}.id") == "detalhe"
    phone.page.keyboard.press("Escape")
    phone.page.locator(".detalhe").wait_for(state="detached")
    assert phone.page.evaluate(f"{FOCUSED}.title") == phone.rows.nth(1).get_attribute("title")
    assert phone.hash == "/relatorios"


@pytest.mark.parametrize("width", [720, 959, 960, 1100, 1239, 1240])
def test_an_open_report_covers_no_control_unless_it_is_modal(wide: Console, width: int) -> None:
    wide.page.set_viewport_size({"width": width, "height": 800})
    wide.enter()
    wide.rows.nth(3).press("Enter")
    wide.page.locator(".others li, .others p").first.wait_for()
    covered = """[...document.querySelectorAll('main :is(a, button, input, select)')].filter((e) => {
        const [one, report] = [e, document.querySelector('.detalhe')].map((each) => each.getBoundingClientRect())
        return e.checkVisibility({ visibilityProperty: true }) && !e.closest('.detalhe') && one.right > report.left
    }).map((e) => e.outerHTML)"""
    modal = wide.page.evaluate("document.querySelector('.detalhe').matches(':modal')")
    assert modal is (width < 960)
    assert modal or wide.page.evaluate(covered) == []
    assert wide.fits_its_width()


IN_VIEW = """((row, { left, top, bottom } = row.getBoundingClientRect()) =>
    [top + 2, bottom - 2].every((y) => row.contains(document.elementFromPoint(left + 9, y)))
)(document.querySelector('tr.open, tr:focus-within'))"""


def test_the_row_of_an_opened_or_closed_report_stays_in_view(wide: Console) -> None:
    wide.page.set_viewport_size({"width": 1100, "height": 800})
    wide.enter("#/relatorios?rows=50")
    wide.rows.nth(12).press("Enter")
    wide.page.locator(".others li, .others p").first.wait_for()
    assert wide.page.evaluate(f"{FOCUSED}.id") == "detalhe"
    assert wide.page.evaluate(IN_VIEW)
    wide.page.keyboard.press("Escape")
    wide.page.locator(".detalhe").wait_for(state="detached")
    assert wide.page.evaluate(f"{FOCUSED}.title") == wide.rows.nth(12).get_attribute("title")
    assert wide.page.evaluate(IN_VIEW)


def test_a_reload_shows_the_row_of_the_open_report(wide: Console) -> None:
    wide.enter("#/relatorios?rows=100")
    wide.rows.nth(80).click()
    wide.settle()
    wide.page.reload()
    wide.settle()
    assert wide.page.evaluate(IN_VIEW)


def test_closing_a_report_does_not_move_the_focus_from_elsewhere(wide: Console) -> None:
    wide.enter()
    wide.rows.nth(3).press("Enter")
    wide.page.locator(".detalhe dl").wait_for()
    wide.page.get_by_role("button", name="Exportar").focus()
    wide.page.keyboard.press("Escape")
    wide.page.locator(".detalhe").wait_for(state="detached")
    assert wide.page.evaluate(f"{FOCUSED}.textContent") == "Exportar"


def test_a_retry_in_modal_filters_keeps_the_focus_inside_them(phone: Console) -> None:
    phone.refusals_expected = True
    phone.intercept(re.compile("sort=nome"), lambda route: route.fulfill(status=500, body="{}"))
    phone.enter()
    phone.filters()
    phone.page.locator(".matriz summary").click()
    phone.page.locator(".matriz .trouble").wait_for()
    phone.page.unroute(re.compile("sort=nome"))
    phone.page.locator(".matriz .trouble button").press("Enter")
    phone.page.locator(".matriz .trouble").wait_for(state="detached")
    assert phone.page.evaluate(f"{FOCUSED}.getAttribute('aria-label')") == "Fechar os filtros"


def test_loading_more_matrices_keeps_the_focus_in_their_section(wide: Console) -> None:
    def fewer(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace("MATRICES_PER_STEP = 40", "MATRICES_PER_STEP = 5"))

    def press() -> None:
        wide.page.keyboard.press("Enter")

    wide.lasting.route("**/totals.js", fewer)
    wide.enter()
    wide.page.locator(".matriz summary").press("Enter")
    more = wide.page.get_by_role("button", name="Mostrar mais")
    more.focus()
    held = wide.hold(re.compile("sort=nome"))
    press()
    wide.page.locator(".matriz [aria-disabled=true]").wait_for()
    press()
    assert more.evaluate(f"(e) => e === {FOCUSED}")
    wide.page.unroute(re.compile("sort=nome"))
    wide.await_first(held).continue_()
    wide.page.locator(".matriz [aria-disabled=false]").wait_for()
    assert wide.page.locator(".matriz [aria-pressed]").count() == 10
    assert more.evaluate(f"(e) => e === {FOCUSED}")
    press()
    more.wait_for(state="detached")
    assert wide.page.locator(".matriz [aria-pressed]").count() == 12
    assert wide.page.evaluate(f"{FOCUSED}.textContent") == "Matriz"


def test_arrow_keys_continue_from_the_open_row(wide: Console) -> None:
    wide.enter()
    wide.rows.nth(4).focus()
    wide.page.keyboard.press("Enter")
    wide.page.locator(".detalhe dl").wait_for()
    wide.page.keyboard.press("ArrowDown")
    assert wide.page.evaluate(f"{FOCUSED}.title") == wide.rows.nth(5).get_attribute("title")
    wide.page.keyboard.press("/")
    wide.page.keyboard.press("ArrowDown")
    assert wide.page.evaluate(f"{FOCUSED}.title") == wide.rows.nth(0).get_attribute("title")


def remove_a_chip(console: Console) -> None:
    console.page.get_by_role("button", name="Remover o filtro Situação").press("Enter")


def remove_the_last_chip(console: Console) -> None:
    remove_a_chip(console)
    console.page.get_by_role("button", name="Remover o filtro").press("Enter")


def show_the_last_page(console: Console) -> None:
    last = -(-console.total // 25)
    box = console.page.get_by_label("Ir para a página")
    box.fill(str(last - 1))
    box.press("Enter")
    console.settle()
    console.page.get_by_role("link", name="Próxima página").press("Enter")


def show_the_news(console: Console) -> None:
    total = console.total

    def more(route: Route) -> None:
        headers = {name: value for name, value in route.request.headers.items() if name != "if-none-match"}
        answer = route.fetch(headers=headers)
        body: Any = answer.json()
        body["result"]["paginacao"]["total"] = total + 1
        route.fulfill(response=answer, json=body)

    console.intercept(re.compile(r"/relatorios\?status=CONCLUIDO&tipo_pessoa=PESSOA$"), more)
    console.page.evaluate("dispatchEvent(new Event('online'))")
    console.page.locator("[data-news]").press("Enter")
    console.page.locator(".news").wait_for(state="detached")
    console.page.unroute_all(behavior="wait")


def go_from_a_person_to_the_reports(console: Console) -> None:
    console.page.get_by_role("link", name="Pessoas").click()
    console.page.wait_for_url("**/#/pessoas")
    console.settle()
    console.rows.first.press("Enter")
    console.page.wait_for_url("**/#/relatorios?oculto=numero_documento")


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (remove_a_chip, "Remover o filtro Tipo: Pessoa"),
        (remove_the_last_chip, "Relatórios"),
        (show_the_last_page, "Página "),
        (show_the_news, "Relatórios"),
        (go_from_a_person_to_the_reports, "Relatórios"),
    ],
)
def test_the_focus_moves_on_when_its_element_disappears(
    wide: Console, act: Callable[[Console], None], expected: str
) -> None:
    wide.enter("#/relatorios?status=CONCLUIDO&tipo_pessoa=PESSOA")
    act(wide)
    wide.settle()
    name = wide.page.evaluate(f"{FOCUSED}.getAttribute('aria-label') ?? {FOCUSED}.textContent")
    assert wide.page.evaluate(f"{FOCUSED} !== document.body")
    assert name.startswith(expected)


def test_the_focus_skips_hidden_elements(wide: Console) -> None:
    """Filters beside the list have no visible button to close them, so the heading receives the focus."""
    wide.refusals_expected = True
    wide.enter()
    wide.intercept("**/relatorios?sort=nome*", lambda route: route.fulfill(status=500, body="{}"))
    wide.page.locator(".matriz summary").click()
    again = wide.page.locator(".matriz .trouble").get_by_role("button", name="Tentar novamente")
    again.wait_for()
    wide.page.unroute_all(behavior="wait")
    again.press("Enter")
    wide.page.locator(".matriz .choices button").first.wait_for()
    assert wide.page.evaluate(f"{FOCUSED}.textContent") == "Relatórios"


def test_changing_the_page_scrolls_to_the_top(tab: Console) -> None:
    tab.enter()
    tab.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    tab.page.get_by_role("link", name="Próxima página").click()
    tab.settle()
    assert tab.page.evaluate("document.querySelector('#titulo').getBoundingClientRect().top > 0")


def test_changing_the_view_scrolls_to_the_top(tab: Console) -> None:
    """A list that was shown before is as high as it was from the beginning."""
    tab.enter("#/pessoas")
    for view in ("Relatórios", "Pessoas"):
        tab.page.evaluate("scrollTo(0, 200)")
        assert tab.page.evaluate("scrollY") == 200
        tab.page.get_by_role("link", name=view, exact=True).click()
        tab.page.get_by_role("heading", name=view).wait_for()
        tab.settle()
    assert tab.page.evaluate("scrollY") == 0


def test_the_links_to_the_pages_beside_keep_the_focus(wide: Console) -> None:
    wide.enter()
    for name, page in (("Próxima página", 2), ("Próxima página", 3), ("Página anterior", 2)):
        wide.page.get_by_role("link", name=name).press("Enter")
        wide.page.wait_for_url(f"**page={page}")
        wide.settle()
        assert wide.page.evaluate(f"{FOCUSED}.getAttribute('aria-label')") == name


def test_a_filter_scrolls_to_the_top_and_back_restores_the_position(tab: Console) -> None:
    tab.enter()
    tab.filters()
    tab.page.evaluate("scrollTo(0, 200)")
    tab.page.locator("[data-filter='tipo_pessoa=PESSOA']").click()
    tab.filtered()
    tab.settle()
    assert tab.page.evaluate("scrollY") == 0
    tab.page.go_back()
    tab.settle()
    tab.until("scrollY === 200")


def test_changing_the_order_scrolls_to_the_top(wide: Console) -> None:
    wide.enter("#/relatorios?rows=50")
    wide.page.evaluate("scrollTo(0, 700)")
    wide.page.locator(".c-status button").click()
    wide.settle()
    assert wide.page.evaluate("scrollY") == 0


def test_typing_into_the_quick_find_does_not_scroll_the_page(tab: Console) -> None:
    tab.enter()
    tab.page.evaluate("scrollTo(0, 200)")
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("mar")
    tab.page.keyboard.press("Shift+Tab")
    assert tab.page.evaluate("document.activeElement.closest('.bar') !== null && scrollY") == 200


def test_a_focused_row_is_not_covered_by_the_bar_or_the_headers(tab: Console) -> None:
    tab.enter()
    tab.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    tab.rows.last.focus()
    top, below = "document.activeElement.getBoundingClientRect().top", ".bar, thead th.c-atualizado_em"
    for _ in range(24):
        tab.page.keyboard.press("ArrowUp")
        assert tab.page.evaluate(
            f"(below) => [...document.querySelectorAll(below)].filter((e) => getComputedStyle(e).position === 'sticky')"
            f".every((e) => e.getBoundingClientRect().bottom <= {top})",
            below,
        )


def test_announcements_are_made_inside_an_open_dialog(tab: Console) -> None:
    tab.enter()
    tab.page.get_by_role("button", name="Copiar como…").click()
    dialog = tab.page.get_by_role("dialog")
    assert dialog.get_by_role("status").text_content() == ""
    dialog.get_by_role("button", name="Copiar", exact=True).first.click()
    tab.until("document.querySelector('dialog [role=status]').lastChild?.textContent === 'Copiado.'")


SAID = "[...document.querySelectorAll('[role=status]')].at(-1).lastChild?.textContent"
HEAR = """void new MutationObserver((changes) => changes.forEach(({ addedNodes }) =>
    addedNodes.forEach(({ textContent }) => (globalThis.heard ??= []).push(textContent))
)).observe(document.querySelector('[role=status]'), { childList: true })"""


def test_the_same_announcement_can_be_made_twice(wide: Console) -> None:
    wide.enter()
    wide.rows.nth(1).click()
    wide.page.locator(".detalhe dl").wait_for()
    wide.page.evaluate(HEAR)
    for button in ("Copiar o número", "Copiar o documento completo"):
        wide.page.get_by_role("button", name=button).click()
    wide.until("globalThis.heard?.length === 2")
    assert wide.page.evaluate("heard") == ["Copiado.", "Copiado."]
    wide.page.get_by_role("button", name="Copiar como…").click()
    wide.page.get_by_role("dialog").get_by_role("button", name="Copiar", exact=True).first.click()
    wide.until(f"{SAID} === 'Copiado.'")


@pytest.mark.parametrize("view", ["relatorios", "pessoas"])
def test_a_failed_page_is_announced_as_an_error(wide: Console, view: str) -> None:
    wide.refusals_expected = True
    wide.enter(f"#/{view}")
    wide.intercept(re.compile(r"page=2"), lambda route: route.fulfill(status=500, body="{}"))
    wide.page.get_by_role("link", name="Próxima página").click()
    wide.page.locator(".list > .trouble").wait_for()
    wide.settle()
    assert wide.page.evaluate(SAID) == "O servidor respondeu com o código 500."


@pytest.mark.parametrize("view", ["relatorios", "pessoas"])
def test_a_page_past_the_end_is_announced_as_such(wide: Console, view: str) -> None:
    wide.enter(f"#/{view}?page=99999")
    shown = wide.page.locator(".empty .big").inner_text()
    assert shown.startswith("A página 99.999 está além do fim da lista, que tem ")
    assert wide.page.evaluate(SAID).endswith(f", {shown[0].lower()}{shown[1:]}")


def test_a_click_outside_a_dialog_closes_it_but_a_drag_does_not(wide: Console) -> None:
    wide.enter()
    wide.page.get_by_role("button", name="Copiar como…").click()
    dialog = wide.page.get_by_role("dialog")
    mouse = wide.page.mouse
    dialog.locator("pre").first.hover()
    mouse.down()
    mouse.move(20, 20)
    mouse.up()
    assert dialog.is_visible()
    mouse.click(20, 20)
    dialog.wait_for(state="detached")


def test_a_pending_search_does_not_close_a_dialog_opened_meanwhile(wide: Console, api: httpx.Client) -> None:
    wide.lasting.clock.install(time=0)
    wide.enter("#/pessoas")
    wide.page.clock.pause_at(60_000)
    wide.page.get_by_role("searchbox", name="Buscar pessoas").fill("silva")
    wide.page.get_by_role("button", name="Copiar como…").click()
    dialog = wide.page.get_by_role("dialog")
    wide.page.clock.run_for(1_000)
    wide.await_total(people(api, busca="silva"))
    assert "busca=silva" in dialog.inner_text()
    wide.page.go_back()
    dialog.wait_for(state="detached")
    wide.await_total(people(api))


def test_changing_the_view_closes_a_dialog(wide: Console) -> None:
    wide.enter()
    wide.page.get_by_role("button", name="Exportar").click()
    wide.page.evaluate("document.querySelector('[data-view=\\'2\\']').click()")
    wide.page.get_by_role("heading", name="Pessoas").wait_for()
    assert not wide.page.locator("dialog").count()


def test_a_click_outside_the_dialog_does_not_cancel_an_export(wide: Console) -> None:
    wide.enter()
    wide.hold("**/relatorios?rows=1000")
    wide.page.get_by_role("button", name="Exportar").click()
    wide.page.get_by_role("dialog").get_by_role("button", name="Exportar").click()
    wide.page.get_by_role("progressbar").wait_for()
    wide.page.mouse.click(20, 20)
    assert wide.page.get_by_role("progressbar").is_visible()
    wide.page.get_by_role("dialog").get_by_role("button", name="Cancelar").click()
    wide.page.locator(".hint", has_text="Exportação cancelada").wait_for()


def test_moving_up_with_k_hides_no_row_below_the_headers(wide: Console) -> None:
    wide.page.set_viewport_size({"width": 1280, "height": 720})
    wide.enter()
    wide.rows.last.focus()
    for _ in range(24):
        wide.page.keyboard.press("k")
        hidden = wide.page.evaluate(
            f"{FOCUSED}.closest('tr').getBoundingClientRect().top + 1"
            " < document.querySelector('th').getBoundingClientRect().bottom"
        )
        assert not hidden, wide.page.evaluate(f"{FOCUSED}.title")
    assert wide.rows.first.evaluate(f"(row) => row === {FOCUSED}")
