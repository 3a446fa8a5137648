"""How PostgreSQL runs the statements of a request with generic plans, which it keeps for a prepared statement."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
import pytest
from msgspec.structs import replace

from effort import Counting
from engines import Engine, Stores
from factories import Account, Store
from laudo import demo
from laudo.core import guesses, plan
from laudo.core.plan import FEW
from laudo.core.sql import POSTGRES, How, Statement, Write
from laudo.core.sql.writes import TALLY
from laudo.core.values import render_instant
from laudo.server import app
from laudo.server.config import Settings
from laudo.server.database import Bounds
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.statistics import LEAST
from laudo.server.ingest.writer import Ingest
from laudo.server.postgres.binding import columns, numbered
from laudo.server.stores import open_store
from strategies import PESSOA_SORTS, RELATORIO_SORTS
from test_periods import FREE
from wsgi import Client

REPORTS: Final = 20_000
OFTEN: Final = "11144477735"
MOST_ROWS: Final = 4_500
"""How many rows one step of a plan may meet: about those of a bucket, whose size does not grow with the account."""
SOME: Final = 2_600
"""The limit if many rows share a value and few are read; before version 17 a step also meets rows of other facets."""

DAY: Final = 20_000
DAY_MS: Final = 86_400_000

TALLIES: Final = 60_000
EMPTY: Final = 1_500
"""How many of the tallies a writer has emptied."""

_OWNERS: Final = "generate_series(1000, 20999) AS owner"
SMALL_ONES: Final = (
    f"""
    INSERT INTO relatorio
        (id_organizacao, id_conta, numero, facet, recency, numero_documento, nome_pessoa, mensagem, item)
    SELECT owner, owner, decode(lpad(to_hex(owner), 32, '0'), 'hex'), 1, -owner, '', '', '', '' FROM {_OWNERS}
    """,
    f"""
    INSERT INTO pessoa (id_organizacao, cpf, nome, nome_busca, recency, item)
    SELECT owner, owner, '', 'maria ' || owner, -owner, '' FROM {_OWNERS}
    """,
    f"""
    INSERT INTO bucket SELECT owner, owner, axis, parent, parent + 1, '', 1
    FROM {_OWNERS}, generate_series(1, 7) AS axis, generate_series(0, 1) AS parent
    """,
    f"""
    INSERT INTO tally SELECT owner, owner, axis, parent, 1, parent + 1, 1
    FROM {_OWNERS}, generate_series(1, 7) AS axis, generate_series(0, 1) AS parent
    """,
)
"""Adds thousands of accounts with one report each: a plan made for the average account does not suit a large one."""

RELATORIOS: Final = (
    "",
    "&status=CONCLUIDO",
    "&status=PENDENTE&tipo_pessoa=EMPRESA",
    "&nome=consultaPessoaDefault&resultado=VALID",
    "&pendente_validacao_manual=true",
    "&numero_documento={documento}",
    "&numero={numero}",
)
PAGES: Final = (1, 2, 300, 799)


class Service(NamedTuple):
    """A client, the store that remembers its statements, and a second connection that explains their plans.

    The client `other` has 5 thousand reports, all with one document. The client `third` has 10 thousand reports with
    only two different instants, and the documents of its companies come before those of its persons.
    """

    client: Client
    other: Client
    third: Client
    database: Counting
    explaining: psycopg.Connection[Any]
    url: str
    documento: str
    numero: str


@pytest.fixture(scope="module")
def service(postgres: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("plans")
    with Stores(postgres, folder) as stores:
        url = stores.new()
        writing = open_store(url, write=True)
        store = Store(writing, folder / "laudo.key")
        account, neighbour, third = store.account(), store.account(), store.account()
        some = _fill(store, account, list(demo.relatorios(REPORTS)))
        _fill(store, neighbour, [replace(each, numero_documento=OFTEN) for each in demo.relatorios(REPORTS // 4)])
        _fill(store, third, [_third(each, number) for number, each in enumerate(demo.relatorios(REPORTS // 2))])
        writing.close()
        database = Counting(open_store(url))
        settings = Settings(store=url, key_file=str(store.key_file), log=False, cache_bytes=0)
        application = app.create(settings, database=database)
        with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as explaining:
            for text in SMALL_ONES:
                explaining.execute(text)
            explaining.execute("VACUUM ANALYZE")
            explaining.execute("SET plan_cache_mode = force_generic_plan")
            clients = Client(application, account.token), Client(application, neighbour.token)
            yield Service(*clients, Client(application, third.token), database, explaining, url, *some)
        database.close()


def _fill(store: Store, account: Account, reports: list[Relatorio]) -> tuple[str, str]:
    """Write reports; returns a document and a numero that occur in them."""
    ingest = Ingest(store.database, account.id_conta)
    for start in range(0, len(reports), 2_000):
        ingest.write(reports[start : start + 2_000])
    return reports[7].numero_documento, reports[8].numero


def _third(report: Relatorio, number: int) -> Relatorio:
    """Change a report into one for the third client."""
    company = report.tipo_pessoa == "Empresa"
    documento = f"{number:014}" if company else f"1{report.numero_documento[1:]}"
    return replace(report, atualizado_em=(DAY + number % 2) * DAY_MS, numero_documento=documento)


def steps(explaining: psycopg.Connection[Any], statement: Statement) -> Iterator[dict[str, Any]]:
    """Run a statement as a prepared one; yields each step of its plan with the numbers of rows that it met."""
    types = ", ".join(_type(param) for param in statement.params)
    values = [_value(param) for param in statement.params]
    explaining.execute(b"PREPARE known (%b) AS %b" % (types.encode(), numbered(statement.text)))
    marks = f"({', '.join(['%s'] * len(values))})" if values else ""
    try:
        text = f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE known {marks}"
        [(plan,)] = explaining.execute(text.encode(), values).fetchall()
    finally:
        explaining.execute("DEALLOCATE known")
    yield from _flat(plan[0]["Plan"])


def _type(param: object) -> str:
    if isinstance(param, list):
        return f"{_type(param[0]) if param else 'bigint'}[]"
    return {int: "bigint", bool: "bigint", str: "text", bytes: "bytea"}[type(param)]


def _value(param: object) -> object:
    return int(param) if isinstance(param, bool) else param


def _flat(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _flat(below)


def met(step: dict[str, Any]) -> int:
    """Return how many rows a step has met, including those that it discarded."""
    passed = step["Actual Rows"] + step.get("Rows Removed by Filter", 0) + step.get("Rows Removed by Index Recheck", 0)
    return int(passed * step["Actual Loops"])


def kind(step: dict[str, Any]) -> str:
    """Return a step's type; for a subquery scan, the type of the step below it."""
    return kind(step["Plans"][0]) if step["Node Type"] == "Subquery Scan" else str(step["Node Type"])


def look(service: Service, urls: Iterable[str], *, most: int = MOST_ROWS, beyond: str | None = None) -> set[str]:
    """Send requests and check the plans of all their statements; returns the names of the indexes that were read.

    Each step may meet `most` rows; steps of the kind `beyond` may meet more.
    """
    seen: set[Statement] = set()
    indexes = set()
    for url in urls:
        service.database.forget()
        assert service.client.get(url).status == 200
        for statement in service.database.statements:
            hashable = Statement(statement.text, tuple(map(repr, statement.params)))
            if hashable in seen:
                continue
            seen.add(hashable)
            for step in steps(service.explaining, statement):
                indexes.add(step.get("Index Name", ""))
                where = f"{url}: {step['Node Type']} in {statement.text}"
                assert met(step) <= most or kind(step) == beyond, f"{met(step)} rows met by {where}"
                assert step["Node Type"] != "Seq Scan" or step["Relation Name"] not in LARGE_TABLES, where
    assert seen
    return indexes


WALKED: Final = 1_000
"""How many rows a walk to a page of a search for a common word may meet, or a scan of a small table."""
RANGE: Final = 3_100
"""About the rows of one bucket, which are fewer than all people."""
TIMED: Final = ("numero", "-numero", "numero_documento", "-numero_documento", "status")
"""Orders whose columns the index of time contains."""
LARGE_TABLES: Final = ("relatorio", "pessoa", "tally")
"""The other tables fill a page or two in this store, so a sequential scan is the best way to read them."""


@pytest.mark.parametrize("filters", RELATORIOS)
def test_no_list_of_reports_sorts_or_scans_an_account(service: Service, filters: str) -> None:
    given = filters.format(documento=service.documento, numero=service.numero)
    look(service, (f"/relatorios?sort={sort}&page={page}{given}" for sort, page in product(RELATORIO_SORTS, PAGES)))


@pytest.mark.parametrize(
    ("resource", "sorts", "filters"),
    [
        ("relatorios", RELATORIO_SORTS, ""),
        ("relatorios", RELATORIO_SORTS, "&tipo_pessoa=EMPRESA"),
        ("relatorios", RELATORIO_SORTS, "&atualizado_em_de=2025-06-01"),
        ("pessoas", PESSOA_SORTS, ""),
        ("pessoas", PESSOA_SORTS, "&atualizado_em_de=2025-06-01"),
    ],
)
def test_no_first_page_sorts_an_account_if_random_reads_are_expensive(
    service: Service, resource: str, sorts: tuple[str, ...], filters: str
) -> None:
    """They are if the account exceeds memory; sorting all rows then seems cheaper than reading a tenth by an index."""
    service.explaining.execute("SET random_page_cost = 16")
    try:
        look(service, (f"/{resource}?sort={sort}{filters}" for sort in sorts))
    finally:
        service.explaining.execute("RESET random_page_cost")


@pytest.mark.parametrize("given", ["", "&status=PENDENTE"])
def test_the_first_page_of_a_range_in_another_order_sorts_or_scans_no_account(service: Service, given: str) -> None:
    days = ("2024-03-01", "2025-06-01", "2026-10-01")
    look(
        service,
        (f"/relatorios?atualizado_em_de={day}&sort={sort}{given}" for day, sort in product(days, RELATORIO_SORTS)),
    )


@pytest.fixture
def guessing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowers the thresholds, so that places are guessed as they are among millions of rows."""
    for module, name, value in (*FREE, (guesses, "NEAR", 200)):
        monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("guessing")
@pytest.mark.parametrize("sort", ["numero", "-numero", "status", "numero_documento", "-numero_documento", "mensagem"])
@pytest.mark.parametrize("given", ["", "&status=CONCLUIDO"])
def test_deep_pages_of_a_range_in_another_order_use_index_only_scans(service: Service, sort: str, given: str) -> None:
    pages = (150, 300)
    urls = [f"/relatorios?atualizado_em_de=2025-01-01&sort={sort}&page={page}{given}" for page in pages]
    urls += [
        f"/pessoas?atualizado_em_de=2025-01-01&sort={order}&page={page}" for order in ("nome", "cpf") for page in pages
    ]
    look(service, urls, beyond="Index Only Scan")


@pytest.mark.usefixtures("guessing")
@pytest.mark.parametrize("sort", TIMED)
@pytest.mark.parametrize("given", ["", "&status=CONCLUIDO"])
def test_a_deep_page_of_a_short_period_reads_only_the_period(service: Service, sort: str, given: str) -> None:
    url = f"/relatorios?sort={sort}&atualizado_em_de=2026-08-01{given}"
    total = service.client.get(url).total
    assert 400 < total < REPORTS // 10
    look(service, [f"{url}&page={page}" for page in (total // 75, total // 50)], most=RANGE)


@pytest.mark.usefixtures("guessing")
@pytest.mark.parametrize(
    "given", ["nome=maria&sort={}atualizado_em", "busca=1&sort={}atualizado_em", "busca=1&sort={}nome"]
)
def test_deep_pages_of_a_prefix_in_another_order_use_index_only_scans(
    service: Service, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setattr(plan, "FAR", 0)
    for url in (f"/pessoas?{given.format(sign)}" for sign in ("", "-")):
        total = service.client.get(url).total
        assert total > 200
        look(service, [f"{url}&page={page}" for page in (total // 75, total // 50)], beyond="Index Only Scan")


@pytest.mark.parametrize(
    "given", ["atualizado_em_de={}", "atualizado_em_ate={}", "status=CONCLUIDO&atualizado_em_de={}"]
)
def test_no_range_in_its_own_order_sorts_or_scans_an_account(service: Service, given: str) -> None:
    days = ("2024-03-01", "2025-06-01", "2026-10-01")
    look(
        service,
        (
            f"/relatorios?{given.format(day)}&sort={sort}&page={page}"
            for day, sort, page in product(days, ("atualizado_em", "-atualizado_em"), PAGES)
        ),
    )


@pytest.mark.parametrize("filters", ["", "&status=CONCLUIDO", "&sort=-numero"])
def test_the_first_and_the_last_page_of_a_document_do_not_collect_its_reports(service: Service, filters: str) -> None:
    url = f"/relatorios?numero_documento={OFTEN}{filters}"
    total = service.other.get(url).total
    assert total > FEW
    pages = (1, 2, -(-total // 25))
    look(service._replace(client=service.other), (f"{url}&page={page}" for page in pages))


@pytest.mark.parametrize(
    "given", ["&sort=numero", "&sort=-numero_documento", "&sort=status", "&sort=-nome&status=CONCLUIDO"]
)
def test_pages_of_a_document_in_other_orders_do_not_collect_its_reports(service: Service, given: str) -> None:
    url = f"/relatorios?numero_documento={OFTEN}{given}"
    total = service.other.get(url).total
    assert total > FEW
    look(service._replace(client=service.other), (f"{url}&page={page}" for page in (1, total // 50, -(-total // 25))))


@pytest.mark.parametrize("sort", RELATORIO_SORTS)
def test_few_matches_of_a_common_document_are_found_by_other_filters(service: Service, sort: str) -> None:
    url = f"/relatorios?numero_documento={OFTEN}&status=PENDENTE&tipo_pessoa=EMPRESA&sort={sort}"
    assert 0 < service.other.get(url).total < SOME
    look(service._replace(client=service.other), [url], most=FEW + 1)


def test_companies_at_the_far_end_by_document_are_found_with_few_rows(service: Service) -> None:
    url = "/relatorios?tipo_pessoa=EMPRESA&sort=-numero_documento"
    pages = (
        url,
        f"{url}&page=2",
        service.third.get(url).links["next"],
        service.third.get(f"{url}&page=2").links["next"],
    )
    look(service._replace(client=service.third), pages, most=SOME)


@pytest.mark.parametrize("given", ["", "&status=CONCLUIDO", "&status=PENDENTE&tipo_pessoa=EMPRESA"])
def test_reports_with_equal_instants_are_not_sorted(service: Service, given: str) -> None:
    ranges = ("", f"&atualizado_em_de={render_instant(DAY * DAY_MS)}")
    urls = (f"/relatorios?sort=atualizado_em{period}{given}" for period in ranges)
    look(service._replace(client=service.third), urls)


@pytest.mark.parametrize("given", ["&status=CONCLUIDO", "&tipo_pessoa=PESSOA"])
def test_reports_with_equal_instants_are_not_sorted_after_the_first_page(service: Service, given: str) -> None:
    """If most reports match a filter, they are read in the whole order, however few the server expects per instant."""
    url = f"/relatorios?sort=atualizado_em{given}"
    urls = (f"{url}&page=2", service.third.get(url).links["next"])
    look(service._replace(client=service.third), urls, most=SOME)


@pytest.mark.parametrize(("sort", "page"), [("numero_documento", 60), ("-numero_documento", 1)])
def test_reports_of_one_document_are_not_sorted_for_a_period(service: Service, sort: str, page: int) -> None:
    """A walk by cursor does not read the rows before its page again, either."""
    url = f"/relatorios?atualizado_em_de=2025-01-01&sort={sort}"
    urls = (url, f"{url}&page=2", service.other.get(f"{url}&page={page}").links["next"])
    look(service._replace(client=service.other), urls, most=SOME)


@pytest.mark.parametrize(
    "order", ["relatorios?sort=-numero_documento", "relatorios?sort=-mensagem", "pessoas?sort=-nome"]
)
def test_a_descending_walk_does_not_reread_rows_with_equal_values(service: Service, order: str) -> None:
    url = f"/{order}&atualizado_em_de=2024-06-01"
    client = service.other if "documento" in order else service.client
    last = client.get(url).total // 25
    for page in (last // 3, last // 2, last - 1):
        following = client.get(f"{url}&page={page}").links["next"]
        service.database.forget()
        assert client.get(following).itens
        reading = [statement for statement in service.database.statements if "string_agg" in statement.text]
        assert reading
        assert max(met(step) for statement in reading for step in steps(service.explaining, statement)) < 5 * 25


@pytest.mark.parametrize(
    ("sort", "ordered"),
    [("-mensagem", "relatorio_mensagem_recency"), ("numero_documento", "relatorio_documento")],
)
def test_few_matches_are_not_searched_along_a_whole_order(service: Service, sort: str, ordered: str) -> None:
    """The order's index has all needed columns, which attracts the planner, but does not begin with the filtered ones.

    Rows met do not show this: from version 17 on, a plan does not report rows that an index scan itself discards.
    """
    page = f"/relatorios?status=PENDENTE&tipo_pessoa=EMPRESA&sort={sort}"
    walk = service.client.get(page).links["next"]
    assert ordered not in look(service, [page, walk])


@pytest.mark.parametrize("filters", ["", "&cpf={documento}", "&busca=12", "&atualizado_em_de=2026-10-01"])
def test_no_list_of_people_sorts_or_scans_an_organization(service: Service, filters: str) -> None:
    given = filters.format(documento=service.documento)
    look(service, (f"/pessoas?sort={sort}&page={page}{given}" for sort, page in product(PESSOA_SORTS, (1, 2, 100))))


def test_a_search_uses_the_word_index(service: Service) -> None:
    """The plan may combine it with another index that finds the organization's own persons, if they are few of all."""
    urls = [
        f"/pessoas?{filters}" for filters in ("nome=mar sil", "nome=a b c", "nome=maria&sort=nome", "busca=zulmira")
    ]
    assert "pessoa_words" in look(service, urls, beyond="Bitmap Index Scan")


@pytest.mark.parametrize("sort", PESSOA_SORTS)
def test_the_last_page_of_a_search_is_read_from_the_end(service: Service, sort: str) -> None:
    """Many more persons have the word than such a walk meets, and the last ones are close together."""
    url = f"/pessoas?nome=s&sort={sort}"
    total = service.client.get(url).total
    assert total > 2 * WALKED
    look(service, [f"{url}&page={-(-total // 25)}"], most=WALKED)


@pytest.mark.parametrize("sort", ["nome", "-nome"])
def test_a_word_found_only_at_the_start_of_names_is_read_as_a_range(service: Service, sort: str) -> None:
    urls = [f"/pessoas?nome=maria&sort={sort}&page={page}" for page in (1, 5, 11)]
    assert all(service.client.get(url).itens for url in urls)
    look(service, urls, most=RANGE)


def test_a_profile_meets_at_most_three_rows_per_step(service: Service) -> None:
    look(service, ("/usuario",), most=3)


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
def test_deleting_empty_tallies_is_not_quadratic(postgres: Engine, tmp_path: Path, mode: str) -> None:
    """An import of reports with thousands of combinations deletes empty tallies each time a bucket splits."""
    key = ", ".join(TALLY.key)
    empty = f"SELECT {key} FROM tally WHERE facet <= {EMPTY}"
    with (
        Stores(postgres, tmp_path) as stores,
        psycopg.connect(stores.new(), cursor_factory=psycopg.ClientCursor) as its,
    ):
        facets = f"generate_series(1, {TALLIES}) AS facet"
        its.execute(f"INSERT INTO tally ({key}, total) SELECT 1, 1, 1, 1, facet, 2, 1 FROM {facets}")
        its.execute("ANALYZE tally")
        its.execute(f"SET LOCAL plan_cache_mode = {mode}")
        its.execute(f"UPDATE tally SET total = 0 WHERE facet <= {EMPTY}")
        written = Statement(POSTGRES.written(Write(How.DELETE_EMPTY, TALLY)), columns(its.execute(empty).fetchall()))
        assert max(met(step) for step in steps(its, written)) <= TALLIES
        assert its.execute(empty).fetchall() == []


def test_readers_use_generic_plans_only_once_the_store_is_large(
    service: Service, postgres: Engine, tmp_path: Path
) -> None:
    given = f"{service.url}?options=-c%20plan_cache_mode%3Dforce_custom_plan"
    assert [plans(service.url), plans(given)] == [KEPT, "force_custom_plan"]
    assert plans(service.url, prepare=False) == "auto"
    with Stores(postgres, tmp_path) as stores:
        assert plans(stores.new()) == "auto"


def test_a_large_store_without_persons_counts_as_large(postgres: Engine, tmp_path: Path) -> None:
    """For example one for companies alone. Custom plans would be bad for an account that is new to the statistics."""
    with Stores(postgres, tmp_path) as stores:
        url = stores.new()
        with closing(open_store(url, write=True)) as writing:
            store = Store(writing, tmp_path / "key")
            companies = [each for each in demo.relatorios(10 * LEAST) if each.tipo_pessoa == "Empresa"]
            Ingest(writing, store.account().id_conta).write(companies[:LEAST])
        assert plans(url) == KEPT


def test_a_writer_replans_each_batch_while_its_store_is_small(
    service: Service, postgres: Engine, tmp_path: Path
) -> None:
    """A plan kept from a time when the tables were almost empty reads all of an account for each batch of an import."""
    given = f"{service.url}?options=-c%20plan_cache_mode%3Dforce_custom_plan"
    assert [plans(service.url, write=True), plans(given, write=True)] == [KEPT, "force_custom_plan"]
    with Stores(postgres, tmp_path) as stores:
        assert plans(stores.new(), write=True) == "force_custom_plan"


def plans(url: str, *, write: bool = False, **bounds: bool) -> str:
    """Return the mode in which a connection's statements are planned."""
    with closing(open_store(url, write=write, bounds=Bounds(**bounds))) as database:
        [(mode,)] = database.fetch(Statement("SELECT current_setting('plan_cache_mode')"))
    return str(mode)


KEPT: Final = "force_generic_plan"
