"""An export during an import contains every unchanged report exactly once.

The environment variable EXPORTED sets the number of reports. The default is 20,000, to keep the suite fast.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path

from client.socket_service import listening, of_app
from factories import Account, Store, cpf, numero, relatorio
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.tallies import SIZES
from shell import Shell
from wsgi import NewApp

COUNT = int(os.environ.get("EXPORTED", "20000"))
FIRST = 1_700_000_000_000
MOST_MEMORY = 100
"""Megabytes that an export may use, for any number of reports."""
WEIGHED = """
import atexit
from laudo.cli import main

def weigh():
    print(*(line for line in open("/proc/self/status") if line.startswith("VmHWM")))

atexit.register(weigh)
main()
"""


class Import(threading.Thread):
    """Changes every tenth report, oldest first, and adds new ones, until it is stopped."""

    def __init__(self, store: Store, account: Account) -> None:
        super().__init__(daemon=True)
        self.batches = 0
        self._store = store
        self._account = account
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.is_set() and self.batches < 100:
            now = FIRST + 10 * COUNT + self.batches * 1000
            first = self.batches * 100
            changed = [report(10 * (first + each), now + each) for each in range(100)]
            new = [report(COUNT + first + each, now + 100 + each) for each in range(100)]
            self._store.write(self._account, changed + new, sizes=SIZES)
            self.batches += 1
            self._stopped.wait(0.02)

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def test_every_unchanged_report_is_exported_once(
    store: Store, account: Account, new_app: NewApp, tmp_path: Path
) -> None:
    for first in range(0, COUNT, 5000):
        store.write(account, [report(number, FIRST + number) for number in range(first, first + 5000)], sizes=SIZES)
    importing = Import(store, account)
    with listening(of_app(new_app())) as base:
        importing.start()
        by_cursor = exported(tmp_path / "a.csv", base, account.token, workers=1)
        by_number = exported(tmp_path / "b.csv", base, account.token, workers=3)
        importing.stop()
    assert importing.batches > 1
    untouched = {numero(number) for number in range(COUNT) if number % 10}
    for found in (by_cursor, by_number):
        assert len(found) == len(set(found))
        assert untouched <= set(found)


def report(number: int, atualizado_em: int) -> Relatorio:
    return relatorio(number, atualizado_em=atualizado_em, numero_documento=cpf(number * 7919))


def exported(file: Path, base: str, token: str, *, workers: int) -> list[str]:
    """Export in a separate process, check its peak memory, and return the numeros in the file."""
    environ = Shell(file.parent).environment | {"LAUDO_URL": base, "LAUDO_TOKEN": token}
    command = [sys.executable, "-c", WEIGHED, "export", "relatorios", "-o", str(file), "--workers", str(workers)]
    done = subprocess.run(command, check=True, env=environ, timeout=120, stdout=subprocess.PIPE, text=True)
    assert int(done.stdout.split()[-2]) / 1024 < MOST_MEMORY
    return [line.partition(",")[0] for line in file.read_text("utf-8").splitlines()[1:]]
