"""Concurrent writers leave the store as if they had written one after the other."""

import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import count, pairwise, product
from pathlib import Path
from typing import Final

import msgspec
import psycopg
import pytest

import cluster
from awaiting import PATIENCE, until
from factories import NOON, SMALL, Account, Store, cpf, numero, relatorio
from forwarding import Forwarding, ForwardingConnection
from laudo.core import axes
from laudo.core.sql import Statement, Write
from laudo.core.tally import COARSE
from laudo.server import accounts
from laudo.server.database import Bounds, Connection, Database, Lost, Row, Slow, StoreError
from laudo.server.ingest.changes import lock_writers
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.removal import Removal
from laudo.server.ingest.verify import Difference, repair, verify
from laudo.server.ingest.writer import Counts, Ingest
from laudo.server.stores import open_store
from reference import Api
from shell import Shell
from strategies import PESSOA_SORTS, RELATORIO_SORTS, any_relatorio
from world import World
from wsgi import Client, NewApp

PROCESSES: Final = 3
THREADS: Final = 2
"""How many in each process."""
TURNS: Final = 10
"""How many batches each thread writes."""

NUMBERS: Final = range(120)
"""Few enough that all writers write the same reports, and more than a bucket may hold."""
INSTANTS: Final = range(NOON, NOON + 40 * 3_600_000, 3_600_000)

WAITING: Final = Bounds(pool_timeout_ms=60_000, write_timeout_ms=60_000)
WRITE: Final = "import sys, test_several_writers as test; test.write_all(sys.argv[1], *map(int, sys.argv[2:]))"


class Batch(msgspec.Struct):
    """What one writer did in one turn, and the result."""

    writer: int
    id_conta: int
    reports: list[Relatorio]
    deleted: list[str]
    """The numeros to delete; then there are no reports."""
    counts: Counts = Counts()
    gone: int = 0
    version: int = 0
    """The account's version after this batch, from the same transaction; it tells the order of the batches."""

    @property
    def changes(self) -> bool:
        return bool(self.counts.inserted or self.counts.updated or self.gone)


def any_batch(seeded: random.Random, writer: int, id_conta: int) -> Batch:
    """Make a random batch: inserts, updates, stale or repeated reports, or deletions."""
    numbers = seeded.sample(NUMBERS, seeded.choice((1, 10, 40)))
    if seeded.random() < 0.2:
        return Batch(writer, id_conta, [], [numero(number) for number in numbers])
    # Sometimes use a nome of this writer's own, which makes a facet that no other writer knows.
    made = [any_relatorio(seeded, number, instants=INSTANTS) for number in numbers]
    if seeded.random() < 0.3:
        made[0] = msgspec.structs.replace(made[0], nome=f"matriz {writer} {seeded.random()}")
    return Batch(writer, id_conta, made, [])


def write_all(store_url: str, seed: int, *contas: int) -> None:
    """Write to randomly chosen accounts in several threads; runs in a process of its own."""
    database = open_store(store_url, write=True, bounds=WAITING)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    with ThreadPoolExecutor(THREADS) as threads:
        seeds = range(seed * THREADS, (seed + 1) * THREADS)
        for batches in threads.map(lambda writer: _written(database, writer, contas), seeds):
            sys.stdout.buffer.writelines(msgspec.json.encode(batch) + b"\n" for batch in batches)
    database.close()


def _written(database: Database, writer: int, contas: Sequence[int]) -> list[Batch]:
    seeded = random.Random(writer)
    writers = {id_conta: Ingest(database, id_conta, sizes=SMALL) for id_conta in contas}
    batches = [any_batch(seeded, writer, seeded.choice(contas)) for _ in range(TURNS)]
    for batch in batches:
        ingest = writers[batch.id_conta]
        if batch.reports:
            batch.counts = ingest.write(batch.reports)
        else:
            batch.gone = ingest.delete(batch.deleted)
        batch.version = ingest._versions.conta
    return batches


def run_writers(store_url: str, contas: Sequence[int]) -> list[Batch]:
    """Let several processes write at the same time; returns what they did."""
    folder = Path(__file__).parent
    commands = [[sys.executable, "-c", WRITE, store_url, str(seed), *map(str, contas)] for seed in range(PROCESSES)]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder))
            for command in commands
        ]
        assert [process.stdout and process.stdout.readline() for process in processes] == [b"ready\n"] * PROCESSES
        for process in processes:
            assert process.stdin
            process.stdin.write(b"\n")
            process.stdin.flush()
        outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert {process.returncode for process in processes} == {0}
    return [msgspec.json.decode(line, type=Batch) for output in outputs for line in output.splitlines()]


def outcome(batches: Iterable[Batch]) -> list[tuple[int, Relatorio]]:
    """Replay the concurrent batches one after the other in plain Python, and compare the result of each."""
    stored: dict[tuple[int, str], Relatorio] = {}
    for batch in batches:
        assert batch.gone == len([number for number in batch.deleted if stored.pop((batch.id_conta, number), None)])
        counts = [_put(stored, batch.id_conta, report) for report in batch.reports]
        assert batch.counts == tuple(counts.count(name) for name in Counts._fields)
    return [(id_conta, report) for (id_conta, _), report in stored.items()]


def _put(stored: dict[tuple[int, str], Relatorio], id_conta: int, report: Relatorio) -> str:
    known = stored.get((id_conta, report.numero))
    if known == report:
        return "unchanged"
    if known and known.atualizado_em >= report.atualizado_em:
        return "stale" if known.atualizado_em > report.atualizado_em else "conflicting"
    stored[id_conta, report.numero] = report
    return "updated" if known else "inserted"


def deadlocks(database: Database) -> int:
    asked = Statement("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    return int(database.fetch(asked)[0][0]) if database.dialect.name == "postgres" else 0


def test_concurrent_writers_leave_what_sequential_writers_would(store: Store, store_url: str, new_app: NewApp) -> None:
    first = store.account()
    owners = [first, store.account(first.id_organizacao), store.account()]
    contas = [owner.id_conta for owner in owners]
    done = run_writers(store_url, contas)
    # If two batches have the same version, the second one has changed nothing.
    done.sort(key=lambda batch: (batch.id_conta, batch.version, not batch.changes))
    turns = [one.writer != other.writer for one, other in pairwise(done)]
    assert turns.count(True) > len(done) / 6, "the writers took turns too rarely to have written concurrently"
    reports = [(id_conta, msgspec.structs.asdict(report)) for id_conta, report in outcome(done)]
    assert not list(verify(store.database))
    api = Api(reports, {owner.id_conta: owner.id_organizacao for owner in owners})
    made = World(
        api, owners, *([Client(new_app(cache_bytes=size), owner.token) for owner in owners] for size in (0, 9999))
    )
    for account, sort, page in product(range(len(owners)), RELATORIO_SORTS, (1, 3)):
        made.compare("relatorios", account, f"sort={sort}&page={page}")
    for account, sort in product(range(len(owners)), PESSOA_SORTS):
        made.compare("pessoas", account, f"sort={sort}")
    assert deadlocks(store.database) == 0


@pytest.mark.engines("postgres", reason="SQLite has one writer at a time")
def test_a_writer_does_not_wait_for_writers_of_other_organizations(store: Store) -> None:
    one, other = store.account(), store.account()
    with store.database.transaction() as connection:
        lock_writers(connection, one.id_organizacao)
        assert store.write(other, [relatorio(1)]) == Counts(inserted=1)


def imported(database: Database, account: Account) -> None:
    Ingest(database, account.id_conta).write([relatorio(1)])


def deleted(database: Database, account: Account) -> None:
    Ingest(database, account.id_conta).delete([numero(1)])


def pruned(database: Database, account: Account) -> None:
    list(Removal(database, account.id_organizacao).delete_before(NOON))


def mended(database: Database, account: Account) -> None:
    repair(database, [Difference(id_organizacao=account.id_organizacao, id_conta=account.id_conta, what="an account")])


def mended_persons(database: Database, account: Account) -> None:
    repair(database, [Difference(id_organizacao=account.id_organizacao, what="an organization")])


def cleared(database: Database, account: Account) -> None:
    repair(database, [Difference(id_organizacao=account.id_organizacao, id_conta=9999, what="no account")])


@pytest.mark.engines("postgres", reason="SQLite has one writer at a time")
@pytest.mark.parametrize("write", [imported, deleted, pruned, mended, mended_persons, cleared])
def test_a_writer_waits_for_other_writers_of_its_organization(
    store: Store, store_url: str, account: Account, write: Callable[[Database, Account], None]
) -> None:
    with closing(open_store(store_url, write=True, bounds=Bounds(write_timeout_ms=500))) as database:
        with store.database.transaction() as connection:
            lock_writers(connection, account.id_organizacao)
            with pytest.raises(Slow):
                write(database, account)
        write(database, account)


def test_accounts_created_concurrently_get_distinct_ids(store: Store, store_url: str) -> None:
    """Half of the accounts belong to one shared organization, the others to new ones."""
    shared = store.account()
    both = threading.Barrier(4)

    def make() -> list[Account]:
        with closing(open_store(store_url, write=True, bounds=WAITING)) as database:
            mine = Store(database, store.key_file)
            both.wait(PATIENCE)
            return [mine.account(shared.id_organizacao if number % 2 else None) for number in range(10)]

    with ThreadPoolExecutor(4) as threads:
        made = [account for found in [threads.submit(make) for _ in range(4)] for account in found.result()]
    made.append(shared)
    assert sorted(account.id_conta for account in made) == list(range(1, 42))
    assert sorted(account.id_usuario for account in made) == list(range(1, 42))
    assert sorted(account.id_token for account in made) == list(range(1, 42))
    assert sorted({account.id_organizacao for account in made}) == list(range(1, 22))
    with store.database.snapshot() as connection:
        assert len(accounts.tokens(connection)) == len({account.token for account in made}) == 41


def test_users_created_concurrently_get_distinct_ids(store_url: str, account: Account) -> None:
    both = threading.Barrier(3)

    def make() -> list[int]:
        made = []
        with closing(open_store(store_url, write=True, bounds=WAITING)) as database:
            for _ in range(10):
                both.wait(PATIENCE)
                with database.transaction() as connection:
                    made.append(accounts.create_usuario(connection, account.id_conta, email="a@b.c", nome="A"))
        return [usuario.id_usuario for usuario in made]

    with ThreadPoolExecutor(3) as threads:
        made = [number for found in [threads.submit(make) for _ in range(3)] for number in found.result()]
    assert sorted(made) == list(range(2, 32))


def test_only_one_of_several_writers_can_adopt_the_same_token(store: Store, store_url: str) -> None:
    account, both = store.account(), threading.Barrier(3)

    def take() -> list[bool]:
        taken = []
        with closing(open_store(store_url, write=True, bounds=WAITING)) as database:
            for number in range(10):
                both.wait(PATIENCE)
                taken.append(False)
                with suppress(accounts.AccountError), database.transaction() as connection:
                    accounts.create_token(connection, account.id_usuario, b"%032d" % number, now_ms=NOON)
                    taken[-1] = True
        return taken

    with ThreadPoolExecutor(3) as threads:
        made = [each.result() for each in [threads.submit(take) for _ in range(3)]]
    assert [sum(turn) for turn in zip(*made, strict=True)] == [1] * 10


def test_concurrent_commands_create_organizations_with_distinct_ids(store_url: str, tmp_path: Path) -> None:
    laudo = Shell(tmp_path, store_url)
    with ExitStack() as stack:
        commands = [stack.enter_context(laudo.starts("organization", "create", f"Um {n}")) for n in range(2)]
        assert [command.wait(PATIENCE) for command in commands] == [0, 0]
    ids = [item["id_organizacao"] for item in laudo.lists("organization", "list")]
    assert sorted(map(int, map(str, ids))) == [1, 2]


# What a writer remembers.


class BucketRecording(Forwarding):
    """A store that records which buckets are read."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.read: list[tuple[int, int, int]] = []

    def writing(self, connection: Connection) -> Connection:
        return _RecordingConnection(connection, self)

    def buckets_read(self) -> set[tuple[int, int, int]]:
        """Return (account, axis, parent) of the buckets read since the last call; the account is 0 for persons."""
        found = set(self.read)
        self.read.clear()
        return found

    def accounts_read(self) -> set[int]:
        """Return the accounts whose buckets were read since the last call."""
        return {id_conta for id_conta, *_ in self.buckets_read()}


class _RecordingConnection(ForwardingConnection[BucketRecording]):
    def fetch(self, statement: Statement) -> list[Row]:
        return self._record(statement, super().fetch(statement))

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        return list(map(self._record, statements, super().fetch_each(statements)))

    def _record(self, statement: Statement, rows: list[Row]) -> list[Row]:
        if statement.text.startswith("SELECT parent, bucket, lower"):
            _, id_conta, axis, *_ = statement.params
            self._store.read += ((id_conta, axis, parent) for parent, *_ in rows)
        return rows


def test_a_writer_rereads_only_buckets_that_others_have_changed(store: Store) -> None:
    first = store.account()
    second = store.account(first.id_organizacao)
    recording, counter = BucketRecording(store.database), count()
    one, other, same = (Ingest(recording, each.id_conta, sizes=SMALL) for each in (first, second, first))

    def read_by(ingest: Ingest, **given: object) -> set[int]:
        number = next(counter)
        ingest.write([relatorio(number, atualizado_em=NOON + number, **given)])
        return recording.accounts_read()

    assert read_by(one) == {first.id_conta, 0}
    assert read_by(one) == set()
    assert read_by(other) == {second.id_conta, 0}
    assert read_by(one) == {0}, "both accounts share the persons"
    assert read_by(one, tipo_pessoa="EMPRESA", numero_documento="11222333000181") == set()
    assert read_by(other) == {0}, "of the other's last writes, only those to persons concern both"
    assert read_by(same) == {first.id_conta, 0}
    assert read_by(one) == {first.id_conta, 0}
    assert not list(verify(store.database))


def test_writers_that_split_buckets_in_turn_never_give_one_number_twice(store: Store, account: Account) -> None:
    writers = [Ingest(store.database, account.id_conta, sizes=SMALL) for _ in range(2)]
    for turn in range(8):
        numbers = range(20 * turn, 20 * turn + 20)
        writers[turn % 2].write([relatorio(n, atualizado_em=NOON + n, numero_documento=cpf(n)) for n in numbers])
    assert not list(verify(store.database))


def test_a_writer_reads_only_the_fine_buckets_where_it_writes(store: Store, account: Account) -> None:
    """It reads those below one coarse bucket per axis, and those below the coarse bucket that a report leaves."""
    id_conta = account.id_conta

    def report(number: int, instant: int) -> Relatorio:
        return relatorio(number, atualizado_em=instant, numero_documento=cpf(number), mensagem=f"{number:03}")

    Ingest(store.database, id_conta, sizes=SMALL).write([report(n, NOON + n) for n in range(500)])
    recording = BucketRecording(store.database)
    Ingest(recording, id_conta, sizes=SMALL).write([report(250, NOON + 500)])
    read = recording.buckets_read()
    opened = Counter((owner, axis) for owner, axis, parent in read if parent != COARSE)
    every = {*((id_conta, axis) for axis in axes.OF_RELATORIO), *((0, axis) for axis in axes.OF_PESSOA)}
    assert {(owner, axis) for owner, axis, _ in read} == {(owner, axis.number) for owner, axis in every}
    assert opened == {
        (id_conta, axes.RELATORIO_RECENCY.number): 2,
        (id_conta, axes.RELATORIO_NUMERO.number): 1,
        (id_conta, axes.RELATORIO_DOCUMENTO.number): 1,
        (id_conta, axes.RELATORIO_MENSAGEM.number): 1,
        (0, axes.PESSOA_RECENCY.number): 2,
    }
    coarse = Statement("SELECT count(*) FROM bucket WHERE parent = 0 GROUP BY id_conta, axis")
    assert min(store.database.fetch(coarse)) > (10,)
    assert not list(verify(store.database))


def test_a_writer_reports_lost_fine_buckets(store: Store, account: Account) -> None:
    ingest = Ingest(store.database, account.id_conta, sizes=SMALL)
    ingest.write([relatorio(1)])
    with store.database.transaction() as connection:
        connection.run_script("DELETE FROM bucket WHERE axis = 2 AND parent > 0")
    with pytest.raises(StoreError, match="laudo verify --repair"):
        Ingest(store.database, account.id_conta).write([relatorio(2)])
    assert store.database.fetch(Statement("SELECT count(*) FROM relatorio")) == [(1,)]
    repair(store.database, verify(store.database))
    assert Ingest(store.database, account.id_conta).write([relatorio(2)]) == Counts(inserted=1)


# Transactions that are rolled back.


class RollingBack(Forwarding):
    """A store that rolls back a number of write transactions, each after it has written."""

    def __init__(self, database: Database, times: int) -> None:
        super().__init__(database)
        self.times = times

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self._database.transaction() as connection:
            yield connection
            self.times -= 1
            if self.times >= 0:
                raise Lost


def test_a_rolled_back_batch_is_retried_twice(store: Store, account: Account) -> None:
    store.write(account, [relatorio(1)])
    ingest = Ingest(RollingBack(store.database, 2), account.id_conta, sizes=SMALL)
    assert ingest.write([relatorio(2, nome="nova")]) == Counts(inserted=1)
    ingest = Ingest(RollingBack(store.database, 2), account.id_conta, sizes=SMALL)
    assert ingest.delete([numero(1), numero(2)]) == 2
    assert not list(verify(store.database))


def test_a_batch_that_is_always_rolled_back_is_not_stored(store: Store, account: Account) -> None:
    ingest = Ingest(RollingBack(store.database, 3), account.id_conta, sizes=SMALL)
    with pytest.raises(Lost):
        ingest.write([relatorio(1)])
    assert ingest.write([relatorio(1)]) == Counts(inserted=1)
    assert not list(verify(store.database))


class CountingWrites(Forwarding):
    """A store that counts the write transactions that were begun."""

    begun = 0

    def writing(self, connection: Connection) -> Connection:
        self.begun += 1
        return connection


class Breaking(Forwarding):
    """A store that rolls back one write transaction, once `left` more statements have been sent."""

    left = -1

    def writing(self, connection: Connection) -> Connection:
        return _BreakingConnection(connection, self)


class _BreakingConnection(ForwardingConnection[Breaking]):
    def fetch(self, statement: Statement) -> list[Row]:
        self._count()
        return super().fetch(statement)

    def write(self, write: Write, rows: Iterable[Row]) -> None:
        self._count()
        super().write(write, rows)

    def _count(self) -> None:
        self._store.left -= 1
        if self._store.left == -1:
            raise Lost


def test_a_batch_rolled_back_at_any_statement_leaves_the_writer_intact(store: Store, account: Account) -> None:
    breaking = Breaking(store.database)
    ingest = Ingest(breaking, account.id_conta, sizes=SMALL)
    ingest.write([relatorio(0)])
    for statements in count():
        breaking.left = statements
        moved = relatorio(0, nome=f"modelo {statements}", atualizado_em=NOON + 1 + statements)
        assert ingest.write([moved, relatorio(1 + statements)]) == Counts(inserted=1, updated=1)
        if breaking.left >= 0:
            break
    assert statements > 20
    assert not list(verify(store.database))


@pytest.mark.engines("postgres", reason="SQLite has one writer at a time")
@pytest.mark.skipif(
    bool(cluster.named()), reason="on a cluster the writer waits on a machine that it is not connected to"
)
@pytest.mark.parametrize("what", ["a deadlock", "the end of its session"])
def test_a_batch_rolled_back_by_the_server_is_retried(
    store: Store, store_url: str, account: Account, what: str
) -> None:
    """The writer has changed a facet's row and waits for its account's row, which another session has changed."""
    ingest = Ingest(counting := CountingWrites(store.database), account.id_conta, sizes=SMALL)
    ingest.write([relatorio(1)])
    counting.begun = 0
    with psycopg.connect(store_url) as other, ThreadPoolExecutor(1) as thread:
        other.execute("SET deadlock_timeout = '1h'")  # so that the writer's session finds the deadlock
        other.execute("UPDATE conta SET version = version")
        result = thread.submit(ingest.write, [relatorio(2)])
        waiting = _waiting(store_url)
        if what == "a deadlock":
            other.execute("UPDATE facet SET total = total")
        else:
            other.execute("SELECT pg_terminate_backend(%s)", [waiting])
        other.rollback()
        assert result.result(PATIENCE) == Counts(inserted=1)
    assert not list(verify(store.database))
    if what == "a deadlock":
        # There is a second one if the writer tries again before the other session, which waits for it, goes on.
        assert 1 < counting.begun < 4
        # A session publishes its statistics each second, or when it is idle.
        until(lambda: deadlocks(store.database) == counting.begun - 1, "not each deadlock was counted")
    else:
        assert (counting.begun, deadlocks(store.database)) == (2, 0)


def _waiting(store_url: str) -> int:
    """Wait until a session waits for a lock; returns its process id."""
    question = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(store_url, autocommit=True) as connection:
        [(pid,)] = until(lambda: connection.execute(question).fetchall(), "no session waits")
        return int(pid)
