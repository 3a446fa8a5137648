"""How much one token's dear questions delay those of others, without and with `busy_limit_ms`.

    python bench/sharing.py --reports 600000 --dear 20 --limit 100

A service with one worker answers two accounts. One asks for middle pages of a name search, `--dear` times a second,
the other for first pages and documents, `--cheap` times. Requests are sent when they are due, whether or not the ones
before them were answered, and latency counts from then on. Rounds without and with the limit take turns, each of a
service started anew; shown are, over all rounds, the milliseconds within which half and 99 % of the cheap ones were
answered, how many of these failed or were refused, and what part of the dear ones was answered.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median, quantiles

import openloop
from openloop import OK, Asked, Asker
from requests import LAUDO, Server, fill, running


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="laudo-bench-") as temporary:
        folder = arguments.folder or Path(temporary)
        store = arguments.store or f"sqlite:///{folder}/laudo.db"
        token, *_, others_token = fill(store, folder, arguments.reports)
        with _serving(store, folder, 0) as server:
            cheap, dear = openloop.cheap(server.port, others_token), openloop.dear(server.port, token)
        found: dict[int, tuple[list[Asked], list[Asked]]] = {limit: ([], []) for limit in (0, arguments.limit)}
        for _ in range(arguments.rounds):
            for limit, (others, ones) in found.items():
                with _serving(store, folder, limit) as server:
                    answers = asyncio.run(_beside(server.port, (others_token, cheap), (token, dear), arguments))
                others.extend(answers[0])
                ones.extend(answers[1])
    for limit, (others, ones) in found.items():
        _show(limit, others, ones)


def _serving(store: str, folder: Path, limit: int) -> AbstractContextManager[Server]:
    command: list[str | Path] = [LAUDO, "serve", "--store", store]
    command += ["--key-file", f"{folder}/laudo.key", "--workers", "1", "--no-log", "--busy-limit-ms", str(limit)]
    return running("sharing", command, folder)


async def _beside(
    port: int, others: tuple[str, list[str]], one: tuple[str, list[str]], arguments: argparse.Namespace
) -> Sequence[list[Asked]]:
    asking = (
        Asker(port, token).steadily(targets, rate, arguments.seconds)
        for (token, targets), rate in ((others, arguments.cheap), (one, arguments.dear))
    )
    return await asyncio.gather(*asking)


def _show(limit: int, others: list[Asked], ones: list[Asked]) -> None:
    took = [each.seconds * 1000 for each in others if each.status == OK]
    served = sum(each.status == OK for each in ones) / len(ones)
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
    parser.add_argument("--store", help="another store than one on SQLite")
    return parser.parse_args()


if __name__ == "__main__":
    main()
