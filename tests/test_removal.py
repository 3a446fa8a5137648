"""Reports are deleted by document or age, and all counts stay correct, also with writers at the same time."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

import postgres_server
from engines import sqlite_file
from factories import NOON, SMALL, Account, Store, cpf, numero, relatorio, versions
from forwarding import Forwarding, ForwardingConnection
from laudo.core import axes
from laudo.core.sql import Owner, Statement
from laudo.server import accounts, migrations
from laudo.server.database import Connection, Row, StoreError
from laudo.server.ingest import removal
from laudo.server.ingest.removal import Removal
from laudo.server.ingest.verify import verify
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store
from wsgi import Client

DAY = 86_400_000


@pytest.fixture
def owners(store: Store, account: Account) -> list[Owner]:
    """Three accounts of one organization, each with 40 reports of ten persons, one a day; and another organization."""
    others = [store.account(account.id_organizacao), store.account(account.id_organizacao), store.account()]
    for each in (account, *others):
        store.write(each, [relatorio(n, numero_documento=cpf(n % 10), atualizado_em=NOON + n * DAY) for n in range(40)])
    with store.database.snapshot() as connection:
        return accounts.owners(connection, account.id_organizacao)


def _removal(store: Store, owners: list[Owner]) -> Removal:
    return Removal(store.database, owners[0].id_organizacao, sizes=SMALL)


@pytest.mark.parametrize("most", [1, 7, 12, 1000])
def test_removing_persons_deletes_from_all_accounts_in_small_transactions(
    store: Store, owners: list[Owner], acme: Client, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(removal, "MOST", most)
    gone = list(_removal(store, owners).delete_documents([cpf(3), cpf(5), cpf(77)]))
    assert sum(each.reports for each in gone) == 3 * 8
    assert max(each.reports for each in gone) <= most
    assert set.union(*(each.documentos for each in gone)) == {cpf(3), cpf(5)}
    assert acme.get("/pessoas").total == 8
    assert acme.get("/relatorios").total == 32
    assert list(verify(store.database)) == []
    with store.database.snapshot() as connection:
        found = [list(removal.reports_of(connection, owners[0].id_organizacao, cpf(n))) for n in (3, 4)]
    assert [len(each) for each in found] == [0, 3 * 4]


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_removal_by_age_keeps_newer_reports_and_their_persons(
    store: Store, owners: list[Owner], acme: Client, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(removal, "MOST", most)
    removing = _removal(store, owners)
    assert removing.count_before(NOON + 35 * DAY) == 3 * 35
    assert sum(each.reports for each in removing.delete_before(NOON + 35 * DAY)) == 3 * 35
    assert removing.count_before(NOON + 35 * DAY) == 0
    assert acme.get("/pessoas").total == 5
    assert list(verify(store.database)) == []


def test_an_interrupted_removal_has_deleted_the_oldest_reports_of_an_account(
    store: Store, owners: list[Owner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "MOST", 7)
    removing = _removal(store, owners)
    assert next(removing.delete_before(NOON + 35 * DAY)).reports == 7
    assert removing.count_before(NOON + 7 * DAY) == 2 * 7


def test_a_running_writer_counts_correctly_after_a_removal(store: Store, owners: list[Owner]) -> None:
    """A writer remembers counts until it sees that somebody else has written."""
    writer = Ingest(store.database, owners[1].id_conta, sizes=SMALL)
    writer.write([relatorio(100)])
    for round_, instant in enumerate((NOON + 10 * DAY, NOON + 20 * DAY)):
        list(_removal(store, owners).delete_before(instant))
        writer.write([relatorio(101 + round_, atualizado_em=NOON + 99 * DAY)])
        assert list(verify(store.database)) == []
    assert writer.delete([numero(101)]) == 1


def test_no_bucket_begins_at_an_erased_cpf(store: Store, owners: list[Owner], account: Account) -> None:
    """Otherwise the CPF at which a bucket was split would stay in the store as the bucket's bound."""
    store.write(account, [relatorio(1000 + n, numero_documento=cpf(1000 + n)) for n in range(300)])
    removing = _removal(store, owners)
    for _ in range(5):
        begun = _bounds(store)
        assert len(begun) > 10
        assert {
            documento for each in removing.delete_documents(sorted(begun)) for documento in each.documentos
        } == begun
        assert begun.isdisjoint(_bounds(store))
        assert list(verify(store.database)) == []


def _bounds(store: Store) -> set[str]:
    """Return the CPFs at which buckets of persons begin."""
    asked = "SELECT lower FROM bucket WHERE id_conta = 0 AND axis = ? AND length(lower) > 0"
    return {bytes(lower).decode() for (lower,) in store.database.fetch(Statement(asked, (axes.PESSOA_CPF.number,)))}


def test_a_removal_includes_accounts_created_meanwhile(
    store: Store, owners: list[Owner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "MOST", 7)
    removing = _removal(store, owners)

    def create() -> None:
        account = store.account(owners[0].id_organizacao)
        store.write(account, [relatorio(n, numero_documento=cpf(3)) for n in range(5)])

    create()
    assert removing.count_before(NOON + 1) == 3 + 5
    going = removing.delete_documents([cpf(3)])
    reports = next(going).reports
    create()
    assert reports + sum(each.reports for each in going) == 3 * 4 + 2 * 5
    assert list(verify(store.database)) == []


class Counting(Forwarding):
    """A store that counts the statements of its transactions."""

    statements = 0

    def writing(self, connection: Connection) -> Connection:
        return _CountingConnection(connection, self)

    def reading(self, connection: Connection) -> Connection:
        return self.writing(connection)


class _CountingConnection(ForwardingConnection[Counting]):
    def fetch(self, statement: Statement) -> list[Row]:
        self._store.statements += 1
        return super().fetch(statement)


def test_accounts_without_such_reports_cost_no_statements(store: Store, owners: list[Owner], account: Account) -> None:
    def statements() -> int:
        store.write(account, [relatorio(7, numero_documento=cpf(7), atualizado_em=NOON)])
        counting = Counting(store.database)
        removing = Removal(counting, account.id_organizacao, sizes=SMALL)
        assert [each.reports for each in removing.delete_documents([cpf(7)])] == [1]
        assert [each.reports for each in removing.delete_before(NOON)] == [0]
        with counting.snapshot() as connection:
            assert len(list(removal.reports_of(connection, account.id_organizacao, cpf(8)))) == 3 * 4
        return counting.statements

    list(_removal(store, owners).delete_documents([cpf(7)]))
    before = statements()
    for _ in range(20):
        store.account(account.id_organizacao)
    assert statements() == before


def test_a_removal_that_deletes_nothing_changes_no_version(store: Store, owners: list[Owner]) -> None:
    before = versions(store.database)
    assert [each.reports for each in _removal(store, owners).delete_before(NOON)] == [0]
    assert [each.reports for each in _removal(store, owners).delete_documents([cpf(77)])] == [0]
    assert versions(store.database) == before


def test_only_vacuum_full_erases_deleted_values_from_a_servers_files(tmp_path: Path) -> None:
    """After a plain VACUUM, the bytes of deleted rows stay in the file until later rows overwrite them.

    The planner's statistics also keep values of each column, among them the smallest and the largest.
    """
    held = (b"Kwyzbrrt", b"kwyzbrrt", cpf(7).encode())
    with postgres_server.start() as server, closing(open_store(server.url(), write=True)) as database:
        migrations.migrate(database)
        store = Store(database, tmp_path / "laudo.key")
        account = store.account()
        store.write(account, [relatorio(n, numero_documento=cpf(100 + n), nome_pessoa=f"Ana {n}") for n in range(1500)])
        store.write(account, [relatorio(2000, numero_documento=cpf(7), nome_pessoa="Ana Kwyzbrrt")])
        server.execute("ANALYZE relatorio, pessoa, word, bucket")
        assert [each.reports for each in Removal(database, account.id_organizacao).delete_documents([cpf(7)])] == [1]

        def left(statement: str) -> int:
            for each in (statement, "CHECKPOINT"):
                server.execute(each)
            files = [file.read_bytes() for file in (server.folder / "data" / "base").rglob("*") if file.is_file()]
            return sum(any(each in content for each in held) for content in files)

        assert left("VACUUM relatorio, pessoa, word, bucket")
        assert left("VACUUM (FULL, ANALYZE) relatorio, pessoa, word, bucket") == 1
        assert left("VACUUM FULL pg_statistic") == 0


def test_a_removal_refuses_a_store_migrated_by_a_newer_version(store: Store, owners: list[Owner]) -> None:
    with store.database.transaction() as connection:
        connection.run_script("INSERT INTO migration (name, applied_at) VALUES ('9999_newer.sql', 0)")
    with pytest.raises(StoreError, match="the store was migrated by a newer version of laudo"):
        list(_removal(store, owners).delete_documents([cpf(3)]))


@pytest.mark.engines("sqlite", reason="PostgreSQL lets nobody delete the row of an organization that has accounts")
def test_reports_of_a_missing_organization_can_be_removed(store: Store, store_url: str, owners: list[Owner]) -> None:
    with closing(apsw.Connection(str(sqlite_file(store_url)))) as shell:  # It ignores foreign keys.
        shell.execute("DELETE FROM organizacao WHERE id_organizacao = ?", (owners[0].id_organizacao,))
    assert sum(each.reports for each in _removal(store, owners).delete_documents([cpf(3)])) == 3 * 4
