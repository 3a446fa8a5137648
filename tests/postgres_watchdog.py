"""Waits until its input ends for any reason; then ends every process that works in a folder, and deletes the folder."""

import contextlib
import shutil
import signal
import sys
import time
from pathlib import Path

import psutil

PATIENCE = 10  # seconds for an immediate shutdown, which also frees shared memory


def processes(folder: Path) -> list[psutil.Process]:
    """Return all processes that work in or below a folder; a server's do, even if their parent is gone."""
    return [process for process in psutil.process_iter() if _works_in(process, folder)]


def send(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def wait_gone(processes: list[psutil.Process]) -> bool:
    """Wait until processes have ended, at least as zombies; returns False if some still run."""
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
