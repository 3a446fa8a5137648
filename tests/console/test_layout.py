"""What must fit at common window widths."""

import re
from itertools import pairwise
from typing import Any

import pytest

from console.driver import Console
from console.lists import answered, answers
from laudo.core import errors


def test_long_names_do_not_widen_the_filters(wide: Console) -> None:
    wide.enter()
    wide.page.locator(".matriz summary").click()
    wide.page.locator(".matriz button[aria-pressed]").first.wait_for()
    assert wide.page.evaluate("document.querySelector('.filters').scrollWidth") <= 236
    assert wide.page.evaluate(
        "document.querySelector('.list').getBoundingClientRect().left"
        " >= document.querySelector('.matriz').getBoundingClientRect().right"
    )


def test_the_quick_find_has_room_when_the_page_is_zoomed(wide: Console) -> None:
    for width in (720, 800, 959, 960, 1440):
        wide.page.set_viewport_size({"width": width, "height": 450})
        wide.enter()
        assert wide.page.locator("[data-find]").bounding_box()["width"] >= 240, width  # type: ignore[index]
        wide.page.evaluate("scrollTo(0, 400)")
        bar, header = (wide.page.locator(place).bounding_box() for place in (".bar", "th.c-numero"))
        assert bar
        assert header
        assert bar["height"] - 1 <= header["y"] <= bar["height"], width


def test_a_document_does_not_touch_its_status_in_a_narrow_card(phone: Console) -> None:
    touching = """[...document.querySelectorAll('.waiting li')].filter((li) => {
        const [a, b] = ['.documento', '.status'].map((part) => li.querySelector(part).getBoundingClientRect())
        return b.left < a.left + 150 && b.top < a.bottom
    }).length"""
    for width in (360, 390, 900, 1000, 1280):
        phone.page.set_viewport_size({"width": width, "height": 780})
        phone.enter(f"?{width}#/painel")
        phone.page.locator(".waiting li .status").first.wait_for()
        assert phone.page.evaluate(touching) == 0, width


def test_a_long_status_stays_inside_its_card(phone: Console) -> None:
    def long(result: Any) -> None:  # noqa: ANN401 - what JSON holds
        for item in result["itens"]:
            item["status"] = "AGUARDANDO DOCUMENTOS COMPLEMENTARES DO TITULAR"

    waiting = re.compile(r"/relatorios\?pendente_validacao_manual=true&sort=")
    phone.page.set_viewport_size({"width": 320, "height": 640})
    phone.intercept(waiting, answered(long))
    phone.enter("#/painel")
    phone.page.locator(".waiting li .status").first.wait_for()
    for width in (320, 390, 719, 720, 900, 1440):
        phone.page.set_viewport_size({"width": width, "height": 640})
        out = """(all) => all.filter((e) => e.getBoundingClientRect().right
            > e.closest('.card').getBoundingClientRect().right - 18).length"""
        assert phone.page.locator(".waiting li > *").evaluate_all(out) == 0, width
    phone.page.unroute_all(behavior="wait")


def test_dialogs_fit_a_small_phone(phone: Console) -> None:
    phone.page.set_viewport_size({"width": 320, "height": 640})
    phone.enter()
    for name in ("Exportar", "Copiar como…"):
        phone.page.get_by_role("button", name=name).click()
        dialog = phone.page.locator("dialog[open]")
        assert dialog.evaluate("(dialog) => dialog.scrollWidth - dialog.clientWidth") <= 0, name
        phone.page.keyboard.press("Escape")


def test_a_long_request_id_fits_into_its_error_message(wide: Console) -> None:
    wide.refusals_expected = True
    refuse = answers(500, errors.INTERNAL.message, X_Request_Id="7f0c2b9a5e5d4c3fb1a2d3e4f5061728" * 2)
    out = "(all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.className || e.tagName)"
    wide.intercept(re.compile("sort=nome"), refuse)
    wide.enter()
    wide.page.locator(".matriz summary").click()
    wide.page.locator(".matriz .trouble").wait_for()
    assert wide.page.locator(".filters, .matriz, .matriz .trouble").evaluate_all(out) == []
    wide.page.set_viewport_size({"width": 360, "height": 780})
    wide.intercept(re.compile(r"/(relatorios|pessoas|usuario)(\?|$)"), refuse)
    for view in ("relatorios", "pessoas", "painel", "perfil"):
        wide.enter(f"?{view}#/{view}")
        wide.page.locator(".trouble").wait_for()
        assert wide.page.locator("html, .trouble").evaluate_all(out) == [], view


LINES = "(all) => all.map((e) => e.getBoundingClientRect()).map(({ top, bottom }) => Math.round((top + bottom) / 2))"


def test_related_controls_share_one_line_on_a_small_phone(phone: Console) -> None:
    phone.lasting.context.new_cdp_session(phone.page).send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    phone.page.set_viewport_size({"width": 360, "height": 780})
    phone.enter("#/relatorios?status=CONCLUIDO")
    assert phone.page.locator(".head .count").inner_text() == "1"
    for together in (".head .actions button", ".sorter :is(label, select, button)"):
        assert len(set(phone.page.locator(together).evaluate_all(LINES))) == 1, together
    phone.enter("?#/painel")
    heights = "(all) => all.map((e) => Math.round(e.getBoundingClientRect().height))"
    phone.page.locator(".bars a").first.wait_for()
    assert set(phone.page.locator(".bars a").evaluate_all(heights)) == {24}


def test_the_focus_outline_of_a_search_does_not_cover_its_error(tab: Console) -> None:
    tab.enter("#/pessoas")
    tab.page.get_by_role("searchbox", name="Buscar pessoas").fill("!!!")
    field, wrong = (tab.page.locator(place).bounding_box() for place in (".search input", ".search .wrong"))
    assert field
    assert wrong
    text = wrong["y"] + tab.page.locator(".search .wrong").evaluate("(e) => parseFloat(getComputedStyle(e).paddingTop)")
    # The focus outline extends 4 px beyond the field.
    assert text - field["y"] - field["height"] > 4


def test_matrices_with_long_names_that_begin_alike_are_shown_whole(phone: Console) -> None:
    def rename(result: Any) -> None:  # noqa: ANN401 - what JSON holds
        result["paginacao"]["total"] = 1
        result["itens"] = [{"nome": "consultaPessoa" * 14}]

    phone.page.set_viewport_size({"width": 320, "height": 640})
    phone.intercept(re.compile(r"/relatorios\?(?=.*(sort=nome|nome=))"), answered(rename))
    phone.enter()
    phone.filters()
    phone.page.locator(".matriz summary").click()
    words = phone.page.locator(".matriz .words")
    words.wait_for()
    assert words.evaluate("(e) => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight")
    assert phone.fits_its_width()
    phone.page.unroute_all(behavior="wait")


def test_page_numbers_of_ten_million_persons_fit_a_small_phone(phone: Console) -> None:
    phone.page.set_viewport_size({"width": 320, "height": 640})
    page = {"itens": [PESSOA], "paginacao": {"atual": 200_000, "linhas": 25, "total": "12345678"}}
    phone.intercept(re.compile(r"/pessoas\?page="), answered(lambda result: result.update(page)))
    phone.enter("#/pessoas?page=200000")
    phone.page.get_by_label("Página 200.000").wait_for()
    assert phone.fits_its_width()
    phone.page.unroute_all(behavior="wait")


PLACES = """(selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility()).map((e) => {
    const { left, right } = e.getBoundingClientRect()
    return { words: e.textContent, left, right }
})"""
PESSOA = {"cpf": "12345678909", "nome": "Maria", "atualizado_em": "2026-01-31T12:00:00.000Z"}
LONG = "Maria Aparecida dos Santos Oliveira Albuquerque Cavalcanti de Souza e Silva"


def test_a_long_name_ends_in_an_ellipsis_and_has_a_full_title(wide: Console) -> None:
    name = LONG * 2
    wide.intercept(re.compile(r"/pessoas$"), answered(lambda result: result["itens"][0].update(nome=name)))
    wide.enter("#/pessoas")
    row = wide.rows.first
    assert row.evaluate("(e) => e.scrollWidth > e.clientWidth && getComputedStyle(e).textOverflow") == "ellipsis"
    assert row.evaluate("(e) => e.getBoundingClientRect().right <= e.closest('td').getBoundingClientRect().right")
    assert row.locator("xpath=..").get_attribute("title") == name
    wide.page.unroute_all(behavior="wait")


def test_a_long_filter_value_is_cut_off_and_has_a_full_title(phone: Console) -> None:
    nome = "consultaPessoa" * 14
    phone.enter(f"#/relatorios?nome={nome}")
    value = phone.page.locator(".chips .value")
    assert value.evaluate("(e) => e.scrollWidth > e.clientWidth")
    assert value.get_attribute("title") == nome


def test_at_400_percent_zoom_nothing_is_cut_off_or_out_of_view(phone: Console) -> None:
    phone.page.set_viewport_size({"width": 320, "height": 256})
    phone.intercept(re.compile(r"/pessoas$"), answered(lambda result: result["itens"][0].update(nome=LONG)))
    for view in ("relatorios?status=CONCLUIDO", "pessoas"):
        phone.enter(f"#/{view}")
        cut = "[...document.querySelectorAll('tbody td')].filter((td) => td.scrollWidth > td.clientWidth + 1).length"
        assert phone.page.evaluate(cut) == 0, view
        # A scrollbar or wider letters may take this much room.
        phone.page.set_viewport_size({"width": 300, "height": 256})
        assert phone.page.evaluate(cut) == 0, view
        phone.page.set_viewport_size({"width": 320, "height": 256})
        for name in ("Exportar", "Copiar como…"):
            box = phone.page.get_by_role("button", name=name).bounding_box()
            assert box
            assert 0 <= box["x"] <= box["x"] + box["width"] <= 320, name
    phone.page.unroute_all(behavior="wait")


SPACED = """() => {
    const style = new CSSStyleSheet()
    style.replaceSync(`p { margin-bottom: 2em !important }
        * { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important }`)
    document.adoptedStyleSheets = [style]
}"""
CUT = """[...document.querySelectorAll('.table :is(td, th, [data-row])')].filter((e) => !e.closest('[title]')
    && e.checkVisibility({ visibilityProperty: true }) && (e.scrollWidth > e.clientWidth
        || e.getBoundingClientRect().right > e.closest('.table').getBoundingClientRect().right)
).map((e) => `${e.className}: ${e.innerText}`)"""
HEIGHTS = "(all) => [...new Set(all.map((e) => Math.round(e.getBoundingClientRect().height / 8)))]"


@pytest.mark.parametrize("width", [390, 640, 660, 900, 1000, 1280, 1600])
def test_rows_cut_off_nothing_even_with_wide_text_spacing(wide: Console, width: int) -> None:
    wide.page.set_viewport_size({"width": width, "height": 800})
    wide.enter("#/relatorios?rows=100")
    assert wide.page.evaluate(CUT) == []
    assert width < 660 or len(wide.page.locator("tbody tr").evaluate_all(HEIGHTS)) == 1
    wide.page.evaluate(SPACED)
    assert wide.page.evaluate(CUT) == []
    wide.enter("?#/pessoas")
    wide.page.evaluate(SPACED)
    assert wide.page.evaluate(CUT) == []


def test_numbers_above_ten_million_fit(wide: Console) -> None:
    many = answered(lambda result: result["paginacao"].update(total=12_345_678))
    wide.intercept(re.compile(r"/relatorios(\?|$)"), many)
    wide.enter()
    wide.until("[...document.querySelectorAll('.choices .number')].every((e) => e.textContent === '12.345.678')")
    cut = "[...document.querySelectorAll('.choices .words')].filter((e) => e.scrollWidth > e.clientWidth).length"
    assert wide.page.evaluate(cut) == 0
    wide.page.set_viewport_size({"width": 320, "height": 640})
    wide.enter("?#/painel")
    wide.page.locator(".volume .chart").wait_for()
    for width in (320, 390, 899, 900, 1100, 1440):
        wide.page.set_viewport_size({"width": width, "height": 640})
        for by in ("12 meses", "30 dias"):
            wide.page.get_by_role("link", name=by).click()
            wide.settle()
            numbers = wide.page.evaluate(PLACES, ".marks span")
            card = wide.page.locator(".volume").bounding_box()
            assert card
            assert all(number["left"] > card["x"] for number in numbers), (width, numbers)
            days = wide.page.evaluate(PLACES, ".columns time")
            assert len(days) >= 2
            assert all(one["right"] + 4 < other["left"] for one, other in pairwise(days)), (width, days)
            assert days[-1]["right"] < card["x"] + card["width"], (width, days)
            assert wide.fits_its_width()
    wide.page.unroute_all(behavior="wait")


SMALL = """[...document.querySelectorAll('input:not(.sr, [type=checkbox]), select')].filter((field) =>
    parseFloat(getComputedStyle(field).fontSize) < 16).map(({ name }) => name)"""


def test_no_field_has_a_font_so_small_that_a_phone_zooms_in(phone: Console) -> None:
    phone.lasting.context.new_cdp_session(phone.page).send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    phone.page.goto(phone.base)
    assert phone.page.evaluate("matchMedia('(pointer: coarse)').matches")
    assert phone.page.evaluate(SMALL) == []
    for view in ("docs", "#/relatorios", "#/pessoas"):
        phone.enter(view)
        if view == "#/relatorios":
            phone.filters()
        phone.page.locator("input").first.wait_for(state="attached")
        assert phone.page.evaluate(SMALL) == [], view
        assert phone.fits_its_width(), view


def test_a_badge_stays_on_one_line_in_a_wide_font(wide: Console) -> None:
    for width in (900, 1100, 1280, 1440):
        wide.page.set_viewport_size({"width": width, "height": 900})
        for filters in ("pendente_validacao_manual=true", "resultado=INVALID"):
            wide.enter(f"?{width}#/relatorios?{filters}")
            wide.page.evaluate("document.body.style.setProperty('--sans', '\"DejaVu Sans\", Verdana, sans-serif')")
            wide.page.evaluate("document.body.style.fontFamily = 'var(--sans)'")
            badges = wide.page.locator(".table :is(.manual, .resultado)")
            assert badges.count()
            heights = "(all) => all.map((e) => e.getBoundingClientRect().height)"
            assert max(badges.evaluate_all(heights)) <= 24, (width, filters)


def test_a_narrow_list_shows_pending_and_never_a_squeezed_matriz(wide: Console) -> None:
    wide.enter("#/relatorios?pendente_validacao_manual=true")
    wide.rows.first.click()
    wide.settle()
    assert wide.page.locator("td.c-pendente_validacao_manual").first.is_visible()
    wide.page.keyboard.press("Escape")
    wide.page.locator(".detalhe").wait_for(state="detached")
    for width in range(900, 1440, 60):
        wide.page.set_viewport_size({"width": width, "height": 900})
        name, table = (wide.page.locator(place).first for place in ("td.c-nome", ".table"))
        assert not name.is_visible() or name.evaluate("(e) => e.clientWidth") > 120, width
        assert table.evaluate("(e) => e.scrollWidth <= e.clientWidth"), width


def test_the_number_of_a_report_stays_on_one_line(wide: Console) -> None:
    wide.enter()
    wide.rows.first.click()
    for width in (390, 960, 1280, 1440):
        wide.page.set_viewport_size({"width": width, "height": 900})
        number = wide.page.locator(".uuid").bounding_box()
        assert number
        assert number["height"] < 20, width


def test_text_on_a_phone_starts_at_the_left_edge_of_its_card(phone: Console) -> None:
    phone.enter()
    card, text = (phone.page.locator(f"tbody tr{part}").first.bounding_box() for part in ("", " .documento"))
    assert card
    assert text
    assert text["x"] - card["x"] < 16


def test_the_token_buttons_share_one_line_on_a_phone(phone: Console) -> None:
    phone.enter("#/perfil")
    tops = phone.page.locator(".token button").evaluate_all("(all) => all.map((e) => e.getBoundingClientRect().top)")
    assert len(tops) == 2
    assert len(set(tops)) == 1


def test_the_api_reference_has_a_one_line_bar_and_routes_fit_on_a_phone(phone: Console) -> None:
    phone.enter("docs")
    bar = phone.page.locator(".bar").bounding_box()
    assert bar
    assert bar["height"] < 60
    assert phone.page.locator(".routes a").evaluate_all(
        "(all) => all.every((e) => e.getBoundingClientRect().right <= innerWidth && e.clientHeight < 40)"
    )
