"""Ends every process of a folder and deletes it, once whoever holds the other end of its input is gone, however."""

import contextlib
import shutil
import signal
import sys
import time
from pathlib import Path

import psutil

PATIENCE = 10  # seconds for an immediate shutdown, which also gives shared memory back


def processes(folder: Path) -> list[psutil.Process]:
    """All that work in a folder or below: each process of a server does, also one whose parent is gone."""
    return [process for process in psutil.process_iter() if _works_in(process, folder)]


def send(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def wait_gone(processes: list[psutil.Process]) -> bool:
    """Wait for the end of processes, whether or not somebody takes note of it; False if some go on."""
    deadline = time.monotonic() + PATIENCE
    while any(map(_lives, processes)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _works_in(process: psutil.Process, folder: Path) -> bool:
    with contextlib.suppress(psutil.Error, OSError):
        return Path(process.cwd()).is_relative_to(folder)
    return False


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def _main(folder: Path) -> None:
    sys.stdin.read()
    found = processes(folder)
    send(found, signal.SIGCONT)
    send(found, signal.SIGQUIT)
    if not wait_gone(found):
        send(processes(folder), signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
