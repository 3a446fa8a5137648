"""While two processes write, walks have no gaps and no repeats, and every list's total agrees with its items.

`LAUDO_TEST_WALKS=10000` makes that many walks and ten times as many lists, which takes too long for `make test`.
"""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count, product
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote

import msgspec
import pytest

from factories import NOON, SMALL, Account, Store, cnpj, cpf, numero
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.verify import verify
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store
from reference import PESSOA_FILTERS, RELATORIO_FILTERS, Api, Item
from strategies import CPFS, MATRIZES, PESSOA_SORTS, RELATORIO_SORTS, any_relatorio
from wsgi import Answer, Client

# Groups start first. If these long tests started last, one worker would be busy while the others are idle.
pytestmark = pytest.mark.xdist_group("walks")

WALKS: Final = int(os.environ.get("LAUDO_TEST_WALKS", "250"))
LISTS: Final = 10 * WALKS

UNTOUCHED: Final = 250
"""How many reports no writer touches. They have the even numbers from 0 on; writers use the odd ones."""

INSTANTS: Final = range(NOON, NOON + 40 * 3_600_000, 3_600_000)
WRITE: Final = "import sys, test_walks; test_walks.write_until_stopped(sys.argv[1], *map(int, sys.argv[2:]))"

RELATORIO_QUESTIONS: Final = (
    *("", "", "status=PENDENTE", "tipo_pessoa=EMPRESA", "resultado=VALID", "pendente_validacao_manual=true"),
    *(f"nome={quote(MATRIZES[0])}", "atualizado_em_de=2026-02-01", "atualizado_em_ate=2026-02-01T06:00Z"),
    *("status=CONCLUIDO&atualizado_em_de=2026-02-01T00:30Z", f"numero_documento={CPFS[0]}", "tipo_pessoa=PESSOA"),
)
PESSOA_QUESTIONS: Final = (
    *("", "", "nome=maria", "busca=silva", "busca=0000", "nome=mar+sil", "atualizado_em_de=2026-02-01"),
    *("busca=00000&atualizado_em_ate=2026-02-01", "nome=maria&atualizado_em_de=2026-01-31"),
)


def untouched(number: int) -> Relatorio:
    """Return the report with an even number; no touched report has the same person."""
    seeded = random.Random(number)
    report = any_relatorio(seeded, number, instants=INSTANTS)
    document = cnpj(number) if report.tipo_pessoa == "Empresa" else cpf(number // seeded.choice((1, 8)) * 2)
    return msgspec.structs.replace(report, numero_documento=document)


def touched(seeded: random.Random, instant: int) -> Relatorio:
    """Return a version of a report with an odd number; several of these reports may be about the same person."""
    number = 2 * seeded.randrange(UNTOUCHED) + 1
    report = any_relatorio(seeded, number, instants=INSTANTS)
    people = (*CPFS, *(cpf(2 * each + 1) for each in range(UNTOUCHED)))
    document = cnpj(number) if report.tipo_pessoa == "Empresa" else seeded.choice(people)
    # Every version is newer than the earlier ones of its report, but still stands among the untouched reports.
    return msgspec.structs.replace(report, numero_documento=document, atualizado_em=report.atualizado_em + instant)


def write_until_stopped(store_url: str, seed: int, *contas: int) -> None:
    """Import, update and delete reports, for each account in turn, until the input ends; runs as a process."""
    seeded = random.Random(seed)
    database = open_store(store_url, write=True)
    writers = [Ingest(database, id_conta, sizes=SMALL) for id_conta in contas]
    os.set_blocking(sys.stdin.fileno(), False)
    for turn in count(1):
        if sys.stdin.buffer.read() == b"":
            break
        writer = writers[turn % len(writers)]
        size = seeded.choice((1, 5, 40))
        if seeded.random() < 0.7:
            writer.write([touched(seeded, turn) for _ in range(size)])
        else:
            writer.delete([numero(2 * seeded.randrange(UNTOUCHED) + 1) for _ in range(2 * size)])
        sys.stdout.write(".")
        sys.stdout.flush()
    database.close()


class Written(NamedTuple):
    """A store to which two processes write, one of them to two accounts in turn."""

    client: Client
    account: Account
    still: Api
    """The reference over the untouched reports only."""
    batches: Callable[[], int]
    """Returns how many batches have been written so far."""


@pytest.fixture
def written(store: Store, store_url: str, account: Account, acme: Client, tmp_path: Path) -> Iterator[Written]:
    sister = store.account(account.id_organizacao)
    reports = [untouched(2 * number) for number in range(UNTOUCHED)]
    store.write(account, reports)
    still = Api(
        reports=[(account.id_conta, msgspec.structs.asdict(report)) for report in reports],
        accounts={account.id_conta: account.id_organizacao},
    )
    outputs = [tmp_path / "one", tmp_path / "two"]
    with (
        _writing(store_url, 1, account.id_conta, output=outputs[0]),
        _writing(store_url, 2, account.id_conta, sister.id_conta, output=outputs[1]),
    ):
        while not all(output.stat().st_size for output in outputs):
            acme.get("/relatorios")
        yield Written(acme, account, still, lambda: sum(output.stat().st_size for output in outputs))
    assert not list(verify(store.database))


@contextmanager
def _writing(store_url: str, seed: int, *contas: int, output: Path) -> Iterator[None]:
    command = [sys.executable, "-c", WRITE, store_url, str(seed), *map(str, contas)]
    with (
        output.open("wb") as file,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file, cwd=Path(__file__).parent) as process,
    ):
        yield
        assert process.poll() is None, "a writer has failed"
        process.communicate()
    assert process.returncode == 0


class Asked:
    """One query, and checks that every answer to it must pass."""

    def __init__(self, written: Written, resource: str, question: str) -> None:
        self.url = f"/{resource}?{question}"
        self._key = "numero" if resource == "relatorios" else "cpf"
        filters = RELATORIO_FILTERS if resource == "relatorios" else PESSOA_FILTERS
        self._tests = [filters[name](text) for name, text in parse_qsl(question) if name in filters]
        still = written.still.listing(resource, written.account.id_conta, question).items
        self._expected = [item[self._key] for item in still]
        self._places = {item[self._key]: (place, item) for place, item in enumerate(still)}

    def check_items(self, items: list[Item]) -> None:
        """Check that items match the query without repeats, and that untouched ones are unchanged and in order."""
        keys = [item[self._key] for item in items]
        assert len(keys) == len(set(keys)), self.url
        assert all(test(_stored(item)) for item in items for test in self._tests), self.url
        fixed = [(*self._places[item[self._key]], item) for item in items if item[self._key] in self._places]
        assert all(item == known for _, known, item in fixed), self.url
        assert [place for place, *_ in fixed] == sorted(place for place, *_ in fixed), self.url

    def check_walk(self, pages: list[Answer]) -> None:
        """Check that the pages have every untouched item once and in order, and that only the last one is not full."""
        seen = [item[self._key] for page in pages for item in page.itens]
        assert [key for key in seen if key in self._places] == self._expected, self.url
        assert [page.json["result"]["paginacao"]["atual"] for page in pages] == list(range(1, len(pages) + 1))
        for page in pages:
            self.check_items(page.itens)
            rows = page.json["result"]["paginacao"]["linhas"]
            assert page.total >= max(len(page.itens), len(self._expected))
            assert len(page.itens) == rows or page is pages[-1]


def every_question(written: Written) -> list[Asked]:
    """Return a query for each order of each filter, of reports and of people."""
    relatorios = [
        f"sort={sort}&{filters}".rstrip("&") for sort, filters in product(RELATORIO_SORTS, RELATORIO_QUESTIONS)
    ]
    pessoas = [f"sort={sort}&{filters}".rstrip("&") for sort, filters in product(PESSOA_SORTS, PESSOA_QUESTIONS)]
    return [
        *(Asked(written, "relatorios", question) for question in relatorios),
        *(Asked(written, "pessoas", question) for question in pessoas),
    ]


def _stored(item: Mapping[str, Any]) -> Item:
    """Return an item with its instant in milliseconds, as in the reference."""
    return {**item, "atualizado_em": _milliseconds(item["atualizado_em"])}


def _milliseconds(text: str) -> int:
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def test_a_walk_meets_every_untouched_item_once_and_in_order(written: Written) -> None:
    seeded, questions = random.Random(1), every_question(written)
    began, pages = written.batches(), 0
    for _ in range(WALKS):
        asked = seeded.choice(questions)
        walk = list(written.client.walk(f"{asked.url}&rows={seeded.choice((25, 25, 50, 100))}"))
        asked.check_walk(walk)
        pages += len(walk)
    # Otherwise too little was written meanwhile, and the walks prove nothing.
    assert written.batches() - began > WALKS / 4
    assert pages > 3 * WALKS


def test_total_and_items_agree_in_every_list(written: Written) -> None:
    seeded, questions = random.Random(2), every_question(written)
    began = written.batches()
    totals = set()
    for _ in range(LISTS):
        asked = seeded.choice(questions)
        rows, page = seeded.choice((25, 50, 1000)), seeded.choice((1, 1, 2, 3, 6, 12, 40))
        answer = written.client.get(f"{asked.url}&rows={rows}&page={page}")
        asked.check_items(answer.itens)
        assert len(answer.itens) == max(0, min(rows, answer.total - (page - 1) * rows)), (asked.url, rows, page)
        totals.add(answer.total)
    assert written.batches() - began > LISTS / 40
    assert len(totals) > 100
