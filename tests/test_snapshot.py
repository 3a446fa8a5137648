"""One snapshot for each response: total and items belong together while reports are being written."""

import random
import threading
from itertools import count

from factories import NOON, Account, Store, cpf, relatorio
from laudo.server.database import open_store
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.writer import Ingest
from strategies import STATUS
from wsgi import Answer, Client

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
    except BaseException as failure:  # noqa: BLE001 - the test's own thread says it
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
    # A reader that saw no change would prove nothing.
    assert len(totals["/relatorios?rows=25"]) >= 5, totals
