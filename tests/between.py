"""A proxy in front of a PostgreSQL server: counts round trips, delays answers, and cuts connections on demand."""

import socket
import threading
from contextlib import closing, suppress
from typing import Self

_CHUNK = 65_536


class Between:
    """Forwards bytes between clients and a server on 127.0.0.1; leaving its `with` block ends it."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.turns = 0
        """How often a client has sent something after the server had."""
        self._cut_at: bytes | None = None
        self._behind = b""
        self.most_answered: int | None = None
        """How many bytes from the server pass before a connection is cut."""
        self._flowing = threading.Event()
        self._flowing.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, *, at: bytes | None, behind: bytes = b"") -> None:
        """Cut the connection of a client that sends `at`, without forwarding it, once it has sent `behind`."""
        self._cut_at, self._behind = at, behind

    def hold(self) -> None:
        """Hold answers back until `let`."""
        self._flowing.clear()

    def let(self) -> None:
        self._flowing.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.let()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with (
            closing(client),
            suppress(ConnectionRefusedError),
            socket.create_connection(("127.0.0.1", self._server_port)) as server,
        ):
            answered = [True]
            back = threading.Thread(target=self._answer, args=(server, client, answered), daemon=True)
            back.start()
            is_behind = False
            with suppress(OSError):
                while said := client.recv(_CHUNK):
                    is_behind = is_behind or self._behind in said
                    if is_behind and self._cut_at is not None and self._cut_at in said:
                        break
                    self.turns += answered[0]
                    answered[0] = False
                    server.sendall(said)
            _end(server, client)
            back.join()

    def _answer(self, server: socket.socket, client: socket.socket, answered: list[bool]) -> None:
        with suppress(OSError):
            total = 0
            while said := server.recv(_CHUNK):
                self._flowing.wait()
                most = self.most_answered
                if most is not None:
                    said = said[: max(0, most - total)]
                    total += len(said)
                answered[0] = True
                client.sendall(said)
                if most is not None and total >= most:
                    break
        _end(server, client)


def _end(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
