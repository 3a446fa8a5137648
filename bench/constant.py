"""Granian and Falcon as `laudo serve` runs them, answering `/254` with 254 bytes: `constant.py 254 --port 8000`."""

import argparse
from collections.abc import Sequence
from functools import partial

import falcon
from granian.constants import HTTPModes, Interfaces
from granian.server import Server

from laudo.cli.worker import use_batch_scheduling


class Body:
    """A body that never changes."""

    def __init__(self, size: int) -> None:
        self._body = b"x" * size

    def on_get(self, _request: falcon.Request, answer: falcon.Response) -> None:
        answer.data = self._body
        answer.content_type = "application/json; charset=utf-8"


def application(sizes: Sequence[int]) -> "falcon.App[falcon.Request, falcon.Response]":
    use_batch_scheduling()
    app = falcon.App()
    for size in sizes:
        app.add_route(f"/{size}", Body(size))
    return app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", type=int, nargs="+")
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    server = Server(
        "constant",
        port=arguments.port,
        interface=Interfaces.WSGI,
        workers=1,
        blocking_threads=1,
        http=HTTPModes.http1,
        websockets=False,
        log_enabled=False,
    )
    server.serve(target_loader=partial(application, arguments.size), wrap_loader=False)


if __name__ == "__main__":
    main()
