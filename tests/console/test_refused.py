"""The console refuses an address with parameters that it does not accept, as the API does, and shows no list."""

import re

import httpx
import pytest

from console.driver import Console
from console.lists import count, first

REFUSED = "[data-missing]"


@pytest.mark.parametrize(
    ("address", "words", "way", "rest"),
    [
        (
            "#/relatorios?statu=PENDENTE",
            ["O parâmetro “statu” deste endereço não existe nesta página. O mais parecido é status."],
            "Ver a lista inteira",
            "/relatorios",
        ),
        (
            "#/relatorios?statu=PENDENTE&tipo_pessoa=EMPRESA&sort=nome&rows=50",
            ["O parâmetro “statu” deste endereço não existe nesta página."],
            "Ver só com os outros filtros",
            "/relatorios?tipo_pessoa=EMPRESA&sort=nome&rows=50",
        ),
        (
            "#/relatorios?status=PENDENTE&page=0",
            ["O valor do parâmetro “page” deste endereço não é válido."],
            "Ver com os mesmos filtros",
            "/relatorios?status=PENDENTE",
        ),
        (
            "#/pessoas?status=PENDENTE&sort=-&atualizado_em_de=2026-01-01",
            ["O parâmetro “status” deste endereço não existe", "“sort” deste endereço não é válido"],
            "Ver só com os outros filtros",
            "/pessoas?atualizado_em_de=2026-01-01",
        ),
        (
            "#/painel?status=PENDENTE&volume=meses",
            ["O parâmetro “status” deste endereço não existe"],
            "Ver o painel",
            "/painel?volume=meses",
        ),
        ("#/perfil?conta=2", ["O parâmetro “conta” deste endereço não existe"], "Ver o perfil", "/perfil"),
        ("#/empresas?status=PENDENTE", ["não corresponde a nenhuma página"], "Ver a lista inteira", "/relatorios"),
    ],
)
def test_a_refused_parameter_is_named_and_no_list_is_requested(
    tab: Console, address: str, words: list[str], way: str, rest: str
) -> None:
    tab.enter(address)
    big = tab.page.locator(f"{REFUSED} .big")
    for part in words:
        assert part in big.inner_text()
    tab.until("document.querySelector('[role=status]').lastChild?.textContent === given", big.inner_text())
    tab.page.reload()
    big.wait_for()
    assert not tab.rows.count()
    assert not [request.url for request in tab.requests if re.search(r"/(relatorios|pessoas)(\?|$)", request.url)]
    tab.page.get_by_role("button", name=way).click()
    big.wait_for(state="detached")
    tab.settle()
    assert tab.hash == rest
    assert tab.page.evaluate("document.activeElement.matches('h1')")
    tab.page.go_back()
    big.wait_for()


def test_refused_values_and_personal_data_are_removed_from_the_address(wide: Console, api: httpx.Client) -> None:
    document = first(api, tipo_pessoa="PESSOA")["numero_documento"]
    wide.enter(f"#/relatorios?nunero_documento={document}&{document}&status=CONCLUIDO")
    wide.page.locator(REFUSED).wait_for()
    assert document not in wide.page.url
    assert document not in wide.page.content()
    assert "“nunero_documento”" in wide.page.locator(REFUSED).inner_text()
    wide.page.get_by_role("button", name="Ver só com os outros filtros").click()
    wide.await_total(count(api, status="CONCLUIDO"))


def test_an_address_entered_in_an_open_tab_is_checked_too(wide: Console, api: httpx.Client) -> None:
    document = first(api, tipo_pessoa="PESSOA")["numero_documento"]
    wide.enter()
    wide.page.evaluate("(hash) => { location.hash = hash }", f"#/relatorios?documento={document}")
    wide.page.locator(REFUSED).wait_for()
    assert wide.hash == "/relatorios?recusado=documento"
    wide.page.evaluate("(hash) => { location.hash = hash }", f"#/relatorios?numero_documento={document}")
    wide.page.get_by_text("Este endereço não inclui").first.wait_for()
    assert wide.hash == "/relatorios?oculto=numero_documento"
    wide.page.go_back()
    wide.page.go_back()
    wide.await_total(count(api))
    assert wide.hash == "/relatorios"


def test_a_missing_value_is_reported_after_the_refused_parameter(wide: Console) -> None:
    wide.enter("#/relatorios?statu=PENDENTE&oculto=numero_documento")
    wide.page.get_by_role("button", name="Ver só com os outros filtros").click()
    wide.page.get_by_text("Este endereço não inclui o CPF ou CNPJ procurado.").first.wait_for()
    assert wide.hash == "/relatorios?oculto=numero_documento"


def test_the_notice_is_accessible(any_look: Console) -> None:
    any_look.enter(f"#/relatorios?status=CONCLUIDO&{'x' * 40}=1&page=0")
    any_look.page.locator(REFUSED).wait_for()
    assert any_look.flaws() == []


def test_a_long_parameter_name_wraps_on_a_small_phone(phone: Console) -> None:
    phone.page.set_viewport_size({"width": 320, "height": 640})
    phone.enter(f"#/relatorios?{'x' * 40}=1")
    phone.page.locator(REFUSED).wait_for()
    assert phone.fits_its_width()
