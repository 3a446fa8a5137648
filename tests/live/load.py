"""Clients in an open loop: each request is sent at its time, over a connection of its own, however long others take.

Clients that wait for an answer before they ask again hide that a server collapses: the slower it is, the less they ask.
"""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from time import monotonic, sleep
from typing import Final

from live.server import Response, Server, request

_PATIENCE: Final = 30.0
"""Seconds after which an answer that has not come never will."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the one right answer to it, as long as it can be answered."""

    target: str
    raw: bytes
    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back; no response where the connection ended before it was whole."""

    question: Question
    sent: float
    at: float
    """When it was whole, by the clock of `monotonic`."""
    response: Response | None

    @property
    def seconds(self) -> float:
        return self.at - self.sent

    @property
    def is_right(self) -> bool:
        response = self.response
        return response is not None and (response.status, response.body) == (self.question.status, self.question.body)

    def __str__(self) -> str:
        answered = f"{self.response.status} {self.response.body[:200]!r}" if self.response else "nothing"
        return f"{self.question.target}: {answered} after {self.seconds:.3f} s"


def question(server: Server, target: str, *headers: str) -> Question:
    """Ask a server that is well, which tells the right answer; with the token unless an Authorization is given."""
    given = any(header.startswith("Authorization:") for header in headers)
    all_headers = (*headers, *(() if given else (f"Authorization: {server.place.token}",)), "Connection: close")
    right = server.ask(target, *all_headers)
    return Question(target, request(target, *all_headers), right.status, right.body)


class Load:
    """The replies so far, in the order in which they came."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []

    def since(self, instant: float) -> list[Reply]:
        """Give the replies to what was sent after an instant."""
        return [reply for reply in self.replies if reply.sent > instant]

    def wait(self, count: int) -> None:
        """Return once there are so many replies; they go on coming."""
        deadline = monotonic() + _PATIENCE
        while len(self.replies) < count:
            assert monotonic() < deadline, f"{len(self.replies)} replies in {_PATIENCE} s"
            sleep(0.01)


@contextmanager
def load(port: int, questions: Sequence[Question], *, rate: float) -> Iterator[Load]:
    """Ask so many questions a second for the length of a block; what is still unanswered at its end is waited for."""
    made = Load()
    ended = threading.Event()
    asking = threading.Thread(target=asyncio.run, args=(_ask_on(port, questions, 1 / rate, made, ended),))
    asking.start()
    try:
        yield made
    finally:
        ended.set()
        asking.join()


async def _ask_on(
    port: int, questions: Sequence[Question], interval: float, made: Load, ended: threading.Event
) -> None:
    due = monotonic()
    async with asyncio.TaskGroup() as tasks:
        for each in cycle(questions):
            if ended.is_set():
                break
            tasks.create_task(_ask(port, each, made))
            due += interval
            await asyncio.sleep(due - monotonic())


async def _ask(port: int, asked: Question, made: Load) -> None:
    sent = monotonic()
    response = None
    with suppress(OSError, EOFError, TimeoutError, ValueError):
        async with asyncio.timeout(_PATIENCE):
            response = _parsed(await _exchanged(port, asked.raw))
    made.replies.append(Reply(asked, sent, monotonic(), response))


async def _exchanged(port: int, raw: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(raw)
        return await reader.read()
    finally:
        writer.close()


def _parsed(answer: bytes) -> Response:
    """Read one whole answer; raises ValueError when it is not whole, or more than one."""
    head, separator, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
    if not separator or int(headers["content-length"]) != len(body):
        raise ValueError
    return Response(int(first.split(" ")[1]), headers, body)
