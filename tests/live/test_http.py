from contextlib import ExitStack, suppress

import pytest

from awaiting import readable
from live.server import Client, Place, Server, request, serving


@pytest.fixture
def token(server: Server) -> str:
    return f"Authorization: {server.place.token}"


# Connections.


def test_a_connection_answers_many_requests(server: Server, token: str) -> None:
    etag = server.ask("/relatorios", token).headers["etag"]
    asked = {
        request("/usuario", token): 200,
        request("/relatorios", token, f"If-None-Match: {etag}"): 304,
        request("/relatorios?page=0", token): 400,
        request("/usuario"): 401,
        request("/nothing"): 404,
        request("/usuario", method="POST"): 405,
        request("/usuario", method="OPTIONS"): 204,
    }
    with Client(server.port) as client:
        for raw, status in [*asked.items()] * 10:
            client.send(raw)
            assert client.read().status == status


@pytest.mark.engines("sqlite", reason="the requests need no store")
def test_a_connection_over_the_limit_waits_until_another_closes(place: Place) -> None:
    with serving(place, "--workers", "1") as server, ExitStack() as stack:
        clients = [stack.enter_context(Client(server.port)) for _ in range(1025)]
        for client in clients:
            client.send(request("/health"))
        *accepted, waiting = clients
        assert [client.read().status for client in accepted] == [200] * 1024
        assert not readable(waiting.socket.fileno(), 0.1)
        accepted[0].close()
        assert waiting.read().status == 200


def test_pipelined_requests_are_answered_in_order(server: Server, token: str) -> None:
    ids = [f"ahead-{number}" for number in range(40)]
    with Client(server.port) as client:
        client.send(b"".join(request("/relatorios", token, f"X-Request-Id: {one}") for one in ids))
        assert [client.read().headers["x-request-id"] for _ in ids] == ids


def test_head_has_the_headers_of_get_and_no_body(server: Server, token: str) -> None:
    with Client(server.port) as client:
        for path in ("/relatorios", "/pessoas", "/usuario", "/health", "/docs"):
            asked = ("X-Request-Id: head", token)
            client.send(request(path, *asked))
            whole = client.read()
            client.send(request(path, *asked, method="HEAD"))
            head = client.read(head=True)
            assert head.status == whole.status == 200
            assert head.headers | {"date": ""} == whole.headers | {"date": ""}
        client.send(request("/nothing", method="HEAD"))
        assert client.read(head=True).status == 404


def test_header_names_are_in_lower_case(server: Server, token: str) -> None:
    with Client(server.port) as client:
        client.send(request("/relatorios", token, "Connection: close"))
        head, _, _ = client.rest().partition(b"\r\n\r\n")
    names = [line.partition(b":")[0] for line in head.splitlines()[1:]]
    assert names == [name.lower() for name in names]
    assert {b"etag", b"link", b"x-request-id", b"date"} <= set(names)


def test_a_client_that_disconnects_does_not_affect_others(server: Server, token: str) -> None:
    for _ in range(20):
        with Client(server.port) as client:
            client.send(request("/relatorios?rows=1000", token))
    assert server.ask("/relatorios?rows=1000").status == 200


def test_a_request_that_arrives_byte_by_byte_is_answered(server: Server, token: str) -> None:
    with Client(server.port) as client:
        for byte in request("/usuario", token):
            client.send(bytes([byte]))
        assert client.read().status == 200


def test_a_request_body_is_ignored_and_the_connection_stays_open(server: Server, token: str) -> None:
    for raw in (
        request("/usuario", token, "Content-Length: 5") + b"hello",
        request("/usuario", token, "Content-Length: 5", "Expect: 100-continue") + b"hello",
        request("/usuario", token, "Content-Length: 20000", "Content-Type: application/json") + b"x" * 20_000,
        request("/usuario", token, "Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n",
        request("/usuario", token, "Expect: something"),
        request("/usuario", token, "Upgrade: websocket", "Connection: Upgrade"),
        request("/usuario", token, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAA"),
    ):
        assert server.statuses(raw) == [200, 200]


def test_a_request_with_a_large_body_is_answered(server: Server, token: str) -> None:
    assert server.statuses(request("/usuario", token, "Content-Length: 200000") + b"x" * 200_000)[:1] == [200]


def test_a_request_is_answered_without_its_announced_body(server: Server, token: str) -> None:
    for announced in ("Content-Length: 5", "Transfer-Encoding: chunked"):
        with Client(server.port) as client:
            client.send(request("/usuario", token, announced))
            assert client.read().status == 200
            assert client.rest() == b""


def test_every_method_but_get_head_and_options_gives_405(server: Server, token: str) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "BREW", "WEBSOCKET", "get", "A" * 5000):
        answer = server.ask("/usuario", token, method=method)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
        assert answer.json["error"] == "Method Not Allowed"
    assert server.statuses(request("/usuario", token, "Content-Length: 5", method="POST") + b"hello") == [405, 200]


def test_an_http_1_0_request_is_answered(server: Server) -> None:
    assert server.statuses(b"GET /health HTTP/1.0\r\n\r\n") == [200]


# Authorization.


def test_two_authorization_headers_give_the_usual_401(server: Server, token: str) -> None:
    [plain] = {server.ask("/usuario", "Authorization: nobodys-wrong-token").body}
    for pair in ((token, token), (token, "Authorization: x"), ("Authorization: x", token), (token, token.lower())):
        answer = server.ask("/usuario", *pair)
        assert (answer.status, answer.body) == (401, plain)


@pytest.mark.parametrize("text", ["\xff\xfe" * 10, "\xc3\xa9" * 10, "a" * 60_000, "\t", "", "a\tb" * 5])
def test_an_authorization_that_is_not_a_token_gives_401(server: Server, text: str) -> None:
    answer = server.ask("/relatorios", f"Authorization: {text}")
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == 'Token realm="api"'


def test_whitespace_around_a_token_is_ignored(server: Server, token: str) -> None:
    assert server.ask("/usuario", token.replace(": ", ": \t  ") + " \t ").status == 200
    assert server.ask("/usuario", token.replace("Authorization: ", "aUTHORIZATION:")).status == 200


# Request targets.


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/relatorios?nome=%FF", 400),
        ("/relatorios?nome=%C3%28", 400),
        ("/relatorios?nome=%", 400),
        ("/relatorios?nome=%4", 400),
        ("/relatorios?nome=%zz", 400),
        ("/relatorios?nome=%00", 400),
        ("/relatorios?nome=a%0d%0aX-Injected:%20yes", 400),
        ("/relatorios?%FF=1", 400),
        ("/relatorios?nome=\xff", 400),
        ("/relatorios?nome=\xc3\xa9", 200),
        ("/relatorios?nome=%C3%A9", 200),
        ("/relatorios?nome=" + "a" * 201, 400),
        ("/relatorios?nome=" + "a" * 60_000, 400),
        ("/relatorios?nome=" + "a" * 100_000, 414),
        ("/relatorios?" + "&" * 31, 200),
        ("/relatorios?" + "&" * 50_000, 400),
        ("/relatorios?" + "page=1&" * 33, 400),
        ("/" + "a" * 60_000, 404),
        ("/" + "a" * 100_000, 414),
        ("/relat%6Frios", 200),
        ("/relatorios%2F", 404),
        ("/relatorios%00", 404),
        ("/%ff", 404),
        ("/\xff", 400),
        ("/relatorios/", 404),
        ("//relatorios", 404),
        ("/Relatorios", 404),
        ("/../relatorios", 404),
        ("/relatorios;x=1", 404),
        ("/relatorios#fragment", 200),
        ("http://elsewhere.example/relatorios", 200),
        ("*", 404),
    ],
    ids=lambda value: value[:40].encode("unicode_escape").decode() if isinstance(value, str) else None,
)
def test_unusual_targets_get_their_status_and_inject_no_header(
    server: Server, token: str, target: str, status: int
) -> None:
    answer = server.ask(target, token)
    assert answer.status == status
    assert "x-injected" not in answer.headers
    assert "location" not in answer.headers


# Input that is not HTTP.


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\x01\x02\r\n\r\n",
        bytes.fromhex("16030100a5010000a10303") + b"x" * 100,
        b"GET /health\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: test\r\nno colon\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: test\r\nContent-Length: -3\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: test\r\nContent-Length: many\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"GET /health HTTP/1.1\r\nHost: test\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"GET /health HTTP/1.1\r\nHost: test\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"x" * 1_000_000,
    ],
    ids=lambda raw: repr(raw[:60]),
)
def test_input_that_is_not_http_is_refused_and_ends_the_connection(server: Server, raw: bytes) -> None:
    assert server.statuses(raw) in ([], [400], [414], [431])
    assert server.ask("/health").status == 200


def test_an_endless_header_is_refused_with_431(server: Server) -> None:
    with Client(server.port) as client, suppress(BrokenPipeError, ConnectionResetError):
        client.send(b"GET /health HTTP/1.1\r\nHost: test\r\nX: " + b"y" * 300_000)
        assert client.rest().startswith(b"HTTP/1.1 431 ")
    assert server.ask("/health", "X: " + "y" * 60_000).status == 200


@pytest.mark.parametrize(
    "body", [b"zz\r\nhello\r\n0\r\n\r\n", b"fffffffffffffffffff\r\n", b"5\r\nhello\r\n"], ids=["size", "huge", "cut"]
)
def test_a_broken_chunked_body_is_never_read_as_a_request(server: Server, token: str, body: bytes) -> None:
    raw = request("/usuario", token, "Transfer-Encoding: chunked") + body
    assert len(server.statuses(raw)) <= 2


def test_conflicting_body_lengths_end_the_connection(server: Server, token: str) -> None:
    """A proxy that uses the other length could pass on part of the body as the request of another client."""
    smuggled = request("/health", "X-Request-Id: smuggled")
    raw = request("/usuario", token, "Transfer-Encoding: chunked", "Content-Length: 3") + b"0\r\n\r\n" + smuggled
    assert server.statuses(raw) in ([200], [400])
