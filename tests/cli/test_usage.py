import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import click
import pytest

from laudo import cli
from laudo.cli import output
from laudo.cli.ranges import Real, Whole, Word
from laudo.cli.stdin import File
from laudo.server.config import SETTINGS
from laudo.server.database import Doubtful, StoreError, Unavailable
from laudo.server.stores import open_store
from shell import LAUDO, Shell, ndjson, one_line


def test_help_loads_no_engine_and_no_library_but_click() -> None:
    script = """
import sys
before = {*sys.modules}
from laudo.cli import main
try:
    main(["--help"])
finally:
    print(*{*sys.modules} - before)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    libraries = {each.partition(".")[0] for each in loaded} - sys.stdlib_module_names
    assert libraries == {"laudo", "click"}
    outside = {each for each in loaded if each.startswith(("laudo.server.", "laudo.client"))}
    settings = {"laudo.server.config", "laudo.server.config.kinds", "laudo.server.config.processors"}
    assert outside == settings


def test_python_m_laudo_equals_laudo_and_is_silent_on_an_early_ctrl_c() -> None:
    script = """
import runpy, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == "click":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
runpy.run_module("laudo", run_name="__main__")
"""
    shown = [
        subprocess.run(command, check=False, capture_output=True, text=True)
        for command in ([LAUDO, "--help"], [sys.executable, "-m", "laudo", "--help"], [sys.executable, "-c", script])
    ]
    assert shown[0].stdout == shown[1].stdout != ""
    assert (shown[2].returncode, shown[2].stdout, shown[2].stderr) == (-signal.SIGINT, "", "")


def test_help_lists_every_command_and_the_exit_codes(empty: Shell) -> None:
    shown = empty.prints("--help")
    for command in cli.COMMANDS:
        assert re.search(rf"^  {command} +[A-Z].*\.$", shown, re.MULTILINE), command
    for code in ("0    done", "1    done in part", "2    nothing done", "130  interrupted"):
        assert code in shown


def test_help_of_a_command_lists_all_exit_codes_or_none(empty: Shell) -> None:
    told = {name: re.findall(r"^    (\d+) +[a-z]", empty.prints(name, "--help"), re.MULTILINE) for name in cli.COMMANDS}
    assert {name for name, codes in told.items() if codes} >= {"serve", "import", "delete", "find", "erase", "prune"}
    assert all(codes in ([], ["0", "1", "2", "130"]) for codes in told.values()), told


def test_help_fits_a_terminal_of_80_columns_and_cuts_no_sentence(empty: Shell) -> None:
    groups = ("citus", "organization", "account", "user", "token", "export")
    inner = [
        [group, found]
        for group in groups
        for found in re.findall(r"^  ([a-z]+)  ", empty.prints(group, "--help"), re.MULTILINE)
    ]
    for command in [[], *([name] for name in cli.COMMANDS), *inner]:
        for line in empty.prints(*command, "--help").splitlines():
            assert len(line) <= 80, (command, line)
            assert line.startswith("Usage: ") or not line.endswith("..."), (command, line)


def test_serve_has_a_flag_for_every_setting(empty: Shell) -> None:
    shown = empty.prints("serve", "--help")
    for setting in SETTINGS:
        assert re.search(rf"^  {setting.flag}\b", shown, re.MULTILINE), setting.name


def commands() -> Iterator[tuple[list[str], click.Command]]:
    context = click.Context(cli.main)
    for name in cli.COMMANDS:
        found = cli.main.get_command(context, name)
        if isinstance(found, click.Group):
            yield from (([name, inner], command) for inner, command in found.commands.items())
        elif found:
            yield [name], found


def test_a_repeated_option_is_refused_unless_it_is_a_setting(empty: Shell) -> None:
    settings = {*(each.name for each in SETTINGS), "config_file"}
    for words, command in commands():
        for option in (each for each in command.params if isinstance(each, click.Option) and not each.is_flag):
            if option.name not in settings:
                result = empty(*words, *[option.opts[0], "1"] * 2)
                assert result.exit_code == 2
                assert "': given more than once, but takes one value; hint: " in one_line(result)


def test_the_last_value_of_a_repeated_setting_wins(empty: Shell) -> None:
    shown = {each["setting"]: each["value"] for each in empty.lists("config", "--port", "1", "--port", "2")}
    assert shown["port"] == "2"


def test_help_quotes_values_with_spaces(empty: Shell) -> None:
    assert '--nome "maria silva" ' in empty.prints("pessoas", "--help")
    assert '|"EM ANALISE"|' in empty.prints("relatorios", "--help")


def test_help_shows_an_example_of_rehearse(empty: Shell) -> None:
    for command in ("serve", "demo"):
        shown = " ".join(empty.prints(command, "--help").split())
        assert re.search(r"--rehearse TEXT [^[]* 503=10,5s=2,cut=1 ", shown), command


def test_help_of_demo_shows_its_own_defaults(empty: Shell) -> None:
    shown = " ".join(empty.prints("demo", "--help").split())
    assert re.findall(r"--(?:store|log) .*?\[default: (.*?)\]", shown)[-2:] == ["sqlite:///demo.db", "false"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["sreve"], "error: No such command 'sreve'; hint: did you mean serve?"),
        (["relatorio"], "error: No such command 'relatorio'; hint: did you mean relatorios?"),
        (["quite-another"], "error: there is no such command; hint: laudo --help"),
        (["export", "pessoa"], "error: No such command 'pessoa'; hint: did you mean pessoas?"),
        (["serve", "--prot", "1"], "error: No such option '--prot'; hint: did you mean --port"),
        (["relatorios", "--quite-another"], "error: there is no such option; hint: laudo relatorios --help"),
        (["pessoas", "--nome=ana", "--nomemaria"], "error: there is no such option; hint: did you mean --nome?"),
        (["login", "x"], "error: unexpected argument; hint: the token is read from standard input, never given as "),
        (["login", "--with-token", "x"], "error: unexpected argument; hint: the token is read from standard input"),
        (["login", "--with-token"], "error: --with-token needs --url; hint: laudo login --help"),
        (["relatorios", "x", "y"], "error: unexpected argument; hint: filters are options, such as --numero-documen"),
        (["export", "pessoas", "-o", "x.csv", "x"], "error: unexpected argument; hint: filters are options, such as "),
        (
            ["pessoas", "--nome", "maria", "silva"],
            "error: unexpected argument; hint: filters are options, such as --cpf; a value with spaces needs quotes",
        ),
        (["user", "list", "x"], "error: unexpected argument; hint: laudo user list --help"),
        (["import"], "error: Missing argument 'FILE'; hint: laudo import --help"),
        (
            ["user", "disable", "x"],
            "error: Invalid value for 'ID': must be a number that `laudo user list` shows; hint",
        ),
        (["token", "revoke", "0"], "error: Invalid value for 'ID': must be a number that `laudo token list` shows"),
        (
            ["import", "-", "--account", "x"],
            "error: Invalid value for '--account': must be a number that `laudo acc",
        ),
        (["import", "-", "--format", "x"], "error: Invalid value for '--format': must be ndjson or csv; hint: laudo "),
        (["pessoas", "--page", "x"], "error: Invalid value for '--page': must be a whole number of at least 1; hint: "),
        (
            ["pessoas", "--page", "1_0"],
            "error: Invalid value for '--page': must be a whole number of at least 1; hint: ",
        ),
        (["pessoas", "--page", "\uff11"], "error: Invalid value for '--page': must be a whole number "),
        (["pessoas", "--rows", "30"], "error: Invalid value for '--rows': must be a multiple of 25; hint: laudo pess"),
        (["pessoas", "--rows", "0"], "error: Invalid value for '--rows': must be a multiple of 25; hint: laudo pesso"),
        (["pessoas", "--every", "x"], "error: Invalid value for '--every': must be a number from 0.1 to 86400; hint"),
        (["serve", "--port", "0"], "error: port (from --port) is not a number from 1 to 65535"),
        (["config", "--config", "none.toml"], "error: cannot read the settings file none.toml"),
    ],
)
def test_wrong_usage_prints_one_line_and_exits_with_2(empty: Shell, words: list[str], line: str) -> None:
    result = empty(*words)
    assert result.exit_code == 2
    assert one_line(result).startswith(line)


def leaves(command: click.Command, *words: str) -> Iterator[tuple[list[str], click.Command]]:
    """Every command without subcommands, with the words that call it."""
    if not isinstance(command, click.Group):
        yield [*words], command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below
        yield from leaves(below, *words, name)


def needed(command: click.Command, *, but: click.Parameter | None = None) -> list[str]:
    """The required arguments and options of a command, with valid values."""
    return [
        word
        for each in command.params
        if each.required and each is not but
        for word in (*each.opts[:1] * isinstance(each, click.Option), "-" if isinstance(each.type, File) else "1")
    ]


def misplaced(value: str) -> Iterator[list[str]]:
    """Every command line with this value in a place that accepts no value, or no such value."""
    yield from ([value], [f"--{value}"])
    for words, command in leaves(cli.main):
        yield from ([*words[:-1], value], [*words, f"--{value}"], [*words, f"-{value}"])
        if not any(each.nargs < 0 for each in command.params):
            yield [*words, *needed(command), value]
        for each in command.params:
            given = [*words, *needed(command, but=each)]
            if isinstance(each, click.Argument):
                yield from [[*given, value]] * isinstance(each.type, Whole)
            elif isinstance(each, click.Option) and each.is_flag:
                yield [*given, f"{each.opts[-1]}={value}"]
            elif isinstance(each.type, Whole | Real | Word):
                yield [*given, each.opts[0], value]
            else:
                yield [*given, f"{each.opts[-1]}{value}"]


@pytest.mark.parametrize("value", ["laudo_0123456789abcdefghijk", "52998224725", "529.982.247-25", "Maria da Silva"])
def test_a_misplaced_value_is_not_repeated_in_the_error(empty: Shell, value: str) -> None:
    lines = [*misplaced(value)]
    assert len(lines) > 300
    for words in lines:
        result = empty(*words)
        assert result.exit_code == 2, words
        assert value not in one_line(result), words


def test_an_unknown_variable_prints_one_line_and_exits_with_2(empty: Shell) -> None:
    result = empty("migrate", env={"LAUDO_STROE": "x"})
    assert result.exit_code == 2
    assert one_line(result) == "error: unknown environment variable 'LAUDO_STROE'; hint: did you mean LAUDO_STORE?"


@pytest.mark.parametrize(
    "words", [["user", "list"], ["token", "create", "--user", "1"], ["serve"], ["import", "-", "--account", "1"]]
)
def test_a_missing_store_is_reported_and_not_created(empty: Shell, words: list[str]) -> None:
    result = empty(*words)
    assert result.exit_code == 2
    assert "run `laudo migrate`" in one_line(result)
    assert list(empty.folder.iterdir()) == []


@pytest.mark.parametrize("words", [["serve"], ["organization", "create", "Modelo"]])
def test_a_store_without_schema_gets_a_hint_to_migrate(fresh: Shell, words: list[str]) -> None:
    with closing(open_store(fresh.store, write=True)) as database, database.transaction() as connection:
        connection.run_script("CREATE TABLE another (number INTEGER)")
    result = fresh(*words)
    assert result.exit_code == 2
    assert "run `laudo migrate`" in one_line(result)


def test_a_store_path_that_is_not_utf8_is_refused(empty: Shell) -> None:
    folder = empty.folder / os.fsdecode(b"\xe9tudes")
    folder.mkdir()
    result = empty("migrate", "--store", f"sqlite:///{folder}/laudo.db")
    assert result.exit_code == 2
    assert one_line(result).startswith("error: the path of the store is not UTF-8, ")
    assert [*folder.iterdir()] == []


def test_a_store_path_too_long_for_sqlite_is_reported(empty: Shell) -> None:
    folder = empty.folder / ("d" * 250) / ("d" * 250)
    folder.mkdir(parents=True)
    result = empty("migrate", env={"LAUDO_STORE": f"sqlite:///{folder}/laudo.db"})
    assert result.exit_code == 2
    assert one_line(result).endswith(" cannot be opened: its path is longer than SQLite's limit of 504 bytes")


def test_a_non_ascii_folder_can_hold_a_store_in_the_c_locale(empty: Shell) -> None:
    folder = empty.folder / os.fsdecode("produção".encode())
    folder.mkdir()
    environ = empty.environment | {"LC_ALL": "C", "PYTHONUTF8": "0", "LAUDO_STORE": "sqlite:///laudo.db"}
    for words in (["migrate"], ["organization", "create", "Modelo"], ["verify"]):
        subprocess.run([LAUDO, *words], cwd=folder, env=environ, check=True, capture_output=True)
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.glob("laudo.db*")} == {0o600}


def test_a_file_that_is_not_a_store_is_reported(empty: Shell) -> None:
    (empty.folder / "laudo.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    result = empty("user", "list")
    assert result.exit_code == 2
    assert one_line(result) == (
        f"error: {empty.folder}/laudo.db is not a store of laudo, or it is damaged; "
        "restore it from a backup, unless `laudo verify --repair` can repair it"
    )


def test_a_sqlite_version_that_can_corrupt_a_store_is_refused(empty: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apsw.SQLITE_VERSION_NUMBER", 3_051_002)
    result = empty("migrate")
    assert result.exit_code == 2
    assert one_line(result).endswith(" can corrupt this store; install apsw with SQLite ≥ 3.51.3")
    assert list(empty.folder.iterdir()) == []


def test_the_error_names_a_store_that_cannot_be_created(empty: Shell) -> None:
    result = empty("migrate", env={"LAUDO_STORE": f"sqlite:///{empty.folder}"})
    assert result.exit_code == 2
    said = one_line(result)
    assert said.startswith(f"error: the store {empty.folder} cannot be read or written (")
    assert said.endswith("check its path, rights and disk, and those of its folder, -wal and -shm")


def test_the_error_names_the_missing_folder_of_a_store(empty: Shell) -> None:
    folder = empty.folder / "away"
    result = empty("migrate", env={"LAUDO_STORE": f"sqlite:///{folder}/laudo.db"})
    assert result.exit_code == 2
    assert one_line(result) == f"error: the store {folder}/laudo.db cannot be opened: there is no folder {folder}"


def test_a_full_disk_is_reported(empty: Shell) -> None:
    said = f"^no space is left on the disk of the store {empty.folder}/laudo.db, or of temporary files$"
    with closing(open_store(empty.store, write=True)) as database, database.transaction() as connection:
        connection.run_script("PRAGMA max_page_count = 8; CREATE TABLE another (text)")
        with pytest.raises(Unavailable, match=said):
            connection.run_script("INSERT INTO another VALUES (zeroblob(100000))")


@pytest.mark.parametrize("url", ["sqlite:///", "sqlite:////"])
def test_a_sqlite_url_without_a_file_is_refused(empty: Shell, url: str) -> None:
    result = empty("migrate", "--store", url)
    assert result.exit_code == 2
    assert one_line(result).startswith("error: the store")


def test_a_sqlite_url_of_memory_means_a_file_of_that_name(empty: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(empty.folder)
    words = ["organization", "create", "Modelo", "--store", "sqlite:///:memory:"]
    assert f"no store at {empty.folder}/:memory:;" in one_line(empty(*words))
    empty.prints("migrate", "--store", "sqlite:///:memory:")
    assert empty.prints(*words) == "organization 1, with account 1 (principal)"


# Output that cannot be written.

REFUSED = {"closed": "Bad file descriptor", "full": "No space left on device", "unread": "Broken pipe"}


def run_with_broken_stdout(laudo: Shell, how: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose standard output is closed, full, or read by nobody."""
    reader, writer = os.pipe()
    os.close(reader)
    script = {"closed": '"$@" >&-', "full": '"$@" >/dev/full', "unread": '"$@"'}[how]
    command = ["sh", "-c", script, "sh", LAUDO, *words]
    done = subprocess.run(command, check=False, stdout=writer, stderr=subprocess.PIPE, env=laudo.environment, text=True)
    os.close(writer)
    assert done.stderr.count("\n") <= 1, done.stderr
    return done


@pytest.mark.parametrize("how", REFUSED)
@pytest.mark.parametrize("words", [["--help"], ["token", "list", "--json"], ["config"]])
def test_unwritable_output_exits_with_2_and_is_silent_on_a_broken_pipe(
    empty: Shell, how: str, words: list[str]
) -> None:
    empty.prints("migrate")
    done = run_with_broken_stdout(empty, how, *words)
    assert (done.returncode, done.stderr) == (2, "" if how == "unread" else f"error: {REFUSED[how]}\n")


@pytest.mark.parametrize("how", REFUSED)
def test_verify_exits_with_2_if_its_output_cannot_be_written(laudo: Shell, how: str) -> None:
    assert run_with_broken_stdout(laudo, how, "verify", "--json").returncode == 2


@pytest.mark.parametrize("how", REFUSED)
def test_a_completed_command_exits_with_0_even_if_its_output_is_lost(laudo: Shell, how: str) -> None:
    done = run_with_broken_stdout(laudo, how, "import", str(ndjson(laudo.folder, 3)), "--account", "1")
    counts = "3 inserted, 0 updated, 0 unchanged, 0 stale, 0 rejected"
    said = f"error: {counts}: done, but this could not be printed: {REFUSED[how]}\n"
    assert (done.returncode, done.stderr) == (0, said)
    assert run_with_broken_stdout(laudo, how, "user", "disable", "1").returncode == 0


@pytest.mark.parametrize("how", REFUSED)
def test_a_created_item_is_reported_on_stderr_if_stdout_fails(laudo: Shell, how: str) -> None:
    done = run_with_broken_stdout(laudo, how, "account", "create", "Filial", "--organization", "1", "--json")
    said = f"error: account 2 of organization 1: done, but this could not be printed: {REFUSED[how]}\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.parametrize(("words", "code"), [(["organization", "create", "日本", "--json"], 1), (["--help"], 0)])
def test_a_created_item_is_reported_if_the_encoding_cannot_print_it(laudo: Shell, words: list[str], code: int) -> None:
    environ = laudo.environment | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([LAUDO, *words], check=False, capture_output=True, env=environ)
    done_all_the_same = "done, but this could not be printed: the encoding of the output lacks some of the characters"
    said = f"error: organization 2, with account 2 (principal): {done_all_the_same}\n"
    assert (done.returncode, done.stderr.decode()) == (code, said if code else "")


@pytest.mark.parametrize("how", REFUSED)
def test_a_token_that_cannot_be_printed_is_not_created(laudo: Shell, how: str) -> None:
    laudo.prints("token", "create", "--user", "1")
    done = run_with_broken_stdout(laudo, how, "token", "create", "--user", "1")
    said = f"error: no token was created, since it could not be printed: {REFUSED[how]}\n"
    assert (done.returncode, done.stderr) == (2, said)
    assert len(laudo.lists("token", "list")) == 1


@pytest.mark.parametrize("stderr", ["&-", "/dev/full"])
@pytest.mark.parametrize("words", [["import", "{file}", "--account", "1"], ["verify"]])
@pytest.mark.engines("sqlite", reason="does not depend on the engine")
def test_a_closed_or_full_stderr_stops_no_command(laudo: Shell, words: list[str], stderr: str) -> None:
    file = str(ndjson(laudo.folder, 3))
    command = ["sh", "-c", f'"$@" 2>{stderr}', "sh", LAUDO, *(word.format(file=file) for word in words)]
    assert subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=laudo.environment).returncode == 0


# Input that cannot be read.


@pytest.mark.parametrize(
    "words",
    [
        ["import", "-", "--account", "1"],
        ["delete", "-", "--account", "1"],
        ["token", "create", "--user", "1", "--from-stdin"],
        ["login", "--url", "http://127.0.0.1:9", "--with-token"],
    ],
)
@pytest.mark.engines("sqlite", reason="does not depend on the engine")
def test_a_closed_stdin_is_reported(laudo: Shell, words: list[str]) -> None:
    command = ["sh", "-c", '"$@" <&-', "sh", LAUDO, *words]
    done = subprocess.run(command, check=False, capture_output=True, env=laudo.environment, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "error: standard input is closed\n")


@pytest.mark.parametrize(
    ("error", "so_far", "code", "said"),
    [
        (KeyboardInterrupt(), "", 130, "error: interrupted; kept: nothing\n"),
        (KeyboardInterrupt(), "2 lines;\n hint: go on", 130, "error: interrupted; kept: 2 lines; hint: go on\n"),
        (StoreError("it is away"), "2 lines", 2, "error: it is away; kept: 2 lines\n"),
        (Doubtful("who knows"), "2 lines", 1, "error: who knows; kept: 2 lines\n"),
    ],
)
def test_a_failure_reports_what_was_kept(
    capsys: pytest.CaptureFixture[str], error: BaseException, so_far: str, code: int, said: str
) -> None:
    with pytest.raises(SystemExit) as ended, output.resumable(lambda: so_far, lambda: output.NOTHING_DONE):
        raise error
    assert ended.value.code == code
    assert capsys.readouterr().err == said


TWICE = """
import os, signal
from laudo.cli import output

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    with output.resumable(str):
        os.kill(os.getpid(), signal.SIGINT)
finally:
    os.kill(os.getpid(), signal.SIGINT)
"""


def test_a_second_ctrl_c_during_cleanup_prints_nothing_more() -> None:
    done = subprocess.run([sys.executable, "-c", TWICE], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "error: interrupted; kept: nothing\n")


UNDER_NOHUP = """
import os, signal
from laudo.cli import output

signal.signal(signal.SIGHUP, signal.SIG_IGN)
with output.resumable(str):
    os.kill(os.getpid(), signal.SIGHUP)
print("went on")
"""


def test_a_closed_terminal_does_not_interrupt_a_command_under_nohup() -> None:
    done = subprocess.run([sys.executable, "-c", UNDER_NOHUP], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("went on\n", "")


def test_a_failure_with_nothing_kept_is_raised_to_the_caller() -> None:
    with pytest.raises(StoreError, match="it is away"), output.resumable(str):
        raise StoreError("it is away")


def test_a_command_that_may_have_done_its_work_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, output.failures_in_one_line():
        raise Doubtful("who knows")
    assert (ended.value.code, capsys.readouterr().err) == (1, "error: who knows\n")


def test_out_of_memory_is_not_reported_as_a_bug() -> None:
    assert output.reason(MemoryError()).startswith("out of memory; hint: ")


def test_a_bug_is_reported_without_the_message_of_its_exception() -> None:
    with pytest.raises(ValueError, match="52998224725") as raised:
        int("cpf 52998224725")
    said = output.reason(raised.value)
    assert said.startswith(f"a bug in laudo: ValueError at {__file__}:")
    assert "52998224725" not in said
