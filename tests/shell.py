"""A shell for tests, which runs the command line on a store of its own, in this process or another one."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from laudo import cli, demo
from laudo.core.sql import Owner
from laudo.server.database import Connection, Row, StoreError
from laudo.server.ingest import removal
from laudo.server.ingest.removal import Removal

LAUDO = str(Path(sys.executable).parent / "laudo")
HEEDING = """
import multiprocessing, signal
from laudo.cli import main

multiprocessing.set_start_method("spawn")
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs commands with a folder of its own for the key, and for the store unless `other_store` names another."""

    folder: Path
    other_store: str = field(default="", repr=False)

    def __call__(self, *words: str, stdin: str | bytes = "", env: dict[str, str] | None = None) -> Result:
        given = {"LAUDO_STORE": self.store, "LAUDO_KEY_FILE": str(self.key_file)} | (env or {})
        return CliRunner(env=given).invoke(cli.main, words, input=stdin)

    def prints(self, *words: str, stdin: str | bytes = "") -> str:
        result = self(*words, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    def lists(self, *words: str) -> list[dict[str, object]]:
        items: list[dict[str, object]] = json.loads(self.prints(*words, "--json"))
        return items

    @contextmanager
    def starts(
        self, *words: str, stdin: int | None = None, stderr: int = subprocess.PIPE
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run in a process of its own that obeys Ctrl-C, even if the process that runs the tests ignores it.

        Its multiprocessing does not fork by default, as with Python 3.14.
        """
        command = [sys.executable, "-c", HEEDING, *words]
        with subprocess.Popen(
            command,
            env=self.environment,
            cwd=self.folder,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as process:
            yield process

    @property
    def store(self) -> str:
        return self.other_store or f"sqlite:///{self.folder}/laudo.db"

    @property
    def key_file(self) -> Path:
        return self.folder / "laudo.key"

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("LAUDO_")}
        return kept | {"LAUDO_STORE": self.store, "LAUDO_KEY_FILE": str(self.key_file), "NO_COLOR": "1"}


def ndjson(folder: Path, count: int, *, name: str = "relatorios.ndjson", bad: int = 0) -> Path:
    """Write a file with `bad` invalid lines and then `count` reports."""
    lines = b"".join(demo.ndjson_lines(islice(demo.relatorios(max(count, 5000)), count)))
    content = b'{"numero": "52998224725"}\n' * bad + lines
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder / name


def reports(laudo: Shell, account: int, *documents: str, first: int = 0, **others: object) -> None:
    """Import a report for each document into an account; their numeros are numbered from `first` on."""
    lines = [
        {
            **json.loads(next(demo.ndjson_lines(demo.relatorios(1)))),
            "numero": f"{account:08x}-0000-4000-8000-{number:012x}",
            "nome_pessoa": f"Hermenegilda {account}",
            "tipo_pessoa": "PESSOA" if len(document) == 11 else "EMPRESA",
            "numero_documento": document,
            **others,
        }
        for number, document in enumerate(documents, start=first)
    ]
    laudo.prints("import", "-", "--account", str(account), stdin="\n".join(map(json.dumps, lines)))


def one_line(result: Result) -> str:
    """Return the only line that a failed command has printed on stderr."""
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr.strip()


def break_second_removal(monkeypatch: pytest.MonkeyPatch, *, most: int) -> None:
    """Limit a removal to `most` reports in a transaction, and make each transaction after the first one fail."""
    monkeypatch.setattr(removal, "MOST", most)
    delete, earlier = Removal._delete, count()

    def breaking(self: Removal, connection: Connection, went: dict[Owner, list[Row]]) -> None:
        if next(earlier):
            raise StoreError("the store is broken")
        delete(self, connection, went)

    monkeypatch.setattr(Removal, "_delete", breaking)
