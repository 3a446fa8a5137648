"""A shell for tests: runs the command line on a store of its own, in this process or in another."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from click.testing import CliRunner, Result

from laudo import cli, demo

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
    """Runs commands in a folder of its own, where the key is, and the store unless it is another."""

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
        """Run in a process of its own, which heeds Ctrl-C even where whoever runs the tests does not.

        It begins without forking by default, as with Python 3.14.
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
    """A file of `count` reports, after `bad` lines that are none."""
    lines = b"".join(demo.ndjson_lines(islice(demo.relatorios(max(count, 5000)), count)))
    content = b'{"numero": "52998224725"}\n' * bad + lines
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder / name


def one_line(result: Result) -> str:
    """The only line on stderr of a command that failed."""
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr.strip()
