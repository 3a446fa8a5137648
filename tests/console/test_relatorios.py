import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from playwright.sync_api import Route

from console.driver import Console
from console.lists import CHOICES, count, first, most_rows, punctuated
from live.server import Place


def test_every_filter_choice_shows_its_count_and_filters_the_list(tab: Console, api: httpx.Client) -> None:
    tab.enter()
    tab.filters()
    for choice in CHOICES[:: 5 if tab.phone else 1]:
        button = tab.page.locator(f'[data-filter="{choice}"]')
        total = count(api, **dict([choice.split("=")]))
        shown = f"{total:,}".replace(",", ".")
        tab.until(
            "document.querySelector(`[data-filter='${given[0]}'] .number`).textContent === given[1]", [choice, shown]
        )
        button.click()
        tab.await_total(total)
        button.click()
    assert tab.hash == "/relatorios"


def test_filters_combine_and_are_removed_with_their_chips(tab: Console, api: httpx.Client) -> None:
    tab.enter("#/relatorios?status=CONCLUIDO&resultado=INVALID&tipo_pessoa=EMPRESA")
    tab.await_total(count(api, status="CONCLUIDO", resultado="INVALID", tipo_pessoa="EMPRESA"))
    tab.page.get_by_role("button", name="Remover o filtro Resultado: Inválido").click()
    tab.await_total(count(api, status="CONCLUIDO", tipo_pessoa="EMPRESA"))
    assert tab.hash == "/relatorios?status=CONCLUIDO&tipo_pessoa=EMPRESA"
    tab.page.get_by_role("list", name="Filtros aplicados").get_by_role("button", name="Limpar filtros").click()
    tab.await_total(count(api))


def test_a_chosen_filter_is_removed_by_pressing_it_again(wide: Console) -> None:
    wide.enter("#/relatorios?status=CONCLUIDO&nome=consultaEmpresaSocios")
    wide.page.locator("[data-filter='status=CONCLUIDO'][aria-pressed=true]").click()
    wide.page.locator("[data-filter='status=CONCLUIDO'][aria-pressed=false]").wait_for()
    assert wide.hash == "/relatorios?nome=consultaEmpresaSocios"
    wide.page.locator(".matriz [aria-pressed=false]").first.wait_for()
    wide.page.locator(".matriz [aria-pressed=true]").click()
    wide.page.locator(".chips").wait_for(state="detached")
    assert wide.hash == "/relatorios"


def test_matrices_are_listed_with_their_counts(tab: Console, api: httpx.Client) -> None:
    tab.enter()
    tab.filters()
    tab.page.get_by_text("Matriz", exact=True).and_(tab.page.locator("summary")).click()
    button = tab.page.locator(".matriz button", has_text="consultaEmpresaSocios")
    total = count(api, nome="consultaEmpresaSocios")
    assert button.locator(".number").inner_text() == str(total)
    assert tab.page.locator(".matriz button").count() == 12
    button.click()
    tab.await_total(total)


def test_the_other_matrices_are_listed_beside_that_of_the_address(wide: Console) -> None:
    wide.enter("#/relatorios?nome=consultaEmpresaSocios")
    wide.page.locator(".matriz button").first.wait_for()
    assert wide.page.locator(".matriz button").count() == 12
    assert wide.page.locator(".matriz button[aria-pressed=true]").inner_text().startswith("consultaEmpresaSocios")


def test_date_filters_use_the_local_time_zone(tab: Console, api: httpx.Client) -> None:
    tab.enter()
    tab.filters()
    tab.page.locator("[name=atualizado_em_de]").fill("2026-09-01")
    tab.page.locator("[name=atualizado_em_ate]").fill("2026-09-10")
    tab.filtered()
    tab.await_total(count(api, atualizado_em_de="2026-09-01T03:00:00Z", atualizado_em_ate="2026-09-11T03:00:00Z"))
    assert tab.hash == "/relatorios?atualizado_em_de=2026-09-01&atualizado_em_ate=2026-09-10"


def test_a_preset_period_begins_days_ago_and_has_no_end(wide: Console) -> None:
    wide.lasting.clock.install(time="2026-10-01T02:30:00Z")  # still September where the analyst is
    wide.enter("#/relatorios?atualizado_em_ate=2026-09-10")
    presets = {"Hoje": "2026-09-30", "7 dias": "2026-09-24", "30 dias": "2026-09-01", "12 meses": "2025-10-01"}
    pressed = wide.page.locator(".presets [aria-pressed=true]")
    for words, day in presets.items():
        wide.page.get_by_role("button", name=words, exact=True).click()
        pressed.get_by_text(words, exact=True).wait_for()
        assert wide.hash == f"/relatorios?atualizado_em_de={day}"
        assert pressed.count() == 1
    pressed.click()
    pressed.wait_for(state="detached")
    assert wide.hash == "/relatorios"
    wide.page.get_by_role("button", name="7 dias", exact=True).click()
    wide.page.locator("[name=atualizado_em_ate]").fill("2026-09-29")
    wide.page.locator("[name=atualizado_em_ate]").press("Enter")
    pressed.wait_for(state="detached")
    assert wide.hash == "/relatorios?atualizado_em_de=2026-09-24&atualizado_em_ate=2026-09-29"


def test_two_dates_entered_quickly_are_applied_together(wide: Console) -> None:
    wide.lasting.clock.install(time=0)
    wide.enter()
    wide.page.clock.pause_at(60_000)
    wide.page.locator("[name=atualizado_em_de]").fill("2026-09-01")
    wide.page.clock.run_for(100)
    wide.page.locator("[name=atualizado_em_ate]").fill("2026-09-10")
    wide.page.locator("[name=atualizado_em_ate]").press("Enter")
    both = "/relatorios?atualizado_em_de=2026-09-01&atualizado_em_ate=2026-09-10"
    assert wide.hash == both
    # If the timer of the first day applied that day alone, the second timer would add a history entry to correct it.
    steps = wide.page.evaluate("history.length")
    wide.page.clock.run_for(10_000)
    assert wide.hash == both
    assert wide.page.evaluate("history.length") == steps


@pytest.mark.parametrize("text", ["2026-09-01T00:00:00Z", "2026-02-30", "x"])
def test_a_filter_that_a_date_field_cannot_show_stays_active(wide: Console, text: str) -> None:
    wide.refusals_expected = True
    wide.lasting.clock.install()
    wide.enter("#/relatorios?status=CONCLUIDO")
    address = f"/relatorios?{urlencode({'atualizado_em_de': text})}"
    wide.page.goto(f"{wide.base}/#{address}")
    wide.settle()
    field = wide.page.locator("[name=atualizado_em_de]")
    assert field.input_value() == ""
    field.focus()
    field.blur()
    wide.page.clock.fast_forward(10_000)
    assert wide.hash == address
    field.fill("2026-09-02")
    field.press("Enter")
    assert wide.hash == "/relatorios?atualizado_em_de=2026-09-02"


def test_an_incomplete_date_is_reported_when_its_field_loses_focus(tab: Console, api: httpx.Client) -> None:
    tab.enter()
    tab.filters()
    field = tab.page.locator("[name=atualizado_em_de]")
    said = tab.page.locator(".period [role=alert]")
    field.focus()
    tab.page.keyboard.type("11")
    assert not said.count()
    field.blur()
    assert "o filtro não foi aplicado" in said.inner_text()
    assert field.get_attribute("aria-invalid") == "true"
    assert tab.hash == "/relatorios"
    field.fill("2026-09-02")
    tab.await_total(count(api, atualizado_em_de="2026-09-02T03:00:00Z"))
    assert not said.count()
    for typed in ("Backspace", "0202-09-03"):
        field.focus()
        if typed == "Backspace":
            tab.page.keyboard.press(typed)
        else:
            field.fill(typed)
        field.blur()
        assert said.inner_text().endswith("o filtro continua com 02/09/2026.")
    assert tab.hash == "/relatorios?atualizado_em_de=2026-09-02"


@pytest.mark.parametrize("ending", ["blur", "Enter"])
def test_a_two_digit_year_is_in_this_century(wide: Console, api: httpx.Client, ending: str) -> None:
    wide.lasting.clock.install()
    wide.enter()
    field = wide.page.locator("[name=atualizado_em_de]")
    field.fill("0026-09-01")
    wide.page.clock.fast_forward(10_000)
    assert wide.hash == "/relatorios"
    if ending == "blur":
        field.blur()
    else:
        field.press(ending)
    wide.await_total(count(api, atualizado_em_de="2026-09-01T03:00:00Z"))
    assert field.input_value() == "2026-09-01"
    assert not wide.page.locator(".period [role=alert]").count()


def test_a_button_loads_more_matrices_without_recounting(wide: Console, api: httpx.Client) -> None:
    item = first(api)

    def answer(route: Route) -> None:
        asked = parse_qs(urlsplit(route.request.url).query)
        place = 25 * (int(asked.get("page", ["1"])[0]) - 1)
        named = [item | {"nome": f"matriz {number:02}"} for number in range(place, min(place + 25, 95))]
        total = 1 if "nome" in asked else 95
        paginacao = {"atual": 1, "linhas": 25, "total": total}
        route.fulfill(json={"result": {"itens": named[:total], "paginacao": paginacao}, "status_code": 200})

    wide.intercept(re.compile(r"/relatorios\?(?=.*(sort=nome|nome=))"), answer)
    wide.enter()
    wide.page.locator(".matriz summary").click()
    named, more = (
        wide.page.locator(".matriz button[aria-pressed]"),
        wide.page.get_by_role("button", name="Mostrar mais"),
    )
    asked = 0
    for shown, rest in ((40, 55), (80, 15)):
        wide.page.get_by_text(f"Mostrando as {shown} primeiras; {rest} relatórios são de outras matrizes.").wait_for()
        assert named.count() == shown
        asked = len(wide.requests)
        more.click()
    more.wait_for(state="detached")
    assert named.all_inner_texts() == [f"matriz {number:02}\n1" for number in range(95)]
    assert len(wide.requests) - asked <= 2 * 15 + 1, "matrices that are already listed are not counted again"


def test_a_link_to_the_current_view_adds_no_history_entry(wide: Console) -> None:
    wide.enter()
    steps = wide.page.evaluate("history.length")
    for _ in range(2):
        wide.page.get_by_role("link", name="Relatórios", exact=True).click()
    assert wide.page.evaluate("history.length") == steps


def test_a_typed_date_is_applied_only_when_complete(wide: Console, api: httpx.Client) -> None:
    wide.lasting.clock.install()
    wide.enter()
    field = wide.page.locator("[name=atualizado_em_de]")
    steps = wide.page.evaluate("history.length")
    for day in ("0002-09-01", "0020-09-01", "0202-09-01"):
        field.fill(day)
        wide.page.clock.fast_forward(10_000)
        assert wide.hash == "/relatorios"
    field.fill("2026-09-01")
    field.press("Enter")
    assert wide.hash == "/relatorios?atualizado_em_de=2026-09-01"
    field.fill("2026-09-02")
    field.blur()
    wide.await_total(count(api, atualizado_em_de="2026-09-02T03:00:00Z"))
    assert wide.page.evaluate("history.length") == steps + 1
    field.fill("2026-09-03")
    wide.page.clock.fast_forward(1_000)
    wide.await_total(count(api, atualizado_em_de="2026-09-03T03:00:00Z"))


def test_correcting_a_date_in_its_field_adds_no_history_entry(wide: Console) -> None:
    wide.enter()
    field = wide.page.get_by_label("De", exact=True)
    for day in ("2026-09-01", "2026-09-02"):
        field.fill(day)
        wide.page.wait_for_url(f"**?atualizado_em_de={day}")
    field.blur()
    field.fill("2026-09-03")
    wide.page.wait_for_url("**?atualizado_em_de=2026-09-03")
    for hash_ in ("/relatorios?atualizado_em_de=2026-09-02", "/relatorios"):
        wide.page.go_back()
        wide.settle()
        assert wide.hash == hash_


@pytest.mark.parametrize("text", ["-5", "1.5", "x", "0"])
def test_an_invalid_page_number_is_reported_and_changes_nothing(wide: Console, text: str) -> None:
    wide.enter("#/relatorios?page=3")
    box = wide.page.get_by_label("Ir para a página")
    box.fill(text)
    box.press("Enter")
    assert "Digite um número de 1 a" in wide.page.locator(".jump [role=alert]").inner_text()
    assert wide.hash == "/relatorios?page=3"


@pytest.mark.parametrize("field", ["numero", "numero_documento", "status", "resultado", "atualizado_em"])
def test_a_column_header_sorts_both_ways_and_sets_aria_sort(wide: Console, api: httpx.Client, field: str) -> None:
    wide.enter("#/relatorios?sort=mensagem")
    header = wide.page.locator(f"th.c-{field}")
    orders = ["ascending", "descending"]
    for order in reversed(orders) if field == "atualizado_em" else orders:
        header.get_by_role("button").click()
        wide.settle()
        assert header.get_attribute("aria-sort") == order
        sort = f"{'-' if order == 'descending' else ''}{field}"
        assert wide.rows.first.get_attribute("title") == first(api, sort=sort)["numero"]
    assert wide.page.locator("th[aria-sort=ascending], th[aria-sort=descending]").count() == 1


def test_a_phone_sorts_with_a_select_field(phone: Console, api: httpx.Client) -> None:
    phone.enter()
    phone.page.get_by_label("Ordenar por").select_option("numero")
    phone.settle()
    assert phone.rows.first.get_attribute("title") == first(api, sort="numero")["numero"]


def test_pages_are_numbered_and_can_be_jumped_to(tab: Console, api: httpx.Client) -> None:
    tab.enter()
    last = -(-tab.total // 25)
    tab.page.get_by_role("link", name="Próxima página").click()
    tab.settle()
    assert tab.page.locator(".pager [aria-current=page]").inner_text() == "2"
    tab.page.get_by_label("Ir para a página").fill("137")
    tab.page.keyboard.press("Enter")
    tab.settle()
    assert tab.rows.first.get_attribute("title") == first(api, page="137")["numero"]
    tab.page.get_by_role("link", name=f"Página {last}").click()
    tab.settle()
    assert tab.rows.count() == tab.total - 25 * (last - 1)
    tab.page.get_by_label("Linhas por página").select_option("100")
    tab.until("document.querySelectorAll('[data-row]').length === 100")
    assert tab.hash == "/relatorios?rows=100"


@pytest.mark.parametrize(("rows", "offered"), [(25, "25,50"), (75, "25,50,75")])
def test_no_more_rows_are_offered_than_the_service_gives_or_has_given(
    wide: Console, api: httpx.Client, rows: int, offered: str
) -> None:
    wide.intercept("**/openapi.json", most_rows(api, 50))
    wide.enter(f"#/relatorios?rows={rows}")
    wide.until("[...document.querySelectorAll('.rows option')].map(({ value }) => value).join() === given", offered)
    assert wide.page.locator(".rows select").input_value() == str(rows)


def test_the_number_of_rows_of_the_address_is_offered_in_its_place(wide: Console) -> None:
    wide.enter("#/relatorios?rows=125")
    wide.until("[...document.querySelectorAll('.rows option')].map((one) => one.value).join() === '25,50,100,125,200'")


def test_changing_filters_or_order_returns_to_the_first_page(wide: Console) -> None:
    wide.enter("#/relatorios?status=CONCLUIDO&page=3")
    for pressed, expected in (
        ("[data-filter='tipo_pessoa=PESSOA']", "status=CONCLUIDO&tipo_pessoa=PESSOA"),
        (".chips [aria-label^='Remover o filtro Situação']", "tipo_pessoa=PESSOA"),
        ("th.c-numero button", "tipo_pessoa=PESSOA&sort=numero"),
    ):
        wide.page.locator(pressed).click()
        wide.page.wait_for_url(f"**/#/relatorios?{expected}")
        wide.settle()
        wide.page.get_by_role("link", name="Próxima página").click()
        wide.page.wait_for_url("**page=2")
        wide.settle()


def test_a_jump_past_the_end_goes_to_the_last_page(wide: Console) -> None:
    wide.enter()
    last = -(-wide.total // 25)
    box = wide.page.get_by_label("Ir para a página")
    box.fill("1.000")
    box.press("Enter")
    wide.page.wait_for_url(f"**page={last}")
    assert box.input_value() == ""


def test_a_list_of_one_page_offers_no_jump(tab: Console, api: httpx.Client) -> None:
    tab.enter(f"#/relatorios?numero={first(api)['numero']}")
    assert tab.total == 1
    assert tab.page.locator(".pager").is_visible()
    assert not tab.page.locator(".jump").count()


def test_a_page_past_the_end_offers_the_first_and_the_last_page(tab: Console) -> None:
    for way, at in (("primeira", ""), ("última", "?page=280")):
        tab.enter("#/relatorios?page=99999")
        assert "280 páginas" in tab.page.locator(".empty").inner_text()
        tab.page.get_by_role("button", name=f"Ir para a {way}").click()
        tab.rows.first.wait_for()
        assert tab.hash == f"/relatorios{at}"


def test_a_page_past_the_end_of_one_page_offers_that_page_once(wide: Console, api: httpx.Client) -> None:
    wide.enter(f"#/relatorios?numero={first(api)['numero']}&page=2")
    said = wide.page.locator(".empty")
    assert "A página 2 está além do fim da lista, que tem 1 página." in said.inner_text()
    assert said.get_by_role("button").count() == 1


def test_the_quick_find_recognizes_pasted_text(tab: Console, api: httpx.Client) -> None:
    tab.enter()
    for tipo in ("PESSOA", "EMPRESA"):
        item = first(api, tipo_pessoa=tipo)
        document: str = item["numero_documento"]
        total = count(api, numero_documento=document)
        for text in (document, punctuated(document), f" {punctuated(document)} "):
            tab.find(text)
            tab.await_total(total)
            assert tab.hash == "/relatorios?oculto=numero_documento"
            assert tab.page.locator("[data-find]").input_value() == ""
            tab.page.get_by_role("button", name="Remover o filtro Documento").click()
            tab.await_total(count(api))
    item = first(api, page="3")
    tab.find(item["numero"].upper())
    tab.await_total(1)
    tab.page.get_by_role("heading", name="Relatório " + item["numero"][:8]).wait_for()
    tab.page.keyboard.press("Escape")
    tab.find("maria da silva")
    assert tab.hash == "/pessoas?oculto=busca"
    assert tab.page.get_by_role("searchbox", name="Buscar pessoas").input_value() == "maria da silva"


def test_a_document_without_its_leading_zeros_is_found(wide: Console, api: httpx.Client) -> None:
    cpf, cnpj = (
        first(api, sort="numero_documento", tipo_pessoa=tipo)["numero_documento"] for tipo in ("PESSOA", "EMPRESA")
    )
    assert cpf[0] == cnpj[0] == "0"
    wide.enter()
    wide.find(cnpj.lstrip("0"))
    wide.await_total(count(api, numero_documento=cnpj))
    field = wide.page.get_by_role("textbox", name="Documento", exact=True)
    for document in (cpf, cnpj):
        field.fill(document.lstrip("0"))
        field.press("Enter")
        wide.await_total(count(api, numero_documento=document))
    wide.find(cpf.lstrip("0"))
    wide.page.get_by_text("Nenhum CPF consultado começa com").wait_for()
    wide.page.get_by_role("button", name=f"Ver os relatórios de ***.{cpf[3:6]}.{cpf[6:9]}-**").click()
    wide.await_total(count(api, numero_documento=cpf))


@pytest.mark.parametrize("text", ["!!!", "%"])
def test_text_that_cannot_be_searched_is_reported_and_changes_nothing(
    tab: Console, api: httpx.Client, text: str
) -> None:
    tab.enter("#/relatorios?status=CONCLUIDO")
    tab.find(text)
    assert "Digite letras ou números para buscar" in tab.page.locator(".find [role=alert]").inner_text()
    assert tab.hash == "/relatorios?status=CONCLUIDO"
    tab.page.keyboard.press("Tab")
    tab.page.locator(".find [role=alert]").wait_for(state="detached")  # it would cover the list
    tab.find("maria")
    total = int(api.get("/pessoas", params={"busca": "maria"}).json()["result"]["paginacao"]["total"])
    tab.await_total(total)
    tab.page.get_by_role("searchbox", name="Buscar pessoas").fill(text)
    assert "Digite letras ou números para buscar" in tab.page.locator(".search [role=alert]").inner_text()
    tab.page.get_by_role("searchbox", name="Buscar pessoas").fill("maria")
    assert tab.total == total


def test_a_shortened_report_number_asks_for_the_full_one(wide: Console) -> None:
    wide.enter()
    shown = next(text for text in wide.rows.all_inner_texts() if re.search(r"\d", text) and re.search("[a-f]", text))
    wide.find(shown)
    wide.page.locator(".find").get_by_text("cole o número completo").wait_for()
    field = wide.page.get_by_label("Número", exact=True)
    field.fill(shown)
    field.press("Enter")
    wide.page.locator(".exact").get_by_text("cole o número completo").wait_for()
    assert wide.hash == "/relatorios"


def test_a_masked_cpf_is_reported_as_masked(wide: Console) -> None:
    wide.enter("#/relatorios?tipo_pessoa=PESSOA")
    shown = wide.page.locator("tbody .c-numero_documento").first.inner_text()
    wide.find(shown)
    wide.page.locator(".find").get_by_text("Este CPF está mascarado").wait_for()
    field = wide.page.get_by_label("Documento", exact=True)
    field.fill(f"Maria da Silva, {shown}")
    field.press("Enter")
    wide.page.locator(".exact").get_by_text("Este CPF está mascarado").wait_for()
    assert wide.hash == "/relatorios?tipo_pessoa=PESSOA"


def test_a_field_with_an_error_has_a_border_in_the_colour_of_the_error(wide: Console) -> None:
    wide.enter("#/pessoas")
    text = "52998224725;11144477735"
    wide.page.get_by_role("searchbox", name="Buscar pessoas").fill(text)
    wide.page.locator(".search .wrong").wait_for()
    wide.find(text)
    wide.page.locator(".find .wrong").wait_for()
    colours = "(given) => [...document.querySelectorAll(given)].map((one) => getComputedStyle(one)"
    edges = wide.page.evaluate(f"{colours}.borderTopColor)", ".find input, .search input")
    assert edges == wide.page.evaluate(f"{colours}.color)", ".wrong")
    assert len(edges) == 2


@pytest.mark.parametrize("text", ["529.982.247-25 111.444.777-35", "52998224725;11144477735"])
def test_a_search_for_several_documents_is_refused(wide: Console, text: str) -> None:
    wide.enter("#/pessoas")
    total = wide.total
    asked = len(wide.requests)
    several = "procure um de cada vez"
    wide.page.get_by_role("searchbox", name="Buscar pessoas").fill(text)
    wide.page.locator(".search").get_by_text(several).wait_for()
    wide.find(text)
    wide.page.locator(".find").get_by_text(several).wait_for()
    wide.page.wait_for_timeout(300)
    assert (wide.hash, wide.total) == ("/pessoas", total)
    assert not [request.url for request in wide.requests[asked:] if "busca=" in request.url]
    wide.enter("#/relatorios")
    field = wide.page.get_by_role("textbox", name="Documento", exact=True)
    field.fill(text)
    field.press("Enter")
    wide.page.locator(".exact").get_by_text(several).wait_for()


def test_wrong_check_digits_show_a_warning_beside_the_filter(tab: Console) -> None:
    tab.enter()
    tab.find("529.982.247-26")
    doubt = tab.page.get_by_text("Os dígitos verificadores não conferem.")
    assert doubt.and_(tab.page.locator(".chips *")).is_visible()
    said = "0 relatórios. Os dígitos verificadores não conferem."
    tab.until("document.querySelector('[role=status]').textContent.endsWith(given)", said)
    tab.page.get_by_role("button", name="Remover o filtro Documento").click()
    tab.settle()
    tab.filters()
    field = tab.page.get_by_role("textbox", name="Documento", exact=True)
    field.fill("529.982.247-26")
    field.press("Enter")
    tab.filtered()
    assert doubt.and_(tab.page.locator(".chips *")).is_visible()
    assert not tab.page.locator("[aria-invalid]").count()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("relatorios?status=CONCLUIDO&resultado=VALID&nome=nada&page=3", "0 relatórios."),
        ("pessoas?page=3", "pessoas, página 3."),
    ],
)
def test_the_page_number_is_announced_unless_the_list_is_empty(tab: Console, address: str, said: str) -> None:
    tab.enter(f"#/{address}")
    tab.until("document.querySelector('[role=status]').textContent.endsWith(given)", said)


def test_back_and_reload_restore_a_filter_hidden_from_the_address(tab: Console, api: httpx.Client) -> None:
    document = first(api, tipo_pessoa="PESSOA")["numero_documento"]
    tab.enter()
    tab.find(document)
    total = count(api, numero_documento=document)
    tab.await_total(total)
    assert document not in tab.page.url
    assert document not in tab.page.title()
    tab.page.reload()
    tab.await_total(total)
    tab.page.go_back()
    tab.await_total(count(api))
    tab.page.go_forward()
    tab.await_total(total)


def test_back_leads_from_a_document_to_the_one_looked_for_before(wide: Console, api: httpx.Client) -> None:
    """Their addresses are the same."""
    one, other = (first(api, tipo_pessoa=tipo)["numero_documento"] for tipo in ("EMPRESA", "PESSOA"))
    wide.enter()
    wide.find(one)
    wide.find(other)
    assert wide.page.locator(".chips .value").inner_text() != punctuated(one)
    wide.page.go_back()
    wide.page.locator(".chips .value", has_text=punctuated(one)).wait_for()


def test_back_restores_the_scroll_position_in_a_longer_list(tab: Console, api: httpx.Client) -> None:
    document = first(api, tipo_pessoa="PESSOA")["numero_documento"]
    tab.enter()
    tab.rows.nth(22).scroll_into_view_if_needed()
    tab.page.locator("[data-find]").fill(document)
    place = tab.page.evaluate("scrollY")
    assert place > 100
    tab.page.keyboard.press("Enter")
    tab.await_total(count(api, numero_documento=document))
    assert tab.page.evaluate("scrollY") < place
    tab.page.go_back()
    tab.until("Math.abs(scrollY - given) < 2", place)
    tab.await_total(count(api))
    assert abs(tab.page.evaluate("scrollY") - place) < 2


def test_a_document_in_an_address_is_removed_and_not_applied(tab: Console, api: httpx.Client) -> None:
    document = first(api, tipo_pessoa="PESSOA")["numero_documento"]
    tab.enter(f"#/relatorios?numero_documento={document}&status=CONCLUIDO")
    tab.page.get_by_text("Este endereço não inclui o CPF ou CNPJ procurado.").first.wait_for()
    assert tab.hash == "/relatorios?status=CONCLUIDO&oculto=numero_documento"
    tab.page.get_by_role("button", name="Ver só com os outros filtros").click()
    tab.await_total(count(api, status="CONCLUIDO"))


def test_the_list_can_be_used_with_the_keyboard_alone(tab: Console) -> None:
    tab.enter()
    press = tab.page.keyboard.press
    press("ArrowDown")
    press("ArrowDown")
    press("j")
    press("ArrowUp")
    second = tab.rows.nth(1).get_attribute("title")
    assert tab.page.evaluate("document.activeElement.title") == second
    press("Enter")
    tab.page.locator(".detalhe dl").wait_for()
    assert tab.page.evaluate("document.activeElement.id") == "detalhe"
    press("Escape")
    tab.page.locator(".detalhe").wait_for(state="detached")
    assert tab.page.evaluate("document.activeElement.title") == second
    press("ArrowRight")
    tab.page.wait_for_url("**/#/relatorios?page=2")
    tab.settle()
    press("/")
    assert tab.page.evaluate("document.activeElement.hasAttribute('data-find')")
    press("/")
    tab.page.keyboard.type("?/")
    assert tab.page.locator("[data-find]").input_value() == "?/"
    assert not tab.page.locator("dialog").count()
    press("ArrowDown")
    assert tab.page.evaluate("document.activeElement.title") == tab.rows.nth(0).get_attribute("title")
    press("?")
    tab.page.get_by_role("dialog", name="Atalhos de teclado").wait_for()
    tab.page.get_by_label("Ativar os atalhos de uma só tecla").uncheck()
    press("Escape")
    press("?")
    assert not tab.page.locator("dialog[open]").count()
    tab.page.reload()
    tab.settle()
    press("?")
    assert not tab.page.locator("dialog[open]").count()
    press("ArrowDown")
    press("Enter")
    tab.page.locator(".detalhe dl").wait_for()
    press("Escape")
    tab.page.locator(".detalhe").wait_for(state="detached")


def test_the_up_arrow_begins_at_the_last_row(wide: Console) -> None:
    wide.enter()
    wide.page.keyboard.press("ArrowUp")
    assert wide.rows.last.evaluate("(row) => row === document.activeElement")


def test_a_held_key_moves_along_rows_but_turns_only_one_page(wide: Console) -> None:
    wide.enter()
    for key in ("ArrowDown", "j", "ArrowRight"):
        for _ in range(3):
            wide.page.keyboard.down(key)
            wide.settle()
        wide.page.keyboard.up(key)
        if key == "j":
            focused = wide.page.evaluate("document.activeElement.title")
            assert focused == wide.rows.nth(5).get_attribute("title")
    assert wide.hash == "/relatorios?page=2"


def test_shortcuts_are_off_with_modifier_keys_and_in_dialogs(wide: Console) -> None:
    wide.enter()
    for keys in ("Control+2", "Alt+2", "Meta+2", "?", "2"):
        wide.page.keyboard.press(keys)
    assert wide.page.get_by_role("dialog", name="Atalhos de teclado").is_visible()
    assert wide.hash == "/relatorios"
    wide.page.keyboard.press("Escape")
    wide.page.keyboard.press("2")
    wide.page.wait_for_url("**/#/pessoas")


def test_what_is_typed_after_a_slash_replaces_the_last_search(wide: Console) -> None:
    wide.enter()
    box = wide.page.locator("[data-find]")
    box.fill("maria")
    wide.rows.first.focus()
    wide.page.keyboard.press("/")
    wide.page.keyboard.type("ana")
    assert box.input_value() == "ana"


def test_keys_in_a_field_are_not_shortcuts(wide: Console) -> None:
    wide.enter()
    field = wide.page.get_by_label("Número", exact=True)
    field.focus()
    for key in ("ArrowDown", "ArrowRight", "2"):
        wide.page.keyboard.press(key)
        assert field.evaluate("(e) => e === document.activeElement"), key
    wide.page.get_by_label("Linhas por página").press("2")
    assert wide.hash.startswith("/relatorios")


def test_arrow_keys_with_shift_keep_the_selection_and_the_page(wide: Console) -> None:
    wide.enter()
    wide.page.locator("td.c-nome").nth(2).evaluate(
        "(cell) => getSelection().setBaseAndExtent(cell.firstChild, 0, cell.firstChild, 3)"
    )
    for key in ("ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft"):
        wide.page.keyboard.press(f"Shift+{key}")
    assert wide.hash == "/relatorios"
    assert not wide.page.evaluate("document.activeElement.hasAttribute('data-row')")
    assert wide.page.evaluate("getSelection().toString()")


@pytest.mark.parametrize("view", ["relatorios", "pessoas"])
def test_a_click_that_ends_a_selection_opens_nothing(wide: Console, view: str) -> None:
    wide.enter(f"#/{view}")
    select = "(cell) => { getSelection().selectAllChildren(cell); cell.click() }"
    wide.page.locator("tbody .c-atualizado_em").first.evaluate(select)
    assert wide.hash == f"/{view}"
    wide.page.evaluate("getSelection().removeAllRanges()")
    wide.page.locator("tbody .c-atualizado_em").first.click()
    wide.until("location.hash !== given", f"#/{view}")


@pytest.mark.parametrize("key", ["ctrlKey", "metaKey", "shiftKey", "altKey", ""])
def test_a_click_with_a_modifier_key_is_left_to_the_browser(wide: Console, key: str) -> None:
    wide.enter()
    click = """(link, key) => {
        let handled
        addEventListener('click', (event) => {
            handled = event.defaultPrevented
            event.preventDefault()
        }, { once: true })
        link.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, [key]: true }))
        return handled
    }"""
    assert wide.page.get_by_role("link", name="Próxima página").evaluate(click, key) is (key == "")


def test_a_refresh_is_answered_with_304_or_reports_new_reports(wide: Console, place: Place, tmp_path: Path) -> None:
    wide.lasting.clock.install()
    wide.enter()
    total, top = wide.total, wide.rows.first.get_attribute("title")
    with wide.page.expect_response(lambda response: response.url.endswith("/relatorios")) as unchanged:
        wide.page.clock.fast_forward(21_000)
    assert unchanged.value.status == 304
    assert not wide.page.locator(".news").count()
    with added_report(place, tmp_path, "5f0c7b52-93a6-4d0e-8a55-1f6f3f1f2a10"):
        wide.page.clock.fast_forward(21_000)
        wide.page.locator(".news").wait_for()
        assert "1 relatório a mais" in wide.page.locator(".news").inner_text()
        assert (wide.total, wide.rows.first.get_attribute("title")) == (total, top)
        wide.page.keyboard.press("r")
        wide.await_total(total + 1)
        assert wide.rows.first.get_attribute("title") == "5f0c7b52-93a6-4d0e-8a55-1f6f3f1f2a10"


@contextmanager
def added_report(place: Place, folder: Path, numero: str) -> Iterator[None]:
    """Add a report within a block, and delete it afterwards: other tests count reports too."""
    report = {
        "numero": numero,
        "status": "CONCLUIDO",
        "tipo_pessoa": "PESSOA",
        "nome": "consultaPessoaDefault",
        "nome_pessoa": "Maria da Silva",
        "numero_documento": "12345678909",
        "atualizado_em": "2026-11-01T12:00:00.000Z",
        "resultado": "VALID",
    }
    file = folder / "one.ndjson"
    file.write_text(json.dumps(report), "utf-8")
    done = place.run("import", str(file), "--account", "1")
    assert done.returncode == 0, done.stderr
    try:
        yield
    finally:
        done = place.run("delete", "--account", "1", numero)
    assert done.returncode == 0, done.stderr
