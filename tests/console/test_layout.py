"""What must have room at widths that people have."""

import re

from console.driver import Console
from console.test_freshness import answered


def test_long_names_do_not_widen_the_filters(wide: Console) -> None:
    wide.enter()
    wide.page.locator(".matriz summary").click()
    wide.page.locator(".matriz button[aria-pressed]").first.wait_for()
    assert wide.page.evaluate("document.querySelector('.filters').scrollWidth") <= 236
    assert wide.page.evaluate(
        "document.querySelector('.list').getBoundingClientRect().left"
        " >= document.querySelector('.matriz').getBoundingClientRect().right"
    )


def test_the_quick_find_has_room_when_the_page_is_enlarged(wide: Console) -> None:
    for width in (720, 800, 959, 960, 1440):
        wide.page.set_viewport_size({"width": width, "height": 450})
        wide.enter()
        assert wide.page.locator("[data-find]").bounding_box()["width"] >= 240, width  # type: ignore[index]
        wide.page.evaluate("scrollTo(0, 400)")
        bar, header = (wide.page.locator(place).bounding_box() for place in (".bar", "th.c-numero"))
        assert bar
        assert header
        assert bar["height"] - 1 <= header["y"] <= bar["height"], width


def test_a_document_does_not_touch_its_status_on_a_small_phone(phone: Console) -> None:
    phone.page.set_viewport_size({"width": 360, "height": 780})
    phone.enter("#/painel")
    touching = """[...document.querySelectorAll('.waiting li')].filter((li) => {
        const [a, b] = ['.documento', '.status'].map((part) => li.querySelector(part).getBoundingClientRect())
        return b.left < a.left + 150 && b.top < a.bottom
    }).length"""
    assert phone.page.evaluate(touching) == 0


def test_dialogs_fit_a_small_phone(phone: Console) -> None:
    phone.page.set_viewport_size({"width": 320, "height": 640})
    phone.enter()
    for name in ("Exportar", "Copiar como…"):
        phone.page.get_by_role("button", name=name).click()
        dialog = phone.page.locator("dialog[open]")
        assert dialog.evaluate("(dialog) => dialog.scrollWidth - dialog.clientWidth") <= 0, name
        phone.page.keyboard.press("Escape")


LONG = "Maria Aparecida dos Santos Oliveira Albuquerque Cavalcanti de Souza e Silva"


def test_enlarged_four_times_nothing_is_cut_off_or_out_of_view(phone: Console) -> None:
    phone.page.set_viewport_size({"width": 320, "height": 256})
    phone.page.route(re.compile(r"/pessoas$"), answered(lambda result: result["itens"][0].update(nome=LONG)))
    for view in ("relatorios?status=CONCLUIDO", "pessoas"):
        phone.enter(f"#/{view}")
        cut = "[...document.querySelectorAll('tbody td')].filter((td) => td.scrollWidth > td.clientWidth + 1).length"
        assert phone.page.evaluate(cut) == 0, view
        for name in ("Exportar", "Copiar como…"):
            box = phone.page.get_by_role("button", name=name).bounding_box()
            assert box
            assert 0 <= box["x"] <= box["x"] + box["width"] <= 320, name
    phone.page.unroute_all(behavior="wait")
