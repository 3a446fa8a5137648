"""Serves a handler of requests on a local socket, so that other processes and commands can send requests to it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urljoin
from wsgiref.types import WSGIApplication

import httpx

from wsgi import Client

Handler = Callable[[httpx.Request], httpx.Response]


@contextmanager
def listening(handler: Handler) -> Iterator[str]:
    """Serve until the block ends; gives the base address. A handler that raises drops the connection."""

    class OnSocket(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True  # otherwise the body waits 40 ms until the head is acknowledged
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urljoin("http://service.test", self.path)  # A request to a proxy has the whole URL.
            try:
                answer = handler(httpx.Request("GET", url, headers=list(self.headers.items())))
            except Exception:  # noqa: BLE001 - a scripted failure: the connection ends
                self.close_connection = True
                return
            self.send_response(answer.status_code)
            for name, text in answer.headers.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), OnSocket) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def of_app(app: WSGIApplication) -> Handler:
    """Make a handler that passes requests to the service itself."""

    def handle(request: httpx.Request) -> httpx.Response:
        answer = Client(app, None).ask("GET", request.url.raw_path.decode(), headers=dict(request.headers))
        return httpx.Response(answer.status, headers=answer.headers, content=answer.body)

    return handle
