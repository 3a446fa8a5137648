import os
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from laudo.server import logs
from laudo.server.stores import open_store
from laudo.server.tokens import new_token
from live.server import Place, request, serving

KEYS = ["time", "request_id", "route", "method", "status", "ms", "bytes", "id_token", "filters"]
ROUTES = [
    ("/relatorios", "relatorios"),
    ("/pessoas", "pessoas"),
    ("/usuario", "usuario"),
    ("/health", "health"),
    ("/ready", "ready"),
    ("/openapi.json", "openapi"),
    ("/docs", "docs"),
    ("/", "home"),
    ("/relatorio", "none"),
]


def test_each_request_writes_one_log_line_with_exactly_these_keys(place: Place) -> None:
    with serving(place, "--workers", "1") as server:
        answers = [server.ask(path) for path, _ in ROUTES]
    lines = server.log()
    assert [list(line) for line in lines] == [KEYS] * len(ROUTES)
    assert [line["route"] for line in lines] == [route for _, route in ROUTES]
    assert [line["status"] for line in lines] == [answer.status for answer in answers]
    assert [line["bytes"] for line in lines] == [len(answer.body) for answer in answers]
    assert [line["request_id"] for line in lines] == [answer.headers["x-request-id"] for answer in answers]


def test_a_log_line_names_time_token_route_and_filters(place: Place) -> None:
    began = datetime.now(UTC)
    with serving(place, "--workers", "1") as server:
        server.ask("/relatorios?page=2&tipo_pessoa=PESSOA&status=CONCLUIDO", "X-Request-Id: consulta-42")
    [line] = server.log()
    assert timedelta() <= datetime.fromisoformat(line["time"]) - began < timedelta(minutes=1)
    assert 0 < line["ms"] < 10_000
    assert line | {"time": "", "ms": 0, "bytes": 0} == {
        "time": "",
        "request_id": "consulta-42",
        "route": "relatorios",
        "method": "GET",
        "status": 200,
        "ms": 0,
        "bytes": 0,
        "id_token": 1,
        "filters": ["tipo_pessoa", "status"],
    }


def test_log_lines_of_two_workers_never_mix(place: Place) -> None:
    with serving(place, "--workers", "2") as server:
        for _ in range(300):
            server.ask("/health")
    assert {tuple(line) for line in server.log()} == {tuple(KEYS)}
    assert len(server.log()) == 300


def test_a_failure_to_write_the_log_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr(logs, "_STDOUT", full)
    monkeypatch.setattr(logs, "_log", logs.Throttled())
    for _ in range(3):
        logs.request_line("consulta-42", "GET", 0.001, logs.Entry("relatorios", 200, 2, 1, ()))
    os.close(full)
    assert capfd.readouterr() == ("", "log: No space left on device; a request was not logged\n")


def test_no_log_disables_the_request_log(place: Place) -> None:
    with serving(place, "--no-log") as server:
        assert server.ask("/usuario").status == 200
        assert server.ask("/usuario", "Authorization: nobodys-wrong-token").status == 401
    assert server.out.read_bytes() == b""


SECRETS = {
    "cpf": "52998224725",
    "cnpj": "12ABC34501DE35",
    "name": "Raimunda",
    "misspelt": "cfp_52998224725",
    "foreign token": "anothervendorstoken0123456789",
    "our token": new_token(),
}


def test_no_secret_sent_by_a_client_is_logged(place: Place) -> None:
    with serving(place, "--workers", "1", "--server-timing") as server:
        for text in SECRETS.values():
            for raw in _requests_with(text, f"Authorization: {place.token}"):
                server.statuses(raw)
    said = server.said()
    assert [name for name, text in SECRETS.items() if text in said] == []
    assert place.token not in said


def _requests_with(text: str, token: str) -> Iterator[bytes]:
    """Give requests that contain a text in every possible place, and one that is not HTTP."""
    yield request(f"/relatorios?numero_documento={text}", token)
    yield request(f"/relatorios?nome={text}&status={text}&sort={text}", token)
    yield request(f"/relatorios?{text}={text}", token)
    yield request(f"/relatorios?numero_documento={text}&numero_documento={text}", token)
    yield request(f"/pessoas?cpf={text}", token)
    yield request(f"/pessoas?nome={text}", token)
    yield request(f"/pessoas?busca={text}", token)
    yield request(f"/usuario?{text}", token)
    yield request(f"/{text}", token)
    yield request(f"/usuario/{text}?{text}#{text}", token)
    yield request("/usuario", f"Authorization: {text}")
    yield request("/usuario", f"Authorization: Bearer {text}")
    yield request("/usuario", f"Authorization: {text}", f"Authorization: {text}")
    yield request("/usuario", token, f"X-Request-Id: <{text}>", f"Referer: {text}", f"Origin: {text}")
    yield request("/usuario", token, f"Content-Length: {len(text)}") + text.encode()
    yield request("/usuario", token, method=text)
    yield f"{text}\r\n\r\n".encode()


LOGGED_IDS = {
    "52998224725": "***",
    "529.982.247-25": "***",
    "529-982-247-25": "***",
    "cpf_529_982_247_25": "cpf_***",
    "cpf_52998224725-1": "cpf_***-1",
    "cpf52998224725x": "cpf***x",
    "1764000000000": "1764000000000",
    "0192f3a4-7c1e-7b2a-9f00-1234567890ab": "0192f3a4-7c1e-7b2a-9f00-1234567890ab",
    "0192f3a4-7c1e-7b2a-9f00-a52998224725": "0192f3a4-7c1e-7b2a-9f00-a52998224725",
    "7BAEF514-B085-484E-B947-52998224725B": "7BAEF514-B085-484E-B947-52998224725B",
    "00000000-0000-0000-0000-a52998224725": "00000000-0000-0000-0000-a***",
    "7baef514-b085-484e-b947-a52998224725.1": "7baef514-b085-484e-b947-a***.1",
    "7baef514b085484eb947a52998224725": "7baef514b085484eb947a***",
}


def test_a_possible_cpf_in_a_request_id_is_echoed_but_not_logged(place: Place) -> None:
    with serving(place, "--workers", "1") as server:
        answers = [server.ask("/health", f"X-Request-Id: {given}") for given in LOGGED_IDS]
    assert [answer.headers["x-request-id"] for answer in answers] == list(LOGGED_IDS)
    assert [line["request_id"] for line in server.log()] == list(LOGGED_IDS.values())


MISTAKES = {
    "sqlite": ("ALTER TABLE relatorio RENAME TO moved; CREATE VIEW relatorio AS SELECT missing()", "SQLError"),
    "postgres": (
        "ALTER TABLE relatorio ALTER numero_documento TYPE BYTEA USING numero_documento::BYTEA",
        "UndefinedFunction",
    ),
}
"""For each engine, a change that makes a statement fail for good, and the name of the error."""


def test_a_bug_gives_500_and_is_logged_without_request_data(own_place: Place) -> None:
    with serving(own_place, "--workers", "1", bugs=1) as server:
        with (
            closing(open_store(own_place.store, write=True)) as database,
            database.transaction() as write,
        ):
            mistake, error = MISTAKES[database.dialect.name]
            write.run_script(mistake)
        answer = server.ask("/relatorios?numero_documento=52998224725", "X-Request-Id: falha-1")
    assert answer.status == 500
    assert answer.json["status_code"] == 500
    assert f"bug: {error}" in server.said()
    assert "52998224725" not in server.said()
    assert own_place.token not in server.said()
