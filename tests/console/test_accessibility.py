import re

import pytest
from playwright.sync_api import Browser

from console.driver import Console
from console.lists import answered
from live.server import Server

VIEWS = (
    *("#/relatorios", "#/relatorios?status=EM+ANALISE&resultado=VALID", "#/relatorios?page=99999"),
    *("#/pessoas", "#/painel", "#/perfil", "docs"),
)
A4 = 718
"""The width in pixels between the margins of a printed page."""


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_violation_and_targets_are_large_enough(any_look: Console, view: str) -> None:
    any_look.enter(view)
    any_look.page.wait_for_timeout(200)
    assert any_look.flaws() == []


@pytest.mark.parametrize("dialog", ["atalhos", "Copiar como…", "Exportar"])
def test_axe_finds_no_violation_in_a_dialog(any_look: Console, dialog: str) -> None:
    any_look.enter("#/relatorios?status=CONCLUIDO")
    if dialog == "atalhos":
        any_look.page.keyboard.press("?")
    else:
        any_look.page.get_by_role("button", name=dialog).click()
    any_look.page.get_by_role("dialog").wait_for()
    assert any_look.violations() == []


def test_axe_finds_no_violation_on_the_sign_in_page(any_look: Console) -> None:
    any_look.page.goto(any_look.base)
    any_look.page.get_by_role("button", name="Entrar").click()
    assert any_look.violations() == []


def test_axe_finds_no_violation_with_an_open_report_or_open_filters(any_look: Console) -> None:
    any_look.enter()
    any_look.rows.nth(3).click()
    any_look.page.locator(".detalhe .others li, .detalhe .others p").first.wait_for()
    assert any_look.violations() == []
    any_look.page.keyboard.press("Escape")
    any_look.filters()
    assert any_look.flaws() == []


CONTRAST = """(eye) => {
    const rgb = (color) => color.match(/[0-9.]+/g).map(Number)
    const luminance = (channels) => channels.map((value) => value / 255)
        .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
        .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0)
    const { color, opacity } = getComputedStyle(eye)
    let around = eye.parentElement
    while (rgb(getComputedStyle(around).backgroundColor)[3] === 0) around = around.parentElement
    const behind = rgb(getComputedStyle(around).backgroundColor)
    const seen = rgb(color).map((value, at) => value * opacity + behind[at] * (1 - opacity))
    const [dark, light] = [seen, behind].map(luminance).sort((one, other) => one - other)
    return (light + 0.05) / (dark + 0.05)
}"""


def test_the_button_that_reveals_a_cpf_has_enough_contrast(any_look: Console) -> None:
    """WCAG 1.4.11 requires this contrast for controls."""
    any_look.enter("#/relatorios?tipo_pessoa=PESSOA")
    any_look.rows.nth(1).press("Enter")
    any_look.page.locator(".detalhe dl").wait_for()
    for eye in ("tr:not(.open) .reveal", "tr.open .reveal", ".detalhe .reveal"):
        assert any_look.page.locator(eye).first.evaluate(CONTRAST) >= 3, eye
    any_look.enter("#/painel")
    assert any_look.page.locator(".waiting .reveal").first.evaluate(CONTRAST) >= 3


def test_the_count_is_announced_and_tab_reaches_the_skip_link_first(tab: Console) -> None:
    tab.enter("#/relatorios?status=PENDENTE")
    tab.until("/^[0-9.]+ relatórios, página 1.$/.test(document.querySelector('[role=status]').lastChild?.textContent)")
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "Ir para o conteúdo"
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate("document.activeElement.id") == "conteudo"


def test_a_closed_dialog_returns_the_focus_to_its_button(tab: Console) -> None:
    tab.enter()
    button = tab.page.get_by_role("button", name="Exportar")
    button.click()
    tab.page.get_by_role("dialog").wait_for()
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("dialog").wait_for(state="detached")
    assert tab.page.evaluate("document.activeElement.textContent") == "Exportar"


def test_the_theme_can_be_changed_and_survives_a_reload(tab: Console) -> None:
    tab.enter()
    background = "getComputedStyle(document.body).backgroundColor"
    system = tab.page.evaluate(background)
    seen = {system}
    for _ in range(2):
        tab.page.get_by_role("button", name="Tema").click()
        seen.add(tab.page.evaluate(background))
    chosen = tab.page.evaluate(background)
    tab.page.reload()
    tab.settle()
    assert tab.page.evaluate(background) == chosen
    assert len(seen) == 2


def test_print_shows_the_table_without_controls(wide: Console) -> None:
    wide.enter("#/relatorios?status=CONCLUIDO")
    wide.page.emulate_media(media="print")
    assert wide.page.locator("tbody tr").first.is_visible()
    assert not wide.page.locator(".bar, .filters, .pager, .actions").filter(visible=True).count()


@pytest.mark.parametrize(
    ("address", "page"), [("#/relatorios?page=3", "Página 3 de 28"), ("#/pessoas", "Página 1 de ")]
)
def test_print_shows_the_page_number_of_a_list(wide: Console, address: str, page: str) -> None:
    wide.enter(address)
    assert not wide.page.get_by_text(page).filter(visible=True).count()
    wide.page.emulate_media(media="print")
    assert wide.page.get_by_text(page).is_visible()


@pytest.mark.parametrize("view", ["relatorios", "pessoas"])
def test_print_shows_no_old_rows_while_another_page_loads(wide: Console, view: str) -> None:
    wide.enter(f"#/{view}")
    held = wide.hold(re.compile("page=2"))
    awaited = wide.page.locator(".list").get_by_text("Ainda buscando…").filter(visible=True)
    old = wide.page.locator("tbody tr, [data-total], .on-paper").filter(visible=True, has_not_text="Ainda buscando…")
    wide.page.get_by_role("link", name="Próxima página").click()
    wide.page.locator("[aria-busy=true]").first.wait_for()
    wide.page.emulate_media(media="print")
    assert (awaited.count(), old.count()) == (1, 0)
    wide.await_first(held).continue_()
    wide.settle()
    assert (awaited.count(), old.count()) == (0, 28)
    assert re.search(r"Consultado em \d\d/\d\d/\d{4} às .* no fuso de Brasília", old.all_inner_texts()[1])
    wide.page.unroute_all(behavior="wait")


def test_the_time_zone_is_named_as_in_brazil_or_else_by_its_offset(browser: Browser, server: Server) -> None:
    for zone, name in (("America/Manaus", "do Amazonas"), ("America/Bahia", "de Brasília"), ("Etc/GMT+3", "GMT-03:00")):
        context = browser.new_context(timezone_id=zone)
        there = Console(context.new_page(), server.url, server.place.token).enter()
        there.page.keyboard.press("?")
        there.page.get_by_role("dialog").get_by_text(f"Datas e horas no fuso {name}.").wait_for()
        context.close()


def test_print_shows_only_the_open_report(tab: Console) -> None:
    tab.enter("#/relatorios?status=CONCLUIDO")
    tab.rows.nth(2).click()
    tab.page.locator(".others").wait_for()
    tab.settle()
    tab.page.emulate_media(media="print")
    report = tab.page.locator(".detalhe")
    numero = report.locator(".uuid")
    assert numero.is_visible()
    assert not tab.page.locator("tbody tr, button, .bar, .detalhe time + .muted").filter(visible=True).count()
    assert report.evaluate("(e) => e.scrollHeight === e.clientHeight && e.scrollWidth === e.clientWidth")


@pytest.mark.parametrize("theme", ["auto", "dark"])
def test_print_shows_all_columns_whole_and_dark_on_light(wide: Console, theme: str) -> None:
    wide.enter("#/relatorios?status=CONCLUIDO")
    wide.page.evaluate("(theme) => { document.documentElement.dataset.theme = theme }", theme)
    wide.page.set_viewport_size({"width": A4, "height": 1000})
    wide.page.emulate_media(media="print", color_scheme="dark")
    assert wide.page.locator(".table th").filter(visible=True).count() == 9
    cut = "[...document.querySelectorAll('.table th, .table td')].filter((e) => e.scrollWidth > e.clientWidth).length"
    assert wide.page.evaluate(cut) == 0
    assert wide.page.evaluate("document.documentElement.scrollWidth") <= A4
    assert wide.page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 30, 31)"


BROKEN = """() => {
    const broken = []
    for (const cell of document.querySelectorAll('.table td:not(.c-nome, .c-mensagem)')) {
        const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
        while (texts.nextNode()) {
            for (const word of texts.currentNode.data.matchAll(/[\\p{L}\\d.*/-]+?(?:(?<=\\p{L})-|$|(?=\\s))/gu)) {
                const range = document.createRange()
                range.setStart(texts.currentNode, word.index)
                range.setEnd(texts.currentNode, word.index + word[0].length)
                if (range.getClientRects().length > 1) broken.push(word[0])
            }
        }
    }
    return broken
}"""


def test_print_breaks_no_word(wide: Console) -> None:
    wide.enter("#/relatorios")
    wide.page.set_viewport_size({"width": A4, "height": 1000})
    wide.page.emulate_media(media="print")
    assert wide.page.evaluate(BROKEN) == []
    assert wide.page.evaluate(OFF_PAPER) == []


OFF_PAPER = """() => {
    const beyond = (e) => e.getBoundingClientRect().right > innerWidth || e.scrollWidth > e.clientWidth
    return [...document.querySelectorAll('.table th, .table td')].filter(beyond).map((e) => e.className)
}"""


@pytest.mark.parametrize("view", ["relatorios", "pessoas"])
@pytest.mark.parametrize("letters", [44, 200])
def test_a_name_without_spaces_pushes_no_column_off_the_printed_page(wide: Console, view: str, letters: int) -> None:
    name = ("consultaPessoaComTodosOsAntecedentes" * 6)[:letters]
    wide.intercept(re.compile(rf"/{view}$"), answered(lambda result: result["itens"][0].update(nome=name)))
    wide.enter(f"#/{view}")
    wide.page.set_viewport_size({"width": A4, "height": 1000})
    wide.page.emulate_media(media="print")
    assert wide.page.locator("td.c-nome").first.inner_text() == name
    assert wide.page.evaluate(OFF_PAPER) == []
    wide.page.unroute_all(behavior="wait")


def test_print_shows_the_whole_volume_table(wide: Console) -> None:
    wide.enter("#/painel")
    wide.page.emulate_media(media="print")
    assert wide.page.evaluate(
        "(({ scrollHeight, clientHeight }) => scrollHeight === clientHeight)(document.querySelector('.scroll'))"
    )


PRINTED = """[...document.querySelectorAll('.columns span')].map((bar) => {
    const { right, height } = bar.getBoundingClientRect()
    return { right, height, drawn: getComputedStyle(bar).printColorAdjust === 'exact' }
})"""


def test_print_shows_the_whole_chart(wide: Console) -> None:
    wide.enter("#/painel")
    wide.page.locator(".volume .chart").wait_for()
    wide.page.set_viewport_size({"width": A4, "height": 1000})
    wide.page.emulate_media(media="print")
    bars = wide.page.evaluate(PRINTED)
    assert bars
    assert all(bar["drawn"] and bar["height"] > 0 and bar["right"] <= A4 for bar in bars), bars


OUTLINED = "(selector) => getComputedStyle(document.querySelector(selector)).outlineStyle"
FILLED = """([selector, pseudo]) => {
    const { backgroundColor } = getComputedStyle(document.querySelector(selector), pseudo)
    return backgroundColor !== getComputedStyle(document.body).backgroundColor
}"""


def test_forced_colors_keep_selections_and_bars_visible(wide: Console) -> None:
    wide.page.emulate_media(forced_colors="active")
    wide.enter("#/relatorios?status=CONCLUIDO")
    wide.rows.nth(2).click()
    wide.settle()
    for chosen in (".tabs [aria-current]", "[data-filter='status=CONCLUIDO']", "tr.open", ".pager [aria-current]"):
        assert wide.page.evaluate(OUTLINED, chosen) == "solid", chosen
    for seen in (["th[aria-sort=descending] .arrow", None], ["td .status", "::before"]):
        assert wide.page.evaluate(FILLED, seen), seen
    wide.enter("#/painel")
    wide.page.locator(".volume .chart").wait_for()
    for bar in (".bar-line span", ".columns span"):
        assert wide.page.evaluate(FILLED, [bar, None]), bar
