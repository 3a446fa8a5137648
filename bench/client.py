"""Reports walked per second by the client, beside a bare httpx loop that only parses the JSON.

    python bench/client.py --reports 100000 --rounds 3

Both walk one server over the same store by pages of 1,000: the client with `for report in client.relatorios(…)`,
which gives checked values, the loop with `httpx.Client.get` and `json.loads`, following the same cursors. Rounds
alternate; medians are shown by wall clock and by CPU of the walking process, and the target: 0.8 of the loop.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final
from urllib.parse import urljoin

import httpx

from laudo.client import Laudo

LAUDO: Final = Path(sys.executable).with_name("laudo")
NEXT: Final = re.compile(r'<([^>]*)>; rel="next"').search
ROWS: Final = 1000
TARGET: Final = 0.8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=100_000, help="how many reports there are (default: 100,000)")
    parser.add_argument("--rounds", type=int, default=3, help="how often both walk (default: 3)")
    parser.add_argument("--port", type=int, default=8799, help="port of the server (default: 8799)")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="laudo-bench-") as folder,
        serving(Path(folder), arguments.reports, arguments.port) as (base, token),
    ):
        seen = alternating(
            {"bare httpx": lambda: bare(base, token), "laudo.client": lambda: client(base, token)}, arguments.rounds
        )
    show(seen)


def alternating(walks: dict[str, Callable[[], int]], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Measure each walk in turn; the first round, which opens connections and fills caches, does not count."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in walks}
    for _ in range(rounds + 1):
        for name, walk in walks.items():
            found[name].append(measure(walk))
    return {name: samples[1:] for name, samples in found.items()}


def bare(base: str, token: str) -> int:
    count = 0
    with httpx.Client(headers={"Authorization": token}, timeout=30) as session:
        url: str | None = f"{base}/relatorios?rows={ROWS}"
        while url:
            answer = session.get(url)
            count += len(json.loads(answer.content)["result"]["itens"])
            found = NEXT(answer.headers.get("link", ""))
            url = urljoin(base, found[1]) if found else None
    return count


def client(base: str, token: str) -> int:
    with Laudo(base, token) as laudo:
        return sum(1 for _ in laudo.relatorios(rows=ROWS))


def measure(walk: Callable[[], int]) -> tuple[float, float]:
    """Reports per second of wall time, and of CPU time."""
    wall, cpu = time.perf_counter(), time.process_time()
    count = walk()
    return count / (time.perf_counter() - wall), count / (time.process_time() - cpu)


def show(seen: dict[str, list[tuple[float, float]]]) -> None:
    middle = {name: [median(column) for column in zip(*samples, strict=True)] for name, samples in seen.items()}
    for name, (wall, cpu) in middle.items():
        print(f"{name:<14}{wall:>12,.0f} reports/s{cpu:>12,.0f} reports/s of CPU")
    ratios = [ours / theirs for ours, theirs in zip(middle["laudo.client"], middle["bare httpx"], strict=True)]
    verdict = "reached" if ratios[0] >= TARGET else "MISSED"
    print(f"{'ratio':<14}{ratios[0]:>12.2f}{ratios[1]:>22.2f}   target {TARGET}: {verdict}")


@contextmanager
def serving(folder: Path, reports: int, port: int) -> Iterator[tuple[str, str]]:
    """Fill a store and serve it; gives the base address and a token."""
    command = [str(LAUDO), "demo", "--count", str(reports), "--port", str(port), "--workers", "1"]
    command += ["--store", f"sqlite:///{folder}/laudo.db", "--key-file", f"{folder}/laudo.key"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ, cwd=folder) as process:
        try:
            assert process.stdout  # noqa: S101 - a pipe was asked for
            token = next(line.split()[1] for line in process.stdout if line.startswith("token"))
            with httpx.Client(transport=httpx.HTTPTransport(retries=7)) as waiting:
                waiting.get(f"http://127.0.0.1:{port}/ready").raise_for_status()
            yield f"http://127.0.0.1:{port}", token
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
