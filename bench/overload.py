"""What a service still answers when it is asked for more than it carries, alone and behind a proxy.

    python bench/overload.py --reports 600000 --times 2

First it is measured how many questions a second a service carries that keeps no answers: of ten, one asks for a dear
page, the others for cheap ones. Then so many times as many are asked for, as they are due, by clients that give up
after two seconds: of a service alone, and of one behind nginx (where that is installed) with `max_conns=32` for each
worker, as docs/operating.md has it. Shown are what was answered, and refused, for every five seconds; the milliseconds
within which half of the answers came; and how long after the load's end somebody who asks ten times a second has an
answer again.
"""

import argparse
import asyncio
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Final

import openloop
from openloop import FAILED, OK, Asked, Asker
from requests import LAUDO, fill, running

_CHEAP: Final = 9
"""How many cheap questions there are for each expensive one."""
_PATIENCE: Final = 2
_BUSY: Final = 8
"""How many requests under way keep each worker busy all the time."""
_UNDER_WAY: Final = 32
"""How many requests the proxy allows under way for each worker."""
_SPAN: Final = 5
_TRIES_A_SECOND: Final = 10
_UNTIL: Final = 60
"""How many seconds to wait for the service to answer again."""
_LISTENING: Final = 0.01

_NGINX: Final = """
daemon off;
pid nginx.pid;
error_log nginx.log crit;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    upstream laudo {{
        zone laudo 256k;
        server 127.0.0.1:{service} max_fails=0 max_conns={most};
        keepalive 32;
    }}
    server {{
        listen 127.0.0.1:{port};
        proxy_buffers 8 32k;
        location / {{
            proxy_pass http://laudo;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
        }}
    }}
}}
"""


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="laudo-bench-") as temporary:
        folder = arguments.folder or Path(temporary)
        store = arguments.store or f"sqlite:///{folder}/laudo.db"
        token, *_ = fill(store, folder, arguments.reports)
        command = [LAUDO, "serve", "--store", store, "--key-file", f"{folder}/laudo.key"]
        command += ["--workers", str(arguments.workers), "--cache-bytes", "0", "--no-log"]
        with running("carrying", command, folder) as server:
            targets = _mixed(openloop.cheap(server.port, token), openloop.dear(server.port, token))
            carried = len(asyncio.run(_closed(server.port, token, targets, arguments))) / arguments.seconds
        print(f"carries {carried:,.0f} a second")
        with running("alone", command, folder) as server:
            _show("alone", asyncio.run(_open(server.port, token, targets, carried * arguments.times, arguments)))
        if shutil.which("nginx"):
            with running("behind", command, folder) as server, _proxy(folder, server.port, arguments.workers) as port:
                _show("behind nginx", asyncio.run(_open(port, token, targets, carried * arguments.times, arguments)))


def _mixed(cheap: list[str], dear: list[str]) -> list[str]:
    others = cycle(cheap)
    return [target for one in dear for target in (one, *islice(others, _CHEAP))]


async def _closed(port: int, token: str, targets: list[str], arguments: argparse.Namespace) -> list[Asked]:
    return await Asker(port, token).at_once(targets, _BUSY * arguments.workers, arguments.seconds)


async def _open(
    port: int, token: str, targets: list[str], rate: float, arguments: argparse.Namespace
) -> tuple[list[list[Asked]], float | None]:
    """Ask more than the service carries; gives the outcomes by span, and the seconds until it answered again."""
    asker = Asker(port, token, _PATIENCE)
    asking = asyncio.create_task(asker.steadily(targets, rate, arguments.seconds))
    await asyncio.sleep(arguments.seconds)
    again = await _again(asker)
    came, a_span = await asking, round(rate * _SPAN)
    return [came[span * a_span : (span + 1) * a_span] for span in range(arguments.seconds // _SPAN)], again


async def _again(asker: Asker) -> float | None:
    """Tell after how many seconds a request is answered; None if none is."""
    begun = time.monotonic()
    while (tried := time.monotonic()) < begun + _UNTIL:
        if (await asker.one("/relatorios", tried)).status == OK:
            return time.monotonic() - begun
        await asyncio.sleep(max(0, tried + 1 / _TRIES_A_SECOND - time.monotonic()))
    return None


def _show(name: str, found: tuple[list[list[Asked]], float | None]) -> None:
    spans, again = found
    for number, came in enumerate(spans):
        took = [each.seconds * 1000 for each in came if each.status == OK]
        refused = sum(each.status not in {OK, FAILED} for each in came)
        half = f"half of them within {median(took):,.0f} ms" if took else "nobody in time"
        print(
            f"{name:<13} {number * _SPAN:>3} to {(number + 1) * _SPAN} s: asked {len(came) / _SPAN:,.0f} a second,",
            f"answered {len(took) / _SPAN:,.0f} ({half}), refused {refused / _SPAN:,.0f}",
        )
    print(f"{name:<13} answers again {'not at all' if again is None else f'{again:.1f} s after the load has ended'}")


@contextmanager
def _proxy(folder: Path, service: int, workers: int) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    own = folder / "nginx"
    own.mkdir(exist_ok=True)
    settings = own / "nginx.conf"
    settings.write_text(_NGINX.format(service=service, port=port, most=_UNDER_WAY * workers), encoding="ascii")
    process = subprocess.Popen(["nginx", "-p", own, "-e", "nginx.log", "-c", settings])
    try:
        while not _listens(port):
            if process.poll() is not None:
                raise SystemExit("nginx has ended before it served")
            time.sleep(_LISTENING)
        yield port
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=600_000, help="how many reports the store has")
    parser.add_argument("--times", type=float, default=2, help="how many times what is carried is asked (default: 2)")
    parser.add_argument("--seconds", type=int, default=15, help="how long each load takes (default: 15)")
    parser.add_argument("--workers", type=int, default=2, help="how many workers answer (default: 2)")
    parser.add_argument("--folder", type=Path, help="where to keep the store for the next time")
    parser.add_argument("--store", help="another store than one on SQLite")
    return parser.parse_args()


if __name__ == "__main__":
    main()
