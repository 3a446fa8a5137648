import re

import httpx
import pytest

from console.driver import Console
from console.lists import first

WHOLE = re.compile(r"\d{3}\.\d{3}\.\d{3}-\d{2}")
MASKED = re.compile(r"\*{3}\.\d{3}\.\d{3}-\*{2}")


def test_cpfs_are_masked_until_they_are_revealed(tab: Console) -> None:
    tab.enter("#/relatorios?tipo_pessoa=PESSOA")
    table = tab.page.locator("tbody")
    assert not WHOLE.search(table.inner_text())
    assert len(MASKED.findall(table.inner_text())) == 25
    tab.page.locator(".reveal").nth(4).click()
    assert len(WHOLE.findall(table.inner_text())) == 1
    assert not tab.page.locator(".detalhe").count()
    tab.page.get_by_role("button", name="Mostrar CPF", pressed=True).click()
    assert not WHOLE.search(table.inner_text())
    tab.page.locator(".reveal").nth(4).click()
    for whole in (25, 0):
        tab.page.get_by_role("button", name="Mostrar CPFs nesta sessão").click()
        assert len(WHOLE.findall(table.inner_text())) == whole
        tab.page.reload()
        tab.settle()
        assert len(WHOLE.findall(table.inner_text())) == whole


def test_revealing_a_cpf_does_not_open_its_row(wide: Console) -> None:
    for hash_ in ("/relatorios?tipo_pessoa=PESSOA", "/pessoas"):
        wide.enter(f"#{hash_}")
        wide.page.get_by_role("button", name="Mostrar CPF", exact=True).first.click()
        wide.page.locator("tbody [aria-pressed=true]").wait_for()
        assert wide.hash == hash_


def test_revealing_all_cpfs_lasts_until_signing_out(tab: Console) -> None:
    tab.enter("#/relatorios?tipo_pessoa=PESSOA")
    tab.page.get_by_role("button", name="Mostrar CPFs nesta sessão").click()
    assert len(WHOLE.findall(tab.page.locator("tbody").inner_text())) == 25
    tab.page.reload()
    tab.settle()
    assert len(WHOLE.findall(tab.page.locator("tbody").inner_text())) == 25
    tab.page.get_by_role("button", name="Exportar").click()
    assert not tab.page.get_by_label("Mascarar CPFs").is_checked()
    assert tab.page.get_by_text("O arquivo terá CPFs completos").is_visible()
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("button", name="Sair").click()
    assert tab.own("revealed") not in tab.page.evaluate("Object.keys(sessionStorage)")
    tab.page.get_by_label("Token de acesso").fill(tab.token)
    tab.page.keyboard.press("Enter")
    tab.rows.first.wait_for()
    assert MASKED.search(tab.page.locator("tbody").inner_text())
    assert not WHOLE.search(tab.page.locator("tbody").inner_text())


def test_no_view_shows_a_whole_cpf_before_it_is_revealed(tab: Console, api: httpx.Client) -> None:
    item = first(api, tipo_pessoa="PESSOA")
    for address in ("", "#/pessoas", "#/painel", f"#/relatorios?aberto={item['numero']}"):
        tab.enter(address)
        tab.page.wait_for_timeout(150)
        assert not WHOLE.search(tab.page.locator("body").inner_text())
    tab.page.keyboard.press("Escape")
    tab.find(item["numero_documento"])
    tab.page.locator(".chips").wait_for()
    assert not WHOLE.search(tab.page.locator("body").inner_text())
    assert item["numero_documento"] not in tab.page.content()


def test_addresses_titles_and_referrers_contain_no_personal_data(tab: Console, api: httpx.Client) -> None:
    item = first(api, tipo_pessoa="PESSOA")
    tab.enter()
    tab.find(item["numero_documento"])
    tab.find("maria da silva")
    assert tab.page.title() == "Pessoas · laudo"
    tab.page.get_by_role("link", name="API").click()
    tab.page.get_by_role("heading", name="Referência da API").wait_for()
    assert tab.page.evaluate("document.referrer") == ""
    pages = [request for request in tab.requests if request.is_navigation_request()]
    assert all(request.url.partition("#")[0].rstrip("/") in {tab.base, f"{tab.base}/docs"} for request in pages)
    assert not [request for request in tab.requests if request.headers.get("referer")]


ASKED = """
const ask = fetch;
window.asked = [];
window.fetch = (address, how) => {
  asked.push([address, how.cache, how.credentials, how.redirect, how.referrerPolicy]);
  return ask(address, how);
};
"""


def test_api_requests_use_no_cache_cookies_or_redirects(wide: Console) -> None:
    wide.lasting.add_init_script(ASKED)
    wide.enter("#/perfil")
    wide.page.get_by_role("link", name="Relatórios").click()
    wide.rows.first.wait_for()
    hows = {(address.partition("?")[0].removeprefix(wide.base), *how) for address, *how in wide.page.evaluate("asked")}
    paths = ("/usuario", "/relatorios", "/openapi.json")
    assert hows == {(path, "no-store", "omit", "error", "no-referrer") for path in paths}


@pytest.mark.parametrize("address", ["", "docs"])
def test_a_page_from_the_back_forward_cache_forgets_an_ended_session(wide: Console, address: str) -> None:
    wide.enter()
    wide.page.goto(f"{wide.base}/{address}")
    wide.page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    wide.page.evaluate("document.body.dataset.kept = ''; sessionStorage.setItem('left', '1')")
    wide.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    assert wide.page.locator("[data-kept]").count() == 1
    for what in ("token", "session"):
        wide.page.evaluate("name => sessionStorage.removeItem(name)", wide.own(what))
    wide.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    wide.page.locator("body:not([data-kept])").wait_for()
    text = "Token de acesso" if not address else "Para experimentar, entre com o seu token"
    wide.until("document.body.textContent.includes(given)", text)
