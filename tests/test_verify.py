import random
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import NamedTuple

import apsw
import msgspec
import pytest

from engines import Engine, Stores
from factories import NEWER, NOON, Account, Store, cnpj, contents, cpf, numero, relatorio, versions
from forwarding import Forwarding
from laudo.core.axes import RELATORIO_MENSAGEM
from laudo.core.sql import How, Owner, Statement, Write
from laudo.core.sql.writes import BUCKET
from laudo.server import migrations
from laudo.server.database import Connection, StoreError, WordsDamagedError
from laudo.server.ingest import counting, verify, words
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.tallies import Sizes
from laudo.server.ingest.verify import orphans
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import file_path, open_store

NAMES = ("Maria da Silva", "José Álvares", "Ana Maria de Souza", "Zé Zé", "Mário D'Ávila")


SMALL = Sizes(most_rows=8, most_children=6)
"""Small buckets, so that a few reports fill many of them."""


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "CHUNK", 11)


def reports(count: int, *, seed: int, instants: int = 40) -> list[Relatorio]:
    """Return reports of few persons and companies, many of them with the same instant."""
    rng = random.Random(seed)
    numbers = [rng.randrange(40) for _ in range(count)]
    return [
        relatorio(
            rng.randrange(1 << 32),
            status=rng.choice(("PROCESSANDO", "CONCLUIDO", "PENDENTE")),
            resultado=rng.choice(("VALID", None)),
            atualizado_em=NOON + rng.randrange(instants) * 1000,
            mensagem=rng.choice(("", "Válido.")),
            numero_documento=cpf(number * 34_000_000) if number < 30 else cnpj(number),
            tipo_pessoa="Pessoa" if number < 30 else "Empresa",
            nome_pessoa=rng.choice(NAMES),
        )
        for number in numbers
    ]


class Original(NamedTuple):
    """A store that tests copy and never change."""

    url: str
    accounts: list[Account]


@pytest.fixture(scope="module")
def original(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    """A store with three accounts with reports, the first two of one organization."""
    folder = tmp_path_factory.mktemp("verify")
    with Stores(engine, folder) as stores:
        url = stores.new()
        with closing(open_store(url, write=True)) as database:
            store = Store(database, folder / "laudo.key")
            first = store.account()
            made = [first, store.account(first.id_organizacao), store.account()]
            for seed, account in enumerate(made):
                ingest(store, account).write(reports(150, seed=seed))
        yield Original(url, made)


@pytest.fixture
def store_url(request: pytest.FixtureRequest, stores: Stores) -> str:
    if "accounts" in request.fixturenames:
        return stores.copy(request.getfixturevalue("original").url)
    return stores.new()


@pytest.fixture
def accounts(original: Original) -> list[Account]:
    """The accounts of the original; a test that uses them gets a copy of the original as its store."""
    return original.accounts


def ingest(store: Store, account: Account) -> Ingest:
    return Ingest(store.database, account.id_conta, sizes=SMALL)


def differences(store: Store) -> list[str]:
    return [str(each) for each in verify.verify(store.database)]


def run(store: Store, *texts: str) -> None:
    """Run SQL behind the writer's back, usually to damage the store."""
    with store.database.transaction() as connection:
        for text in texts:
            if connection.dialect.name == "postgres":
                text = re.sub(r"x'([0-9a-f]+)'", r"'\\x\1'", text)  # noqa: PLW2901 - bytes are written differently
            connection.run_script(text)


def repaired(store: Store) -> list[str]:
    verify.repair(store.database, verify.verify(store.database), sizes=SMALL)
    return differences(store)


def test_an_empty_store_is_clean(store: Store) -> None:
    assert differences(store) == []
    store.account()
    assert differences(store) == []


def test_a_store_stays_clean_after_writes_and_deletions(store: Store, accounts: list[Account]) -> None:
    for account in accounts:
        writer = ingest(store, account)
        written = reports(150, seed=accounts.index(account))
        writer.write(
            [msgspec.structs.replace(each, atualizado_em=NOON + 90_000, mensagem="x") for each in written[:70]]
        )
        assert writer.delete([each.numero for each in written[40:140]]) == 100
        assert differences(store) == []
    ingest(store, accounts[2]).delete([each.numero for each in reports(150, seed=2)])
    assert differences(store) == []


@pytest.mark.parametrize("instants", [1, 1_000_000])
def test_rows_with_equal_keys_are_counted_across_chunks(store: Store, account: Account, instants: int) -> None:
    written = reports(200, seed=5, instants=instants)
    ingest(store, account).write([msgspec.structs.replace(each, numero_documento=cpf(1)) for each in written])
    assert differences(store) == []
    run(store, "DELETE FROM bucket", "DELETE FROM tally")
    assert repaired(store) == []


ONE = "id_organizacao = 1 AND cpf = (SELECT min(cpf) FROM pessoa WHERE id_organizacao = 1)"
LAST = "id_organizacao = 1 AND cpf = (SELECT max(cpf) FROM pessoa WHERE id_organizacao = 1)"
FIRST = "id_organizacao = 1 AND id_conta = 1"
LAST_OF_FIRST = f"SELECT max(bucket) FROM bucket WHERE {FIRST} AND axis = 2 AND parent > 0"
DAMAGE = {
    "a facet's total": (
        "UPDATE facet SET total = total + 1 WHERE id_conta = 1 AND facet = 2",
        r"organization 1, account 1, facet 2: total of the facet is (\d+), counted (?!\1)\d+",
    ),
    "a facet's row": (
        "DELETE FROM facet WHERE id_conta = 1 AND facet = 2",
        r"organization 1, account 1, facet 2: total of the facet is missing, counted \d+",
    ),
    "a facet's truth": (
        "UPDATE facet SET pendente_validacao_manual = 2 WHERE id_conta = 1 AND facet = 2",
        r"organization 1, account 1, facet 2: pendente_validacao_manual of the facet is 2, counted 0",
    ),
    "a facet's row, and items of it": (
        f"""DELETE FROM facet WHERE {FIRST} AND facet = 2;
        UPDATE relatorio SET item = replace(item, '"mensagem":"', '"mensagem":"x') WHERE {FIRST} AND facet = 2""",
        r"organization 1, account 1, facet 2: total of the facet is missing, counted \d+",
    ),
    "a fine bucket's total": (
        "UPDATE bucket SET total = total - 1 WHERE id_conta = 2 AND axis = 2 AND bucket = 2",
        r"organization 1, account 2, axis 2 \(relatorio by numero\), bucket 2: total of the bucket is \d+, counted \d+",
    ),
    "a coarse bucket's total": (
        "UPDATE bucket SET total = total - 1 WHERE id_conta = 2 AND axis = 3 AND bucket = 1",
        r"account 2, axis 3 \(relatorio by numero_documento\), bucket 1: total of the bucket is \d+, counted \d+",
    ),
    "a lower that is another key": (
        f"""UPDATE bucket SET lower = (
            SELECT numero FROM relatorio WHERE {FIRST} AND numero < bucket.lower ORDER BY numero DESC LIMIT 1
        ) WHERE {FIRST} AND axis = 2 AND bucket = (
            SELECT max(bucket) FROM bucket AS b WHERE {FIRST} AND axis = 2 AND lower > (
                SELECT c.lower FROM bucket AS c WHERE {FIRST} AND c.axis = 2 AND c.bucket = b.parent
            )
        )""",
        r"account 1, axis 2 \(relatorio by numero\), bucket \d+: total of the bucket is \d+, counted \d+",
    ),
    "a coarse lower apart from its first fine one's": (
        f"""UPDATE bucket SET lower = (
            SELECT numero FROM relatorio WHERE {FIRST} AND numero < bucket.lower ORDER BY numero DESC LIMIT 1
        ) WHERE {FIRST} AND axis = 2 AND parent = 0 AND lower = (
            SELECT b.lower FROM bucket AS b WHERE {FIRST} AND b.axis = 2 AND b.parent = 0 ORDER BY b.lower DESC LIMIT 1
        )""",
        r"account 1, axis 2 \(relatorio by numero\), bucket \d+: bucket out of place",
    ),
    "a lower that is out of order": (
        "UPDATE bucket SET lower = x'ff' WHERE id_conta = 1 AND axis = 1 AND bucket = 2",
        r"account 1, axis 1 \(relatorio by recency\), bucket \d+: bucket out of place",
    ),
    "a lower that is no key": (
        """UPDATE bucket SET lower = x'ffffffff' WHERE id_conta = 3 AND axis = 3
        AND lower = (SELECT lower FROM bucket WHERE id_conta = 3 AND axis = 3 ORDER BY lower DESC LIMIT 1)""",
        r"account 3, axis 3 \(relatorio by numero_documento\), bucket \d+: bucket out of place",
    ),
    "coarse buckets": (
        "DELETE FROM bucket WHERE id_conta = 1 AND axis = 2 AND parent = 0",
        r"account 1, axis 2 \(relatorio by numero\), bucket \d+: buckets below a missing one: \d+",
    ),
    "a coarse bucket that has no other": (
        f"""INSERT INTO bucket (id_organizacao, id_conta, axis, parent, bucket, lower, total)
        VALUES (1, 1, 2, 0, 999, x'{"ff" * 16}', 0)""",
        r"account 1, axis 2 \(relatorio by numero\), bucket 999: bucket out of place",
    ),
    "a number that two buckets have": (
        f"""UPDATE tally SET bucket = parent WHERE {FIRST} AND axis = 2 AND bucket = ({LAST_OF_FIRST});
        UPDATE bucket SET bucket = parent WHERE {FIRST} AND axis = 2 AND bucket = ({LAST_OF_FIRST})""",
        r"account 1, axis 2 \(relatorio by numero\), bucket \d+: bucket out of place",
    ),
    "two buckets that begin alike": (
        f"""INSERT INTO bucket (id_organizacao, id_conta, axis, parent, bucket, lower, total)
        SELECT 1, 1, 2, parent, 0, lower, 0 FROM bucket WHERE {FIRST} AND axis = 2 AND bucket = ({LAST_OF_FIRST})""",
        r"account 1, axis 2 \(relatorio by numero\), bucket \d+: bucket out of place",
    ),
    "all buckets and tallies": (
        "DELETE FROM bucket WHERE id_conta IN (0, 1); DELETE FROM tally WHERE id_conta IN (0, 1)",
        r"account 1, axis 1 \(relatorio by recency\): total of the buckets is missing, counted 150",
    ),
    "a tally": (
        "UPDATE tally SET total = total + 9 WHERE id_conta = 3 AND axis = 3 AND parent = 0 AND facet = 1",
        r"account 3, axis 3 \(.+\), bucket \d+, facet 1: tally is \d+, counted \d+",
    ),
    "a tally's row": (
        "DELETE FROM tally WHERE id_conta = 1 AND axis = 1 AND parent > 0 AND facet = 1",
        r"account 1, axis 1 \(.+\), bucket \d+, facet 1: tally is missing, counted \d+",
    ),
    "a tally's row too many": (
        "INSERT INTO tally VALUES (1, 1, 1, 0, 99, 1, 4)",
        r"account 1, axis 1 \(.+\), bucket 1, facet 99: tally is 4, counted none",
    ),
    "tallies of no bucket": (
        "INSERT INTO tally VALUES (1, 1, 1, 12345, 1, 1, 4)",
        r"account 1, axis 1 \(.+\), bucket 12345: tallies below a missing bucket: 1",
    ),
    "tallies of persons": (
        "INSERT INTO tally VALUES (1, 0, 5, 0, 0, 1, 4)",
        r"organization 1, axis 5 \(pessoa by cpf\), bucket 0: tallies below a missing bucket: 1",
    ),
    "a bucket of persons": (
        "UPDATE bucket SET total = total - 1 WHERE id_conta = 0 AND axis = 6 AND bucket = 1 AND id_organizacao = 2",
        r"organization 2, axis 6 \(pessoa by nome_busca\), bucket 1: total of the bucket is \d+, counted \d+",
    ),
    "persons missing": (
        f"DELETE FROM pessoa WHERE {ONE}; DELETE FROM pessoa WHERE {LAST}",
        r"organization 1: persons missing: 2",
    ),
    "persons too many": (
        (
            "INSERT INTO pessoa (id_organizacao, cpf, nome, nome_busca, recency, item) "
            f"VALUES (2, '{cpf(77)}', 'Rui', 'rui', 0, '{{}}')"
        ),
        r"organization 2: persons too many: 1",
    ),
    "a person too many, without a CPF": (
        (
            "INSERT INTO pessoa (id_organizacao, cpf, nome, nome_busca, recency, item) "
            "VALUES (2, '', 'Rui', 'rui', 0, '{}')"
        ),
        r"organization 2: persons too many: 1",
    ),
    "a person who lost the CPF": (
        f"UPDATE pessoa SET cpf = '' WHERE {ONE}",
        r"organization 1: persons too many: 1",
    ),
    "persons that are stale": (
        f"UPDATE pessoa SET recency = recency + 1 WHERE {ONE}",
        r"organization 1: persons whose recency differs: 1",
    ),
    "persons' names": (
        f"UPDATE pessoa SET nome = 'Rui' WHERE {ONE}",
        r"organization 1: persons whose nome differs: 1",
    ),
    "persons' folded names": (
        f"UPDATE pessoa SET nome_busca = 'rui' WHERE {ONE}",
        r"organization 1: persons whose nome_busca differs: 1",
    ),
    "a word's total": (
        "UPDATE word SET total = total + 1 WHERE id_organizacao = 2",
        r"organization 2: words whose totals differ: \d+ \(kept \d+, counted \d+\)",
    ),
    "words not counted": (
        "DELETE FROM word WHERE id_organizacao = 1",
        r"organization 1: words whose totals differ: \d+ \(kept 0, counted \d+\)",
    ),
    "words that nobody has": (
        "INSERT INTO word (id_organizacao, word, shared, total) VALUES (1, 'zzz', 1, 2)",
        r"organization 1: words whose totals differ: 1 \(kept \d+, counted \d+\)",
    ),
    "persons' items": (
        f"UPDATE pessoa SET item = '{{}}' WHERE {ONE}",
        r"organization 1: persons whose item differs: 1",
    ),
    "an account's total": (
        "UPDATE conta SET total = total - 1 WHERE id_conta = 2",
        r"organization 1, account 2: total of the list is (\d+), counted (?!\1)\d+",
    ),
    "an organization's total": (
        "UPDATE organizacao SET total = total + 1 WHERE id_organizacao = 2",
        r"organization 2: total of the list is (\d+), counted (?!\1)\d+",
    ),
    "an account's version": (
        "UPDATE conta SET version = 0 WHERE id_conta = 2",
        r"account 2: was never counted: a copy was not finished, or its row was written anew",
    ),
    "a version below every other": (
        "UPDATE conta SET version = -1 WHERE id_conta = 2",
        r"account 2: was never counted: a copy was not finished, or its row was written anew",
    ),
    "an organization's version": (
        "UPDATE organizacao SET version = 0",
        r"organization 2: was never counted: a copy was not finished, or its row was written anew",
    ),
    "items": (
        "UPDATE relatorio SET item = replace(item, 'Pessoa', 'pessoa') WHERE id_conta = 2",
        r"organization 1, account 2: items that differ from their columns: \d+",
    ),
    "instants past the year 9999": (
        "UPDATE relatorio SET recency = -253402300800000 WHERE id_conta = 2 AND numero < x'20'",
        r"organization 1, account 2: reports with an instant outside the years 1 to 9999: [1-9]\d*",
    ),
    "instants before the year 1": (
        "UPDATE relatorio SET recency = 9223372036854775807 WHERE id_conta = 3",
        r"organization 2, account 3: reports with an instant outside the years 1 to 9999: 150",
    ),
    "reports behind the writer's back": (
        "DELETE FROM relatorio WHERE id_conta = 1 AND facet = 1",
        r"organization 1, account 1, facet 1: total of the facet is \d+, counted 0",
    ),
}


WORDS_DAMAGE = {
    "words missing": (
        "DELETE FROM pessoa_words WHERE rowid = 4",
        r"organization 1: words whose entries in the index differ: \d \(kept \d+, counted \d+\)",
    ),
    "words too many": (
        "INSERT INTO pessoa_words (rowid, words) VALUES (4321, '2·rui')",
        r"organization 2: words whose entries in the index differ: 1 \(kept \d+, counted \d+\)",
    ),
    "words at another id": (
        """INSERT INTO pessoa_words (rowid, words)
        SELECT 4321, '1·' || replace(nome_busca, ' ', ' 1·') FROM pessoa WHERE id = 4;
        DELETE FROM pessoa_words WHERE rowid = 4""",
        r"organization 1: words whose entries in the index differ: \d \(kept \d+, counted \d+\)",
    ),
    "words of a person whose id is none": (
        "UPDATE pessoa SET id = -4 WHERE id = 4",
        r"organization 1: words whose entries in the index differ: \d \(kept \d+, counted \d+\)",
    ),
    "a word without letters": (
        "INSERT INTO pessoa_words (rowid, words) VALUES (4321, '2·')",
        r"organization 2: words whose entries in the index differ: 1 \(kept \d+, counted \d+\)",
    ),
    "words of another person": (
        "DELETE FROM pessoa_words WHERE rowid = 4; INSERT INTO pessoa_words (rowid, words) VALUES (4, '1·zé 2·zé')",
        r"organization 2: words whose entries in the index differ: 1 \(kept \d+, counted \d+\)",
    ),
    "words that nobody can take out": (
        "DELETE FROM pessoa_words_docsize WHERE id = 4",
        r"organization 1: persons whose words cannot be removed from the index: 1",
    ),
    "words where no search looks": (
        """INSERT INTO pessoa_words (pessoa_words, rank) VALUES ('pgsz', 32);
        INSERT INTO pessoa_words (pessoa_words) VALUES ('optimize');
        DELETE FROM pessoa_words_idx""",
        r"organization 1: words whose entries in the index differ: \d+ \(kept \d+, counted \d+\)",
    ),
}
INDEX_DAMAGE = {
    "leaves": "UPDATE pessoa_words_data SET block = zeroblob(length(block)) WHERE id > 10",
    "leaves cut": "UPDATE pessoa_words_data SET block = substr(block, 1, 20) WHERE id > 10",
    "no UTF-8": "UPDATE pessoa_words_data SET block = CAST(replace(block, 'ria', x'ff6961') AS BLOB) WHERE id > 10",
    "a leaf gone": "DELETE FROM pessoa_words_data WHERE id = (SELECT min(id) FROM pessoa_words_data WHERE id > 10)",
    "the structure gone": "DELETE FROM pessoa_words_data WHERE id = 10",
    "the sums gone": "DELETE FROM pessoa_words_data WHERE id = 1",
    "all gone": "DELETE FROM pessoa_words_data",
    "the leaves' first words": "UPDATE pessoa_words_idx SET pgno = pgno + 2",
    "the format": "UPDATE pessoa_words_config SET v = 99",
    "the format gone": "DELETE FROM pessoa_words_config",
    **{f"no {name}": f"DROP TABLE pessoa_words_{name}" for name in ("data", "idx", "docsize", "config")},
    "no table": "; ".join(f"DROP TABLE pessoa_words_{name}" for name in ("data", "idx", "docsize", "config")),
}


@pytest.mark.usefixtures("accounts")
@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_reported_and_repaired(store: Store, what: str) -> None:
    assert_reported_and_repaired(store, *DAMAGE[what])


@pytest.mark.usefixtures("accounts")
def test_a_store_migrated_by_a_newer_version_is_verified_but_not_repaired(store: Store) -> None:
    run(store, NEWER, "UPDATE conta SET total = 0 WHERE id_conta = 1")
    [found] = differences(store)
    with pytest.raises(
        StoreError, match="the store was migrated by a newer version of laudo; write to it with that version"
    ):
        repaired(store)
    assert differences(store) == [found]


class Overtaken(Forwarding):
    """A store that a newer version migrates at the end of the first transaction."""

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with super().transaction() as connection:
            yield connection
            connection.run_script(NEWER)


@pytest.mark.usefixtures("accounts")
@pytest.mark.parametrize("table", ["conta", "organizacao"])
def test_a_repair_stops_when_a_newer_version_migrates_the_store(store: Store, table: str) -> None:
    run(store, f"UPDATE {table} SET total = 0")
    [_, *others] = found = list(verify.verify(store.database))
    with pytest.raises(
        StoreError, match="the store was migrated by a newer version of laudo; write to it with that version"
    ):
        verify.repair(Overtaken(store.database), found, sizes=SMALL)
    assert list(verify.verify(store.database)) == others != []


@pytest.mark.usefixtures("accounts")
def test_a_bucket_bound_without_a_row_is_reported_and_repaired(store: Store) -> None:
    """Old versions left such bounds: keys of deleted rows, which may be names or CPFs."""
    asked = "SELECT parent, bucket, lower FROM bucket WHERE id_conta = 1 AND axis = 2 AND parent = 1 ORDER BY lower"
    _, (parent, bucket, lower), *_ = store.database.fetch(Statement(asked))
    between = (int.from_bytes(lower) - 1).to_bytes(16)
    with store.database.transaction() as connection:
        connection.write(Write(How.SET, BUCKET, ("lower",)), [(1, 1, 2, parent, bucket, between)])
    named = f"organization 1, account 1, axis 2 (relatorio by numero), bucket {bucket}: begins where there is no row"
    assert differences(store) == [named]
    assert repaired(store) == []


@pytest.mark.engines("sqlite", reason="PostgreSQL keeps the index of words by itself")
@pytest.mark.usefixtures("accounts")
@pytest.mark.parametrize("what", WORDS_DAMAGE)
def test_damage_to_the_index_of_words_is_reported_and_repaired(store: Store, what: str) -> None:
    assert_reported_and_repaired(store, *WORDS_DAMAGE[what])


@pytest.mark.engines("sqlite", reason="PostgreSQL keeps the index of words by itself")
@pytest.mark.parametrize("what", INDEX_DAMAGE)
def test_an_unreadable_index_of_words_is_reported_and_rebuilt(store: Store, accounts: list[Account], what: str) -> None:
    search = store.database.dialect.found(("maria",), Owner(1, 0))
    right = store.database.fetch(search)
    assert right[0][0] > 0
    run(store, INDEX_DAMAGE[what])
    store.database.close()  # A connection caches what it has read of the index.
    named = [f"organization {number}: the index of words is damaged" for number in (1, 2)]
    assert differences(store) == named
    assert repaired(store) == []
    assert store.database.fetch(search) == right
    ingest(store, accounts[0]).write(reports(60, seed=12, instants=900))
    ingest(store, accounts[0]).delete([each.numero for each in reports(150, seed=0)])
    assert differences(store) == []


@pytest.mark.engines("sqlite", reason="PostgreSQL keeps the index of words by itself")
def test_an_index_of_words_that_others_have_changed_meanwhile_is_sound(
    store: Store, store_url: str, accounts: list[Account]
) -> None:
    with closing(open_store(store_url)) as reading:
        reading.fetch(reading.dialect.found(("maria", "a"), Owner(1, 0)))
        for start in range(200):
            ingest(store, accounts[0]).write(reports(2, seed=100 + start))
        assert not list(verify.verify(reading))


@pytest.mark.engines("sqlite", reason="PostgreSQL keeps the index of words by itself")
def test_a_damaged_index_of_words_raises_an_error_with_the_remedy(store: Store, accounts: list[Account]) -> None:
    helps = r"laudo\.db is damaged; hint: `laudo verify --repair` rebuilds it$"
    run(store, "ALTER TABLE pessoa_words_docsize RENAME TO elsewhere")
    with pytest.raises(WordsDamagedError, match=helps):
        ingest(store, accounts[0]).delete([each.numero for each in reports(150, seed=0)])
    run(store, "ALTER TABLE elsewhere RENAME TO pessoa_words_docsize; DELETE FROM pessoa_words_data WHERE id = 10")
    store.database.close()
    with pytest.raises(WordsDamagedError, match=helps):
        store.database.fetch(store.database.dialect.found(("maria",), Owner(1, 0)))
    before = contents(store.database)
    with pytest.raises(WordsDamagedError, match=helps):
        ingest(store, accounts[0]).write([relatorio(numero_documento=cpf(7), nome_pessoa="Rui")])
    assert contents(store.database) == before


@pytest.mark.engines("sqlite", reason="the test overwrites a page of the file")
@pytest.mark.usefixtures("accounts")
@pytest.mark.parametrize("table", ["pessoa_words_data", "pessoa_words_docsize", "pessoa"])
def test_a_file_with_damaged_pages_is_refused(store: Store, store_url: str, table: str) -> None:
    path = file_path(store_url)
    assert path is not None
    store.database.close()
    with closing(apsw.Connection(str(path))) as shell:
        [(page, size)] = shell.execute(
            "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?", (table,)
        )
    with path.open("r+b") as whole:
        whole.seek((page - 1) * size)
        whole.write(b"?" * size)
    with closing(open_store(store_url, write=True)) as database, pytest.raises(StoreError, match="damaged; restore"):
        list(verify.verify(database))


@pytest.mark.parametrize("item", ["", "{}", '{"atualizado_em":null}', '{"atualizado_em":"hoje"}'])
def test_a_report_whose_item_lost_its_instant_too_is_reported_and_kept(
    store: Store, account: Account, item: str
) -> None:
    ingest(store, account).write(reports(50, seed=1))
    run(store, f"UPDATE relatorio SET recency = 9223372036854775807, item = '{item}' WHERE numero < x'80'")
    for _ in range(2):
        [left] = repaired(store)
        assert re.search(r"account 1: reports with an instant outside the years 1 to 9999: [1-9]\d*$", left)
    assert len(contents(store.database)["relatorio"]) == 50
    [difference] = verify.verify(store.database)
    assert difference.remedy == "restore from a backup the reports whose items have no instant either"


@pytest.mark.parametrize("recency", [-(2**63) + 1, 2**63 - 1])
def test_a_person_follows_the_newest_report_that_has_an_instant(store: Store, account: Account, recency: int) -> None:
    other = store.account(account.id_organizacao)
    ingest(store, account).write([relatorio(1, nome_pessoa="Rui", atualizado_em=NOON + 2000)])
    ingest(store, other).write(
        [relatorio(2, nome_pessoa="Ana"), relatorio(3, nome_pessoa="Zé", atualizado_em=NOON + 1000)]
    )
    run(store, f"UPDATE relatorio SET recency = {recency}, item = '' WHERE nome_pessoa IN ('Rui', 'Zé')")
    left = repaired(store)
    assert [each for each in left if "reports with an instant" not in each] == []
    [person] = contents(store.database)["pessoa"]
    assert "Ana" in person


def test_reports_without_an_instant_are_repairable_if_their_items_have_it(store: Store, account: Account) -> None:
    ingest(store, account).write([relatorio(number) for number in range(5)])
    newest = "SELECT numero FROM relatorio ORDER BY numero LIMIT 2"
    run(store, "UPDATE relatorio SET recency = 9223372036854775807")
    run(store, f"UPDATE relatorio SET item = '{{}}' WHERE numero IN ({newest})")
    found = [each for each in verify.verify(store.database) if "reports with an instant" in each.what]
    assert [(each.rows, each.remedy is None) for each in found] == [(3, True), (2, False)]


def test_a_repair_rewrites_the_index_of_words_once_for_all_organizations(
    store: Store, accounts: list[Account], monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten: list[Connection] = []
    monkeypatch.setattr(words, "erase_removed", rewritten.append)
    assert len({account.id_organizacao for account in accounts}) > 1
    run(store, "UPDATE pessoa SET nome = nome || '!'")
    assert repaired(store) == []
    assert len(rewritten) == 1


@pytest.mark.usefixtures("accounts")
def test_a_repair_that_can_do_nothing_writes_nothing(store: Store) -> None:
    run(store, GONE_ORGANIZATION)
    before, known = contents(store.database), versions(store.database)
    found = list(verify.verify(store.database))
    assert [each.remedy is None for each in found] == [False]
    verify.repair(store.database, found, sizes=SMALL)
    assert (contents(store.database), versions(store.database)) == (before, known)


def test_a_lost_facet_is_restored_from_most_of_its_readable_items(store: Store, account: Account) -> None:
    ingest(store, account).write([relatorio(number) for number in range(30)])
    before = contents(store.database)
    for damaged, reports in (("replace(item, 'CONCLUIDO', 'PENDENTE')", 14), ("''", 29), ("'[]'", 29), ("'{}'", 29)):
        some = f"SELECT numero FROM relatorio ORDER BY numero LIMIT {reports}"
        run(store, "DELETE FROM facet", f"UPDATE relatorio SET item = {damaged} WHERE numero IN ({some})")
        assert repaired(store) == []
        after = contents(store.database)
        assert [after[table] for table in ("relatorio", "facet")] == [before[table] for table in ("relatorio", "facet")]


def test_the_number_of_a_lost_facet_is_not_reused(store: Store, account: Account) -> None:
    ingest(store, account).write([relatorio(1), relatorio(2, status="PENDENTE")])
    run(store, "DELETE FROM facet WHERE facet = 2")
    ingest(store, account).write([relatorio(3, status="PROCESSANDO")])
    assert repaired(store) == []
    facets = [(facet[2], facet[5]) for facet in contents(store.database)["facet"]]
    assert facets == [(1, "CONCLUIDO"), (2, "PENDENTE"), (3, "PROCESSANDO")]


def test_a_facets_boolean_is_restored_from_its_items(store: Store, account: Account) -> None:
    ingest(store, account).write([relatorio(number, pendente_validacao_manual=number > 2) for number in range(5)])
    before = contents(store.database)
    run(store, "UPDATE facet SET pendente_validacao_manual = pendente_validacao_manual - 2")
    assert differences(store) == [
        "organization 1, account 1, facet 1: pendente_validacao_manual of the facet is -2, counted 0",
        "organization 1, account 1, facet 2: pendente_validacao_manual of the facet is -1, counted 1",
    ]
    assert repaired(store) == []
    after = contents(store.database)
    assert [after[table] for table in ("relatorio", "facet")] == [before[table] for table in ("relatorio", "facet")]


def test_a_facets_boolean_is_not_guessed_without_readable_items(store: Store, account: Account) -> None:
    ingest(store, account).write([relatorio(number) for number in range(5)])
    run(store, "UPDATE facet SET pendente_validacao_manual = 2", "UPDATE relatorio SET item = '[]'")
    for found in (differences(store), repaired(store)):
        assert found == [
            "organization 1, account 1, facet 1: pendente_validacao_manual of the facet is 2, counted none"
        ]
    [difference] = verify.verify(store.database)
    assert difference.remedy == "restore from a backup the facets whose values no item has"


def test_the_values_of_an_empty_facet_are_not_compared(store: Store, account: Account) -> None:
    ingest(store, account).write([relatorio(1)])
    ingest(store, account).delete([relatorio(1).numero])
    run(store, "UPDATE facet SET pendente_validacao_manual = 2")
    assert differences(store) == []
    ingest(store, account).write([relatorio(1)])
    assert differences(store) == []


VALUES = {"status": "CONCLUIDO", "tipo_pessoa": "Pessoa", "nome": "A", "resultado": None}
NO_ITEMS = {
    "empty": "",
    "a list": "[]",
    "null": "null",
    "without fields": "{}",
    "a null status": {**VALUES, "status": None, "pendente_validacao_manual": False},
    "a status that is a list": {**VALUES, "status": ["x"], "pendente_validacao_manual": False},
    "a number as truth": {**VALUES, "pendente_validacao_manual": 1},
    "a text that no store holds": {**VALUES, "nome": "\0", "pendente_validacao_manual": False},
}


@pytest.mark.usefixtures("accounts")
@pytest.mark.parametrize("what", NO_ITEMS)
def test_a_facet_without_readable_items_stays_lost_and_the_rest_is_repaired(store: Store, what: str) -> None:
    item = NO_ITEMS[what]
    text = item if isinstance(item, str) else msgspec.json.encode(item).decode()
    run(store, f"DELETE FROM facet WHERE {FIRST} AND facet = 2")
    run(store, f"UPDATE relatorio SET item = '{text}' WHERE {FIRST} AND facet = 2")
    run(store, "UPDATE tally SET total = total + 1", "DELETE FROM pessoa WHERE id_organizacao = 2")
    for _ in range(2):
        [left] = repaired(store)
        assert re.fullmatch(
            r"organization 1, account 1, facet 2: total of the facet is missing, counted [1-9]\d*", left
        )
    [difference] = verify.verify(store.database)
    assert difference.remedy == "restore from a backup the facets whose values no item has"


GONE = "DELETE FROM token; DELETE FROM usuario; DELETE FROM conta WHERE id_conta = 3"
GONE_ORGANIZATION = f"{GONE}; DELETE FROM organizacao WHERE id_organizacao = 2"
LOST = {
    "rows of facet of an account": GONE,
    "rows of bucket of an account": GONE,
    "rows of tally of an account": GONE,
    "rows of bucket of an organization": GONE_ORGANIZATION,
    "rows of word of an organization": GONE_ORGANIZATION,
    "rows of pessoa of an organization": GONE_ORGANIZATION,
}


@pytest.mark.usefixtures("accounts")
@pytest.mark.parametrize("what", LOST)
def test_counts_without_an_owner_are_reported_and_deleted(store: Store, what: str) -> None:
    assert_reported_and_repaired(
        store,
        f"{LOST[what]}; DELETE FROM relatorio WHERE id_conta = 3",
        rf"organization 2(, account 3)?: {what} that does not exist: [1-9]\d*",
    )


@pytest.mark.parametrize("missing", ["", GONE, "DELETE FROM relatorio WHERE id_conta = 3"], ids=["", "row", "reports"])
def test_counts_stay_when_their_account_or_its_reports_are_back(
    store: Store, accounts: list[Account], missing: str
) -> None:
    """The account or its reports may have been added after the search for counts without an owner."""
    run(store, missing)
    before = contents(store.database)
    for id_conta in (accounts[2].id_conta, 0):
        with store.database.transaction() as connection:
            orphans.clear(connection, Owner(accounts[2].id_organizacao, id_conta))
    assert contents(store.database) == before


@pytest.mark.usefixtures("accounts")
@pytest.mark.parametrize("gone", [GONE, GONE_ORGANIZATION])
def test_reports_of_a_missing_account_are_reported_and_kept(store: Store, gone: str) -> None:
    before = contents(store.database)
    rows = {
        table: store.database.fetch(Statement(f"SELECT * FROM {table} WHERE id_organizacao = 2"))
        for table in ("organizacao", "conta")
    }
    run(store, gone)
    for found in (differences(store), repaired(store)):
        assert "organization 2, account 3: rows of relatorio of an account that does not exist: 150" in found
    assert contents(store.database)["facet"] == before["facet"]
    with store.database.transaction() as connection:
        for table in ("organizacao", "conta")[gone == GONE :]:
            values = ", ".join(map(repr, rows[table][0]))
            connection.run_script(f"INSERT INTO {table} VALUES ({values})")
    assert repaired(store) == []
    after = contents(store.database)
    assert [after[table] for table in ("relatorio", "facet")] == [before[table] for table in ("relatorio", "facet")]


@pytest.mark.engines("sqlite", reason="PostgreSQL lets nobody delete the row of an organization that has accounts")
def test_accounts_of_a_missing_organization_are_reported_and_refuse_reports(
    store: Store, store_url: str, accounts: list[Account]
) -> None:
    writer = ingest(store, accounts[2])
    row = store.database.fetch(Statement("SELECT * FROM organizacao WHERE id_organizacao = 2"))[0]
    with closing(apsw.Connection(str(file_path(store_url)))) as shell:  # It ignores foreign keys.
        shell.execute("DELETE FROM organizacao WHERE id_organizacao = 2")
    alone = "organization 2: rows of conta of an organization that does not exist: 1"
    assert differences(store) == repaired(store) == [alone]
    with pytest.raises(StoreError, match=r"account 3 or its organization does not exist; hint: laudo verify"):
        writer.write(reports(1, seed=7))
    run(store, f"INSERT INTO organizacao VALUES ({', '.join(map(repr, row))})")
    assert differences(store) == []
    assert writer.write(reports(1, seed=7)).inserted == 1


@pytest.mark.engines("sqlite", reason="PostgreSQL lets nobody delete the row of an account that has users")
@pytest.mark.usefixtures("accounts")
def test_users_of_a_missing_account_are_reported_until_its_row_is_back(store: Store, store_url: str) -> None:
    row = store.database.fetch(Statement("SELECT * FROM conta WHERE id_conta = 3"))[0]
    with closing(apsw.Connection(str(file_path(store_url)))) as shell:  # It ignores foreign keys.
        shell.execute("DELETE FROM relatorio WHERE id_conta = 3; DELETE FROM conta WHERE id_conta = 3")
    alone = "organization 2, account 3: rows of usuario of an account that does not exist: 1"
    assert repaired(store) == [alone]
    [difference] = verify.verify(store.database)
    assert difference.remedy == "write the missing row of the account again, by SQL: docs/operating.md, Verify"
    run(store, f"INSERT INTO conta VALUES ({', '.join(map(repr, row))})")
    assert repaired(store) == []


def test_persons_of_an_organization_without_accounts_are_deleted(store: Store, accounts: list[Account]) -> None:
    ingest(store, accounts[2]).delete([each.numero for each in reports(150, seed=2)[::2]])
    assert_reported_and_repaired(
        store, f"{GONE}; DELETE FROM relatorio WHERE id_conta = 3", r"organization 2: persons too many: \d+"
    )


def assert_reported_and_repaired(store: Store, damage: str, line: str) -> None:
    run(store, damage)
    found = differences(store)
    assert [each for each in found if re.search(line + "$", each)], found
    assert repaired(store) == []


@pytest.mark.usefixtures("accounts")
def test_only_damaged_counts_are_reported(store: Store) -> None:
    run(store, "UPDATE facet SET total = total + 1 WHERE id_conta = 1 AND facet = 2")
    assert len(differences(store)) == 1


@pytest.mark.usefixtures("accounts")
def test_a_missing_and_an_extra_person_are_not_compared_with_each_other(store: Store) -> None:
    run(store, *(DAMAGE[what][0] for what in ("persons missing", "a person too many, without a CPF")))
    said = [each for each in differences(store) if ": persons " in each]
    assert said == ["organization 1: persons missing: 2", "organization 2: persons too many: 1"]


@pytest.mark.usefixtures("accounts")
@pytest.mark.parametrize("what", DAMAGE)
def test_no_difference_shows_a_value_of_a_report(store: Store, what: str) -> None:
    run(store, DAMAGE[what][0])
    said = str([(str(each), asdict(each)) for each in verify.verify(store.database)]).lower()
    with store.database.snapshot() as connection:
        rows = connection.fetch(Statement("SELECT numero_documento, nome_pessoa, numero FROM relatorio"))
    values = {value for documento, nome, numero in rows for value in (documento, nome.lower(), numero.hex())}
    assert not [value for value in values if value in said.replace("zé", "")]


@pytest.mark.usefixtures("accounts")
def test_the_number_of_reported_differences_is_limited(store: Store) -> None:
    run(store, "UPDATE tally SET total = total + 1")
    found = differences(store)
    assert [each for each in found if "more differences" in each]
    assert repaired(store) == []


def test_a_repair_raises_the_versions_of_changed_lists(store: Store, accounts: list[Account]) -> None:
    writer = ingest(store, accounts[0])
    writer.write(reports(20, seed=11))
    before, known = contents(store.database), versions(store.database)
    run(store, "UPDATE bucket SET total = total + 1 WHERE id_conta = 1", "DELETE FROM pessoa WHERE id_organizacao = 1")
    assert repaired(store) == []
    after = contents(store.database)
    organizations = known[: -len(accounts)]
    raised = [now > then for now, then in zip(versions(store.database), known, strict=True)]
    assert raised == [True, *[False] * (len(organizations) - 1), True, *[False] * (len(accounts) - 1)]
    assert {each[1:] for each in after["pessoa"]} == {each[1:] for each in before["pessoa"]}
    writer.write(reports(60, seed=12))
    assert differences(store) == []


@pytest.mark.usefixtures("accounts")
def test_a_repair_of_a_clean_store_changes_nothing(store: Store) -> None:
    before = contents(store.database)
    assert repaired(store) == []
    assert contents(store.database) == before


def test_a_running_writer_continues_correctly_after_a_repair(store: Store, account: Account) -> None:
    writer = ingest(store, account)
    written = reports(30, seed=1)
    writer.write(written)
    writer.delete([each.numero for each in written])
    run(store, "DELETE FROM bucket")
    assert "organization 1, account 1, axis 1 (relatorio by recency): total of the buckets is missing, counted 0" in (
        differences(store)
    )
    assert repaired(store) == []
    writer.write(written)
    assert differences(store) == []


def test_a_facet_lost_while_empty_does_not_stop_the_writer(store: Store, account: Account) -> None:
    written = [relatorio(number, nome=f"matriz {number}") for number in range(3)]
    ingest(store, account).write(written[:2])
    ingest(store, account).delete([written[0].numero])
    run(store, "DELETE FROM facet WHERE total = 0")
    ingest(store, account).write(written[2:])
    assert differences(store) == []


def test_a_lost_person_does_not_stop_the_writer_and_is_found_again(store: Store, account: Account) -> None:
    ingest(store, account).write([relatorio(number) for number in range(3)])
    run(store, "DELETE FROM pessoa")
    assert ingest(store, account).delete([numero(0)]) == 1
    assert len(contents(store.database)["pessoa"]) == 1
    run(store, "DELETE FROM pessoa")
    assert ingest(store, account).delete([numero(1), numero(2)]) == 2
    assert repaired(store) == []


def test_all_counts_are_rebuilt_from_reports_and_facets(store: Store, accounts: list[Account]) -> None:
    before = contents(store.database)
    run(
        store,
        "DELETE FROM bucket; DELETE FROM tally; DELETE FROM pessoa; UPDATE facet SET total = 0",
        *["INSERT INTO pessoa_words (pessoa_words) VALUES ('delete-all')"][: store.database.dialect.keeps_words],
        "UPDATE conta SET version = 0; UPDATE organizacao SET version = 0",
    )
    verify.repair(store.database, verify.verify(store.database), sizes=SMALL)
    assert differences(store) == []
    after = contents(store.database)
    assert after["facet"] == before["facet"]
    assert {each[1:] for each in after["pessoa"]} == {each[1:] for each in before["pessoa"]}
    ingest(store, accounts[0]).write(reports(60, seed=12))
    assert differences(store) == []


@pytest.mark.usefixtures("accounts")
def test_progress_rises_to_the_total(store: Store) -> None:
    told: list[tuple[int, int]] = []
    list(verify.verify(store.database, lambda done, total: told.append((done, total))))
    dones, totals = zip(*told, strict=True)
    assert list(dones) == sorted(dones)
    assert len(set(totals)) == 1
    assert dones[-1] == totals[0]
    assert dones[0] < totals[0] / 4


def test_migrating_an_older_store_counts_its_mensagens(store: Store, accounts: list[Account]) -> None:
    by_name = Statement("SELECT name FROM migration WHERE name LIKE '%mensagem%' ORDER BY name")
    with store.database.transaction() as connection:
        names = [str(name) for (name,) in connection.fetch(by_name)]
        for table in ("bucket", "tally"):
            connection.fetch(Statement(f"DELETE FROM {table} WHERE axis = ?", (RELATORIO_MENSAGEM.number,)))
        connection.fetch(Statement("DELETE FROM migration WHERE name LIKE '%mensagem%'"))
    assert len(list(verify.verify(store.database))) >= len(accounts)
    assert migrations.migrate(store.database) == names != []
    assert not list(verify.verify(store.database))
