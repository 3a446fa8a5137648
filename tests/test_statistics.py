"""Statistics for PostgreSQL's planner: a writer analyzes a growing store, before autovacuum would do it."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from engines import Engine, Stores
from factories import Store
from forwarding import Forwarding, ForwardingConnection
from laudo import demo
from laudo.core.sql import Owner, Statement
from laudo.server.database import Connection, Database, Row, StoreError
from laudo.server.ingest import statistics
from laudo.server.ingest.copying import Copy
from laudo.server.ingest.progress import SILENT
from laudo.server.ingest.statistics import GROWTH, LEAST
from laudo.server.ingest.verify import pessoas, recount
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store

MANY = LEAST * GROWTH


@pytest.fixture
def stores(postgres: Engine, tmp_path: Path) -> Iterator[Stores]:
    with Stores(postgres, tmp_path) as made:
        yield made


@pytest.fixture
def database(stores: Stores) -> Iterator[Database]:
    with closing(opened(stores)) as made:
        yield made


def opened(stores: Stores) -> Database:
    """Open a store that only laudo analyzes."""
    database = open_store(stores.new(), write=True)
    with database.transaction() as connection:
        for table in ("relatorio", "pessoa", "tally"):
            connection.run_script(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    return database


def ingest(database: Database, key_file: Path) -> Ingest:
    return Ingest(database, Store(database, key_file).account().id_conta)


def known(database: Database, table: str = "relatorio") -> int:
    """Return how many rows a table had when the server last analyzed it."""
    asked = "SELECT reltuples FROM pg_class WHERE oid = to_regclass(?)"
    return max(0, int(database.fetch(Statement(asked, (table,)))[0][0]))


def test_tables_are_analyzed_in_the_batch_that_makes_them_large(database: Database, tmp_path: Path) -> None:
    writing, reports = ingest(database, tmp_path / "key"), demo.relatorios(MANY)
    writing.write(list(islice(reports, LEAST - 1)))
    assert known(database) == 0
    writing.write(list(islice(reports, 1)))
    assert known(database) == LEAST
    assert known(database, "tally") > 0
    assert known(database, "pessoa") > 0


def test_tables_are_analyzed_again_only_after_they_have_grown(database: Database, tmp_path: Path) -> None:
    writing, reports = ingest(database, tmp_path / "key"), demo.relatorios(MANY)
    writing.write(list(islice(reports, LEAST)))
    writing.write(list(islice(reports, MANY - LEAST - 1)))
    assert known(database) == LEAST
    writing.write(list(reports))
    assert known(database) == MANY


def test_tables_analyzed_by_somebody_else_are_left_alone(database: Database, tmp_path: Path) -> None:
    writing, reports = ingest(database, tmp_path / "key"), demo.relatorios(LEAST)
    writing.write(list(islice(reports, LEAST // 2)))
    with database.transaction() as connection:
        connection.run_script("ANALYZE relatorio")
    writing.write(list(reports))
    assert known(database) == LEAST // 2


def test_a_copy_is_analyzed_while_it_is_made(database: Database, stores: Stores, tmp_path: Path) -> None:
    ingest(database, tmp_path / "key").write(list(demo.relatorios(LEAST)))
    with closing(opened(stores)) as target:
        copy = Copy(database, target)
        copy.copy_callers()
        copy.copy_reports()
        assert known(target) == LEAST


def test_a_repair_analyzes_a_store_that_was_never_analyzed(database: Database, tmp_path: Path) -> None:
    """`pg_restore` makes such a store: creating indexes counts its rows, but nothing analyzes them."""
    account = Store(database, tmp_path / "key").account()
    with patch.object(statistics, "LEAST", MANY):
        Ingest(database, account.id_conta).write(list(demo.relatorios(LEAST)))
    with database.transaction() as connection:
        connection.run_script(f"UPDATE pg_class SET reltuples = {LEAST} WHERE oid = 'relatorio'::regclass")
    assert (known(database), known(database, "tally")) == (LEAST, 0)
    with database.transaction() as connection:
        recount.conta(connection, Owner(account.id_organizacao, account.id_conta), SILENT)
    assert known(database, "tally") > 0


def test_persons_of_a_table_never_analyzed_are_compared_in_one_pass(database: Database, tmp_path: Path) -> None:
    """This happens to the writer of a copy, because only the owner of a table can analyze it."""
    account = Store(database, tmp_path / "key").account()
    with patch.object(statistics, "LEAST", 10 * MANY):
        Ingest(database, account.id_conta).write(list(demo.relatorios(MANY)))
    with database.snapshot() as connection:
        [(before,)] = connection.fetch(Statement(_BLOCKS))
        assert list(pessoas.differences(connection, account.id_organizacao, SILENT, is_sound=True)) == []
        [(after,)] = connection.fetch(Statement(_BLOCKS))
    assert known(database) == 0
    assert after - before < 4 * MANY


_BLOCKS = """
SELECT sum(pg_stat_get_xact_blocks_fetched(oid))::bigint FROM pg_class
WHERE oid = 'relatorio'::regclass OR relname LIKE 'relatorio_%'
"""


class Breaking(Forwarding):
    """A store whose first transaction with a script fails right after it."""

    is_whole = False

    def writing(self, connection: Connection) -> Connection:
        return connection if self.is_whole else _BreakingConnection(connection, self)


class _BreakingConnection(ForwardingConnection[Breaking]):
    def run_script(self, text: str) -> None:
        super().run_script(text)
        self._store.is_whole = True
        message = "broken off"
        raise StoreError(message)


def test_an_analysis_rolled_back_with_its_batch_is_repeated(database: Database, tmp_path: Path) -> None:
    account, reports = Store(database, tmp_path / "key").account(), list(demo.relatorios(LEAST))
    writing = Ingest(Breaking(database), account.id_conta)
    with pytest.raises(StoreError, match="broken off"):
        writing.write(reports)
    writing.write(reports)
    assert statistics_of(database) == LEAST


def statistics_of(database: Database) -> int:
    """Return how many distinct numeros the server's statistics assume."""
    asked = "SELECT -n_distinct * ? FROM pg_stats WHERE tablename = 'relatorio' AND attname = 'numero'"
    return int(database.fetch(Statement(asked, (LEAST,)))[0][0])


def test_an_analysis_skips_a_locked_table(database: Database, tmp_path: Path) -> None:
    """While somebody builds an index concurrently, the server cannot analyze that table."""
    writing = ingest(database, tmp_path / "key")
    with database.transaction() as building:
        building.run_script("LOCK TABLE relatorio IN SHARE UPDATE EXCLUSIVE MODE")
        assert writing.write(list(demo.relatorios(LEAST))).inserted == LEAST
        assert known(database) == 0
        assert known(database, "tally") > 0


class FetchCounting(Forwarding):
    """A store that records, at each batch of queries, how many blocks of reports and indexes were fetched so far."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.fetched: list[int] = []

    def writing(self, connection: Connection) -> Connection:
        return _FetchCountingConnection(connection, self)


class _FetchCountingConnection(ForwardingConnection[FetchCounting]):
    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self._store.fetched.append(super().fetch(Statement(_BLOCKS))[0][0])
        return super().fetch_each(statements)


def test_reports_of_a_new_account_in_a_large_store_are_found_by_key(stores: Stores, tmp_path: Path) -> None:
    """The statistics say that such an account has no reports, so the planner considers any index good enough."""
    url = stores.new()
    with closing(open_store(url, write=True)) as filling:
        store = Store(filling, tmp_path / "key")
        Ingest(filling, store.account().id_conta).write(list(demo.relatorios(MANY)))
        account = store.account()
    with closing(open_store(url, write=True)) as later:
        counting = FetchCounting(later)
        reports = list(demo.relatorios(MANY - 1))
        writing = Ingest(counting, account.id_conta)
        writing.write(reports)
        counting.fetched.clear()
        newer = zip(reports[:100], reports[100:], strict=False)
        again = [replace(each, numero=old.numero, atualizado_em=each.atualizado_em + 1) for old, each in newer]
        assert writing.write(again).updated == len(again)
        assert known(later) == MANY
    assert counting.fetched[-1] - counting.fetched[0] < 40 * len(again)
