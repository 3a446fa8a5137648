"""GET /relatorios: the reports of the caller's account."""

import re
from itertools import permutations

import pytest

from factories import NOON, Account, Store, cnpj, cpf, empresa, numero, relatorio
from wsgi import Client

FIELDS = (
    "numero",
    "status",
    "tipo_pessoa",
    "nome",
    "atualizado_em",
    "resultado",
    "mensagem",
    "pendente_validacao_manual",
    "numero_documento",
)


def numeros(client: Client, url: str = "/relatorios", **parameters: object) -> list[str]:
    return [item["numero"] for item in client.get(url, **parameters).itens]


def test_an_account_without_reports_gets_an_empty_list(acme: Client) -> None:
    answer = acme.get("/relatorios")
    assert answer.status == 200
    assert answer.body == (b'{"result":{"itens":[],"paginacao":{"atual":1,"linhas":25,"total":0}},"status_code":200}')


@pytest.mark.parametrize("asked", ["sort=nome&status=CONCLUIDO", "page=2&resultado=VALID"])
def test_filters_find_nothing_in_an_account_without_reports(acme: Client, asked: str) -> None:
    answer = acme.get(f"/relatorios?{asked}")
    assert (answer.status, answer.total, answer.itens) == (200, 0, [])


def test_the_body_has_exactly_the_contracts_keys_in_order(acme: Client, store: Store, account: Account) -> None:
    pending = relatorio(
        1, status="EM ANALISE", resultado=None, mensagem="Pendente de validação", pendente_validacao_manual=True
    )
    company = empresa(2, numero_documento="12ABC34501DE35", mensagem="", nome='Matriz "é" 🙂', atualizado_em=NOON + 7)
    store.write(account, [pending, company])
    assert acme.get("/relatorios").body.decode() == (
        '{"result":{"itens":['
        '{"numero":"00000002-0000-4000-8000-000000000000","status":"CONCLUIDO","tipo_pessoa":"Empresa",'
        '"nome":"Matriz \\"é\\" 🙂","atualizado_em":"2026-01-31T12:00:00.007Z","resultado":"VALID","mensagem":"",'
        '"pendente_validacao_manual":false,"numero_documento":"12ABC34501DE35"},'
        '{"numero":"00000001-0000-4000-8000-000000000000","status":"EM ANALISE","tipo_pessoa":"Pessoa",'
        '"nome":"consultaPessoaDefault","atualizado_em":"2026-01-31T12:00:00.000Z","resultado":null,'
        '"mensagem":"Pendente de validação","pendente_validacao_manual":true,"numero_documento":"52998224725"}'
        '],"paginacao":{"atual":1,"linhas":25,"total":2}},"status_code":200}'
    )


def test_a_list_is_private_utf_8_json_that_varies_by_token(acme: Client) -> None:
    headers = acme.get("/relatorios").stable_headers
    assert headers.pop("content-length").isdigit()
    assert re.fullmatch('"[0-9a-f]{24}"', headers.pop("etag"))
    assert headers.pop("link").startswith("<relatorios?page=1&")
    assert headers == {
        "content-type": "application/json; charset=utf-8",
        "cache-control": "private, no-cache",
        "vary": "Authorization",
        "x-content-type-options": "nosniff",
    }


def test_only_the_reports_of_the_callers_account_are_listed(acme: Client, store: Store, account: Account) -> None:
    sister = store.account(account.id_organizacao)
    store.write(account, [relatorio(1)])
    store.write(sister, [relatorio(1), relatorio(2)])
    assert numeros(acme) == [numero(1)]


# Pages.


@pytest.fixture
def sixty(acme: Client, store: Store, account: Account) -> Client:
    """A client of an account with 60 reports; the one with the largest number is the newest."""
    store.write(account, [relatorio(number, atualizado_em=NOON + number) for number in range(60)])
    return acme


def test_without_parameters_the_first_25_come_newest_first(sixty: Client) -> None:
    answer = sixty.get("/relatorios")
    assert [item["numero"] for item in answer.itens] == [numero(number) for number in range(59, 34, -1)]
    assert answer.json["result"]["paginacao"] == {"atual": 1, "linhas": 25, "total": 60}


def test_pages_are_consecutive_without_gaps_or_repeats(sixty: Client) -> None:
    pages = [numeros(sixty, page=page) for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [25, 25, 10]
    assert [*pages[0], *pages[1], *pages[2]] == [numero(number) for number in range(59, -1, -1)]


@pytest.mark.parametrize("page", ["4", "999999999"])
def test_a_page_past_the_end_is_empty_and_has_the_true_total(sixty: Client, page: str) -> None:
    result = sixty.get("/relatorios", page=page).json["result"]
    assert result == {"itens": [], "paginacao": {"atual": int(page), "linhas": 25, "total": 60}}


@pytest.mark.parametrize(("rows", "shown"), [(25, 25), (50, 50), (75, 60), (1000, 60)])
def test_rows_is_any_multiple_of_25_up_to_the_maximum(sixty: Client, rows: int, shown: int) -> None:
    answer = sixty.get("/relatorios", rows=rows)
    assert len(answer.itens) == shown
    assert answer.json["result"]["paginacao"] == {"atual": 1, "linhas": rows, "total": 60}


@pytest.mark.parametrize("rows", ["0", "1", "24", "26", "-25", "+25", "025", "25.0", "2５", "1025", "1000000000", "x"])
def test_an_invalid_number_of_rows_is_refused(empty: Client, rows: str) -> None:
    answer = empty.get("/relatorios", rows=rows)
    assert answer.keys == ["rows"]
    assert "múltiplo de 25, de 25 a 1000" in answer.json["message"]


@pytest.mark.parametrize("page", ["0", "-1", "+1", "01", "1.0", "1e3", "１", "1000000000", "x", " 1"])
def test_an_invalid_page_is_refused(empty: Client, page: str) -> None:
    assert empty.get("/relatorios", page=page).keys == ["page"]


def test_limit_is_accepted_and_ignored(sixty: Client) -> None:
    assert sixty.get("/relatorios?page=1&limit=5&sort=-atualizado_em").body == sixty.get("/relatorios").body


# Orders.


@pytest.mark.parametrize("field", FIELDS)
def test_it_sorts_by_any_field_of_the_item_in_both_directions(
    acme: Client, store: Store, account: Account, field: str
) -> None:
    low, high = relatorio(1), relatorio(2)
    if field != "numero":
        smaller, larger = {
            "status": ("CONCLUIDO", "PROCESSANDO"),
            "tipo_pessoa": ("Empresa", "Pessoa"),
            "nome": ("A", "B"),
            "atualizado_em": (NOON, NOON + 1),
            "resultado": ("INVALID", "VALID"),
            "mensagem": ("", "a"),
            "pendente_validacao_manual": (False, True),
            "numero_documento": (cpf(1), cpf(2)),
        }[field]
        low, high = relatorio(2, **{field: smaller}), relatorio(1, **{field: larger})
    store.write(account, [low, high])
    assert numeros(acme, sort=field) == [low.numero, high.numero]
    assert numeros(acme, sort=f"-{field}") == [high.numero, low.numero]


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
@pytest.mark.parametrize("sort", ["status", "-status", "-atualizado_em", "resultado"])
def test_ties_are_ordered_by_numero_not_by_order_of_writing(
    acme: Client, store: Store, account: Account, sort: str, order: tuple[int, ...]
) -> None:
    for number in order:
        store.write(account, [relatorio(number)])
    assert numeros(acme, sort=sort) == [numero(1), numero(2), numero(3)]


def test_a_null_result_is_last_in_both_directions(acme: Client, store: Store, account: Account) -> None:
    results = {1: None, 2: "VALID", 3: "INVALID", 4: None}
    store.write(account, [relatorio(number, resultado=resultado) for number, resultado in results.items()])
    assert numeros(acme, sort="resultado") == [numero(number) for number in (3, 2, 1, 4)]
    assert numeros(acme, sort="-resultado") == [numero(number) for number in (2, 3, 1, 4)]


def test_text_sorts_by_code_point(acme: Client, store: Store, account: Account) -> None:
    texts = ["", "A", "Z", "a", "z", "É", "é", "～", "𝒳"]
    store.write(account, [relatorio(99 - number, mensagem=text) for number, text in enumerate(texts)])
    assert [item["mensagem"] for item in acme.get("/relatorios?sort=mensagem").itens] == texts


@pytest.mark.parametrize("sort", ["", "-", "--numero", "Numero", "nome_pessoa", "tipo_pessoa=Pessoa", "numero,status"])
def test_an_unknown_sort_is_refused_with_the_list_of_fields(empty: Client, sort: str) -> None:
    answer = empty.get("/relatorios", sort=sort)
    assert answer.keys == ["sort"]
    assert ", ".join(FIELDS) in answer.json["message"]


# Filters.


def test_numero_documento_finds_a_cpf_or_a_cnpj_in_any_case(acme: Client, store: Store, account: Account) -> None:
    store.write(
        account,
        [
            relatorio(1, numero_documento=cpf(1)),
            relatorio(2, numero_documento=cpf(2)),
            empresa(3, numero_documento=cnpj(3)),
            empresa(4, numero_documento="12ABC34501DE35"),
        ],
    )
    assert numeros(acme, numero_documento=cpf(2)) == [numero(2)]
    assert numeros(acme, numero_documento=cnpj(3)) == [numero(3)]
    assert numeros(acme, numero_documento="12ABC34501DE35") == [numero(4)]
    assert numeros(acme, numero_documento="12abc34501de35") == [numero(4)]


def test_a_document_with_a_wrong_check_digit_matches_nothing(acme: Client, store: Store, account: Account) -> None:
    store.write(account, [relatorio(1, numero_documento="52998224725")])
    for wrong in ("52998224724", "12ABC34501DE36", "00000000000"):
        assert acme.get("/relatorios", numero_documento=wrong).total == 0


@pytest.mark.parametrize(
    "text", ["529.982.247-25", "5299822472", "529982247255", "5299822472５", "12ABC34501DE3A", "12.ABC.345/01DE-35"]
)
def test_a_document_with_a_mask_or_of_another_length_is_refused(empty: Client, text: str) -> None:
    assert empty.get("/relatorios", numero_documento=text).keys == ["numero_documento"]


@pytest.mark.parametrize(
    ("asked", "found"), [("PESSOA", 1), ("Pessoa", 1), ("pessoa", 1), ("EMPRESA", 2), ("Empresa", 2), ("empresa", 2)]
)
def test_tipo_pessoa_is_compared_without_case(
    acme: Client, store: Store, account: Account, asked: str, found: int
) -> None:
    store.write(account, [relatorio(1), empresa(2)])
    assert numeros(acme, tipo_pessoa=asked) == [numero(found)]


def test_nome_is_the_exact_name_of_the_matrix(acme: Client, store: Store, account: Account) -> None:
    names = ["Padrão", "padrão", "Padrao", "Padrão 2", "a&b=c+d %"]
    store.write(account, [relatorio(number, nome=name) for number, name in enumerate(names)])
    for number, name in enumerate(names):
        assert numeros(acme, nome=name) == [numero(number)]
    assert acme.get("/relatorios", nome="Padr").total == 0


def test_numero_is_a_uuid_in_any_case(acme: Client, store: Store, account: Account) -> None:
    uuid = "0f8fad5b-d9cb-469f-a165-70867728950e"
    store.write(account, [relatorio(1), relatorio(numero=uuid)])
    assert numeros(acme, numero=uuid) == numeros(acme, numero=uuid.upper()) == [uuid]
    assert acme.get("/relatorios", numero=numero(5)).total == 0


@pytest.mark.parametrize("text", ["1", "0f8fad5bd9cb469fa16570867728950e", "{0f8fad5b-d9cb-469f-a165-70867728950e}"])
def test_a_malformed_numero_is_refused(empty: Client, text: str) -> None:
    assert empty.get("/relatorios", numero=text).keys == ["numero"]


@pytest.mark.parametrize("resultado", ["VALID", "INVALID"])
def test_resultado_finds_the_reports_with_that_result(
    acme: Client, store: Store, account: Account, resultado: str
) -> None:
    store.write(
        account, [relatorio(1, resultado="VALID"), relatorio(2, resultado="INVALID"), relatorio(3, resultado=None)]
    )
    for asked in (resultado, resultado.lower()):
        assert {item["resultado"] for item in acme.get("/relatorios", resultado=asked).itens} == {resultado}


STATUS = ("PROCESSANDO", "EM ANALISE", "CONCLUIDO", "PRE-PROCESSANDO", "PENDENTE")


@pytest.mark.parametrize("status", STATUS)
def test_status_finds_the_reports_in_that_state(acme: Client, store: Store, account: Account, status: str) -> None:
    store.write(account, [relatorio(number, status=one) for number, one in enumerate(STATUS)])
    assert numeros(acme, status=status) == numeros(acme, status=status.lower()) == [numero(STATUS.index(status))]


def test_status_is_compared_without_case_and_accents(acme: Client, store: Store, account: Account) -> None:
    store.write(account, [relatorio(1, status="EM ANALISE"), relatorio(2)])
    for asked in ("EM ANÁLISE", "Em Análise", "em ana\u0301lise"):
        assert numeros(acme, status=asked) == [numero(1)]


@pytest.mark.parametrize(("asked", "found"), [("true", 1), ("True", 1), ("false", 2), ("FALSE", 2)])
def test_pendente_validacao_manual_is_true_or_false(
    acme: Client, store: Store, account: Account, asked: str, found: int
) -> None:
    store.write(account, [relatorio(1, pendente_validacao_manual=True), relatorio(2)])
    assert numeros(acme, pendente_validacao_manual=asked) == [numero(found)]


@pytest.mark.parametrize(
    ("name", "text", "accepted"),
    [
        ("tipo_pessoa", "PF", "PESSOA, EMPRESA"),
        ("resultado", "null", "VALID, INVALID"),
        ("status", "CONCLUIDA", ", ".join(STATUS)),
        ("pendente_validacao_manual", "1", "true, false"),
    ],
)
def test_an_unknown_value_is_refused_with_the_accepted_values(
    empty: Client, name: str, text: str, accepted: str
) -> None:
    answer = empty.get("/relatorios", **{name: text})
    assert answer.keys == [name]
    assert accepted in answer.json["message"]


def test_filters_are_combined_with_and(acme: Client, store: Store, account: Account) -> None:
    store.write(account, [relatorio(1), relatorio(2, status="PENDENTE"), relatorio(3, resultado=None), empresa(4)])
    assert numeros(acme, status="concluido", tipo_pessoa="Pessoa", resultado="valid") == [numero(1)]
