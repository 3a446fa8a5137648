"""The console works in browsers from before 2024, such as Safari 16.4 to 17.3."""

from playwright.sync_api import Route

from console.driver import Console

YOUNGER = "delete AbortSignal.any; delete Element.prototype.checkVisibility"


def without_light_dark(route: Route) -> None:
    answer = route.fetch()
    route.fulfill(response=answer, body=answer.text().replace("light-dark(", "unknown("))


def test_a_browser_of_2023_loads_lists_and_keeps_the_focus(wide: Console) -> None:
    wide.lasting.add_init_script(YOUNGER)
    wide.enter("#/relatorios?status=CONCLUIDO&tipo_pessoa=PESSOA")
    assert wide.rows.count() == 25
    wide.page.get_by_role("button", name="Remover o filtro Situação").press("Enter")
    wide.settle()
    assert wide.page.evaluate("document.activeElement.ariaLabel") == "Remover o filtro Tipo: Pessoa"


def test_a_browser_of_2023_shows_the_theme_colors(tab: Console) -> None:
    tab.lasting.route("**/*.css", without_light_dark)
    tab.enter()
    tab.page.get_by_role("button", name="Exportar").click()
    expected = {"light": "rgb(255, 255, 255)", "dark": "rgb(25, 28, 29)"}[tab.look.theme]
    assert tab.page.get_by_role("dialog").evaluate("(e) => getComputedStyle(e).backgroundColor") == expected
