"""The console and the reference below a path that a proxy strips, beside another service on the same host."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from playwright.sync_api import Browser

from console.conftest import opened
from console.driver import LOOKS, Console
from console.test_copy_export import copied
from laudo.client import Laudo
from live.server import Server

PREFIXES = ("/dados/laudo", "/outro")
AS_THEY_ARE = ("Authorization", "If-None-Match")


@pytest.fixture(scope="module")
def proxy(server: Server) -> Iterator[str]:
    """Run a proxy that serves the service below two paths, and nothing else; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            with suppress(ConnectionError):  # a browser drops connections that it no longer needs
                super().handle()

        def do_GET(self) -> None:
            prefix = next((each for each in PREFIXES if self.path.startswith(f"{each}/")), None)
            if prefix is None:
                self.send_error(404)
                return
            headers = {name: self.headers[name] for name in AS_THEY_ARE if name in self.headers}
            answer = asked.get(f"{server.url}{self.path.removeprefix(prefix)}", headers=headers)
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with httpx.Client() as asked, ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture
def below(browser: Browser, server: Server, proxy: str) -> Iterator[Console]:
    """A tab for the first of the two paths. Requests outside both are 404, which fails the test."""
    for console in opened(browser, server, LOOKS[0]):
        console.base = f"{proxy}{PREFIXES[0]}"
        yield console


def test_the_console_works_below_a_path(below: Console) -> None:
    below.page.goto(f"{below.base}/")
    below.page.get_by_label("Token").fill(below.token)
    below.page.get_by_role("button", name="Entrar").click()
    below.settle()
    below.page.get_by_role("link", name="Próxima página").click()
    below.settle()
    assert below.page.url == f"{below.base}/#/relatorios?page=2"
    below.page.get_by_role("button", name="Copiar como…").click()
    assert f"LAUDO_URL={below.base} laudo relatorios" in copied(below, "CLI")
    below.page.keyboard.press("Escape")
    below.page.get_by_role("button", name="Exportar").click()
    with below.page.expect_download() as download:
        below.page.get_by_role("dialog").get_by_role("button", name="Exportar").click()
    assert len(download.value.path().read_text("utf-8").splitlines()) == 1 + below.total


def test_the_api_reference_works_below_a_path(below: Console) -> None:
    below.enter()
    below.page.get_by_role("link", name="API").click()
    section = below.page.locator("section[data-path='/usuario']")
    section.locator("summary", has_text="Experimentar").click()
    section.get_by_role("button", name="Enviar").click()
    section.get_by_text("200 ·").wait_for()
    for name in ("OpenAPI", "Markdown"):
        address = below.page.locator(".formats").get_by_role("link", name=name).evaluate("link => link.href")
        assert httpx.get(address).status_code == 200
    below.page.get_by_role("link", name="Console").click()
    below.settle()
    assert below.rows.count() == 25


def test_a_token_is_not_sent_to_another_service_on_the_same_host(below: Console, proxy: str) -> None:
    below.enter()
    below.base = f"{proxy}{PREFIXES[1]}"
    below.page.goto(f"{below.base}/")
    below.page.get_by_label("Token").wait_for()
    elsewhere = [request for request in below.requests if request.url.startswith(below.base)]
    assert elsewhere
    assert not [request for request in elsewhere if "authorization" in request.headers]


def test_the_openapi_server_url_resolves_to_the_proxy_path(proxy: str) -> None:
    document = httpx.get(f"{proxy}{PREFIXES[0]}/openapi.json")
    [server] = document.json()["servers"]
    assert str(document.url.join(server["url"])) == f"{proxy}{PREFIXES[0]}/"


def test_pagination_links_work_below_a_path(proxy: str, server: Server) -> None:
    headers = {"Authorization": server.place.token}
    first = httpx.get(f"{proxy}{PREFIXES[0]}/relatorios", headers=headers)
    second = httpx.get(first.url.join(first.links["next"]["url"]), headers=headers)
    assert second.json()["result"]["paginacao"]["atual"] == 2
    last = httpx.get(second.url.join(second.links["last"]["url"]), headers=headers)
    assert "next" not in last.links
    with Laudo(f"{proxy}{PREFIXES[0]}", server.place.token) as client:
        walked = [relatorio.numero for relatorio in client.relatorios(rows=1000)]
    assert len(walked) == len(set(walked)) == last.json()["result"]["paginacao"]["total"]
