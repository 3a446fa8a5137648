import json
import re
from contextlib import suppress

import httpx
from playwright.sync_api import Error

from console.driver import Console


def test_a_route_can_be_tried_with_the_token_of_the_tab(tab: Console, api: httpx.Client) -> None:
    tab.enter("docs")
    section = tab.page.locator("section[data-path='/relatorios']")
    section.locator("summary", has_text="Experimentar").click()
    placeholders = section.locator("input").evaluate_all("inputs => inputs.map((input) => input.placeholder)")
    assert "undefined" not in placeholders
    section.locator("[name=status]").select_option("EM ANALISE")
    section.locator("[name=rows]").fill("50")
    section.get_by_role("button", name="Enviar").click()
    section.locator("output[aria-live=polite] [data-outcome]").wait_for()
    assert section.locator("[data-outcome]").inner_text().startswith("200")
    answer = section.locator(".try pre").inner_text()
    assert json.loads(answer) == api.get("/relatorios", params={"status": "EM ANALISE", "rows": 50}).json()


def test_only_status_size_and_duration_of_a_response_are_announced(wide: Console) -> None:
    wide.enter("docs")
    section = wide.page.locator("section[data-path='/usuario']")
    section.locator("summary", has_text="Experimentar").click()
    section.get_by_role("button", name="Enviar").click()
    section.get_by_role("region", name="Resposta").wait_for()
    assert re.fullmatch(r"200 · \d{1,3} caracteres · \d{1,3}(\.\d{3})? ms", section.locator("[aria-live]").inner_text())


def test_the_size_of_a_response_has_thousands_separators(wide: Console, api: httpx.Client) -> None:
    wide.enter("docs")
    section = wide.page.locator("section[data-path='/openapi.json']")
    section.locator("summary", has_text="Experimentar").click()
    section.get_by_role("button", name="Enviar").click()
    size = f"{len(api.get('/openapi.json').text):,}".replace(",", ".")
    section.get_by_text(f"200 · {size} caracteres ·").wait_for()


def test_an_emptied_parameter_and_a_token_that_is_not_needed_are_not_sent(wide: Console) -> None:
    wide.enter("docs")
    section = wide.page.locator("section[data-path='/relatorios']")
    section.locator("summary", has_text="Experimentar").click()
    section.locator("input[name=nome]").fill("x")
    section.locator(".send code", has_text="GET /relatorios?nome=x").wait_for()
    section.locator("input[name=nome]").fill("")
    section.get_by_role("button", name="Enviar").click()
    section.get_by_text("200 ·").wait_for()
    section = wide.page.locator("section[data-path='/health']")
    section.locator("summary", has_text="Experimentar").click()
    section.get_by_role("button", name="Enviar").click()
    section.get_by_text("200 ·").wait_for()
    sent = {request.url.removeprefix(wide.base): request.headers.get("authorization") for request in wide.requests}
    assert (sent["/relatorios"], sent["/health"]) == (wide.token, "")


def test_error_responses_and_connection_failures_are_shown(tab: Console, api: httpx.Client) -> None:
    tab.refusals_expected = True
    tab.enter("docs")
    section = tab.page.locator("section[data-path='/relatorios']")
    section.locator("summary", has_text="Experimentar").click()
    section.locator("[name=rows]").fill("7")
    section.get_by_role("button", name="Enviar").click()
    came = api.get("/relatorios", params={"rows": "7"}).text
    section.get_by_text(f"400 · {len(came)} caracteres ·").wait_for()
    assert json.loads(section.locator(".try pre").inner_text()) == json.loads(came)
    tab.intercept("**/relatorios*", lambda route: route.fulfill(status=502, body="<h1>Bad Gateway</h1>"))
    section.get_by_role("button", name="Enviar").click()
    section.get_by_text("502 ·").wait_for()
    assert section.locator(".try pre").inner_text() == "<h1>Bad Gateway</h1>"
    tab.intercept("**/relatorios*", lambda route: route.abort())
    section.get_by_role("button", name="Enviar").click()
    section.get_by_text("sem resposta · 0 caracteres").wait_for()
    assert section.locator(".try pre").inner_text() == "O servidor não respondeu. Verifique sua conexão."


def test_a_late_response_does_not_replace_a_newer_one(wide: Console) -> None:
    wide.enter("docs")
    section = wide.page.locator("section[data-path='/relatorios']")
    section.locator("summary", has_text="Experimentar").click()
    held = wide.hold(re.compile("status=PENDENTE"))
    for status in ("PENDENTE", "CONCLUIDO"):
        section.locator("[name=status]").select_option(status)
        section.get_by_role("button", name="Enviar").click()
    section.locator("[data-outcome]").wait_for()
    with suppress(Error):
        wide.await_first(held).fulfill(json={"late": True})
    wide.page.wait_for_timeout(200)
    assert "late" not in section.locator(".try").inner_text()


def test_trying_a_route_does_not_show_the_token(tab: Console) -> None:
    tab.enter("docs")
    section = tab.page.locator("section[data-path='/usuario']")
    section.locator("summary", has_text="Experimentar").click()
    section.get_by_role("button", name="Enviar").click()
    section.get_by_text("200 ·").wait_for()
    assert tab.token not in tab.page.content()


def test_without_a_token_a_link_leads_to_sign_in(tab: Console) -> None:
    tab.page.goto(f"{tab.base}/docs")
    section = tab.page.locator("section[data-path='/pessoas']")
    section.locator("summary", has_text="Experimentar").click()
    section.get_by_role("link", name="entre com o seu token").wait_for()


def test_public_routes_can_be_tried_without_browser_storage(wide: Console) -> None:
    refuse = "{ get() { throw new DOMException('', 'SecurityError') } }"
    for kept in ("sessionStorage", "localStorage"):
        wide.lasting.add_init_script(f"Object.defineProperty(window, '{kept}', {refuse})")
    wide.page.goto(f"{wide.base}/docs")
    section = wide.page.locator("section[data-path='/health']")
    section.locator("summary", has_text="Experimentar").click()
    section.get_by_role("button", name="Enviar").click()
    section.get_by_text("200 ·").wait_for()
    wide.page.locator("section[data-path='/pessoas'] summary", has_text="Experimentar").click()
    wide.page.locator("section[data-path='/pessoas']").get_by_role("link", name="entre com o seu token").wait_for()


def test_the_page_is_complete_without_javascript(tab: Console, api: httpx.Client) -> None:
    page = api.get("/docs").text
    document = api.get("/openapi.json").json()
    for path, methods in document["paths"].items():
        assert f"<code>{path}</code>" in page
        for status in methods["get"]["responses"]:
            assert f"<strong>{status}</strong>" in page
    tab.enter("docs")
    assert tab.page.locator("section[data-path]").count() == len(document["paths"])


def test_no_line_breaks_inside_a_value(tab: Console) -> None:
    tab.enter("docs")
    whole = "(e) => [...e.querySelectorAll('span')].every((value) => value.getClientRects().length === 1)"
    accepted = tab.page.locator(".accepted").filter(has_text="-nome")
    assert accepted.locator("span").count() == 18 + 6
    assert all(each.evaluate(whole) for each in accepted.all())


SPACED = """() => {
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(`p { margin-bottom: 2em !important }
        * { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important }`)
    document.adoptedStyleSheets = [sheet]
}"""


def test_wide_text_spacing_fits_a_small_phone(phone: Console) -> None:
    """WCAG 1.4.12 requires that readers can set this text spacing."""
    phone.page.set_viewport_size({"width": 320, "height": 640})
    phone.enter("docs")
    phone.page.evaluate(SPACED)
    assert phone.page.evaluate("document.documentElement.scrollWidth") == 320
    ends = "[...document.querySelectorAll('.bar > *')].map((e) => [e.scrollWidth, e.clientWidth])"
    assert all(needed <= given for needed, given in phone.page.evaluate(ends))


def test_print_hides_controls_cuts_off_nothing_and_has_dark_text(wide: Console) -> None:
    wide.enter("docs")
    wide.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    wide.page.set_viewport_size({"width": 718, "height": 1000})
    wide.page.emulate_media(media="print")
    assert not wide.page.locator(".bar, .skip, .routes, .try").filter(visible=True).count()
    assert wide.page.evaluate("getComputedStyle(document.querySelector('.lead')).color") == "rgb(90, 96, 99)"
    cut = "[...document.querySelectorAll('pre, .scroll')].filter((e) => e.scrollWidth > e.clientWidth).length"
    assert wide.page.evaluate(cut) == 0


def test_tables_fit_a_small_phone(phone: Console) -> None:
    phone.page.set_viewport_size({"width": 320, "height": 640})
    phone.enter("docs")
    wide = "(all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.ariaLabel)"
    assert phone.page.locator(".scroll").evaluate_all(wide) == []
    cut = "(all) => all.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)"
    assert phone.page.locator(".scroll tbody :is(th, td)").evaluate_all(cut) == []
    assert phone.page.get_by_role("table").first.get_by_role("rowheader", name="page", exact=True).is_visible()
