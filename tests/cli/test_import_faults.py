"""If an import or its server is killed, everything acknowledged is stored, in whole batches."""

import os
import pty
import random
import re
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import psutil
import pytest

import postgres_server
from between import Between
from laudo import demo
from laudo.core.sql import Statement
from laudo.server.database import Database
from laudo.server.ingest.batches import LEAST, MOST
from laudo.server.ingest.changes import lock_writers
from laudo.server.stores import open_store
from postgres_server import Server
from shell import Shell

Interruption = Callable[[subprocess.Popen[bytes]], object]
"""Interrupts a running import."""

SIZES: Final = {LEAST * times for times in (1, 2, 4, 8) if LEAST * times <= MOST}
"""The possible sizes of a batch."""
LINES: Final = 18 * LEAST
PATIENCE: Final = 60.0
END_ALL: Final = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'laudo'"


@pytest.fixture(scope="module")
def durable() -> Iterator[Server]:
    """A server that waits for the disk, as in production."""
    with postgres_server.start(fsync="on", full_page_writes="on") as server:
        yield server


def written(folder: Path) -> Path:
    file = folder / "relatorios.ndjson"
    file.write_bytes(b"".join(demo.ndjson_lines(demo.relatorios(LINES))))
    return file


def stored(laudo: Shell) -> int:
    with closing(open_store(laudo.store)) as database:
        return count(database)


def count(database: Database) -> int:
    return int(database.fetch(Statement("SELECT count(*) FROM relatorio"))[0][0])


def wait_for(laudo: Shell, number: int, process: subprocess.Popen[bytes]) -> None:
    """Return a random moment after an import has stored `number` reports."""
    deadline = monotonic() + PATIENCE
    with closing(open_store(laudo.store)) as database:
        while count(database) < number:
            assert process.poll() is None, "the import has ended"
            assert monotonic() < deadline
            sleep(0.01)
    sleep(random.Random(number).uniform(0, 0.1))


def interrupted_import(laudo: Shell, file: Path, *, at: int, by: Interruption) -> tuple[int, str]:
    """Import until `at` reports are stored, then call `by`; return the exit code and stderr."""
    with laudo.starts("import", str(file), "--account", "1") as process:
        wait_for(laudo, at, process)
        by(process)
        _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said.decode()


def check_that_a_rerun_completes(laudo: Shell, file: Path) -> None:
    """Check that the store is valid, that a second run completes the import, and that nothing is written twice."""
    left = stored(laudo)
    assert left % LEAST == 0
    laudo.prints("verify")
    again = laudo.prints("import", str(file), "--account", "1")
    counts = re.fullmatch(r"(\d+) inserted, 0 updated, (\d+) unchanged, 0 stale, 0 rejected", again)
    assert counts, again
    # The server still finishes the batch that it received before the import was killed.
    assert int(counts[2]) - left in {0, *SIZES}
    assert int(counts[1]) + int(counts[2]) == stored(laudo) == LINES


def kept(said: str) -> int:
    found = re.fullmatch(r"error: .*; kept: (\d+) lines \(\1 inserted, .*; hint: run it again to finish .*\n", said)
    assert found, said
    return int(found[1])


def test_a_killed_import_leaves_whole_batches_and_a_rerun_completes_it(laudo: Shell) -> None:
    file = written(laudo.folder)
    for at in (LEAST, 4 * LEAST):
        code, _ = interrupted_import(laudo, file, at=at, by=subprocess.Popen.kill)
        assert code == -signal.SIGKILL
        assert at <= stored(laudo)
    check_that_a_rerun_completes(laudo, file)


def test_a_killed_import_leaves_no_process_that_reads_stdin(laudo: Shell) -> None:
    line = next(demo.ndjson_lines(demo.relatorios(1)))
    with laudo.starts("import", "-", "--account", "1", stdin=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.write(line)
        process.stdin.flush()
        wait_for(laudo, 1, process)
        process.kill()
        process.wait()
        poll = select.poll()
        poll.register(process.stdin, 0)
        assert poll.poll(1000 * PATIENCE) == [(process.stdin.fileno(), select.POLLERR)], "the pipe still has a reader"


def test_an_import_reports_what_it_kept_if_its_reader_process_is_killed(laudo: Shell) -> None:
    file = written(laudo.folder)

    def kill_reader(process: subprocess.Popen[bytes]) -> None:
        for child in psutil.Process(process.pid).children():
            child.kill()

    code, said = interrupted_import(laudo, file, at=LEAST, by=kill_reader)
    assert code == 1
    assert said.startswith(
        "error: the process that reads the file was killed, by somebody or for lack of memory; kept: "
    )
    assert stored(laudo) == kept(said)
    check_that_a_rerun_completes(laudo, file)


@pytest.mark.parametrize("stop", [Server.kill9, Server.stop], ids=["kill9", "fast"])
def test_an_import_whose_server_stops_has_stored_what_it_acknowledged(
    durable: Server, tmp_path: Path, stop: Callable[[Server], None]
) -> None:
    laudo = migrated(durable, stop.__name__, tmp_path)
    file = written(laudo.folder)
    code, said = interrupted_import(laudo, file, at=2 * LEAST, by=lambda _: stop(durable))
    durable.start()
    assert code == 1
    # The last batch may be stored although its acknowledgement was lost.
    assert stored(laudo) - kept(said) in {0, *SIZES}
    check_that_a_rerun_completes(laudo, file)


def test_an_import_survives_terminated_sessions_or_reports_what_it_kept(durable: Server, tmp_path: Path) -> None:
    """It continues, unless a session ended during a commit: then it is unknown whether the batch is stored."""
    laudo = migrated(durable, "ended", tmp_path)
    file = written(laudo.folder)

    def end(process: subprocess.Popen[bytes]) -> None:
        """End the session once per batch, since the import gives up on a batch that fails three times."""
        seen = 0
        with closing(open_store(f"{laudo.store}?application_name=test")) as database:
            while process.poll() is None:
                if (now := count(database)) > seen:
                    seen = now
                    durable.execute(END_ALL)
                sleep(0.01)

    code, said = interrupted_import(laudo, file, at=LEAST, by=end)
    if code:
        assert "not known whether anything was stored" in said
        assert stored(laudo) - kept(said) in {0, *SIZES}
    check_that_a_rerun_completes(laudo, file)


@pytest.mark.parametrize(
    ("words", "writes"),
    [(("import", "one.ndjson", "--account", "1"), b"INTO relatorio"), (("organization", "create", "Outra"), b"INSERT")],
)
def test_a_commit_without_an_answer_is_reported_as_unknown(
    durable: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], writes: bytes
) -> None:
    laudo = migrated(durable, f"doubtful_{words[0]}", tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("one.ndjson").write_bytes(b"".join(demo.ndjson_lines(demo.relatorios(1))))
    with Between(durable.port) as between:
        far = Shell(tmp_path, laudo.store.replace(f":{durable.port}/", f":{between.port}/"))
        between.cut(at=b"COMMIT", behind=writes)
        result = far(*words)
    assert result.exit_code == 1, result.stderr
    assert re.fullmatch(r"error: .* not known whether anything was stored; .*\n", result.stderr)


@pytest.mark.engines("sqlite", reason="does not depend on the engine")
def test_the_error_names_a_file_that_cannot_be_read(laudo: Shell) -> None:
    """Reading the memory of a process from address 0 fails with the error EIO."""
    result = laudo("import", "/proc/self/mem", "--account", "1")
    assert (result.exit_code, result.stderr) == (2, "error: Input/output error: /proc/self/mem\n")


@pytest.mark.engines("sqlite", reason="does not depend on the engine")
def test_closing_the_terminal_does_not_stop_an_import(laudo: Shell) -> None:
    leader, follower = pty.openpty()
    with laudo.starts("import", "-", "--account", "1", stdin=subprocess.PIPE, stderr=follower) as process:
        os.close(follower)
        assert os.read(leader, 1)  # the progress bar
        os.close(leader)
        assert process.stdin
        process.stdin.write(b'{"numero": "1"}\n' + b"".join(demo.ndjson_lines(demo.relatorios(3))))
        process.stdin.close()
        assert process.wait(timeout=PATIENCE) == 1
        assert process.stdout
        assert process.stdout.read() == b"3 inserted, 0 updated, 0 unchanged, 0 stale, 1 rejected\n"
    assert stored(laudo) == 3


def test_an_import_that_waits_for_another_writer_can_be_interrupted(laudo: Shell) -> None:
    lines = b"".join(demo.ndjson_lines(demo.relatorios(5)))
    with closing(open_store(laudo.store, write=True)) as database, database.transaction() as connection:
        lock_writers(connection, 1)
        with laudo.starts("import", "-", "--account", "1", stdin=subprocess.PIPE) as process:
            assert process.stdin
            assert process.stderr
            process.stdin.write(lines)
            process.stdin.flush()
            assert process.stderr.readline().startswith(b"waiting for another process")
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=PATIENCE) == -signal.SIGINT
            assert process.stderr.read().endswith(b"error: interrupted; kept: nothing\n")
    assert stored(laudo) == 0


def test_an_import_waits_for_another_writer_and_reports_the_wait(laudo: Shell) -> None:
    lines = b"".join(demo.ndjson_lines(demo.relatorios(5)))
    with closing(open_store(laudo.store, write=True)) as database, ExitStack() as writing:
        lock_writers(writing.enter_context(database.transaction()), 1)
        with laudo.starts("import", "-", "--account", "1", stdin=subprocess.PIPE) as process:
            assert process.stdin
            assert process.stderr
            process.stdin.write(lines)
            process.stdin.close()
            said = process.stderr.readline()
            assert said == b"waiting for another process that is writing to the store; press Ctrl-C to stop waiting\n"
            writing.close()
            assert (process.wait(timeout=PATIENCE), process.stderr.read()) == (0, b"")
    assert stored(laudo) == 5


def migrated(server: Server, name: str, folder: Path) -> Shell:
    server.execute(f"CREATE DATABASE \"{name}\" ENCODING 'UTF8' TEMPLATE template0")
    laudo = Shell(folder, server.url(name))
    laudo.prints("migrate")
    laudo.prints("organization", "create", "Modelo")
    return laudo
