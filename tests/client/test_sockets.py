"""Both clients over real connections: they handle broken services, and no call outlasts its deadline."""

import asyncio
import gc
import gzip
import re
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain, repeat
from pathlib import Path

import httpx
import pytest

import awaiting
from laudo.client import (
    AnswerError,
    AsyncLaudo,
    DeadlineError,
    Laudo,
    LaudoError,
    Limits,
    Network,
    ServerError,
    TransportError,
    calls,
    transports,
)

ONCE = Limits(retries=0)
HURRY = Limits(deadline=0.6, connect=0.3, read=0.3, retries=0)
PATIENCE = 5.0
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

BODY = gzip.compress(
    b'{"result":{"api_token":"","email":"","nome_usuario":"","webhook_url":"","nome_organizacao":"",'
    b'"id_organizacao":"7"},"status_code":200}'
)
PROFILE = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)

Serve = Callable[[socket.socket], None]
Ask = Callable[[str, Limits], object]


def answering(raw: bytes) -> Serve:
    return lambda connection: connection.sendall(raw)


def resetting(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def stalling(connection: socket.socket) -> None:
    connection.recv(1)  # waits until the client closes


def trickling(connection: socket.socket) -> None:
    connection.sendall(OK + b"Content-Length: 1000\r\n\r\n")
    with suppress(OSError):
        for _ in range(100):
            connection.sendall(b" ")
            time.sleep(0.05)


def trickling_packed(connection: socket.socket) -> None:
    """Send gzip that goes on and on, and decompresses to nothing."""
    connection.sendall(OK + b"Content-Encoding: gzip\r\n\r\n" + BODY[:10])
    with suppress(OSError):
        for _ in range(100):
            connection.sendall(b"\0\0\0\xff\xff")
            time.sleep(0.05)


@contextmanager
def serving(serve: Serve, *, first: bool = True) -> Iterator[str]:
    """Call `serve` with each connection until the block ends; if `first`, read a request before that."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.settimeout(PATIENCE)
                        if first:
                            connection.recv(65536)
                        serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def blocking(base: str, limits: Limits, network: Network | None = None) -> object:
    with Laudo(base, "token", limits=limits, network=network) as client:
        return client.usuario()


def awaited(base: str, limits: Limits, network: Network | None = None) -> object:
    async def ask() -> object:
        async with AsyncLaudo(base, "token", limits=limits, network=network) as client:
            return await client.usuario()

    return awaiting.run(ask())


@pytest.fixture(params=[blocking, awaited])
def ask(request: pytest.FixtureRequest) -> Ask:
    asked: Ask = request.param
    return asked


@pytest.mark.timed
@pytest.mark.parametrize(
    ("serve", "kind"),
    [
        (resetting, TransportError),
        (answering(b""), TransportError),
        (answering(b"HTTP/1.1 200 O"), TransportError),
        (answering(b"no http at all\r\n\r\n"), TransportError),
        (answering(OK + b'Content-Length: 1000\r\n\r\n{"result": {'), TransportError),
        (answering(OK + b"Transfer-Encoding: chunked\r\n\r\nff\r\nhalf"), TransportError),
        (answering(OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope"), TransportError),
        (answering(OK + b'Connection: close\r\n\r\n{"result": {'), AnswerError),
        (answering(OK + b"Content-Length: 2\r\n\r\n[]"), AnswerError),
        (answering(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), ServerError),
        (stalling, DeadlineError),
        (trickling, DeadlineError),
        (trickling_packed, DeadlineError),
    ],
)
def test_a_broken_service_raises_one_exception_within_the_deadline(
    ask: Ask, serve: Serve, kind: type[LaudoError]
) -> None:
    started = time.monotonic()
    with serving(serve) as base, pytest.raises(kind) as caught:
        ask(base, HURRY)
    assert time.monotonic() - started < HURRY.deadline + HURRY.read + 1
    assert caught.value.__context__ is None
    assert base in str(caught.value) or kind not in {TransportError, DeadlineError}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_an_answer_larger_than_the_limit_raises_answer_error(
    ask: Ask, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "LARGEST", 3_000_000)

    def flooding(connection: socket.socket) -> None:
        packer = zlib.compressobj(wbits=31)
        connection.sendall(OK + (b"Content-Encoding: gzip\r\n" if packed else b""))
        connection.sendall(b"X-Request-Id: abc-3\r\nConnection: close\r\n\r\n")
        with suppress(OSError):
            for _ in range(200):
                part = b" " * 100_000
                connection.sendall(packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) if packed else part)

    with serving(flooding) as base, pytest.raises(AnswerError, match=r"^the answer is larger than 3 MB ") as caught:
        ask(base, Limits(retries=2))
    assert (caught.value.status, caught.value.request_id) == (200, "abc-3")
    assert caught.value.__context__ is None


@pytest.mark.parametrize("packed", ["gzip, gzip", "gzip\r\nContent-Encoding: gzip", "BR", "zstd"])
def test_an_unrequested_compression_raises_answer_error(ask: Ask, packed: str) -> None:
    """Data that gzip has compressed twice can grow to a million times its size at once."""
    body = gzip.compress(gzip.compress(b" " * 1_000_000))
    head = OK + f"Content-Encoding: {packed}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    told = r"^the answer is compressed in a way that was not requested \(status 200\)$"
    with serving(answering(head + body)) as base, pytest.raises(AnswerError, match=told):
        ask(base, ONCE)


@pytest.mark.parametrize("new", [Laudo, AsyncLaudo])
def test_the_connection_of_an_answer_that_is_not_read_is_closed(new: type[Laudo | AsyncLaudo]) -> None:
    ended = threading.Event()

    def serve(connection: socket.socket) -> None:
        connection.sendall(OK + b"Content-Encoding: zstd\r\nContent-Length: 9\r\n\r\n")
        if connection.recv(1) == b"":
            ended.set()

    async def ask(base: str) -> bool:
        client = new(base, "token", limits=ONCE)
        with pytest.raises(AnswerError) as caught:
            await client.usuario() if isinstance(client, AsyncLaudo) else client.usuario()
        is_closed = await asyncio.to_thread(ended.wait, PATIENCE)
        await client.close() if isinstance(client, AsyncLaudo) else client.close()
        return is_closed and caught.value.status == 200

    with serving(serve) as base:
        assert awaiting.run(ask(base))


@pytest.mark.parametrize("packed", ["x-gzip", "X-GZIP"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_x_gzip_and_a_byte_order_mark_are_accepted(ask: Ask, packed: str, mark: bytes) -> None:
    body = gzip.compress(mark + gzip.decompress(BODY))
    head = OK + f"Content-Encoding: {packed}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with serving(answering(head + body)) as base:
        ask(base, ONCE)


def test_the_error_for_a_refused_connection_names_the_base_url(ask: Ask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    told = "nothing listens there; check that it is running, and its host and port"
    assert failure(ask, f"{base}/of/ours") == f"cannot connect to {base}/of/ours: {told}"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_error_names_a_proxy_that_refuses_connections(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    use_proxy(monkeypatch, f"http://ana:secret@127.0.0.1:{port}")
    base = f"{scheme}://service.invalid"
    told = "nothing listens there; check that it is running, and its host and port"
    settings = f"or the variables {scheme}_proxy, all_proxy and no_proxy"
    asked = f"the proxy http://127.0.0.1:{port} for {base}"
    assert failure(ask, base) == f"cannot connect to {asked}: {told}, {settings}"


@pytest.mark.parametrize("request_through", [blocking, awaited])
def test_the_error_names_the_argument_that_chose_a_proxy(
    request_through: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_proxy(monkeypatch, "http://127.0.0.1:1")
    with serving(answering(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")) as proxy:
        chosen = partial(request_through, network=Network(proxy=proxy))
        assert failure(chosen, "https://service.invalid") == (
            f"the proxy {proxy} did not connect to https://service.invalid; check with whoever runs it, "
            "or the argument proxy of Network (status 403)"
        )


def use_proxy(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """Set the environment variables that name a proxy for every service."""
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, proxy)
    monkeypatch.delenv("no_proxy", raising=False)


@pytest.mark.parametrize(
    ("status", "hint"), [(403, "with whoever runs it"), (407, "the user name and password in its address")]
)
def test_the_error_names_a_proxy_that_refuses_to_connect(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, status: int, hint: str
) -> None:
    with serving(answering(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status)) as proxy:
        use_proxy(monkeypatch, proxy.replace("//", "//ana:secret@"))
        assert failure(ask, "https://service.invalid") == (
            f"the proxy {proxy} did not connect to https://service.invalid; check {hint}, "
            f"or the variables https_proxy, all_proxy and no_proxy (status {status})"
        )


@pytest.mark.parametrize(("status", "tries"), [(403, 1), (407, 1), (502, 3), (503, 3), (504, 3)])
def test_a_refusal_by_a_proxy_is_retried_only_if_its_status_may_pass(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, status: int, tries: int
) -> None:
    asked: list[int] = []

    def refusing(connection: socket.socket) -> None:
        asked.append(status)
        connection.sendall(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status)

    with serving(refusing) as proxy:
        use_proxy(monkeypatch, proxy)
        with pytest.raises(TransportError) as caught:
            ask("https://service.invalid", Limits(retries=2))
    assert (caught.value.status, len(asked)) == (status, tries)


def test_a_tls_error_behind_a_proxy_names_service_and_proxy(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def tunnelling(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 No\r\n\r\n")

    with serving(tunnelling) as proxy:
        use_proxy(monkeypatch, proxy)
        told = failure(ask, "https://service.invalid")
    assert told.startswith(
        f"cannot establish TLS with https://service.invalid through the proxy {proxy}: WRONG_VERSION_NUMBER; "
    )


def test_a_connection_error_behind_a_proxy_names_service_and_proxy(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def tunnelling(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        connection.recv(65536)
        resetting(connection)

    with serving(tunnelling) as proxy:
        use_proxy(monkeypatch, proxy)
        told = failure(ask, "https://service.invalid")
    assert told.startswith(f"cannot connect to https://service.invalid through the proxy {proxy}: Connection reset")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("answer", [b"", b"\x05", b"HTTP/1.1 400 No\r\n\r\n"])
def test_a_broken_socks_proxy_is_retried_and_named_in_the_error(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    asked: list[bytes] = []

    def refusing(connection: socket.socket) -> None:
        asked.append(answer)
        connection.sendall(answer)

    with serving(refusing) as proxy:
        socks = proxy.replace("http:", "socks5:")
        use_proxy(monkeypatch, socks)
        with pytest.raises(TransportError) as caught:
            ask("http://service.invalid", Limits(retries=1))
    gc.collect()  # httpx leaves such connections to the garbage collector.
    told = f"the proxy {socks} did not connect to http://service.invalid; check with whoever runs it, or "
    assert str(caught.value).startswith(told)
    assert (caught.value.status, len(asked)) == (None, 2)


def failure(ask: Ask, base: str, limits: Limits = ONCE) -> str:
    """Fail to connect; gives the message. The error keeps its cause, but no traceback, which could hold the token."""
    with pytest.raises(TransportError) as caught:
        ask(base, limits)
    assert caught.value.__context__ is None
    cause = caught.value.__cause__
    assert isinstance(cause, httpx.TransportError)
    known = [cause, *([cause.__cause__] if cause.__cause__ else [])]
    assert all((each.__context__, each.__traceback__) == (None, None) for each in known)
    assert known[-1].__cause__ is None
    return str(caught.value)


@pytest.mark.parametrize(
    ("serve", "told"),
    [
        (answering(b"no http at all\r\n\r\n"), "it breaks off or is not HTTP"),
        (answering(b""), "it breaks off or is not HTTP"),
        (
            answering(OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope"),
            "its body is not compressed as it says",
        ),
        (resetting, "the connection was lost, Connection reset by peer"),
    ],
)
def test_the_error_for_a_broken_answer_keeps_no_cause(ask: Ask, serve: Serve, told: str) -> None:
    with serving(serve) as base, pytest.raises(TransportError) as caught:
        ask(base, ONCE)
    assert str(caught.value) == f"incomplete answer from {base}: {told}"
    assert caught.value.__cause__ is None


def test_the_error_for_a_connect_timeout_names_the_address(ask: Ask) -> None:
    with serving(stalling) as base:
        secure = base.replace("http:", "https:")
        told = failure(ask, secure, Limits(deadline=60, connect=0.3, retries=0))
    assert told == f"connecting to {secure} timed out; check the address and the network"


def test_an_exception_being_handled_does_not_change_the_message(ask: Ask) -> None:
    with serving(answering(b"no http at all\r\n\r\n")) as base:
        try:
            Path("/no/such/file").read_bytes()
        except FileNotFoundError:
            with pytest.raises(TransportError, match=r"is not HTTP$"):
                ask(base, ONCE)


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (socket.EAI_NONAME, "there is no host with that name; check the address for a misspelling"),
        (
            socket.EAI_AGAIN,
            "host names cannot be resolved now; check the network of this machine and the address",
        ),
        (socket.EAI_FAIL, "as the system says; check the address and the network"),
    ],
)
def test_each_name_resolution_error_has_its_own_message(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, number: int, told: str
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(number, "as the system says")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert failure(ask, "http://service.invalid") == f"cannot connect to http://service.invalid: {told}"


def test_an_exception_being_handled_is_not_part_of_the_cause(ask: Ask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    try:
        Path("/no/such/file").read_bytes()
    except FileNotFoundError:
        with pytest.raises(TransportError) as caught:
            ask(f"http://127.0.0.1:{port}", ONCE)
        cause = caught.value.__cause__
        assert isinstance(cause, httpx.ConnectError)
        assert isinstance(cause.__cause__, ConnectionRefusedError)
        assert cause.__cause__.__context__ is None


def test_an_exception_being_handled_is_not_the_cause_of_a_proxys_refusal(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(answering(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")) as proxy:
        use_proxy(monkeypatch, proxy)
        try:
            Path("/no/such/file").read_bytes()
        except FileNotFoundError:
            with pytest.raises(TransportError) as caught:
                ask("https://service.invalid", ONCE)
            cause = caught.value.__cause__
            assert isinstance(cause, httpx.ProxyError)
            assert cause.__cause__ is None


def test_a_host_whose_addresses_all_refuse_is_reported(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    both = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{each}", port)) for each in (1, 2)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    assert "nothing listens there" in failure(ask, f"http://service.invalid:{port}")


def test_the_error_for_a_server_without_tls_suggests_http(ask: Ask) -> None:
    with serving(answering(b"HTTP/1.1 400 No\r\n\r\n")) as base:
        secure = base.replace("http:", "https:")
        said = failure(ask, secure)
    hint = "check its port, and whether its address should begin with http://"
    assert said == f"cannot establish TLS with {secure}: WRONG_VERSION_NUMBER; {hint}"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return self_signed(tmp_path)


def self_signed(folder: Path, *extensions: str) -> Path:
    """Make a self-signed certificate with its key."""
    made, file = folder / "made.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=service.test", "-days", "2"]
    more = [f"-addext={each}" for each in ("subjectAltName=IP:127.0.0.1", *extensions)]
    subprocess.run([*command, *more, "-keyout", made, "-out", file], check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + made.read_bytes())
    return file


def test_the_error_for_an_untrusted_certificate_suggests_ssl_cert_file(ask: Ask, certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def shake_hands(connection: socket.socket) -> None:
        with suppress(OSError):
            context.wrap_socket(connection, server_side=True)

    with serving(shake_hands, first=False) as base:
        secure = base.replace("http:", "https:")
        said = failure(ask, secure)
    assert said.replace("self signed", "self-signed") == (
        f"the certificate of {secure} is not trusted: self-signed certificate; "
        "check the address, or set SSL_CERT_FILE to a file with the certificates to trust"
    )


def answering_by_tls(certificate: Path) -> Serve:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(65536)
            secured.sendall(PROFILE)

    return serve


@pytest.mark.parametrize("ask", [blocking, awaited])
def test_network_verify_sets_the_trusted_certificates(ask: Callable[..., object], certificate: Path) -> None:
    with serving(answering_by_tls(certificate), first=False) as base:
        secure = base.replace("http:", "https:")
        trusting = Network(verify=ssl.create_default_context(cafile=certificate))
        assert "id_organizacao='7'" in repr(ask(secure, Limits(retries=0), network=trusting))
        with pytest.raises(TransportError, match="is not trusted"):
            ask(secure, Limits(retries=0), network=Network(verify=ssl.create_default_context()))


@pytest.mark.parametrize(
    ("host", "extensions", "said"),
    [
        (
            "localhost",
            (),
            "Hostname mismatch, certificate is not valid for 'localhost'; check the address: the certificate is for ",
        ),
        ("127.0.0.1", ("extendedKeyUsage=clientAuth",), "; check with whoever runs the service"),
    ],
)
def test_the_error_for_a_certificate_suggests_whom_its_fault_concerns(
    tmp_path: Path, host: str, extensions: tuple[str, ...], said: str
) -> None:
    certificate = self_signed(tmp_path, *extensions)
    network = Network(verify=ssl.create_default_context(cafile=certificate))
    with serving(answering_by_tls(certificate), first=False) as base:
        secure = base.replace("http://127.0.0.1", f"https://{host}")
        with pytest.raises(TransportError, match=re.escape(f"the certificate of {secure} is not trusted: ")) as caught:
            blocking(secure, ONCE, network)
    assert said in str(caught.value)


@pytest.mark.parametrize("ask", [blocking, awaited])
def test_network_verify_applies_to_a_proxy_too(ask: Callable[..., object], certificate: Path) -> None:
    base, trusted = "http://service.invalid", ssl.create_default_context(cafile=certificate)
    with serving(answering_by_tls(certificate), first=False) as address:
        proxy = address.replace("http:", "https:")
        for verify in (trusted, False):
            network = Network(verify=verify, proxy=proxy)
            assert "id_organizacao='7'" in repr(ask(base, Limits(retries=0), network=network))
        told = f"the certificate of the proxy {proxy} for {base} is not trusted"
        with pytest.raises(TransportError, match=re.escape(told)):
            ask(base, Limits(retries=0), network=Network(verify=ssl.create_default_context(), proxy=proxy))


def test_a_lost_connection_is_retried(ask: Ask) -> None:
    answers = iter([resetting, answering(PROFILE)])

    def serve(connection: socket.socket) -> None:
        next(answers)(connection)

    with serving(serve) as base:
        assert repr(ask(base, Limits())) == "Usuario(id_organizacao='7')"


def test_cancelled_calls_do_not_use_up_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are cancelled at every step, the first while it waits for an answer. The last needs their connections."""
    monkeypatch.setattr(transports, "MOST_CONNECTIONS", 2)
    answers = chain([stalling], repeat(answering(PROFILE)))

    def serve(connection: socket.socket) -> None:
        next(answers)(connection)

    async def ask(base: str) -> object:
        async with AsyncLaudo(base, "token", limits=Limits(deadline=10 * PATIENCE, retries=0)) as client:
            for steps in (1000, *list(range(20)) * 5):
                task = asyncio.create_task(client.usuario())
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
            profile = await client.usuario()
        return profile, asyncio.all_tasks() - {asyncio.current_task()}

    with serving(serve) as base:
        assert repr(awaiting.run(ask(base))) == "(Usuario(id_organizacao='7'), set())"


def test_a_call_cancelled_at_any_step_leaves_no_connection_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laudo.client.awaited._CANCEL_DELAY", 0)

    async def ask(base: str, steps: int) -> list[str]:
        client = AsyncLaudo(base, "token", limits=Limits(deadline=10 * PATIENCE, retries=0))
        task = asyncio.create_task(client.usuario())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)
        pool = client._loop_state.transport._pool  # type: ignore[attr-defined]
        in_use = [repr(each) for each in pool.connections if not (each.is_idle() or each.is_closed())]
        await client.close()
        return in_use

    with conversing() as (base, _):
        assert {steps: found for steps in range(40) if (found := awaiting.run(ask(base, steps)))} == {}


def test_close_ends_the_connections_although_the_client_is_kept() -> None:
    ended = threading.Event()

    def serve(connection: socket.socket) -> None:
        connection.sendall(PROFILE)
        if connection.recv(1) == b"":
            ended.set()

    with serving(serve) as base:
        with Laudo(base, "token", limits=ONCE) as client:
            client.usuario()
            assert not ended.is_set()
        assert ended.wait(PATIENCE)


def test_close_lets_the_requests_of_other_threads_end() -> None:
    asked, closed, ended = threading.Event(), threading.Event(), threading.Event()

    def serve(connection: socket.socket) -> None:
        asked.set()
        assert closed.wait(PATIENCE)
        connection.sendall(PROFILE)
        if connection.recv(1) == b"":
            ended.set()

    with serving(serve) as base, ThreadPoolExecutor() as pool:
        client = Laudo(base, "token", limits=ONCE)
        call = pool.submit(client.usuario)
        assert asked.wait(PATIENCE)
        client.close()
        with pytest.raises(RuntimeError, match="the client is closed"):
            client.usuario()
        assert not ended.is_set()
        closed.set()
        assert call.result(PATIENCE).id_organizacao == "7"
        assert ended.wait(PATIENCE)


class Reading(httpx.HTTPTransport):
    """Reads an answer before the client does, as a transport that records what it passes on."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        answer.read()
        return answer


def test_a_transport_may_have_read_the_answer() -> None:
    with (
        serving(answering(PROFILE)) as base,
        Laudo(base, "token", limits=HURRY, transport=Reading()) as client,
    ):
        assert client.usuario().id_organizacao == "7"


class Waiting(httpx.AsyncBaseTransport):
    """A transport that waits until it is closed, and then gives its answer or, without one, fails."""

    def __init__(self, answer: httpx.Response | None = None) -> None:
        self._answer = answer
        self.asked = asyncio.Event()
        self.times = 0
        self._closed = asyncio.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.times += 1
        self.asked.set()
        await self._closed.wait()
        if self._answer:
            return self._answer
        raise httpx.ReadError("closed", request=request)

    async def aclose(self) -> None:
        self._closed.set()


def test_a_call_waiting_for_a_connection_sends_nothing_after_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "MOST_CONNECTIONS", 1)

    async def ask() -> tuple[list[type], int]:
        transport = Waiting()
        async with AsyncLaudo("http://service.test", "token", limits=Limits(retries=0), transport=transport) as client:
            calls = [asyncio.create_task(client.usuario()) for _ in range(2)]
            await transport.asked.wait()
        return [type(each) for each in await asyncio.gather(*calls, return_exceptions=True)], transport.times

    assert awaiting.run(ask()) == ([TransportError, RuntimeError], 1)


def test_a_bad_answer_to_a_cancelled_call_is_not_kept_or_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(calls, "LARGEST", len(BODY) - 1)
    transport = Waiting(httpx.Response(200, content=BODY))

    client = AsyncLaudo("http://service.test", "token", transport=transport)

    async def ask() -> Callable[[], object]:
        call = asyncio.create_task(client.usuario())
        await transport.asked.wait()
        call.cancel()
        await asyncio.wait((call,))
        [left] = asyncio.all_tasks() - {asyncio.current_task()}
        await transport.aclose()
        await asyncio.wait((left,))
        return weakref.ref(left)

    exchange = awaiting.run(ask())
    gc.collect()
    assert exchange() is None
    assert caplog.messages == []


@contextmanager
def conversing() -> Iterator[tuple[str, list[int]]]:
    """Answer every request of every connection; gives the number of requests on each connection that has ended."""
    asked: list[int] = []

    def talk(connection: socket.socket) -> None:
        questions = 0
        with connection, suppress(OSError):
            while connection.recv(65536):
                questions += 1
                connection.sendall(PROFILE)
        asked.append(questions)

    with ExitStack() as threads:

        def serve(connection: socket.socket) -> None:
            thread = threading.Thread(target=talk, args=(connection.dup(),))
            thread.start()
            threads.callback(thread.join)

        with serving(serve, first=False) as base:
            yield base, asked


LOOPING = """
import asyncio, gc, os, sys
from laudo.client import AsyncLaudo
client = AsyncLaudo(sys.argv[1], "token")
opened = []

async def ask():
    await asyncio.gather(*(client.usuario() for _ in range(101)))
    gc.collect()
    opened.append(len(os.listdir("/dev/fd")))

async def leave():
    exchange = asyncio.create_task(client.usuario())
    await asyncio.sleep(0)
    exchange.cancel()

async def close():
    await ask()
    await client.close()

for what in (ask, leave, ask, close):
    asyncio.run(what())
assert opened[2] < opened[0] + 20, opened
"""


def test_each_event_loop_has_its_own_connections() -> None:
    """The connections of a finished loop are unusable. If there are more calls than connections, one of them waits."""
    with conversing() as (base, _):
        done = subprocess.run([sys.executable, "-c", LOOPING, base], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_event_loop_keeps_its_connections_while_another_one_asks() -> None:
    def ask(base: str) -> None:
        client = AsyncLaudo(base, "token")
        with asyncio.Runner() as one, asyncio.Runner() as other:
            for loop in (one, other, one, other):
                loop.run(client.usuario())
            for loop in (one, other):
                loop.run(client.close())

    with conversing() as (base, asked), ThreadPoolExecutor(1) as pool:
        pool.submit(ask, base).result()
    assert asked == [2, 2]


FORKING = """
import os, sys
from laudo.client import Laudo
client = Laudo(sys.argv[1], "token")
client.usuario()
child = os.fork()
client.usuario()
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
client.usuario()
"""


def test_a_forked_process_has_its_own_connections() -> None:
    """On a shared connection, one process could read the answer to the other's request."""
    with conversing() as (base, asked):
        subprocess.run([sys.executable, "-c", FORKING, base], check=True)
    assert sorted(asked) == [2, 3]
