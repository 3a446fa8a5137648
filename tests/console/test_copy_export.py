import csv
import re
import subprocess
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from console.driver import Console
from console.lists import answers, count, first, most_rows, punctuated


def copied(console: Console, name: str) -> str:
    dialog = console.page.get_by_role("dialog", name="Copiar esta lista como…")
    dialog.get_by_role("button", name="Copiar", exact=True).nth(["curl", "Python", "CLI"].index(name)).click()
    console.page.wait_for_timeout(100)
    text: str = console.page.evaluate("navigator.clipboard.readText()")
    return text


def test_the_copied_curl_command_returns_the_same_list(tab: Console, api: httpx.Client) -> None:
    document = first(api, tipo_pessoa="PESSOA")["numero_documento"]
    tab.enter()
    tab.find(document)
    tab.page.get_by_role("button", name="Copiar como…").click()
    command = copied(tab, "curl")
    assert tab.token not in command
    done = subprocess.run(
        ["sh", "-c", command.replace("curl", "curl -s", 1)],
        env={"PATH": "/usr/bin:/bin", "LAUDO_TOKEN": tab.token},
        capture_output=True,
        check=True,
    )
    assert done.stdout == api.get("/relatorios", params={"numero_documento": document}).content


def test_the_list_is_copied_as_python_and_as_a_cli_command(tab: Console) -> None:
    tab.enter("#/relatorios?status=EM+ANALISE&pendente_validacao_manual=true&sort=nome&page=2")
    tab.page.get_by_role("button", name="Copiar como…").click()
    python = copied(tab, "Python")
    compile(python, "copied", "exec")
    assert (
        'client.relatorios(\n    status="EM ANALISE",\n    pendente_validacao_manual=True,\n    sort="nome",\n)'
        in python
    )
    assert copied(tab, "CLI") == (
        f"LAUDO_URL={tab.base} laudo relatorios \\\n  --status 'EM ANALISE' \\\n  --pendente-validacao-manual true"
        " \\\n  --sort nome \\\n  --page 2"
    )


def test_copying_works_without_the_clipboard_api(wide: Console) -> None:
    wide.lasting.add_init_script("delete Navigator.prototype.clipboard")
    wide.enter()
    numero = wide.rows.first.get_attribute("title")
    wide.rows.first.click()
    wide.page.get_by_role("button", name="Copiar o número").click()
    wide.until("[...document.querySelectorAll('[role=status] > p')].some((said) => said.textContent === 'Copiado.')")
    box = wide.page.locator("[data-find]")
    box.focus()
    box.press("Control+v")
    assert box.input_value() == numero


def test_a_failed_copy_is_shown_briefly(wide: Console) -> None:
    wide.enter()
    wide.rows.first.click()
    button = wide.page.get_by_role("button", name="Copiar o número")
    drawn = button.locator("path")
    before = drawn.get_attribute("d")
    wide.page.evaluate("delete Navigator.prototype.clipboard; void (Document.prototype.execCommand = () => false)")
    button.click()
    wide.page.get_by_title("O navegador não permitiu copiar.").wait_for()
    failed = drawn.get_attribute("d")
    assert failed != before
    wide.page.get_by_title("Copiar o número").wait_for()
    assert drawn.get_attribute("d") == before
    wide.page.evaluate("void (Document.prototype.execCommand = () => true)")
    button.click()
    wide.page.get_by_title("Copiado.").wait_for()
    assert drawn.get_attribute("d") not in (before, failed)


def exported(console: Console, folder: Path, separator: str = ",") -> list[dict[str, str]]:
    console.page.get_by_label("Separador").select_option(separator)
    with console.page.expect_download() as download:
        console.page.get_by_role("dialog").get_by_role("button", name="Exportar").click()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    text = file.read_bytes().decode("utf-8")
    assert text.startswith("\ufeff")
    return list(csv.DictReader(StringIO(text[1:], newline=""), delimiter=separator))


def walked(api: httpx.Client, **filters: str) -> list[dict[str, Any]]:
    pages = range(1, -(-count(api, **filters) // 1000) + 1)
    params = [filters | {"rows": "1000", "page": str(page)} for page in pages]
    return [item for each in params for item in api.get("/relatorios", params=each).json()["result"]["itens"]]


@pytest.mark.parametrize("masked", [True, False])
def test_an_export_contains_every_report_that_matches_the_filters(
    tab: Console, api: httpx.Client, tmp_path: Path, *, masked: bool
) -> None:
    tab.enter("#/relatorios?status=CONCLUIDO&sort=numero")
    tab.page.get_by_role("button", name="Exportar").click()
    box = tab.page.get_by_label("Mascarar CPFs")
    assert box.is_checked()
    box.set_checked(masked)
    rows = exported(tab, tmp_path)
    expected = walked(api, status="CONCLUIDO", sort="numero")
    assert [row["numero"] for row in rows] == [item["numero"] for item in expected]
    for row, item in zip(rows, expected, strict=True):
        document = item["numero_documento"]
        if masked and len(document) == 11:
            assert row["numero_documento"] == f"***.{document[3:6]}.{document[6:9]}-**"
        else:
            assert row["numero_documento"] == document
        assert row["pendente_validacao_manual"] == str(item["pendente_validacao_manual"]).lower()
    assert f"{len(rows):,}".replace(",", ".") in tab.page.locator("[data-exported]").inner_text()


@pytest.mark.parametrize("separator", [",", ";"])
def test_an_export_of_people_masks_their_cpfs(wide: Console, api: httpx.Client, tmp_path: Path, separator: str) -> None:
    wide.enter("#/pessoas?atualizado_em_de=2026-09-30")
    wide.page.get_by_role("button", name="Exportar").click()
    asked = {"atualizado_em_de": "2026-09-30T03:00:00Z", "rows": "1000"}
    cpfs = [item["cpf"] for item in api.get("/pessoas", params=asked).json()["result"]["itens"]]
    masked = [f"***.{cpf[3:6]}.{cpf[6:9]}-**" for cpf in cpfs]
    assert cpfs
    assert [row["cpf"] for row in exported(wide, tmp_path, separator)] == masked
    wide.page.get_by_label("Mascarar CPFs").uncheck()
    whole = cpfs if separator == "," else [punctuated(cpf) for cpf in cpfs]
    assert [row["cpf"] for row in exported(wide, tmp_path, separator)] == whole


@pytest.mark.parametrize("view", ["relatorios", "pessoas"])
def test_an_empty_list_is_exported_with_its_header_row(
    wide: Console, api: httpx.Client, tmp_path: Path, view: str
) -> None:
    wide.enter(f"#/{view}?atualizado_em_de=9999-01-01")
    wide.page.get_by_role("button", name="Exportar").click()
    assert exported(wide, tmp_path) == []
    [item] = api.get(f"/{view}").json()["result"]["itens"][:1]
    [file] = tmp_path.glob(f"{view}-????-??-??-????.csv")
    assert file.read_bytes().decode("utf-8-sig") == f"{','.join(item)}\r\n"


def test_the_separator_is_that_of_excel_until_another_is_chosen(
    wide: Console, api: httpx.Client, tmp_path: Path
) -> None:
    wide.enter("#/relatorios?status=PENDENTE&sort=numero")
    wide.page.get_by_role("button", name="Exportar").click()
    assert wide.page.get_by_label("Separador").input_value() == ";"
    expected = [item["numero"] for item in walked(api, status="PENDENTE", sort="numero")]
    for separator in (";", ","):
        assert [row["numero"] for row in exported(wide, tmp_path, separator)] == expected
    wide.page.reload()
    wide.settle()
    wide.page.get_by_role("button", name="Exportar").click()
    assert wide.page.get_by_label("Separador").input_value() == ","


def test_an_export_keeps_no_answers_in_memory(wide: Console, tmp_path: Path) -> None:
    wide.enter("#/relatorios?status=PENDENTE")
    wide.page.get_by_role("button", name="Exportar").click()
    for _ in range(2):
        exported(wide, tmp_path)
    asked = [request for request in wide.requests if "rows=1000" in request.url]
    assert len(asked) == 2
    assert not any("if-none-match" in request.headers for request in asked)


def test_an_export_with_semicolons_punctuates_documents(wide: Console, api: httpx.Client, tmp_path: Path) -> None:
    wide.enter("#/relatorios?resultado=INVALID&sort=numero_documento")
    wide.page.get_by_role("button", name="Exportar").click()
    wide.page.get_by_label("Mascarar CPFs").set_checked(checked=False)
    shown = [row["numero_documento"] for row in exported(wide, tmp_path, ";")]
    expected = [item["numero_documento"] for item in walked(api, resultado="INVALID", sort="numero_documento")]
    assert [re.sub("[./-]", "", document) for document in shown] == expected
    assert expected[0].startswith("0")
    assert {re.sub("[0-9A-Z]", "0", document) for document in shown} == {"000.000.000-00", "00.000.000/0000-00"}


@pytest.mark.parametrize("view", ["relatorios", "pessoas"])
def test_an_export_has_local_times_with_semicolons_and_utc_with_commas(
    wide: Console, api: httpx.Client, tmp_path: Path, view: str
) -> None:
    wide.enter(f"#/{view}?atualizado_em_de=2026-09-30")
    wide.page.get_by_role("button", name="Exportar").click()
    said = wide.page.get_by_role("dialog").locator("p").first
    for separator, zone in ((",", "em UTC"), (";", "no fuso de Brasília")):
        wide.page.get_by_label("Separador").select_option(separator)
        assert zone in said.inner_text()
        shown = [row["atualizado_em"] for row in exported(wide, tmp_path, separator)]
        asked = {"atualizado_em_de": "2026-09-30T03:00:00Z", "rows": "1000"}
        instants = [item["atualizado_em"] for item in api.get(f"/{view}", params=asked).json()["result"]["itens"]]
        clock = [datetime.fromisoformat(instant).astimezone(ZoneInfo("America/Sao_Paulo")) for instant in instants]
        assert shown
        assert shown == (instants if separator == "," else [f"{at:%d/%m/%Y %H:%M:%S}" for at in clock])


def test_an_export_shows_its_progress_and_can_be_cancelled(tab: Console) -> None:
    tab.enter()
    held: list[Any] = []

    def hold(route: Any) -> None:  # noqa: ANN401 - Playwright's route
        if "cursor=" in route.request.url:
            held.append(route)
        else:
            route.continue_()

    tab.intercept("**/relatorios?*", hold)
    tab.page.get_by_role("button", name="Exportar").click()
    tab.page.get_by_role("dialog").get_by_role("button", name="Exportar").click()
    tab.page.get_by_text("1.000 de 7.0").wait_for()
    tab.page.get_by_role("dialog").get_by_role("button", name="Cancelar").click()
    tab.page.locator(".hint", has_text="Exportação cancelada").wait_for()
    tab.page.get_by_role("dialog").get_by_role("button", name="Exportar").click()
    tab.page.get_by_text("1.000 de 7.0").wait_for()
    said = tab.page.locator("[role=status] p", has_text="Exportação cancelada; nenhum arquivo foi salvo.")
    assert said.count() == 2, "once in the dialog and once outside"
    for way in ("Escape", "Fechar"):
        before = said.count()
        if way == "Escape":
            tab.page.keyboard.press(way)
        else:
            tab.page.get_by_role("button", name=way).click()
        tab.page.locator(".hint", has_text="Exportação cancelada").wait_for()
        tab.until("document.querySelector('dialog [role=status]').lastChild.textContent.startsWith('Exportação')")
        assert said.count() > before
        tab.page.get_by_role("dialog").get_by_role("button", name="Exportar").click()
        tab.page.get_by_text("1.000 de 7.0").wait_for()
    tab.page.get_by_role("dialog").get_by_role("button", name="Cancelar").click()
    tab.page.locator(".hint", has_text="Exportação cancelada").wait_for()
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("dialog").wait_for(state="detached")


@pytest.mark.parametrize("status", [429, 500, None])
def test_an_export_retries_after_a_temporary_error(wide: Console, tmp_path: Path, status: int | None) -> None:
    """None stands for a connection that fails."""
    wide.refusals_expected = True
    wide.enter("#/relatorios?status=EM+ANALISE")
    refused: list[str] = []

    def once(route: Any) -> None:  # noqa: ANN401 - Playwright's route
        if "rows=1000" in route.request.url and not refused:
            refused.append(route.request.url)
            route.fulfill(status=status, headers={"Retry-After": "1"}, body="{}") if status else route.abort()
        else:
            route.continue_()

    wide.intercept("**/relatorios?*", once)
    wide.page.get_by_role("button", name="Exportar").click()
    assert len(exported(wide, tmp_path)) == wide.total
    assert refused


@pytest.mark.parametrize(("after", "seconds"), [("7", 7), ("3600", 30)])
def test_an_export_waits_as_long_as_retry_after_says_up_to_30_s(wide: Console, after: str, seconds: int) -> None:
    wide.refusals_expected = True
    wide.lasting.clock.install()
    wide.enter("#/relatorios?status=EM+ANALISE")
    asked: list[str] = []

    def busy(route: Any) -> None:  # noqa: ANN401 - Playwright's route
        asked.append(route.request.url)
        route.fulfill(status=503, body="{}", headers={"Retry-After": after})

    wide.intercept(re.compile("rows=1000"), busy)
    wide.page.get_by_role("button", name="Exportar").click()
    with wide.page.expect_response(re.compile("rows=1000")):
        wide.page.get_by_role("dialog").get_by_role("button", name="Exportar").click()
    wide.page.wait_for_timeout(200)
    wide.page.clock.fast_forward(1000 * (seconds - 1))
    wide.page.wait_for_timeout(200)
    assert len(asked) == 1
    with wide.page.expect_response(re.compile("rows=1000")):
        wide.page.clock.fast_forward(1_500)
    wide.page.unroute_all(behavior="wait")


def test_an_export_that_waits_for_the_server_can_be_cancelled(wide: Console) -> None:
    wide.refusals_expected = True
    wide.lasting.clock.install()
    wide.enter()
    wide.intercept(re.compile("rows=1000"), answers(503, "Aguarde.", Retry_After="7"))
    wide.page.get_by_role("button", name="Exportar").click()
    dialog = wide.page.get_by_role("dialog")
    with wide.page.expect_response(re.compile("rows=1000")):
        dialog.get_by_role("button", name="Exportar").click()
    wide.page.clock.pause_at(wide.page.evaluate("Date.now() / 1000") + 1)
    dialog.get_by_role("button", name="Cancelar").click()
    dialog.locator(".hint", has_text="Exportação cancelada").wait_for()
    wide.page.unroute_all(behavior="wait")


def test_an_export_that_waits_for_the_largest_page_size_can_be_cancelled(wide: Console) -> None:
    held = wide.hold("**/openapi.json")
    wide.enter()
    wide.page.get_by_role("button", name="Exportar").click()
    dialog = wide.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Exportar").click()
    wide.await_first(held)
    dialog.get_by_role("button", name="Cancelar").click()
    # The request itself would end after 20 s.
    dialog.locator(".hint", has_text="Exportação cancelada").wait_for(timeout=10_000)
    wide.page.unroute_all(behavior="ignoreErrors")


def test_an_export_asks_for_a_multiple_of_25_rows(wide: Console, api: httpx.Client, tmp_path: Path) -> None:
    wide.intercept("**/openapi.json", most_rows(api, 130))
    wide.enter("#/relatorios?status=EM+ANALISE")
    wide.page.get_by_role("button", name="Exportar").click()
    assert len(exported(wide, tmp_path)) == wide.total
    assert [request for request in wide.requests if request.url.endswith("&rows=125")]


def test_going_back_aborts_a_running_export(wide: Console) -> None:
    wide.enter()
    wide.page.get_by_role("link", name="Próxima página").click()
    wide.page.wait_for_url("**page=2")
    wide.settle()
    wide.intercept(re.compile("rows=1000"), lambda _: None)
    wide.page.get_by_role("button", name="Exportar").click()
    with wide.page.expect_request(re.compile("rows=1000")):
        wide.page.get_by_role("dialog").get_by_role("button", name="Exportar").click()
    with wide.page.expect_event("requestfailed", lambda request: "rows=1000" in request.url):
        wide.page.go_back()
    wide.page.unroute_all(behavior="ignoreErrors")


# Delivers each page of an export in two pieces, each of which takes 15 s.
SLOW = """{
    const real = fetch
    globalThis.fetch = async (...asked) => {
        const answer = await real(...asked)
        if (!String(asked[0]).includes('rows=1000')) return answer
        const body = new Uint8Array(await answer.arrayBuffer())
        const pieces = [body.subarray(0, body.length / 2), body.subarray(body.length / 2)]
        const slowed = new ReadableStream({ async pull(parts) {
            await new Promise((heard) => { setTimeout(heard, 15000); globalThis.waiting = true })
            asked[1].signal.throwIfAborted()
            parts.enqueue(pieces.shift())
            if (!pieces.length) parts.close()
        } }, { highWaterMark: 0 })
        return new Response(slowed, answer)
    }
}"""


def test_a_slow_export_does_not_time_out_while_data_arrives(wide: Console) -> None:
    wide.lasting.clock.install()
    wide.lasting.add_init_script(SLOW)
    wide.enter("#/relatorios?status=EM+ANALISE")
    wide.page.get_by_role("button", name="Exportar").click()
    with wide.page.expect_download() as download:
        wide.page.get_by_role("dialog").get_by_role("button", name="Exportar").click()
        for _ in range(2):
            wide.until("globalThis.waiting")
            wide.page.evaluate("globalThis.waiting = false")
            wide.page.clock.fast_forward(15_000)
        wide.page.locator("[data-exported]").wait_for()
    assert len(download.value.path().read_text("utf-8").splitlines()) == wide.total + 1


def test_an_export_fails_instead_of_ending_early_without_a_link_header(tab: Console) -> None:
    def drop_link(route: Any) -> None:  # noqa: ANN401 - Playwright's route
        answer = route.fetch()
        headers = {name: text for name, text in answer.headers.items() if name != "link"}
        route.fulfill(response=answer, headers=headers)

    tab.enter()
    tab.intercept("**/relatorios?*", drop_link)
    tab.page.get_by_role("button", name="Exportar").click()
    tab.page.get_by_role("dialog").get_by_role("button", name="Exportar").click()
    tab.page.locator(".wrong", has_text="sem o cabeçalho Link").wait_for()


def test_an_export_is_complete_although_new_reports_raise_the_total(wide: Console) -> None:
    """New reports raise the total, but come before the cursor, so the export does not contain them."""
    wide.enter()
    walked = """(async () => {
        const pages = [{ total: 50, next: '?cursor=a' }, { total: 60, next: '' }]
        const ask = async () => {
            const { total, next } = pages.shift()
            return { next, body: { result: { itens: Array(25).fill({ cpf: '52998224725' }), paginacao: { total } } } }
        }
        const how = { rows: 25, masked: true, separator: ',', signal: new AbortController().signal, progress() {} }
        return (await m.walk({ ask }, '/pessoas', {}, how)).count
    })()"""
    assert wide.run("exporting.js", walked) == 50


def test_an_export_retries_to_learn_the_largest_page_size(wide: Console, tmp_path: Path) -> None:
    wide.refusals_expected = True
    refused: list[str] = []

    def once(route: Any) -> None:  # noqa: ANN401 - Playwright's route
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=502, body="<html>")

    wide.intercept("**/openapi.json", once)
    wide.enter("#/relatorios?status=EM+ANALISE")
    wide.page.get_by_role("button", name="Exportar").click()
    assert len(exported(wide, tmp_path)) == wide.total
    assert refused
    assert [request for request in wide.requests if "rows=1000" in request.url]
