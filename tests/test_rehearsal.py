"""Rehearsed failures: their shares, the checks before them, their form, and that each start repeats them."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from factories import Account, Store, relatorio
from laudo.server import edges
from laudo.server.rehearsal import Rehearsal
from wsgi import Client, NewApp, NewClient

ALL = ("401=10", "429=10", "500=10", "503=20")


def statuses(client: Client, path: str, number: int) -> list[int]:
    return [client.get(path).status for _ in range(number)]


@pytest.mark.parametrize("path", ["/relatorios", "/pessoas", "/usuario"])
def test_the_configured_share_of_each_hundred_requests_is_refused(
    account: Account, client: NewClient, path: str
) -> None:
    plain = client(account.token).get(path)
    asking = client(account.token, rehearse=ALL)
    answers = [asking.get(path) for _ in range(300)]
    hundreds = [[answer.status for answer in answers[begun : begun + 100]] for begun in (0, 100, 200)]
    for hundred in hundreds:
        assert Counter(hundred) == {200: 50, 401: 10, 429: 10, 500: 10, 503: 20}
    assert hundreds[0] != hundreds[1] != hundreds[2]
    assert {answer.body for answer in answers if answer.status == 200} == {plain.body}


def test_25_requests_meet_every_failure_and_two_failures_in_a_row(account: Account, client: NewClient) -> None:
    met = statuses(client(account.token, rehearse=("503=10", "429=5")), "/usuario", 25)
    assert {429, 503} < set(met)
    assert any(200 not in pair for pair in pairwise(met))


def test_threads_together_get_the_configured_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    rehearsal = Rehearsal(("1s=10", "2s=90"))
    with ThreadPoolExecutor(8) as pool:
        for _ in range(2000):
            pool.submit(rehearsal.befall, {})
    assert Counter(slept) == {1.0: 200, 2.0: 1800}


def test_a_rehearsed_refusal_looks_like_a_real_one(account: Account, client: NewClient) -> None:
    refused = {share.partition("=")[0]: client(account.token, rehearse=(f"{share[:3]}=100",)) for share in ALL}
    answers = {status: asking.get("/relatorios") for status, asking in refused.items()}
    assert {status: answer.status for status, answer in answers.items()} == {each: int(each) for each in answers}
    wrong = client("laudo_" + "0" * 38).get("/relatorios")
    assert answers["401"].body == wrong.body
    assert set(answers["401"].headers) == set(wrong.headers)
    for status in ("429", "503"):
        assert answers[status].headers["retry-after"] == "1"
        assert "Retry-After" in answers[status].json["message"]
    assert answers["500"].json["error"] == "Internal Server Error"
    assert all("x-request-id" in answer.headers for answer in answers.values())


def test_every_start_has_the_same_failures_on_repeated_requests_too(account: Account, new_app: NewApp) -> None:
    first, second = (Client(new_app(rehearse=ALL), account.token) for _ in range(2))
    met = statuses(first, "/relatorios", 100)
    assert statuses(second, "/pessoas", 50) + statuses(second, "/relatorios?page=2", 50) == met
    assert len(set(met[50:])) > 2


def test_failures_are_rehearsed_only_for_callers_with_a_token(account: Account, client: NewClient) -> None:
    asking = client(account.token, rehearse=("503=100",))
    assert asking.get("/usuarios").status == 404
    assert asking.ask("POST", "/usuario").status == 405
    assert asking.nobody().get("/usuario").status == 401
    assert asking.get("/relatorios?page=0").status == 503
    assert {asking.get(path).status for path in ("/health", "/ready", "/openapi.json", "/docs", "/")} == {200}


def test_nothing_is_rehearsed_by_default(account: Account, client: NewClient) -> None:
    assert set(statuses(client(account.token), "/usuario", 200)) == {200}


def test_a_delayed_answer_has_the_same_body(
    store: Store, account: Account, client: NewClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(account, [relatorio(1)])
    plain = client(account.token).get("/relatorios")
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    asking = client(account.token, rehearse=("0.25s=30", "503=30", "5s=20"))
    answers = [asking.get("/relatorios") for _ in range(300)]
    assert {answer.body for answer in answers if answer.status == 200} == {plain.body}
    assert Counter(slept) == {0.25: 90, 5: 60}
    assert sum(answer.status == 503 for answer in answers) == 90


@pytest.mark.parametrize("path", ["/relatorios", "/usuario", "/relatorios?page=0"])
def test_an_answer_that_is_cut_announces_more_than_it_sends(account: Account, client: NewClient, path: str) -> None:
    plain = client(account.token).get(path)
    asking = client(account.token, rehearse=("cut=20",))
    answers = [asking.get(path) for _ in range(100)]
    assert {(answer.status, answer.headers["content-length"]) for answer in answers} == {
        (plain.status, str(len(plain.body)))
    }
    assert Counter(answer.body for answer in answers) == {plain.body: 80, plain.body[: len(plain.body) // 2]: 20}


def test_an_answer_without_a_body_is_not_cut(account: Account, client: NewClient) -> None:
    asking = client(account.token, rehearse=("cut=100",))
    known = {"If-None-Match": client(account.token).get("/relatorios").headers["etag"]}
    answers = [asking.head("/relatorios"), asking.ask("GET", "/relatorios", headers=known)]
    assert [(answer.status, answer.body) for answer in answers] == [(200, b""), (304, b"")]


@pytest.mark.usefixtures("let_pass")
def test_a_rehearsed_delay_does_not_count_against_the_busy_limit(
    account: Account, client: NewClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(edges, "perf_counter", lambda: sum(slept))
    asking = client(account.token, rehearse=("0.5s=100",), busy_limit_ms=400)
    assert statuses(asking, "/usuario", 3) == [200] * 3
    assert slept == [0.5] * 3


def test_a_request_over_the_rate_limit_meets_no_rehearsed_failure(account: Account, client: NewClient) -> None:
    asking = client(account.token, rehearse=("503=100",), rate_limit=1)
    assert [asking.get("/usuario").status for _ in range(2)] == [503, 429]
