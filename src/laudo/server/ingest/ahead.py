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
    process, however that ends.
    """
    parent_end, child_end = socket.socketpair()
    with parent_end:
        child = _fork(items, parent_end, child_end)
        child_end.close()
        try:
            with cast("BinaryIO", parent_end.makefile("rb", _BUFFER)) as stream:
                yield _received(stream)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _received(stream: BinaryIO) -> Iterator[Any]:
    while True:
        try:
            item, error = pickle.load(stream)  # noqa: S301 - our own child has written it
        except (EOFError, pickle.UnpicklingError):
            raise EndedError("the process that reads the file was killed, by somebody or for lack of memory") from None
        if isinstance(error, StopIteration):
            return
        if error:
            raise error
        yield item
        del item  # else it would stay in memory until the next one is read


def _fork(items: Iterable[T], parent_end: socket.socket, child_end: socket.socket) -> int:
    """Fork, and give the child's id; never returns in the child, where signals stay blocked."""
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        child = os.fork()
        if not child:
            _run_child(items, parent_end, child_end)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
    return child


def _run_child(items: Iterable[T], parent_end: socket.socket, child_end: socket.socket) -> NoReturn:
    try:
        parent_end.close()
        threading.Thread(target=_end_with_parent, args=(child_end,), daemon=True).start()
        _send(items, child_end)
    finally:
        os._exit(0)


def _end_with_parent(child_end: socket.socket) -> NoReturn:
    """End at once, even while waiting for input, when the parent is gone."""
    with suppress(ConnectionResetError):  # Something was sent that nobody took.
        child_end.recv(1)
    os._exit(0)


def _send(items: Iterable[T], child_end: socket.socket) -> None:
    """Send each item, and last the error that ended the iterator: StopIteration if it is exhausted."""
    last: Exception = StopIteration()
    try:
        for item in items:
            pickled = pickle.dumps((item, None), pickle.HIGHEST_PROTOCOL)
            del item  # else both it and its bytes would wait until somebody takes them
            child_end.sendall(pickled)
            del pickled
    except Exception as error:  # noqa: BLE001 - it is raised where somebody can see it
        last, frame = _picklable(error), traceback.extract_tb(error.__traceback__)[-1]
        # The note says what went wrong, and where: a traceback cannot be sent.
        last.add_note(f"{type(error).__name__} at {frame.filename}:{frame.lineno}")
    child_end.sendall(pickle.dumps((None, last)))


def _picklable(error: Exception) -> Exception:
    """Give an error, or another one in its place if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - we have written it
    except Exception:  # noqa: BLE001 - whatever an error's class does
        return RuntimeError()
    return error


_BUFFER: Final = 1 << 18
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
