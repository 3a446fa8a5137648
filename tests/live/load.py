"""An open-loop load: each request is sent on schedule, over its own connection, however long the others take.

Clients that wait for each answer before the next request hide the collapse of a server: the slower it is, the fewer
requests they send.
"""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from time import monotonic
from typing import Final

from awaiting import until
from live.server import Response, Server, request

_PATIENCE: Final = 30.0
"""Seconds to wait for an answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request, and its only right answer while the store can be reached."""

    target: str
    raw: bytes
    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of a request; `response` is None if the connection ended before the answer was complete."""

    question: Question
    sent: float
    at: float
    """When the answer was complete, by the clock of `monotonic`."""
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
    """Learn the right answer from a healthy server; sends the token unless `headers` have an Authorization."""
    given = any(header.startswith("Authorization:") for header in headers)
    all_headers = (*headers, *(() if given else (f"Authorization: {server.place.token}",)), "Connection: close")
    right = server.ask(target, *all_headers)
    return Question(target, request(target, *all_headers), right.status, right.body)


class Load:
    """The replies so far, in the order of arrival."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []

    def since(self, instant: float) -> list[Reply]:
        """Give the replies to requests that were sent after an instant."""
        return [reply for reply in self.replies if reply.sent > instant]

    def wait(self, count: int) -> None:
        """Return once there are `count` replies; the load goes on."""
        until(lambda: len(self.replies) >= count, f"there were less than {count} replies")


@contextmanager
def load(port: int, questions: Sequence[Question], *, rate: float) -> Iterator[Load]:
    """Send `rate` requests a second for the length of a block; at its end, wait for the answers that are missing."""
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
    """Parse exactly one complete answer; raises ValueError if it is anything else."""
    head, separator, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
    if not separator or int(headers["content-length"]) != len(body):
        raise ValueError
    return Response(int(first.split(" ")[1]), headers, body)
