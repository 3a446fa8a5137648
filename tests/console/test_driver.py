"""A used tab keeps nothing that the next test could notice, and flaws of a page are found."""

import re
from pathlib import Path

from playwright.sync_api import Browser

from console.conftest import new_tab
from console.driver import LOOKS, Console
from live.server import Server

KEPT = """() => ({
    stored: [localStorage.length, sessionStorage.length, document.cookie],
    steps: history.length,
    size: [innerWidth, innerHeight, scrollY],
    media: ['print', '(forced-colors: active)', '(prefers-color-scheme: dark)', '(prefers-reduced-motion: reduce)']
        .map((query) => matchMedia(query).matches),
    pointed: document.querySelectorAll(':hover').length,
    focused: document.activeElement.outerHTML,
    online: navigator.onLine,
})"""
LASTING = re.compile(
    r"(?<!lasting)(?<!lasting\.context)"
    r"\.(clock\.(install|set_\w+)|add_init_script|new_cdp_session|on|expose_\w+|expect_page)\("
)


def seen(console: Console) -> object:
    console.page.goto(console.base)
    console.page.get_by_label("Token de acesso").wait_for()
    return console.page.evaluate(KEPT)


def use(console: Console) -> None:
    page = console.page
    console.refusals_expected = True
    console.enter()
    page.get_by_role("button", name="Tema").click()
    page.get_by_role("link", name="Próxima página").click()
    console.settle()
    page.evaluate("document.cookie = 'kept=1'")
    page.evaluate("void open('docs')")
    page.emulate_media(media="print", color_scheme="dark", forced_colors="active", reduced_motion="no-preference")
    page.set_viewport_size({"width": 640, "height": 480})
    page.mouse.move(320, 240)
    page.route("**/*", lambda route: route.abort())
    page.context.set_offline(True)


def test_a_reset_tab_keeps_no_state_of_its_last_use(browser: Browser, server: Server) -> None:
    console = new_tab(browser, server, LOOKS[1])
    new = seen(console)
    for _ in range(2):
        use(console)
        console.leave()
        assert seen(console) == new
        assert [request.url.removeprefix(server.url) for request in console.requests][:1] == ["/"]
        assert console.page.context.pages == [console.page]
    assert not console.refusals_expected
    console.page.context.close()


def test_lasting_changes_to_a_tab_go_through_console_lasting() -> None:
    for file in Path(__file__).parent.glob("test_*.py"):
        assert not LASTING.search(file.read_text("utf-8")), file


FLAWED = """() => [['button', '20px'], ['div', '200vw']].forEach(([tag, width]) => {
    const made = document.body.appendChild(document.createElement(tag))
    made.style.cssText = `all: unset; display: block; height: 20px; width: ${width}`
})"""


def test_violations_small_targets_and_sideways_scrolling_are_found(wide: Console) -> None:
    wide.enter()
    assert wide.flaws() == []
    wide.page.evaluate(FLAWED)
    found = wide.flaws()
    assert any(flaw.startswith("button-name: ") for flaw in found)
    assert any(flaw.startswith("<button ") for flaw in found)
    assert "the page scrolls sideways" in found
