"""Repeated requests get the same answers as from a worker without a cache, whatever happened in between."""

import json
import random
import shutil
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from itertools import product
from pathlib import Path
from urllib.parse import quote

import apsw
import falcon
import pytest

import cluster
from engines import sqlite_file
from factories import NOON, Account, Store, relatorio
from forwarding import Forwarding
from laudo.server import app
from laudo.server.accounts import Level
from laudo.server.config import Settings
from laudo.server.database import Mark
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store
from strategies import many
from wsgi import Answer, Client, NewApp, NewClient

ORIGIN = "https://app.example"
LISTS = ("/relatorios", "/relatorios?status=CONCLUIDO&page=2", "/relatorios?sort=nome", "/pessoas")


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of requests for lists that reached the application instead of being answered as repeats."""
    paths: list[str] = []
    on_get = app.List.on_get

    def noted(self: app.List, request: falcon.Request, answer: falcon.Response) -> None:
        paths.append(request.path)
        on_get(self, request, answer)

    monkeypatch.setattr(app.List, "on_get", noted)
    return paths


def without_request_id(answer: Answer) -> tuple[int, dict[str, str], bytes]:
    """Return an answer without the header that differs between requests."""
    return answer.status, answer.stable_headers, answer.body


in_a_file = pytest.mark.engines("sqlite", reason="PostgreSQL's mark also changes with commits in other databases")


@in_a_file
def test_a_repeated_request_skips_the_application_until_the_store_changes(
    reached: list[str], acme: Client, store: Store, account: Account
) -> None:
    store.write(account, many(60))
    for number, url in enumerate(LISTS):
        for known in ({}, {"If-None-Match": acme.get(url).headers["etag"]}):
            reached.clear()
            answers = [acme.ask("GET", url, headers=known) for _ in range(5)]
            assert len({str(without_request_id(answer)) for answer in answers}) == 1
            assert len({answer.headers["x-request-id"] for answer in answers}) == 5
            assert len(reached) == (1 if known else 0)
        reached.clear()
        store.write(account, [relatorio(60 + number)])
        assert [acme.get(url).status for _ in range(2)] == [200, 200]
        assert len(reached) == 1


@pytest.mark.engines("postgres", reason="SQLite does not need to be asked for its state")
def test_repeats_skip_the_application_on_a_server_that_reports_its_state(
    reached: list[str], acme: Client, store: Store, account: Account
) -> None:
    def is_repeated(url: str) -> bool:
        reached.clear()
        assert acme.get(url).status == 200
        return not reached

    for number, url in enumerate(LISTS * 2):
        assert any(is_repeated(url) for _ in range(100)) is not bool(cluster.named())  # Citus has no mark of its state.
        store.write(account, [relatorio(number)])
        assert not is_repeated(url)


@pytest.mark.engines("sqlite", reason="only SQLite has a -shm file")
def test_a_restored_store_with_a_stale_shm_file_never_gives_old_answers(
    store: Store, store_url: str, account: Account, key_file: Path, tmp_path: Path
) -> None:
    """The copy has no WAL until somebody writes; that writer uses the -shm file that it finds, and deletes it."""
    store.write(account, many(60))
    restored = tmp_path / "restored.db"
    with closing(apsw.Connection(str(sqlite_file(store_url)))) as connection:
        connection.execute("VACUUM INTO ?", (str(restored),)).fetchall()
    shutil.copy(f"{store_url.removeprefix('sqlite:///')}-shm", f"{restored}-shm")
    asking = Client(
        app.create(Settings(store=f"sqlite:///{restored}", key_file=str(key_file), log=False)), account.token
    )
    for number in range(60, 64):
        assert [asking.get("/relatorios").total for _ in range(2)] == [number, number]
        with closing(open_store(f"sqlite:///{restored}", write=True)) as database:
            Ingest(database, account.id_conta).write([relatorio(number)])


class _Counting(Forwarding):
    """A store that counts how often its mark is read, which is at the beginning of each request."""

    marks_read = 0

    def mark(self) -> Mark:
        self.marks_read += 1
        return super().mark()


@pytest.mark.parametrize("cache_bytes", [0, 100_000])
def test_each_request_asks_the_store_for_its_mark_once(
    store_url: str, new_app: NewApp, account: Account, cache_bytes: int
) -> None:
    with closing(open_store(store_url)) as opened:
        database = _Counting(opened)
        client = Client(new_app(database, cache_bytes=cache_bytes), account.token)
        asked = [path for path in ("/relatorios", "/pessoas", "/usuario", "/ready", "/nothing") for _ in range(3)]
        for path in asked:
            client.get(path)
        assert database.marks_read == len(asked)


def test_refusals_and_other_methods_are_never_repeated(reached: list[str], new_app: NewApp, account: Account) -> None:
    asking, nobody = (Client(served, token) for served, token in product([new_app()], [account.token, None]))
    for _ in range(3):
        assert asking.get("/relatorios?page=0").status == 400
        assert nobody.get("/relatorios").status == 401
    assert len(reached) == 6
    assert asking.get("/relatorios").status == 200
    assert [asking.ask(method, "/relatorios").status for method in ("HEAD", "POST", "GET")] == [200, 405, 200]
    assert asking.head("/relatorios").body == b""


def test_no_answer_is_repeated_without_a_cache_or_with_server_timing(
    reached: list[str], new_app: NewApp, account: Account
) -> None:
    for settings in ({"cache_bytes": 0}, {"server_timing": True}):
        asking = Client(new_app(**settings), account.token)
        etag = asking.get("/relatorios").headers["etag"]
        reached.clear()
        for known in ({}, {"If-None-Match": etag}):
            assert {asking.ask("GET", "/relatorios", headers=known).status for _ in range(3)} == {304 if known else 200}
        assert len(reached) == 6


def test_each_answer_echoes_a_valid_request_id(acme: Client) -> None:
    given = [acme.ask("GET", "/relatorios", headers={"X-Request-Id": f"consulta-{n}"}) for n in range(3)]
    assert [answer.headers["x-request-id"] for answer in given] == ["consulta-0", "consulta-1", "consulta-2"]
    refused = acme.ask("GET", "/relatorios", headers={"X-Request-Id": "uma consulta"})
    assert refused.headers["x-request-id"] != "uma consulta"


def test_each_repeat_writes_its_own_log_line(
    client: NewClient, account: Account, capfd: pytest.CaptureFixture[str]
) -> None:
    asking = client(account.token, log=True)
    answers = [asking.get("/relatorios?status=PENDENTE&rows=50") for _ in range(3)]
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line.pop("request_id") for line in lines] == [answer.headers["x-request-id"] for answer in answers]
    times = [line.pop("time") for line in lines]
    assert times == sorted(times)
    assert all(line.pop("ms") >= 0 for line in lines)
    assert (
        lines
        == [
            {
                "route": "relatorios",
                "method": "GET",
                "status": 200,
                "bytes": len(answers[0].body),
                "id_token": account.id_token,
                "filters": ["status"],
            }
        ]
        * 3
    )


def test_an_answer_without_its_body_is_logged_with_0_bytes(
    client: NewClient, account: Account, capfd: pytest.CaptureFixture[str]
) -> None:
    assert client(account.token, log=True).ask("HEAD", "/relatorios").status == 200
    line = json.loads(capfd.readouterr().out)
    assert (line["method"], line["bytes"]) == ("HEAD", 0)


def test_repeats_count_against_the_rate_limit_of_their_token(
    store: Store, account: Account, new_app: NewApp, let_pass: Callable[[float], None]
) -> None:
    served = new_app(rate_limit=3)
    asking = Client(served, account.token)
    assert [asking.get("/relatorios").status for _ in range(5)] == [200, 200, 200, 429, 429]
    _, token = store.token(account.id_usuario)
    assert Client(served, token).get("/relatorios").status == 200
    let_pass(0.4)
    assert [asking.get("/relatorios").status for _ in range(2)] == [200, 429]
    let_pass(60)
    assert [asking.get("/relatorios").status for _ in range(4)] == [200, 200, 200, 429]


def maybe_change(
    seeded: random.Random, store: Store, accounts: list[Account], tokens: list[tuple[int, str]], number: int
) -> None:
    """Usually do nothing; sometimes write, delete, revoke one of the last tokens, disable or enable an account."""
    event, account = seeded.random(), seeded.choice(accounts)
    if event < 0.02:
        store.write(account, [relatorio(seeded.randrange(50), atualizado_em=NOON + number)])
    elif event < 0.03:
        store.delete(account, seeded.randrange(50))
    elif event < 0.035:
        store.revoke(seeded.choice(tokens[-3:])[0])
    elif event < 0.04:
        store.disable(Level.ACCOUNT, account.id_conta)
    elif event < 0.06:
        store.enable(Level.ACCOUNT, account.id_conta)


def test_answers_equal_those_of_a_worker_without_a_cache(store: Store, new_app: NewApp) -> None:
    """Generated requests, most of them repeated, among writes, revoked tokens and disabled accounts."""
    seeded = random.Random(8)
    first = store.account()
    accounts = [first, store.account(first.id_organizacao), store.account()]
    for number, account in enumerate(accounts):
        store.write(account, many(40, seed=number))
    origins = (ORIGIN,)
    kept, plain = (new_app(cache_bytes=size, allowed_origins=origins) for size in (100_000, 0))
    paths = [
        *LISTS,
        "/pessoas?page=2",
        "/pessoas?nome=maria&",
        "/usuario",
        "/usuario?x=1",
        "/relatorios/",
        "//relatorios",
    ]
    etags = ['"x"', "*"]
    tokens = [store.token(account.id_usuario) for account in accounts for _ in range(4)]
    statuses = set()
    for number in range(1500):
        maybe_change(seeded, store, accounts, tokens, number)
        headers = {"Authorization": seeded.choice(tokens)[1]}
        if seeded.random() < 0.4:
            headers["If-None-Match"] = seeded.choice(etags[-6:])
        if seeded.random() < 0.3:
            headers["Origin"] = seeded.choice((ORIGIN, "https://other.example"))
        method = "GET" if seeded.random() < 0.9 else seeded.choice(("HEAD", "OPTIONS", "POST"))
        url = seeded.choice(paths)
        one, other = (Client(served, None).ask(method, url, headers=headers) for served in (kept, plain))
        assert without_request_id(one) == without_request_id(other)
        statuses.add(one.status)
        if "etag" in one.headers:
            etags.append(one.headers["etag"])
    assert statuses == {200, 204, 304, 400, 401, 404, 405}


@in_a_file
def test_the_cache_counts_the_size_of_long_requests_too(account: Account, new_app: NewApp, reached: list[str]) -> None:
    served = new_app(cache_bytes=100_000)
    asking = Client(served, account.token)
    padded = Client(served, f"{account.token}{' ' * 30_000}")
    for client, anew in ((asking, 1), (padded, 1), (asking, 0)):
        reached.clear()
        assert [client.get("/relatorios?nome=x").total for _ in range(3)] == [0, 0, 0]
        assert len(reached) == anew
    for known in range(4):
        headers = {"If-None-Match": f'"{known}{"x" * 30_000}"'}
        assert asking.ask("GET", "/relatorios?nome=x", headers=headers).status == 200
    reached.clear()
    assert asking.get("/relatorios?nome=x").status == 200
    assert len(reached) == 1
    urls = [f"/relatorios?nome={number}{quote('ç' * 190)}" for number in range(25)]
    for url in (*urls, urls[0]):
        reached.clear()
        assert asking.get(url).status == 200
    assert len(reached) == 1, "each link of an answer repeats the query string"


@in_a_file
def test_the_oldest_answers_are_evicted_for_new_ones(
    store: Store, account: Account, new_app: NewApp, reached: list[str]
) -> None:
    store.write(account, many(200))
    asking = Client(new_app(cache_bytes=100_000), account.token)
    urls = [f"/relatorios?page={page}" for page in range(1, 9)]
    for url in urls:
        asking.get(url)
    reached.clear()
    for url in urls:
        asking.get(url)
    assert reached == []
    for day in range(1, 26):
        assert len(asking.get(f"/relatorios?atualizado_em_de=1970-01-{day:02}").body) > 5_000
    for url in urls:
        asking.get(url)
    assert len(reached) == 33


def test_memory_stops_growing_after_thousands_of_different_requests(account: Account, new_app: NewApp) -> None:
    """An empty answer has a body of a hundred bytes, but takes ten times as much memory."""
    asking = Client(new_app(cache_bytes=2_000_000), account.token)
    held = []
    tracemalloc.start()
    try:
        for number in range(10_000):
            assert asking.get(f"/relatorios?nome=n{number}").status == 200
            if number in {4_999, 9_999}:
                held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    first, last = held
    assert last - first < 1_000_000
