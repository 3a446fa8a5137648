"""After imports, updates, deletions and kills in any order, lists equal the reference and counts equal a recount."""

import random
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from engines import Stores
from factories import NOON, Store, numero
from forwarding import Forwarding, ForwardingConnection
from laudo.core.sql import Statement, Write
from laudo.server import app
from laudo.server.config import Settings
from laudo.server.database import Connection, Database, Row
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.tallies import Sizes
from laudo.server.ingest.verify import verify
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store
from reference import Api, Listing, Report
from strategies import PESSOA_SORTS, PESSOA_VALUES, RELATORIO_SORTS, RELATORIO_VALUES, any_relatorio
from wsgi import Client

MOST_REPORTS: Final = 3_000
HISTORIES: Final = 32
STEPS: Final = 14
QUESTIONS: Final = 5
"""How many are asked after each step."""

RECOUNTED: Final = 0.15
"""The share of steps after which everything is recounted. It always is after the last step."""

DAY: Final = 86_400_000
SIZES: Final = {Sizes(8, 3): 300, Sizes(2, 2): 60, Sizes(64, 8): 3_000, Sizes(): 3_000}
"""Sizes of buckets -> the most reports written in one step; small buckets split often, and each split takes time."""
POPULATIONS: Final = (60, 0, 1, 300, 3_000)
CALENDARS: Final = {
    "all equal": (NOON,),
    "one a year": tuple(range(0, 50 * 365 * DAY, 365 * DAY)),
    "a few, many times": tuple(NOON + offset for offset in (-DAY, -1, 0, 1, DAY)),
    "all different": tuple(range(NOON, NOON + 7 * MOST_REPORTS, 7)),
}


class KilledError(BaseException):
    """Simulates the end of the writer's process."""


class Mortal(Forwarding):
    """A store whose writer dies after `left` further steps; each statement and each written row is a step."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.left: int | None = None

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self._database.transaction() as connection:
            yield _MortalConnection(connection, self)
            self.live()

    def live(self) -> None:
        """Take one step; raises KilledError if none are left."""
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise KilledError


class _MortalConnection(ForwardingConnection[Mortal]):
    def fetch(self, statement: Statement) -> list[Row]:
        self._store.live()
        return super().fetch(statement)

    def write(self, write: Write, rows: Iterable[Row]) -> None:
        self._store.live()
        super().write(write, self._lived(rows))

    def run_script(self, text: str) -> None:
        self._store.live()
        super().run_script(text)

    def _lived(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self._store.live()
            yield row


seeds = st.integers(0, 1 << 32)
lives = st.one_of(st.none(), st.none(), st.integers(0, 60), st.integers(0, 20_000))
"""After how many steps a writer is killed; None (half of the time) if it is not."""


class Lists(RuleBasedStateMachine):
    """Three accounts, two of them of one organization, each with two writers, and the reports expected in each."""

    def __init__(self, stores: Stores, key_file: Path) -> None:
        super().__init__()
        url = stores.new()
        self._drop = partial(stores.drop, url)
        self._writing = open_store(url, write=True)
        store = Store(self._writing, key_file)
        first = store.account()
        self._accounts = [first, store.account(first.id_organizacao), store.account()]
        self._stores = [Mortal(open_store(url, write=True)) for _ in range(2)]
        self._reading = open_store(url)
        asked = app.create(Settings(store=url, key_file=str(key_file), log=False), database=self._reading)
        self._clients = [Client(asked, account.token) for account in self._accounts]
        self._reports: list[dict[str, Report]] = [{}, {}, {}]
        self._ingests: dict[tuple[int, int], Ingest] = {}

    @initialize(
        calendar=st.sampled_from(sorted(CALENDARS)),
        sizes=st.sampled_from(list(SIZES)),
        populations=st.lists(st.sampled_from(POPULATIONS), min_size=3, max_size=3),
        seed=seeds,
    )
    def begins(self, calendar: str, sizes: Sizes, populations: list[int], seed: int) -> None:
        note(f"timestamps: {calendar}; {sizes}; reports: {populations}")
        self._calendar = CALENDARS[calendar]
        self._sizes = sizes
        self._seeded = random.Random(seed)
        self._most = SIZES[sizes]
        for account, population in enumerate(min(each, self._most) for each in populations):
            for start in range(0, population, 1_000):
                self._write(account, 0, self._new(range(start, min(population, start + 1_000))), None)

    @rule(
        change=st.sampled_from(["import", "update", "update", "delete"]),
        account=st.integers(0, 2),
        writer=st.integers(0, 1),
        size=st.sampled_from([1, 0, 2, 25, 150, 600]),
        life=lives,
        afresh=st.booleans(),
    )
    def writes(self, *, change: str, account: int, writer: int, size: int, life: int | None, afresh: bool) -> None:
        """Change an account, or be killed meanwhile; with `afresh`, the writer's process has just started."""
        if afresh:
            self._ingests = {place: ingest for place, ingest in self._ingests.items() if place[1] != writer}
        known = self._reports[account]
        size = min(size, self._most)
        with suppress(KilledError):
            if change == "import":
                free = [number for number in range(MOST_REPORTS) if numero(number) not in known]
                self._write(account, writer, self._new(self._seeded.sample(free, min(size, len(free)))), life)
            elif change == "update":
                chosen = self._seeded.choices(list(known.values()), k=size) if known else []
                self._write(account, writer, [self._version(Relatorio(**report)) for report in chosen], life)
            else:
                self._delete(account, writer, self._some(sorted(known), size), life)

    @invariant()
    def every_page_equals_the_reference(self) -> None:
        api = Api(
            reports=[
                (account.id_conta, report)
                for account, reports in zip(self._accounts, self._reports, strict=True)
                for report in reports.values()
            ],
            accounts={account.id_conta: account.id_organizacao for account in self._accounts},
        )
        for _ in range(QUESTIONS):
            resource, question = self._question()
            account = self._seeded.randrange(3)
            listing = api.listing(resource, self._accounts[account].id_conta, question)
            self._compare(listing, self._clients[account], f"/{resource}?{question}")

    @invariant()
    def every_count_equals_a_recount(self) -> None:
        if self._seeded.random() < RECOUNTED:
            assert list(verify(self._reading)) == []

    def teardown(self) -> None:
        try:
            assert list(verify(self._writing)) == []
        finally:
            for database in (self._writing, self._reading, *self._stores):
                database.close()
            self._drop()

    # Questions.

    def _question(self) -> tuple[str, str]:
        resource, sorts, values = self._seeded.choice(LISTS)
        names = self._seeded.sample(sorted(values), self._seeded.choice((0, 0, 1, 1, 2, 3)))
        filters = "".join(f"&{name}={quote(self._seeded.choice(values[name]))}" for name in names)
        return resource, f"sort={self._seeded.choice(sorts)}&rows={self._seeded.choice((25, 25, 75, 1000))}{filters}"

    def _compare(self, listing: Listing, client: Client, url: str) -> None:
        """Compare the first pages, a random one, the last one and the one after it, and where each `next` leads."""
        rows, total = int(listing.given["rows"]), listing.total
        last = max(1, -(-total // rows))
        for page in sorted({1, 2, self._seeded.randint(1, last), last, last + 1}):
            answer = client.get(f"{url}&page={page}")
            assert answer.body == listing.page(page), (url, page)
            assert len(answer.itens) == max(0, min(rows, total - (page - 1) * rows))
            assert ("next" in answer.links) == (page < last)
            if page < last:
                assert client.get(answer.links["next"]).body == listing.page(page + 1), (url, page)

    # Changes.

    def _new(self, numbers: Iterable[int]) -> list[Relatorio]:
        return [any_relatorio(self._seeded, number, instants=self._calendar) for number in numbers]

    def _version(self, report: Relatorio) -> Relatorio:
        """Return another version of a report: usually a newer one, else the same report or a random one."""
        [other] = self._new([int(report.numero[:8], 16)])
        newer = report.atualizado_em + self._seeded.choice((1, 7, DAY))
        kinds = (report, other, *[msgspec.structs.replace(other, atualizado_em=newer)] * 6)
        return self._seeded.choice(kinds)

    def _some(self, numeros: list[str], size: int) -> list[str]:
        """Choose numeros: random ones or neighbours, sometimes all."""
        if self._seeded.random() < 0.1:
            return numeros
        most = min(size, len(numeros))
        start = self._seeded.randint(0, len(numeros) - most)
        return self._seeded.choice((self._seeded.sample(numeros, most), numeros[start : start + most]))

    def _write(self, account: int, writer: int, batch: Sequence[Relatorio], life: int | None) -> None:
        with self._writer(account, writer, life) as ingest:
            ingest.write(batch)
        known = self._reports[account]
        for report in batch:
            if report.numero not in known or known[report.numero]["atualizado_em"] < report.atualizado_em:
                known[report.numero] = msgspec.structs.asdict(report)

    def _delete(self, account: int, writer: int, numeros: list[str], life: int | None) -> None:
        with self._writer(account, writer, life) as ingest:
            assert ingest.delete([*numeros, numero(MOST_REPORTS)]) == len(numeros)
        for each in numeros:
            del self._reports[account][each]

    @contextmanager
    def _writer(self, account: int, writer: int, life: int | None) -> Iterator[Ingest]:
        """Return an account's writer in one of the two processes, which may be killed while it writes."""
        database = self._stores[writer]
        place = (account, writer)
        if place not in self._ingests:
            self._ingests[place] = Ingest(database, self._accounts[account].id_conta, sizes=self._sizes)
        database.left = life
        try:
            yield self._ingests[place]
        finally:
            database.left = None


LISTS: Final = (
    ("relatorios", RELATORIO_SORTS, RELATORIO_VALUES),
    ("pessoas", PESSOA_SORTS, PESSOA_VALUES),
)


@pytest.mark.long
def test_pages_equal_the_reference_and_counts_equal_a_recount_after_any_history(stores: Stores, tmp_path: Path) -> None:
    folders = count()

    def new() -> Lists:
        folder = tmp_path / f"key{next(folders)}"
        folder.mkdir()
        return Lists(stores, folder / "laudo.key")

    run_state_machine_as_test(
        new,  # type: ignore[arg-type]  # it is only called, without arguments
        settings=settings(
            max_examples=HISTORIES,
            stateful_step_count=STEPS,
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            suppress_health_check=list(HealthCheck),
        ),
    )
    shutil.rmtree(tmp_path)
