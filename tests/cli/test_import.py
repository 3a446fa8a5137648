import json
import os
import pty
import re
import signal
import subprocess
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from time import sleep

import pytest

from laudo import demo
from laudo.core.sql import Statement
from laudo.server.ingest.batches import LEAST
from laudo.server.stores import open_store
from shell import LAUDO, Shell, ndjson, one_line, reports


def test_an_import_prints_counts_and_exits_with_0(laudo: Shell) -> None:
    result = laudo("import", str(ndjson(laudo.folder, 1200)), "--account", "1")
    assert result.exit_code == 0
    assert result.stdout == "1200 inserted, 0 updated, 0 unchanged, 0 stale, 0 rejected\n"
    assert result.stderr == ""


def test_the_same_import_again_changes_nothing(laudo: Shell) -> None:
    file = str(ndjson(laudo.folder, 30))
    laudo.prints("import", file, "--account", "1")
    again = laudo.prints("import", file, "--account", "1")
    assert again == "0 inserted, 0 updated, 30 unchanged, 0 stale, 0 rejected"


def test_a_changed_report_with_an_equal_instant_counts_as_conflicting(laudo: Shell) -> None:
    report = json.loads(ndjson(laudo.folder, 1).read_bytes())
    corrected = json.dumps({**report, "mensagem": "Corrigida."})
    laudo.prints("import", "-", "--account", "1", stdin=json.dumps(report))
    result = laudo("import", "-", "--account", "1", stdin=corrected)
    assert (result.exit_code, result.stdout) == (
        0,
        "0 inserted, 0 updated, 0 unchanged, 0 stale, 1 conflicting, 0 rejected\n",
    )
    reason = "the store has this report with the same atualizado_em and other content, which was kept"
    assert result.stderr == f"numero {report['numero']}: {reason}\n"
    laudo.prints("delete", "--account", "1", report["numero"])
    assert laudo.prints("import", "-", "--account", "1", stdin=corrected).startswith("1 inserted")
    assert "unchanged, 0 stale, 0 rejected" in laudo.prints("import", "-", "--account", "1", stdin=corrected)


@pytest.mark.parametrize("name", ["relatorios.ndjson.gz", "relatorios"])
def test_gzip_and_files_without_an_extension_are_recognized(laudo: Shell, name: str) -> None:
    shown = laudo.prints("import", str(ndjson(laudo.folder, 5, name=name)), "--account", "1")
    assert shown.startswith("5 inserted")


def test_a_given_format_counts_more_than_the_name_of_the_file(laudo: Shell) -> None:
    report = json.loads(ndjson(laudo.folder, 1).read_bytes())
    file = laudo.folder / "relatorios.ndjson"
    file.write_text("\n".join(",".join(map(str, row)) for row in (report, report.values())), "utf-8")
    assert laudo("import", str(file), "--account", "1").exit_code == 2
    assert laudo.prints("import", str(file), "--account", "1", "--format", "csv").startswith("1 inserted")


@pytest.mark.engines("sqlite", reason="PostgreSQL maintains its index of words by itself")
@pytest.mark.parametrize("new_document", ["52998224725", "12345678909"])
def test_an_old_name_leaves_no_bytes_after_a_rename_or_a_new_document(laudo: Shell, new_document: str) -> None:
    for document, name, instant in (
        ("52998224725", "Ana Kwyzbrrt", "2026-01-01T00:00:00.000Z"),
        (new_document, "Ana", "2026-01-02T00:00:00.000Z"),
    ):
        reports(laudo, 1, document, nome_pessoa=name, atualizado_em=instant)
        assert (b"kwyzbrrt" in Path(f"{laudo.folder}/laudo.db").read_bytes().lower()) == (name != "Ana")


def test_a_hyphen_as_file_reads_stdin(laudo: Shell) -> None:
    content = ndjson(laudo.folder, 5).read_bytes()
    assert laudo.prints("import", "-", "--account", "1", stdin=content).startswith("5 inserted")


def test_invalid_lines_are_reported_by_number_without_their_content(laudo: Shell) -> None:
    result = laudo("import", str(ndjson(laudo.folder, 5, bad=2)), "--account", "1")
    assert result.exit_code == 1
    assert result.stdout == "5 inserted, 0 updated, 0 unchanged, 0 stale, 2 rejected\n"
    assert re.fullmatch(r"line 1: .+\nline 2: .+\n", result.stderr)
    assert "52998224725" not in result.stderr


def test_rejections_go_to_the_errors_file(laudo: Shell) -> None:
    errors = laudo.folder / "errors.txt"
    result = laudo("import", str(ndjson(laudo.folder, 5, bad=2)), "--account", "1", "--errors", str(errors))
    assert (result.exit_code, result.stderr) == (1, "")
    assert [line.split(":")[0] for line in errors.read_text().splitlines()] == ["line 1", "line 2"]


def test_conflicting_reports_go_to_the_errors_file_as_often_as_it_is_run(laudo: Shell) -> None:
    reports = [json.loads(line) for line in ndjson(laudo.folder, 3).read_bytes().splitlines()]
    laudo.prints("import", str(laudo.folder / "relatorios.ndjson"), "--account", "1")
    corrected = "".join(json.dumps({**report, "mensagem": "Corrigida."}) + "\n" for report in reports[1:])
    errors = laudo.folder / "errors.txt"
    for _ in range(2):
        result = laudo("import", "-", "--account", "1", "--errors", str(errors), stdin=corrected + "{}\n")
        assert (result.exit_code, result.stderr) == (1, "")
        named = [line.split(":")[0] for line in errors.read_text().splitlines()]
        assert sorted(named) == sorted(["line 3", *(f"numero {report['numero']}" for report in reports[1:])])


def test_the_error_names_an_errors_file_that_cannot_be_written(laudo: Shell) -> None:
    result = laudo("import", str(ndjson(laudo.folder, 5, bad=2)), "--account", "1", "--errors", "/dev/full")
    assert result.exit_code == 1
    assert one_line(result).startswith("error: No space left on device: /dev/full; kept: 7 lines (5 inserted, ")


def test_conflicts_that_cannot_be_written_do_not_hide_what_was_stored(laudo: Shell) -> None:
    reports = [json.loads(line) for line in ndjson(laudo.folder, 300).read_bytes().splitlines()]
    known = "".join(json.dumps(report) + "\n" for report in reports[:200])
    laudo.prints("import", "-", "--account", "1", stdin=known)
    corrected = "".join(json.dumps({**report, "mensagem": "Corrigida."}) + "\n" for report in reports)
    result = laudo("import", "-", "--account", "1", "--errors", "/dev/full", stdin=corrected)
    assert result.exit_code == 1
    assert "/dev/full; kept: 300 lines (100 inserted, 0 updated, 0 unchanged, 0 stale, 200 conflicting" in one_line(
        result
    )


def test_the_errors_file_of_an_earlier_import_is_overwritten(laudo: Shell) -> None:
    errors = laudo.folder / "errors.txt"
    for bad in (0, 2, 1):
        laudo("import", str(ndjson(laudo.folder, 5, bad=bad)), "--account", "1", "--errors", str(errors))
        assert len(errors.read_text().splitlines()) == bad


@pytest.mark.parametrize("name", ["relatorios.ndjson", "laudo.key", "other.db"])
def test_a_file_with_other_content_is_refused_as_errors_file(laudo: Shell, name: str) -> None:
    imported, file = ndjson(laudo.folder, 5), laudo.folder / name
    laudo.prints("token", "create", "--user", "1")
    laudo.prints("migrate", "--store", f"sqlite:///{laudo.folder / 'other.db'}")
    before = file.read_bytes()
    with imported.open("rb") as stdin:
        command = [LAUDO, "import", "-", "--account", "1", "--errors", str(file)]
        done = subprocess.run(command, check=False, capture_output=True, stdin=stdin, env=laudo.environment, text=True)
    reason = f"--errors: {file} holds something other than rejections; hint: name another file"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {reason}\n")
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "other",
    ["line 2: reason\nmine", "line 2: reason\n\n", "mine\nline 2: reason\n", "line\n", "line 3: " + "x" * 70_000],
    ids=["at the end", "a blank line", "at the start", "no number", "no end"],
)
def test_other_content_anywhere_in_the_errors_file_is_refused(laudo: Shell, other: str) -> None:
    errors = laudo.folder / "errors.txt"
    errors.write_text("line 1: a reason that is longer than what was once looked at, so that more follows\n" + other)
    before = errors.read_bytes()
    result = laudo("import", str(ndjson(laudo.folder, 5, bad=2)), "--account", "1", "--errors", str(errors))
    assert (result.exit_code, "holds something other than rejections" in one_line(result)) == (2, True)
    assert errors.read_bytes() == before
    assert laudo.prints("import", str(ndjson(laudo.folder, 5)), "--account", "1").startswith("5 inserted")


@pytest.mark.parametrize(
    "cut", ["l", "line ", "line 12", "line 12:", "line 12: mens", "num", "numero ", "numero 0f8f", "numero 0f8f: the"]
)
def test_an_errors_file_with_a_truncated_last_line_is_accepted(laudo: Shell, cut: str) -> None:
    errors = laudo.folder / "errors.txt"
    errors.write_text("line 1: reason\n" + cut)
    laudo.prints("import", str(ndjson(laudo.folder, 5)), "--account", "1", "--errors", str(errors))
    assert errors.read_text() == ""


def test_a_hyphen_is_refused_as_errors_file(laudo: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(laudo.folder)
    result = laudo("import", str(ndjson(laudo.folder, 5)), "--account", "1", "--errors", "-")
    said = "error: --errors: - is not a file; hint: without --errors, rejections go to stderr"
    assert (result.exit_code, one_line(result)) == (2, said)
    assert not (laudo.folder / "-").exists()


def test_a_dry_run_writes_nothing(laudo: Shell) -> None:
    file = str(ndjson(laudo.folder, 5, bad=1))
    result = laudo("import", file, "--account", "1", "--dry-run")
    assert result.exit_code == 1
    assert result.stdout == "dry run: 5 valid, 1 rejected, nothing written\n"
    assert laudo("import", file, "--account", "1").stdout.startswith("5 inserted")


def test_check_digits_are_verified_unless_waived(laudo: Shell) -> None:
    file = laudo.folder / "wrong.ndjson"
    [line] = demo.ndjson_lines(islice(demo.relatorios(10), 1))
    item = json.loads(line)
    item |= {"tipo_pessoa": "PESSOA", "numero_documento": "12345678900"}
    file.write_text(json.dumps(item))
    assert laudo("import", str(file), "--account", "1").exit_code == 2
    shown = laudo.prints("import", str(file), "--account", "1", "--accept-invalid-documents")
    assert shown.startswith("1 inserted")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file has no lines"),
        (b"\n\r\n", "the file has no lines"),
        (b"numero,status,tipo_pessoa,nome,atualizado_em,numero_documento\n", "the file has no lines, or only a header"),
        (b"{}\n", "every line was rejected"),
        (b"\xff\xfe{\x00", "UTF-16"),
        (b"nonsense\n", "header"),
    ],
)
def test_a_file_without_reports_is_explained_and_exits_with_2(laudo: Shell, content: bytes, reason: str) -> None:
    file = laudo.folder / "relatorios"
    file.write_bytes(content)
    result = laudo("import", str(file), "--account", "1")
    assert result.exit_code == 2
    assert reason in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--account", "9"], "there is no account 9"),
        (["--account", "1", "--format", "xml"], "'--format': must be ndjson or csv"),
    ],
)
def test_an_import_that_cannot_begin_prints_one_line_and_exits_with_2(
    laudo: Shell, words: list[str], reason: str
) -> None:
    result = laudo("import", str(ndjson(laudo.folder, 5)), *words)
    assert result.exit_code == 2
    assert reason in one_line(result)


def test_a_truncated_gzip_is_reported_on_stderr_and_in_the_errors_file(laudo: Shell) -> None:
    file = ndjson(laudo.folder, 5000, name="relatorios.ndjson.gz", bad=1)
    file.write_bytes(file.read_bytes()[:-2000])
    errors = laudo.folder / "errors.txt"
    result = laudo("import", str(file), "--account", "1", "--errors", str(errors))
    assert result.exit_code == 1
    assert re.fullmatch(r"line \d+: truncated gzip.+\n", result.stderr)
    assert errors.read_text().startswith("line 1: ")
    assert errors.read_text().endswith(result.stderr)


def test_piped_lines_are_stored_or_rejected_before_the_pipe_closes(laudo: Shell) -> None:
    lines = ndjson(laudo.folder, 5).read_bytes().splitlines(keepends=True)
    errors = laudo.folder / "rejected.txt"
    with (
        laudo.starts("import", "-", "--account", "1", "--errors", str(errors), stdin=subprocess.PIPE) as process,
        closing(open_store(laudo.store)) as database,
    ):
        assert process.stdin
        assert process.stdout
        for sent, rejected in ((2, 1), (5, 4)):
            process.stdin.writelines([b"{}\n", *lines[:sent]])
            process.stdin.flush()
            while database.fetch(Statement("SELECT count(*) FROM relatorio")) != [(sent,)]:
                assert process.poll() is None
                sleep(0.01)
            while f"line {rejected}: " not in errors.read_text():
                assert process.poll() is None
                sleep(0.01)
        process.stdin.close()
        assert process.wait(20) == 1
        assert process.stdout.read() == b"5 inserted, 0 updated, 2 unchanged, 0 stale, 2 rejected\n"


def test_an_errors_file_that_another_import_is_writing_is_refused(laudo: Shell) -> None:
    errors = laudo.folder / "rejected.txt"
    command = ("import", "-", "--account", "1", "--errors", str(errors))
    with laudo.starts(*command, stdin=subprocess.PIPE) as process:
        assert process.stdin
        for rejected in ("line 1: ", "line 2: "):
            process.stdin.write(b"{}\n")
            process.stdin.flush()
            while not errors.exists() or rejected not in errors.read_text():
                assert process.poll() is None
                sleep(0.01)
            result = laudo(*command, stdin="{}\n")
            reason = f"--errors: another import is writing {errors}; hint: name another file"
            assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"error: {reason}\n")
        process.stdin.close()
        process.wait(20)
    assert [line.split(":")[0] for line in errors.read_text().splitlines()] == ["line 1", "line 2"]
    assert laudo(*command, stdin="{}\n").stdout.endswith("1 rejected\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_import_reports_what_it_kept_and_a_rerun_completes_it(laudo: Shell, number: int) -> None:
    """The last line is invalid. Once it is reported, all batches are written and the import waits for more input."""
    lines = ndjson(laudo.folder, 4 * LEAST).read_bytes().splitlines(keepends=True)
    with laudo.starts("import", "-", "--account", "1", stdin=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stderr
        process.stdin.writelines([*lines[: 2 * LEAST - 1], b"{}\n"])
        process.stdin.flush()
        assert process.stderr.readline().startswith(b"line %d: " % (2 * LEAST))
        assert _interrupted(process, number) == -number
        said = process.stderr.read().decode()
    kept = re.fullmatch(r"error: interrupted; kept: (\d+) lines \((\d+) inserted, .*\); hint: run it again.*\n", said)
    assert kept, said
    assert (int(kept[1]), int(kept[2])) == (2 * LEAST, 2 * LEAST - 1)
    again = laudo.prints("import", "-", "--account", "1", stdin=b"".join(lines))
    assert again == f"{2 * LEAST + 1} inserted, 0 updated, {2 * LEAST - 1} unchanged, 0 stale, 0 rejected"


def test_a_progress_bar_on_a_terminal_shows_the_rate(laudo: Shell) -> None:
    ours, theirs = pty.openpty()
    file = str(ndjson(laudo.folder, 1200, bad=1))
    with laudo.starts("import", file, "--account", "1", stderr=theirs) as process:
        os.close(theirs)
        shown = _read_all(ours)
        assert process.wait(timeout=20) == 1
        assert process.stdout
        assert process.stdout.read() == b"1200 inserted, 0 updated, 0 unchanged, 0 stale, 1 rejected\n"
    assert "1201 lines" in shown
    assert re.search(r"[0-9]+ lines/s", shown)
    assert "line 1: " in shown
    assert "\x1b[?25l" not in shown, "a hidden cursor would stay hidden if the process were stopped or killed"


def _interrupted(process: subprocess.Popen[bytes], number: int) -> int:
    """Send a signal until the process ends: Python may miss a signal that arrives right before it waits for input."""
    for _ in range(4):
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=5)
    return process.wait(timeout=0)


def _read_all(terminal: int) -> str:
    """Read until the other end is closed, which Linux reports as an error."""
    parts = []
    with suppress(OSError):
        while part := os.read(terminal, 65_536):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()
