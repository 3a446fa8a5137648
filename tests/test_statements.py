"""How many statements, and of which kinds, a request sends to the store."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from effort import Counting
from factories import Account, Store, cpf, relatorio
from laudo.core import plan, query, reading, resources, sql
from laudo.core.axes import PESSOA_CPF, PESSOA_NOME, RELATORIO_MENSAGEM, RELATORIO_RECENCY, Axis, Bounds, Key
from laudo.core.facets import Facets
from laudo.core.lookups import Count, Plain, Read
from laudo.core.sql import POSTGRES, SQLITE, Owner, Statement
from laudo.server import pages
from laudo.server.stores import open_store
from strategies import PESSOA_SORTS, RELATORIO_SORTS
from wsgi import Client, NewApp

TOKEN, CALLER, AGAIN, VERSION = "token", "caller", "caller again", "version"
FACETS, PLACE, PAGE = "facets", "place", "page"
MOST_KEPT = 16_384
"""The longest statement, in bytes, that apsw keeps prepared; a longer one is prepared each time, in milliseconds."""


def kinds_of(database: Counting) -> list[str]:
    return [_kind(statement.text) for statement in database.statements]


def _kind(text: str) -> str:
    if "FROM usuario" in text:
        return AGAIN if "FROM token" in text else CALLER
    if "FROM token" in text:
        return TOKEN
    if text.startswith("SELECT version FROM"):
        return VERSION
    if "SELECT facet, total" in text or "SELECT 0, total" in text:
        return FACETS
    return PAGE if "group_concat" in text or "string_agg" in text else PLACE


class Asked(NamedTuple):
    """A client of an account with reports, a client without a token, and the store that counts for both."""

    database: Counting
    account: Account
    client: Client
    nobody: Client

    @property
    def again(self) -> list[str]:
        """The statements for a known caller while nothing has changed: none if the engine has marks."""
        return [] if self.database.mark() is not None else [AGAIN]


@pytest.fixture
def asked(store: Store, store_url: str, account: Account, new_app: NewApp) -> Iterator[Asked]:
    store.write(account, [relatorio(number) for number in range(30)])
    database = Counting(open_store(store_url))
    application = new_app(database)
    yield Asked(database, account, Client(application, account.token), Client(application, None))
    database.close()


def test_creating_the_application_sends_no_statement(asked: Asked) -> None:
    assert (asked.database.snapshots, asked.database.statements) == (0, [])


@pytest.mark.parametrize(
    "url",
    [
        *("/relatorios?nome=consultaPessoaDefault", "/relatorios?status=CONCLUIDO&sort=-resultado"),
        "/relatorios?sort=-numero_documento&nome=consultaPessoaDefault",
        *("/relatorios?numero_documento=52998224725", "/relatorios?rows=100&tipo_pessoa=PESSOA"),
        *("/relatorios?sort=status", "/pessoas?cpf=52998224725"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_first_page_takes_four_statements_and_one_snapshot(asked: Asked, method: str, url: str) -> None:
    assert asked.client.ask(method, url).status == 200
    assert kinds_of(asked.database) == [TOKEN, CALLER, FACETS, PAGE]
    assert asked.database.snapshots == 1


WHOLE = (
    *("/relatorios", "/relatorios?sort=numero", "/relatorios?sort=numero_documento", "/relatorios?sort=mensagem"),
    *("/relatorios?sort=atualizado_em", "/relatorios?sort=-numero", "/relatorios?sort=-mensagem"),
    *("/pessoas", "/pessoas?busca=&sort=nome", "/pessoas?sort=-nome"),
)


@pytest.mark.parametrize(
    "asked_for",
    [
        *("page=2", "sort=-mensagem&page=2", "sort=numero&page=9", "rows=50&page=2&sort=-numero_documento"),
        *("atualizado_em_de=2026-01-01", "sort=atualizado_em&atualizado_em_ate=2027-01-01&page=2"),
        *("numero_documento=52998224725", "numero=7a2b6c1e-3f7e-4a51-9d55-0f6f6f2f9d10"),
    ],
)
def test_facets_are_not_read_where_the_number_of_rows_suffices(asked: Asked, asked_for: str) -> None:
    assert asked.client.get(f"/relatorios?{asked_for}").status == 200
    assert [each.text for each in asked.database.statements if "FROM facet" in each.text] == []


@pytest.mark.parametrize("url", WHOLE)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_unfiltered_first_page_takes_one_statement_besides_the_callers(
    asked: Asked, store: Store, method: str, url: str
) -> None:
    for number, callers in enumerate(([TOKEN, CALLER], [AGAIN])):
        assert asked.client.ask(method, url).status == 200
        assert (kinds_of(asked.database), asked.database.snapshots) == ([*callers, PAGE], 0)
        assert "FROM facet" not in (asked_last := asked.database.statements[-1].text), asked_last
        assert "FROM bucket" not in asked_last
        store.write(asked.account, [relatorio(100 + number, numero_documento="11144477735")])
        asked.database.forget()


@pytest.mark.parametrize("sort", ["-atualizado_em", "numero", "numero_documento", "mensagem"])
def test_an_unfiltered_walk_continues_without_facets_after_a_change(asked: Asked, store: Store, sort: str) -> None:
    following = asked.client.get(f"/relatorios?sort={sort}").links["next"]
    store.write(asked.account, [relatorio(100)])
    asked.database.forget()
    assert asked.client.get(following).itens
    assert kinds_of(asked.database) == [AGAIN, VERSION, PAGE]


@pytest.mark.parametrize("sort", ["mensagem", "-mensagem"])
def test_a_filtered_walk_within_one_message_reads_only_the_page(
    asked: Asked, store: Store, monkeypatch: pytest.MonkeyPatch, sort: str
) -> None:
    monkeypatch.setattr(plan, "FEW", 0)
    store.write(asked.account, [relatorio(each, status="PENDENTE") for each in range(30, 90)])
    following = asked.client.get(f"/relatorios?sort={sort}&status=PENDENTE").links["next"]
    asked.database.forget()
    assert len(asked.client.get(following).itens) == 25
    assert kinds_of(asked.database) == [*asked.again, VERSION, PAGE]


@pytest.mark.parametrize(
    ("url", "kinds"),
    [
        # A later page: the coarse buckets, the fine ones, the row within one, and the page from there.
        ("/relatorios?page=2", [PLACE, PLACE, PLACE, PAGE]),
        # A range with one end: the bucket in which it ends, and the rows in there; its first page begins the list.
        ("/relatorios?atualizado_em_de=2026-01-31", [PLACE, PLACE, PAGE]),
        # A range with two ends: the bucket of each end, and the rows in there, or those between if both share a bucket.
        ("/relatorios?atualizado_em_de=2026-01-31&atualizado_em_ate=2026-01-31", [PLACE] * 4 + [PAGE]),
        ("/pessoas?busca=5", [PLACE, PLACE, PLACE, PAGE]),
        # A search: the number of persons found, and the page.
        ("/pessoas?busca=mar", [PLACE, PAGE]),
        # The facets alone show that there is no such page, or that nothing matches.
        ("/relatorios?page=99", []),
        ("/relatorios?status=PENDENTE", []),
    ],
)
def test_the_look_ups_of_later_pages_ranges_and_searches(asked: Asked, url: str, kinds: list[str]) -> None:
    assert asked.client.get(url).status == 200
    assert kinds_of(asked.database) == [TOKEN, CALLER, FACETS, *kinds]


@pytest.mark.parametrize(
    ("url", "last"), [("/relatorios", 3), ("/relatorios?sort=numero", 3), ("/pessoas?sort=cpf", 2)]
)
def test_the_last_page_after_the_one_before_takes_one_statement(
    asked: Asked, store: Store, url: str, last: int
) -> None:
    store.write(asked.account, [relatorio(number, numero_documento=cpf(number)) for number in range(30, 60)])
    url = f"{url}{'&' if '?' in url else '?'}page="
    for page in (9, *range(1, last)):  # the first request reads the facets
        asked.client.get(f"{url}{page}")
    asked.database.forget()
    assert 0 < len(asked.client.get(f"{url}{last}").itens) < 25
    assert (kinds_of(asked.database), asked.database.snapshots) == ([*asked.again, PAGE], 0)


@pytest.mark.parametrize("path", ["/relatorios", "/pessoas"])
def test_a_list_known_to_be_empty_is_not_queried(asked: Asked, new_app: NewApp, store: Store, path: str) -> None:
    account = store.account(nome="Vazia")
    other = Client(new_app(asked.database), account.token)
    other.get(f"{path}?rows=50&nome=x")
    asked.database.forget()
    assert other.get(path).total == 0
    assert kinds_of(asked.database) == asked.again
    store.write(account, [relatorio(1)])
    assert other.get(f"{path}?rows=75").total == 1


def test_statements_of_first_pages_are_cached_unless_they_have_many_facets() -> None:
    def asked(facets: int, lower: Key | None = None) -> Statement:
        read = Read(RELATORIO_RECENCY, lower, None, tuple(range(facets)), 25, most=400)
        return sql.in_one_statement(read, resources.RELATORIOS, Owner(1, 2), SQLITE)

    assert asked(28) is asked(28)
    assert asked(28) != asked(29)
    for many in ((1_000, None), (28, (7, b"numero"))):
        assert asked(*many) == asked(*many)
        assert asked(*many) is not asked(*many)


def test_statements_for_many_matching_facets_stay_short(store: Store, asked: Asked) -> None:
    others = [relatorio(number) for number in range(30, 1100)]
    rare = [
        relatorio(number, nome=f"matriz{number}", status="PENDENTE", resultado=None) for number in range(1100, 1170)
    ]
    store.write(asked.account, others + rare)
    for sort in ("-atualizado_em", "atualizado_em", "numero", "-numero"):
        assert asked.client.get(f"/relatorios?status=PENDENTE&sort={sort}").status == 200
    assert max(len(statement.text) for statement in asked.database.statements) < MOST_KEPT


@pytest.mark.parametrize(
    "given", ["sort=-mensagem", "sort=numero_documento", "sort=-numero_documento", "numero_documento=52998224725"]
)
def test_few_reports_of_many_facets_are_found_by_their_facets(
    store: Store, asked: Asked, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """This also holds for a filter by a document that many other reports share."""
    monkeypatch.setattr(plan, "FEW", 200)
    store.write(asked.account, [relatorio(each, nome=f"matriz{each}", status="PENDENTE") for each in range(30, 170)])
    store.write(asked.account, [relatorio(each) for each in range(170, 2_000)])
    assert asked.client.get(f"/relatorios?status=PENDENTE&{given}").total == 140
    text = asked.database.statements[-1].text
    assert "relatorio_facet_recency" in text or "INDEXED BY" not in text


def test_filtered_reports_of_many_messages_are_read_in_few_statements(
    asked: Asked, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FEW", 0)
    monkeypatch.setattr(reading, "FARTHEST", 700)
    reports = [
        relatorio(
            number,
            status="PENDENTE" if number // 300 == number % 10 or number > 3_900 else "CONCLUIDO",
            mensagem="Mensagem 150" if number > 3_000 else f"Mensagem {number % 300:03}",
        )
        for number in range(30, 4_000)
    ]
    store.write(asked.account, reports)
    wanted = sorted((each for each in reports if each.status == "PENDENTE"), key=lambda each: each.numero)
    wanted.sort(key=lambda each: each.mensagem, reverse=True)
    asked.client.get("/relatorios")
    met = []
    for page in range(1, 5):
        asked.database.forget()
        met += asked.client.get(f"/relatorios?status=PENDENTE&sort=-mensagem&rows=100&page={page}").itens
        assert len(asked.database.statements) < 90
    assert [each["numero"] for each in met] == [each.numero for each in wanted]


def test_a_filtered_range_takes_four_look_ups_and_the_page(asked: Asked, store: Store) -> None:
    long_ago = [relatorio(number, status="PENDENTE", atualizado_em=number) for number in range(30, 90)]
    store.write(asked.account, long_ago)
    assert asked.client.get("/relatorios?status=PENDENTE&atualizado_em_de=1970-01-01").itens
    assert kinds_of(asked.database) == [TOKEN, CALLER, FACETS, *[PLACE] * 4, PAGE]


def test_a_change_rereads_the_token_and_only_the_facets_of_its_list(
    asked: Asked, store: Store, account: Account
) -> None:
    def kinds(url: str) -> list[str]:
        asked.database.forget()
        assert asked.client.get(url).status == 200
        return kinds_of(asked.database)

    assert kinds("/relatorios?sort=-nome") == [TOKEN, CALLER, FACETS, PAGE]
    assert kinds("/relatorios?status=CONCLUIDO") == kinds("/relatorios?sort=nome") == [*asked.again, PAGE]
    store.write(store.account(account.id_organizacao), [relatorio(1, numero_documento="11144477735")])
    assert kinds("/relatorios?sort=nome&rows=50") == [AGAIN, PAGE]
    assert kinds("/pessoas") == kinds("/relatorios") == [*asked.again, PAGE]
    store.write(account, [relatorio(99)])
    assert kinds("/relatorios?sort=nome&rows=50") == [AGAIN, FACETS, PAGE]
    assert kinds("/relatorios?rows=50") == [*asked.again, PAGE]
    # More than one statement needs a snapshot, and a snapshot first reads the version that it sees.
    assert kinds("/relatorios?page=2") == [*asked.again, VERSION, PLACE, PLACE, PLACE, PAGE]


@pytest.mark.engines("sqlite", reason="PostgreSQL fetches a page ahead, which saves a round trip")
def test_a_page_is_not_fetched_before_changes_of_the_list_are_known(asked: Asked, store: Store) -> None:
    assert asked.client.get("/relatorios?sort=nome").status == 200
    store.write(asked.account, [relatorio(99)])
    asked.database.forget()
    assert asked.client.get("/relatorios?sort=-nome").status == 200
    assert kinds_of(asked.database) == [AGAIN, FACETS, PAGE]


@pytest.mark.parametrize(("room", "remembered"), [(3.5, True), (2.5, False), (0.5, False)])
def test_facets_are_remembered_for_as_many_accounts_as_fit(
    asked: Asked, store: Store, monkeypatch: pytest.MonkeyPatch, new_app: NewApp, room: float, *, remembered: bool
) -> None:
    one = Facets([(1, 30, "CONCLUIDO", "Pessoa", "consultaPessoaDefault", "VALID", 0)]).weight
    monkeypatch.setattr(pages, "_FACET_BYTES", int(room * one))
    others = [store.account() for _ in range(2)]
    for other in others:
        store.write(other, [relatorio(1)])
    application = new_app(asked.database)

    def kinds(account: Account, url: str) -> list[str]:
        client = Client(application, account.token)
        assert client.get("/usuario").status == 200
        asked.database.forget()
        assert client.get(url).total
        return kinds_of(asked.database)

    for each in (asked.account, *others):
        assert kinds(each, "/relatorios?sort=status") == [*asked.again, FACETS, PAGE]
        assert kinds(each, "/relatorios?sort=-status") == [*asked.again, PAGE]
    again = [] if remembered else [FACETS]
    assert kinds(asked.account, "/relatorios?sort=nome") == [*asked.again, *again, PAGE]


UNCHANGED = ("/relatorios", "/relatorios?page=2&sort=-nome", "/pessoas?busca=mar")


@pytest.mark.parametrize("url", UNCHANGED)
def test_an_unchanged_page_takes_no_statement(asked: Asked, url: str) -> None:
    first = asked.client.get(url)
    asked.database.forget()
    again = asked.client.get(url)
    unchanged = asked.client.ask("GET", url, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, unchanged.status) == (200, 304)
    assert (asked.database.snapshots, kinds_of(asked.database)) == (0, 2 * asked.again)


@pytest.mark.parametrize("url", UNCHANGED)
def test_a_change_elsewhere_costs_an_unchanged_page_one_statement(asked: Asked, store: Store, url: str) -> None:
    first = asked.client.get(url)
    for headers in ({}, {"If-None-Match": first.headers["etag"]}):
        store.write(store.account(), [relatorio(1)])
        asked.database.forget()
        asked.client.ask("GET", url, headers=headers)
        assert (kinds_of(asked.database), asked.database.snapshots) == ([AGAIN], 0)


def test_without_marks_the_token_is_read_for_each_request(asked: Asked, store_url: str, new_app: NewApp) -> None:
    database = Counting(open_store(store_url), marks=False)
    client = Client(new_app(database), asked.account.token)
    assert client.get("/relatorios").status == 200
    assert kinds_of(database) == [TOKEN, CALLER, PAGE]
    database.forget()
    assert client.get("/relatorios").status == 200
    assert (kinds_of(database), database.snapshots) == ([AGAIN], 0)
    database.close()


def test_a_304_takes_only_the_callers_statements_in_any_worker(asked: Asked, store_url: str, new_app: NewApp) -> None:
    etag = asked.client.get("/relatorios?page=2").headers["etag"]
    database = Counting(open_store(store_url))
    other = Client(new_app(database), asked.account.token)
    assert other.ask("GET", "/relatorios?page=2", headers={"If-None-Match": etag}).status == 304
    assert (kinds_of(database), database.snapshots) == ([TOKEN, CALLER], 0)
    database.close()


def test_without_a_cache_each_request_reads_the_page(asked: Asked, new_app: NewApp) -> None:
    plain = Client(new_app(asked.database, cache_bytes=0), asked.account.token)
    assert len({plain.get("/relatorios").body for _ in range(3)}) == 1
    assert kinds_of(asked.database) == [TOKEN, CALLER, *2 * [PAGE, *asked.again], PAGE]


def test_a_profile_takes_only_the_callers_statements(asked: Asked) -> None:
    assert asked.client.get("/usuario").status == 200
    assert (kinds_of(asked.database), asked.database.snapshots) == ([TOKEN, CALLER], 0)


def test_a_refused_parameter_takes_only_the_callers_statements(asked: Asked) -> None:
    for url, kinds in (
        ("/relatorios?page=0", [TOKEN, CALLER]),
        ("/pessoas?x=1", asked.again),
        ("/usuario?x=1", asked.again),
    ):
        assert asked.client.get(url).status == 400
        assert (kinds_of(asked.database), asked.database.snapshots) == (kinds, 0)
        asked.database.forget()


@pytest.mark.parametrize("path", ["/relatorios", "/pessoas", "/usuario"])
def test_a_malformed_token_is_refused_without_the_store(asked: Asked, path: str) -> None:
    token = asked.account.token
    for bad in ("", "Bearer x", f"Bearer {token}", token[:-1], f"{token}0", f"{token},{token}", "é" * 20, "x" * 201):
        assert asked.nobody.ask("GET", path, headers={"Authorization": bad}).status == 401
    damaged = f"{token[:10]}{'a' if token[10] != 'a' else 'b'}{token[11:]}"
    assert asked.nobody.ask("GET", path, headers={"Authorization": damaged}).status == 401
    assert asked.nobody.get(path).status == 401
    assert (asked.database.snapshots, asked.database.statements) == (0, [])


def test_a_well_formed_unknown_token_takes_one_statement(asked: Asked) -> None:
    assert asked.nobody.ask("GET", "/relatorios?page=0", headers={"Authorization": "x" * 20}).status == 401
    assert kinds_of(asked.database) == [TOKEN]


def test_other_paths_methods_and_constant_routes_never_reach_the_store(asked: Asked) -> None:
    for path in ("/none", "/relatorios/", "//usuario", "/health", "/openapi.json", "/docs", "/"):
        asked.client.get(path)
    for method in ("POST", "DELETE", "OPTIONS", "FOO"):
        asked.client.ask(method, "/relatorios")
    assert (asked.database.snapshots, asked.database.statements) == (0, [])


RELATORIOS = (
    *(f"sort={sort}" for sort in RELATORIO_SORTS),
    *(f"sort={sort}&page=2" for sort in ("numero", "-mensagem", "nome", "-atualizado_em")),
)
PESSOAS = (*(f"sort={sort}" for sort in PESSOA_SORTS), "sort=nome&page=2")


@pytest.mark.parametrize(
    "filters", ["", "&nome=consultaPessoaDefault", "&numero_documento=52998224725", "&atualizado_em_ate=2026-01-31"]
)
@pytest.mark.parametrize("asking", RELATORIOS)
def test_the_statements_of_a_list_of_reports_start_from_the_account(asked: Asked, asking: str, filters: str) -> None:
    assert asked.client.get(f"/relatorios?{asking}{filters}").status == 200
    for statement in asked.database.statements[1:]:
        assert all(where.startswith("id_organizacao = ? AND id_conta = ?") for where in _of_tables(statement))
        bound = [param for param in statement.params if not isinstance(param, list)]
        assert bound[:2] == [asked.account.id_organizacao, asked.account.id_conta]


@pytest.mark.parametrize(
    "filters", ["", "&nome=mar", "&nome=ma da si", "&busca=m", "&busca=5", "&atualizado_em_de=2026-01-01&busca=m"]
)
@pytest.mark.parametrize("asking", PESSOAS)
def test_the_statements_of_a_list_of_people_start_from_the_organization(
    asked: Asked, asking: str, filters: str
) -> None:
    assert asked.client.get(f"/pessoas?{asking}{filters}").status == 200
    id_organizacao = asked.account.id_organizacao
    for statement in asked.database.statements[1:]:
        assert all(where.startswith(("id_organizacao = ?", "pessoa_words MATCH ?")) for where in _of_tables(statement))
        # All organizations share one index of words, but each word in it begins with its organization.
        first, *rest = statement.params
        assert first == id_organizacao or first.startswith(f'"{id_organizacao}·')
        assert all(param[1:].startswith(f"{id_organizacao}·") for param in rest if str(param).endswith(("*", ":*")))


@pytest.mark.parametrize("filters", ["nome=mar sil", "nome=a b c", "nome=mar sil&sort=-nome", "busca=mar sil&rows=50"])
def test_the_index_of_words_is_searched_once_for_a_total_and_a_page(asked: Asked, filters: str) -> None:
    asked.client.get("/usuario")
    asked.database.statements.clear()
    assert asked.client.get(f"/pessoas?{filters}").status == 200
    searched = [len(re.findall("MATCH|::tsquery", statement.text)) for statement in asked.database.statements]
    assert sum(searched) == 1


def _of_tables(statement: Statement) -> list[str]:
    """Return the text after each WHERE, except after those that filter a subquery, which has its own WHERE."""
    return re.sub(r"\) AS \w+ WHERE ", ") AS tested ", statement.text).split(" WHERE ")[1:]


def test_no_value_of_a_request_becomes_part_of_a_statement(asked: Asked) -> None:
    for url in ("/relatorios?nome=segredo&sort=-nome&page=7", "/pessoas?nome=segredo&busca=12"):
        assert asked.client.get(url).status == 200
    assert not [statement for statement in asked.database.statements if "segredo" in statement.text]


@pytest.mark.parametrize(("axis", "is_tested"), [(RELATORIO_MENSAGEM, True), (RELATORIO_RECENCY, False)])
def test_the_server_tests_facets_with_a_hash_unless_an_index_has_them(axis: Axis, *, is_tested: bool) -> None:
    """Comparing 90 thousand rows with each of six thousand facets took 2 s; looking them up in a hash takes 0.1 s."""
    asked = sql.statement(Count(axis, None, None, (1, 2)), Owner(1, 1), POSTGRES).text
    assert ("facet = ANY" in asked, "(SELECT unnest(?::bigint[]))" in asked) == (not is_tested, is_tested)


@pytest.mark.parametrize(
    ("axis", "across", "tested"),
    [
        (RELATORIO_MENSAGEM, Bounds(RELATORIO_RECENCY, (7, b""), None), "recency + 0 >= ?"),
        (PESSOA_NOME, Bounds(PESSOA_CPF, ("5",), None), "cpf || '' >= ?"),
    ],
)
def test_the_server_cannot_choose_the_index_of_a_range_that_is_only_tested(
    axis: Axis, across: Bounds, tested: str
) -> None:
    assert tested in sql.statement(Count(axis, None, None, None, across=across), Owner(1, 1), POSTGRES).text


def test_a_range_of_rows_with_one_value_has_a_test_for_each_column() -> None:
    """PostgreSQL ends a range of pairs only where the first column passes its bound: it would read on to there."""
    read = Read(RELATORIO_MENSAGEM, ("Válido.", b"1"), ("Válido.", b"2"), None, 25)
    asked = sql.statement(read, Owner(1, 1), POSTGRES).text
    assert "mensagem = ? AND numero >= ? AND numero < ?" in asked


@pytest.mark.parametrize(
    ("sort", "facets", "fetched"),
    [
        ("numero_documento", (1, 2), False),
        ("numero_documento", None, True),
        ("mensagem", (1, 2), True),
        ("numero", (1, 2), False),
        ("numero", None, False),
        ("status", (1, 2), False),
    ],
)
def test_rows_are_fetched_for_sorting_only_if_the_index_lacks_the_field(
    sort: str, facets: tuple[int, ...] | None, *, fetched: bool
) -> None:
    """Fetching 13 thousand rows by their keys took 60 ms; reading them from an index with the document takes 3 ms."""
    asked = query.parse(resources.RELATORIOS, f"sort={sort}&atualizado_em_de=2026-06-01", max_rows=25)
    few = Plain(asked, facets, asked.order, 25, 0, None, collect=True)
    assert sql.statement(few, Owner(1, 1), POSTGRES).text.count("CROSS JOIN LATERAL") == 1 + fetched


@pytest.mark.parametrize("sort", ["nome", "-nome", "cpf", "atualizado_em"])
def test_persons_found_by_words_are_fetched_once_for_sorting(sort: str) -> None:
    """No index of an order leads to these persons, so each is fetched once, through the index of words."""
    asked = query.parse(resources.PESSOAS, f"nome=maria&sort={sort}", max_rows=25)
    few = Plain(asked, None, asked.order, 25, 0, None, collect=True, through=asked.words)
    assert sql.statement(few, Owner(1, 1), POSTGRES).text.count("CROSS JOIN LATERAL") == 1
