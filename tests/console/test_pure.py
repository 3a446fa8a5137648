"""The console's pure functions, compared with Python's results."""

import ast
import random
import subprocess
from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from console.driver import Console
from laudo.core.documents import cnpj_digits, cpf_digits, is_cnpj, is_cpf

AWKWARD = ["", "a b", "it's", '"', "$HOME `id` \\", "\n\t", "é 💥", "--x", "\u2028\u2029\x7f", "*?[]{}~!#&|;<>()"]

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
UUID = "6f0c7b52-93a6-4d0e-8a55-1f6f3f1f2a10"
AROUND = (
    *('"{}"', "'{}'", "{},", "{};", "({})", "[{}]", "{}.", '"numero": "{}",', "Documento: {}", "CPF/CNPJ: {}"),
    *("C.P.F. {}", "Nº {}", "nº{}", "CPF (titular): {}", "Relatório {}", "Maria da Silva, {}", "{} - Maria da Silva"),
)
"""Texts that may be copied together with a number."""


@pytest.fixture(scope="module")
def page(shared: Console) -> Console:
    return shared.enter()


def test_check_digits_agree_with_the_server(page: Console) -> None:
    chance = random.Random(5)
    cpfs = [f"{chance.randrange(10**11):011}" for _ in range(300)]
    cpfs += [base + cpf_digits(base) for base in (f"{chance.randrange(10**9):09}" for _ in range(300))]
    letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    bases = ["".join(chance.choices(letters, k=12)) for _ in range(300)]
    cnpjs = [base + cnpj_digits(base) for base in bases] + [f"{base}{chance.randrange(100):02}" for base in bases]
    given = [*cpfs, *cnpjs, "11111111111", "00000000000000", "1234567890", "a" * 11, "12345678909 "]
    found = page.run("documents.js", f"{given!r}.map((text) => m.isCpf(text) || m.isCnpj(text))")
    assert found == [is_cpf(text) or is_cnpj(text) for text in given]


def test_pasted_text_is_recognized(page: Console) -> None:
    cases = {
        "529.982.247-25": ("cpf", "52998224725"),
        " 52998224725 ": ("cpf", "52998224725"),
        "529.982.247-26": ("cpf", "52998224726"),
        "CPF 529.982.247-25": ("cpf", "52998224725"),
        "cpf nº: 529.982.247\u201325": ("cpf", "52998224725"),
        **dict.fromkeys(("Documento: 529 982 247 25", "Nº do CPF/CNPJ:529 982 247 25"), ("cpf", "52998224725")),
        "529.982.\u200b247\u201125\ufeff": ("cpf", "52998224725"),
        "12.abc.345/01de-35": ("cnpj", "12ABC34501DE35"),
        "CNPJ: 11.222.333/0001\u201481": ("cnpj", "11222333000181"),
        "11222333000182": ("cnpj", "11222333000182"),
        "12ABC34501DE36": ("nome", "12ABC34501DE36"),
        "mariasilva2026": ("nome", "mariasilva2026"),
        "{6F0C7B52-93A6-4D0E-8A55-1F6F3F1F2A10}": ("numero", "6f0c7b52-93a6-4d0e-8a55-1f6f3f1f2a10"),
        "6f0c7b5293a64d0e8a551f6f3f1f2a10": ("numero", "6f0c7b52-93a6-4d0e-8a55-1f6f3f1f2a10"),
        **dict.fromkeys(("6f0c7b52", "6F0C7B52", "{6f0c7b52-"), ("part", "")),
        "Relatório 6f0c7b52": ("part", ""),
        **{text: ("nome", text) for text in ("60417052", "decadada", "6f0c7b5", "6f0c7b52 maria")},
        "Maria da Silva": ("nome", "Maria da Silva"),
        "Cpfani": ("nome", "Cpfani"),
        "Maria\tda\r\n Silva\x85": ("nome", "Maria da Silva"),
        "529.982.247\t-25": ("cpf", "52998224725"),
        **dict.fromkeys(
            ("52998224725 11144477735", "529.982.247-25, 111.444.777-35", "11222333000181;11222333000181", "1" * 15),
            ("several", ""),
        ),
        "01.018.935/0001-68": ("cnpj", "01018935000168"),
        "1018935000168": ("cnpj", "01018935000168"),
        "62887000142": ("cnpj", "00062887000142"),
        **dict.fromkeys(("1018935000169", "1.018.935/0001-6"), ("short", "")),
        "1013308638": ("nome", "1013308638"),
        **dict.fromkeys(("39750626818.0", "7\t39750626818.0\t2026"), ("cpf", "39750626818")),
        **dict.fromkeys(("11222333000181.0", "CNPJ: 11222333000181.0"), ("cnpj", "11222333000181")),
        "1018935000168.0": ("cnpj", "01018935000168"),
        **dict.fromkeys((around.format("529.982.247-25") for around in AROUND), ("cpf", "52998224725")),
        **dict.fromkeys((around.format("12.abc.345/01de-35") for around in AROUND), ("cnpj", "12ABC34501DE35")),
        **dict.fromkeys((around.format(UUID) for around in AROUND), ("numero", UUID)),
        f'{{"numero": "{UUID}", "status": "CONCLUIDO", "total": 1}}': ("numero", UUID),
        "CNPJ (matriz): 1018935000168.": ("cnpj", "01018935000168"),
        **dict.fromkeys(
            ("52998224725\t27/11/2026 09:30", "7\t529.982.247-25", "529.982.247-25\t(11) 91234-5678\t1.500,00"),
            ("cpf", "52998224725"),
        ),
        **dict.fromkeys(('"6f0c7b52"', "6f0c7b52,"), ("part", "")),
        **dict.fromkeys(
            (
                *(f"{UUID}{between}{UUID[::-1]}" for between in (" ", ",", '","')),
                *("529.982.247-25 e 111.444.777-35", "CPF: 529.982.247-25; CPF: 111.444.777-35"),
                f"CPF 529.982.247-25, relatório {UUID}",
            ),
            ("several", ""),
        ),
        **{
            text: ("nome", text)
            for text in ("Documento: 10133086", "RG 12.345.678-9", "3M do Brasil, 2", "60417052, 123")
        },
        **dict.fromkeys(("   ", "!!!", "\U0001f600", "%", "\u200b", "CPF:"), ("none", "")),
    }
    for text, (kind, value) in cases.items():
        page.page.evaluate("(text) => { window.text = text }", text)
        assert page.run("documents.js", "m.recognize(text)") == {"kind": kind, "value": value}, text


def test_labels_with_many_dots_do_not_take_exponential_time(page: Console) -> None:
    """If each label could be read in two ways, this would take exponential time."""
    labels = f"CPF{' n..' * 40}"
    assert page.run("documents.js", f"m.clean('{labels}x')") == f"{labels}x"
    assert page.run("documents.js", f"m.clean('{labels} n.º: 529.982.247-25')") == "529.982.247-25"


def test_leading_zeros_are_added_if_that_makes_a_valid_document(page: Console) -> None:
    cases = {"1013308638": "01013308638", "1.013.308-638": "01013308638", "1018935000168": "01018935000168"}
    cases |= dict.fromkeys(("1013308639", "01013308638", "52998224725", "191", "maria", ""), "")
    assert page.run("documents.js", f"{[*cases]!r}.map(m.withZeros)") == [*cases.values()]


def test_only_a_persons_document_is_masked(page: Console) -> None:
    assert page.run("documents.js", "m.mask('52998224725')") == "***.982.247-**"
    assert page.run("documents.js", "m.mask('11222333000181')") == "11.222.333/0001-81"


def test_a_place_written_as_an_address_is_read_back_unchanged(page: Console) -> None:
    shown = {"status": "EM ANALISE", "nome": "a&b=c#d"}
    place = {
        "view": "relatorios",
        "filters": {**shown, "numero_documento": "52998224725"},
        "page": 7,
        "rows": 50,
        "sort": "-numero",
        "open": "6f0c7b52-93a6-4d0e-8a55-1f6f3f1f2a10",
        "missing": [],
        "refused": [],
    }
    written = page.page.evaluate("(place) => { window.place = place }", place)
    assert written is None
    hash_ = page.run("address.js", "m.hashOf(place)")
    assert "52998224725" not in hash_
    assert page.run("address.js", "m.readHash(m.hashOf(place), m.privateFilters(place))") == place
    elsewhere = page.run("address.js", "m.readHash(m.hashOf(place), null)")
    assert elsewhere == place | {"filters": shown, "missing": ["numero_documento"]}
    assert page.run("address.js", "m.hashOf(m.readHash(m.hashOf(place), null))") == hash_
    asked = page.run("address.js", "m.parameters(m.readHash(m.hashOf(place), null))")
    assert asked == shown | {"sort": "-numero", "rows": "50", "page": "7"}


@pytest.mark.parametrize(
    ("hash_", "missing"),
    [
        ("#/pessoas?oculto=busca&oculto=cpf&oculto=busca", ["busca", "cpf"]),
        ("#/pessoas?oculto=numero_documento&oculto=status&oculto=", []),
        ("#/painel?oculto=busca", []),
    ],
)
def test_only_private_parameters_of_the_view_can_be_missing(page: Console, hash_: str, missing: list[str]) -> None:
    assert page.run("address.js", f"m.readHash({hash_!r}, null).missing") == missing


@pytest.mark.parametrize(
    ("hash_", "refused"),
    [
        ("#/relatorios?statu=PENDENTE&status=CONCLUIDO&Status=x&statu=", ["statu", "Status"]),
        ("#/relatorios?page=0&rows=30&sort=A;B&aberto=../x", ["page", "rows", "sort", "aberto"]),
        ("#/relatorios?status=PENDENTE&status=CONCLUIDO&nome=&resultado=VALID", ["status", "nome"]),
        (f"#/relatorios?nome={'a' * 201}&status={'%C3%A9' * 200}", ["nome"]),
        (
            "#/relatorios?nome=a%03%0Aid&status=%1B%5B201~&resultado=%C2%9B&sort=nome%0A",
            ["nome", "status", "resultado", "sort"],
        ),
        ("#/pessoas?status=PENDENTE&oculto=numero_documento", ["status", "oculto"]),
        ("#/painel?volume=semanas&busca=maria", ["volume", "busca"]),
        ("#/painel?volume=meses", []),
        ("#/perfil?conta=2", ["conta"]),
        ("#/Pessoas/?atualizado_em_de=2026-09-01", []),
        ("#/empresas?status=PENDENTE", ["/"]),
        ("#/relatorios/6f0c7b52-93a6-4d0e-8a55-1f6f3f1f2a10", ["/"]),
        ("#/relatorios?52998224725&Maria+da+Silva=1&recusado=11144477735", ["…"]),
        ("#/relatorios?nome=a?b&rows=1000&page=2&sort=-nome&oculto=numero_documento&numero_documento=1", []),
    ],
)
def test_unknown_and_invalid_parameters_of_an_address_are_refused(
    page: Console, hash_: str, refused: list[str]
) -> None:
    place = page.run("address.js", f"m.readHash({hash_!r}, null)")
    assert place["refused"] == refused
    assert not {*refused} & {*place["filters"]}
    again = page.run("address.js", f"m.readHash(m.hashOf(m.readHash({hash_!r}, null)), null)")
    assert again == place


def test_a_misspelled_parameter_is_matched_to_the_closest_one(page: Console) -> None:
    cases = {
        "statu": "status",
        "Resultados": "resultado",
        "tipopessoa": "tipo_pessoa",
        "atualizado_de": "atualizado_em_de",
    }
    cases |= {"documento": "numero_documento", "open": "", "x": "", "…": "", "/": ""}
    assert page.run("address.js", f"{[*cases]!r}.map((name) => m.nearestParameter('relatorios', name))") == [
        *cases.values()
    ]
    assert page.run("address.js", "['conta', 'pages'].map((name) => m.nearestParameter('perfil', name))") == [
        "",
        "page",
    ]


def test_a_value_may_contain_a_question_mark(page: Console) -> None:
    assert page.run("address.js", "m.readHash('#/relatorios?nome=a?b', null).filters") == {"nome": "a?b"}


@pytest.mark.parametrize(
    "hash_", ["", "#", "#/", "#/none", "#/relatorios?page=0&rows=7&sort=A;B&aberto=../x", "#/%00?%", "#?page=2"]
)
def test_an_empty_or_invalid_address_is_the_default_list(page: Console, hash_: str) -> None:
    place = page.run("address.js", f"m.readHash({hash_!r}, 'x')")
    assert (place["view"], place["page"], place["rows"], place["sort"], place["open"]) == (
        "relatorios",
        place["page"],
        25,
        "",
        "",
    )


def test_days_begin_and_end_in_the_local_time_zone(page: Console) -> None:
    assert page.run("address.js", "m.instant('2026-01-31', false)") == "2026-01-31T03:00:00.000Z"
    assert page.run("address.js", "m.instant('2026-01-31', true)") == "2026-02-01T03:00:00.000Z"
    assert page.run("address.js", "m.instant('2026-01-31T12:00:00Z', true)") == "2026-01-31T12:00:00Z"
    for day in ("2026-02-30", "2026-13-01", "2026-00-10", "2026-04-31"):
        assert page.run("address.js", f"m.instant('{day}', true)") == day
    assert page.run("address.js", "m.instant('9999-12-30', true)") == "9999-12-31T03:00:00.000Z"
    assert page.run("address.js", "m.instant('9999-12-31', true)") == "9999-12-31"
    assert page.run("address.js", "m.instant('0002-01-31', false)").startswith("0002-01-31T")


def test_ages_are_written_in_minutes_hours_days_or_months(page: Console) -> None:
    now = "new Date('2026-03-31T15:00:00Z').getTime()"
    said = [
        page.run("format.js", f"m.ago(new Date({now} - {days} * 86400000).toISOString(), {now})")
        for days in range(1, 34)
    ]
    assert said[:30] == ["ontem", "anteontem", *(f"há {days} dias" for days in range(3, 31))]
    assert said[30:] == ["há 1 mês"] * 3
    minutes = [
        page.run("format.js", f"m.ago(new Date({now} - {past} * 60000).toISOString(), {now})") for past in (1, 119, 120)
    ]
    assert minutes == ["há 1 minuto", "há 1 hora", "há 2 horas"]
    after_midnight = "new Date('2026-03-31T04:00:00Z').getTime()"
    assert page.run("format.js", f"m.ago('2026-03-31T02:00:00Z', {after_midnight})") == "há 2 horas"
    short = "new Date('2026-03-31T15:00:00Z')"
    assert (
        page.run("format.js", "m.ago('2026-03-01T02:59:00Z', new Date('2026-03-31T03:01:00Z').getTime())")
        == "há 30 dias"
    )
    assert page.run("format.js", f"[m.shortDay({short}, {short}), m.shortDay({short}, new Date(2027, 0))]") == [
        "31/03",
        "31/03/2026",
    ]


def test_the_same_day_of_another_month_is_written_with_its_date(page: Console) -> None:
    said = "m.moment(new Date('2026-03-05T15:00:00Z'), new Date('2026-04-05T15:00:00Z'))"
    assert page.run("format.js", said) == "12:00:00 de 05/03/2026"


def test_a_day_of_the_clock_ends_at_local_midnight(page: Console) -> None:
    """São Paulo is three hours behind UTC: an evening there is after midnight in UTC."""
    assert page.run("format.js", "m.inputDay(new Date('2026-03-06T02:30:00Z'))") == "2026-03-05"
    said = "m.moment(new Date('2026-03-05T23:30:00Z'), new Date('2026-03-06T{}:30:00Z'))"
    assert page.run("format.js", said.format("02")) == "20:30:00"
    assert page.run("format.js", said.format("03")) == "20:30:00 de 05/03/2026"


def test_only_values_of_date_filters_are_written_as_dates(page: Console) -> None:
    words = [page.run("format.js", f"m.valueWords('{name}', '2024-02-29')") for name in ("atualizado_em_de", "nome")]
    assert words == ["29/02/2024", "2024-02-29"]


@pytest.mark.parametrize("text", AWKWARD)
def test_quoted_text_is_read_back_by_a_shell_and_by_python(page: Console, text: str) -> None:
    page.page.evaluate("(text) => { window.text = text }", text)
    word = page.run("copyas.js", "m.shell(text)")
    done = subprocess.run(["sh", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert done.stdout.decode() == text
    assert ast.literal_eval(page.run("copyas.js", "m.python(text)")) == text


@pytest.mark.parametrize(("value", "literal"), [("true", "True"), ("false", "False")])
def test_copied_python_asks_for_the_same_manual_validation(page: Console, value: str, literal: str) -> None:
    code = page.run("copyas.js", f"m.sdk('http://host', '/relatorios', {{ pendente_validacao_manual: '{value}' }})")
    assert f"client.relatorios(pendente_validacao_manual={literal})" in code


def test_a_leading_equals_sign_is_quoted_for_zsh(page: Console) -> None:
    assert page.run("copyas.js", "[m.shell('=ls'), m.shell('nome==ls')]") == ["'=ls'", "nome==ls"]


def test_csv_cells_are_quoted_and_cannot_be_formulas(page: Console) -> None:
    cases = {'a"b': '"a""b"', "a,b": '"a,b"', "=1+1": "'=1+1", "@x": "'@x", "-1": "'-1", "": "", "a\nb": '"a\nb"'}
    cases |= {f"{sign}1+1": f"'{sign}1+1" for sign in "\uff1d\uff0b\uff0d\uff20"}  # full-width signs, as used in Japan
    cases |= {
        "a;b": '"a;b"',
        "a\tb": '"a\tb"',
        "a;=1": '"a;\'=1"',
        "a,-1;@b": "\"a,'-1;'@b\"",
        "a -1; =b": '"a -1; =b"',
        "a\rb": '"a\rb"',
        "\tx": '"\'\tx"',
        "\rx": '"\'\rx"',
    }
    for text, expected in cases.items():
        page.page.evaluate("(text) => { window.text = text }", text)
        assert page.run("exporting.js", "m.cell(text)") == expected
    assert page.run("exporting.js", "m.line([null, true, 'x'])") == ",true,x\r\n"
    assert page.run("exporting.js", "m.line(['a,b', 'x'], ';')") == '"a,b";x\r\n'


def test_page_numbers_have_gaps_if_there_are_many_pages(page: Console) -> None:
    cases = {
        (1, 1): [1],
        (1, 3): [1, 2, 3],
        (5, 9): [1, 0, 4, 5, 6, 0, 9],
        (3, 5): [1, 2, 3, 4, 5],
        (4, 9): [1, 2, 3, 4, 5, 0, 9],
        (6, 9): [1, 0, 5, 6, 7, 8, 9],
        (400_000, 400_000): [1, 0, 399_999, 400_000],
    }
    for (at, last), expected in cases.items():
        assert page.run("pager.js", f"m.numbers({at}, {last})") == expected


def test_at_most_as_many_tasks_run_at_once_as_the_queue_is_wide(page: Console) -> None:
    ran = """(async () => {
        const enter = m.queue(3)
        let running = 0
        let most = 0
        const task = async () => {
            most = Math.max(most, (running += 1))
            await new Promise((done) => setTimeout(done))
            running -= 1
        }
        await Promise.all(Array.from({ length: 10 }, () => enter(task)))
        return [most, running]
    })()"""
    assert page.run("api.js", ran) == [3, 0]


def test_the_answers_that_were_last_received_are_remembered(page: Console) -> None:
    asked = """(async () => {
        const real = fetch
        globalThis.fetch = async () => new Response('{"result":{}}', { headers: { ETag: '"a"' } })
        const api = m.connect('a'.repeat(16))
        const ask = (page) => api.ask('/usuario', { page: String(page) })
        for (let page = 1; page <= 64; page += 1) await ask(page)
        await ask(1)
        await ask(65)
        globalThis.fetch = real
        return [1, 2, 3, 65].map((page) => api.recall('/usuario', { page: String(page) }) !== null)
    })()"""
    assert page.run("api.js", asked) == [True, False, True, True]


WALKED = """(async () => {
    const has = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`M${at + 10}`, 25]))
    const itens = () => Object.keys(has).sort().flatMap((nome) => Array(has[nome]).fill({ nome }))
    const api = {
        count: async ({ nome }) => has[nome] ?? 0,
        ask: async ({ page }) => {
            const paginacao = { total: itens().length }
            return { paginacao, itens: itens().slice(25 * (page - 1), 25 * page) }
        },
    }
    const first = await m.countMatrices(api, {}, 40)
    Object.assign(has, given)
    return [await m.countMatrices(api, {}, 50, first), Object.keys(has).sort(), has, itens().length]
})()"""


@pytest.mark.parametrize("change", ["{ M15: 28 }", "{ M15: 0 }", "{ M05: 60 }"])
def test_more_matrices_can_be_loaded_after_the_counts_have_changed(page: Console, change: str) -> None:
    found, names, has, reports = page.run("totals.js", WALKED.replace("given", change))
    named = [nome for nome in names if has[nome]][:50]
    assert found["matrices"] == [{"nome": nome, "total": has[nome]} for nome in named]
    assert found["rest"] == reports - sum(has[nome] for nome in named)


CHANGING = """(async () => {
    let asked = 0
    const api = {
        count: async ({ nome }) => (nome === 'M60' ? 0 : 25),
        ask: async ({ page }) => {
            if ((asked += 1) > 99) throw new Error('too many requests')
            return { paginacao: { total: 2500 + asked }, itens: Array(25).fill({ nome: `M${Number(page) + 9}` }) }
        },
    }
    const { matrices } = await m.countMatrices(api, {}, given)
    return [matrices.length, matrices.every(({ total }) => total === 25)]
})()"""


@pytest.mark.parametrize(("most", "found"), [(40, 40), (60, 50)])
def test_matrices_are_counted_once_while_reports_arrive_and_go(page: Console, most: int, found: int) -> None:
    """The one that would be next, M60, has no reports any more when it is counted."""
    assert page.run("totals.js", CHANGING.replace("given", str(most))) == [found, True]


def test_the_volume_covers_30_days_or_12_months_up_to_the_newest_report(page: Console) -> None:
    newest = "new Date('2026-03-02T02:30:00Z')"  # the evening of 1 March where the analyst is
    for by, parts, begins, ends in (
        ("dias", 30, datetime(2026, 1, 31, tzinfo=SAO_PAULO), datetime(2026, 3, 2, tzinfo=SAO_PAULO)),
        ("meses", 12, datetime(2025, 4, 1, tzinfo=SAO_PAULO), datetime(2026, 4, 1, tzinfo=SAO_PAULO)),
    ):
        spans = page.run("totals.js", f"m.spans('{by}', {newest}).map(({{ from, to }}) => [+from, +to])")
        assert len(spans) == parts
        assert [spans[0][0], spans[-1][1]] == [1000 * at.timestamp() for at in (begins, ends)]
        assert all(one[1] == other[0] for one, other in pairwise(spans))


def test_the_scale_of_a_chart_has_few_round_numbers(page: Console) -> None:
    cases = {
        1: [0, 1],
        5: [0, 1, 2, 3, 4, 5],
        7: [0, 2, 4, 6, 8],
        10: [0, 2, 4, 6, 8, 10],
        26: [0, 10, 20, 30],
        54_321: [0, 20_000, 40_000, 60_000],
    }
    for most, expected in cases.items():
        assert page.run("views/volume.js", f"m.scale({most})") == expected


def test_a_list_of_ten_million_reports_opens_at_its_last_page(page: Console) -> None:
    def enlarged(route: object) -> None:
        answer = route.fetch()  # type: ignore[attr-defined]
        body = answer.json()
        body["result"]["paginacao"]["total"] = 10_000_000
        route.fulfill(response=answer, json=body)  # type: ignore[attr-defined]

    page.intercept("**/relatorios?*sort=numero*", enlarged)
    page.page.locator("th.c-numero button").click()
    page.await_total(10_000_000)
    page.page.get_by_role("link", name="Página 400.000").click()
    page.page.wait_for_url("**page=400000")
    page.settle()
    page.page.unroute_all(behavior="wait")
