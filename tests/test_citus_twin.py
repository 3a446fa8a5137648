"""Each statement of the service needs one machine, as shown by a twin with tables partitioned as Citus would do it."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

import cluster
import everything
import twin
from cluster import Singly
from engines import Engine, Stores
from laudo.core.sql import How, Statement
from laudo.server import migrations
from laudo.server.database import Database
from laudo.server.stores import open_store
from test_citus_rules import OF_THE_WHOLE_STORE
from twin import Touched, Watched

# All tests run in one worker, so that all functions are run on a store only once.
pytestmark = pytest.mark.xdist_group("citus")


class Seen(NamedTuple):
    """A twin's URL, and the machines that were touched when all functions were run on it."""

    touched: Touched
    url: str


@pytest.fixture(scope="module")
def seen(postgres: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    folder, touched = tmp_path_factory.mktemp("twin"), Touched()

    def opened(url: str, *, write: bool = False) -> Database:
        return Watched(open_store(url, write=write), touched)

    with Stores(postgres, folder) as stores:
        plain = stores.bare()
        with closing(open_store(plain, write=True)) as database:
            migrations.migrate(database)
        twin.part(plain)
        # A generic plan does not know the parameters, and must still prune all partitions but one.
        url = f"{plain}?options=-c%20plan_cache_mode%3Dforce_generic_plan"
        everything.done(url, folder / "laudo.key", opened=opened)
        yield Seen(touched, url)


if cluster.named():  # the same on a real cluster, if the environment names one

    def test_every_statement_needs_one_shard_of_a_table(postgres: Engine, tmp_path: Path) -> None:
        def opened(url: str, *, write: bool = False) -> Database:
            return Singly(open_store(url, write=write), is_of_the_whole_store)

        with Stores(postgres, tmp_path) as stores:
            url = f"{stores.new()}?options=-c%20{cluster.SINGLY}%3Derror"
            everything.done(url, tmp_path / "laudo.key", opened=opened)


def is_of_the_whole_store(text: str) -> bool:
    """Tell whether a statement is one of the command line's that concern the whole store."""
    return any(re.fullmatch(each, text) for each in OF_THE_WHOLE_STORE)


def test_every_statement_is_planned_for_one_machine(seen: Seen) -> None:
    many = [text for text, machines in seen.touched.planned.items() if len(machines) > 1]
    assert [text for text in many if not is_of_the_whole_store(text)] == []
    assert len(many) >= len(OF_THE_WHOLE_STORE)
    assert len(seen.touched.planned) > 200


def test_every_statement_runs_on_one_machine(seen: Seen) -> None:
    many = {text for text, machines in seen.touched.run if len(machines) > 1}
    assert [text for text in many if not is_of_the_whole_store(text)] == []
    assert len(many) >= len(OF_THE_WHOLE_STORE)
    assert {text for text, _ in seen.touched.run} >= seen.touched.planned.keys()


def test_a_transaction_changes_at_most_one_machine(seen: Seen) -> None:
    assert {len(machines) for machines in seen.touched.changed} == {0, 1}


def test_the_organizations_are_spread_over_several_machines(seen: Seen) -> None:
    """Otherwise the tests above would prove nothing."""
    used = {machine for machines in seen.touched.changed for machine in machines}
    with closing(open_store(seen.url)) as database:
        rows = database.fetch(Statement("SELECT DISTINCT tableoid::regclass::text FROM relatorio"))
    assert {f"relatorio_on_{machine}" for machine in used} == {name for (name,) in rows}
    assert len(used) > 1


def test_every_kind_of_write_was_executed(seen: Seen) -> None:
    assert seen.touched.kinds == set(How)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT item FROM pessoa WHERE cpf = ?",
        "SELECT 1 FROM conta JOIN organizacao USING (id_organizacao) WHERE id_conta::text = ?",
        "SELECT 1 FROM conta WHERE id_organizacao = 1 AND (SELECT count(*) FROM facet WHERE nome <> ?) > 0",
        "SELECT 1 FROM conta WHERE id_organizacao > 1 AND nome_conta <> ?",
        "UPDATE usuario SET nome_usuario = ?",
        "DELETE FROM pessoa WHERE cpf > ?",
    ],
)
def test_a_statement_for_several_machines_is_detected(seen: Seen, text: str) -> None:
    touched = Touched()
    with closing(Watched(open_store(seen.url, write=True), touched)) as database, database.transaction() as connection:
        connection.fetch(Statement(text, ("1",)))
    [(_, run)] = touched.run
    assert len(touched.planned[text]) > 1
    assert len(run) > 1
