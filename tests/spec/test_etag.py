"""The ETags of both lists: they identify the state of an answer, so that a known or cached one is not built again."""

import random
import re
import time
from itertools import product
from typing import Final

import pytest

from effort import lines
from factories import NOON, Account, Store, cpf, empresa, relatorio
from laudo.server.accounts import Level
from laudo.server.ingest.records import Relatorio
from strategies import RELATORIO_SORTS, STATUS, many
from wsgi import Client, NewApp, NewClient

LISTS: Final = ("/relatorios", "/pessoas")


def etags(client: Client) -> tuple[str, str]:
    reports, people = (client.get(path).headers["etag"] for path in LISTS)
    return reports, people


@pytest.mark.parametrize("url", ["/relatorios", "/pessoas", "/relatorios?status=PENDENTE", "/pessoas?page=9"])
def test_a_list_has_a_strong_etag_that_is_stable_while_the_list_is(acme: Client, url: str) -> None:
    first, again = acme.get(url), acme.get(url)
    assert re.fullmatch(r'"[A-Za-z0-9_-]+"', first.headers["etag"])
    assert (first.body, first.stable_headers) == (again.body, again.stable_headers)


def test_etags_are_equal_in_all_workers_and_for_all_tokens_of_an_account(
    acme: Client, account: Account, store: Store, client: NewClient, filled: list[Relatorio]
) -> None:
    _, token = store.token(account.id_usuario)
    assert len(filled) == acme.get("/relatorios").total
    assert etags(acme) == etags(client(account.token, cache_bytes=0)) == etags(client(token, log=False))


def test_equivalent_queries_have_equal_etags(acme: Client) -> None:
    for one, other in (
        ("/relatorios", "/relatorios?rows=25&page=1&sort=-atualizado_em&limit=7"),
        ("/relatorios?status=EM+ANALISE&nome=x", "/relatorios?nome=%78&status=em%20an%C3%A1lise"),
        ("/pessoas?atualizado_em_ate=2026-01-31", "/pessoas?atualizado_em_ate=2026-02-01T03:00:00%2B03:00"),
    ):
        assert acme.get(one).headers["etag"] == acme.get(other).headers["etag"]


def test_different_queries_and_accounts_have_different_etags(
    acme: Client, account: Account, store: Store, client: NewClient
) -> None:
    questions = ["", "page=2", "rows=50", "sort=atualizado_em", "atualizado_em_de=2026-01-31"]
    questions += ["atualizado_em_ate=2026-01-31", "atualizado_em_de=2026-02-01"]
    urls = [f"{path}?{question}" for path, question in product(LISTS, questions)]
    urls += ["/relatorios?status=PENDENTE", "/relatorios?nome=PENDENTE", "/pessoas?nome=a", "/pessoas?busca=a"]
    callers = [acme, client(store.account(account.id_organizacao).token), client(store.account().token)]
    seen = {caller.get(url).headers["etag"] for caller, url in product(callers, urls)}
    assert len(seen) == len(callers) * len(urls)


def test_an_import_changes_the_etag_only_if_it_changes_the_list(acme: Client, store: Store, account: Account) -> None:
    def change(*reports: Relatorio) -> tuple[bool, bool]:
        before = etags(acme)
        store.write(account, reports)
        return before[0] != (after := etags(acme))[0], before[1] != after[1]

    assert change(relatorio(1), relatorio(2)) == (True, True)
    assert change(relatorio(1), relatorio(2)) == (False, False)
    assert change(relatorio(1, mensagem="Antes.", atualizado_em=NOON - 1)) == (False, False)
    assert change() == (False, False)
    assert change(relatorio(1, mensagem="Depois.", atualizado_em=NOON + 1)) == (True, True)
    assert change(relatorio(2, mensagem="Entre.", atualizado_em=NOON + 1)) == (True, False)
    assert change(empresa(3)) == (True, False)


def test_a_deletion_changes_the_etag_only_if_it_changes_the_list(acme: Client, store: Store, account: Account) -> None:
    store.write(account, [relatorio(1), relatorio(2, atualizado_em=0), empresa(3)])
    for number, reports_change, people_change in (
        (9, False, False),
        (2, True, False),
        (3, True, False),
        (1, True, True),
    ):
        before = etags(acme)
        assert store.delete(account, number) == reports_change
        after = etags(acme)
        assert (before[0] != after[0], before[1] != after[1]) == (reports_change, people_change)


def test_report_etags_depend_on_the_account_people_etags_on_the_organization(
    acme: Client, store: Store, account: Account
) -> None:
    before = etags(acme)
    store.write(store.account(), [relatorio(1)])
    assert etags(acme) == before
    store.write(store.account(account.id_organizacao), [relatorio(1)])
    assert etags(acme)[0] == before[0]
    assert etags(acme)[1] != before[1]


# If-None-Match.

FORMS: Final = (
    "{}",
    "W/{}",
    "*",
    " {} ",
    '"x", {}',
    '"x",{},"y"',
    'W/"x", W/{}',
    '"x" , {} , "y"',
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
def test_a_known_etag_is_answered_with_304_and_no_body(
    client: NewClient, account: Account, path: str, form: str, cache_bytes: int
) -> None:
    asking = client(account.token, cache_bytes=cache_bytes)
    etag = asking.get(path).headers["etag"]
    for method in ("GET", "HEAD"):
        answer = asking.ask(method, path, headers={"If-None-Match": form.format(etag)})
        assert (answer.status, answer.body) == (304, b"")
        assert answer.stable_headers == {
            "etag": etag,
            "cache-control": "private, no-cache",
            "vary": "Authorization",
            "x-content-type-options": "nosniff",
        }


@pytest.mark.parametrize(
    "known", ['"x"', "", 'W/"x"', "{unquoted}", '"x", "y"', "{etag}x", "x{etag}", "**", '"x" {etag}', "W/ {etag}"]
)
def test_an_unknown_etag_is_answered_with_the_list(acme: Client, known: str) -> None:
    whole = acme.get("/relatorios")
    etag = whole.headers["etag"]
    given = known.format(etag=etag, unquoted=etag.strip('"'))
    answer = acme.ask("GET", "/relatorios", headers={"If-None-Match": given})
    assert (answer.status, answer.body, answer.stable_headers) == (200, whole.body, whole.stable_headers)


@pytest.mark.parametrize("path", [*LISTS, "/docs"])
def test_many_empty_etags_in_if_none_match_are_cheap(acme: Client, path: str) -> None:
    etag = acme.get(path).headers["etag"]
    one, many = ({"If-None-Match": f'{others}"x", {etag}'} for others in ("", "," * 50_000))
    for known in (one, many):
        assert acme.ask("GET", path, headers=known).status == 304
    few = lines(lambda: acme.ask("GET", path, headers=one))
    assert lines(lambda: acme.ask("GET", path, headers=many)) < few + 1_000


def test_an_outdated_etag_is_answered_with_the_current_list(acme: Client, store: Store, account: Account) -> None:
    old = acme.get("/relatorios").headers["etag"]
    store.write(account, [relatorio(1)])
    answer = acme.ask("GET", "/relatorios", headers={"If-None-Match": old})
    assert (answer.status, answer.total) == (200, 1)


def test_refusals_come_before_304(acme: Client, client: NewClient) -> None:
    always = {"If-None-Match": "*"}
    assert client(None).ask("GET", "/relatorios", headers=always).status == 401
    for query, keys in (("page=0", ["page"]), ("x=1", ["x"]), ("cursor=abc", ["cursor"])):
        assert acme.ask("GET", f"/relatorios?{query}", headers=always).keys == keys
    assert acme.ask("GET", "/usuario", headers=always).status == 200


# Read your writes.


def test_every_worker_shows_a_batch_as_soon_as_it_is_acknowledged(
    store: Store, account: Account, new_app: NewApp
) -> None:
    workers = [Client(new_app(), account.token) for _ in range(3)]
    urls = ("/relatorios?rows=1000", "/relatorios?status=CONCLUIDO", "/pessoas?rows=1000", "/relatorios?sort=nome")
    for number in range(12):
        if number % 4 < 3:
            store.write(account, [relatorio(number, numero_documento=cpf(number))])
        else:
            assert store.delete(account, number - 1) == 1
        answers = [[worker.get(url) for url in urls] for worker in workers]
        expected = number + 1 - 2 * ((number + 1) // 4)
        assert {answer.total for asked in answers for answer in asked} == {expected}
        assert {tuple(answer.body for answer in asked) for asked in answers} == {
            tuple(answer.body for answer in answers[0])
        }


def test_a_cached_page_is_not_served_after_revoking_or_disabling(
    store: Store, account: Account, client: NewClient
) -> None:
    id_token, token = store.token(account.id_usuario)
    by_token, by_account = client(token), client(account.token)
    assert by_token.get("/relatorios").body == by_account.get("/relatorios").body
    store.revoke(id_token)
    for known in ({}, {"If-None-Match": "*"}):
        assert by_token.ask("GET", "/relatorios", headers=known).status == 401
        assert by_account.ask("GET", "/relatorios", headers=known).status == (304 if known else 200)
    store.disable(Level.ACCOUNT, account.id_conta)
    assert by_account.get("/relatorios").status == 401


def test_a_cached_page_is_not_served_once_the_token_has_expired(
    store: Store, account: Account, client: NewClient
) -> None:
    def now_ms() -> int:
        return time.time_ns() // 1_000_000

    ends = now_ms() + 500
    _, token = store.token(account.id_usuario, expires_at=ends)
    asking = client(token)
    assert asking.get("/relatorios").status == 200
    asked_at = now_ms()
    while asking.get("/relatorios").status == 200:
        assert asked_at < ends
        asked_at = now_ms()
    assert now_ms() >= ends


# The cache.


def test_a_new_value_is_found_as_soon_as_it_is_written(store: Store, account: Account, acme: Client) -> None:
    """Even if the worker has cached the caller and that nothing matched before."""
    for number, status in enumerate(STATUS):
        assert acme.get("/relatorios").total == number
        store.write(account, [relatorio(number, status=status)])
        assert acme.get("/relatorios", status=status).total == 1


@pytest.mark.parametrize("cache_bytes", [0, 3_000, 60_000, 1 << 24])
def test_a_cached_body_is_never_served_for_another_owner_or_query(
    store: Store, new_app: NewApp, cache_bytes: int
) -> None:
    first = store.account()
    accounts = [first, store.account(first.id_organizacao), store.account()]
    for number, account in enumerate(accounts):
        store.write(account, many(60, seed=number))
    kept, plain = new_app(cache_bytes=cache_bytes), new_app(cache_bytes=0)
    questions = [
        *(f"{path}?page={page}&rows={rows}" for path, page, rows in product(LISTS, (1, 2, 3), (25, 50))),
        *(f"/relatorios?sort={sort}" for sort in RELATORIO_SORTS),
        *(f"/relatorios?status={status}" for status in STATUS[:2]),
        *("/pessoas?nome=maria", "/pessoas?busca=maria", "/pessoas?busca=", "/pessoas?nome=silva"),
    ]
    asked = [*product(accounts, questions)] * 3
    random.Random(4).shuffle(asked)
    for account, url in asked:
        one, other = (Client(app, account.token).get(url) for app in (kept, plain))
        assert (one.body, one.stable_headers) == (other.body, other.stable_headers)
