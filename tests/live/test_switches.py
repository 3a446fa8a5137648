import re

import pytest

from live.server import Place, Server, free_port, scrape, serving

ORIGIN = "https://app.example.com"


# X-Request-Id.


@pytest.mark.parametrize("given", ["a", "consulta-42", "A.b_c-9", "x" * 64])
def test_a_valid_request_id_is_echoed(server: Server, given: str) -> None:
    assert server.ask("/health", f"X-Request-Id: {given}").headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a,b", "é", "<script>", "a;b", "a/b"])
def test_an_invalid_request_id_is_replaced(server: Server, given: str) -> None:
    made = server.ask("/health", f"X-Request-Id: {given}").headers["x-request-id"]
    assert re.fullmatch("[a-z]{9}-[0-9a-f]+(-[0-9a-f]{8}){2}", made)


def test_generated_request_ids_are_unique(server: Server) -> None:
    made = [server.ask("/health").headers["x-request-id"] for _ in range(20)]
    assert len(set(made)) == len(made)


# Server-Timing.


def test_server_timing_is_off_by_default(server: Server) -> None:
    assert "server-timing" not in server.ask("/relatorios").headers


def test_server_timing_shows_the_duration_of_each_stage(place: Place) -> None:
    with serving(place, "--server-timing") as server:
        for path in ("/relatorios", "/pessoas"):
            shown = server.ask(path).headers["server-timing"]
            assert re.fullmatch(r"(?:(?:^|, )(auth|parse|answer);dur=[0-9]+\.[0-9]{3}){3}", shown)


# CORS.


def cors(headers: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in headers.items() if name.startswith("access-control-")}


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_no_origin_is_allowed_by_default(server: Server, method: str) -> None:
    answer = server.ask("/relatorios", f"Origin: {ORIGIN}", method=method)
    assert cors(answer.headers) == {}


@pytest.mark.engines("sqlite", reason="the engine makes no difference")
def test_only_configured_origins_are_allowed(place: Place) -> None:
    with serving(place, "--allowed-origins", f"{ORIGIN},http://localhost:3000") as server:
        for origin in (ORIGIN, "http://localhost:3000"):
            allowed = server.ask("/usuario", f"Origin: {origin}")
            assert allowed.status == 200
            assert cors(allowed.headers) == {
                "access-control-allow-origin": origin,
                "access-control-expose-headers": "ETag, Link, Retry-After, X-Request-Id",
            }
            assert "Origin" in allowed.headers["vary"]
        for other in ("https://other.example.com", "null", f"{ORIGIN}.example.net", ORIGIN.upper()):
            refused = server.ask("/usuario", f"Origin: {other}")
            assert refused.status == 200
            assert cors(refused.headers) == {}
            assert "Origin" in refused.headers["vary"]


@pytest.mark.engines("sqlite", reason="the engine makes no difference")
def test_a_preflight_of_an_allowed_origin_permits_the_token(place: Place) -> None:
    with serving(place, "--allowed-origins", ORIGIN) as server:
        asked = ("Access-Control-Request-Method: GET", "Access-Control-Request-Headers: authorization")
        answer = server.ask("/relatorios", f"Origin: {ORIGIN}", "Authorization: none", *asked, method="OPTIONS")
    assert answer.status == 204
    assert cors(answer.headers) == {
        "access-control-allow-origin": ORIGIN,
        "access-control-expose-headers": "ETag, Link, Retry-After, X-Request-Id",
        "access-control-allow-methods": "GET, HEAD, OPTIONS",
        "access-control-allow-headers": "Authorization, Content-Type, If-None-Match, X-Request-Id",
        "access-control-max-age": "600",
    }


@pytest.mark.engines("sqlite", reason="the engine makes no difference")
def test_an_allowed_origin_can_read_a_401(place: Place) -> None:
    with serving(place, "--allowed-origins", ORIGIN) as server:
        answer = server.ask("/usuario", f"Origin: {ORIGIN}", "Authorization: nobodys-wrong-token")
    assert answer.status == 401
    assert answer.headers["access-control-allow-origin"] == ORIGIN


# Rate limit.


def test_a_token_over_the_rate_limit_gets_429_with_retry_after(place: Place) -> None:
    with serving(place, "--workers", "1", "--rate-limit", "5") as server:
        answers = [server.ask("/usuario") for _ in range(30)]
        wrong = [server.ask("/usuario", "Authorization: nobodys-wrong-token") for _ in range(30)]
        free = [server.ask("/health") for _ in range(30)]
    assert [answer.status for answer in answers[:5]] == [200] * 5
    refused = [answer for answer in answers if answer.status == 429]
    assert refused
    assert {answer.status for answer in answers} == {200, 429}
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}
    assert {answer.json["error"] for answer in refused} == {"Too Many Requests"}
    assert {answer.status for answer in wrong} == {401}
    assert {answer.status for answer in free} == {200}


def test_no_request_is_refused_without_a_rate_limit(server: Server) -> None:
    assert {server.ask("/usuario").status for _ in range(200)} == {200}


# max_rows.


@pytest.mark.engines("sqlite", reason="the engine makes no difference")
def test_a_page_has_at_most_max_rows(place: Place) -> None:
    with serving(place, "--max-rows", "50") as server:
        assert server.ask("/relatorios?rows=50").status == 200
        assert server.ask("/relatorios?rows=75").status == 400
        parameters = server.ask("/openapi.json").json["paths"]["/relatorios"]["get"]["parameters"]
    assert {parameter["name"]: parameter["schema"] for parameter in parameters}["rows"]["maximum"] == 50


# Metrics.


@pytest.mark.engines("sqlite", reason="the engine makes no difference")
def test_metrics_of_both_workers_are_served_on_their_own_port(place: Place) -> None:
    port = free_port()
    with serving(place, "--workers", "2", "--metrics-port", str(port)) as server:
        for _ in range(100):
            assert server.ask("/usuario").status == 200
        server.ask("/usuario", "Authorization: nobodys-wrong-token")
        server.ask("/52998224725", method="BREW")
        text = scrape(port)
        assert server.ask("/metrics").status == 404
    assert 'laudo_requests_total{method="GET",route="usuario",status="200"} 100.0' in text
    assert 'laudo_requests_total{method="GET",route="usuario",status="401"} 1.0' in text
    assert 'laudo_requests_total{method="other",route="none",status="404"} 1.0' in text
    assert 'laudo_request_seconds_count{route="usuario"} 101.0' in text
    assert not [each for each in ("52998224725", "BREW", place.token) if each in text]


def test_metrics_are_off_by_default(server: Server) -> None:
    assert server.ask("/metrics").status == 404
