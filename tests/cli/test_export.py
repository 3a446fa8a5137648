import csv
import errno
import io
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from click.testing import Result

from client.service import TOKEN, Service, pessoa, refused, relatorio
from client.socket_service import listening
from laudo.cli import files, progress
from shell import HEEDING, LAUDO, Shell, one_line

Run = Callable[..., Result]
DROPPED = httpx.ReadError("dropped")


@pytest.fixture
def service() -> Service:
    return Service([relatorio(number) for number in range(2600, 0, -1)])


@pytest.fixture
def run(tmp_path: Path, service: Service) -> Iterator[Run]:
    with listening(service) as base:
        env = {"LAUDO_URL": base, "LAUDO_TOKEN": TOKEN}

        def run(*words: str, **changes: str) -> Result:
            return Shell(tmp_path)("export", *words, env=env | changes)

        yield run


def test_csv_has_every_report(run: Run, service: Service, tmp_path: Path) -> None:
    file = tmp_path / "all.csv"
    result = run("relatorios", "-o", str(file))
    assert result.stdout == f"2600 relatorios in {file}\n"
    rows = list(csv.DictReader(io.StringIO(file.read_text("utf-8"))))
    assert [row["numero"] for row in rows] == [item["numero"] for item in service.relatorios]
    assert rows[0] == {**relatorio(2600), "pendente_validacao_manual": "false"}


def test_a_single_item_is_counted_in_the_singular(run: Run, service: Service, tmp_path: Path) -> None:
    file = tmp_path / "one.csv"
    assert run("relatorios", "-o", str(file), "--numero", relatorio(1)["numero"]).stdout == f"1 relatorio in {file}\n"
    assert len(service.requests) == 1


@pytest.mark.parametrize("mensagem", ["a\rb", "a\nb", "a\r\nb", "\r", 'a "b", c', "", " a "])
def test_csv_preserves_line_breaks_quotes_and_spaces(run: Run, service: Service, tmp_path: Path, mensagem: str) -> None:
    service.relatorios = [relatorio(2, mensagem=mensagem), relatorio(1)]
    assert run("relatorios", "-o", str(tmp_path / "a.csv")).exit_code == 0
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as stream:
        assert [row["mensagem"] for row in csv.DictReader(stream)] == [mensagem, "Válido."]


def test_several_workers_export_a_filtered_list_to_ndjson(run: Run, service: Service, tmp_path: Path) -> None:
    service.pessoas = [pessoa(number, nome="Ana" if number % 2 else "Eva") for number in range(3000)]
    file = tmp_path / "people.ndjson"
    assert run("pessoas", "-o", str(file), "--nome", "Ana", "--workers", "3").exit_code == 0
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert lines == [item for item in service.pessoas if item["nome"] == "Ana"]


def test_workers_request_pages_at_a_time(run: Run, service: Service, tmp_path: Path) -> None:
    together = threading.Barrier(2, timeout=20)

    def meet(asked: int) -> None:
        if asked in {2, 3}:
            together.wait()

    service.after = meet
    assert run("relatorios", "-o", str(tmp_path / "a.csv"), "--workers", "2").exit_code == 0
    assert not together.broken


def test_parquet_has_every_report_nulls_and_utc_timestamps(run: Run, service: Service, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    service.relatorios[0] |= {"resultado": None}
    file = tmp_path / "all.parquet"
    assert run("relatorios", "-o", str(file)).exit_code == 0
    assert parquet.read_metadata(file).num_row_groups == 1
    table = parquet.read_table(file)
    assert table.column("numero").to_pylist() == [item["numero"] for item in service.relatorios]
    assert table.column("resultado").to_pylist()[:2] == [None, "VALID"]
    assert table.schema.field("atualizado_em").type.tz == "UTC"


def test_parquet_can_hold_texts_of_several_megabytes(run: Run, service: Service, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    service.relatorios = [relatorio(number, mensagem="a" * number * 1_500_000) for number in range(4)]
    file = tmp_path / "all.parquet"
    assert run("relatorios", "-o", str(file)).exit_code == 0
    lengths = [len(text) for text in parquet.read_table(file).column("mensagem").to_pylist()]
    assert lengths == [0, 1_500_000, 3_000_000, 4_500_000]


def test_an_empty_list_still_creates_a_file(run: Run, service: Service, tmp_path: Path) -> None:
    service.relatorios = []
    for name in ("a.csv", "a.ndjson", "a.parquet"):
        if name.endswith("parquet"):
            pytest.importorskip("pyarrow")
        assert run("relatorios", "-o", str(tmp_path / name)).exit_code == 0
        assert (tmp_path / name).exists()
    assert (tmp_path / "a.csv").read_text() == ",".join(relatorio(1)) + "\n"


@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet"])
def test_an_interrupted_export_resumes_and_appears_only_when_complete(
    run: Run, service: Service, tmp_path: Path, ending: str
) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    file, whole = tmp_path / f"a.{ending}", tmp_path / f"whole.{ending}"
    service.script = [None, None, refused(500)]
    result = run("relatorios", "-o", str(file))
    assert result.exit_code == 1
    assert "kept: 2000 items; hint: run the same command again to resume" in one_line(result)
    assert not file.exists()
    assert {stat.S_IMODE(kept.stat().st_mode) for kept in tmp_path.iterdir()} == {0o600}
    with (tmp_path / f"a.{ending}.part").open("ab") as stream:
        stream.write(b"half a li")
    (tmp_path / f"a.{ending}.part").chmod(0o644)
    service.relatorios.insert(0, relatorio(5000))
    asked = len(service.requests)
    assert run("relatorios", "-o", str(file)).exit_code == 0
    assert len(service.requests) - asked == 1
    del service.relatorios[0]
    assert run("relatorios", "-o", str(whole)).exit_code == 0
    assert file.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [file.name, whole.name]
    assert {stat.S_IMODE(made.stat().st_mode) for made in (file, whole)} == {0o600}


def test_a_resumed_export_says_since_when_changes_may_be_missing(run: Run, service: Service, tmp_path: Path) -> None:
    file, note = tmp_path / "a.csv", tmp_path / "a.csv.part.json"
    service.script = [None, refused(500), None, refused(500)]
    run("relatorios", "-o", str(file))
    note.write_text(json.dumps(json.loads(note.read_text()) | {"began": "2026-09-01T00:00:00Z"}))
    run("relatorios", "-o", str(file))
    begun = "begun at 2026-09-01T00:00:00Z: later changes may be missing"
    assert run("relatorios", "-o", str(file)).stdout == f"2600 relatorios in {file}, {begun}\n"


def test_the_rate_excludes_items_of_an_earlier_run(
    run: Run, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "monotonic", lambda: 10.0 * len(service.requests))
    service.script = [None, None, refused(500)]
    words = ("relatorios", "-o", str(tmp_path / "a.csv"))
    assert run(*words).stderr.startswith("relatorios: 1000 of 2600 items, 100 items/s\n")
    assert run(*words).stderr == "relatorios: 2600 of 2600 items, 60 items/s\n"


def test_plain_progress_lines_are_ten_seconds_apart(
    run: Run, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "monotonic", lambda: 5.0 * len(service.requests))
    said = run("relatorios", "-o", str(tmp_path / "a.csv")).stderr
    assert said == "relatorios: 2000 of 2600 items, 200 items/s\n"


def test_a_run_after_a_failed_rename_sends_no_requests(run: Run, service: Service, tmp_path: Path) -> None:
    file = tmp_path / "a.ndjson"
    service.after = lambda asked: file.mkdir() if asked == 3 else None
    assert "kept: 2600 items" in one_line(run("relatorios", "-o", str(file)))
    file.rmdir()
    assert run("relatorios", "-o", str(file)).exit_code == 0
    assert len(service.requests) == 3
    assert [json.loads(line) for line in file.read_text("utf-8").splitlines()] == service.relatorios


def test_parquet_is_rebuilt_without_requests_after_a_failed_rename(run: Run, service: Service, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    file = tmp_path / "a.parquet"
    service.after = lambda asked: file.mkdir() if asked == 3 else None
    assert "kept: 2600 items" in one_line(run("relatorios", "-o", str(file)))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{file.name}{end}" for end in ("", ".part", ".part.json")
    ]
    file.rmdir()
    assert run("relatorios", "-o", str(file)).exit_code == 0
    assert len(service.requests) == 3


@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet"])
def test_a_file_is_whole_on_the_disk_before_it_gets_its_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    file, on_disk = tmp_path / f"a.{ending}", set[tuple[int, int]]()

    def fsync(number: int) -> None:
        kept = os.fstat(number)
        if not file.exists():
            on_disk.add((kept.st_ino, kept.st_size))

    monkeypatch.setattr(os, "fsync", fsync)
    assert run("relatorios", "-o", str(file)).exit_code == 0
    assert (file.stat().st_ino, file.stat().st_size) in on_disk


LIMITED = """
import resource, sys
from laudo.cli import main

most = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
main()
"""


def test_a_file_that_the_disk_takes_only_in_part_is_not_complete(service: Service, run: Run, tmp_path: Path) -> None:
    whole, file = tmp_path / "whole.csv", tmp_path / "a.csv"
    assert run("relatorios", "-o", str(whole)).exit_code == 0
    with listening(service) as base:
        environ = Shell(tmp_path).environment | {"LAUDO_URL": base, "LAUDO_TOKEN": TOKEN}
        words = ["export", "relatorios", "-o", str(file)]
        limited = [sys.executable, "-c", LIMITED, str(whole.stat().st_size - 1), *words]
        done = subprocess.run(limited, env=environ, capture_output=True, text=True, check=False)
        assert (done.returncode, file.exists()) == (1, False)
        assert done.stderr.startswith(f"error: File too large: {file}.part; kept: 2000 items; hint: run the same")
        subprocess.run([LAUDO, *words], env=environ, check=True, stdout=subprocess.DEVNULL)
    assert file.read_bytes() == whole.read_bytes()


def test_a_progress_file_that_the_disk_does_not_take_is_named(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    with listening(service) as base:
        environ = Shell(tmp_path).environment | {"LAUDO_URL": base, "LAUDO_TOKEN": TOKEN}
        limited = [sys.executable, "-c", LIMITED, "100", "export", "relatorios", "-o", str(file)]
        done = subprocess.run(limited, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"error: File too large: {file}.part.json\n")
    assert list(tmp_path.iterdir()) == []


def test_items_missing_from_the_progress_file_are_not_reported_as_kept(
    run: Run, service: Service, tmp_path: Path
) -> None:
    file, note = tmp_path / "a.ndjson", tmp_path / "a.ndjson.part.json"

    def hinder(asked: int) -> None:
        if asked == 2:
            note.rename(tmp_path / "aside")
            note.mkdir()

    service.after = hinder
    assert "kept: 1000 items" in one_line(run("relatorios", "-o", str(file)))
    note.rmdir()
    (tmp_path / "aside").rename(note)
    assert run("relatorios", "-o", str(file)).exit_code == 0
    assert [json.loads(line) for line in file.read_text("utf-8").splitlines()] == service.relatorios


def test_a_truncated_part_still_leads_to_a_complete_file(run: Run, service: Service, tmp_path: Path) -> None:
    file, part = tmp_path / "a.ndjson", tmp_path / "a.ndjson.part"
    service.script = [None, refused(500)]
    run("relatorios", "-o", str(file))
    os.truncate(part, part.stat().st_size - 1)
    assert run("relatorios", "-o", str(file)).exit_code == 0
    assert [json.loads(line) for line in file.read_text("utf-8").splitlines()] == service.relatorios


@pytest.mark.parametrize("words", [("relatorios", "--status", "CONCLUIDO"), ("pessoas",)])
def test_a_part_of_another_list_or_other_filters_is_refused(
    run: Run, service: Service, tmp_path: Path, words: tuple[str, ...]
) -> None:
    service.script = [None, refused(500)]
    run("relatorios", "-o", str(tmp_path / "a.csv"))
    result = run(*words, "-o", str(tmp_path / "a.csv"))
    hint = f"remove {tmp_path / 'a.csv.part'} to start over"
    said = "belongs to an export of another list or service, in another format or order, or with other filters"
    assert f"{said}; hint: {hint}" in one_line(result)
    (tmp_path / "a.csv.part").unlink()
    assert run(*words, "-o", str(tmp_path / "a.csv")).exit_code == 0


def test_a_part_in_another_format_is_refused(run: Run, service: Service, tmp_path: Path) -> None:
    service.script = [None, refused(500)]
    run("relatorios", "-o", str(tmp_path / "a.csv"))
    for end in (".part", ".part.json"):
        (tmp_path / f"a.csv{end}").rename(tmp_path / f"a.ndjson{end}")
    result = run("relatorios", "-o", str(tmp_path / "a.ndjson"))
    assert "in another format or order, or with other filters; hint: remove " in one_line(result)
    assert not (tmp_path / "a.ndjson").exists()


@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_a_part_of_another_token_requires_the_option_token_renewed(
    run: Run, service: Service, tmp_path: Path, ending: str
) -> None:
    file, note = tmp_path / f"a.{ending}", tmp_path / f"a.{ending}.part.json"
    service.script = [None, refused(401)]
    run("relatorios", "-o", str(file))
    hint = f"give --token-renewed if it sees the same account, else remove {file}.part to start over"
    result = run("relatorios", "-o", str(file), LAUDO_TOKEN="token-of-another-account")
    assert one_line(result) == f"error: {note} is of another token; hint: {hint}"
    known = json.loads(note.read_text())
    note.write_text(json.dumps(known | {"question": known["question"] | {"token": "0" * 64}}))
    service.script = [None, refused(500)]
    assert "kept: 2000 items" in one_line(run("relatorios", "-o", str(file), "--token-renewed"))
    assert json.loads(note.read_text())["question"] == known["question"]
    assert TOKEN not in note.read_text()
    other = run("relatorios", "-o", str(file), "--token-renewed", "--status", "CONCLUIDO")
    assert "or with other filters; hint: remove " in one_line(other)
    assert run("relatorios", "-o", str(file)).exit_code == 0
    assert file.read_text("utf-8").count("\n") == len(service.relatorios) + (ending == "csv")


def test_an_invalid_progress_file_without_a_part_stays_alone(run: Run, tmp_path: Path) -> None:
    note = tmp_path / "a.csv.part.json"
    note.write_text("mine")
    assert run("relatorios", "-o", str(tmp_path / "a.csv")).exit_code == 2
    assert (list(tmp_path.iterdir()), note.read_text()) == ([note], "mine")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"bytes": "5"}', '{"\xff": 1}'])
def test_an_invalid_progress_file_is_reported_and_its_part_kept(run: Run, tmp_path: Path, text: str) -> None:
    part, note = tmp_path / "a.csv.part", tmp_path / "a.csv.part.json"
    part.write_text("kept")
    note.write_text(text, "latin-1")
    said = f"error: {note} is not a file of `laudo export`; hint: remove it, or name another file"
    assert one_line(run("relatorios", "-o", str(tmp_path / "a.csv"))) == said
    assert part.read_text() == "kept"


@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_a_part_without_a_progress_file_is_refused_unless_empty(run: Run, tmp_path: Path, ending: str) -> None:
    file, part = tmp_path / f"a.{ending}", tmp_path / f"a.{ending}.part"
    part.write_text("mine")
    part.chmod(0o644)
    said = f"error: {part} is not a file of `laudo export`; hint: remove it, or name another file"
    result = run("relatorios", "-o", str(file))
    assert (result.exit_code, one_line(result)) == (2, said)
    assert (part.read_text(), stat.S_IMODE(part.stat().st_mode), list(tmp_path.iterdir())) == ("mine", 0o644, [part])
    part.write_text("")
    assert run("relatorios", "-o", str(file)).exit_code == 0


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_symlinks_at_temporary_names_are_not_followed(run: Run, tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    (tmp_path / "mine").write_text("mine")
    file = tmp_path / f"a.{ending}"
    for name in (f"{file.name}.part.json.{os.getpid()}", f"{file.name}.part.parquet"):
        (tmp_path / name).symlink_to(tmp_path / "mine")
    assert run("relatorios", "-o", str(file)).exit_code == 0
    assert ((tmp_path / "mine").read_text(), file.is_symlink()) == ("mine", False)


def test_a_symlink_at_the_part_is_refused_and_not_followed(run: Run, tmp_path: Path) -> None:
    part = tmp_path / "relatorios.csv.part"
    part.symlink_to(tmp_path / "elsewhere")
    result = run("relatorios", "-o", str(tmp_path / "relatorios.csv"))
    assert (result.exit_code, one_line(result)) == (2, f"error: {os.strerror(errno.ELOOP)}: {part}")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("ending", ["part", "part.json"])
def test_a_named_pipe_at_the_part_or_progress_file_is_refused(run: Run, tmp_path: Path, ending: str) -> None:
    pipe = tmp_path / f"relatorios.csv.{ending}"
    os.mkfifo(pipe)
    result = run("relatorios", "-o", str(tmp_path / "relatorios.csv"))
    assert (result.exit_code, one_line(result)) == (2, f"error: {pipe} is not a file; hint: remove it")


def test_a_part_that_another_export_completes_at_that_moment_is_begun_anew(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, lock = tmp_path / "a.csv", files.lock

    def complete(stream: FileIO) -> None:
        monkeypatch.setattr(files, "lock", lock)
        (tmp_path / "a.csv.part").rename(file)
        lock(stream)

    monkeypatch.setattr(files, "lock", complete)
    assert run("relatorios", "-o", str(file)).exit_code == 0
    assert (file.read_text("utf-8").count("\n"), list(tmp_path.iterdir())) == (2601, [file])


@pytest.mark.parametrize("status", [400, 401, 500])
@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_a_refused_first_request_leaves_no_files(
    run: Run, service: Service, tmp_path: Path, status: int, ending: str
) -> None:
    file = tmp_path / f"a.{ending}"
    service.script = [refused(status)] * (4 if status == 400 else 1)
    assert run("relatorios", "-o", str(file), "--numero-documento", "52998224725").exit_code == 2
    assert list(tmp_path.iterdir()) == []
    assert run("relatorios", "-o", str(file), "--status", "CONCLUIDO").exit_code == 0


def test_a_progress_file_of_zero_items_does_not_block_other_filters(run: Run, service: Service, tmp_path: Path) -> None:
    service.script = [None, refused(500)]
    run("relatorios", "-o", str(tmp_path / "a.csv"))
    note = tmp_path / "a.csv.part.json"
    note.write_text(json.dumps(json.loads(note.read_text()) | {"items": 0, "bytes": 0, "place": None}))
    assert run("relatorios", "-o", str(tmp_path / "a.csv"), "--status", "CONCLUIDO").exit_code == 0
    assert (tmp_path / "a.csv").read_text().count("\n") == 2601


@pytest.mark.parametrize("option", ["--nome", "--sort", "--status", "--numero"])
def test_an_option_value_that_is_not_utf8_is_refused_before_writing(run: Run, tmp_path: Path, option: str) -> None:
    result = run("relatorios", "-o", str(tmp_path / "a.csv"), option, "\udcff")
    assert one_line(result).startswith(f"error: {option.removeprefix('--')} ")
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_stays_until_the_new_one_is_complete(run: Run, service: Service, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("old")
    service.script = [None, refused(500)]
    run("relatorios", "-o", str(file))
    assert file.read_text() == "old"
    run("relatorios", "-o", str(file))
    assert file.read_text().startswith("numero,")


def test_an_export_survives_temporary_failures(run: Run, service: Service, tmp_path: Path) -> None:
    service.script = [None, DROPPED, None, refused(503, Retry_After="0"), None]
    assert run("relatorios", "-o", str(tmp_path / "a.csv")).exit_code == 0


@pytest.mark.parametrize("name", ["ALL.CSV", "All.Ndjson", "all.PARQUET"])
def test_a_file_extension_may_have_any_letter_case(run: Run, tmp_path: Path, name: str) -> None:
    if name.endswith("PARQUET"):
        pytest.importorskip("pyarrow")
    assert run("relatorios", "-o", str(tmp_path / name)).exit_code == 0
    starts = {"C": b"numero,", "N": b'{"numero"', "P": b"PAR1"}
    assert (tmp_path / name).read_bytes().startswith(starts[name.partition(".")[2][0].upper()])


@pytest.mark.parametrize("ending", [".csv", ".CSV"])
def test_a_file_name_that_is_only_an_extension_is_refused(run: Run, tmp_path: Path, ending: str) -> None:
    said = f"error: {tmp_path / ending} is only an extension; hint: {tmp_path / 'relatorios'}{ending}"
    assert one_line(run("relatorios", "-o", str(tmp_path / ending))) == said


@pytest.mark.parametrize("file", ["-", "/dev/stdout"])
def test_standard_output_is_refused_with_the_command_for_it(run: Run, file: str) -> None:
    hint = "hint: `laudo pessoas --all --csv` prints the list"
    assert one_line(run("pessoas", "-o", file)) == f"error: an export needs a file, so that it can be resumed; {hint}"


def test_an_unknown_file_extension_is_refused(run: Run, tmp_path: Path) -> None:
    assert "must end in .csv, .ndjson, .parquet" in one_line(run("relatorios", "-o", str(tmp_path / "a.xlsx")))
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - names only


def test_parquet_without_its_package_prints_an_install_hint_and_sends_nothing(
    run: Run, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert "hint: pip install pyarrow" in one_line(run("relatorios", "-o", str(tmp_path / "a.parquet")))
    assert service.requests == []


class Held(NamedTuple):
    """A service that delays a response from `reached` until `go_on`, and a command that sends requests to it."""

    reached: threading.Event
    go_on: threading.Event
    command: list[str]
    environ: dict[str, str]


@contextmanager
def held(service: Service, file: Path, *, at: int) -> Iterator[Held]:
    """Delay the response to request number `at` of an export to a file."""
    reached, go_on = threading.Event(), threading.Event()

    def hold(asked: int) -> None:
        if asked == at:
            reached.set()
            go_on.wait(20)

    service.after = hold
    with listening(service) as base:
        environ = Shell(file.parent).environment | {"LAUDO_URL": base, "LAUDO_TOKEN": TOKEN}
        command = [sys.executable, "-c", HEEDING, "export", "relatorios", "-o", str(file)]
        yield Held(reached, go_on, command, environ)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_an_export_ended_by_a_signal_is_completed_by_the_next_run(
    service: Service, tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "a.csv"
    with held(service, file, at=3) as (reached, go_on, command, environ):
        with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
            assert reached.wait(20)
            process.send_signal(number)
            _, said = process.communicate(timeout=20)
        go_on.set()
        assert process.returncode == -number
        assert said.startswith("error: interrupted; kept: 2000 items") == (number is not signal.SIGKILL)
        assert not file.exists()
        subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)
    found = [line.partition(",")[0] for line in file.read_text("utf-8").splitlines()[1:]]
    assert found == [item["numero"] for item in service.relatorios]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_export_interrupted_at_its_first_request_leaves_no_files(
    service: Service, tmp_path: Path, number: signal.Signals
) -> None:
    with held(service, tmp_path / "a.csv", at=1) as (reached, go_on, command, environ):
        with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
            assert reached.wait(20)
            process.send_signal(number)
            _, said = process.communicate(timeout=20)
        go_on.set()
    assert said == "error: interrupted; kept: nothing\n"
    assert list(tmp_path.iterdir()) == []


def test_a_concurrent_second_export_to_one_file_is_refused(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    with (
        held(service, file, at=2) as (reached, go_on, command, environ),
        subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as process,
    ):
        assert reached.wait(20)
        second = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        go_on.set()
        assert process.wait(20) == 0
    said = f"error: another export is writing {file}.part; hint: wait until it ends\n"
    assert (second.returncode, second.stderr) == (2, said)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("a.")] == [file.name]
    assert file.read_text("utf-8").count("\n") == len(service.relatorios) + 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
