"""How many round trips to the server a request takes (mostly one, with the check of its caller), and a write."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count

import pytest

from factories import NOON, Account, Store, relatorio
from forwarding import Forwarding, ForwardingConnection
from laudo.core.sql import How, Statement, Write
from laudo.core.sql.writes import TOKEN
from laudo.server import keys
from laudo.server.database import Connection, Database, Mark, Row, Unavailable
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store
from laudo.server.tokens import hash_token, new_token
from strategies import many
from wsgi import Client, NewApp

pytestmark = pytest.mark.engines("postgres", reason="SQLite has no round trips")

KNOWN_CALLER = 1
"""How many statements check a known caller."""
STATEMENTS = {
    "/relatorios": 1,
    "/relatorios?status=CONCLUIDO&tipo_pessoa=PESSOA": 1,
    "/relatorios?sort=-numero&rows=50": 1,
    "/relatorios?status=PENDENTE&nome=nenhum": 0,
    "/pessoas": 1,
    "/pessoas?sort=nome&rows=50": 1,
    "/pessoas?busca=maria&atualizado_em_de=2025-06-01": 1,
    "/relatorios?numero=7a2b6c1e-3f7e-4a51-9d55-0f6f6f2f9d10": 1,
    "/relatorios?numero_documento=11144477735&sort=nome": 1,
    "/relatorios?sort=mensagem": 1,
}
"""How many statements a page takes: none if the facets show that it is empty."""


class Counted(Forwarding):
    """A store that counts round trips; the test sets the mark that it returns."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.trips = 0
        self.asked = 0
        self.state: Mark = None

    def fetch(self, statement: Statement) -> list[Row]:
        return self.fetch_each((statement,))[0]

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self.trips += 1
        self.asked += len(statements)
        return self._database.fetch_each(statements)

    def fetch_marked(self, statements: Sequence[Statement]) -> tuple[list[list[Row]], Mark]:
        return self.fetch_each(statements), self.state

    def reading(self, connection: Connection) -> Connection:
        return _CountedConnection(connection, self)

    writing = reading

    def since(self) -> tuple[int, int]:
        """Return the numbers of round trips and statements since the last call."""
        found = self.trips, self.asked
        self.trips = self.asked = 0
        return found


class _CountedConnection(ForwardingConnection[Counted]):
    def fetch(self, statement: Statement) -> list[Row]:
        return self.fetch_each((statement,))[0]

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self._store.trips += 1
        self._store.asked += len(statements)
        return self._connection.fetch_each(statements)

    def lock(self, name: str, *, wait: bool = True) -> None:
        self._store.trips += 1
        super().lock(name, wait=wait)


@pytest.fixture
def counted(store_url: str) -> Iterator[Counted]:
    with closing(open_store(store_url)) as database:
        yield Counted(database)


@pytest.fixture
def acme(new_app: NewApp, counted: Counted, store: Store, account: Account) -> Client:
    """A client of an account with 240 reports; its caller and both lists' facets are known from earlier requests."""
    store.write(account, many(240))
    client = Client(new_app(counted), account.token)
    client.get("/relatorios?rows=75&sort=status")
    client.get("/pessoas?rows=75&busca=maria")
    counted.since()
    return client


@pytest.mark.parametrize("url", STATEMENTS)
def test_a_page_and_the_caller_check_take_one_round_trip(acme: Client, counted: Counted, url: str) -> None:
    first = acme.get(url)
    assert first.status == 200
    assert counted.since() == (1, KNOWN_CALLER + STATEMENTS[url])
    assert acme.get(url).body == first.body
    assert counted.since() == (1, KNOWN_CALLER)
    assert acme.ask("GET", url, headers={"If-None-Match": first.headers["etag"]}).status == 304
    assert counted.since() == (1, KNOWN_CALLER)


@pytest.mark.parametrize("url", ["/relatorios", "/relatorios?sort=-numero", "/pessoas"])
def test_a_changed_list_costs_an_unfiltered_page_one_more_round_trip(
    acme: Client, counted: Counted, store: Store, account: Account, url: str
) -> None:
    before = acme.get(url).total
    store.write(account, [relatorio(900, numero_documento="11144477735")])
    counted.since()
    assert acme.get(url).total > before
    assert counted.since() == (2, KNOWN_CALLER + 1)


@pytest.mark.parametrize("url", STATEMENTS)
def test_the_caller_is_not_checked_again_while_the_store_is_unchanged(acme: Client, counted: Counted, url: str) -> None:
    counted.state = b"unchanged"
    for _ in range(2):
        assert acme.get("/usuario?x").status == 400
        assert counted.since() == (1, KNOWN_CALLER)
    first = acme.get(url)
    assert counted.since() == (1, STATEMENTS[url])
    assert acme.get(url).body == first.body
    for _ in range(2):
        assert acme.ask("GET", url, headers={"If-None-Match": first.headers["etag"]}).status == 304
    assert counted.since() == (3, 0)


def test_a_store_that_keeps_changing_costs_one_extra_round_trip_once(acme: Client, counted: Counted) -> None:
    counted.state = b"unchanged"
    bodies = {acme.get("/relatorios").body for _ in range(4)}
    counted.since()
    for number in range(4):
        counted.state = b"changed %d" % number
        bodies.add(acme.get("/relatorios").body)
        assert counted.since() == (1 if number else 2, KNOWN_CALLER)
    for expected in ((1, KNOWN_CALLER), (1, 0), (1, 0)):
        bodies.add(acme.get("/relatorios").body)
        assert counted.since() == expected
    assert len(bodies) == 1


def test_a_page_fetched_without_its_caller_is_used_after_the_caller_check(acme: Client, counted: Counted) -> None:
    counted.state = b"unchanged"
    assert [acme.get(f"/relatorios?rows={rows}").status for rows in (50, 75)] == [200, 200]
    counted.since()
    counted.state = b"changed"
    assert acme.get("/relatorios").total == 240
    assert counted.since() == (2, KNOWN_CALLER + 1)


def test_a_revoked_token_gets_nothing_fetched_before_the_caller_check(
    acme: Client, counted: Counted, store: Store, account: Account
) -> None:
    counted.state = b"unchanged"
    urls = ("/relatorios", "/relatorios?sort=nome", "/usuario", "/usuario?x")
    assert [acme.get(url).status for url in urls * 2] == [200, 200, 200, 400] * 2
    store.revoke(account.id_token)
    counted.state = b"changed"
    assert [acme.get(url).status for url in urls] == [401] * 4


class Failing(Counted):
    """A store that can be made to fail when its state is asked for."""

    failure: Unavailable | None = None

    def fetch_marked(self, statements: Sequence[Statement]) -> tuple[list[list[Row]], Mark]:
        if self.failure:
            self.trips += 1
            raise self.failure
        return super().fetch_marked(statements)


def test_a_repeated_request_fails_as_soon_as_the_store_fails(new_app: NewApp, store_url: str, account: Account) -> None:
    with closing(open_store(store_url)) as database:
        failing = Failing(database)
        failing.state = b"unchanged"
        client = Client(new_app(failing), account.token)
        assert [client.get("/usuario").status for _ in range(4)] == [200] * 4
        failing.since()
        failing.failure = Unavailable("away")
        refused = client.get("/usuario")
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert failing.since() == (1, 0)
        failing.failure = None
        assert client.get("/usuario").status == 200


def test_two_thousand_tokens_in_turn_take_one_round_trip_each(
    new_app: NewApp, counted: Counted, store: Store, account: Account
) -> None:
    tokens, key = [new_token() for _ in range(2000)], keys.load(store.key_file)
    rows = [
        (account.id_organizacao, hash_token(key, token), 1000 + number, account.id_conta, account.id_usuario, NOON)
        for number, token in enumerate(tokens)
    ]
    with store.database.transaction() as connection:
        connection.write(Write(How.INSERT, TOKEN, ("id_token", "id_conta", "id_usuario", "created_at")), rows)
    service = new_app(counted)
    for _ in range(2):
        counted.since()
        assert {Client(service, token).get("/usuario").status for token in tokens} == {200}
    assert counted.since() == (len(tokens), len(tokens) * KNOWN_CALLER)


def test_the_profile_takes_one_round_trip(acme: Client, counted: Counted) -> None:
    assert acme.get("/usuario").status == 200
    assert counted.since() == (1, KNOWN_CALLER)


def test_a_page_fetched_ahead_is_discarded_when_the_list_has_changed(
    acme: Client, counted: Counted, store: Store, account: Account
) -> None:
    store.write(account, [relatorio(900, atualizado_em=NOON + 10**9)])
    assert acme.get("/relatorios").total == 241
    assert acme.get("/relatorios?page=2").total == 241
    assert counted.since()[0] > 2


def test_a_page_past_the_end_has_the_total_of_the_changed_list(acme: Client, store: Store, account: Account) -> None:
    """The facets alone tell what it shows, so it is ready before the caller check finds the change."""
    assert acme.get("/relatorios?page=98").total == 240
    store.write(account, [relatorio(900)])
    assert acme.get("/relatorios?page=99").total == 241


def test_a_revoked_token_is_refused_before_wrong_parameters(
    acme: Client, counted: Counted, store: Store, account: Account
) -> None:
    assert acme.get("/relatorios?rows=x").keys == ["rows"]
    assert counted.since() == (1, KNOWN_CALLER)
    store.revoke(account.id_token)
    assert acme.get("/relatorios?rows=x").status == 401
    assert acme.get("/relatorios?page=3").status == 401


@pytest.mark.usefixtures("let_pass")
def test_no_page_is_fetched_ahead_for_a_token_over_its_rate_limit(
    new_app: NewApp, counted: Counted, store: Store, account: Account
) -> None:
    store.write(account, many(240))
    client = Client(new_app(counted, rate_limit=2), account.token)
    assert [client.get(f"/relatorios?page={page}").status for page in (1, 2)] == [200, 200]
    counted.since()
    assert [client.get(f"/relatorios?page={page}").status for page in (3, 4)] == [429, 429]
    assert counted.since() == (2, 2 * KNOWN_CALLER)


def test_a_page_is_fetched_ahead_for_a_token_within_its_rate_limit(
    new_app: NewApp, counted: Counted, store: Store, account: Account
) -> None:
    store.write(account, many(240))
    client = Client(new_app(counted, rate_limit=1000, cache_bytes=0), account.token)
    assert client.get("/usuario").status == 200
    counted.since()
    assert client.get("/relatorios").total == 240
    assert counted.since()[0] == 1


STEPS = {
    "/relatorios?page=3": 5,
    "/relatorios?page=3&status=CONCLUIDO": 5,
    "/relatorios?status=CONCLUIDO&atualizado_em_ate=2026-01-31": 4,
    "/relatorios?atualizado_em_de=2026-01-31&atualizado_em_ate=2026-01-31": 4,
    "/relatorios?status=CONCLUIDO&atualizado_em_de=2025-06-01&atualizado_em_ate=2026-01-31": 4,
    "/pessoas?busca=12": 4,
    "/pessoas?busca=mari": 3,
}
"""Round trips of pages that take several: the caller, the coarse buckets (for both ends at once), the fine ones, …"""


@pytest.mark.parametrize("url", STEPS)
def test_independent_look_ups_are_sent_together(acme: Client, counted: Counted, url: str) -> None:
    assert acme.get(url).status == 200
    assert counted.since()[0] == STEPS[url]


@pytest.mark.parametrize("asked", ["busca=mari", "nome=mari sil", "busca=mari&atualizado_em_de=1970-01-02"])
def test_the_counts_of_a_page_serve_other_pages_and_orders(
    acme: Client, new_app: NewApp, counted: Counted, account: Account, asked: str
) -> None:
    alone = Client(new_app(counted, cache_bytes=0), account.token)
    others = [f"/pessoas?{asked}&rows=50&page=2", f"/pessoas?{asked}&sort=-cpf", f"/pessoas?{asked}&sort=cpf&page=2"]
    expected = [alone.get(url).body for url in others]
    assert acme.get(f"/pessoas?{asked}").itens
    counted.since()
    assert [acme.get(url).body for url in others] == expected
    assert counted.since()[0] == len(others)


LED_ON = (
    "relatorios?sort=mensagem",
    "relatorios?sort=numero&rows=50",
    "relatorios?tipo_pessoa=PESSOA",
    "relatorios?atualizado_em_de=1970-01-02",
    "relatorios?atualizado_em_de=1970-01-02&sort=numero_documento",
    "pessoas?nome=m",
    "pessoas?busca=0",
)


@pytest.mark.parametrize("asked", LED_ON)
def test_the_next_page_continues_from_the_last_one_in_one_round_trip(
    acme: Client, new_app: NewApp, counted: Counted, account: Account, asked: str
) -> None:
    alone = Client(new_app(counted, cache_bytes=0), account.token)
    assert alone.get("/relatorios?sort=nome").status == alone.get("/pessoas?busca=maria").status == 200
    counted.since()
    expected = alone.get(f"/{asked}&page=2").body
    assert counted.since()[0] > 1
    assert acme.get(f"/{asked}&page=1").status == 200
    counted.since()
    assert acme.get(f"/{asked}&page=2").body == expected
    assert counted.since() == (1, KNOWN_CALLER + 1)


def test_a_page_does_not_continue_from_one_of_an_older_list_version(
    acme: Client, counted: Counted, store: Store, account: Account
) -> None:
    acme.get("/relatorios?page=2")
    store.write(account, [relatorio(900, atualizado_em=NOON + 10**9)])
    assert acme.get("/relatorios?page=3").itens == acme.get("/relatorios?rows=75").itens[50:]
    assert counted.since()[0] > 5


WRITTEN = 3
"""Round trips before a report is written: for the lock, the stored report, and its person."""
READ_ANEW = 3
"""Round trips to reread what others may have changed: coarse buckets, fine ones of the account, and of persons."""


def test_a_report_takes_few_round_trips_even_by_alternating_writers(
    store_url: str, store: Store, account: Account
) -> None:
    store.write(account, many(240))
    instants = count(NOON + 10**8)
    with closing(open_store(store_url, write=True)) as database:
        counted = Counted(database)
        one, other = (Ingest(counted, account.id_conta) for _ in range(2))

        def trips(ingest: Ingest, number: int, **changes: object) -> int:
            counted.since()
            counts = ingest.write([relatorio(number, atualizado_em=next(instants), **changes)])
            assert counts.inserted + counts.updated == 1
            return counted.since()[0]

        assert trips(one, 900) == WRITTEN + READ_ANEW
        assert trips(one, 900, resultado="INVALID") == WRITTEN
        assert [trips(one, number) for number in range(901, 904)] == [WRITTEN] * 3
        assert [trips(each, 910) for each in (other, one, other)] == [WRITTEN + READ_ANEW] * 3
