"""Runs an iterator in a separate process, ahead of whoever consumes its items."""

import os
import pickle
import signal
import socket
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Final, NoReturn, TypeVar, cast

T = TypeVar("T")


class EndedError(Exception):
    """The process that runs ahead ended before its work was done; the text says so."""


@contextmanager
def run(items: Iterable[T]) -> Iterator[Iterator[T]]:
    """Run an iterator in a child process from now on; its items are given here, and what it raises is raised here.

    The child is one item ahead, and waits until that is taken. It is a fork of this process, which should have neither
    an open store nor a second thread. The child leaves signals to this process, and ends with the block, or with this
    process, whatever ends that.
    """
    ours, theirs = socket.socketpair()
    with ours:
        child = _forked(items, ours, theirs)
        theirs.close()
        try:
            with cast("BinaryIO", ours.makefile("rb", _BUFFER)) as given:
                yield _received(given)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _received(given: BinaryIO) -> Iterator[Any]:
    while True:
        try:
            item, error = pickle.load(given)  # noqa: S301 - our own child has written it
        except (EOFError, pickle.UnpicklingError):
            raise EndedError("the process that reads the file was killed, by somebody or for lack of memory") from None
        if isinstance(error, StopIteration):
            return
        if error:
            raise error
        yield item
        del item  # else it would stay in memory until the next one is read


def _forked(items: Iterable[T], ours: socket.socket, theirs: socket.socket) -> int:
    """Fork with signals blocked, in the child for good; gives the child's id, and never returns in the child."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        child = os.fork()
        if not child:
            _work(items, ours, theirs)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
    return child


def _work(items: Iterable[T], ours: socket.socket, theirs: socket.socket) -> NoReturn:
    try:
        ours.close()
        threading.Thread(target=_end_with_parent, args=(theirs,), daemon=True).start()
        _send(items, theirs)
    finally:
        os._exit(0)


def _end_with_parent(theirs: socket.socket) -> NoReturn:
    """End at once, even while waiting for input, when the parent is gone."""
    with suppress(ConnectionResetError):  # Something was sent that nobody took.
        theirs.recv(1)
    os._exit(0)


def _send(items: Iterable[T], theirs: socket.socket) -> None:
    """Send each item, and last the error that ended the iterator: StopIteration if it is exhausted."""
    last: Exception = StopIteration()
    try:
        for item in items:
            pickled = pickle.dumps((item, None), pickle.HIGHEST_PROTOCOL)
            del item  # else both it and its bytes would wait until somebody takes them
            theirs.sendall(pickled)
            del pickled
    except Exception as error:  # noqa: BLE001 - it is raised where somebody can see it
        last, frame = _portable(error), traceback.extract_tb(error.__traceback__)[-1]
        # The note says what went wrong, and where: a traceback cannot be sent.
        last.add_note(f"{type(error).__name__} at {frame.filename}:{frame.lineno}")
    theirs.sendall(pickle.dumps((None, last)))


def _portable(error: Exception) -> Exception:
    """Give an error, or another one in its place if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - we have written it
    except Exception:  # noqa: BLE001 - whatever an error's class does
        return RuntimeError()
    return error


_BUFFER: Final = 1 << 18
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
