"""GET /pessoas: the CPFs that the caller's organization has consulted."""

import pytest

from factories import NOON, Account, Store, cpf, empresa, relatorio
from wsgi import Client

NAMES = ("Maria da Silva", "MÁRIO SILVEIRA", "Ana-Maria Souza", "José D'Ávila", "Silvana Marques", "João")


def cpfs(client: Client, **parameters: object) -> list[str]:
    return [item["cpf"] for item in client.get("/pessoas", **parameters).itens]


def names(client: Client, **parameters: object) -> set[str]:
    return {item["nome"] for item in client.get("/pessoas", **parameters).itens}


@pytest.fixture
def named(acme: Client, store: Store, account: Account) -> Client:
    """A client of an organization that has consulted the people of NAMES; the last one is the newest."""
    store.write(
        account,
        [
            relatorio(number, nome_pessoa=name, numero_documento=cpf(100 + number), atualizado_em=NOON + number)
            for number, name in enumerate(NAMES)
        ],
    )
    return acme


def test_an_organization_that_consulted_nobody_gets_an_empty_list(acme: Client) -> None:
    assert acme.get("/pessoas").body == (
        b'{"result":{"busca":"","itens":[],"paginacao":{"atual":1,"linhas":25,"total":"0"}},"status_code":200}'
    )


def test_the_body_has_the_contracts_keys_in_order_and_a_string_total(
    acme: Client, store: Store, account: Account
) -> None:
    store.write(account, [relatorio(1, nome_pessoa='João "Zé" 🙂', atualizado_em=NOON + 50)])
    assert acme.get("/pessoas").body.decode() == (
        '{"result":{"busca":"","itens":['
        '{"cpf":"52998224725","nome":"João \\"Zé\\" 🙂","atualizado_em":"2026-01-31T12:00:00.050Z"}'
        '],"paginacao":{"atual":1,"linhas":25,"total":"1"}},"status_code":200}'
    )


def test_pessoas_has_the_same_headers_as_relatorios(acme: Client) -> None:
    own = {"content-length", "etag", "link"}
    people, reports = acme.get("/pessoas").stable_headers, acme.get("/relatorios").stable_headers
    assert people.keys() == reports.keys() >= own
    assert {people[name] == reports[name] for name in people.keys() - own} == {True}


# Which people appear.


def test_a_cpf_appears_once_with_the_name_and_instant_of_its_newest_report(
    acme: Client, store: Store, account: Account
) -> None:
    for number, instant, name in ((1, NOON, "Antes"), (2, NOON + 2, "Agora"), (3, NOON + 1, "Entre")):
        store.write(account, [relatorio(number, atualizado_em=instant, nome_pessoa=name)])
    [item] = acme.get("/pessoas").itens
    assert (item["nome"], item["atualizado_em"]) == ("Agora", "2026-01-31T12:00:00.002Z")


def test_every_account_sees_all_people_of_its_organization(acme: Client, store: Store, account: Account) -> None:
    sister, stranger = store.account(account.id_organizacao), store.account()
    store.write(account, [relatorio(1, numero_documento=cpf(1), nome_pessoa="Aqui")])
    store.write(sister, [relatorio(2, numero_documento=cpf(1), nome_pessoa="Ali", atualizado_em=NOON + 1)])
    store.write(sister, [relatorio(3, numero_documento=cpf(2), nome_pessoa="Outra")])
    store.write(stranger, [relatorio(4, numero_documento=cpf(1), nome_pessoa="Fora", atualizado_em=NOON + 9)])
    assert names(acme) == {"Ali", "Outra"}


def test_companies_do_not_appear(acme: Client, store: Store, account: Account) -> None:
    store.write(account, [empresa(1, nome_pessoa="Acme Ltda."), relatorio(2, nome_pessoa="Maria")])
    assert names(acme) == {"Maria"}


# Filters.


def test_cpf_finds_one_person_and_is_echoed(named: Client) -> None:
    answer = named.get("/pessoas", cpf=cpf(102))
    assert [item["nome"] for item in answer.itens] == ["Ana-Maria Souza"]
    assert answer.json["result"]["busca"] == cpf(102)
    assert answer.json["result"]["paginacao"] == {"atual": 1, "linhas": 25, "total": "1"}


def test_a_cpf_with_wrong_check_digits_matches_nobody(named: Client) -> None:
    assert named.get("/pessoas?cpf=00000000000").total == 0


@pytest.mark.parametrize("text", ["529.982.247-25", "5299822472", "529982247250", "5299822472a", "５2998224725", ""])
def test_a_cpf_is_eleven_digits_without_mask(empty: Client, text: str) -> None:
    assert empty.get("/pessoas", cpf=text).keys == ["cpf"]


@pytest.mark.parametrize(
    ("name", "same"),
    [("राम कुमार", "र म क"), ("ศิริ", "ศ ร"), ("Jo\u00adsé", "se jo"), ("\u200fMaria\u200e", "maria"), ("田中", "田")],
)
def test_signs_that_are_no_letters_separate_words_in_any_script(
    acme: Client, store: Store, account: Account, name: str, same: str
) -> None:
    store.write(account, [relatorio(nome_pessoa=name)])
    for asked in (name, same):
        assert acme.get("/pessoas", nome=asked).total == 1


@pytest.mark.parametrize("name", ["nome", "busca"])
@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("mar sil", {"Maria da Silva", "MÁRIO SILVEIRA", "Silvana Marques"}),
        ("sil mar", {"Maria da Silva", "MÁRIO SILVEIRA", "Silvana Marques"}),
        ("MÁRIA", {"Maria da Silva", "Ana-Maria Souza"}),
        ("𝐌aria", {"Maria da Silva", "Ana-Maria Souza"}),
        ("maria  silva", {"Maria da Silva"}),
        ("da silva mari", {"Maria da Silva"}),
        ("s m d", {"Maria da Silva"}),
        ("m ma mar si", {"Maria da Silva", "MÁRIO SILVEIRA", "Silvana Marques"}),
        ("da silva maria ilva", set()),
        ("da", {"Maria da Silva"}),
        ("avila", {"José D'Ávila"}),
        ("d'a", {"José D'Ávila"}),
        ("joão", {"João"}),
        ("joao", {"João"}),
        ("aria", set()),
        ("maria mario", set()),
        ("m%", {"Maria da Silva", "MÁRIO SILVEIRA", "Ana-Maria Souza", "Silvana Marques"}),
        ("mari_", {"Maria da Silva", "MÁRIO SILVEIRA", "Ana-Maria Souza"}),
    ],
)
def test_every_search_word_must_begin_a_word_of_the_name(named: Client, name: str, asked: str, found: set[str]) -> None:
    answer = named.get("/pessoas", **{name: asked})
    assert {item["nome"] for item in answer.itens} == found
    assert answer.total == len(found)
    assert answer.json["result"]["busca"] == asked


@pytest.mark.parametrize("name", ["nome", "busca"])
@pytest.mark.parametrize("text", ["㌖" * 84, "maria " + "…" * 166 + " zzz", "…" * 167 + " maria"])
def test_a_text_too_long_after_normalization_is_refused(named: Client, name: str, text: str) -> None:
    """Each text has at most 200 characters, but more than 500 after Unicode normalization."""
    refused = named.get("/pessoas", **{name: text})
    assert refused.keys == [name]
    assert refused.json["message"].endswith("até 200 caracteres (no máximo 500 após a normalização Unicode).")
    longest = "maria m " + "…" * 164
    assert names(named, **{name: longest}) == {"Maria da Silva", "Ana-Maria Souza"}


@pytest.mark.parametrize("text", ["", " ", "-", "🙂", "%"])
def test_a_name_without_any_letter_or_digit_is_refused(empty: Client, text: str) -> None:
    assert empty.get("/pessoas", nome=text).keys == ["nome"]


def test_busca_of_digits_finds_cpfs_by_prefix(named: Client) -> None:
    start = cpf(102)[:9]
    assert cpfs(named, busca=start) == [cpf(102)]
    assert cpfs(named, busca="0000001", sort="cpf") == [cpf(100 + number) for number in range(6)]
    assert cpfs(named, busca=cpf(102)[1:]) == []
    assert named.get("/pessoas", busca=start).json["result"]["busca"] == start


def test_busca_of_other_digits_than_0_to_9_finds_words(acme: Client, store: Store, account: Account) -> None:
    store.write(account, [relatorio(1, nome_pessoa="João 2º", numero_documento=cpf(200_000_000))])
    assert names(acme, busca="\N{FULLWIDTH DIGIT TWO}") == {"João 2º"}


def test_an_empty_busca_filters_nothing(named: Client) -> None:
    assert named.get("/pessoas?busca=").body == named.get("/pessoas").body


def test_the_echo_prefers_busca_to_nome_and_nome_to_cpf(named: Client) -> None:
    given = {"cpf": cpf(100), "nome": "Maria", "busca": "Síl"}
    assert named.get("/pessoas", **given).json["result"]["busca"] == "Síl"
    del given["busca"]
    assert named.get("/pessoas", **given).json["result"]["busca"] == "Maria"


def test_the_echo_is_the_unchanged_search_text(named: Client) -> None:
    text = 'MÁR "<&> \\ 🙂'
    assert named.get("/pessoas", nome=text).json["result"]["busca"] == text


def test_filters_are_combined_with_and(named: Client) -> None:
    assert names(named, nome="maria", busca="0000001") == {"Maria da Silva", "Ana-Maria Souza"}
    assert names(named, nome="maria", cpf=cpf(102)) == {"Ana-Maria Souza"}
    assert names(named, nome="maria", busca="souza", cpf=cpf(100)) == set()


# Orders and pages.


def test_without_sort_the_newest_comes_first(named: Client) -> None:
    assert cpfs(named) == [cpf(100 + number) for number in (5, 4, 3, 2, 1, 0)]


def test_it_sorts_by_cpf_and_by_instant_in_both_directions(named: Client) -> None:
    ascending = [cpf(100 + number) for number in range(6)]
    assert cpfs(named, sort="cpf") == cpfs(named, sort="atualizado_em") == ascending
    assert cpfs(named, sort="-cpf") == cpfs(named, sort="-atualizado_em") == ascending[::-1]


def test_sorting_by_name_ignores_case_and_accents_and_breaks_ties_by_cpf(
    acme: Client, store: Store, account: Account
) -> None:
    given = {3: "álvaro", 1: "Alvaro", 2: "ALVARO", 4: "Zoé", 5: "bia", 6: "Élio", 7: "Alvaro Zé"}
    store.write(account, [relatorio(n, nome_pessoa=name, numero_documento=cpf(n)) for n, name in given.items()])
    assert cpfs(acme, sort="nome") == [cpf(number) for number in (1, 2, 3, 7, 5, 6, 4)]
    assert cpfs(acme, sort="-nome") == [cpf(number) for number in (4, 6, 5, 7, 1, 2, 3)]


@pytest.mark.parametrize("sort", ["numero", "nome_pessoa", "--cpf", "", "-"])
def test_an_unknown_sort_is_refused_with_the_list_of_fields(empty: Client, sort: str) -> None:
    answer = empty.get("/pessoas", sort=sort)
    assert answer.keys == ["sort"]
    assert "cpf, nome, atualizado_em" in answer.json["message"]


def test_pages_are_consecutive_and_a_page_past_the_end_is_empty(acme: Client, store: Store, account: Account) -> None:
    store.write(account, [relatorio(number, numero_documento=cpf(number)) for number in range(60)])
    pages = [cpfs(acme, page=page, sort="cpf") for page in (1, 2, 3, 4)]
    assert [len(page) for page in pages] == [25, 25, 10, 0]
    assert [*pages[0], *pages[1], *pages[2]] == [cpf(number) for number in range(60)]
    assert acme.get("/pessoas?page=4").json["result"]["paginacao"] == {"atual": 4, "linhas": 25, "total": "60"}


@pytest.mark.parametrize("name", ["numero", "numero_documento", "status", "tipo_pessoa"])
def test_a_filter_of_the_other_list_is_refused(empty: Client, name: str) -> None:
    assert empty.get("/pessoas", **{name: "1"}).keys == [name]


def test_limit_is_accepted_and_ignored(named: Client) -> None:
    assert named.get("/pessoas?limit=1").body == named.get("/pessoas").body
