import re

import httpx
from playwright.sync_api import Route

from console.driver import Console
from console.lists import count, first, people, punctuated
from laudo.core.documents import cpf_digits

TYPED = """async (box, text) => {
    for (let length = 1; length <= text.length; length += 1) {
        box.value = text.slice(0, length)
        box.dispatchEvent(new Event('input', { bubbles: true }))
        await new Promise((done) => setTimeout(done, 10))
    }
}"""


def test_typing_sends_one_search_request_after_a_pause(tab: Console, api: httpx.Client) -> None:
    tab.enter("#/pessoas")
    tab.await_total(people(api))
    asked = len(tab.requests)
    tab.page.get_by_role("searchbox", name="Buscar pessoas").evaluate(TYPED, "souz mar")
    tab.await_total(people(api, busca="souz mar"))
    searches = [request.url for request in tab.requests[asked:] if "/pessoas" in request.url]
    assert searches == [f"{tab.base}/pessoas?busca=souz+mar"]
    assert tab.hash == "/pessoas?oculto=busca"
    tab.page.get_by_role("searchbox", name="Buscar pessoas").fill("ninguém chamado assim")
    tab.page.get_by_text("Nenhuma pessoa corresponde a esta busca.").wait_for()


def test_a_search_that_another_one_replaces_is_not_reported_as_refused(tab: Console, api: httpx.Client) -> None:
    tab.enter("#/pessoas")
    box = tab.page.get_by_role("searchbox", name="Buscar pessoas")

    def search(word: str) -> Route:
        held = tab.hold(re.compile(f"busca={word}"))
        box.fill(word)
        return tab.await_first(held)

    replaced = search("maria")
    replacing = search("souza")
    assert not tab.page.locator(".trouble").count()
    replacing.continue_()
    tab.await_total(people(api, busca="souza"))
    replaced.continue_()
    tab.settle()
    assert tab.total == people(api, busca="souza")


def test_a_cpf_is_found_by_its_prefix_with_or_without_punctuation(tab: Console, api: httpx.Client) -> None:
    cpf = api.get("/pessoas").json()["result"]["itens"][3]["cpf"]
    tab.enter("#/pessoas")
    box = tab.page.get_by_role("searchbox", name="Buscar pessoas")
    for text in (cpf[:5], f"{cpf[:3]}.{cpf[3:5]}"):
        box.fill(text)
        tab.await_total(people(api, busca=cpf[:5]))


def test_a_cpf_is_found_when_pasted_with_other_text(wide: Console, api: httpx.Client) -> None:
    person = api.get("/pessoas").json()["result"]["itens"][3]
    wide.enter("#/pessoas")
    box = wide.page.get_by_role("searchbox", name="Buscar pessoas")
    for around in ("CPF (titular): {}", '"{}",'):
        box.fill(around.format(punctuated(person["cpf"])))
        wide.await_total(1)
        assert wide.rows.first.inner_text() == person["nome"]
        box.fill("")
        wide.await_total(people(api))


def test_a_cnpj_or_report_number_links_to_the_reports(tab: Console, api: httpx.Client) -> None:
    item = first(api, tipo_pessoa="EMPRESA")
    tab.enter("#/pessoas")
    box = tab.page.get_by_role("searchbox", name="Buscar pessoas")
    ways = ((item["numero_documento"], count(api, numero_documento=item["numero_documento"])), (item["numero"], 1))
    for text, total in ways:
        box.fill("Padaria")
        tab.page.get_by_text("Cada palavra deve ser o início de um nome").wait_for()
        assert "Empresas e relatórios não estão nesta lista" in tab.page.locator(".empty").inner_text()
        assert tab.page.locator(".empty button").all_inner_texts() == ["Limpar a busca"]
        box.fill(text)
        tab.page.get_by_role("button", name="Ver o").click()
        tab.await_total(total)
        tab.page.go_back()


def test_a_cpf_without_its_leading_zeros_is_suggested_masked(wide: Console) -> None:
    cpf = f"001234567{cpf_digits('001234567')}"
    wide.enter("#/pessoas")
    wide.page.get_by_role("searchbox", name="Buscar pessoas").fill(cpf.lstrip("0"))
    wide.page.get_by_role("button", name="Ver os relatórios de ***.234.567-**").wait_for()


def test_a_person_links_to_their_reports(tab: Console, api: httpx.Client) -> None:
    cpf = api.get("/pessoas", params={"sort": "nome"}).json()["result"]["itens"][0]["cpf"]
    tab.enter("#/pessoas?sort=nome")
    tab.rows.first.click()
    tab.page.wait_for_url("**/#/relatorios?oculto=numero_documento")
    tab.await_total(count(api, numero_documento=cpf))
    nome = api.get("/pessoas", params={"cpf": cpf}).json()["result"]["itens"][0]["nome"]
    tab.page.locator(".chips .whose", has_text=nome).wait_for()
    assert cpf not in tab.page.url
    assert nome not in tab.page.title()
    tab.page.go_back()
    tab.await_total(people(api))


def test_a_persons_name_is_never_shown_beside_another_cpf(tab: Console, api: httpx.Client) -> None:
    one, other = api.get("/pessoas").json()["result"]["itens"][:2]
    tab.enter()
    tab.find(one["cpf"])
    whose = tab.page.locator(".chips .whose")
    whose.get_by_text(one["nome"]).wait_for()
    held = tab.hold(re.compile(rf"/pessoas\?cpf={other['cpf']}$"))
    tab.find(other["cpf"])
    tab.await_total(count(api, numero_documento=other["cpf"]))
    assert not whose.count()
    tab.await_first(held).continue_()
    whose.get_by_text(other["nome"]).wait_for()


def test_a_search_survives_a_reload_without_being_in_the_address(tab: Console, api: httpx.Client) -> None:
    tab.enter("#/pessoas")
    tab.page.get_by_role("searchbox", name="Buscar pessoas").fill("silva")
    total = people(api, busca="silva")
    tab.await_total(total)
    tab.page.reload()
    tab.await_total(total)
    assert "silva" not in tab.page.url


def test_back_undoes_a_search_and_its_corrections_at_once(wide: Console, api: httpx.Client) -> None:
    wide.enter("#/pessoas")
    box = wide.page.get_by_role("searchbox", name="Buscar pessoas")
    for text in ("silva", "maria"):
        box.fill(text)
        wide.await_total(people(api, busca=text))
    wide.page.go_back()
    wide.await_total(people(api))
    assert box.input_value() == ""
    wide.page.go_forward()
    wide.await_total(people(api, busca="maria"))
    assert box.input_value() == "maria"


def test_searches_can_be_cleared_with_the_mouse(any_look: Console, api: httpx.Client) -> None:
    any_look.enter()
    any_look.find("silva")
    any_look.await_total(people(api, busca="silva"))
    clear = any_look.page.get_by_role("button", name="Apagar a busca", exact=True)
    quick = any_look.page.get_by_role("button", name="Limpar a busca rápida")
    assert not quick.count()
    any_look.page.locator("[data-find]").fill("ma")
    assert any_look.flaws() == []
    quick.click()
    assert any_look.page.locator("[data-find]:focus").input_value() == ""
    any_look.page.emulate_media(media="print")
    assert not clear.is_visible()
    any_look.page.emulate_media(media="screen")
    clear.click()
    any_look.await_total(people(api))
    box = any_look.page.get_by_role("searchbox", name="Buscar pessoas")
    assert box.input_value() == ""
    assert box.evaluate("(box) => box === document.activeElement")
    assert not clear.count()


def test_an_order_chosen_during_a_pending_search_is_kept(wide: Console, api: httpx.Client) -> None:
    wide.lasting.clock.install(time=0)
    wide.enter("#/pessoas")
    wide.page.clock.pause_at(60_000)
    wide.page.get_by_role("searchbox", name="Buscar pessoas").fill("maria")
    wide.page.clock.run_for(100)
    wide.page.locator("th.c-cpf button").click()
    assert wide.hash == "/pessoas?sort=cpf"
    wide.page.clock.run_for(1_000)
    wide.page.clock.resume()
    wide.await_total(people(api, busca="maria"))
    assert wide.hash == "/pessoas?oculto=busca&sort=cpf"


def test_filters_of_the_address_are_shown_and_can_be_removed(tab: Console, api: httpx.Client) -> None:
    tab.enter("#/pessoas?atualizado_em_de=2999-01-01")
    tab.page.get_by_text("Nenhuma pessoa corresponde a esta busca.").wait_for()
    tab.page.get_by_role("button", name="Remover o filtro De: 01/01/2999").click()
    tab.await_total(people(api))


MARKED = """(part) => [...document.querySelectorAll('tbody tr')].flatMap((row, at) =>
    getComputedStyle(part === 'row' ? row : row.cells[0]).boxShadow === 'none' ? [] : [at])"""


def test_back_restores_the_scroll_position_and_marks_the_visited_row(tab: Console) -> None:
    tab.enter("#/pessoas")
    row = tab.rows.nth(22)
    row.scroll_into_view_if_needed()
    place = tab.page.evaluate("scrollY")
    assert place > 100
    row.click()
    tab.page.locator(".chips").wait_for()
    tab.settle()
    assert tab.page.evaluate("scrollY") == 0
    tab.page.go_back()
    tab.until("Math.abs(scrollY - given) < 2", place)
    tab.settle()
    assert abs(tab.page.evaluate("scrollY") - place) < 2
    # On a phone rows are cards. In a table the mark is on the cell: not every browser draws the shadow of a table row.
    assert tab.page.evaluate(MARKED, "row" if tab.phone else "cell") == [22]
    tab.page.keyboard.press("ArrowDown")
    assert tab.rows.nth(23).evaluate("(row) => row === document.activeElement")
    tab.page.keyboard.press("/")
    tab.page.keyboard.press("ArrowDown")
    assert tab.rows.nth(0).evaluate("(row) => row === document.activeElement")


def test_a_phone_can_sort_people_by_every_column(phone: Console, api: httpx.Client) -> None:
    phone.enter("#/pessoas")
    choice = phone.page.get_by_label("Ordenar por")
    assert choice.locator("option").all_inner_texts() == phone.page.locator("thead th").all_text_contents()
    assert choice.locator("option").all_inner_texts() == ["Nome", "CPF", "Último relatório"]
    choice.select_option("Nome")
    phone.settle()
    first = api.get("/pessoas", params={"sort": "nome"}).json()["result"]["itens"][0]
    assert phone.rows.first.inner_text() == first["nome"]
