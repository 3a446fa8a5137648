"""A batch is stored whole or not at all, whatever interrupts it, and acknowledged reports stay."""

import gc
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import apsw
import psutil
import pytest

from awaiting import until
from engines import Stores, sqlite_file
from factories import NOON, SMALL, Account, Store, contents, cpf, relatorio
from forwarding import Forwarding, ForwardingConnection
from laudo.core.sql import Statement, Write
from laudo.server import files
from laudo.server import sqlite as sqlite_store
from laudo.server.database import Connection, Database, Row, StoreError, Unavailable
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.removal import Removal
from laudo.server.ingest.verify import repair, verify
from laudo.server.ingest.writer import Counts, Ingest
from laudo.server.sqlite import session
from laudo.server.stores import open_store
from strategies import STATUS
from wsgi import NewClient

BATCHES: Final = 30
IMPORT: Final = "import sys, test_durability; test_durability.import_until(sys.argv[1], *map(int, sys.argv[2:]))"
HALTED: Final = "halted"


class Stopping(Forwarding):
    """A store that calls a function once, after a number of rows in all tables have been written."""

    def __init__(self, database: Database, rows: int, happens: Callable[[], object]) -> None:
        super().__init__(database)
        self._left = rows
        self._happens = happens

    def writing(self, connection: Connection) -> Connection:
        return _StoppingConnection(connection, self)

    def counting(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self._left -= 1
            if self._left == -1:
                self._happens()
            yield row


class _StoppingConnection(ForwardingConnection[Stopping]):
    def write(self, write: Write, rows: Iterable[Row]) -> None:
        super().write(write, self._store.counting(rows))


@pytest.mark.parametrize("rows", [0, 1, 19, 30, 60, 150, 300])
def test_an_interrupted_batch_leaves_nothing_and_can_be_written_again(
    store: Store, account: Account, rows: int
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    Ingest(store.database, account.id_conta, sizes=SMALL).write([relatorio(0)])
    before = contents(store.database)
    batch = [relatorio(n, nome=f"matriz {n}", numero_documento=cpf(n)) for n in range(1, 21)]
    ingest = Ingest(Stopping(store.database, rows, interrupt), account.id_conta, sizes=SMALL)
    with pytest.raises(KeyboardInterrupt):
        ingest.write(batch)
    assert contents(store.database) == before
    assert ingest.write(batch) == Counts(inserted=20)
    assert not list(verify(store.database))


def test_one_unstorable_report_rolls_back_its_whole_batch(store: Store, account: Account) -> None:
    before = contents(store.database)
    with pytest.raises(UnicodeError):
        store.write(account, [relatorio(1), relatorio(2, nome_pessoa="\ud800"), relatorio(3)])
    assert contents(store.database) == before


@pytest.mark.engines("sqlite", reason="PostgreSQL ends a transaction whose commit fails")
def test_a_failed_commit_stores_nothing_and_ends_its_transaction(store: Store, account: Account) -> None:
    before = contents(store.database)
    with pytest.raises(apsw.ConstraintError), store.database.transaction() as connection:
        connection.run_script(
            "PRAGMA defer_foreign_keys = ON;"
            "INSERT INTO conta (id_organizacao, id_conta, nome_conta) VALUES (99, 99, '')"
        )
    assert contents(store.database) == before
    store.write(account, [relatorio(1)])


def test_two_writers_of_one_account_do_not_conflict(store: Store, store_url: str, account: Account) -> None:
    other = open_store(store_url, write=True)
    writers = [Ingest(store.database, account.id_conta, sizes=SMALL), Ingest(other, account.id_conta, sizes=SMALL)]
    for number in range(40):
        writers[number % 2].write([relatorio(number, nome=f"matriz {number // 3}")])
    other.close()
    assert len(contents(store.database)["relatorio"]) == 40
    assert len(contents(store.database)["facet"]) == 14
    assert not list(verify(store.database))


def test_a_batch_of_only_stale_reports_changes_nothing(store: Store, store_url: str, account: Account) -> None:
    other = open_store(store_url, write=True)
    one, two = (Ingest(database, account.id_conta) for database in (store.database, other))
    for writer, number in ((one, 1), (two, 2), (one, 3)):
        writer.write([relatorio(number)])
    two.write([relatorio(3)])
    before = contents(store.database)
    assert one.write([relatorio(1, nome="outra", atualizado_em=0)]) == Counts(stale=1)
    assert contents(store.database) == before
    assert two.write([relatorio(4, nome="mais uma")]) == Counts(inserted=1)
    assert one.write([relatorio(5, nome="e outra")]) == Counts(inserted=1)
    other.close()
    assert not list(verify(store.database))


# Killed imports.


def history() -> list[list[Relatorio]]:
    """Return batches with inserts, updates, reports whose person has changed, and stale reports."""
    seeded = random.Random(5)
    return [[_any_report(seeded) for _ in range(60)] for _ in range(BATCHES)]


def _any_report(seeded: random.Random) -> Relatorio:
    return relatorio(
        seeded.randrange(500),
        atualizado_em=NOON + seeded.randrange(10_000),
        status=seeded.choice(STATUS),
        nome=f"matriz {seeded.randrange(40)}",
        numero_documento=cpf(seeded.randrange(80)),
        nome_pessoa=f"Nome {seeded.randrange(1000)}",
    )


def _halt() -> None:
    _say(HALTED)
    signal.pause()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def import_until(store_url: str, id_conta: int, rows: int) -> None:
    """Write the history, acknowledging each batch, and wait to be killed; runs in a process of its own."""
    ingest = Ingest(Stopping(open_store(store_url, write=True), rows, _halt), id_conta, sizes=SMALL)
    for number, batch in enumerate(history()):
        ingest.write(batch)
        _say(f"acknowledged {number}")


def killed(store_url: str, account: Account, rows: int) -> int:
    """Import in another process and kill it in the middle of a batch; returns how many batches it had acknowledged."""
    command = [sys.executable, "-c", IMPORT, store_url, str(account.id_conta), str(rows)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent) as process:
        assert process.stdout
        lines = iter(process.stdout.readline, "")
        acknowledged = sum(1 for _ in iter(lambda: next(lines).strip(), HALTED))
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    return acknowledged


@pytest.mark.parametrize("kills", [(0, 1), (45, 61), (150, 700), (300, 2000), (4000, 30, 1000)])
def test_a_killed_and_repeated_import_equals_an_uninterrupted_one(
    new_store_url: Callable[[], str], key_file: Path, kills: tuple[int, ...]
) -> None:
    url = new_store_url()
    database, whole = open_store(url, write=True), open_store(new_store_url(), write=True)
    account = Store(database, key_file).account()
    expected = Ingest(whole, Store(whole, key_file).account().id_conta, sizes=SMALL)
    written = 0
    for rows in kills:
        acknowledged = killed(url, account, rows)
        # When an import is repeated, only batches that were not stored before change anything.
        for batch in history()[written : max(written, acknowledged)]:
            expected.write(batch)
        written = max(written, acknowledged)
        assert contents(database) == contents(whole)
    ingest = Ingest(database, account.id_conta, sizes=SMALL)
    again = [ingest.write(batch) for batch in history()]
    assert not [counts for counts in again[:written] if counts.inserted or counts.updated]
    for batch in history()[written:]:
        expected.write(batch)
    assert contents(database) == contents(whole)
    assert not list(verify(database))
    database.close()
    whole.close()


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Limit the length of files, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


SYNCHRONOUS = """
import sys
from laudo.core.sql import Statement
from laudo.server.stores import open_store

print(open_store(sys.argv[1], write=True).fetch(Statement("PRAGMA synchronous")))
"""


@pytest.mark.engines("sqlite", reason="PostgreSQL syncs as each transaction sets it")
def test_a_writer_syncs_to_disk_at_each_commit(store_url: str) -> None:
    """The tests turn this off in their own process. 2 is FULL; with NORMAL a power cut loses acknowledged reports."""
    command = [sys.executable, "-c", SYNCHRONOUS, store_url]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[(2,)]\n"


@pytest.mark.engines("sqlite", reason="PostgreSQL manages its own log")
@pytest.mark.parametrize(("room", "waits"), [(1 << 40, True), (1 << 20, False)])
def test_the_wal_is_kept_between_batches_only_with_ample_disk_space(
    store: Store, store_url: str, account: Account, monkeypatch: pytest.MonkeyPatch, *, room: int, waits: bool
) -> None:
    monkeypatch.setattr(files, "free_bytes", lambda _path: room)
    log = Path(f"{store_url.removeprefix('sqlite:///')}-wal")
    ingest = Ingest(store.database, account.id_conta)
    for n in range(3):
        ingest.write([relatorio(n)])
        assert (log.stat().st_size > 0) == waits


@pytest.mark.engines("sqlite", reason="PostgreSQL manages its own log")
def test_a_long_wal_is_checkpointed(
    store: Store, store_url: str, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Path(f"{store_url.removeprefix('sqlite:///')}-wal")
    ingest = Ingest(store.database, account.id_conta)
    monkeypatch.setattr(session, "_MAX_LOG_PAGES", 100)
    ingest.write([relatorio(n) for n in range(100)])
    sizes = []
    for first in range(100, 2100, 100):
        ingest.write([relatorio(n) for n in range(first, first + 100)])
        sizes.append(log.stat().st_size)
    assert max(sizes) < 2 * max(sizes[:3]), sizes


@pytest.mark.engines("sqlite", reason="PostgreSQL manages its own log")
def test_a_full_disk_stops_writes_to_a_store_but_not_reads(
    store_url: str, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "free_bytes", lambda _path: 0)
    file = sqlite_file(store_url)
    log = Path(f"{file}-wal")
    with closing(open_store(store_url, write=True)) as database:
        ingest = Ingest(database, account.id_conta)
        ingest.write([relatorio(n) for n in range(1000)])
        with files_of_at_most(file.stat().st_size):
            ingest.write([relatorio(n, mensagem="x" * 500) for n in range(1000, 1050)])
            kept = log.read_bytes()
            assert kept
            with pytest.raises(Unavailable, match="check its path, rights and disk"):
                ingest.write([relatorio(1050)])
            with closing(open_store(store_url, write=True)) as another, pytest.raises(Unavailable):
                Ingest(another, account.id_conta).write([relatorio(1050)])
            assert log.read_bytes() == kept
            with closing(open_store(store_url)) as reading:
                assert reading.fetch(Statement("SELECT count(*) FROM relatorio")) == [(1050,)]
        ingest.write([relatorio(1050)])
        assert log.stat().st_size == 0
        assert not list(verify(database))


@pytest.mark.engines("sqlite", reason="PostgreSQL clears its files by VACUUM")
def test_a_deleted_report_leaves_no_trace_in_the_file(store: Store, store_url: str, account: Account) -> None:
    """This holds once the deleting writer has closed the store, even while others have it open."""
    ingest = Ingest(store.database, account.id_conta)
    for first in range(0, 3000, 500):
        ingest.write([relatorio(n, numero_documento=cpf(n), nome_pessoa=f"Ana {n}") for n in range(first, first + 500)])
    secret = relatorio(3000, numero_documento=cpf(3000), nome_pessoa="Hermenegilda Kwyzbrrt", mensagem="Xilofone.")
    ingest.write([secret])
    ingest.write([relatorio(3001, numero_documento=cpf(1), nome_pessoa="Ana Zwinglio", atualizado_em=NOON + 1)])
    with closing(open_store(store_url)) as reading:
        assert list(reading.fetch(Statement("SELECT count(*) FROM relatorio"))) == [(3002,)]
        with closing(open_store(store_url, write=True)) as database:
            Ingest(database, account.id_conta).delete([secret.numero, relatorio(3001).numero])
        file = sqlite_file(store_url)
        left = b"".join(Path(f"{file}{end}").read_bytes() for end in ("", "-wal")).lower()
    gone = (cpf(3000), "hermenegilda", "kwyzbrrt", "xilofone", "zwinglio")
    assert not [text for text in gone if text.encode() in left]
    assert b"ana 2999" in left
    assert not list(verify(store.database))


def renamed(database: Database, account: Account) -> None:
    _imported(database, account, relatorio(3000, numero_documento=cpf(3000), atualizado_em=NOON + 1))


def given_another_document(database: Database, account: Account) -> None:
    corrected = relatorio(3000, numero_documento=cpf(1), nome_pessoa="Ana 1", atualizado_em=NOON + 1)
    _imported(database, account, corrected)


def renamed_before_others_came(database: Database, account: Account) -> None:
    renamed = relatorio(3000, numero_documento=cpf(3000), atualizado_em=NOON + 1)
    _imported(database, account, renamed, relatorio(3001, numero_documento=cpf(3001)))


def _imported(database: Database, account: Account, *batches: Relatorio) -> None:
    ingest = Ingest(database, account.id_conta)
    for each in batches:
        ingest.write([each])
    ingest.erase_old_names()


def erased_though_absent(database: Database, account: Account) -> None:
    """Erase a document that no report has any more, as after an import that corrected it and was then killed."""
    Ingest(database, account.id_conta).write([relatorio(3000, numero_documento=cpf(1), atualizado_em=NOON + 1)])
    assert [gone.reports for gone in Removal(database, account.id_organizacao).delete_documents([cpf(3000)])] == [0]


def repaired(database: Database, _account: Account) -> None:
    with database.transaction() as connection:
        connection.run_script("UPDATE relatorio SET nome_pessoa = 'Ana' WHERE nome_pessoa LIKE '% Kwyzbrrt'")
    repair(database, list(verify(database)))


@pytest.mark.engines("sqlite", reason="PostgreSQL manages its own index of words")
@pytest.mark.parametrize(
    "happens", [renamed, renamed_before_others_came, given_another_document, erased_though_absent, repaired]
)
def test_a_persons_former_name_leaves_no_trace_in_the_file(
    store: Store, store_url: str, account: Account, happens: Callable[[Database, Account], None]
) -> None:
    ingest = Ingest(store.database, account.id_conta)
    for first in range(0, 3000, 500):
        ingest.write([relatorio(n, numero_documento=cpf(n), nome_pessoa=f"Ana {n}") for n in range(first, first + 500)])
    ingest.write([relatorio(3000, numero_documento=cpf(3000), nome_pessoa="Hermenegilda Kwyzbrrt")])
    with closing(open_store(store_url, write=True)) as database:
        happens(database, account)
    file = sqlite_file(store_url)
    left = b"".join(Path(f"{file}{end}").read_bytes() for end in ("", "-wal")).lower()
    assert [text for text in (b"hermenegilda", b"kwyzbrrt") if text in left] == []
    assert b"ana 2999" in left
    assert not list(verify(store.database))


@pytest.mark.engines("sqlite", reason="only a file can be replaced by another one")
def test_a_retargeted_symlink_is_refused_but_a_chdir_is_harmless(
    stores: Stores, tmp_path: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (sqlite_file(stores.new()) for _ in range(2))
    link = tmp_path / "link.db"
    link.symlink_to(first)
    monkeypatch.chdir(tmp_path)
    with closing(open_store("sqlite:///link.db", write=True)) as database:
        ingest = Ingest(database, Store(database, key_file).account().id_conta)
        monkeypatch.chdir("/")
        ingest.write([relatorio(1)])
        link.unlink()
        link.symlink_to(second)
        with pytest.raises(Unavailable, match="replaced or removed while it was open"):
            ingest.write([relatorio(2)])


def moved(other: Path, file: Path) -> None:
    """Replace a store's file by that of another one."""
    file.rename(file.with_name("before.db"))
    other.rename(file)


def copied_over(other: Path, file: Path) -> None:
    """Copy a store over another one's file, which keeps its inode, and remove the old companion files."""
    shutil.copyfile(other, file)
    without_companions(other, file)


def without_companions(_other: Path, file: Path) -> None:
    """Remove a store's companion files, `-wal` and `-shm`."""
    for end in ("-wal", "-shm"):
        Path(f"{file}{end}").unlink()


@pytest.mark.engines("sqlite", reason="only a file can be replaced by another one")
@pytest.mark.parametrize("replace", [moved, copied_over, without_companions])
def test_a_replaced_store_refuses_writes_and_answers_503(
    stores: Stores,
    store: Store,
    store_url: str,
    client: NewClient,
    replace: Callable[[Path, Path], None],
) -> None:
    other, account = stores.new(), store.account()
    ingest = Ingest(store.database, account.id_conta)
    ingest.write([relatorio(1)])
    asking = client(account.token)
    assert [asking.get(path).status for path in ("/ready", "/relatorios", "/usuario")] == [200, 200, 200]
    replace(sqlite_file(other), sqlite_file(store_url))
    with pytest.raises(Unavailable, match="replaced or removed while it was open"):
        ingest.write([relatorio(2)])
    until(lambda: asking.get("/relatorios").status != 200)  # A worker notices it soon, but not at once.
    assert {asking.get(path).status for path in ("/relatorios", "/relatorios?page=2", "/usuario", "/ready")} == {503}


@pytest.mark.engines("sqlite", reason="only a file can be reached by a symlink")
def test_companion_files_are_looked_up_at_the_target_of_a_symlink(
    store: Store, store_url: str, account: Account, tmp_path: Path
) -> None:
    """Old companion files may lie beside the symlink, left there when the store was moved."""
    file, link = sqlite_file(store_url), tmp_path / "link.db"
    link.symlink_to(file)
    for end in ("-wal", "-shm"):
        shutil.copyfile(f"{file}{end}", f"{link}{end}")
    linked = f"sqlite:///{link}"
    with closing(open_store(linked)) as reader, closing(open_store(linked, write=True)) as database:
        ingest, before = Ingest(database, account.id_conta), reader.mark()
        Ingest(store.database, account.id_conta).write([relatorio(1)])
        assert reader.mark() not in {None, before}
        without_companions(file, file)
        with pytest.raises(Unavailable, match="replaced or removed while it was open"):
            ingest.write([relatorio(2)])


@pytest.mark.engines("sqlite", reason="only a file can be replaced by another one")
def test_a_new_connection_to_a_replaced_store_is_refused(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds even while another thread checks whether the file was replaced."""
    first, second = (sqlite_file(stores.new()) for _ in range(2))
    one = Statement("SELECT 1")
    with closing(sqlite_store.Sqlite(first, write=False)) as database, ThreadPoolExecutor(1) as thread:
        assert database.fetch(one) == [(1,)]
        second.rename(first)

        def another_thread_checks() -> float:
            database._next_check = 60.0
            return 0.0

        monkeypatch.setattr(sqlite_store, "monotonic", another_thread_checks)
        with pytest.raises(Unavailable, match="replaced or removed while it was open"):
            thread.submit(database.fetch, one).result()


@pytest.mark.parametrize("write", [False, True])
def test_a_file_that_is_not_a_store_is_closed_at_once(tmp_path: Path, *, write: bool) -> None:
    file = tmp_path / "letter.db"
    file.write_bytes(b"Dear reader, this is no database. " * 1000)
    gc.disable()  # Otherwise the collector would eventually close files held by reference cycles.
    try:
        for _ in range(3):
            with pytest.raises(StoreError, match="is not a store of laudo"):
                open_store(f"sqlite:///{file}", write=write)
        assert str(file) not in [opened.path for opened in psutil.Process().open_files()]
    finally:
        gc.enable()
