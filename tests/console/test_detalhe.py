import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from console.driver import Console
from console.lists import answered, count, first, punctuated, repeated


def test_a_report_opens_beside_the_list_and_closes_again(tab: Console) -> None:
    tab.enter("#/relatorios?status=CONCLUIDO")
    numero = tab.rows.nth(2).get_attribute("title")
    assert numero
    tab.rows.nth(2).click()
    panel = tab.page.locator(".detalhe")
    panel.get_by_text(numero).wait_for()
    assert tab.hash == f"/relatorios?status=CONCLUIDO&aberto={numero}"
    assert tab.page.title() == f"Relatório {numero[:8]} · laudo"
    panel.get_by_role("button", name="Fechar o relatório").click()
    panel.wait_for(state="detached")
    assert tab.rows.count() == 25


@pytest.mark.parametrize(
    ("where", "typed", "expected"),
    [
        (".pager [rel=next]", "", "page=2"),
        (".jump input", "3", "page=3"),
        ("[data-filter='status=CONCLUIDO']", "", "status=CONCLUIDO"),
        ("[name=atualizado_em_de]", "2026-09-01", "atualizado_em_de=2026-09-01"),
        ("[name=numero_documento]", "52998224725", "oculto=numero_documento"),
    ],
)
def test_a_step_to_other_reports_closes_the_open_one(
    wide: Console, api: httpx.Client, where: str, typed: str, expected: str
) -> None:
    wide.enter(f"#/relatorios?aberto={first(api)['numero']}")
    if typed:
        wide.page.locator(where).fill(typed)
    wide.page.locator(where).press("Enter")
    wide.page.locator(".detalhe").wait_for(state="detached")
    assert wide.hash == f"/relatorios?{expected}"


def test_a_shared_link_opens_the_report(tab: Console, api: httpx.Client) -> None:
    item = first(api, page="40")
    tab.enter(f"#/relatorios?aberto={item['numero']}")
    tab.page.locator(".detalhe").get_by_text(item["numero"]).wait_for()


def test_an_unknown_report_is_shown_and_announced_as_not_existing(tab: Console) -> None:
    tab.enter("#/relatorios?aberto=00000000-0000-4000-8000-000000000000")
    said = "Este relatório não existe nesta conta."
    tab.page.locator(".detalhe .empty", has_text=said).wait_for()
    tab.until("[...document.querySelectorAll('[role=status] p')].some((p) => p.textContent === given)", said)


def test_changes_to_an_open_report_are_shown_and_announced(wide: Console, api: httpx.Client) -> None:
    wide.refusals_expected = True
    item = repeated(api)
    wide.enter(f"#/relatorios?aberto={item['numero']}")
    panel = wide.page.locator(".detalhe")
    panel.locator(".others li").first.wait_for()
    assert not panel.locator(".notice, .checked").count()

    def look_again(shown: str) -> None:
        """Ask again until the text is shown: while another request is in flight, the event has no effect."""
        while not panel.get_by_text(shown).first.is_visible():
            wide.page.evaluate("dispatchEvent(new Event('online'))")
            wide.page.wait_for_timeout(50)

    def answer(question: str, change: Callable[[Any], None]) -> None:
        wide.intercept(re.compile(rf"\?{question}="), answered(change))

    def decide(result: Any) -> None:  # noqa: ANN401 - the body of an answer
        result["itens"][0].update(mensagem="Decidido.", pendente_validacao_manual=not item["pendente_validacao_manual"])

    answer("numero", decide)
    look_again("Decidido.")
    said = "Este relatório mudou enquanto estava aberto: mensagem e validação manual."
    assert panel.locator(".notice").inner_text() == said
    wide.until("document.querySelector('[role=status]').lastChild?.textContent === given", said)
    answer("cpf", lambda result: result["itens"][0].update(nome="Outro Nome"))
    look_again("Outro Nome")
    answer("numero_documento", lambda result: result["itens"].clear())
    look_again("Nenhum outro relatório.")
    wide.intercept(re.compile(r"\?numero="), lambda route: route.abort())
    look_again("sem atualização desde")
    answer("numero", lambda result: result["itens"].clear())
    look_again("Este relatório não existe mais nesta conta.")
    assert not panel.locator("dl, .notice, .checked").count()
    wide.page.unroute_all(behavior="wait")


def test_an_opened_report_shows_the_data_of_its_row_until_it_loads(wide: Console) -> None:
    wide.refusals_expected = True
    wide.enter()
    held = wide.hold(re.compile(r"\?numero="))
    wide.rows.nth(2).click()
    report = wide.page.locator(".detalhe")
    report.locator("dl").wait_for()
    assert report.locator(".uuid").inner_text() == wide.rows.nth(2).get_attribute("title")
    assert report.get_attribute("aria-busy") == "true"
    wide.await_first(held).abort()
    report.locator(".trouble").first.wait_for()
    assert "Abaixo, os últimos dados recebidos." in report.locator(".trouble").first.inner_text()
    assert report.locator(".uuid").is_visible()
    wide.page.unroute_all(behavior="ignoreErrors")


def test_a_report_shows_its_person_and_other_reports_of_the_document(tab: Console, api: httpx.Client) -> None:
    item = repeated(api)
    document = item["numero_documento"]
    tab.enter(f"#/relatorios?aberto={item['numero']}")
    panel = tab.page.locator(".detalhe")
    nome = api.get("/pessoas", params={"cpf": document}).json()["result"]["itens"][0]["nome"]
    panel.get_by_text(nome).wait_for()
    others = panel.locator(".others li")
    others.first.wait_for()
    total = count(api, numero_documento=document)
    assert others.count() == min(total - 1, 8)
    panel.get_by_role("link", name="Ver os").click()
    tab.await_total(total)
    assert document not in tab.page.url


def test_another_report_of_the_document_opens_beside_the_same_list(wide: Console, api: httpx.Client) -> None:
    wide.enter(f"#/relatorios?tipo_pessoa=PESSOA&aberto={repeated(api)['numero']}")
    other = wide.page.locator(".others li a").first
    address = other.get_attribute("href")
    other.click()
    wide.until("location.hash === given", address)
    assert wide.hash.startswith("/relatorios?tipo_pessoa=PESSOA&aberto=")


def test_a_company_is_shown_with_its_whole_cnpj_and_no_persons_name(wide: Console, api: httpx.Client) -> None:
    item = first(api, tipo_pessoa="EMPRESA")
    wide.enter(f"#/relatorios?aberto={item['numero']}")
    told = wide.page.locator(".detalhe dl")
    told.locator("dt", has_text="CNPJ").wait_for()
    assert told.locator("dd").first.inner_text() == punctuated(item["numero_documento"])
    assert not told.get_by_text("CPF").count()
    assert not [request.url for request in wide.requests if "/pessoas?" in request.url]


def test_the_matriz_of_a_report_links_to_all_reports_of_that_matriz(tab: Console, api: httpx.Client) -> None:
    item = first(api, page="3")
    tab.enter(f"#/relatorios?aberto={item['numero']}")
    tab.page.locator(".detalhe").get_by_role("link", name=item["nome"]).click()
    tab.await_total(count(api, nome=item["nome"]))


def test_the_json_and_the_link_of_a_report_can_be_copied(tab: Console, api: httpx.Client) -> None:
    item = first(api)
    tab.enter(f"#/relatorios?aberto={item['numero']}")
    copied = "navigator.clipboard.readText()"
    tab.page.get_by_role("button", name="Copiar JSON").click()
    tab.until("document.querySelector('[role=status]').lastChild?.textContent === 'Copiado.'")
    assert tab.page.evaluate(f"{copied}.then(JSON.parse)") == item
    tab.page.get_by_role("button", name="Copiar link").click()
    tab.page.wait_for_timeout(100)
    assert tab.page.evaluate(copied) == f"{tab.base}/#/relatorios?aberto={item['numero']}"
