"""Searches for words that occur only at the beginning of names: the matches are a range in the order by name."""

from collections.abc import Iterator
from contextlib import closing
from itertools import product
from random import Random
from typing import Final

import pytest

from effort import Noted
from factories import NOON, Account, Store, cpf, relatorio
from laudo.core import leads, plan, query, sql, walking
from laudo.core.axes import PESSOA_NOME
from laudo.core.facets import Group
from laudo.core.lookups import Asking, Plain, Words
from laudo.core.points import Lead
from laudo.core.resources import PESSOAS
from laudo.core.sql import POSTGRES, SQLITE, Dialect, Owner
from laudo.server.database import Database
from laudo.server.stores import open_store
from wsgi import Client, NewApp

PERSONS: Final = 400
NAMES: Final = (
    *("Maria Silva", "Mariana Souza Lima", "Marcos Souza", "Maria", "Márcia da Silva", "Maria Leao"),
    *("Ana Moura", "José Lima", "Zuleica Silva", "Bia Souza Zuleica", "Zuleica Maria"),
)
MARIA_ALONE: Final = tuple(name for name in NAMES if name != "Zuleica Maria")
SORTS: Final = ("cpf", "-cpf", "nome", "-nome", "atualizado_em", "-atualizado_em")
PERIODS: Final = ("", "&atualizado_em_de=2026-01-31T14:00Z", "&atualizado_em_ate=2026-01-31T14:00Z")
WORDS: Final = (
    "maria",
    "mar",
    "zuleica",
    "mar+s",
    "s+maria",
    "leao+maria",
    "silva",
    "maria&busca=1",
    "maria&busca=mar",
    "x",
)


@pytest.fixture(params=[MARIA_ALONE, NAMES], ids=["all-begin", "one-does-not"])
def database(request: pytest.FixtureRequest, store_url: str, store: Store, account: Account) -> Iterator[Database]:
    seeded = Random(3)
    store.write(
        account,
        [
            relatorio(
                number,
                nome_pessoa=seeded.choice(request.param),
                numero_documento=cpf(number),
                atualizado_em=NOON + seeded.randrange(PERSONS) * 60_000,
            )
            for number in range(PERSONS)
        ],
    )
    with closing(open_store(store_url)) as database:
        yield database


def no_names(_words: Words, _group: Group) -> Asking[list[Lead]]:
    yield from ()
    return []


@pytest.mark.parametrize("collecting", [None, 0, 10**9], ids=["estimated", "collecting", "walking"])
def test_pages_are_the_same_with_and_without_a_range_of_names(
    database: Database, new_app: NewApp, account: Account, monkeypatch: pytest.MonkeyPatch, collecting: int | None
) -> None:
    client = Client(new_app(database, cache_bytes=0), account.token)
    urls = [f"/pessoas?nome={word}{period}&sort={sort}" for word, period, sort in product(WORDS, PERIODS, SORTS)]
    paged = [f"{url}&page={page}" for url in urls for page in (1, 2, 4, 99)]
    with monkeypatch.context() as patched:
        patched.setattr(leads, "of_name", no_names)
        expected = {url: client.get(url).body for url in paged}
    for module, name, value in (plan, "FEW", 0), (plan, "FAR", 0), (walking, "LEAST", 0):
        monkeypatch.setattr(module, name, value)
    if collecting is not None:
        monkeypatch.setattr(walking.Matching, "collect_cost", lambda *_: collecting)
    assert {url: client.get(url).body for url in paged} == expected


def test_a_range_of_names_is_read_only_if_all_matches_begin_with_the_word(
    database: Database, new_app: NewApp, account: Account, noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FEW", 0)
    monkeypatch.setattr(plan, "FAR", 0)
    client = Client(new_app(database, cache_bytes=0), account.token)
    total = client.get("/pessoas?nome=zuleica+maria").total
    given = ("maria", not total), ("s+maria", not total), ("mar", not total), ("silva", False), ("leao", False)
    for words, begins in given:
        noted.clear()
        client.get(f"/pessoas?nome={words}&sort=cpf&page=2")
        client.get(f"/pessoas?nome={words}{PERIODS[1]}")
        asked, word = [lookup for lookup, _ in noted if isinstance(lookup, Plain)], words.rpartition("+")[2]
        assert {each.beginning for each in asked} == ({word} if begins else {""}), words
        assert any(each.through is PESSOA_NOME for each in asked) == begins, words


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRES], ids=["sqlite", "postgres"])
@pytest.mark.parametrize("sort", SORTS)
def test_a_prefix_uses_the_index_only_in_the_order_by_name(dialect: Dialect, sort: str) -> None:
    asked = query.parse(PESSOAS, f"nome=maria&sort={sort}", max_rows=25)
    walk = Plain(asked, None, asked.order, 25, 0, None, collect=False, beginning="maria")
    text = sql.statement(walk, Owner(1, 1), dialect).text
    column = "nome_busca" if sort.endswith("nome") else dialect.unindexed("nome_busca", is_text=True)
    assert f"{column} >= ? AND {column} < ?" in text
    assert f"{dialect.position}(" not in text
