"""Lets an iterator run in a process of its own, ahead of whoever takes what it gives."""

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
    """The process that runs ahead has ended before its work; the text says so."""


@contextmanager
def run(items: Iterable[T]) -> Iterator[Iterator[T]]:
    """Give what an iterator gives, which from now on runs in a child of this process; what it raises is raised here.

    The child is one item ahead, and waits until that is taken. It is a copy of this process as it is now, so that there
    had better be neither an open store nor a second thread. It leaves signals to this process, and ends with the block,
    or with this process, whatever ends that.
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
            raise EndedError("the process that reads was ended, by somebody or for want of memory") from None
        if isinstance(error, StopIteration):
            return
        if error:
            raise error
        yield item
        del item  # else it would be held until the next one is whole


def _forked(items: Iterable[T], ours: socket.socket, theirs: socket.socket) -> int:
    """Fork, with signals held back, for good in the child; gives its id, and never returns there."""
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
    """End at once, also in the midst of a wait for input, when nobody is left to take anything."""
    with suppress(ConnectionResetError):  # Something was sent that nobody took.
        theirs.recv(1)
    os._exit(0)


def _send(items: Iterable[T], theirs: socket.socket) -> None:
    """Send each item, and last the error that ended them, which is StopIteration after all of them."""
    last: Exception = StopIteration()
    try:
        for item in items:
            pickled = pickle.dumps((item, None), pickle.HIGHEST_PROTOCOL)
            del item  # else both it and its bytes would wait until somebody takes them
            theirs.sendall(pickled)
            del pickled
    except Exception as error:  # noqa: BLE001 - it is raised where somebody can see it
        last, frame = _portable(error), traceback.extract_tb(error.__traceback__)[-1]
        # What went wrong, and where: a traceback stays behind.
        last.add_note(f"{type(error).__name__} at {frame.filename}:{frame.lineno}")
    theirs.sendall(pickle.dumps((None, last)))


def _portable(error: Exception) -> Exception:
    """Give an error, or one in its place if it cannot be sent as it is."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - we have written it
    except Exception:  # noqa: BLE001 - whatever an error's class does
        return RuntimeError()
    return error


_BUFFER: Final = 1 << 18
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
