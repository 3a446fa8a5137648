"""How much one token's dear questions delay those of others, without and with `busy_limit_ms`.

    python bench/sharing.py --reports 600000 --dear 20 --limit 100

A service with one worker answers two accounts. One asks for middle pages of a name search, `--dear` times a second,
the other for first pages and documents, `--cheap` times. Requests are sent when they are due, whether or not the ones
before them were answered, and latency counts from then on. Rounds without and with the limit take turns, each of a
service started anew; shown are, over all rounds, the milliseconds within which half and 99 % of the cheap ones were
answered, how many of these failed or were refused, and what part of the dear ones was answered.
"""

import argparse
import http.client
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Final, NamedTuple
from urllib.parse import quote

from laudo.client import Laudo
from requests import LAUDO, Server, fill, running

_AT_ONCE: Final = 200
"""How many requests may be under way."""
_PATIENCE: Final = 30
_OK: Final = 200
_FAILED: Final = 0
_SEARCHED: Final = 20
"""How many names are searched for."""


class Asked(NamedTuple):
    """What came of one request: its status, and seconds since it was due."""

    status: int
    seconds: float


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="laudo-bench-") as temporary:
        folder = arguments.folder or Path(temporary)
        token, *_, others_token = fill(f"sqlite:///{folder}/laudo.db", folder, arguments.reports)
        with _serving(folder, 0) as server:
            cheap, dear = _cheap(server.port, others_token), _dear(server.port, token)
        found: dict[int, tuple[list[Asked], list[Asked]]] = {limit: ([], []) for limit in (0, arguments.limit)}
        for _ in range(arguments.rounds):
            for limit, (others, ones) in found.items():
                with _serving(folder, limit) as server, ThreadPoolExecutor(1) as both:
                    asked = partial(_asked, server.port, seconds=arguments.seconds)
                    answers = both.submit(asked, others_token, cheap, arguments.cheap)
                    ones.extend(asked(token, dear, arguments.dear))
                    others.extend(answers.result())
    for limit, (others, ones) in found.items():
        _show(limit, others, ones)


def _serving(folder: Path, limit: int) -> AbstractContextManager[Server]:
    command: list[str | Path] = [LAUDO, "serve", "--store", f"sqlite:///{folder}/laudo.db"]
    command += ["--key-file", f"{folder}/laudo.key", "--workers", "1", "--no-log", "--busy-limit-ms", str(limit)]
    return running("sharing", command, folder)


def _show(limit: int, others: list[Asked], ones: list[Asked]) -> None:
    took = [each.seconds * 1000 for each in others if each.status == _OK]
    served = sum(each.status == _OK for each in ones) / len(ones)
    print(
        f"busy_limit_ms={limit:<5} others: p50 {median(took):,.1f} ms, p99 {quantiles(took, n=100)[98]:,.1f} ms,",
        f"{len(others) - len(took)} of {len(others)} without an answer; {served:.0%} of the dear ones answered",
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=600_000, help="how many reports the store has")
    parser.add_argument("--cheap", type=int, default=100, help="cheap requests a second (default: 100)")
    parser.add_argument("--dear", type=int, default=20, help="dear requests a second (default: 20)")
    parser.add_argument("--limit", type=int, default=100, help="busy_limit_ms to compare with none (default: 100)")
    parser.add_argument("--seconds", type=int, default=6, help="how long a round takes (default: 6)")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured (default: 3)")
    parser.add_argument("--folder", type=Path, help="where to keep the store for the next time")
    return parser.parse_args()


def _cheap(port: int, token: str) -> list[str]:
    with Laudo(f"http://127.0.0.1:{port}", token) as client:
        documents = [each.numero_documento for each in client.relatorios(rows=100).itens]
    return ["/relatorios", *(f"/relatorios?numero_documento={each}" for each in documents)]


def _dear(port: int, token: str) -> list[str]:
    with Laudo(f"http://127.0.0.1:{port}", token) as client:
        names = {each.nome.split()[0] for each in client.pessoas(rows=1000).itens}
        totals = {name: client.pessoas(nome=name).total for name in names}
    common = sorted(totals, key=totals.__getitem__)[-_SEARCHED:]
    pages = [(name, page) for name in common for page in range(1 + totals[name] // 100, totals[name] // 34)]
    return [f"/pessoas?nome={quote(name)}&page={page}" for name, page in Random(1).sample(pages, k=len(pages))]


def _asked(port: int, token: str, targets: list[str], rate: int, *, seconds: int) -> list[Asked]:
    """Ask for each target when it is due."""
    begun, local = time.monotonic(), threading.local()
    waiting = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for number, target in zip(range(rate * seconds), cycle(targets), strict=False):
            due = begun + number / rate
            time.sleep(max(0, due - time.monotonic()))
            waiting.append(pool.submit(_one, local, port, token, target, due))
    return [each.result() for each in waiting]


def _one(local: threading.local, port: int, token: str, target: str, due: float) -> Asked:
    connection = getattr(local, "connection", None) or http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
    local.connection = connection
    try:
        connection.request("GET", target, headers={"Authorization": token})
        answer = connection.getresponse()
        answer.read()
    except OSError:
        connection.close()
        return Asked(_FAILED, time.monotonic() - due)
    return Asked(answer.status, time.monotonic() - due)


if __name__ == "__main__":
    main()
