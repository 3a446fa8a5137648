"""Refuses some requests, delays them, or cuts answers off, on purpose, so that clients can rehearse that."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from threading import Lock
from typing import Final, NoReturn
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from laudo.core import errors
from laudo.core.errors import ApiError

Outcome = Callable[[WSGIEnvironment], float]
"""What becomes of an admitted request: may raise ApiError; gives the seconds of its delay."""

_CUT: Final = "laudo.cut"
"""Key of a request's `environ`: its answer is to be cut off."""
_SENT_WITHIN: Final = 0.05
"""Seconds in which the first half is surely on its way: what is not yet sent when the connection closes is lost."""
_HUNDRED: Final = 100
_SEED: Final = 0
"""The order is the same in every worker, after every start: with one worker, a test gets the same each time."""


class Rehearsal:
    """Gives each request an outcome: exactly the planned shares of each hundred requests, in a random order."""

    def __init__(self, planned: Sequence[str]) -> None:
        """`planned` is as in the settings: `503=10`, `5s=2`, `cut=1`, shares of a hundred requests; may be empty."""
        troubles = [outcome for share, outcome in map(_parse, planned) for _ in range(share)]
        self._outcomes = [*troubles, *[_let_pass] * (_HUNDRED - len(troubles))] if troubles else []
        self._remaining: list[Outcome] = []
        self._lock = Lock()
        self._rng = random.Random(_SEED)  # noqa: S311 - chance, not secrets

    def befall(self, environ: WSGIEnvironment) -> float:
        """Refuse an admitted request (raises ApiError), delay it, or have it cut; gives the seconds of the delay."""
        return self._next_outcome()(environ) if self._outcomes else 0.0

    def _next_outcome(self) -> Outcome:
        with self._lock:
            if not self._remaining:
                self._remaining = self._rng.sample(self._outcomes, _HUNDRED)
            return self._remaining.pop()


def cutting(app: WSGIApplication) -> WSGIApplication:
    """Wrap `app`: of a body that is to be cut, the whole length is announced, but only the first half is sent."""

    def served(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        chunks = app(environ, start)
        return _halved(chunks) if _CUT in environ else chunks

    return served


def _halved(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Give half of each chunk: after a generator, Granian does not wait for the rest, but closes the connection."""
    for chunk in chunks:
        yield chunk[: len(chunk) // 2]
        time.sleep(_SENT_WITHIN)


def _parse(text: str) -> tuple[int, Outcome]:
    what, _, share = text.partition("=")
    if what == "cut":
        return int(share), _have_cut
    if what.endswith("s"):
        return int(share), partial(_delay, float(what.removesuffix("s")))
    return int(share), partial(_refuse, int(what))


def _refuse(status: int, _environ: WSGIEnvironment) -> NoReturn:
    raise ApiError(next(kind for kind in errors.TABLE if kind.status == status))


def _delay(seconds: float, _environ: WSGIEnvironment) -> float:
    time.sleep(seconds)
    return seconds


def _have_cut(environ: WSGIEnvironment) -> float:
    environ[_CUT] = True
    return 0.0


def _let_pass(_environ: WSGIEnvironment) -> float:
    return 0.0
