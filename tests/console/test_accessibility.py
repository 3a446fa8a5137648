import re

import pytest
from playwright.sync_api import Route

from console.driver import Console
from console.test_freshness import answered

VIEWS = (
    *("#/relatorios", "#/relatorios?status=EM+ANALISE&resultado=VALID", "#/relatorios?page=99999"),
    *("#/pessoas", "#/painel", "#/perfil", "docs"),
)
A4 = 718
"""The width in pixels between the margins of a printed page."""
SMALL = """[...document.querySelectorAll('a, button, input, select, summary')].filter((e) => {
    if (e.matches('.sr, .skip, [hidden]') || !e.checkVisibility()) return false
    const inline = e.matches('p a, dd a, .accepted a')
    const { width, height } = e.getBoundingClientRect()
    const label = e.matches('[type=checkbox]') ? e.closest('label').getBoundingClientRect() : { width: 0, height: 0 }
    return !inline && width > 1 && (Math.max(width, label.width) < 24 || Math.max(height, label.height) < 24)
}).map((e) => e.outerHTML.slice(0, 160))"""


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_and_targets_are_large_enough(every: Console, view: str) -> None:
    every.enter(view)
    every.page.wait_for_timeout(200)
    assert every.violations() == []
    assert every.page.evaluate(SMALL) == []
    assert every.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"


@pytest.mark.parametrize("dialog", ["atalhos", "Copiar como…", "Exportar"])
def test_axe_finds_nothing_in_a_dialog(every: Console, dialog: str) -> None:
    every.enter("#/relatorios?status=CONCLUIDO")
    if dialog == "atalhos":
        every.page.keyboard.press("?")
    else:
        every.page.get_by_role("button", name=dialog).click()
    every.page.get_by_role("dialog").wait_for()
    assert every.violations() == []


def test_axe_finds_nothing_where_a_token_is_asked_for(every: Console) -> None:
    every.page.goto(every.base)
    every.page.get_by_role("button", name="Entrar").click()
    assert every.violations() == []


def test_axe_finds_nothing_beside_an_open_report_and_in_open_filters(every: Console) -> None:
    every.enter()
    every.rows.nth(3).click()
    every.page.locator(".detalhe .others li, .detalhe .others p").first.wait_for()
    assert every.violations() == []
    every.page.keyboard.press("Escape")
    every.filters()
    assert every.violations() == []
    assert every.page.evaluate(SMALL) == []


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


def test_the_eye_that_shows_a_cpf_can_be_seen_in_any_row(every: Console) -> None:
    """WCAG 1.4.11 requires this contrast for controls."""
    every.enter("#/relatorios?tipo_pessoa=PESSOA")
    every.rows.nth(1).press("Enter")
    every.page.locator(".detalhe dl").wait_for()
    for eye in ("tr:not(.open) .reveal", "tr.open .reveal", ".detalhe .reveal"):
        assert every.page.locator(eye).first.evaluate(CONTRAST) >= 3, eye
    every.enter("#/painel")
    assert every.page.locator(".waiting .reveal").first.evaluate(CONTRAST) >= 3


def test_the_count_is_said_and_the_focus_goes_in_order(tab: Console) -> None:
    tab.enter("#/relatorios?status=PENDENTE")
    tab.until("/^[0-9.]+ relatórios, página 1.$/.test(document.querySelector('[role=status]').lastChild?.textContent)")
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "Ir para o conteúdo"
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate("document.activeElement.id") == "conteudo"


def test_a_dialog_gives_the_focus_back(tab: Console) -> None:
    tab.enter()
    button = tab.page.get_by_role("button", name="Exportar")
    button.click()
    tab.page.get_by_role("dialog").wait_for()
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("dialog").wait_for(state="detached")
    assert tab.page.evaluate("document.activeElement.textContent") == "Exportar"


def test_the_theme_is_the_systems_or_ones_own(tab: Console) -> None:
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


def test_on_paper_there_is_the_table_and_nothing_to_press(wide: Console) -> None:
    wide.enter("#/relatorios?status=CONCLUIDO")
    wide.page.emulate_media(media="print")
    assert wide.page.locator("tbody tr").first.is_visible()
    assert not wide.page.locator(".bar, .filters, .pager, .actions").filter(visible=True).count()


@pytest.mark.parametrize(
    ("address", "page"), [("#/relatorios?page=3", "Página 3 de 28"), ("#/pessoas", "Página 1 de ")]
)
def test_on_paper_a_part_of_a_list_says_which(wide: Console, address: str, page: str) -> None:
    wide.enter(address)
    assert not wide.page.get_by_text(page).filter(visible=True).count()
    wide.page.emulate_media(media="print")
    assert wide.page.get_by_text(page).is_visible()


@pytest.mark.parametrize("view", ["relatorios", "pessoas"])
def test_on_paper_nothing_of_another_question_stands_below_what_is_asked_for(wide: Console, view: str) -> None:
    wide.enter(f"#/{view}")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    wide.intercept(re.compile("page=2"), hold)
    awaited = wide.page.locator(".list").get_by_text("Ainda buscando…").filter(visible=True)
    old = wide.page.locator("tbody tr, [data-total], .on-paper").filter(visible=True, has_not_text="Ainda buscando…")
    wide.page.get_by_role("link", name="Próxima página").click()
    wide.page.locator("[aria-busy=true]").first.wait_for()
    wide.page.emulate_media(media="print")
    assert (awaited.count(), old.count()) == (1, 0)
    while not held:
        wide.page.wait_for_timeout(20)
    held[0].continue_()
    wide.settle()
    assert (awaited.count(), old.count()) == (0, 28)
    assert re.search(r"Consultado em \d\d/\d\d/\d{4} às .* no fuso America/Sao Paulo", old.all_inner_texts()[1])
    wide.page.unroute_all(behavior="wait")


def test_on_paper_an_open_report_is_what_was_meant(tab: Console) -> None:
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
def test_on_paper_all_columns_are_readable_and_dark_on_light(wide: Console, theme: str) -> None:
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


def test_on_paper_no_word_is_broken(wide: Console) -> None:
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
def test_on_paper_a_name_without_a_blank_leaves_the_other_columns_there(wide: Console, view: str, letters: int) -> None:
    name = ("consultaPessoaComTodosOsAntecedentes" * 6)[:letters]
    wide.intercept(re.compile(rf"/{view}$"), answered(lambda result: result["itens"][0].update(nome=name)))
    wide.enter(f"#/{view}")
    wide.page.set_viewport_size({"width": A4, "height": 1000})
    wide.page.emulate_media(media="print")
    assert wide.page.locator("td.c-nome").first.inner_text() == name
    assert wide.page.evaluate(OFF_PAPER) == []
    wide.page.unroute_all(behavior="wait")


def test_on_paper_the_whole_volume_is_in_the_table(wide: Console) -> None:
    wide.enter("#/painel")
    wide.page.emulate_media(media="print")
    assert wide.page.evaluate(
        "(({ scrollHeight, clientHeight }) => scrollHeight === clientHeight)(document.querySelector('.scroll'))"
    )


PRINTED = """[...document.querySelectorAll('.columns span')].map((bar) => {
    const { right, height } = bar.getBoundingClientRect()
    return { right, height, drawn: getComputedStyle(bar).printColorAdjust === 'exact' }
})"""


def test_on_paper_the_chart_is_drawn_and_whole(wide: Console) -> None:
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


def test_in_forced_colors_what_is_chosen_is_seen(wide: Console) -> None:
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
