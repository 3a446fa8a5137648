"""A copy equals its source: between any two engines, after interruptions, and when the source has changed."""

import random
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from itertools import chain, count, islice
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

import apsw
import msgspec
import pytest

import postgres_server
from engines import ENGINES, Stores, sqlite_file
from factories import NOON, Account, Store, contents, cpf, numero, relatorio
from forwarding import Forwarding, ForwardingConnection
from laudo.core.sql import Statement, Write
from laudo.core.sql.writes import CONTA, FACET, ORGANIZACAO, PESSOA, RELATORIO, TOKEN, USUARIO, Table
from laudo.server import accounts, app, migrations, roles
from laudo.server.accounts import Level
from laudo.server.config import Settings
from laudo.server.database import Connection, Database, Row, StoreError
from laudo.server.ingest import counting, words
from laudo.server.ingest.copying import Copy, reports
from laudo.server.ingest.progress import Progress
from laudo.server.ingest.removal import Removal
from laudo.server.ingest.verify import recount, repair, verify
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import file_path, open_store
from reference import Api
from strategies import many
from world import LISTS
from wsgi import Answer, Client

PAIRS: Final = tuple((source, target) for source in ENGINES for target in ENGINES)
Originals = Callable[[str], "Original"]
CHUNK: Final = 17
TABLES: Final = (ORGANIZACAO, CONTA, USUARIO, TOKEN, FACET, RELATORIO, PESSOA)
SIZES: Final = (100, 34, 51, 0)
"""How many reports each account has. The first two share an organization, the others have one of their own each."""


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "CHUNK", CHUNK)
    monkeypatch.setattr(counting, "CHUNK", 29)


class Original(NamedTuple):
    """A store with four accounts that is never changed after it was filled."""

    url: str
    key_file: Path
    accounts: list[Account]
    id_token: int
    """A token of the first account that expires far in the future."""


def filled(url: str, key_file: Path) -> Original:
    """Fill an empty store."""
    with closing(open_store(url, write=True)) as database:
        store = Store(database, key_file)
        first = store.account(nome="Acme", webhook_url="https://acme.example/webhook")
        accounts = [first, store.account(first.id_organizacao), store.account(), store.account()]
        for account, size in zip(accounts, SIZES, strict=True):
            store.write(account, many(size + 20, seed=size))
            store.delete(account, *range(size, size + 20))
        store.revoke(store.token(first.id_usuario)[0])
        id_token, _ = store.token(first.id_usuario, expires_at=4_102_444_800_000)
    return Original(url, key_file, accounts, id_token)


class World:
    """A source that starts as a copy of the original, and empty targets to copy it to."""

    def __init__(self, original: Original, source_url: str, targets: Stores) -> None:
        self._targets = targets
        self._opened = ExitStack()
        self._token = original.id_token
        self.key_file = original.key_file
        self.accounts = original.accounts
        self.source_url = source_url
        self.source = self.open(source_url)
        self.store = Store(self.source, self.key_file)

    @property
    def size(self) -> int:
        return len(state(self.source)["relatorio"])

    def reference(self) -> Api:
        """Return the reference over the source's reports, which must be unchanged."""
        pairs = zip(self.accounts, SIZES, strict=True)
        written = [(account.id_conta, many(size + 20, seed=size)[:size]) for account, size in pairs]
        return Api(
            reports=[(id_conta, msgspec.structs.asdict(each)) for id_conta, its in written for each in its],
            accounts={account.id_conta: account.id_organizacao for account in self.accounts},
        )

    def target(self) -> Database:
        return self.open(self._targets.new())

    def open(self, url: str) -> Database:
        return self._opened.enter_context(closing(open_store(url, write=True)))

    def clients(self, database: Database) -> list[Client]:
        """Return a client of a store for each account."""
        asked = app.create(Settings(key_file=str(self.key_file), log=False), database=database)
        return [Client(asked, account.token) for account in self.accounts]

    def change(self, store: Store | None = None) -> None:
        """Insert, change, delete and move reports; create an account, disable a user and revoke a token."""
        writing = store or self.store
        first, second, third, fourth = self.accounts
        writing.write(first, [relatorio(number, atualizado_em=2 * NOON, nome="outra") for number in range(40, 60)])
        writing.write(second, [relatorio(number, numero_documento=cpf(7)) for number in range(5000, 5030)])
        writing.delete(second, *range(10))
        writing.delete(third, *range(51))
        writing.write(writing.account(third.id_organizacao), many(20))
        writing.disable(Level.USER, fourth.id_usuario)
        writing.revoke(self._token)

    def close(self) -> None:
        self._opened.close()


@pytest.fixture(scope="module")
def originals(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Originals]:
    """Returns the original of an engine; each is filled once and copied for every world."""
    with ExitStack() as kept:

        @cache
        def of(engine: str) -> Original:
            folder = tmp_path_factory.mktemp(engine)
            stores = kept.enter_context(Stores(request.getfixturevalue(engine), folder))
            return filled(stores.new(), folder / "laudo.key")

        yield of


@pytest.fixture(params=PAIRS, ids="-".join)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A world for each pair of engines."""
    yield from _world(request, tmp_path, *request.param)


@pytest.fixture
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A world with SQLite on both sides, for behaviour that is the same with every engine."""
    yield from _world(request, tmp_path, "sqlite", "sqlite")


def _world(request: pytest.FixtureRequest, folder: Path, *engines: str) -> Iterator[World]:
    source, target = (request.getfixturevalue(name) for name in engines)
    (folder / "source").mkdir()
    (folder / "target").mkdir()
    with Stores(source, folder / "source") as sources, Stores(target, folder / "target") as targets:
        original = request.getfixturevalue("originals")(engines[0])
        made = World(original, sources.copy(original.url), targets)
        yield made
        made.close()


def copied(source: Database, target: Database) -> Copy:
    copy = Copy(source, target)
    copy.copy_callers()
    copy.copy_reports()
    copy.count()
    return copy


def differences(copy: Copy) -> list[str]:
    return [*copy.compare(), *map(str, copy.verify())]


def run(source: Database, target: Database) -> tuple[tuple[int, ...], list[str]]:
    """Copy; returns how many reports were written, deleted and unchanged, and what differs in the end."""
    copy = copied(source, target)
    return copy.done.reports, differences(copy)


def state(database: Database) -> dict[str, list[Row]]:
    """Return all rows of a store, without what depends on the engine, the order of writing, or earlier copies."""
    with database.snapshot() as connection:
        return {
            table.name: connection.fetch(
                Statement(f"SELECT {_columns(table)} FROM {table.name} ORDER BY {', '.join(table.key)}")
            )
            for table in TABLES
        }


def _columns(table: Table) -> str:
    return ", ".join(name for name in table.types if name not in {"copied", "pulled"})


def damage(database: Database, text: str) -> None:
    with database.transaction() as connection:
        connection.run_script(text)


# A copy.


def test_a_copy_equals_its_source(world: World) -> None:
    target = world.target()
    assert run(world.source, target) == ((world.size, 0, 0), [])
    assert state(target) == state(world.source)
    assert not list(verify(target))


def test_a_copy_of_a_copy_equals_the_source(world: World) -> None:
    target, another = world.target(), world.target()
    run(world.source, target)
    assert run(target, another)[1] == []
    assert state(another) == state(world.source)


def test_an_empty_store_is_copied(files: World) -> None:
    assert run(files.target(), files.target()) == ((0, 0, 0), [])


QUESTIONS: Final = 40
"""How many combined questions each list gets, besides one for each value of each filter."""


def questions() -> Iterator[tuple[str, str]]:
    """Yield every value of every filter alone, then random filters with a random order and page."""
    seeded = random.Random(8)
    for name, values, sorts in LISTS:
        yield from ((name, f"{key}={quote(value)}") for key, choices in values.items() for value in choices)
        for _ in range(QUESTIONS):
            keys = seeded.sample(sorted(values), seeded.randrange(3))
            pairs = {key: quote(seeded.choice(values[key])) for key in keys}
            pairs |= {"sort": seeded.choice(sorts), "page": seeded.choice("112"), "rows": seeded.choice(("25", "50"))}
            yield name, "&".join(f"{key}={value}" for key, value in pairs.items())


def test_a_copy_gives_the_answers_and_etags_of_its_source(world: World) -> None:
    """A version always names the same state of a list, and the copy has that state, so clients' caches stay valid."""
    target = world.target()
    run(world.source, target)
    api = world.reference()
    asked = zip(world.accounts, world.clients(world.source), world.clients(target), strict=True)
    for account, source, copy in islice(asked, 1, None):
        for name, question in questions():
            url = f"/{name}?{question}"
            right, given = source.get(url), copy.get(url)
            assert (given.status, given.body, given.stable_headers) == (right.status, right.body, right.stable_headers)
            expected = getattr(api, name)(account.id_conta, question)
            assert (given.status, given.body) == (expected.status, expected.body or right.body)
            if given.status == 200:
                assert copy.ask("GET", url, headers={"If-None-Match": right.headers["etag"]}).status == 304
        assert copy.get("/usuario").body == source.get("/usuario").body


def test_a_walk_can_continue_in_the_copy(world: World) -> None:
    target = world.target()
    run(world.source, target)
    source, copy = (world.clients(database)[0] for database in (world.source, target))
    following = source.get("/relatorios?rows=25&sort=nome").links["next"]
    assert "cursor=" in following
    assert [each.body for each in copy.walk(following)] == [each.body for each in source.walk(following)]


# A copy that is run again.


class ReadOnly(Forwarding):
    """A store to which no row may be written."""

    def writing(self, connection: Connection) -> Connection:
        return _ReadOnlyConnection(connection, self)


class _ReadOnlyConnection(ForwardingConnection[ReadOnly]):
    def write(self, write: Write, rows: Iterable[Row]) -> None:
        assert not list(rows), write

    def fetch(self, statement: Statement) -> list[Row]:
        assert statement.text.startswith("SELECT"), statement.text
        return super().fetch(statement)


def test_copying_again_writes_nothing(world: World) -> None:
    target = world.target()
    run(world.source, target)
    before = state(target), contents(target)
    assert run(ReadOnly(world.source), ReadOnly(target)) == ((0, 0, world.size), [])
    assert (state(target), contents(target)) == before


def test_copying_again_applies_the_changes_of_the_source(world: World) -> None:
    target = world.target()
    run(world.source, target)
    world.change()
    assert run(ReadOnly(world.source), target) == ((70, 61, 104), [])
    assert state(target) == state(world.source)


def test_copying_again_removes_a_former_name_from_the_target_file(files: World) -> None:
    target, account = files.target(), files.accounts[0]
    [(file,)] = target.fetch(Statement("SELECT file FROM pragma_database_list WHERE name = 'main'"))

    def held() -> bool:
        target.empty_log()
        return b"kwyzbrrt" in Path(file).read_bytes().lower()

    for name, is_held in (("Ana Kwyzbrrt", True), ("Ana", False)):
        files.store.write(
            account, [relatorio(9000, numero_documento=cpf(9000), nome_pessoa=name, atualizado_em=NOON - is_held)]
        )
        run(files.source, target)
        assert held() == is_held


def test_copying_rewrites_the_index_of_words_once_for_all_organizations(
    files: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten: list[Connection] = []
    monkeypatch.setattr(words, "erase_removed", rewritten.append)
    target = files.target()
    run(files.source, target)
    with target.snapshot() as connection:
        assert len(accounts.organizacoes(connection)) > 1
    assert len(rewritten) == 1


@pytest.mark.parametrize("seed", range(12))
def test_copying_replaces_the_targets_reports_with_those_of_the_source(
    files: World, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeded = random.Random(seed)
    monkeypatch.setattr(reports, "CHUNK", seeded.choice((1, 2, 3, 10, 1000)))
    target = files.target()
    run(files.source, target)
    rows = state(target)["relatorio"]
    lost = seeded.sample(rows, seeded.choice((1, len(rows) // 2, len(rows))))
    own = [(1, 1, bytes([number]) * 16, *rows[0][3:]) for number in seeded.sample(range(256), seeded.choice((0, 40)))]
    with target.transaction() as connection:
        for row in lost:
            connection.fetch(Statement("DELETE FROM relatorio WHERE id_conta = ? AND numero = ?", row[1:3]))
        for row in own:
            marks = ", ".join("?" * len(row))
            connection.fetch(Statement(f"INSERT INTO relatorio ({', '.join(RELATORIO.types)}) VALUES ({marks})", row))
    assert run(files.source, target) == ((len(lost), len(own), len(rows) - len(lost)), [])
    assert state(target) == state(files.source)


# Interrupted.


class Stopping(Forwarding):
    """A store whose writer is stopped, and its transaction lost, once a number of transactions are durable."""

    def __init__(self, database: Database, transactions: int) -> None:
        super().__init__(database)
        self._left = transactions

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with super().transaction() as connection:
            yield connection
            self._left -= 1
            if self._left < 0:
                raise KeyboardInterrupt


class Shown(NamedTuple):
    """What a client sees of a list and may cache."""

    status: int
    total: int
    etag: str
    body: bytes


def shown(world: World, database: Database) -> list[list[Shown]]:
    """Return what each account sees of both lists."""
    urls = ("/relatorios?rows=1000", "/pessoas?rows=1000")
    return [[_shown(client.get(url)) for url in urls] for client in world.clients(database)]


def _shown(answer: Answer) -> Shown:
    if answer.status == 401:
        return Shown(401, 0, "", answer.body)
    return Shown(answer.status, answer.total, answer.headers["etag"], answer.body)


def stopped(world: World, target: Database, transactions: int) -> bool:
    """Copy until a number of transactions are durable; returns whether that stopped the copy before its end."""
    try:
        assert run(world.source, Stopping(target, transactions))[1] == []
    except KeyboardInterrupt:
        return True
    return False


def test_an_interrupted_copy_shows_nothing_or_all_and_can_be_resumed(world: World) -> None:
    right = shown(world, world.source)
    for transactions in count(step=3):
        target = world.target()
        ended = not stopped(world, target, transactions)
        for seen, whole in zip(chain(*shown(world, target)), chain(*right), strict=True):
            assert seen.total == 0 or seen == whole
        assert run(world.source, target)[1] == []
        assert state(target) == state(world.source)
        if ended:
            assert transactions > 20
            break


def test_an_interrupted_second_copy_shows_old_new_or_no_reports(world: World) -> None:
    target = world.target()
    run(world.source, target)
    before = shown(world, target)[:3]
    world.change()
    after = shown(world, world.source)[:3]
    seen: list[set[Shown]] = [set(), set(), set()]
    for transactions in count(1):
        ended = not stopped(world, target, transactions)
        for account, (relatorios, pessoas) in enumerate(shown(world, target)[:3]):
            assert pessoas in (before[account][1], after[account][1])
            seen[account].add(relatorios)
        if ended:
            break
    for account in range(3):
        others = seen[account] - {before[account][0], after[account][0]}
        assert [each.total for each in others] == [0]
    assert state(target) == state(world.source)


def test_two_copies_that_began_together_both_end_equal(world: World) -> None:
    target = world.target()
    copies = [Copy(world.source, target) for _ in range(2)]
    for copy in copies:
        copy.copy_callers()
    for copy in copies:
        copy.copy_reports()
        copy.count()
    assert [differences(copy) for copy in copies] == [[], []]
    assert state(target) == state(world.source)


def test_a_copy_undoes_nothing_that_a_newer_one_has_brought_meanwhile(files: World) -> None:
    target = files.target()
    older = Copy(files.source, target)
    files.change()
    run(files.source, target)
    before = state(target)
    with pytest.raises(StoreError, match="the target has revoked tokens that work in the source"):
        older.copy_callers()
    assert state(target) == before


@pytest.mark.parametrize("other", ["a copy of another store", "an import"])
def test_a_copy_deletes_nothing_that_others_have_written_meanwhile(world: World, other: str) -> None:
    target, account = world.target(), world.accounts[0]
    copy = Copy(world.source, target)
    copy.copy_callers()
    if other == "an import":
        Store(target, world.key_file).write(account, [relatorio(700)])
    else:
        fork = world.target()
        run(world.source, fork)
        Store(fork, world.key_file).write(account, [relatorio(700, nome="outra")])
        run(fork, target)
    before = state(target)
    with pytest.raises(StoreError, match=f"account {account.id_conta} of the target was written to by others"):
        copy.copy_reports()
    assert state(target) == before


def test_changes_made_before_the_reports_are_read_are_copied(world: World) -> None:
    target = world.target()
    copy = Copy(world.source, target)
    copy.copy_callers()
    world.store.delete(world.accounts[0], *range(10))
    copy.copy_reports()
    copy.count()
    assert differences(copy) == []
    assert state(target) == state(world.source)


def test_an_uncounted_copy_is_counted_by_the_next_run(world: World) -> None:
    target = world.target()
    copy = Copy(world.source, target)
    copy.copy_callers()
    copy.copy_reports()
    assert run(world.source, target) == ((0, 0, world.size), [])
    assert state(target) == state(world.source)


# Refused.


OWN: Final[dict[str, tuple[Callable[[Store], object], str]]] = {
    "an organization": (
        lambda store: store.account(),
        "the target has organizations that the source lacks, or has with another name: 4;",
    ),
    "an account": (
        lambda store: store.account(1),
        "the target has accounts that the source lacks, or has with another name: 5;",
    ),
    "users": (
        lambda store: _users(store, 7),
        "the target has users that the source lacks, or has with another account or address: 5, 6, 7, 8, 9 …;",
    ),
    "a token": (
        lambda store: store.token(1),
        "the target has tokens that the source lacks, or has with another text or user: 7;",
    ),
    "a token of another user": (
        lambda store: damage(store.database, "UPDATE token SET id_usuario = 1 WHERE id_token = 2"),
        "the target has tokens that the source lacks, or has with another text or user: 2;",
    ),
    "a token that was revoked": (
        lambda store: _revoke(store, 2),
        "the target has revoked tokens that work in the source: 2;",
    ),
    "another organization of that number": (
        lambda store: damage(store.database, "UPDATE organizacao SET nome_organizacao = '?' WHERE id_organizacao = 2"),
        "the target has organizations that the source lacks, or has with another name: 2;",
    ),
    "a report": (
        lambda store: Ingest(store.database, 2).write([relatorio(9000)]),
        "account 2 of the target has changes of its own;",
    ),
    "a report less": (
        lambda store: Ingest(store.database, 2).delete([numero(3)]),
        "account 2 of the target has changes of its own;",
    ),
    "a facet": (
        lambda store: damage(store.database, "UPDATE facet SET nome = nome || 'x' WHERE id_conta = 3 AND facet = 1"),
        "account 3 of the target has changes of its own;",
    ),
}


def _users(store: Store, number: int) -> None:
    with store.database.transaction() as connection:
        for _ in range(number):
            accounts.create_usuario(connection, 1, email="outra@example.com", nome="Outra")


def _revoke(store: Store, id_token: int) -> None:
    with store.database.transaction() as connection:
        accounts.revoke_token(connection, id_token, now_ms=NOON)


@pytest.mark.parametrize("what", OWN)
def test_a_target_with_changes_of_its_own_is_refused_and_unchanged(files: World, what: str) -> None:
    target = files.target()
    run(files.source, target)
    make, reason = OWN[what]
    make(Store(target, files.key_file))
    before = state(target)
    with pytest.raises(StoreError, match=re.escape(reason) + " nothing was copied; hint: "):
        Copy(files.source, target)
    assert state(target) == before


@pytest.mark.parametrize("what", ["a report", "a report less"])
def test_a_target_with_own_changes_is_refused_even_if_the_source_is_newer(files: World, what: str) -> None:
    target = files.target()
    run(files.source, target)
    OWN[what][0](Store(target, files.key_file))
    files.change()
    before = state(target)
    with pytest.raises(StoreError, match=re.escape(OWN[what][1])):
        Copy(files.source, target)
    assert state(target) == before


def test_the_original_is_brought_up_to_date_from_its_copy(files: World) -> None:
    copy = files.target()
    run(files.source, copy)
    Ingest(copy, 2).write([relatorio(9000)])
    assert run(copy, files.source) == ((1, 0, files.size - 1), [])
    assert state(files.source) == state(copy)


@pytest.mark.parametrize("what", ["a report", "a report less"])
def test_an_original_with_changes_of_its_own_is_refused_as_target(files: World, what: str) -> None:
    """A copy in the other direction is refused, too: the advice to swap the two must not delete reports."""
    copy = files.target()
    run(files.source, copy)
    OWN[what][0](files.store)
    Ingest(copy, 2).write([relatorio(9001)])
    before = state(files.source)
    for stores in ((files.source, copy), (copy, files.source)):
        with pytest.raises(StoreError, match=re.escape(OWN[what][1])):
            Copy(*stores)
    assert state(files.source) == before


def test_a_target_migrated_by_a_newer_version_is_refused(files: World) -> None:
    target = files.target()
    with target.transaction() as connection:
        connection.run_script("INSERT INTO migration (name, applied_at) VALUES ('9999_newer.sql', 0)")
    with pytest.raises(StoreError, match="the store was migrated by a newer version of laudo"):
        Copy(files.source, target)


def test_a_target_migrated_during_the_copy_is_not_counted(files: World) -> None:
    target = files.target()
    copy = Copy(files.source, target)
    copy.copy_callers()
    copy.copy_reports()
    damage(target, "INSERT INTO migration (name, applied_at) VALUES ('9999_newer.sql', 0)")
    with pytest.raises(StoreError, match="the store was migrated by a newer version of laudo"):
        copy.count()


def test_an_uncounted_copy_is_refused_as_source_until_it_is_repaired(world: World) -> None:
    unfinished = world.target()
    copy = Copy(world.source, unfinished)
    copy.copy_callers()
    copy.copy_reports()
    with pytest.raises(StoreError, match="account 1 of the source was never counted; hint: finish the copy"):
        Copy(unfinished, world.target())
    repair(unfinished, list(verify(unfinished)))
    target = world.target()
    assert run(unfinished, target) == ((world.size, 0, 0), [])
    assert state(target) == state(unfinished)


def test_a_copy_with_uncounted_persons_is_refused_as_source(files: World, monkeypatch: pytest.MonkeyPatch) -> None:
    unfinished = files.target()
    _interrupt(files.source, unfinished, monkeypatch, "organizacao")
    with pytest.raises(StoreError, match="organization 1 of the source was never counted; hint: finish the copy"):
        Copy(unfinished, files.target())


def _interrupt(source: Database, target: Database, monkeypatch: pytest.MonkeyPatch, uncounted: str) -> None:
    """Copy until the first account, or the first organization, is to be counted."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(recount, uncounted, interrupt)
        with pytest.raises(KeyboardInterrupt):
            copied(source, target)


@pytest.mark.parametrize("uncounted", ["conta", "organizacao"])
def test_an_unfinished_copy_takes_no_other_changes(
    world: World, monkeypatch: pytest.MonkeyPatch, uncounted: str
) -> None:
    """They would count on from nothing, and the copy could not be finished any more."""
    target = world.target()
    _interrupt(world.source, target, monkeypatch, uncounted)
    ingest, removal = Ingest(target, 1), Removal(target, 1)
    changes = (
        lambda: ingest.write([relatorio(9000)]),
        lambda: ingest.delete([numero(1)]),
        lambda: list(removal.delete_before(9 * NOON)),
    )
    for change in changes:
        with pytest.raises(StoreError, match=" 1 was never counted; hint: finish the copy that made it"):
            change()
    assert run(world.source, target) == ((0, 0, world.size), [])
    assert state(target) == state(world.source)


@pytest.mark.parametrize(
    ("gone", "lost"),
    [
        (
            "DELETE FROM token; DELETE FROM usuario; DELETE FROM conta WHERE id_conta = 1",
            "account 1: rows of relatorio",
        ),
        (
            "DELETE FROM relatorio WHERE id_conta = 1; DELETE FROM conta WHERE id_conta = 1",
            "account 1: rows of usuario",
        ),
        ("DELETE FROM organizacao WHERE id_organizacao = 2", "organization 2: rows of conta"),
    ],
)
def test_a_source_with_rows_of_nobody_is_refused(files: World, gone: str, lost: str) -> None:
    source, target = files.source, files.target()
    with closing(apsw.Connection(str(file_path(files.source_url)))) as shell:  # It ignores foreign keys.
        shell.execute(gone)
    with pytest.raises(
        StoreError, match=f"the source is damaged: .*{lost} .* that does not exist: [0-9]+; hint: write"
    ):
        Copy(source, target)


# Compared.


ONE: Final = "id_conta = 1 AND numero = (SELECT numero FROM relatorio WHERE id_conta = 1 ORDER BY numero LIMIT 1)"
OTHERS: Final = "account 1: the reports are not those of the source"
DAMAGE: Final = {
    "a report's column": (f"UPDATE relatorio SET mensagem = mensagem || '!' WHERE {ONE}", OTHERS),
    "a name, which no item shows": (f"UPDATE relatorio SET nome_pessoa = nome_pessoa || '!' WHERE {ONE}", OTHERS),
    "an item": (f"UPDATE relatorio SET item = replace(item, 'numero', 'número') WHERE {ONE}", OTHERS),
    "an instant": (f"UPDATE relatorio SET recency = recency + 1 WHERE {ONE}", OTHERS),
    "a report missing": (f"DELETE FROM relatorio WHERE {ONE}", OTHERS),
    "a report too many": (
        f"INSERT INTO relatorio SELECT 3, 4, numero, 1, recency, '', '', '', item FROM relatorio WHERE {ONE}",
        "account 4: the reports are not those of the source",
    ),
    "a user": ("UPDATE usuario SET enabled = 0 WHERE id_usuario = 2", "users: the target differs from the source"),
    "a token": ("UPDATE token SET expires_at = 1 WHERE id_token = 1", "tokens: the target differs from the source"),
    "a webhook": (
        "UPDATE conta SET webhook_url = '?' WHERE id_conta = 1",
        "accounts: the target differs from the source",
    ),
    "an account's version": (
        "UPDATE conta SET version = version - 1 WHERE id_conta = 2",
        "account 2: the target has changed since it was copied",
    ),
    "a facet's total": (
        "UPDATE facet SET total = total + 1 WHERE id_conta = 3 AND facet = 1",
        "organization 2, account 3, facet 1: total of the facet is",
    ),
    "buckets": ("DELETE FROM bucket WHERE id_conta = 1 AND axis = 2", "total of the buckets is missing"),
    "persons": ("DELETE FROM pessoa WHERE id_organizacao = 2", "organization 2: persons missing"),
    "buckets of persons": ("UPDATE bucket SET total = 1 WHERE id_conta = 0", "total of the bucket is 1"),
}


@pytest.mark.parametrize("what", DAMAGE)
@pytest.mark.parametrize("world", [("sqlite", "sqlite"), ("sqlite", "postgres")], indirect=True, ids="-".join)
def test_damage_is_found_and_repaired_by_the_next_run(world: World, what: str) -> None:
    text, line = DAMAGE[what]
    target = world.target()
    copy = copied(world.source, target)
    damage(target, text)
    found = differences(copy)
    assert any(line in each for each in found), found
    assert run(world.source, target)[1] == []
    assert state(target) == state(world.source)


def test_a_changed_facet_is_reported(files: World) -> None:
    target = files.target()
    copy = copied(files.source, target)
    damage(target, "UPDATE facet SET nome = nome || '!' WHERE id_conta = 1 AND facet = 1")
    assert list(copy.compare()) == [OTHERS]


def test_a_damaged_index_of_words_is_rebuilt(files: World) -> None:
    target = files.target()
    copy = copied(files.source, target)
    damage(
        target, "DELETE FROM pessoa_words WHERE rowid < 9; INSERT INTO pessoa_words (rowid, words) VALUES (999, '1·a')"
    )
    [found] = differences(copy)
    assert found.startswith("organization 1: words whose entries in the index differ")
    assert run(files.source, target)[1] == []


def test_persons_to_be_recounted_do_not_have_the_etag_of_an_empty_list(world: World) -> None:
    target = world.target()
    copy = Copy(world.source, target)
    copy.copy_callers()
    copy.copy_reports()
    empty = world.clients(target)[0].get("/pessoas")
    copy.count()
    damage(target, "UPDATE bucket SET total = total + 1 WHERE id_conta = 0 AND axis = 6")
    assert copy.verify()
    found = world.clients(target)[0].get("/pessoas")
    assert (empty.total, found.total > 0) == (0, True)
    assert empty.headers["etag"] != found.headers["etag"]


def test_persons_that_two_verifications_found_wrong_are_still_recounted(files: World) -> None:
    target = files.target()
    run(files.source, target)
    damage(target, "UPDATE bucket SET total = total + 1 WHERE id_conta = 0 AND axis = 6")
    assert all(Copy(files.source, target).verify() for _ in range(2))
    assert run(files.source, target)[1] == []


def test_the_error_names_the_store_that_is_damaged(files: World, tmp_path: Path) -> None:
    target, damaged = files.target(), tmp_path / "damaged.db"
    copied(files.source, target)
    with closing(apsw.Connection(str(sqlite_file(files.source_url)))) as connection:
        connection.execute("VACUUM INTO ?", (str(damaged),)).fetchall()
    content = damaged.read_bytes()
    damaged.write_bytes(content[: len(content) // 3].ljust(len(content), b"?"))
    with pytest.raises(StoreError, match=r"^[^ ]*/damaged\.db is not a store of laudo, or it is damaged"):
        differences(copied(files.open(f"sqlite:///{damaged}"), target))


@pytest.mark.parametrize("what", DAMAGE)
def test_reported_differences_contain_no_values_of_reports(files: World, what: str) -> None:
    target = files.target()
    copy = copied(files.source, target)
    damage(target, DAMAGE[what][0])
    said = str(differences(copy)).lower()
    with files.source.snapshot() as connection:
        rows = connection.fetch(Statement("SELECT numero_documento, nome_pessoa, hex(numero) FROM relatorio"))
    assert not [value for row in rows for value in row if value and value.lower() in said]


def test_a_source_that_changed_after_copying_is_reported(world: World) -> None:
    target = world.target()
    copy = copied(world.source, target)
    world.change()
    assert differences(copy) == [
        "accounts: the target differs from the source",
        "users: the target differs from the source",
        "tokens: the target differs from the source",
        *(f"account {number}: the source has changed since it was copied" for number in (1, 2, 3)),
        *(f"organization {number}: the source has changed since it was copied" for number in (1, 2)),
    ]
    assert run(world.source, target)[1] == []


class Changing(Forwarding):
    """A store that is changed by somebody else as soon as the first reports have been read."""

    def __init__(self, world: World) -> None:
        super().__init__(world.source)
        self._others = Store(world.open(world.source_url), world.key_file)
        self._world = world
        self._unchanged = True

    def reading(self, connection: Connection) -> Connection:
        return _ChangingConnection(connection, self)

    def change_once(self) -> None:
        if self._unchanged:
            self._unchanged = False
            self._world.change(self._others)


class _ChangingConnection(ForwardingConnection[Changing]):
    def fetch(self, statement: Statement) -> list[Row]:
        rows = super().fetch(statement)
        if "LIMIT" in statement.text:
            self._store.change_once()
        return rows


def test_an_organization_is_copied_from_a_single_snapshot(world: World) -> None:
    before = {table: [row for row in rows if row[0] == 1] for table, rows in state(world.source).items()}
    target = world.target()
    found = run(Changing(world), target)[1]
    assert "account 1: the source has changed since it was copied" in found
    assert "account 2: the source has changed since it was copied" in found
    assert {table: [row for row in rows if row[0] == 1] for table, rows in state(target).items()} == before
    assert not list(verify(target))
    assert run(world.source, target)[1] == []


# What a copy needs.


def test_copying_needs_only_the_reader_and_writer_roles(tmp_path: Path) -> None:
    with postgres_server.start() as server, ExitStack() as opened:

        def become(role: str, name: str, *, write: bool = False) -> Database:
            url = f"{server.url(name)}?options=-c%20role%3D{role}"
            return opened.enter_context(closing(open_store(url, write=write)))

        for name in ("source", "target"):
            server.execute(f"CREATE DATABASE {name}")
            with closing(open_store(server.url(name), write=True)) as owned:
                migrations.migrate(owned)
                roles.grant(owned)
        store = Store(become(roles.WRITER, "source", write=True), tmp_path / "laudo.key")
        account = store.account()
        store.write(account, many(60))
        source, target = become(roles.READER, "source"), become(roles.WRITER, "target", write=True)
        assert run(source, target) == ((60, 0, 0), [])
        store.delete(account, *range(9))
        store.revoke(account.id_token)
        assert run(source, target) == ((0, 9, 51), [])
        assert state(target) == state(source)


class Watching(Forwarding):
    """A store that records to which organizations each transaction writes, and checks the order of the rows."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.written: list[set[int]] = []

    def writing(self, connection: Connection) -> Connection:
        self.written.append(set())
        return _WatchingConnection(connection, self)


class _WatchingConnection(ForwardingConnection[Watching]):
    def write(self, write: Write, rows: Iterable[Row]) -> None:
        given = list(rows)
        assert given == sorted(given, key=lambda row: row[: len(write.table.key)])
        if write.table.key[0] == "id_organizacao":
            self._store.written[-1].update(id_organizacao for id_organizacao, *_ in given)
        super().write(write, given)


def test_a_transaction_writes_to_one_organization_in_the_order_of_keys(files: World) -> None:
    target = Watching(files.target())
    run(files.source, target)
    files.change()
    run(files.source, target)
    assert {len(each) for each in target.written} == {0, 1}
    assert len(set().union(*target.written)) == 3


class Weighing(Forwarding):
    """A store that records the largest number of reports read at once."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.most = 0

    def reading(self, connection: Connection) -> Connection:
        return _WeighingConnection(connection, self)

    writing = reading


class _WeighingConnection(ForwardingConnection[Weighing]):
    def fetch(self, statement: Statement) -> list[Row]:
        rows = super().fetch(statement)
        if "mensagem, item FROM" in statement.text:
            self._store.most = max(self._store.most, len(rows))
        return rows


def test_no_more_than_a_chunk_is_read_at_once(world: World) -> None:
    source, target = Weighing(world.source), Weighing(world.target())
    run(source, target)
    damage(target, "UPDATE relatorio SET item = ''")
    run(source, target)
    assert (source.most, target.most) == (CHUNK, CHUNK)


def test_progress_rises_to_its_total(world: World) -> None:
    copy = Copy(world.source, world.target())
    copy.copy_callers()
    for phase in (copy.copy_reports, copy.count, copy.compare, copy.verify):
        told: list[tuple[int, int]] = []
        list(phase(lambda *each: told.append(each)) or ())  # noqa: B023 - it is called before the next phase
        dones, totals = zip(*told, strict=True)
        assert list(dones) == sorted(dones)
        assert len(set(totals)) == 1
        assert dones[0] < totals[0] / 2
        assert dones[-1] == totals[0]


def test_progress_never_exceeds_its_total() -> None:
    told: list[tuple[int, int]] = []
    progress = Progress(lambda *each: told.append(each), total=10)
    progress.add(7)
    progress.add(8)
    progress.end()
    assert told == [(7, 10), (10, 10), (10, 10)]
