"""An address without the personal value that was searched for never silently shows another list."""

import re
from collections.abc import Callable, Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Playwright

from console.conftest import launched, opened
from console.driver import LOOKS, Console, chromium
from console.lists import count, first, people, repeated
from live.server import Server

MISSING = "[data-missing]"


@pytest.fixture(scope="module")
def windows(playwright: Playwright) -> Iterator[Browser]:
    """The browser with windows: the headless shell often never loads a link that is opened in a new tab."""
    yield from launched(playwright, chromium(with_windows=True))


@pytest.fixture
def window(windows: Browser, server: Server) -> Iterator[Console]:
    yield from opened(windows, server, LOOKS[0])


def in_a_new_tab(console: Console, link: Locator) -> Console:
    """Open a link in a new tab and sign in there."""
    with console.lasting.context.expect_page() as opened:
        link.click(modifiers=["ControlOrMeta"])
    other = Console(opened.value, console.base, console.token, console.look, console.faults, console.requests)
    other.page.get_by_label("Token de acesso").wait_for()
    other.watch()
    other.page.get_by_label("Token de acesso").fill(other.token)
    other.page.keyboard.press("Enter")
    other.page.locator("main h1, main h2").first.wait_for()
    other.settle()
    return other


def a_person(console: Console, _: httpx.Client) -> Locator:
    console.enter("#/pessoas")
    return console.rows.first


def the_next_page(console: Console, _: httpx.Client) -> Locator:
    console.enter()
    console.find("maria")
    return console.page.get_by_role("link", name="Próxima página")


def all_of_a_document(console: Console, api: httpx.Client) -> Locator:
    console.enter(f"#/relatorios?aberto={repeated(api)['numero']}")
    return console.page.get_by_role("link", name="Ver os")


@pytest.mark.parametrize(
    ("link", "what"),
    [
        (a_person, "Este endereço não inclui o CPF ou CNPJ procurado."),
        (the_next_page, "Este endereço não inclui o nome ou CPF procurado."),
        (all_of_a_document, "Este endereço não inclui o CPF ou CNPJ procurado."),
    ],
)
def test_a_new_tab_reports_the_missing_value_and_requests_no_list(
    window: Console, api: httpx.Client, link: Callable[[Console, httpx.Client], Locator], what: str
) -> None:
    place = link(window, api)
    other = in_a_new_tab(window, place)
    assert other.page.locator(f"{MISSING} .big").inner_text() == what
    other.until("document.querySelector('[role=status]').lastChild?.textContent === given", what)
    other.page.reload()
    other.page.locator(MISSING).wait_for()
    assert not other.rows.count()
    asked = [request.url for request in other.requests if request.frame.page == other.page]
    assert asked
    assert not [url for url in asked if re.search(r"/(relatorios|pessoas)(\?|$)", url)]


def test_one_click_shows_the_whole_list(tab: Console, api: httpx.Client) -> None:
    for view, total in (
        ("pessoas?oculto=busca&page=2", people(api)),
        ("relatorios?oculto=numero_documento", count(api)),
    ):
        tab.enter(f"?{view}#/{view}")
        tab.page.get_by_role("button", name="Ver a lista inteira").click()
        tab.await_total(total)
        assert tab.hash == f"/{view.partition('?')[0]}"
        assert tab.page.evaluate("document.activeElement.id") == "titulo"
        tab.page.go_back()
        tab.page.locator(MISSING).wait_for()


def test_entering_the_missing_document_keeps_the_other_filters(tab: Console, api: httpx.Client) -> None:
    item = first(api, tipo_pessoa="PESSOA", status="CONCLUIDO")
    tab.enter("#/relatorios?status=CONCLUIDO&oculto=numero_documento&sort=numero&page=3")
    field = tab.page.get_by_role("textbox", name="Documento", exact=True)
    field.fill("maria")
    field.press("Enter")
    assert tab.page.locator(f"{MISSING} [role=alert]").inner_text() == "Isto não é um CPF nem um CNPJ."
    field.fill(item["numero_documento"])
    field.press("Enter")
    tab.await_total(count(api, status="CONCLUIDO", numero_documento=item["numero_documento"]))
    assert tab.hash == "/relatorios?status=CONCLUIDO&oculto=numero_documento&sort=numero"
    tab.page.reload()
    tab.await_total(count(api, status="CONCLUIDO", numero_documento=item["numero_documento"]))


def test_a_missing_search_can_be_entered_again_as_a_name_or_cpf(wide: Console, api: httpx.Client) -> None:
    cpf = api.get("/pessoas").json()["result"]["itens"][3]["cpf"]
    for text, busca in (("silva", "silva"), (f"{cpf[:3]}.{cpf[3:5]}", cpf[:5])):
        wide.enter(f"?{busca}#/pessoas?oculto=busca")
        field = wide.page.get_by_role("textbox", name="Busca", exact=True)
        field.fill("!!!")
        field.press("Enter")
        assert "Digite letras ou números para buscar" in wide.page.locator(f"{MISSING} [role=alert]").inner_text()
        field.fill(text)
        field.press("Enter")
        wide.await_total(people(api, busca=busca))


def test_the_list_can_be_shown_with_the_other_filters_only(wide: Console, api: httpx.Client) -> None:
    wide.enter("#/relatorios?status=CONCLUIDO&oculto=numero_documento")
    wide.page.get_by_role("button", name="Ver só com os outros filtros").click()
    wide.await_total(count(api, status="CONCLUIDO"))
    assert wide.hash == "/relatorios?status=CONCLUIDO"


def test_an_open_report_is_printed_without_the_notice(wide: Console, api: httpx.Client) -> None:
    numero = first(api)["numero"]
    wide.enter(f"#/relatorios?oculto=numero_documento&aberto={numero}")
    wide.page.locator(".detalhe").get_by_text(numero).wait_for()
    assert wide.page.locator(MISSING).is_visible()
    wide.page.emulate_media(media="print")
    assert not wide.page.locator(MISSING).is_visible()
    assert wide.page.locator(".detalhe dl").is_visible()


def test_going_back_in_a_new_session_reports_the_missing_value(wide: Console, api: httpx.Client) -> None:
    document = first(api, tipo_pessoa="PESSOA")["numero_documento"]
    wide.enter()
    wide.find(document)
    wide.await_total(count(api, numero_documento=document))
    wide.page.get_by_role("link", name="Painel").click()
    wide.page.evaluate("sessionStorage.setItem('left', '1')")
    wide.page.get_by_role("button", name="Sair").click()
    wide.page.get_by_label("Token de acesso").fill(wide.token)
    wide.page.keyboard.press("Enter")
    wide.await_total(count(api))
    wide.page.go_back()
    wide.page.locator(MISSING).wait_for()
    assert document not in wide.page.content()


def test_the_notice_is_accessible(any_look: Console) -> None:
    for view in ("pessoas?oculto=busca", "relatorios?status=CONCLUIDO&oculto=numero_documento"):
        any_look.enter(f"?{view}#/{view}")
        any_look.page.locator(MISSING).wait_for()
        assert any_look.flaws() == []


def test_copied_commands_contain_the_value_and_not_oculto(wide: Console) -> None:
    wide.enter()
    wide.find("maria")
    wide.page.get_by_role("button", name="Copiar como…").click()
    texts = wide.page.get_by_role("dialog").inner_text()
    assert "busca=maria" in texts
    assert "oculto" not in texts
    assert not [request.url for request in wide.requests if "oculto" in request.url.partition("#")[0]]
