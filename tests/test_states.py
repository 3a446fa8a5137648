"""Replicas that alternate between states of a list, or do not have the list yet."""

import shutil
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from factories import Store, relatorio
from laudo.core import query, resources
from laudo.core.sql import Statement
from laudo.server import keys, migrations
from laudo.server.callers import Caller
from laudo.server.database import Lost
from laudo.server.ingest.writer import Ingest
from laudo.server.pages import Answer, Pages
from laudo.server.stores import open_store

VERSIONS = "SELECT c.version, o.version FROM conta AS c JOIN organizacao AS o USING (id_organizacao) WHERE id_conta = ?"


@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
def test_a_walk_that_alternates_between_states_misses_no_report(tmp_path: Path, cache_bytes: int) -> None:
    before, after = tmp_path / "before.db", tmp_path / "after.db"
    with closing(open_store(f"sqlite:///{before}", write=True)) as database:
        migrations.migrate(database)
        account = Store(database, tmp_path / "key").account()
        always = [relatorio(1000 * number) for number in range(60)]
        Ingest(database, account.id_conta).write(always)
    shutil.copy(before, after)
    with closing(open_store(f"sqlite:///{after}", write=True)) as database:
        Ingest(database, account.id_conta).write([relatorio(24_001 + number) for number in range(25)])
    pages, asked, walked = Pages(keys.load(tmp_path / "key"), cache_bytes=cache_bytes), "sort=numero", ""
    with ExitStack() as stack:
        stale, fresh = (stack.enter_context(closing(open_store(f"sqlite:///{path}"))) for path in (before, after))
        for database in (stale, fresh, stale, stale, stale):
            [versions] = database.fetch(Statement(VERSIONS, (account.id_conta,)))
            caller = Caller(
                account.id_organizacao, account.id_conta, account.id_usuario, account.id_token, None, *"....", *versions
            )
            with database.snapshot() as connection:
                answer = pages.answer(connection, caller, query.parse(resources.RELATORIOS, asked, max_rows=1000))
            assert isinstance(answer, Answer)
            walked += answer.body.decode()
            if 'rel="next"' not in answer.link:
                break
            asked = (
                next(each for each in answer.link.split("<") if 'rel="next"' in each)
                .partition("?")[2]
                .partition(">")[0]
            )
    assert [each.numero for each in always if each.numero not in walked] == []


@pytest.mark.parametrize("asked", ["", "page=2&nome=x", "sort=numero&resultado=VALID"])
def test_a_snapshot_that_lacks_the_account_counts_as_lost(tmp_path: Path, asked: str) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/laudo.db", write=True)) as database:
        migrations.migrate(database)
        keys.make(tmp_path / "key")
        caller = Caller(1, 1, 1, 1, None, ".", ".", ".", ".", 5, 5)
        pages = Pages(keys.load(tmp_path / "key"), cache_bytes=0)
        question = query.parse(resources.RELATORIOS, asked, max_rows=1000)
        assert pages.answer_in_one_statement(database, caller, question, None, None) is None
        with pytest.raises(Lost, match="does not have the account yet"), database.snapshot() as connection:
            pages.answer(connection, caller, question)
