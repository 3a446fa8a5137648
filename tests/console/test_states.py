import re
from typing import Literal

import httpx
import pytest
from playwright.sync_api import Browser, Route

from client.socket_service import listening
from console.driver import Console
from console.lists import LISTS, LOOKS_AGAIN, answers, count, first, punctuated
from console.test_focus import HEAR
from laudo.core import errors
from live.server import Place, Server, serving


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [(429, "limit", "Muitas consultas"), (503, "unavailable", "indisponível no momento")],
)
def test_a_list_is_retried_after_a_429_or_503(tab: Console, status: int, kind: str, words: str) -> None:
    tab.refusals_expected = True
    tab.intercept(LISTS, answers(status, "Aguarde.", Retry_After="2"))
    tab.enter()
    trouble = tab.page.locator(f".trouble[data-kind={kind}]")
    assert words in trouble.inner_text()
    # The countdown restarts after each refusal, so a missed one is followed by another.
    tab.until("/em [12] s/.test(document.querySelector(given)?.innerText)", f".trouble[data-kind={kind}]")
    tab.page.unroute(LISTS)
    tab.rows.first.wait_for()
    assert not trouble.count()


@pytest.mark.parametrize(
    ("after", "seconds"), [("1.5", 2), ("-1", 5), ("3600", 60), ("Wed, 21 Oct 2026 07:28:00 GMT", 5)]
)
def test_an_unusual_retry_after_still_leads_to_a_retry(wide: Console, after: str, seconds: int) -> None:
    wide.refusals_expected = True
    wide.lasting.clock.install()
    wide.intercept(LISTS, answers(503, "Aguarde.", Retry_After=after))
    wide.enter()
    wide.page.locator(".list > .trouble").get_by_text(f"em {seconds} s").wait_for()
    wide.page.unroute(LISTS)
    wide.page.clock.run_for(1000 * (seconds + 1))
    wide.rows.first.wait_for()


@pytest.mark.parametrize("kind", [errors.TOO_MANY, errors.UNAVAILABLE])
def test_the_retry_button_shows_a_countdown(wide: Console, kind: errors.Kind) -> None:
    wide.refusals_expected = True
    wide.intercept(LISTS, answers(kind.status, kind.message, Retry_After="30"))
    wide.enter()
    said, button = (wide.page.locator(f".list > .trouble {part}") for part in ("p", "button"))
    button.get_by_text("em").wait_for()  # the countdown starts a frame after the refusal is shown
    assert said.inner_text() == kind.message.partition(" Aguarde")[0]
    assert re.fullmatch(r"Tentar novamente\s\(em \d+ s\)", button.inner_text())


@pytest.mark.parametrize("status", [502, 504])
def test_a_proxy_without_the_service_counts_as_unavailable(wide: Console, status: int) -> None:
    wide.refusals_expected = True
    wide.intercept(LISTS, lambda route: route.fulfill(status=status, body="<html>"))
    wide.enter()
    trouble = wide.page.locator(".trouble[data-kind=unavailable]")
    assert f"O servidor respondeu com o código {status}." in trouble.inner_text()
    trouble.get_by_text("em 5 s").wait_for()


def test_a_list_that_the_server_fails_to_give_is_not_asked_for_again(wide: Console) -> None:
    wide.refusals_expected = True
    wide.lasting.clock.install()
    wide.intercept(LISTS, answers(500, "Erro interno."))
    wide.enter()
    wide.page.locator(".list > .trouble").wait_for()
    asked = len(wide.requests)
    for _ in range(3):
        wide.page.clock.fast_forward(LOOKS_AGAIN)
    assert len(wide.requests) == asked


def test_the_dashboard_does_not_wait_for_a_long_outage(wide: Console) -> None:
    wide.refusals_expected = True
    wide.intercept(LISTS, answers(503, "Em manutenção.", Retry_After="60"))
    wide.enter("#/pessoas")
    wide.page.get_by_role("link", name="Painel").click()
    wide.page.locator(".painel > .trouble").get_by_text("em 60 s").wait_for()


def test_the_dashboard_reports_an_outage_that_it_begins_with_at_once(wide: Console) -> None:
    wide.refusals_expected = True
    asked: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(status=502, body="")

    wide.intercept(LISTS, refuse)
    wide.enter("#/painel")
    wide.page.locator(".painel > .trouble").wait_for()
    assert len(asked) == 1


def test_a_loading_message_is_shown_until_the_modules_arrive(wide: Console) -> None:
    held = wide.hold("**/router.js")
    wide.page.goto(wide.base, wait_until="commit")
    wide.page.get_by_text("Carregando…").wait_for()
    wide.await_first(held).continue_()
    wide.page.get_by_role("button", name="Entrar").wait_for()
    assert not wide.page.get_by_text("Carregando…").count()


PASS = """(ms) => document.getAnimations().filter(({ effect }) => effect.target.matches('.late'))
    .map((waiting) => (waiting.pause(), (waiting.currentTime = ms)))"""


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_a_reload_link_appears_if_a_module_does_not_load(
    wide: Console, motion: Literal["reduce", "no-preference"]
) -> None:
    wide.refusals_expected = True
    wide.page.emulate_media(reduced_motion=motion)
    wide.intercept("**/router.js", lambda route: route.abort())
    wide.page.goto(wide.base)
    wide.page.get_by_text("Carregando…").wait_for()
    again = wide.page.get_by_role("link", name="Recarregue a página.")
    for late, seen in ((14_900, 0), (15_000, 1)):
        assert wide.page.evaluate(PASS, late) == [late]
        assert again.count() == seen
    wide.page.unroute("**/router.js")
    again.click()
    wide.page.get_by_role("button", name="Entrar").wait_for()
    assert not again.count()


def test_without_javascript_the_page_links_to_the_api_reference(browser: Browser, wide: Console) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(wide.base)
    assert page.inner_text("body").startswith("Esta página precisa de JavaScript.")
    page.get_by_role("link", name="referência").click()
    page.get_by_role("heading", name="GET /relatorios").wait_for()
    page.close()


def test_rows_stay_visible_while_the_connection_is_lost(tab: Console) -> None:
    tab.refusals_expected = True
    tab.enter()
    tab.disconnect()
    tab.page.get_by_role("link", name="Próxima página").click()
    trouble = tab.page.locator(".trouble[data-kind=offline]")
    trouble.wait_for()
    assert "sem conexão" in trouble.inner_text()
    assert tab.rows.count() == 25
    tab.reconnect()
    tab.until("!document.querySelector('.trouble') && !document.querySelector('[aria-busy=true]')")


@pytest.mark.parametrize("view", ["relatorios", "pessoas"])
def test_rows_of_another_page_are_labelled_and_print_no_page_number(wide: Console, view: str) -> None:
    wide.refusals_expected = True
    wide.enter(f"#/{view}")
    wide.intercept(re.compile(r"page=2"), lambda route: route.fulfill(status=500, body="{}"))
    wide.page.get_by_role("link", name="Próxima página").click()
    said = wide.page.locator(".trouble").get_by_text("Abaixo, os últimos dados recebidos, de outra página ou ordem.")
    number = wide.page.get_by_text("Página 2 de").filter(visible=True)
    for _ in range(2):
        said.wait_for()
        wide.page.emulate_media(media="print")
        assert (wide.rows.count(), number.count()) == (25, 0)
        wide.page.emulate_media(media="screen")
        wide.page.get_by_role("button", name="Tentar novamente").click()
        wide.settle()
    wide.page.unroute_all(behavior="wait")
    wide.page.get_by_role("button", name="Tentar novamente").click()
    wide.until("!document.querySelector('.trouble')")
    wide.page.emulate_media(media="print")
    assert number.count() == 1
    wide.page.emulate_media(media="screen")
    wide.page.go_back()
    wide.settle()
    wide.intercept(re.compile(rf"/{view}$"), lambda route: route.fulfill(status=500, body="{}"))
    wide.page.go_forward()
    wide.settle()
    wide.page.go_back()
    wide.page.locator(".trouble").get_by_text("Abaixo, os últimos dados recebidos.").wait_for()
    wide.page.unroute_all(behavior="wait")


def test_refused_counts_are_retried(wide: Console) -> None:
    wide.refusals_expected = True
    refused: list[str] = []

    def once(route: Route) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            answers(503, "Aguarde.", Retry_After="1")(route)

    wide.intercept(re.compile(r"resultado=INVALID"), once)
    wide.enter()
    wide.until("[...document.querySelectorAll('[data-filter] .number')].every((one) => one.textContent)")
    assert refused


def test_a_lost_connection_is_announced_once(wide: Console) -> None:
    wide.refusals_expected = True
    wide.enter()
    wide.disconnect()
    wide.rows.first.click()
    wide.page.locator(".others .trouble").wait_for()
    wide.page.locator(".detalhe > .trouble").wait_for()
    wide.page.get_by_text("Não foi possível consultar.").wait_for()
    said = wide.page.locator("[role=status] p, [role=alert]", has_text="O servidor não respondeu.")
    assert said.count() == 1


def test_a_lasting_error_is_announced_again_only_after_a_manual_retry(wide: Console) -> None:
    wide.refusals_expected = True
    wide.enter()
    wide.page.evaluate(HEAR)
    wide.lasting.clock.install()
    wide.intercept(LISTS, answers(503, "Em manutenção.", Retry_After="2"))
    wide.page.get_by_role("link", name="Próxima página").click()
    trouble = wide.page.locator(".list > .trouble")
    for _ in range(3):
        trouble.get_by_text("em 2 s").wait_for()
        with wide.page.expect_request(LISTS):
            wide.page.clock.run_for(2_000)
    trouble.get_by_text("em 2 s").wait_for()
    assert wide.page.evaluate("heard.filter((said) => said === 'Em manutenção.').length") == 1
    trouble.get_by_role("button", name="Tentar novamente").click()
    wide.until("heard.filter((said) => said === 'Em manutenção.').length === 2")


@pytest.mark.parametrize(("address", "asked"), [("", LISTS), ("#/perfil", re.compile("/usuario$"))])
def test_the_countdown_does_not_replace_a_retry_by_hand(wide: Console, address: str, asked: re.Pattern[str]) -> None:
    wide.refusals_expected = True
    wide.lasting.clock.install()
    wide.intercept(asked, answers(503, "Em manutenção.", Retry_After="2"))
    wide.enter(address)
    again = wide.page.get_by_role("button", name="Tentar novamente")
    again.get_by_text("em 2 s").wait_for()
    held = wide.hold(asked)
    again.click()
    by_hand = wide.await_first(held)
    for _ in range(3):
        wide.page.clock.run_for(2_000)
        wide.page.wait_for_timeout(50)
    assert held == [by_hand]
    wide.page.unroute_all(behavior="ignoreErrors")


def test_a_failed_search_shows_no_rows_of_the_previous_list(wide: Console, api: httpx.Client) -> None:
    one, other = (first(api, tipo_pessoa=tipo)["numero_documento"] for tipo in ("PESSOA", "EMPRESA"))
    wide.refusals_expected = True
    wide.enter()
    wide.find(one)
    wide.disconnect()
    wide.find(other)
    wide.page.locator(".trouble[data-kind=offline]").wait_for()
    assert not wide.rows.count()
    assert not wide.page.locator("[data-total], .checked").count()
    wide.reconnect()
    wide.page.get_by_text(punctuated(other)).first.wait_for()


def test_a_truncated_response_counts_as_offline_and_is_retried(tab: Console) -> None:
    cut_off = httpx.Response(200, headers={"Content-Length": "1000", "Connection": "close"}, content=b'{"result":')
    tab.refusals_expected = True
    tab.lasting.clock.install()
    with listening(lambda _: cut_off) as address:
        tab.intercept(LISTS, lambda route: route.continue_(url=f"{address}/relatorios"))
        tab.enter()
        trouble = tab.page.locator(".trouble[data-kind=offline]")
        trouble.wait_for()
        assert re.search(r"em \d+ s", trouble.inner_text())
        tab.page.unroute(LISTS)
    tab.page.clock.run_for(15_000)
    tab.rows.first.wait_for()
    assert not trouble.count()


@pytest.mark.parametrize("body", ["<html>Entre na rede</html>", "{}", '{"result":{"itens":[]}}', '{"result":'])
def test_an_unreadable_response_is_reported_and_can_be_retried(wide: Console, body: str) -> None:
    wide.intercept(LISTS, lambda route: route.fulfill(status=200, headers={"ETag": '"kept"'}, body=body))
    wide.enter()
    trouble = wide.page.locator(".trouble[data-kind=server]")
    assert "Não foi possível ler a resposta do servidor." in trouble.inner_text()
    wide.page.unroute(LISTS)
    trouble.get_by_role("button", name="Tentar novamente").click()
    wide.rows.first.wait_for()
    assert "if-none-match" not in wide.requests[-1].headers


def test_a_request_without_a_response_times_out_after_20_seconds(wide: Console) -> None:
    wide.lasting.clock.install()
    wide.intercept(LISTS, lambda _: None)
    wide.page.goto(wide.base)
    wide.page.get_by_label("Token de acesso").fill(wide.token)
    wide.page.keyboard.press("Enter")
    wide.page.locator("[aria-busy=true]").first.wait_for()
    wide.page.clock.fast_forward(19_000)
    assert not wide.page.locator(".trouble").count()
    wide.page.clock.fast_forward(2_000)
    wide.page.locator(".trouble[data-kind=offline]").wait_for()


def test_a_filter_that_the_server_refuses_is_reported(tab: Console) -> None:
    tab.refusals_expected = True
    tab.enter("#/relatorios?status=NENHUM")
    trouble = tab.page.locator(".trouble[data-kind=invalid]")
    assert "não aceitou esta consulta" in trouble.inner_text()
    tab.page.get_by_role("button", name="Remover o filtro Situação").click()
    tab.rows.first.wait_for()


def test_a_refusal_is_not_shown_above_the_next_list_while_it_loads(wide: Console) -> None:
    wide.refusals_expected = True
    wide.enter("#/relatorios?status=NENHUM")
    wide.page.locator(".trouble[data-kind=invalid]").wait_for()
    held = wide.hold(LISTS)
    wide.page.get_by_role("button", name="Remover o filtro Situação").click()
    loading = wide.await_first(held)
    wide.page.locator(".trouble").wait_for(state="detached", timeout=5_000)
    loading.continue_()
    wide.rows.first.wait_for()
    wide.page.unroute_all(behavior="ignoreErrors")


@pytest.mark.parametrize(
    ("address", "named", "words", "rest"),
    [
        (
            "#/relatorios?status=PENDENTE&nome=consultaPessoaDefault&sort=inexistente&rows=50&page=2&aberto={}",
            "sort",
            "Ver com os mesmos filtros",
            "/relatorios?status=PENDENTE&nome=consultaPessoaDefault&rows=50&aberto={}",
        ),
        (
            "#/relatorios?status=NENHUM&tipo_pessoa=EMPRESA&sort=nome&rows=5000",
            "rows",
            "Ver só com os outros filtros",
            "/relatorios?tipo_pessoa=EMPRESA&sort=nome",
        ),
        ("#/relatorios?rows=5000&page=3", "rows", "Ver a lista inteira", "/relatorios"),
        ("#/pessoas?sort=status", "sort", "Ver a lista inteira", "/pessoas"),
    ],
)
def test_a_button_removes_only_the_refused_parameters(
    wide: Console, api: httpx.Client, *, address: str, named: str, words: str, rest: str
) -> None:
    numero = first(api)["numero"]
    wide.refusals_expected = True
    wide.enter(address.format(numero))
    trouble = wide.page.locator(".list > .trouble")
    assert named in trouble.locator("p").inner_text()
    assert trouble.get_by_role("button").all_inner_texts() == [words]
    trouble.get_by_role("button").click()
    wide.rows.first.wait_for()
    assert wide.hash == rest.format(numero)
    assert wide.page.evaluate("document.activeElement.id") == "titulo"


def test_a_server_error_shows_the_request_id(tab: Console) -> None:
    tab.refusals_expected = True
    tab.intercept(LISTS, answers(500, "Erro interno.", X_Request_Id="abc-1"))
    tab.enter()
    said = tab.page.locator(".list > .trouble p")
    assert said.inner_text() == "Erro interno. Requisição abc-1."
    tab.page.unroute(LISTS)
    tab.page.get_by_role("button", name="Tentar novamente").click()
    tab.rows.first.wait_for()
    tab.intercept(LISTS, answers(500, "Erro interno.", X_Request_Id="abc-2"))
    tab.page.get_by_role("link", name="Próxima página").click()
    kept = "Abaixo, os últimos dados recebidos, de outra página ou ordem."
    said.wait_for()
    assert said.inner_text() == f"Erro interno. {kept} Requisição abc-2."


def test_a_skeleton_is_shown_until_the_first_response_arrives(tab: Console) -> None:
    held: list[Route] = []
    held_back = True
    tab.intercept(LISTS, lambda route: held.append(route) if held_back else route.continue_())
    tab.lasting.add_init_script(f"sessionStorage.setItem('{tab.own('token')}', '{tab.token}')")
    tab.page.goto(tab.base)
    tab.page.locator(".skeleton").wait_for()
    assert tab.page.locator("section[aria-busy=true]").count() == 1
    tab.page.locator(".checked", has_text="Ainda buscando…").wait_for()
    tab.until("document.querySelector('[role=status]').textContent === 'Ainda buscando…'")
    held_back = False
    for route in held:
        route.continue_()
    tab.rows.first.wait_for()
    tab.page.locator(".checked", has_text="atualizado às").wait_for()


@pytest.mark.parametrize(("view", "asked"), [("relatorios", "/relatorios$"), ("pessoas", r"/pessoas\?busca=ma$")])
def test_a_list_is_not_called_empty_before_the_response_arrives(wide: Console, view: str, asked: str) -> None:
    wide.refusals_expected = True
    wide.enter("#/relatorios?status=PROCESSANDO&resultado=VALID" if view == "relatorios" else "#/pessoas")
    box = wide.page.get_by_role("searchbox", name="Buscar pessoas")
    if view == "pessoas":
        box.fill("ninguém chamado assim")
    wide.page.locator(".empty").wait_for()
    held = wide.hold(re.compile(asked))
    if view == "relatorios":
        wide.page.locator(".empty").get_by_role("button", name="Limpar filtros").click()
    else:
        box.fill("ma")
    wide.page.locator(".list .skeleton").wait_for()
    assert not wide.page.locator(".empty, [data-total]").count()
    wide.await_first(held).fulfill(status=500, body="{}")
    wide.page.locator(".list > .trouble").wait_for()
    assert not wide.page.locator(".empty, .skeleton, [data-total]").count()
    wide.page.unroute(re.compile(asked))
    wide.page.get_by_role("button", name="Tentar novamente").click()
    wide.rows.first.wait_for()


@pytest.mark.parametrize(
    ("address", "refused", "where", "instead"),
    [
        ("#/relatorios", r"sort=nome", ".matriz", ".matriz button[aria-pressed]"),
        ("#/relatorios?page=3&aberto={}", r"numero_documento=", ".others", ".others li, .others > .muted"),
        ("#/painel", r"relatorios\?pendente_validacao_manual=true$", ".painel", ".painel .figure"),
        ("#/painel", r"atualizado_em_de=", ".volume", ".volume .chart"),
        ("#/perfil", r"/usuario", ".perfil", ".perfil dl"),
    ],
)
def test_a_failed_request_is_reported_in_place_with_a_retry_button(
    wide: Console, api: httpx.Client, *, address: str, refused: str, where: str, instead: str
) -> None:
    wide.refusals_expected = True
    wide.intercept(re.compile(refused), answers(500, "Erro interno."))
    wide.enter(address.format(first(api)["numero"]))
    if where == ".matriz":
        wide.page.locator(".matriz summary").click()
    trouble = wide.page.locator(f"{where} .trouble")
    trouble.wait_for()
    assert not wide.page.locator(f"{where} .skeleton").count()
    assert "Nenhuma matriz com estes filtros" not in wide.page.locator("main").inner_text()
    wide.page.unroute(re.compile(refused))
    trouble.get_by_role("button", name="Tentar novamente").click()
    wide.page.locator(instead).first.wait_for()
    assert not trouble.count()


def test_a_request_aborted_while_leaving_shows_no_error_at_first(wide: Console) -> None:
    wide.refusals_expected = True
    wide.lasting.clock.install()
    wide.enter()
    wide.page.evaluate("dispatchEvent(new Event('beforeunload'))")
    wide.intercept(re.compile(r"sort=nome"), lambda route: route.abort())
    with wide.page.expect_event("requestfailed"):
        wide.page.locator("th.c-nome button").click()
    wide.page.clock.run_for(5_000)
    assert not wide.page.locator(".trouble").count()
    assert wide.page.locator("[aria-busy=true]").count()
    wide.page.clock.run_for(10_000)
    wide.page.locator(".list > .trouble").wait_for()


def test_a_rate_limit_only_delays_the_dashboard(wide: Console, api: httpx.Client) -> None:
    wide.refusals_expected = True
    refused: list[str] = []

    def once(route: Route) -> None:
        if "status=PENDENTE" in route.request.url and not refused:
            refused.append(route.request.url)
            answers(429, "Aguarde.", Retry_After="1")(route)
        else:
            route.continue_()

    wide.intercept(LISTS, once)
    wide.enter("#/painel")
    shown = wide.page.locator('.bars [data-value="PENDENTE"] .number')
    shown.wait_for()
    assert refused
    assert shown.inner_text().replace(".", "") == str(count(api, status="PENDENTE"))


def test_the_dashboard_reports_an_error_only_if_all_requests_fail(wide: Console, api: httpx.Client) -> None:
    wide.refusals_expected = True
    asked: list[str] = []
    refuse = answers(503, "Indisponível.", Retry_After="1")

    def some(route: Route) -> None:
        asked.append(route.request.url)
        answer = refuse if len(asked) % 3 == 0 else Route.continue_
        answer(route)

    wide.enter("#/pessoas")
    wide.intercept(LISTS, some)
    wide.page.evaluate(
        "new MutationObserver(() => (window.troubled ||= document.querySelector('.trouble')))"
        ".observe(document.body, { childList: true, subtree: true })"
    )
    wide.page.get_by_role("link", name="Painel").click()
    wide.page.locator(".volume tbody tr").first.wait_for()
    assert not wide.page.evaluate("Boolean(window.troubled)")
    assert len(asked) > 50
    shown = wide.page.locator('.bars [data-value="PENDENTE"] .number')
    assert shown.inner_text().replace(".", "") == str(count(api, status="PENDENTE"))
    wide.page.unroute(LISTS)
    wide.intercept(LISTS, refuse)
    wide.page.get_by_role("button", name="Atualizar").click()
    wide.page.locator(".painel > .trouble[data-kind=unavailable]").wait_for()
    assert shown.count(), "the previous counts stay"


def test_people_past_the_last_page_offer_the_first_page(tab: Console) -> None:
    tab.enter("#/pessoas?page=99999")
    tab.page.get_by_role("button", name="Ir para a primeira").click()
    tab.rows.first.wait_for()


def test_filters_without_results_can_be_cleared(tab: Console) -> None:
    tab.enter("#/relatorios?status=PROCESSANDO&resultado=VALID")
    tab.page.locator(".empty").get_by_role("button", name="Limpar filtros").click()
    tab.rows.first.wait_for()


@pytest.mark.parametrize(
    ("text", "words", "why"),
    [
        ("529.982.247-25", "Esta conta não tem relatórios deste CPF.", "os relatórios podem ser de outra"),
        ("12ABC34501DE35", "Esta conta não tem relatórios deste CNPJ.", ""),
        (
            "60417052",
            "Nenhuma pessoa corresponde a esta busca.",
            "procure pelo CNPJ ou pelo número do relatório, completos.",
        ),
        (
            "ninguém chamado assim",
            "Nenhuma pessoa corresponde a esta busca.",
            "Cada palavra deve ser o início de um nome",
        ),
    ],
)
def test_a_search_without_results_is_explained(wide: Console, text: str, words: str, why: str) -> None:
    wide.enter()
    wide.find(text)
    empty = wide.page.locator(".empty")
    empty.get_by_text(words).wait_for()
    assert why in empty.inner_text()
    wide.page.get_by_role("button", name="Limpar").click()
    wide.rows.first.wait_for()


def test_a_period_that_ends_before_it_begins_is_reported(wide: Console) -> None:
    for to, said in (("2026-09-09", 1), ("2026-09-10", 0)):
        wide.enter(f"#/relatorios?atualizado_em_de=2026-09-10&atualizado_em_ate={to}&status=PENDENTE&resultado=INVALID")
        wide.page.get_by_text("Nenhum relatório corresponde a estes filtros.").wait_for()
        assert wide.page.get_by_text("O período termina antes de começar.").count() == said


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> "Place":
    """An account without reports."""
    place = Place(tmp_path_factory.mktemp("bare"))
    for command in (
        ("migrate",),
        ("organization", "create", "Modelo"),
        ("user", "create", "--account", "1", "--email", "suporte@example.com", "--name", "Suporte"),
    ):
        assert place.run(*command).returncode == 0
    return Place(place.folder, token=place.run("token", "create", "--user", "1").stdout.strip())


def test_an_account_without_reports_is_shown_as_empty(tab: Console, bare: Place) -> None:
    with serving(bare, "--workers", "1") as empty:
        assert isinstance(empty, Server)
        tab.base, tab.token = empty.url, bare.token
        tab.enter()
        tab.page.get_by_text("Ainda não há relatórios nesta conta.").wait_for()
        tab.page.get_by_role("link", name="Pessoas").click()
        tab.page.get_by_text("Nenhum CPF foi consultado ainda.").wait_for()
        tab.page.get_by_role("link", name="Painel").click()
        tab.page.get_by_text("Ainda não há relatórios nesta conta.").wait_for()
        tab.page.locator(".checked", has_text="atualizado às").wait_for()
        assert not tab.page.locator(".card").count()
        assert tab.violations() == []


def test_settings_apply_even_if_browser_storage_is_full(wide: Console) -> None:
    wide.enter()
    wide.page.evaluate("void (Storage.prototype.setItem = () => { throw new DOMException('', 'QuotaExceededError') })")
    wide.page.get_by_role("button", name="Tema: igual ao do sistema").click()
    wide.page.get_by_role("button", name="Tema: claro").wait_for()
    wide.page.get_by_role("button", name="Exportar").click()
    separator = wide.page.locator("select[name=separator]")
    separator.select_option(",")
    wide.page.get_by_label("Mascarar CPFs").uncheck()
    assert separator.input_value() == ","
    wide.page.keyboard.press("Escape")
    wide.page.keyboard.press("?")
    wide.page.get_by_label("Ativar os atalhos de uma só tecla").uncheck()
    assert not wide.page.get_by_label("Ativar os atalhos de uma só tecla").is_checked()
