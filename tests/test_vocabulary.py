"""Words of names are counted so that every prefix has the right total after any additions and removals."""

from collections.abc import Iterable
from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cluster
from engines import Stores
from factories import NOON, Account, Store, contents, cpf, relatorio
from laudo.core import sql
from laudo.core.lookups import Found
from laudo.core.sql import Owner, Statement
from laudo.core.values import needed_words, words
from laudo.server import migrations
from laudo.server.ingest import counting, vocabulary
from laudo.server.ingest.verify import verify
from laudo.server.stores import open_store
from strategies import many
from wsgi import Client

letters = st.sampled_from("ab" * 8 + "cñ1\ud7fb\U0001d7f9")
names = st.lists(st.text(letters, min_size=1, max_size=5), max_size=5).map(lambda each: " ".join(words(" ".join(each))))
populations = st.lists(names, max_size=12)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(came=populations, later=populations, gone=st.sets(st.integers(0, 11)))
def test_the_total_of_every_word_prefix_equals_a_count(
    stores: Stores, came: list[str], later: list[str], gone: set[int]
) -> None:
    went = [name for number, name in enumerate(came) if number in gone]
    left = [name for number, name in enumerate(came) if number not in gone] + later
    with stores.passing() as url:
        database = open_store(url, write=True)
        with database.transaction() as connection:
            vocabulary.update(connection, 7, came, ())
            vocabulary.update(connection, 8, ["ab ac", "b"], ())
            vocabulary.update(connection, 7, later, went)
            beginnings = {word[:end] for name in (*came, *later) for word in name.split() for end in range(1, 7)}
            for beginning in {*beginnings, "a", "zz"}:
                asked = sql.statement(Found((beginning,)), Owner(7, 1), connection.dialect)
                expected = sum(any(word.startswith(beginning) for word in name.split()) for name in left)
                assert connection.fetch(asked) == [(expected,)], (beginning, left)
            kept = connection.fetch(Statement("SELECT total FROM word WHERE id_organizacao = 7"))
            assert all(total > 0 for (total,) in kept)
        database.close()


@given(asked=names, name=names)
def test_the_telling_words_find_the_same_names_as_all_words(asked: str, name: str) -> None:
    def has(words: Iterable[str]) -> bool:
        return all(any(word.startswith(beginning) for word in name.split()) for beginning in words)

    told = needed_words(asked.split())
    assert has(told) == has(asked.split())
    assert not any(word.startswith(other) for word, other in permutations(told, 2))
    assert [len(word) for word in told] == sorted(map(len, told), reverse=True)


def totals(client: Client, *nomes: str) -> list[int]:
    return [client.get("/pessoas", nome=nome).total for nome in nomes]


def test_a_search_for_one_word_has_the_total_of_its_persons(store: Store, account: Account, acme: Client) -> None:
    nomes = ["Ana Maria", "Mariana Maria Mar", "José", "Mário Márcio", "Ana Maria"]
    store.write(
        account,
        [
            relatorio(number, nome_pessoa=nome, numero_documento=cpf(number), atualizado_em=NOON + number)
            for number, nome in enumerate(nomes)
        ],
    )
    assert totals(acme, "mar", "maria", "ana", "m", "márc", "x") == [4, 3, 2, 4, 1, 0]
    store.write(account, [relatorio(9, nome_pessoa="Joana", numero_documento=cpf(0), atualizado_em=NOON + 9)])
    assert totals(acme, "mar", "maria", "ana", "jo") == [3, 2, 1, 2]
    store.delete(account, 1)
    assert totals(acme, "mar", "maria", "mariana") == [2, 1, 0]


def test_migrating_an_older_store_counts_its_words(
    store: Store, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "CHUNK", 1)
    monkeypatch.setattr(vocabulary, "_MOST_IN_MEMORY", 1)
    named = [relatorio(999, numero_documento=cpf(999), nome_pessoa="Maria Mar")]
    store.write(account, [*many(240), *named])
    before = contents(store.database)["word"]
    with store.database.transaction() as connection:
        connection.run_script("DROP TABLE word; DELETE FROM migration WHERE name = '0002_word.sql'")
    assert migrations.migrate(store.database) == ["0002_word.sql"]
    cluster.spread(store.database)
    assert contents(store.database)["word"] == before != []
    assert not list(verify(store.database))
