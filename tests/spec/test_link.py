"""The `Link` header of both lists: pages by number, and walks by cursor, which changes do not disturb."""

import random
import re
from dataclasses import replace
from itertools import product
from typing import Final, Literal

import msgspec
import pytest

from factories import NOON, Account, Store, cpf, numero, relatorio
from laudo.core import cursor as cursors
from laudo.core import query
from laudo.core.errors import ApiError
from laudo.core.resources import RELATORIOS
from laudo.server.ingest.records import Relatorio
from reference import Api, Item
from strategies import PESSOA_SORTS, RELATORIO_SORTS
from wsgi import Answer, Client, NewApp, NewClient

List = Literal["relatorios", "pessoas"]
LISTS: Final = ("/relatorios", "/pessoas")


def test_a_middle_page_links_to_first_prev_next_and_last(full: Client) -> None:
    answer = full.get("/relatorios?page=3&rows=50&sort=-nome")
    assert answer.headers["link"] == (
        '<relatorios?page=1&rows=50&sort=-nome>; rel="first", '
        '<relatorios?page=2&rows=50&sort=-nome>; rel="prev", '
        f'<relatorios?cursor={next_of(answer)}&rows=50&sort=-nome>; rel="next", '
        '<relatorios?page=5&rows=50&sort=-nome>; rel="last"'
    )
    assert full.head("/relatorios?page=3&rows=50&sort=-nome").headers["link"] == answer.headers["link"]


@pytest.mark.parametrize(
    ("page", "relations", "prev"),
    [
        (1, ["first", "next", "last"], None),
        (9, ["first", "prev", "next", "last"], 8),
        (10, ["first", "prev", "last"], 9),
        (11, ["first", "prev", "last"], 10),
        (999_999_999, ["first", "prev", "last"], 10),
    ],
)
def test_pages_at_and_beyond_the_ends_omit_prev_or_next(
    full: Client, page: int, relations: list[str], prev: int | None
) -> None:
    links = full.get(f"/relatorios?page={page}").links
    assert list(links) == relations
    assert "page=10&" in links["last"]
    assert prev is None or f"?page={prev}&" in links["prev"]


def test_the_first_page_of_an_empty_list_is_also_its_last(empty: Client) -> None:
    for path in LISTS:
        links = empty.get(path).links
        assert list(links) == ["first", "last"]
        assert links["first"] == links["last"] == f"{path}?page=1&rows=25&sort=-atualizado_em"


FILTERS: Final = {
    "relatorios": (
        *("nome=consultaPessoaDefault", "nome=%C3%A7%C3%A3o", "nome=a%22b%5Cc", "nome=e%CC%81", "nome=%F0%9F%99%82+x"),
        *("status=em+an%C3%A1lise&pendente_validacao_manual=TRUE", "resultado=invalid", "numero_documento=" + cpf(7)),
        *("atualizado_em_de=2026-02-01", "atualizado_em_ate=2026-02-01", "atualizado_em_ate=9999-12-31"),
        *("atualizado_em_de=0001-01-01", "atualizado_em_de=2026-01-31T12:00:00.001-03:00&tipo_pessoa=pessoa"),
        f"numero={numero(3).upper()}",
    ),
    "pessoas": (
        *("nome=mar+s%C3%ADl", "nome=d%27a", "busca=", "busca=1", "busca=00000", "busca=Maria%20da", f"cpf={cpf(7)}"),
        *("atualizado_em_de=2026-02-01&atualizado_em_ate=2026-02-03", "atualizado_em_ate=9999-12-31&busca=maria"),
    ),
}


@pytest.mark.parametrize(
    ("resource", "filters"), [(resource, one) for resource, all_ in FILTERS.items() for one in all_]
)
def test_links_are_relative_keep_the_query_and_lead_to_the_named_pages(
    full: Client, resource: str, filters: str
) -> None:
    url = f"/{resource}?{filters}&sort=-atualizado_em&rows=25"
    pages = max(1, -(-full.get(url).total // 25))
    for page in range(1, min(pages, 3) + 1):
        links = full.get(f"{url}&page={page}").links
        targets = {"first": 1, "prev": page - 1, "next": page + 1, "last": pages}
        assert links.keys() == {name for name, target in targets.items() if 1 <= target <= pages}
        for name, link in links.items():
            assert re.fullmatch(rf"/{resource}\?[!-~]+", link)
            assert full.get(link).body == full.get(f"{url}&page={targets[name]}").body


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("text", ["atualizado_em_ate=9999-12-31", "atualizado_em_de=9999-12-31T23:59:59.999Z"])
def test_the_latest_possible_instants_are_accepted(empty: Client, path: str, text: str) -> None:
    assert empty.get(empty.get(f"{path}?{text}").links["first"]).status == 200


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "text", ["atualizado_em_de=0001-01-01T00:00:00%2B00:01", "atualizado_em_ate=9999-12-31T23:59:59-00:01"]
)
def test_instants_before_year_1_or_after_year_9999_are_refused(empty: Client, path: str, text: str) -> None:
    assert empty.get(f"{path}?{text}").keys == [text.partition("=")[0]]


# Cursors.


def next_of(answer: Answer) -> str:
    """Give the cursor in the `next` link of an answer."""
    return answer.links["next"].partition("cursor=")[2].partition("&")[0]


def keys(pages: list[Answer], key: str = "numero") -> list[str]:
    return [item[key] for page in pages for item in page.itens]


def test_following_cursors_gives_the_same_pages_as_page_numbers(acme: Client, filled: list[Relatorio]) -> None:
    pages = list(acme.walk("/relatorios?page=3"))
    assert [page.json["result"]["paginacao"]["atual"] for page in pages] == list(range(3, 11))
    assert {page.total for page in pages} == {len(filled)}
    assert [page.body for page in pages] == [acme.get(f"/relatorios?page={page}").body for page in range(3, 11)]


def test_a_page_by_cursor_links_to_its_neighbours(full: Client) -> None:
    links = full.get(full.get("/relatorios?page=3").links["next"]).links
    assert links["prev"] == "/relatorios?page=3&rows=25&sort=-atualizado_em"
    assert list(links) == ["first", "prev", "next", "last"]


def test_rows_may_change_during_a_walk(acme: Client, filled: list[Relatorio]) -> None:
    expected = keys([acme.get("/relatorios?rows=1000")])
    assert len(filled) == len(expected)
    for steps in ((25, 50, 100, 25, 25, 25), (100, 25, 25, 75, 25), (25, 1000), (175, 25, 25, 25)):
        answers = [acme.get(f"/relatorios?rows={steps[0]}")]
        for rows in steps[1:]:
            answers.append(acme.get(f"/relatorios?rows={rows}&cursor={next_of(answers[-1])}"))
        assert keys(answers) == expected[: sum(steps)]
        assert ("next" in answers[-1].links) == (sum(steps) < len(expected))
        assert answers[-1].json["result"]["paginacao"]["atual"] == len(steps)


@pytest.mark.usefixtures("filled")
def test_a_cursor_is_valid_in_every_worker(acme: Client, account: Account, new_app: NewApp) -> None:
    cursor = next_of(acme.get("/relatorios"))
    bodies = {Client(new_app(), account.token).get(f"/relatorios?cursor={cursor}").body for _ in range(2)}
    assert bodies == {acme.get("/relatorios?page=2").body}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
def test_a_page_by_cursor_has_an_etag(client: NewClient, store: Store, account: Account, cache_bytes: int) -> None:
    """Even if the worker has not cached the page."""
    asking = client(account.token, cache_bytes=cache_bytes)
    url = asking.get("/relatorios").links["next"]
    known = {"If-None-Match": asking.get(url).headers["etag"]}
    assert asking.ask("GET", url, headers=known).status == 304
    store.write(account, [relatorio(999)])
    assert asking.ask("GET", url, headers=known).status == 200


def refused(client: Client, url: str) -> bool:
    answer = client.get(url)
    return answer.status == 400 and answer.keys == ["cursor"]


def test_an_altered_cursor_is_refused(acme: Client, filled: list[Relatorio]) -> None:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for sort in ("-atualizado_em", "nome", "numero"):
        cursor = next_of(acme.get(f"/relatorios?sort={sort}"))
        assert len(filled) == acme.get(f"/relatorios?sort={sort}&cursor={cursor}").total
        altered = [cursor[:at] + alphabet[alphabet.index(c) ^ 1] + cursor[at + 1 :] for at, c in enumerate(cursor)]
        altered += [cursor[:-1] + last for last in alphabet if last != cursor[-1]]
        altered += [cursor[:length] for length in range(len(cursor))]
        altered += [f"{cursor}{more}" for more in ("A", "=", "==", "%20", "!", "é", cursor)]
        altered += [f"!{cursor}", f"{cursor[:5]}.{cursor[5:]}", cursor.swapcase(), cursor[::-1], "é" * 20, "A" * 4000]
        for text in altered:
            assert refused(acme, f"/relatorios?sort={sort}&cursor={text}"), text


def test_a_text_too_long_for_a_cursor_is_not_cached(acme: Client) -> None:
    query.parse.cache_clear()
    assert refused(acme, f"/relatorios?cursor={'%F0%9F%98%80' * 4000}")
    assert query.parse.cache_info().currsize == 0


def test_a_cursor_is_valid_for_one_account_only(
    acme: Client, account: Account, store: Store, client: NewClient, filled: list[Relatorio]
) -> None:
    sister, other = store.account(account.id_organizacao), store.account()
    for each in (sister, other):
        store.write(each, filled)
    cursors = {path: next_of(acme.get(path)) for path in LISTS}
    for each, (path, cursor) in product((sister, other), cursors.items()):
        asking = client(each.token)
        assert asking.get(f"{path}?page=2").itens
        assert refused(asking, f"{path}?cursor={cursor}")
    _, token = store.token(account.id_usuario)
    assert client(token).get(f"/relatorios?cursor={cursors['/relatorios']}").status == 200


def test_the_refusal_of_a_cursor_says_what_it_must_match(acme: Client) -> None:
    assert acme.get("/relatorios?cursor=abc").json["message"] == (
        "O parâmetro cursor deve ser o valor informado no cabeçalho Link, para a mesma conta, os mesmos filtros e a "
        "mesma ordenação."
    )


def test_a_cursor_is_valid_for_one_list_order_and_set_of_filters(full: Client) -> None:
    asked = "tipo_pessoa=PESSOA&atualizado_em_de=2026-01-01&sort=nome"
    cursor = next_of(full.get(f"/relatorios?{asked}"))
    assert full.get(f"/relatorios?{asked}&cursor={cursor}").status == 200
    alike = "sort=nome&atualizado_em_de=2026-01-01T00:00Z&tipo_pessoa=pessoa"
    assert full.get(f"/relatorios?{alike}&cursor={cursor}").status == 200
    for other in (
        *("tipo_pessoa=PESSOA&sort=nome", "tipo_pessoa=EMPRESA&atualizado_em_de=2026-01-01&sort=nome"),
        *("tipo_pessoa=PESSOA&atualizado_em_de=2026-01-02&sort=nome", f"{asked}&status=CONCLUIDO", "sort=nome", ""),
        *("tipo_pessoa=PESSOA&atualizado_em_ate=2025-12-31&sort=nome", asked.replace("nome", "-nome")),
        *(asked.replace("nome", "numero"), asked.replace("&sort=nome", "")),
    ):
        assert refused(full, f"/relatorios?{other}&cursor={cursor}"), other
    assert refused(full, f"/pessoas?atualizado_em_de=2026-01-01&sort=nome&cursor={cursor}")


def test_a_cursor_together_with_a_page_is_refused(full: Client) -> None:
    cursor = next_of(full.get("/relatorios"))
    for page in (1, 2):
        assert refused(full, f"/relatorios?page={page}&cursor={cursor}")
        assert refused(full, f"/relatorios?cursor={cursor}&page={page}")


def test_a_cursor_in_the_form_of_another_version_is_refused() -> None:
    asked = query.parse(RELATORIOS, "", max_rows=25)
    sealed = cursors.seal((2, "form"), asked, secret=b"key", owner=(1, 1))  # type: ignore[arg-type]  # another form
    with pytest.raises(ApiError) as caught:
        cursors.unseal(replace(asked, cursor=sealed), secret=b"key", owner=(1, 1))
    assert (caught.value.kind.status, caught.value.keys) == (400, ("cursor",))


@pytest.mark.usefixtures("filled")
def test_a_cursor_of_a_service_with_another_key_is_refused(
    acme: Client, account: Account, store: Store, new_app: NewApp
) -> None:
    cursor = next_of(acme.get("/relatorios"))
    other_file = store.key_file.with_name("other.key")
    other = Store(store.database, other_file)
    _, token = other.token(account.id_usuario)
    asking = Client(new_app(key_file=str(other_file)), token)
    assert asking.get("/relatorios").status == 200
    assert refused(asking, f"/relatorios?cursor={cursor}")


@pytest.mark.parametrize("mensagem", ["🙂" * 500, '"' * 500, "\\" * 500, "<&>" * 166, "a" * 500])
@pytest.mark.parametrize("sort", ["mensagem", "-mensagem"])
def test_a_cursor_can_hold_any_value(acme: Client, store: Store, account: Account, mensagem: str, sort: str) -> None:
    store.write(account, [relatorio(number, mensagem=mensagem) for number in range(60)])
    assert len(set(keys(list(acme.walk(f"/relatorios?sort={sort}"))))) == 60


def test_a_walk_continues_correctly_after_the_page_just_read_is_deleted(
    acme: Client, store: Store, account: Account
) -> None:
    reports = [
        relatorio(number, atualizado_em=NOON + number % 40, numero_documento=cpf(number), nome=f"matriz{number}")
        for number in range(120)
    ]
    store.write(account, reports)
    orders = [("/relatorios", sort) for sort in RELATORIO_SORTS] + [("/pessoas", sort) for sort in PESSOA_SORTS]
    for path, sort in orders:
        key = "numero" if path == "/relatorios" else "cpf"
        first = acme.get(f"{path}?sort={sort}")
        following = [item[key] for item in acme.get(f"{path}?sort={sort}&page=2").itens]
        gone = (
            [item["numero"] for item in first.itens]
            if key == "numero"
            else [numero(number) for number in range(120) if cpf(number) in {item["cpf"] for item in first.itens}]
        )
        numbers = [int(text[:8], 16) for text in gone]
        assert store.delete(account, *numbers) == 25
        assert [item[key] for item in acme.get(first.links["next"]).itens] == following
        store.write(account, [reports[number] for number in numbers])


def test_a_walk_is_complete_when_the_list_grows_before_its_position(
    acme: Client, store: Store, account: Account
) -> None:
    store.write(account, [relatorio(number) for number in range(50)])
    answers = [acme.get("/relatorios")]
    store.write(account, [relatorio(number, atualizado_em=NOON + 1) for number in range(50, 90)])
    answers += acme.walk(answers[0].links["next"])
    assert keys(answers) == [numero(number) for number in range(50)]
    assert [answer.total for answer in answers][:2] == [50, 90]


@pytest.mark.parametrize("path", LISTS)
def test_a_walk_is_complete_when_the_list_shrinks_before_its_position(
    acme: Client, store: Store, account: Account, path: str
) -> None:
    """After the deletion the list has as many items as two pages, but the walk must not stop after two pages."""
    store.write(account, [relatorio(n, atualizado_em=NOON - n, numero_documento=cpf(n)) for n in range(75)])
    whole = [item for page in acme.walk(path) for item in page.itens]
    answers = [acme.get(path)]
    assert store.delete(account, *range(25)) == 25
    answers += acme.walk(answers[0].links["next"])
    assert [item for page in answers for item in page.itens] == whole


def test_mixed_pages_and_walks_are_equal_with_and_without_a_cache(
    store: Store, account: Account, new_app: NewApp
) -> None:
    """A worker remembers where a page ended, for the next page: only of the same list, query and state."""
    seeded = random.Random(15)
    accounts = [account, store.account(account.id_organizacao)]
    for each in accounts:
        store.write(each, [relatorio(number, numero_documento=cpf(number)) for number in range(80)])
    apps = [new_app(cache_bytes=size) for size in (1 << 20, 0)]
    pages = [(each, f"{path}?page={page}") for each in accounts for path in LISTS for page in (1, 2, 3)]
    walks: list[tuple[Account, str]] = []
    for number in range(300):
        each, url = seeded.choice(walks[-12:] if number % 3 == 2 else pages)
        one, other = (Client(served, each.token).get(url) for served in apps)
        assert (one.status, one.body, one.stable_headers) == (200, other.body, other.stable_headers), url
        if "next" in one.links:
            walks.append((each, one.links["next"]))
        if number % 25 == 24:
            store.write(account, [relatorio(number, numero_documento=cpf(number), atualizado_em=NOON + number)])
            store.delete(accounts[1], number // 25)


# Walks through whole lists.

WALKED: Final = {
    "relatorios": (
        *("", "status=PENDENTE", "nome=consulta&resultado=VALID", "atualizado_em_de=2026-02-01", "tipo_pessoa=EMPRESA"),
        *("pendente_validacao_manual=true&atualizado_em_ate=2026-02-02", f"numero_documento={cpf(7)}"),
        "atualizado_em_de=2026-02-01&atualizado_em_ate=2026-02-03&status=CONCLUIDO",
    ),
    "pessoas": (
        *("", "nome=mar", "nome=mar+sil", "busca=0000001", "atualizado_em_de=2026-02-02", f"cpf={cpf(7)}"),
        *("busca=0000001&atualizado_em_ate=2026-02-05", "busca=0&nome=silva", "nome=mar&atualizado_em_de=2026-02-01"),
    ),
}


@pytest.mark.parametrize("resource", ["relatorios", "pessoas"])
def test_a_walk_with_any_filter_and_order_equals_the_reference(
    acme: Client, account: Account, filled: list[Relatorio], resource: List
) -> None:
    api = Api(
        reports=[(account.id_conta, msgspec.structs.asdict(report)) for report in filled],
        accounts={account.id_conta: account.id_organizacao},
    )
    for sort, filters in product(RELATORIO_SORTS if resource == "relatorios" else PESSOA_SORTS, WALKED[resource]):
        question = f"sort={sort}&{filters}".rstrip("&")
        whole: list[Item] = api.listing(resource, account.id_conta, question).items
        for rows in (25, 75):
            pages = list(acme.walk(f"/{resource}?{question}&rows={rows}"))
            assert [item for page in pages for item in page.itens] == whole, question
            assert {page.total for page in pages} == {len(whole)}
            assert len(pages) == max(1, -(-len(whole) // rows))
