"""A store beside the reference over the same reports; whoever asks both compares each answer."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from factories import SMALL, Account, Store
from laudo.server import app
from laudo.server.config import Settings
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.tallies import Sizes
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store
from reference import Api
from strategies import PESSOA_SORTS, PESSOA_VALUES, RELATORIO_SORTS, RELATORIO_VALUES, History
from wsgi import Answer, Client

List = Literal["relatorios", "pessoas"]
LISTS: Final[tuple[tuple[List, dict[str, tuple[str, ...]], tuple[str, ...]], ...]] = (
    ("relatorios", RELATORIO_VALUES, RELATORIO_SORTS),
    ("pessoas", PESSOA_VALUES, PESSOA_SORTS),
)
"""Each list with the values of its filters and its orders."""


class World(NamedTuple):
    """One store as the service and as the reference see it.

    There are two clients for each account: one in `clients`, whose service caches nothing between requests, and one in
    `led_on`, whose service may use its cache of earlier answers.
    """

    api: Api
    accounts: Sequence[Account]
    clients: Sequence[Client]
    led_on: Sequence[Client]

    def compare(self, resource: List, account: int, query_string: str) -> str:
        """Ask the reference and both clients, which must agree; returns "items", "nothing" or "refused"."""
        return kind(self.answer(resource, account, query_string))

    def answer(self, resource: List, account: int, query_string: str) -> Answer:
        """Ask the reference and both clients, which must agree; returns the answer."""
        wire = query_string.encode().decode("latin-1")
        ask = self.api.relatorios if resource == "relatorios" else self.api.pessoas
        expected = ask(self.accounts[account].id_conta, wire)
        answer = self.clients[account].get(f"/{resource}?{query_string}")
        assert answer.status == expected.status, (query_string, answer.body)
        if expected.status == 200:
            again = self.led_on[account].get(f"/{resource}?{query_string}")
            assert answer.body == again.body == expected.body, query_string
            assert answer.stable_headers == again.stable_headers, query_string
        else:
            assert sorted(answer.keys) == sorted(expected.keys), query_string
        return answer


def kind(answer: Answer) -> str:
    """Classify an answer as "items", "nothing" or "refused"."""
    if answer.status != 200:
        return "refused"
    return "nothing" if b'"itens":[]' in answer.body else "items"


class Written(NamedTuple):
    """A store to which a history was written, and the reference over the same reports."""

    url: str
    key_file: Path
    api: Api
    accounts: Sequence[Account]


@contextmanager
def world(url: str, key_file: Path, history: History) -> Iterator[World]:
    """Write a history into an empty store and open it for reading, as the server does."""
    with opened(written(url, key_file, history)) as made:
        yield made


def written(url: str, key_file: Path, history: History, *, sizes: Sizes = SMALL) -> Written:
    """Write a history into an empty store."""
    with closing(open_store(url, write=True)) as database:
        store = Store(database, key_file)
        accounts: list[Account] = []
        for count in history.organizations:
            first = store.account()
            accounts += [first, *(store.account(first.id_organizacao) for _ in range(1, count))]
        writers = [Ingest(database, account.id_conta, sizes=sizes) for account in accounts]
        for account, batch in history.batches:
            writers[account].write(batch)
    return Written(url, key_file, _api(accounts, history.outcome()), accounts)


def analyzed(written: Written) -> Written:
    """Analyze a store's tables, as autovacuum does within a minute; worthwhile before thousands of queries."""
    with closing(open_store(written.url, write=True)) as database:
        if text := database.dialect.analyze:
            with database.transaction() as connection:
                connection.run_script(text)
    return written


@contextmanager
def opened(written: Written) -> Iterator[World]:
    """Open a store for reading, with services whose caches are empty."""
    url, key_file, api, accounts = written
    with closing(open_store(url)) as database:
        plain, leading = (
            app.create(Settings(store=url, key_file=str(key_file), log=False, cache_bytes=size), database=database)
            for size in (0, 1 << 20)
        )
        clients, led_on = ([Client(asked, account.token) for account in accounts] for asked in (plain, leading))
        yield World(api, accounts, clients, led_on)


def _api(accounts: Sequence[Account], outcome: Sequence[tuple[int, Relatorio]]) -> Api:
    return Api(
        reports=[(accounts[account].id_conta, msgspec.structs.asdict(relatorio)) for account, relatorio in outcome],
        accounts={account.id_conta: account.id_organizacao for account in accounts},
    )
