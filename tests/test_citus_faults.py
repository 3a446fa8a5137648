"""If one machine of a cluster fails, only its organizations are refused; others go on, over the same connection.

The coordinator itself stays up, but answers with errors that elsewhere mean a lost connection.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import postgres_server
import twin
from factories import SMALL, Store, contents
from laudo.server import app, migrations
from laudo.server.citus import DISTRIBUTED
from laudo.server.config import Settings
from laudo.server.database import Database, Unavailable
from laudo.server.ingest import verify
from laudo.server.ingest.writer import Ingest
from laudo.server.postgres import slots
from laudo.server.stores import open_store
from postgres_server import Server
from strategies import many
from wsgi import Client

# All tests run in one worker, so that a server is started only once.
pytestmark = pytest.mark.xdist_group("citus faults")

PASSWORD: Final = "not-a-secret"
ASKED: Final = ("/usuario", "/relatorios", "/relatorios?page=2", "/relatorios?sort=mensagem", "/pessoas?busca=mar")
CODES: Final = {
    "08006": "the coordinator's connection to the machine broke, or cannot be made",
    "57P01": "the machine's administrator has ended the connection",
    "57P03": "the machine starts",
    "53300": "the machine has no connection left",
}


TWIN: Final = "twin"
POLICIES: Final = "options=-c%20row_security%3Don"
"""Enables row-level security, by which these tests make a machine fail; otherwise laudo treats a policy as an error."""
FAILING: Final = """
CREATE TABLE failure (id_organizacao BIGINT PRIMARY KEY, code TEXT NOT NULL, at_the_end BOOLEAN NOT NULL);

CREATE FUNCTION fail(organizacao BIGINT, at_end BOOLEAN) RETURNS BOOLEAN LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE found RECORD;
BEGIN
    FOR found IN SELECT code FROM failure WHERE id_organizacao = organizacao AND at_the_end = at_end LOOP
        RAISE 'connection to the remote node failed' USING ERRCODE = found.code;
    END LOOP;
    RETURN true;
END $$;

CREATE FUNCTION fail_at_the_end() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM fail(NEW.id_organizacao, true);
    RETURN NULL;
END $$;

CREATE ROLE api LOGIN PASSWORD 'not-a-secret';
CREATE ROLE importer LOGIN PASSWORD 'not-a-secret';
GRANT SELECT ON ALL TABLES IN SCHEMA public TO api;
GRANT ALL ON ALL TABLES IN SCHEMA public TO importer;
"""


class Tried(NamedTuple):
    """Two organizations, read over one connection, with a writer each: `down` can be made to fail, `well` cannot."""

    server: Server
    ask: dict[str, Client]
    write: dict[str, Ingest]
    writing: Database

    def fail(self, code: str, *, at_the_end: bool = False) -> None:
        """Make every statement of `down` fail with this SQLSTATE, or, with `at_the_end`, only its commits."""
        organizacao = self.write["down"].owner.id_organizacao
        self.server.execute("INSERT INTO failure VALUES (%s, %s, %s)", (organizacao, code, at_the_end), database=TWIN)

    def mend(self) -> None:
        self.server.execute("DELETE FROM failure", database=TWIN)

    def connections(self) -> list[tuple[int]]:
        return self.server.execute("SELECT pid FROM pg_stat_activity WHERE usename = 'api'")

    def statuses(self, name: str) -> list[int]:
        return [self.ask[name].get(url).status for url in ASKED]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server.start() as started:
        started.execute(f"CREATE DATABASE {TWIN}")
        with closing(open_store(started.url(TWIN), write=True)) as database:
            migrations.migrate(database)
        twin.part(started.url(TWIN))
        started.execute(FAILING, database=TWIN)
        for table in DISTRIBUTED:
            for text in (
                f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
                f"CREATE POLICY machine ON {table} USING (fail(id_organizacao, false))",
            ):
                started.execute(text, database=TWIN)
        for machine in range(twin.MACHINES):
            trigger = (
                f"CREATE CONSTRAINT TRIGGER machine AFTER UPDATE ON conta_on_{machine} DEFERRABLE INITIALLY DEFERRED"
            )
            started.execute(f"{trigger} FOR EACH ROW EXECUTE FUNCTION fail_at_the_end()", database=TWIN)
        yield started


@pytest.fixture
def tried(server: Server, tmp_path: Path) -> Iterator[Tried]:
    key_file = tmp_path / "laudo.key"
    reading, writer = (f"{server.url(TWIN, user=user, password=PASSWORD)}?{POLICIES}" for user in ("api", "importer"))
    settings = Settings(store=reading, key_file=str(key_file), log=False, cache_bytes=0, pool_size=1)
    with (
        closing(open_store(writer, write=True)) as writing,
        closing(open_store(reading, bounds=settings.bounds)) as database,
    ):
        store = Store(writing, key_file)
        accounts = {"down": store.account(), "well": store.account()}
        for account in accounts.values():
            store.write(account, many(60))
        service = app.create(settings, database=database)
        ask = {name: Client(service, account.token) for name, account in accounts.items()}
        write = {name: Ingest(writing, account.id_conta, sizes=SMALL) for name, account in accounts.items()}
        yield Tried(server, ask, write, writing)
        server.execute("DELETE FROM failure", database=TWIN)


@pytest.mark.parametrize("code", CODES)
def test_only_organizations_on_a_failed_machine_are_refused(tried: Tried, code: str) -> None:
    assert tried.statuses("down") == tried.statuses("well") == [200] * len(ASKED)
    connections = tried.connections()
    assert len(connections) == 1
    tried.fail(code)
    for _ in range(3):
        assert tried.statuses("down") == [503] * len(ASKED)
        assert tried.statuses("well") == [200] * len(ASKED)
    assert tried.ask["down"].get("/relatorios").headers["retry-after"]
    assert tried.ask["well"].get("/ready").status == 200
    tried.mend()
    assert tried.statuses("down") == [200] * len(ASKED)
    assert tried.connections() == connections


def test_concurrent_requests_to_failed_and_healthy_machines_do_not_interfere(
    tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "_LONG_SECONDS", 30)  # All wait for one connection, and this computer may be slow.
    tried.fail("08006")
    names = ["down", "well"] * 10
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(tried.statuses, names))
    assert found == [[503 if name == "down" else 200] * len(ASKED) for name in names]


def test_writes_fail_only_for_organizations_on_a_failed_machine(tried: Tried) -> None:
    tried.fail("08006")
    with pytest.raises(Unavailable, match=r"cannot reach a part of the store \(SQLSTATE 08006\)"):
        tried.write["down"].write(many(80))
    assert tried.write["well"].write(many(80)).inserted == 20
    tried.mend()
    assert tried.write["down"].write(many(80)).inserted == 20
    assert list(verify.verify(tried.writing)) == []


def test_a_write_whose_commit_fails_is_reported_and_rolled_back(tried: Tried) -> None:
    tried.fail("08006", at_the_end=True)
    before = contents(tried.writing)
    with pytest.raises(Unavailable, match=r"cannot reach a part of the store \(SQLSTATE 08006\)"):
        tried.write["down"].write(many(80))
    assert contents(tried.writing) == before
    assert tried.write["well"].write(many(80)).inserted == 20
    tried.mend()
    assert tried.write["down"].write(many(80)).inserted == 20
    assert list(verify.verify(tried.writing)) == []
