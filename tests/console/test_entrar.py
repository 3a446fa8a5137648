import re

import httpx
from playwright.sync_api import expect

from console.driver import Console
from console.lists import answers, count, first


def test_entering_a_token_opens_the_list(tab: Console) -> None:
    tab.page.goto(tab.base)
    field = tab.page.get_by_label("Token de acesso")
    assert field.get_attribute("type") == "password"
    assert field.get_attribute("autocomplete") == "current-password"
    field.fill(f"  {tab.token}  ")
    tab.page.get_by_role("button", name="Entrar").click()
    tab.rows.first.wait_for()
    assert tab.total > 0
    assert tab.token not in tab.page.url
    assert tab.page.evaluate("localStorage.length + document.cookie.length") == 0


def test_a_link_to_the_first_view_after_signing_in_adds_no_history_entry(wide: Console) -> None:
    wide.page.goto(wide.base)
    wide.page.get_by_label("Token de acesso").fill(wide.token)
    wide.page.keyboard.press("Enter")
    wide.rows.first.wait_for()
    steps = wide.page.evaluate("history.length")
    wide.page.get_by_role("link", name="Relatórios", exact=True).click()
    assert wide.page.evaluate("history.length") == steps


def test_shortcuts_do_nothing_before_sign_in(wide: Console) -> None:
    wide.page.goto(wide.base)
    field = wide.page.get_by_label("Token de acesso")
    field.blur()
    wide.page.keyboard.press("?")
    field.fill(wide.token)
    field.press("Enter")
    wide.rows.first.wait_for()
    assert not wide.page.locator("dialog").count()


def test_the_tab_title_names_the_current_view(wide: Console) -> None:
    wide.page.goto(f"{wide.base}/#/painel")
    wide.page.get_by_label("Token de acesso").fill(wide.token)
    assert wide.page.title() == "Entrar · laudo"
    wide.page.keyboard.press("Enter")
    wide.until("document.title === 'Painel · laudo'")
    wide.page.get_by_role("button", name="Sair").click()
    wide.until("document.title === 'Entrar · laudo'")


def test_a_malformed_token_is_reported_without_a_request(tab: Console) -> None:
    tab.page.goto(tab.base)
    tab.page.get_by_role("button", name="Entrar").click()
    assert tab.page.get_by_role("alert").inner_text() == "Cole o seu token."
    tab.page.get_by_label("Token de acesso").fill("Bearer abc")
    tab.page.keyboard.press("Enter")
    assert "não parece um token" in tab.page.get_by_role("alert").inner_text()
    assert not [request for request in tab.requests if "/usuario" in request.url]


def test_an_unknown_token_is_reported_as_not_accepted(tab: Console) -> None:
    tab.refusals_expected = True
    tab.page.goto(tab.base)
    tab.page.get_by_label("Token de acesso").fill("laudo_" + "a" * 38)
    tab.page.keyboard.press("Enter")
    tab.page.get_by_role("alert").wait_for()
    assert "não foi aceito" in tab.page.get_by_role("alert").inner_text()


def test_sign_in_fails_if_the_response_is_not_from_the_service(tab: Console) -> None:
    tab.intercept("**/usuario", lambda route: route.fulfill(status=200, body="<html>Entre na rede</html>"))
    tab.page.goto(tab.base)
    tab.page.get_by_label("Token de acesso").fill(tab.token)
    tab.page.keyboard.press("Enter")
    tab.page.get_by_role("alert").wait_for()
    assert (
        tab.page.get_by_role("alert").inner_text().endswith("Confira se este endereço é mesmo o de um serviço laudo.")
    )
    assert not tab.rows.count()


def test_sign_in_says_how_long_to_wait_for_a_busy_service(wide: Console) -> None:
    wide.refusals_expected = True
    wide.intercept("**/usuario", answers(429, "Muitas requisições.", Retry_After="7"))
    wide.page.goto(wide.base)
    wide.page.get_by_label("Token de acesso").fill(wide.token)
    wide.page.keyboard.press("Enter")
    wide.page.get_by_role("alert").get_by_text("Muitas requisições. Tente novamente em 7 s.").wait_for()


def test_the_sign_in_button_keeps_the_focus_and_sends_one_request(wide: Console) -> None:
    wide.refusals_expected = True
    wide.page.goto(wide.base)
    held = wide.hold("**/usuario")
    wide.page.get_by_label("Token de acesso").fill("laudo_" + "a" * 38)
    wide.page.get_by_role("button", name="Entrar").press("Enter")
    wide.page.get_by_role("button", name="Entrando…").press("Enter")
    first = wide.await_first(held)
    wide.page.wait_for_timeout(100)
    assert held == [first]
    first.fulfill(status=401, body="{}")
    wide.page.get_by_role("alert").wait_for()
    assert wide.page.evaluate("document.activeElement.textContent") == "Entrar"


def test_signing_out_clears_the_session(tab: Console) -> None:
    tab.enter()
    tab.page.get_by_role("link", name="Próxima página").click()
    tab.settle()
    tab.page.evaluate("sessionStorage.setItem('left', '1')")
    tab.page.get_by_role("button", name="Sair").click()
    tab.page.get_by_label("Token de acesso").wait_for()
    assert tab.page.evaluate("Object.keys(sessionStorage)") == ["left"]
    assert (tab.page.url, tab.page.evaluate("history.state")) == (f"{tab.base}/", None)
    tab.page.go_back()
    tab.page.reload()
    tab.page.get_by_label("Token de acesso").wait_for()


def test_signing_out_forgets_cached_responses(wide: Console) -> None:
    wide.enter()
    wide.page.get_by_role("button", name="Sair").click()
    before = len(wide.requests)
    sign_in_again(wide)
    wide.rows.first.wait_for()
    asked = [request for request in wide.requests[before:] if request.url == f"{wide.base}/relatorios"]
    assert [request.headers.get("if-none-match") for request in asked] == [None]


def test_a_revoked_token_leads_to_sign_in_with_a_reason(tab: Console) -> None:
    tab.refusals_expected = True
    tab.enter()
    refusal = '{"error":"Unauthorized","message":"Falha na autenticação.","status_code":401}'
    tab.intercept(re.compile(r"/relatorios(\?|$)"), lambda route: route.fulfill(status=401, body=refusal))
    tab.page.keyboard.press("ArrowRight")
    tab.page.get_by_label("Token de acesso").wait_for()
    reason = tab.page.locator(".notice").inner_text()
    assert "não é mais aceito" in reason
    expect(tab.page.locator("input:focus")).to_have_accessible_description(reason)


def test_a_token_revoked_during_the_counts_leads_to_sign_in(wide: Console) -> None:
    wide.refusals_expected = True
    wide.intercept(re.compile(r"/relatorios\?status="), lambda route: route.fulfill(status=401, body="{}"))
    wide.enter()
    wide.page.get_by_text("O token não é mais aceito. Entre novamente.").wait_for()


def sign_in_again(tab: Console) -> None:
    tab.page.get_by_label("Token de acesso").fill(tab.token)
    tab.page.keyboard.press("Enter")


def test_a_new_session_shows_no_filter_or_report_of_the_previous_one(tab: Console, api: httpx.Client) -> None:
    document = first(api, tipo_pessoa="PESSOA")["numero_documento"]
    tab.enter()
    for _ in range(2):
        tab.find(document)
        tab.await_total(count(api, numero_documento=document))
    tab.rows.first.click()
    tab.page.locator(".detalhe dl").wait_for()
    tab.page.evaluate("sessionStorage.setItem('left', '1')")
    tab.page.get_by_role("button", name="Fechar o relatório").click()
    tab.page.get_by_role("button", name="Sair").click()
    sign_in_again(tab)
    tab.await_total(count(api))
    assert not tab.page.locator(".chips, .detalhe").count()
    tab.page.go_back()
    tab.page.go_back()
    tab.page.go_back()
    tab.await_total(count(api))
    assert tab.hash == "/relatorios"
    assert not tab.page.locator(".chips").count()


def test_a_new_session_marks_no_person_as_visited(wide: Console) -> None:
    wide.enter("#/pessoas")
    wide.rows.first.click()
    wide.page.locator(".chips").wait_for()
    wide.page.evaluate("sessionStorage.setItem('left', '1')")
    wide.page.get_by_role("button", name="Sair").click()
    sign_in_again(wide)
    wide.page.get_by_role("link", name="Pessoas").click()
    wide.page.locator(".table.pessoas [data-row]").first.wait_for()
    assert not wide.page.locator("tr.visited").count()


def test_after_a_revoked_token_the_address_matches_the_list(tab: Console) -> None:
    tab.refusals_expected = True
    tab.enter("#/relatorios?status=CONCLUIDO")
    lists = re.compile(r"/relatorios(\?|$)")
    tab.intercept(lists, lambda route: route.fulfill(status=401, body="{}"))
    tab.page.keyboard.press("ArrowRight")
    tab.page.get_by_label("Token de acesso").wait_for()
    tab.page.unroute(lists)
    sign_in_again(tab)
    tab.rows.first.wait_for()
    shown = tab.total
    assert not tab.page.locator(".chips").count()
    tab.page.reload()
    tab.settle()
    assert tab.total == shown
    assert tab.page.locator(".pager [aria-current=page]").inner_text() == "1"


def test_missing_browser_storage_is_reported(tab: Console) -> None:
    refuse = "{ get() { throw new DOMException('', 'SecurityError') } }"
    for kept in ("sessionStorage", "localStorage"):
        tab.lasting.add_init_script(f"Object.defineProperty(window, '{kept}', {refuse})")
    tab.page.goto(tab.base)
    tab.page.get_by_role("heading", name="O navegador não permite que esta página guarde o token.").wait_for()
    assert tab.violations() == []
