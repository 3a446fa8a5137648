"""Pages of a period in an order other than time are found by guessing, for any distribution of the period's reports."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache, partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import pytest
from msgspec.structs import replace

from effort import Counting, Noted
from engines import Engine, Stores
from factories import NOON
from laudo.core import across, guesses, plan, points, sql, walking
from laudo.core.axes import Period
from laudo.core.lookups import At, Count, LookUp, Plain, Read
from laudo.core.sql import Dialect, Owner, Statement
from laudo.core.values import render_instant
from laudo.server import app
from laudo.server.config import Settings
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.tallies import Sizes
from laudo.server.stores import open_store
from strategies import History, any_relatorio
from world import List, World, Written, opened, written
from wsgi import Client

REPORTS: Final = 1000
MINUTE: Final = 60_000
ORDERS: Final[tuple[tuple[List, str], ...]] = (
    *(
        ("relatorios", sort)
        for sort in ("numero", "-numero", "numero_documento", "-numero_documento", "nome", "-status")
    ),
    *(("relatorios", sort) for sort in ("mensagem", "-mensagem")),
    *(("pessoas", sort) for sort in ("nome", "-nome", "cpf", "-cpf")),
)
FREE: Final = (
    *((guesses, name, 0) for name in ("GUESSING", "LOCATING", "COUNTING")),
    (across, "COMBINATION", 0),
)
"""Makes guessing and counting cost nothing, so that plans guess even in a small store."""
FILTERS: Final = ("&status=CONCLUIDO", "&resultado=INVALID&pendente_validacao_manual=true")


class Observed(NamedTuple):
    """A store as the service and the reference see it, and a client whose statements are recorded."""

    world: World
    client: Client
    database: Counting


def _evenly(seeded: Random, number: int, time: int) -> Relatorio:
    """Make a report whose place in other orders is independent of its time."""
    return replace(any_relatorio(seeded, number), atualizado_em=NOON + time * MINUTE)


def _together(seeded: Random, _number: int, time: int) -> Relatorio:
    """Make a report whose place in every order follows its time, as with numeros that contain a time."""
    return replace(
        any_relatorio(seeded, time),
        tipo_pessoa="Pessoa",
        nome_pessoa="Maria",
        atualizado_em=NOON + time * MINUTE,
        numero_documento=f"{time // 3:011}",
        mensagem=f"Mensagem {time // 150:02}",
    )


def _many_names(seeded: Random, number: int, time: int) -> Relatorio:
    """Make a report whose `nome` only a few others have."""
    return replace(_evenly(seeded, number, time), nome=f"Modelo {time % 100:02}")


def _own_messages(seeded: Random, number: int, time: int) -> Relatorio:
    """Make a report with a message of its own that contains its time."""
    return replace(_evenly(seeded, number, time), mensagem=f"Protocolo {time:06}")


def _own_persons(seeded: Random, number: int, time: int) -> Relatorio:
    """Make the only report of a person; half of the persons are called Ana."""
    nome = f"{seeded.choice(('Ana', 'Bia'))} {number}"
    evenly = _evenly(seeded, number, time)
    return replace(evenly, tipo_pessoa="Pessoa", numero_documento=f"{number:011}", nome_pessoa=nome)


Way = Callable[[Random, int, int], Relatorio]
WAYS: Final[tuple[Way, ...]] = (_evenly, _together, _many_names, _own_messages)
EVENLY: Final = [pytest.param(_evenly, marks=pytest.mark.xdist_group("periods _evenly"))]
PERSONS: Final = [pytest.param(_own_persons, marks=pytest.mark.xdist_group("periods _own_persons"))]


@pytest.fixture(scope="module")
def of_way(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Way], Written]]:
    """Returns a store whose reports were made by one of these functions; it is filled once."""
    folder = tmp_path_factory.mktemp("periods")

    with Stores(engine, folder) as stores:
        yield cache(partial(_filled, stores, folder))


def _filled(stores: Stores, folder: Path, way: Way, *, reports: int = REPORTS) -> Written:
    seeded, times = Random(5), list(range(reports))
    seeded.shuffle(times)
    made = tuple(way(seeded, number, time) for number, time in enumerate(times))
    sizes, history = Sizes(most_rows=50, most_children=10), History((1,), ((0, made),))
    return written(stores.new(), folder / "laudo.key", history, sizes=sizes)


# Each way is an xdist group of its own, so that no two workers fill the same store.
@pytest.fixture(params=[pytest.param(way, marks=pytest.mark.xdist_group(f"periods {way.__name__}")) for way in WAYS])
def made(request: pytest.FixtureRequest, of_way: Callable[[Way], Written]) -> Written:
    return of_way(request.param)


@pytest.fixture
def observed(made: Written) -> Iterator[Observed]:
    settings = Settings(store=made.url, key_file=str(made.key_file), log=False, cache_bytes=0)
    with opened(made) as world, closing(open_store(made.url)) as database:
        counting = Counting(database)
        yield Observed(world, Client(app.create(settings, database=counting), made.accounts[0].token), counting)


@pytest.mark.parametrize(("near", "most"), [((20, 5), 110), ((0, 0), 150)])
@pytest.mark.parametrize("order", ORDERS)
def test_each_page_takes_few_statements_for_any_distribution_of_reports(
    observed: Observed, monkeypatch: pytest.MonkeyPatch, order: tuple[List, str], near: tuple[int, int], most: int
) -> None:
    resource, sort = order
    for module, name, value in (*FREE, (guesses, "NEAR", near[0]), (guesses, "FEW_OF_RANGE", near[1])):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(points, "APART", 30)
    instants = [render_instant(NOON + minute * MINUTE) for minute in (40, 350, 950)]
    spans = [f"atualizado_em_de={instants[1]}", f"atualizado_em_ate={instants[2]}"]
    spans += [f"atualizado_em_de={instants[0]}&atualizado_em_ate={instants[1]}", f"atualizado_em_de={instants[2]}"]
    filtered, asked = product(FILTERS if resource == "relatorios" else (), (1, 7)), 0
    for span, (filters, page) in product(spans, (*product(("",), (1, 2, 9, 26)), *filtered)):
        question = f"sort={sort}&{span}{filters}&page={page}"
        if observed.world.compare(resource, 0, question) == "items":
            observed.database.forget()
            assert observed.client.get(f"/{resource}?{question}").status == 200
            assert len(observed.database.statements) <= most, question
            asked += 1
    assert asked > 6


@pytest.mark.parametrize("made", EVENLY, indirect=True)
@pytest.mark.parametrize("filters", ["", "&tipo_pessoa=PESSOA"])
@pytest.mark.parametrize("sort", ["numero", "-numero_documento", "mensagem", "-mensagem", "-status"])
def test_a_period_with_all_reports_takes_the_same_lookups_as_no_period(
    observed: Observed, noted: Noted, sort: str, filters: str
) -> None:
    _compare_without_period(observed, noted, "relatorios", f"sort={sort}{filters}&page=9")


@pytest.mark.parametrize("made", EVENLY, indirect=True)
@pytest.mark.parametrize(
    "asked", ["sort=nome", "sort=-cpf", "nome=maria", "busca=silva&sort=nome", "nome=mar+s&sort=cpf"]
)
def test_a_period_with_all_persons_takes_the_same_lookups_as_no_period(
    observed: Observed, noted: Noted, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr(plan, "FEW", 0)
    _compare_without_period(observed, noted, "pessoas", f"{asked}&page=2")


def _compare_without_period(observed: Observed, noted: Noted, resource: List, question: str) -> None:
    """Check that after the look-ups that find the period's ends, the same look-ups follow as without a period."""
    assert observed.client.get(f"/{resource}?{question}").itens
    without = [lookup for lookup, _ in noted]
    ends = f"atualizado_em_de={render_instant(NOON)}", f"atualizado_em_ate={render_instant(NOON + REPORTS * MINUTE)}"
    for period in (*ends, "&".join(ends)):
        assert observed.world.compare(resource, 0, f"{question}&{period}") == "items"
        noted.clear()
        assert observed.client.get(f"/{resource}?{question}&{period}").itens
        assert [lookup for lookup, _ in noted][-len(without) :] == without, period


@pytest.mark.parametrize("made", EVENLY, indirect=True)
@pytest.mark.parametrize(
    ("resource", "asked"),
    [
        *((each, f"sort={sort}") for each, sort in ORDERS if sort != "nome" or each == "pessoas"),
        *(("relatorios", f"sort={sort}&tipo_pessoa=PESSOA") for sort in ("numero", "-numero_documento", "mensagem")),
    ],
)
def test_a_list_counts_the_few_rows_that_its_period_excludes(
    observed: Observed, monkeypatch: pytest.MonkeyPatch, noted: Noted, resource: List, asked: str
) -> None:
    """A client that copies a list up to now, page by page, requests such a period."""
    assert _rows_read_for_the_middle_page(observed, monkeypatch, noted, f"/{resource}?{asked}", (4, REPORTS - 4)) < 120


@pytest.mark.parametrize("made", EVENLY, indirect=True)
@pytest.mark.parametrize("asked", ["nome=maria", "busca=silva", "busca=0"])
def test_a_search_counts_the_few_rows_that_its_period_excludes(
    observed: Observed, monkeypatch: pytest.MonkeyPatch, noted: Noted, asked: str
) -> None:
    monkeypatch.setattr(plan, "FEW", 0)
    since, until = (NOON + minute * MINUTE for minute in (4, REPORTS - 4))
    question = f"{asked}&atualizado_em_de={render_instant(since)}&atualizado_em_ate={render_instant(until)}"
    assert observed.world.compare("pessoas", 0, question) == "items"
    noted.clear()
    assert observed.client.get(f"/pessoas?{question}").itens
    counted = [lookup.query.period for lookup, _ in noted if isinstance(lookup, Plain) and lookup.counted]
    assert counted == [Period(None, since), Period(until, None)]


@pytest.mark.parametrize("made", EVENLY, indirect=True)
@pytest.mark.parametrize("asked", ["relatorios?sort=-numero_documento", "pessoas?sort=cpf", "pessoas?sort=-nome"])
def test_a_short_period_is_counted_by_its_own_rows_in_the_time_index(
    observed: Observed, monkeypatch: pytest.MonkeyPatch, noted: Noted, asked: str
) -> None:
    monkeypatch.setattr(walking, "SORT", 1_000_000)  # No plan collects rows to sort them.
    assert _rows_read_for_the_middle_page(observed, monkeypatch, noted, f"/{asked}", (100, 300)) <= 250
    assert any(isinstance(lookup, Count) and lookup.through for lookup, _ in noted)


@pytest.mark.parametrize("made", PERSONS, indirect=True)
@pytest.mark.parametrize(
    ("asked", "passes_across"),
    [
        *((f"nome=ana&sort={sign}atualizado_em", False) for sign in ("", "-")),
        *((f"nome=ana&sort={sign}cpf", True) for sign in ("", "-")),
        *((f"busca=000000003&sort={sign}atualizado_em", True) for sign in ("", "-")),
        *((f"busca=000000003&sort={sign}nome", False) for sign in ("", "-")),
        ("busca=00000000&sort=nome", True),
    ],
)
def test_a_prefix_in_another_order_is_counted_like_a_period(
    observed: Observed, monkeypatch: pytest.MonkeyPatch, noted: Noted, asked: str, *, passes_across: bool
) -> None:
    """Rows are counted along the order or, if that is cheaper, inside or outside the range."""
    for module, name, value in (*FREE, (guesses, "NEAR", 5), (guesses, "FEW_OF_RANGE", 2), (plan, "FAR", 0)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(walking, "SORT", 1_000_000)  # No plan collects rows to sort them.
    assert observed.client.get(f"/pessoas?{asked}&page=3").itens
    counted = [lookup for lookup, _ in noted if isinstance(lookup, Count) and lookup.across]
    assert counted
    assert any(lookup.through for lookup in counted) == passes_across
    for page in (1, 2, 3, 4, 5, 9):
        assert observed.world.compare("pessoas", 0, f"{asked}&page={page}") in {"items", "nothing"}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("bucket", [4, 7])
def test_a_page_down_messages_ends_although_a_bucket_of_them_is_missing(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: int
) -> None:
    for module, name, value in (*FREE, (guesses, "NEAR", 0), (guesses, "FEW_OF_RANGE", 0)):
        monkeypatch.setattr(module, name, value)
    damaged = _filled(stores, tmp_path, _evenly, reports=600)
    with closing(open_store(damaged.url, write=True)) as database, database.transaction() as connection:
        connection.run_script(f"DELETE FROM bucket WHERE axis = 7 AND bucket = {bucket}")
    with opened(damaged) as world:
        period = f"atualizado_em_de={render_instant(NOON + 350 * MINUTE)}"
        assert world.compare("relatorios", 0, f"sort=-mensagem&{period}&page=2") == "items"


def _rows_read_for_the_middle_page(
    observed: Observed, monkeypatch: pytest.MonkeyPatch, noted: Noted, target: str, minutes: tuple[int, int]
) -> int:
    """Return how many rows the store reads to count those in a period, for the page in the middle of a list."""
    for module, name, value in (*FREE, (guesses, "NEAR", 20), (guesses, "FEW_OF_RANGE", 5)):
        monkeypatch.setattr(module, name, value)
    since, until = (render_instant(NOON + minute * MINUTE) for minute in minutes)
    target += f"&atualizado_em_de={since}&atualizado_em_ate={until}"
    middle = observed.client.get(target).total // 50 + 1
    noted.clear()
    assert observed.client.get(f"{target}&page={middle}").itens
    return sum(_rows_read(observed, lookup) for lookup, _ in noted)


def _rows_read(observed: Observed, lookup: LookUp) -> int:
    """Return how many rows the store reads for this look-up, if it counts those in a period; else 0."""
    if not isinstance(lookup, Count) or lookup.across is None:
        return 0
    axis, lower, upper = lookup.across if lookup.through else (lookup.axis, lookup.lower, lookup.upper)
    account = observed.world.accounts[0]
    owner = Owner(account.id_organizacao, account.id_conta)
    with observed.database.snapshot() as connection:
        rows = sql.statement(Count(axis, lower, upper, None), owner, connection.dialect)
        return int(connection.fetch(rows)[0][0])


@pytest.mark.parametrize("made", EVENLY, indirect=True)
@pytest.mark.parametrize("sort", ["numero", "-numero"])
def test_a_place_near_an_end_is_found_with_few_statements(
    observed: Observed, monkeypatch: pytest.MonkeyPatch, sort: str
) -> None:
    """If rows are evenly distributed, a guess is more exact near an end, so one guess is enough."""
    for module, name, value in (*FREE, (guesses, "NEAR", 20), (guesses, "FEW_OF_RANGE", 5)):
        monkeypatch.setattr(module, name, value)
    assert observed.client.get(f"/relatorios?sort={sort}&atualizado_em_de={render_instant(NOON + 350 * MINUTE)}").itens
    assert len(observed.database.statements) <= 10


@pytest.mark.parametrize("made", EVENLY, indirect=True)
@pytest.mark.parametrize("sort", ["mensagem", "numero_documento", "-numero_documento"])
def test_a_page_is_complete_if_too_few_rows_lie_near_its_place(
    observed: Observed, monkeypatch: pytest.MonkeyPatch, sort: str
) -> None:
    """Only 30 rows are looked at from a guessed place on; the rest of the page is collected."""
    for module, name, value in (*FREE, (guesses, "NEAR", 5), (guesses, "FEW_OF_RANGE", 2)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(walking.Matching, "patience", lambda *_: 30)
    period = f"atualizado_em_de={render_instant(NOON + 350 * MINUTE)}"
    for page in (3, 9, 12, 20):
        assert observed.world.compare("relatorios", 0, f"sort={sort}&{period}&page={page}") == "items"


@pytest.mark.parametrize("field", ["numero", "numero_documento", "mensagem"])
@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("filters", ["", "&tipo_pessoa=PESSOA"])
def test_a_page_reuses_the_counts_of_other_pages(
    made: Written, observed: Observed, monkeypatch: pytest.MonkeyPatch, *, field: str, sign: str, filters: str
) -> None:
    period = f"atualizado_em_de={render_instant(NOON + 350 * MINUTE)}"
    counted, keeping = _rows_counted(made, observed, monkeypatch, f"/relatorios?sort={sign}{field}&{period}{filters}")
    assert 4 * keeping < counted


@pytest.mark.parametrize("made", PERSONS, indirect=True)
@pytest.mark.parametrize("asked", ["nome=ana&sort=atualizado_em", "nome=ana", "busca=00000000&sort=-nome"])
def test_a_page_of_persons_reuses_the_counts_of_other_pages(
    made: Written, observed: Observed, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr(plan, "FAR", 0)
    monkeypatch.setattr(walking, "LOOK", 1000)  # No plan walks through rows or collects them.
    counted, keeping = _rows_counted(made, observed, monkeypatch, f"/pessoas?{asked}")
    assert 2 * keeping < counted


def _rows_counted(made: Written, observed: Observed, monkeypatch: pytest.MonkeyPatch, question: str) -> tuple[int, int]:
    """Return how many rows are counted for non-consecutive pages, without and with points kept between requests."""
    for module, name, value in (*FREE, (guesses, "NEAR", 10), (guesses, "FEW_OF_RANGE", 2)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(points, "APART", 20)
    monkeypatch.setattr(points, "MOST", 100)
    settings = Settings(store=made.url, key_file=str(made.key_file), log=False)
    keeping = Client(app.create(settings, database=observed.database), made.accounts[0].token)
    ask, counted, asking = sql.statement, {observed.client: 0, keeping: 0}, keeping

    def counting(lookup: LookUp, owner: Owner, dialect: Dialect) -> Statement:
        if isinstance(lookup, Count) and lookup.across:
            rows = ask(replace(lookup, across=None, facets=None), owner, dialect)
            counted[asking] += observed.database.fetch(rows)[0][0]
        return ask(lookup, owner, dialect)

    last = observed.client.get(question).total // 25
    monkeypatch.setattr(sql, "statement", counting)
    for pages in (range(2, last, 3), range(4, last, 3)):
        counted = dict.fromkeys(counted, 0)
        for page in pages:
            bodies = set()
            for asking in counted:
                bodies.add(asking.get(f"{question}&page={page}").body)
            assert len(bodies) == 1, page
    return counted[observed.client], counted[keeping]


@pytest.mark.parametrize(
    "made", [pytest.param(_many_names, marks=pytest.mark.xdist_group("periods _many_names"))], indirect=True
)
@pytest.mark.parametrize("sort", ["nome", "-nome", "status", "-resultado"])
def test_a_short_period_with_many_values_takes_few_statements(observed: Observed, sort: str) -> None:
    """Hardly any `nome` has two reports in the period, so going name by name would take a look-up for each report."""
    period = f"atualizado_em_de={render_instant(NOON)}&atualizado_em_ate={render_instant(NOON + 60 * MINUTE)}"
    for page in (1, 2, 3, 4):
        question = f"sort={sort}&{period}&page={page}"
        assert observed.world.compare("relatorios", 0, question) == ("items" if page < 4 else "nothing")
        observed.database.forget()
        assert observed.client.get(f"/relatorios?{question}").total == 60
        assert len(observed.database.statements) <= 14, question


@pytest.mark.parametrize(
    "made", [pytest.param(_many_names, marks=pytest.mark.xdist_group("periods _many_names"))], indirect=True
)
@pytest.mark.parametrize(("minutes", "page", "shown"), [(range(999), 999, 0), (range(100, 101), 1, 1)])
def test_no_value_is_counted_after_the_last_item(
    observed: Observed, monkeypatch: pytest.MonkeyPatch, minutes: range, page: int, shown: int
) -> None:
    """This holds for a page past the end, and for a period whose reports all have the first name."""
    monkeypatch.setattr(across, "COMBINATION", 0)
    since, until = (render_instant(NOON + minute * MINUTE) for minute in (minutes.start, minutes.stop))
    question = f"sort=nome&atualizado_em_de={since}&atualizado_em_ate={until}&page={page}"
    observed.database.forget()
    assert len(observed.client.get(f"/relatorios?{question}").itens) == shown
    assert not [each.text for each in observed.database.statements if "GROUP BY facet" in each.text]


@pytest.mark.parametrize(
    "made",
    [pytest.param(way, marks=pytest.mark.xdist_group(f"periods {way.__name__}")) for way in (_together, _own_messages)],
    indirect=True,
)
@pytest.mark.parametrize("filters", ["", "&tipo_pessoa=PESSOA"])
@pytest.mark.parametrize("field", ["numero", "numero_documento", "mensagem"])
@pytest.mark.parametrize(("sign", "period"), [("", ("de", 940)), ("-", ("ate", 60))])
def test_a_period_at_the_far_end_of_an_order_takes_few_row_reads(
    observed: Observed, monkeypatch: pytest.MonkeyPatch, *, field: str, sign: str, period: tuple[str, int], filters: str
) -> None:
    """If an order follows time, all reports of the period come after all others, so proportions mislead a guess."""
    for module, name, value in (*FREE, (guesses, "NEAR", 20), (walking, "LEAST", 0), (walking, "LOOK", 20)):
        monkeypatch.setattr(module, name, value)
    ask, looked_at = sql.statement, 0

    def counting(lookup: LookUp, owner: Owner, dialect: Dialect) -> Statement:
        nonlocal looked_at
        if isinstance(lookup, At | Read) and lookup.across:
            rows = ask(Count(lookup.axis, lookup.lower, lookup.upper, None, most=lookup.most), owner, dialect)
            looked_at += observed.database.fetch(rows)[0][0]
        return ask(lookup, owner, dialect)

    end, minute = period
    question = f"sort={sign}{field}&atualizado_em_{end}={render_instant(NOON + minute * MINUTE)}{filters}"
    for page in (1, 2):
        looked_at = 0
        monkeypatch.setattr(sql, "statement", ask)
        assert observed.world.compare("relatorios", 0, f"{question}&page={page}") == "items"
        monkeypatch.setattr(sql, "statement", counting)
        assert observed.client.get(f"/relatorios?{question}&page={page}").itens
        assert looked_at < REPORTS // 3, page
