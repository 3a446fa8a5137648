"""The signals that end the service: they stay blocked until a thread waits for them, and no worker loses one."""

import os
import signal


def unblock_in_workers() -> None:
    """Let workers obey the signals as soon as they are forked, which was the default before Python 3.14."""
    from multiprocessing import set_start_method

    set_start_method("fork", force=True)
    os.register_at_fork(after_in_child=_reset_in_child)


def stopping() -> set[signal.Signals]:
    """Give the signals that end the service, with SIGHUP, which a closed terminal sends, unless nohup ignores it."""
    ends_on_hangup = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return {signal.SIGINT, signal.SIGTERM} | ({signal.SIGHUP} if ends_on_hangup else set())


def block() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, stopping())


def unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping())


def _reset_in_child() -> None:
    """Reset the handlers in a new worker: until it has its own, the parent's would swallow a signal to end it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal sends it to all; the parent then ends its workers
    unblock()
