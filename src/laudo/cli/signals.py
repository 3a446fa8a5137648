"""The signals that end the service: they wait until a thread asks for them, and no worker loses one."""

import os
import signal


def heed_from_birth() -> None:
    """From now on a signal waits until a thread asks for it, and no worker loses one, however early it comes.

    Workers are forked, as by default before Python 3.14.
    """
    from multiprocessing import set_start_method

    set_start_method("fork", force=True)
    hold()
    os.register_at_fork(after_in_child=_heed)


def stopping() -> set[signal.Signals]:
    """Give what ends the service: SIGHUP, which comes when its terminal is closed, unless nohup has it ignored."""
    is_heeded = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return {signal.SIGINT, signal.SIGTERM} | ({signal.SIGHUP} if is_heeded else set())


def hold() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, stopping())


def let() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping())


def _heed() -> None:
    """Until a new worker has its own handlers, the parent's would swallow the signal that should end it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal sends it to all; the parent then ends its workers
    let()
