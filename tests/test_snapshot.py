"""Each response comes from one snapshot: its total and items agree even while reports are being written."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count

import pytest

from factories import NOON, Account, Store, cpf, relatorio
from forwarding import Forwarding
from laudo.server.database import Connection, Database
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store
from strategies import STATUS
from wsgi import Answer, Client, NewApp

BATCHES = 60
BATCH = 40
URLS = (
    *("/relatorios?rows=25", "/relatorios?rows=1000", "/relatorios?rows=1000&status=PENDENTE&sort=nome"),
    *("/relatorios?rows=100&page=4&sort=numero", "/relatorios?rows=1000&numero_documento=52998224725"),
    *("/pessoas?rows=1000", "/pessoas?rows=1000&busca=maria&sort=nome", "/pessoas?rows=25&page=3"),
)


def write_batches(store_url: str, account: Account, failures: list[BaseException]) -> None:
    """Insert and change reports, so that filtered totals rise and fall."""
    seeded = random.Random(3)
    database = open_store(store_url, write=True)
    try:
        ingest = Ingest(database, account.id_conta)
        for batch in range(BATCHES):
            ingest.write([_report(seeded, NOON + batch) for _ in range(BATCH)])
    except BaseException as failure:  # noqa: BLE001 - the test's main thread reports it
        failures.append(failure)
    finally:
        database.close()


def _report(seeded: random.Random, instant: int) -> Relatorio:
    return relatorio(
        seeded.randrange(900),
        atualizado_em=instant,
        status=seeded.choice(STATUS),
        numero_documento=seeded.choice(("52998224725", cpf(seeded.randrange(200)))),
        nome_pessoa=seeded.choice(("Maria", "José")),
    )


def assert_whole(answer: Answer) -> None:
    paginacao = answer.json["result"]["paginacao"]
    page, rows, total = paginacao["atual"], paginacao["linhas"], int(paginacao["total"])
    assert len(answer.itens) == max(0, min(rows, total - (page - 1) * rows))


def test_total_and_items_agree_in_every_response_while_a_writer_imports(
    store: Store, store_url: str, account: Account, acme: Client
) -> None:
    store.write(account, [relatorio(0)])
    failures: list[BaseException] = []
    writer = threading.Thread(target=write_batches, args=(store_url, account, failures))
    writer.start()
    totals: dict[str, set[int]] = {url: set() for url in URLS}
    for asked in count():
        if not writer.is_alive() and asked >= len(URLS):
            break
        url = URLS[asked % len(URLS)]
        answer = acme.get(url)
        assert_whole(answer)
        totals[url].add(answer.total)
    writer.join()
    assert not failures
    # Otherwise the reader has seen too few changes, and the test proves nothing.
    assert len(totals["/relatorios?rows=25"]) >= 5, totals


class Late(Forwarding):
    """A store that changes between reading the caller and the snapshot of the list."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.meanwhile: list[Callable[[], object]] = []

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        while self.meanwhile:
            self.meanwhile.pop()()
        with super().snapshot() as connection:
            yield connection


@pytest.mark.parametrize(
    "url", ["/relatorios?page=3&sort=-numero_documento&tipo_pessoa=PESSOA", "/pessoas?page=3&sort=-nome"]
)
def test_remembered_counts_are_not_used_once_the_snapshot_is_newer(
    store: Store, store_url: str, account: Account, new_app: NewApp, url: str
) -> None:
    store.write(account, [relatorio(number, numero_documento=cpf(number)) for number in range(60)])
    with closing(open_store(store_url)) as opened:
        database = Late(opened)
        asking = Client(new_app(database), account.token)
        assert asking.get(url.replace("page=3", "page=2")).total == 60
        database.meanwhile.append(lambda: store.write(account, [relatorio(99, numero_documento=cpf(99))]))
        answer = asking.get(url)
        assert not database.meanwhile
        assert (answer.total, len(answer.itens)) == (61, 11)
        assert answer.body == Client(new_app(cache_bytes=0), account.token).get(url).body
