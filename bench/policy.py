"""What the scheduling policy of workers is worth: throughput, CPU and latency with SCHED_BATCH and with SCHED_OTHER.

    python bench/policy.py --reports 100000 --rounds 3

One worker on one core, asked for a first page that it does not keep. Its policy is changed from outside while it runs,
in turns. Shown are medians over the rounds: requests per second, CPU and changes between threads a request under a load
of 32 connections, and the milliseconds that one request at a time takes, alone on the core and beside programs that
burn it. Needs Linux and two cores.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from requests import LAUDO, Question, Row, Server, asked, fill, is_whole, load, more, running

POLICIES: Final = {"SCHED_BATCH": os.SCHED_BATCH, "SCHED_OTHER": os.SCHED_OTHER}
_BURNERS: Final = (0, 1, 2)
_ALONE: Final = 200
"""Requests of one round, one at a time, with this many seconds in between:"""
_APART: Final = 0.005


def main() -> None:
    arguments = _arguments()
    first, *others = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="laudo-bench-") as temporary, ExitStack() as stack:
        folder = arguments.folder or Path(temporary)
        store = f"sqlite:///{folder}/laudo.db"
        token, *_ = fill(store, folder, arguments.reports)
        os.sched_setaffinity(0, {first})  # the server and the burners inherit it
        command: list[str | Path] = [LAUDO, "serve", "--store", store, "--key-file", f"{folder}/laudo.key"]
        command += ["--workers", "1", "--cache-bytes", "0", "--no-log"]
        server = stack.enter_context(running("policy", command, folder))
        question = asked(server, Row("page 1, cold", "/relatorios"), token)
        found: dict[str, dict[str, list[float]]] = {name: {} for name in POLICIES}
        for _ in range(arguments.rounds):
            for name, policy in POLICIES.items():
                _set(server, policy)
                for title, figure in _figures(server, question, first, others):
                    found[name].setdefault(title, []).append(figure)
    for title in found["SCHED_BATCH"]:
        print(f"{title:34}", *(f"{name} {median(found[name][title]):>10,.2f}" for name in POLICIES), sep="  ")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=100_000, help="how many reports the store has")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured (default: 3)")
    parser.add_argument("--folder", type=Path, help="where to keep the store for the next time")
    return parser.parse_args()


def _set(server: Server, policy: int) -> None:
    for task in Path(f"/proc/{server.worker}/task").iterdir():
        os.sched_setscheduler(int(task.name), policy, os.sched_param(0))


def _figures(server: Server, question: Question, core: int, others: list[int]) -> Iterator[tuple[str, float]]:
    os.sched_setaffinity(0, others)
    before = _changes(server)
    sample = load(question, connections=32, seconds=1.0)
    yield "requests/s", sample.per_second
    yield "CPU µs a request", sample.cpu_us
    yield "changes of threads a request", (_changes(server) - before) / sample.per_second
    for count in _BURNERS:
        os.sched_setaffinity(0, {core})
        with _burning(count):
            os.sched_setaffinity(0, others)
            yield f"ms, one at a time, {count} burn its core", _alone(question)


def _changes(server: Server) -> int:
    """How often the worker's threads have been switched."""
    texts = [(task / "status").read_text("ascii") for task in Path(f"/proc/{server.worker}/task").iterdir()]
    lines = [line for text in texts for line in text.splitlines() if "ctxt_switches" in line]
    return sum(int(line.split()[1]) for line in lines)


@contextmanager
def _burning(count: int) -> Iterator[None]:
    """Run `count` programs that use all that they get of this core."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.2)
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def _alone(question: Question) -> float:
    """The median milliseconds of a request, one after the other."""
    samples = []
    with socket.create_connection(("127.0.0.1", question.server.port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(_ALONE):
            started, received = time.perf_counter(), b""
            client.sendall(question.request)
            while not is_whole(received, question):
                received += more(client)
            samples.append((time.perf_counter() - started) * 1000)
            time.sleep(_APART)
    return median(samples)


if __name__ == "__main__":
    main()
