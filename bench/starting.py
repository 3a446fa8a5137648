"""CPU milliseconds of starts: of the command line, of the client's import, and of a demonstration on a filled store.

    python bench/starting.py --rounds 9

The interpreter alone stands beside them. The demonstration runs until its server is ready and is stopped then. Rounds
alternate; the median is shown, and the least, which other processes disturb least.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from client import LAUDO, serving

REPORTS: Final = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--port", type=int, default=8793, help="where the demonstration listens (default: 8793)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="laudo-bench-") as folder:
        demonstrate = partial(demonstration, Path(folder), arguments.port)
        demonstrate()
        starts: dict[str, Callable[[], None]] = {
            "python": partial(run, sys.executable, "-c", ""),
            "laudo --help": partial(run, str(LAUDO), "--help"),
            "import laudo.client": partial(run, sys.executable, "-c", "import laudo.client"),
            "laudo demo, second start": demonstrate,
        }
        rounds = [[cpu_ms(start) for start in starts.values()] for _ in range(arguments.rounds)]
    for name, taken in zip(starts, zip(*rounds, strict=True), strict=True):
        print(f"{name:<26}{median(taken):>6.0f} ms, at least {min(taken):.0f}")


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def demonstration(folder: Path, port: int) -> None:
    with serving(folder, REPORTS, port):
        pass


def cpu_ms(start: Callable[[], None]) -> float:
    """The CPU time, in milliseconds, of the processes that were started and waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


if __name__ == "__main__":
    main()
