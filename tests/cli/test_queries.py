import csv
import io
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from click.testing import Result

from client.service import PROFILE, TOKEN, Answer, Service, listed, pessoa, refused, relatorio
from client.socket_service import listening
from laudo.cli import output, progress, watching
from laudo.core.resources import PESSOAS, RELATORIOS
from shell import HEEDING, LAUDO, Shell, one_line

CPF = "52998224725"
Run = Callable[..., Result]


@pytest.fixture
def service() -> Service:
    service = Service([relatorio(3), relatorio(2, status="EM ANALISE", resultado=None), relatorio(1)])
    service.pessoas = [pessoa(52998224725, nome="Maria da Silva")]
    return service


@pytest.fixture
def base(service: Service) -> Iterator[str]:
    with listening(service) as base:
        yield base


@pytest.fixture
def run(tmp_path: Path, base: str) -> Run:
    def run(*words: str, stdin: str | bytes = "", **env: str) -> Result:
        given = {"LAUDO_URL": base, "LAUDO_TOKEN": TOKEN, "XDG_CONFIG_HOME": str(tmp_path), **env}
        return Shell(tmp_path)(*words, stdin=stdin, env=given)

    return run


# The service and the token.


def test_login_checks_the_token_and_saves_it_for_its_owner_only(run: Run, base: str, tmp_path: Path) -> None:
    result = run("login", "--url", f"{base}/", "--with-token", stdin=f"{TOKEN}\n")
    assert result.stdout == f"logged in to {base}, organization Modelo\n"
    kept = tmp_path / "laudo" / "login.json"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (kept.parent, kept)] == [0o700, 0o600]
    assert json.loads(kept.read_text()) == {"base_url": base, "token": TOKEN}
    for url in ("", base, f"{base}/"):
        assert run("relatorios", "--count", LAUDO_URL=url, LAUDO_TOKEN="").stdout == "3\n"


def test_login_prompts_for_missing_values_and_never_shows_the_token(run: Run, base: str) -> None:
    result = run("login", stdin=f"{base}\n{TOKEN}\n")
    assert result.exit_code == 0
    assert TOKEN not in result.output


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        (["login"], "", "Base URL: \nerror: standard input ended before the answer"),
        (["login"], "http://127.0.0.1:9\n", "Base URL: \nerror: there is no terminal to prompt on"),
        (["login", "--url", "http://127.0.0.1:9"], "", "error: there is no terminal to prompt on"),
    ],
)
def test_login_without_a_terminal_names_the_options_to_use(
    tmp_path: Path, words: list[str], given: str, said: str
) -> None:
    done = subprocess.run(
        [LAUDO, *words],
        check=False,
        capture_output=True,
        input=given,
        start_new_session=True,  # a new session has no terminal
        env=Shell(tmp_path).environment,
        text=True,
    )
    told = f"{said}; hint: laudo login --url URL --with-token\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


def test_ctrl_d_at_the_prompt_for_the_token_is_no_interrupt(run: Run, base: str) -> None:
    result = run("login", "--url", base, stdin="")
    said = "error: standard input ended before the answer; hint: laudo login --url URL --with-token"
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, said)


def test_an_overlong_token_is_refused_before_the_input_ends(tmp_path: Path) -> None:
    with Shell(tmp_path).starts("login", "--url", "http://127.0.0.1:9", "--with-token", stdin=subprocess.PIPE) as login:
        assert login.stdin
        assert login.stderr
        login.stdin.write(b"a" * 10_000)
        login.stdin.flush()
        assert login.wait(60) == 2
        assert login.stderr.read().startswith(b"error: the token must be 1 to 4000 visible ASCII characters")


def test_a_wrong_token_is_not_saved(run: Run, base: str, tmp_path: Path) -> None:
    for given in ("a wrong one\n", b"\xff\xfew\0\n\0"):
        result = run("login", "--url", base, "--with-token", stdin=given)
        assert one_line(result).startswith("error: the token must be 1 to 4000 visible ASCII characters")
    result = run("login", "--url", base, "--with-token", stdin="wrong\n")
    assert result.exit_code == 2
    assert one_line(result) == "error: Falha na autenticação. (status 401, request abc-1)"
    assert not (tmp_path / "laudo" / "login.json").exists()


def test_a_login_that_cannot_be_saved_leaves_no_files(run: Run, base: str, tmp_path: Path) -> None:
    (tmp_path / "laudo" / "login.json").mkdir(parents=True)
    assert run("login", "--url", base, "--with-token", stdin=f"{TOKEN}\n").exit_code == 2
    assert [path.name for path in (tmp_path / "laudo").iterdir()] == ["login.json"]


def test_a_saved_token_is_not_sent_to_another_service(run: Run, base: str) -> None:
    run("login", "--url", base, "--with-token", stdin=f"{TOKEN}\n")
    for url in ("http://127.0.0.1:9", "http://127.0.0.1", f"{base}/other"):
        result = run("relatorios", LAUDO_URL=url, LAUDO_TOKEN="")
        assert f"there is no token for {url}; hint: run `laudo login`" in one_line(result)


def test_the_token_in_laudo_token_is_sent_to_the_saved_service(run: Run, base: str) -> None:
    run("login", "--url", base, "--with-token", stdin=f"{TOKEN}\n")
    assert run("relatorios", "--count", LAUDO_URL="").stdout == "3\n"
    refused = run("relatorios", LAUDO_URL="", LAUDO_TOKEN="token-of-somebody-else")
    assert one_line(refused) == "error: Falha na autenticação. (status 401, request abc-1)"


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_saved_token_that_others_can_read_is_refused(run: Run, base: str, tmp_path: Path, mode: int) -> None:
    run("login", "--url", base, "--with-token", stdin=f"{TOKEN}\n")
    (tmp_path / "laudo" / "login.json").chmod(mode)
    assert "hint: chmod 600" in one_line(run("relatorios", LAUDO_URL="", LAUDO_TOKEN=""))


@pytest.mark.parametrize(
    "kept", ["{", "[]", "{}", '{"base_url": 5, "token": []}', '{"base_url": "http://a", "token": 5}']
)
def test_an_invalid_login_file_is_reported_in_one_line(run: Run, tmp_path: Path, kept: str) -> None:
    path = tmp_path / "laudo" / "login.json"
    path.parent.mkdir()
    path.write_text(kept)
    path.chmod(0o600)
    said = one_line(run("relatorios", LAUDO_URL="", LAUDO_TOKEN=""))
    assert said == f"error: {path} is not a file of `laudo login`; hint: run `laudo login`"


def test_the_saved_login_is_not_read_if_the_environment_has_url_and_token(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "laudo" / "login.json"
    path.parent.mkdir()
    for damage in (lambda: path.write_text("{"), lambda: path.chmod(0o644), path.unlink, path.mkdir):
        damage()
        assert run("relatorios", "--count").stdout == "3\n"
    assert run("relatorios", LAUDO_TOKEN="").exit_code == 2


def test_a_home_folder_is_needed_only_for_a_saved_login(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setitem(sys.modules, "pwd", None)
    assert run("relatorios", "--count", XDG_CONFIG_HOME="").stdout == "3\n"
    said = "error: there is no home folder; hint: set HOME, or LAUDO_URL and LAUDO_TOKEN"
    assert one_line(run("relatorios", XDG_CONFIG_HOME="", LAUDO_TOKEN="")) == said


def test_without_a_service_the_hint_names_login_and_the_variables(run: Run) -> None:
    result = run("pessoas", LAUDO_URL="", LAUDO_TOKEN="")
    assert one_line(result).endswith("hint: run `laudo login`, or set LAUDO_URL and LAUDO_TOKEN")


def test_a_url_pasted_from_the_console_is_refused_in_one_line(run: Run, base: str) -> None:
    result = run("relatorios", LAUDO_URL=f"{base}/#/relatorios")
    assert result.exit_code == 2
    assert one_line(result).startswith("error: LAUDO_URL must be http:// or https:// and a host")


def test_errors_name_the_source_of_an_invalid_url_or_token(run: Run, base: str, tmp_path: Path) -> None:
    for words in (
        ["relatorios"],
        ["relatorios", "--curl"],
        ["usuario", "--curl"],
        ["export", "pessoas", "-o", "a.csv"],
    ):
        assert one_line(run(*words, LAUDO_URL="127.0.0.1:8000")).startswith("error: LAUDO_URL must be http://")
        assert one_line(run(*words, LAUDO_TOKEN="two words")).startswith("error: LAUDO_TOKEN must be 1 to 4000 ")
    for empty in ("", "/"):  # as from an unset variable: no other service may be used instead
        said = one_line(run("pull", "--from", empty, "--account", "1"))
        assert said == "error: --from is empty; hint: give the base URL of a service"
    said = one_line(run("pull", "--from", "service.test", "--account", "1"))
    assert said.startswith("error: --from must be http://")
    for none in ("", "service.test"):
        said = one_line(run("login", "--url", none, "--with-token", stdin=TOKEN))
        assert said.startswith("error: the base URL must be http://")
    kept = tmp_path / "laudo" / "login.json"
    kept.parent.mkdir()
    kept.touch(mode=0o600)
    for damaged, said in (({"base_url": "a"}, "the base URL"), ({"token": "a b"}, "the token")):
        kept.write_text(json.dumps({"base_url": base, "token": TOKEN} | damaged))
        told = one_line(run("relatorios", LAUDO_URL="", LAUDO_TOKEN=""))
        assert told.startswith(f"error: {said} that `laudo login` saved must be ")


def test_a_missing_token_on_stdin_is_reported(run: Run, base: str) -> None:
    said = "error: there is no token on the first line of standard input"
    for given in ("", "\n", " \n"):
        assert one_line(run("login", "--url", base, "--with-token", stdin=given)) == said


def test_login_warns_of_each_variable_that_overrides_what_is_saved(run: Run, base: str) -> None:
    words, unset = ("login", "--url", base, "--with-token"), {"LAUDO_URL": "", "LAUDO_TOKEN": ""}
    assert run(*words, stdin=TOKEN, **unset).stderr == ""
    for name in unset:
        told = run(*words, stdin=TOKEN, **unset | {name: "another"}).stderr
        assert told == f"{name} is set and overrides what is saved\n"


@pytest.mark.parametrize(
    ("url", "heard"),
    [
        ("http://api.example.com", True),
        ("HTTP://203.0.113.7:8000", True),
        ("http://localhost.example.com", True),
        ("http://demo.localhost:8000", False),
        ("http://LOCALHOST", False),
        ("http://127.8.0.1:8000", False),
    ],
)
def test_login_warns_about_an_unencrypted_connection(run: Run, base: str, url: str, heard: bool) -> None:
    proxied = {"HTTP_PROXY": base, "NO_PROXY": "", "LAUDO_URL": "", "LAUDO_TOKEN": ""}
    told = run("login", "--url", url, "--with-token", stdin=TOKEN, **proxied)
    assert told.stdout == f"logged in to {url}, organization Modelo\n"
    said = "the token is sent unencrypted, and whoever intercepts it can use it; hint: use https://\n"
    assert told.stderr == said * heard


def test_logout_removes_the_saved_login_or_reports_that_there_was_none(run: Run, base: str, tmp_path: Path) -> None:
    run("login", "--url", base, "--with-token", stdin=f"{TOKEN}\n")
    kept = tmp_path / "laudo" / "login.json"
    done = run("logout", LAUDO_TOKEN="")
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"logged out: removed {kept}\n", "")
    assert [*kept.parent.iterdir()] == []
    assert "there is no service to ask" in one_line(run("relatorios", LAUDO_URL="", LAUDO_TOKEN=""))
    again = run("logout", LAUDO_TOKEN="")
    assert (again.exit_code, again.stdout, again.stderr) == (0, "nothing was saved\n", "")


def test_logout_removes_a_damaged_file_and_warns_of_a_token_still_in_use(run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "laudo" / "login.json"
    kept.parent.mkdir()
    kept.write_text("{")
    assert run("logout").stderr == "LAUDO_TOKEN is set and is still used\n"
    assert not kept.exists()
    kept.mkdir()
    assert one_line(run("logout")) == f"error: Is a directory: {kept}"


# Requests.


@pytest.mark.parametrize("resource", [RELATORIOS, PESSOAS], ids=lambda resource: resource.name)
@pytest.mark.parametrize("command", [(), ("export",)])
def test_every_filter_of_the_table_is_an_option(run: Run, resource: object, command: tuple[str, ...]) -> None:
    name = getattr(resource, "name", "")
    shown = run(*command, name, "--help").stdout
    for filter_ in getattr(resource, "filters", ()):
        assert f"--{filter_.name.replace('_', '-')} " in shown


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("--sort -nome --rows 50 --page 2", "page=2&rows=50&sort=-nome"),
        ("--sort -nome --rows 50 --page 2 --watch", "page=2&rows=50&sort=-nome"),
        ("--sort -nome --rows 50 --all", "page=1&rows=50&sort=-nome"),
        ("--count", "page=1&rows=25"),
    ],
)
def test_filters_sort_order_and_page_are_sent(run: Run, service: Service, words: str, asked: str) -> None:
    service.script = [refused(401)]
    run("relatorios", "--status", "em analise", *words.split())
    assert service.requests[0].url.query.decode() == f"{asked}&status=EM+ANALISE"


def test_an_invalid_filter_value_is_refused_before_it_is_sent(run: Run, service: Service) -> None:
    result = run("relatorios", "--status", "pronto")
    assert result.exit_code == 2
    assert one_line(result).startswith("error: status of relatorios must be one of PROCESSANDO")
    assert service.requests == []


@pytest.mark.parametrize(
    "words",
    [
        "--page 3 --all",
        "--all --watch",
        "--all --curl",
        "--count --watch",
        "--count --json nome",
        "--count --jq .",
        "--count --csv",
        "--json nome --csv",
        "--jq . --csv",
        "--count --page 2",
        "--count --rows 50",
        "--count --sort nome",
        "--count --all",
        "--count --reveal",
        "--curl --count",
        "--curl --watch",
        "--curl --csv",
        "--curl --jq .",
        "--curl --json nome",
        "--curl --reveal",
        "--columns nome --count",
        "--columns nome --curl",
        "--columns nome --jq .",
        "--columns nome --json nome",
        "--csv --reveal",
        "--json nome --reveal",
        "--jq . --reveal",
    ],
)
@pytest.mark.parametrize("name", ["relatorios", "pessoas"])
def test_options_that_cannot_be_combined_are_refused(run: Run, service: Service, name: str, words: str) -> None:
    result = run(name, *words.split())
    assert (result.exit_code, result.stdout, service.requests) == (2, "", [])
    said = one_line(result)
    assert said.endswith(f" cannot be used together; hint: laudo {name} --help")
    assert all(word in said for word in words.split() if word.startswith("--"))


@pytest.mark.parametrize("words", ["--curl --json email", "--curl --jq .", "--curl --reveal"])
def test_profile_options_that_cannot_be_combined_are_refused(run: Run, service: Service, words: str) -> None:
    result = run("usuario", *words.split())
    assert one_line(result).endswith(" cannot be used together; hint: laudo usuario --help")
    assert service.requests == []


def test_options_that_can_be_combined_are_accepted(run: Run) -> None:
    words = ("--curl", "--page", "2", "--rows", "50", "--sort", "nome", "--status", "PENDENTE")
    assert "/relatorios?page=2&rows=50&sort=nome&status=PENDENTE'" in run("relatorios", *words).stdout
    assert run("relatorios", "--json", "nome", "--jq", ".[].nome").stdout.startswith("consulta")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--workers 3", "--workers needs --all"),
        ("--every 3", "--every needs --watch"),
        ("--watch --every inf", "Invalid value for '--every': must be a number from 0.1 to 86400"),
        ("--watch --every nan", "Invalid value for '--every': must be a number from 0.1 to 86400"),
        ("--nome a --nome b", "Invalid value for '--nome': given more than once, but takes one value"),
        ("--sort nome --sort nome", "Invalid value for '--sort': given more than once, but takes one value"),
    ],
)
def test_options_without_effect_out_of_range_or_repeated_are_refused(
    run: Run, service: Service, words: str, said: str
) -> None:
    result = run("relatorios", *words.split())
    assert (result.exit_code, one_line(result)) == (2, f"error: {said}; hint: laudo relatorios --help")
    assert service.requests == []


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("relatorios --status P", ["PROCESSANDO", "PRE-PROCESSANDO", "PENDENTE"]),
        ("relatorios --pendente-validacao-manual ", ["true", "false"]),
        ("pessoas --sort n", ["nome"]),
        ("pessoas --sort -n", ["-nome"]),
        ("pessoas --json ", ["cpf", "nome", "atualizado_em"]),
        ("pessoas --json nome,", ["nome,cpf", "nome,atualizado_em"]),
        ("relatorios --json numero,status,numero_", ["numero,status,numero_documento"]),
        ("usuario --json id", ["id_organizacao"]),
        ("pessoas --re", ["--reveal"]),
        ("export pessoas --bus", ["--busca"]),
        ("pessoas --nome a --nome b --bus", ["--busca"]),
    ],
)
def test_shell_completion_offers_values_and_options(run: Run, words: str, offered: list[str]) -> None:
    count = len(words.split(" "))
    result = run(_LAUDO_COMPLETE="bash_complete", COMP_WORDS=f"laudo {words}", COMP_CWORD=str(count))
    assert [line.partition(",")[2] for line in result.stdout.splitlines()] == offered


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("pessoas --json", "--json needs one or more of these fields, separated by commas: cpf, nome, atualizado_em"),
        ("pessoas --page", "--page needs a whole number of at least 1"),
        ("relatorios --resultado", "--resultado needs a value: VALID|INVALID"),
        ("export pessoas -o", "-o needs a value: FILE"),
    ],
)
def test_an_option_without_its_value_is_told_what_it_takes(run: Run, words: str, said: str) -> None:
    command = words.rpartition(" -")[0]
    assert one_line(run(*words.split())) == f"error: {said}; hint: laudo {command} --help"


@pytest.mark.parametrize("words", ["relatorios", "pessoas", "usuario", "export relatorios", "export pessoas"])
def test_help_lists_the_fields_of_an_item(run: Run, words: str) -> None:
    fields = {"relatorios": RELATORIOS, "pessoas": PESSOAS}.get(words.rsplit(maxsplit=1)[-1])
    names = [field.name for field in fields.fields] if fields else list(PROFILE)
    assert f"Fields: {', '.join(names)}." in " ".join(run(*words.split(), "--help").stdout.split())


@pytest.mark.parametrize("words", ["serve --key-file ", "serve --config ", "import "])
def test_shell_completion_offers_files(run: Run, words: str) -> None:
    count = len(words.split(" "))
    result = run(_LAUDO_COMPLETE="bash_complete", COMP_WORDS=f"laudo {words}", COMP_CWORD=str(count))
    assert result.stdout == "file,\n"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["--status", "E"], r"EM\ ANALISE"),
        (["--status", "EM\\ A"], r"EM\ ANALISE"),
        (["--status", '"EM A'], "EM ANALISE"),
        (["--status", "=", "E"], r"EM\ ANALISE"),
        (["--sort", "=", "-at"], "-atualizado_em"),
        (["--json", "=", "nome,re"], "nome,resultado"),
    ],
)
def test_bash_completion_keeps_a_value_with_a_space_as_one_word(tmp_path: Path, words: list[str], offered: str) -> None:
    script = """
eval "$(_LAUDO_COMPLETE=bash_source "$1")"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_laudo_completion "$1"
printf '%s\n' "${COMPREPLY[@]}"
"""
    command = ["bash", "-c", script, "bash", LAUDO, "relatorios", *words]
    environment = Shell(tmp_path).environment
    assert subprocess.run(command, check=True, capture_output=True, env=environment, text=True).stdout == f"{offered}\n"


@pytest.mark.parametrize(("shell", "place"), [("zsh", "2"), ("fish", "--status=E")])
def test_zsh_and_fish_completion_keeps_the_option_before_the_value(run: Run, shell: str, place: str) -> None:
    words = "laudo relatorios --status=E"
    result = run(_LAUDO_COMPLETE=f"{shell}_complete", COMP_WORDS=words, COMP_CWORD=place)
    assert "--status=EM ANALISE" in result.stdout


def test_fish_completion_ends_no_value_at_a_comma(run: Run) -> None:
    offered = run(_LAUDO_COMPLETE="fish_complete", COMP_WORDS="laudo pessoas --json nome,c", COMP_CWORD="nome,c")
    assert offered.stdout == "plain,nome,cpf\n"
    assert '(string split --max 1 "," $completion)' in run(_LAUDO_COMPLETE="fish_source").stdout


# Output.


def test_columns_mask_cpfs_unless_reveal_is_given(run: Run) -> None:
    first = "00000003-0000-4000-8000-000000000000\tCONCLUIDO\tPessoa\tconsultaPessoaDefault\t2026-01-01T00:00:03.000Z\t"
    assert run("relatorios").stdout.splitlines()[0] == first + "VALID\tVálido.\tfalse\t***982247**"
    assert run("relatorios", "--reveal").stdout.splitlines()[0].endswith(f"\t{CPF}")
    assert run("pessoas").stdout == "***982247**\tMaria da Silva\t2026-01-31T12:00:00.000Z\n"


@pytest.fixture
def on_a_terminal(base: str, tmp_path: Path) -> Callable[..., str]:
    def run(
        *words: str,
        columns: int,
        begun: threading.Event | None = None,
        notes: bool = False,
        environ: dict[str, str] | None = None,
        code: int = 0,
    ) -> str:
        """Run on a terminal, with `notes` also stderr, and return the output; `begun` is set when it starts."""
        import pty

        leader, follower = pty.openpty()
        access = {"LAUDO_URL": base, "LAUDO_TOKEN": TOKEN, "COLUMNS": str(columns)}
        shown = b""
        environment = Shell(tmp_path).environment | access | (environ or {})
        stderr = follower if notes else subprocess.DEVNULL
        with subprocess.Popen([LAUDO, *words], stdout=follower, stderr=stderr, env=environment) as process:
            os.close(follower)
            with suppress(OSError):  # Linux reports the end of all writers as an error
                while read := os.read(leader, 10_000):
                    shown += read
                    if begun:
                        begun.set()
        os.close(leader)
        assert process.returncode == code
        return shown.decode()

    return run


def test_a_terminal_gets_a_table(on_a_terminal: Callable[..., str]) -> None:
    head, row = on_a_terminal("pessoas", columns=80).splitlines()
    assert head.split() == ["cpf", "nome", "atualizado_em"]
    assert row.split() == ["***982247**", "Maria", "da", "Silva", "2026-01-31T12:00:00.000Z"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "page 1 of 3, 60 relatorios in all; --page and --all show the others"),
        (["--page", "3"], "page 3 of 3, 60 relatorios in all; --page and --all show the others"),
        (["--page", "4"], "page 4 is beyond the last page, 3; 60 relatorios in all"),
        (["--rows", "75"], "60 relatorios in all"),
        (["--status", "PENDENTE"], "0 relatorios in all"),
        (["--status", "PENDENTE", "--page", "3"], "0 relatorios in all"),
    ],
)
def test_a_terminal_shows_the_page_number_and_the_total_count(
    on_a_terminal: Callable[..., str], service: Service, words: list[str], line: str
) -> None:
    service.relatorios = [relatorio(number) for number in range(60, 0, -1)]
    assert on_a_terminal("relatorios", *words, columns=240, notes=True).splitlines()[-1] == line
    for programs in (["--csv"], ["--json", "numero"]):
        assert line not in on_a_terminal("relatorios", *words, *programs, columns=240, notes=True)


def test_a_single_item_is_counted_in_the_singular(on_a_terminal: Callable[..., str], service: Service) -> None:
    service.relatorios = [relatorio(1)]
    assert on_a_terminal("relatorios", columns=240, notes=True).splitlines()[-1] == "1 relatorio in all"
    assert on_a_terminal("pessoas", columns=240, notes=True).splitlines()[-1] == "1 pessoa in all"


def test_pages_are_counted_even_if_the_service_gives_no_page_size(
    on_a_terminal: Callable[..., str], service: Service
) -> None:
    service.script = [listed([relatorio(number) for number in range(25)], total=60, rows=0)]
    line = "page 1 of 3, 60 relatorios in all; --page and --all show the others"
    assert on_a_terminal("relatorios", columns=240, notes=True).splitlines()[-1] == line


@pytest.mark.parametrize("columns", [20, 80, 150, 190, 240])
def test_values_are_shown_whole_on_terminals_of_any_width(
    on_a_terminal: Callable[..., str], service: Service, columns: int
) -> None:
    shown = on_a_terminal("relatorios", columns=columns)
    assert shown.count("-4000-8000-000000000000") == 3
    assert shown.count("2026-01-01T00:00:0") == 3
    assert "…" not in shown
    service.relatorios = []
    assert "numero" in on_a_terminal("relatorios", columns=columns)


def test_columns_are_those_asked_for_in_that_order(run: Run, on_a_terminal: Callable[..., str]) -> None:
    words = ("relatorios", "--columns", "status,numero")
    numeros = [f"{number:08x}-0000-4000-8000-000000000000" for number in (3, 2, 1)]
    assert run(*words).stdout.splitlines()[0] == f"CONCLUIDO\t{numeros[0]}"
    assert run(*words, "--csv").stdout.splitlines()[:2] == ["status,numero", f"CONCLUIDO,{numeros[0]}"]
    shown = on_a_terminal(*words, columns=48)
    assert [line.split()[-1] for line in shown.splitlines()] == ["numero", *numeros]
    assert run("pessoas", "--columns", "cpf", "--all").stdout == "***982247**\n"


def test_a_narrow_terminal_gets_a_line_for_each_field(on_a_terminal: Callable[..., str]) -> None:
    first, *others = on_a_terminal("relatorios", columns=80).split("\r\n\r\n")
    assert len(others) == 2
    assert [line.split()[0] for line in first.splitlines()] == [field.name for field in RELATORIOS.fields]
    assert "numero                     00000003-0000-4000-8000-000000000000\r\n" in first
    assert "numero_documento           ***982247**" in first
    assert "id_organizacao    " in on_a_terminal("usuario", columns=20)


def test_a_dumb_terminal_keeps_its_width_and_gets_no_colours(on_a_terminal: Callable[..., str]) -> None:
    for columns, shown in ((40, "cpf            ***982247**\r\n"), (80, "cpf          nome")):
        assert on_a_terminal("pessoas", columns=columns, environ={"TERM": "dumb", "NO_COLOR": ""}).startswith(shown)
    coloured = on_a_terminal("pessoas", columns=80, environ={"TERM": "xterm", "NO_COLOR": ""})
    assert coloured.startswith("\x1b[1mcpf")


@pytest.mark.parametrize(("terminal", "has_a_bar"), [("dumb", False), ("xterm", True)])
def test_a_dumb_terminal_gets_lines_instead_of_a_progress_bar(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], terminal: str, *, has_a_bar: bool
) -> None:
    monkeypatch.setenv("TERM", terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0)
    with progress.counting("verify") as update:
        update(1, 2)
    with progress.reading(10, "import") as display:
        display.update(progress.EVERY_LINES, 5)
    assert isinstance(display, progress.BarDisplay) is has_a_bar
    lines = capfd.readouterr().err.splitlines()
    assert (lines[0].startswith("verify: 1 of 2 rows, "), lines[-1].startswith("50000 lines, ")) == (not has_a_bar,) * 2


def test_watch_does_not_clear_a_dumb_terminal(on_a_terminal: Callable[..., str], service: Service) -> None:
    for term, cleared in (("dumb", 0), ("xterm", 1)):
        service.script = [None, refused(401)]
        shown = on_a_terminal("pessoas", "--watch", "--every", "0.1", columns=80, environ={"TERM": term}, code=2)
        assert (shown.count("\x1b[2J"), "Maria" in shown) == (cleared, True)


@pytest.mark.parametrize(
    ("columns", "lines", "items"), [(80, 24, 2), (240, 10, 7), (240, 26, 23), (240, 27, 25), (80, 5, 1)]
)
def test_watch_shows_the_first_items_that_fit_the_screen(
    on_a_terminal: Callable[..., str], service: Service, columns: int, lines: int, items: int
) -> None:
    service.relatorios = [relatorio(number) for number in range(25, 0, -1)]
    service.script = [None, refused(401)]
    screen = {"TERM": "xterm", "LINES": str(lines)}
    shown = on_a_terminal("relatorios", "--watch", "--every", "0.1", columns=columns, environ=screen, code=2)
    *_, last = shown.splitlines()
    assert (last == f"… {25 - items} more") is (items < 25)
    assert [number for number in range(25, 0, -1) if relatorio(number)["numero"] in shown] == [
        *range(25, 25 - items, -1)
    ]


@pytest.mark.parametrize("columns", [80, 240])
def test_all_shows_the_first_page_before_the_others_arrive(
    on_a_terminal: Callable[..., str], service: Service, columns: int
) -> None:
    service.relatorios = [relatorio(number) for number in range(60, 0, -1)]
    begun, seen = threading.Event(), []
    service.after = lambda asked: seen.append(begun.wait(20)) if asked == 2 else None
    shown = on_a_terminal("relatorios", "--all", "--rows", "25", columns=columns, begun=begun)
    assert seen == [True]
    assert [number for number in range(60, 0, -1) if relatorio(number)["numero"] not in shown] == []
    assert len(shown.splitlines()) == (1 + 60 if columns == 240 else 60 * 9 + 59)


def test_values_wider_than_the_columns_of_the_first_page_are_wrapped(
    on_a_terminal: Callable[..., str], service: Service
) -> None:
    service.relatorios = [relatorio(number) for number in range(50, 0, -1)]
    service.relatorios[30] |= {"nome": "x" * 50, "mensagem": "Válido, 漢字 e mais."}
    lines = on_a_terminal("relatorios", "--all", "--rows", "25", columns=240).splitlines()
    assert len(lines) == 1 + 50 + 2
    starts = [lines[0].index(name) for name in ("nome", "mensagem", "pendente")]
    folded = [[line[start : start + 24].split("  ")[0] for line in lines[31:34]] for start in starts]
    assert folded == [["x" * 21, "x" * 21, "x" * 8], ["Válido,", "漢字 e", "mais."], ["false", "", ""]]


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (28, ["nome  漢字漢字漢字漢字", "cpf   ***000000**", "", "nome  Maria", "cpf   ***000000**"]),
        (29, ["nome              cpf", "漢字漢字漢字漢字  ***000000**", "Maria             ***000000**"]),
    ],
)
def test_wide_characters_count_as_two_columns(
    on_a_terminal: Callable[..., str], service: Service, columns: int, lines: list[str]
) -> None:
    service.pessoas = [pessoa(1, nome="漢字漢字漢字漢字"), pessoa(2, nome="Maria")]
    assert on_a_terminal("pessoas", "--columns", "nome,cpf", columns=columns).splitlines() == lines


def test_a_wide_value_of_a_later_page_is_folded_and_not_cut(
    on_a_terminal: Callable[..., str], service: Service
) -> None:
    service.pessoas = [*(pessoa(number, nome="Maria") for number in range(25)), pessoa(25, nome="漢字漢字")]
    words = ("pessoas", "--all", "--rows", "25", "--columns", "nome,cpf")
    assert on_a_terminal(*words, columns=80).splitlines()[-2:] == ["漢字   ***000000**", "漢字"]


def test_help_shows_examples_as_a_user_types_them(run: Run) -> None:
    shown = run("relatorios", "--help").stdout
    for example in ("--nome consultaPessoaDefault", "--pendente-validacao-manual true|false", "--sort FIELD"):
        assert example in shown


BIDI_CONTROLS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""The characters with the Unicode property Bidi_Control."""


def test_control_characters_from_a_service_never_reach_the_terminal(
    run: Run, service: Service, base: str, on_a_terminal: Callable[..., str]
) -> None:
    title = "\x1b]0;title\x07\x1b[1ma\x9b2Jb\x7f" + "".join(f"c{mark}" for mark in BIDI_CONTROLS)
    shown = "\ufffd]0;title\ufffd\ufffd[1ma\ufffd2Jb\ufffd" + "c\ufffd" * len(BIDI_CONTROLS)
    service.relatorios = [relatorio(1, nome=f"João {title}")]
    for columns in (79, 300):
        assert f"João {shown}" in on_a_terminal("relatorios", columns=columns)
    assert f"João {shown}" in run("relatorios").stdout
    assert f",João {shown}," in on_a_terminal("relatorios", "--csv", columns=79)
    assert f",João {title}," in run("relatorios", "--csv").stdout
    printed = run("relatorios", "--json", "nome").stdout
    assert printed.replace("\n", "").isprintable()
    assert json.loads(printed) == [{"nome": f"João {title}"}]
    named = httpx.Response(200, json={"result": PROFILE | {"nome_organizacao": f"\n{title}\n"}})
    service.script = [refused(400, title), named]
    assert one_line(run("relatorios")) == f"error: {shown} (status 400, request abc-1)"
    assert run("login", "--url", base, "--with-token", stdin=TOKEN).stdout.endswith(f" organization {shown}\n")


def test_json_has_the_requested_fields_with_unmasked_values(run: Run) -> None:
    shown = json.loads(run("relatorios", "--json", "numero_documento,resultado").stdout)
    assert shown[:2] == [
        {"numero_documento": CPF, "resultado": "VALID"},
        {"numero_documento": CPF, "resultado": None},
    ]
    assert json.loads(run("relatorios", "--json", "numero", "--page", "2").stdout) == []
    for wrong in ("cor", "", "nome,cor"):
        said = one_line(run("pessoas", "--json", wrong))
        assert "must be one or more of these fields, separated by commas: cpf, nome, atualizado_em; hint: " in said


def test_csv_has_a_header_and_unmasked_values(run: Run) -> None:
    assert run("pessoas", "--csv").stdout == f"cpf,nome,atualizado_em\n{CPF},Maria da Silva,2026-01-31T12:00:00.000Z\n"


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_csv_keeps_line_breaks_that_columns_drop(run: Run, service: Service, end: str) -> None:
    nome = f"Maria  da\u00a0Silva{end}"
    service.pessoas = [pessoa(52998224725, nome=nome)]
    printed = io.StringIO(run("pessoas", "--csv").stdout_bytes.decode(), newline="")
    assert next(csv.DictReader(printed))["nome"] == nome
    assert run("pessoas").stdout.split("\t")[1] == "Maria da Silva"


@pytest.mark.parametrize("words", [(), ("--csv",), ("--json", "nome"), ("--all", "--csv")])
def test_ascii_output_becomes_utf8_and_latin1_refuses_other_characters(
    service: Service, base: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    def printed(encoding: str) -> subprocess.CompletedProcess[bytes]:
        environ = Shell(tmp_path).environment | {"LAUDO_URL": base, "LAUDO_TOKEN": TOKEN, "PYTHONIOENCODING": encoding}
        return subprocess.run([LAUDO, "pessoas", *words], check=False, capture_output=True, env=environ)

    service.pessoas = [pessoa(52998224725, nome="Łucja")]
    assert "Łucja" in printed("ascii").stdout.decode()
    refused = printed("latin-1")
    assert refused.returncode == 2
    assert refused.stderr.decode() == (
        "error: the encoding of the output lacks some of the characters; hint: set PYTHONIOENCODING=utf-8\n"
    )


def test_jq_prints_results_and_reports_errors_in_one_line(run: Run) -> None:
    pytest.importorskip("jq")
    assert run("relatorios", "--jq", ".[].status").stdout == "CONCLUIDO\nEM ANALISE\nCONCLUIDO\n"
    assert run("usuario", "--jq", "{email}").stdout == '{"email": "ana@example.com"}\n'
    not_an_item = "Cannot index array with string …; hint: the expression gets an array; .[] gives its items"
    for expression, said in (
        (".[", "syntax error, unexpected end of file at line 1, column 2"),
        (".[] | cor", "cor/0 is not defined at line 1, column 7"),
        ('.[] |\n"import" | cor', "cor/0 is not defined at line 2, column 12"),
        ("input", "there is no further input"),
        (".result.itens[]", not_an_item),
    ):
        assert one_line(run("relatorios", "--jq", expression)) == f"error: --jq: {said}"
    assert one_line(run("usuario", "--jq", "[.email].x")) == "error: --jq: Cannot index array with string …"
    assert one_line(run("relatorios", "--jq", 'error("")')) == "error: --jq: an error without a message"


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (".[].cpf + 1", "string … and number … cannot be added"),
        (".[] | .cpf / .", "string … and object … cannot be divided"),
        (".[] | error", "an error whose message is not a text"),
        (".[].cpf | tonumber | .[]", "Cannot iterate over number …"),
        (".[] | tojson | fromdate", "date …"),
        (".[].nome | fromjson", "Invalid numeric literal at line …"),
        ("path(.[].cpf | tonumber)", "Invalid path expression with result …"),
        (".[] | sort", "object … cannot be sorted, as it is not an array"),
    ],
)
def test_jq_errors_contain_no_values(run: Run, expression: str, said: str) -> None:
    pytest.importorskip("jq")
    assert one_line(run("pessoas", "--jq", expression)) == f"error: --jq: {said}"


@pytest.mark.parametrize("expression", ["env.LAUDO_TOKEN", "$ENV.LAUDO_TOKEN"])
def test_jq_cannot_read_the_environment(run: Run, expression: str) -> None:
    pytest.importorskip("jq")
    assert run("relatorios", "--jq", expression).stdout == "null\n"


def test_jq_leaves_the_environment_as_it_was(run: Run) -> None:
    pytest.importorskip("jq")
    before = dict(os.environ)
    assert run("relatorios", "--jq", ".[0].nome").exit_code == 0
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    "expression", ['import "a" as $a {search: "."}; $a', 'include "a" {search: "."}; a', 'module {}; include "a"; a']
)
def test_jq_cannot_read_files(run: Run, expression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jq")
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text('{"token": "secret"}')
    Path("a.jq").write_text('def a: "secret";')
    assert "syntax error, unexpected " in one_line(run("relatorios", "--jq", expression))


@pytest.mark.parametrize("expression", ['"none" | halt_error', '.[0].nome, ("none" | halt_error(3)), 1'])
def test_a_jq_expression_that_halts_with_an_error_exits_with_2(run: Run, expression: str) -> None:
    pytest.importorskip("jq")
    result = run("relatorios", "--jq", expression)
    assert (result.exit_code, result.stdout, one_line(result)) == (2, "", "error: --jq: none")


def test_jq_replaces_control_characters_only_on_a_terminal(
    run: Run, service: Service, on_a_terminal: Callable[..., str]
) -> None:
    pytest.importorskip("jq")
    service.relatorios = [relatorio(1, nome="a\x1b[1mb\tc\nd\re\vf")]
    assert run("relatorios", "--jq", ".[].nome").stdout == "a\x1b[1mb\tc\nd\re\vf\n"
    shown = on_a_terminal("relatorios", "--jq", ".[].nome", columns=79)
    assert shown == "a\ufffd[1mb\tc\r\nd\ufffde\ufffdf\r\n"


def test_jq_without_its_package_prints_an_install_hint(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jq", None)
    assert one_line(run("relatorios", "--jq", ".")) == "error: --jq needs the package jq; hint: pip install jq"


def test_all_prints_every_item_and_count_prints_their_number(run: Run, service: Service) -> None:
    service.relatorios = [relatorio(number) for number in range(1200, 0, -1)]
    assert run("relatorios", "--count").stdout == "1200\n"
    assert len(run("relatorios", "--all").stdout.splitlines()) == 1200
    assert len(json.loads(run("relatorios", "--all", "--workers", "3", "--json", "numero").stdout)) == 1200


def test_all_with_workers_requests_pages_at_a_time(run: Run, service: Service) -> None:
    together = threading.Barrier(2, timeout=20)

    def meet(asked: int) -> None:
        if asked in {2, 3}:
            together.wait()

    service.after = meet
    service.relatorios = [relatorio(number) for number in range(75, 0, -1)]
    shown = run("relatorios", "--all", "--rows", "25", "--workers", "2", "--columns", "numero").stdout
    assert shown.splitlines() == [item["numero"] for item in service.relatorios]
    assert not together.broken


def test_all_says_how_much_is_missing_when_the_service_goes_away(run: Run, service: Service) -> None:
    def go_away(asked: int) -> None:
        if asked == 1:
            service.script = [refused(500)]

    service.relatorios = [relatorio(number) for number in range(60, 0, -1)]
    service.after = go_away
    result = run("relatorios", "--all", "--rows", "25")
    assert (result.exit_code, len(result.stdout.splitlines())) == (2, 25)
    assert result.stderr.startswith("error: the list breaks off after 25 of 60 items: Não. (status 500")
    service.script = [refused(500)]
    assert one_line(run("relatorios", "--all")).startswith("error: Não. (status 500")


def test_curl_prints_the_request_without_the_token_and_sends_nothing(run: Run, service: Service, base: str) -> None:
    shown = run("relatorios", "--curl", "--nome", "a'b c", "--sort", "numero").stdout
    assert shown == (
        f"""curl -H "Authorization: $LAUDO_TOKEN" '{base}/relatorios?page=1&rows=25&sort=numero&nome=a%27b+c'\n"""
    )
    assert run("usuario", "--curl").stdout == f'curl -H "Authorization: $LAUDO_TOKEN" {base}/usuario\n'
    assert service.requests == []


def test_watch_prints_again_when_something_has_changed(run: Run, service: Service) -> None:
    def change(asked: int) -> None:
        if asked == 2:
            service.pessoas[0] = pessoa(52998224725, nome="Maria Santos")
        if asked == 3:
            service.script = [listed([], total="x")]

    service.after = change
    result = run("pessoas", "--watch", "--every", "0.1", "--json", "nome")
    assert result.stdout.count("Maria") == 2
    assert result.exit_code == 2


def test_watch_survives_outages_and_reports_each_start_and_end_once(run: Run, service: Service) -> None:
    away: list[Answer] = [refused(503, Retry_After="0"), refused(429, Retry_After="0"), httpx.ReadError("dropped")]
    looks = [away[(look + attempt) % 3] for look in range(4) for attempt in range(3)]  # each ends with another error
    rita = listed([pessoa(1, nome="Rita")], total="1")
    service.script = [None, *looks, rita, *looks, rita, refused(401)]
    result = run("pessoas", "--watch", "--every", "0.1", "--json", "nome")
    assert result.exit_code == 2
    assert ("Maria" in result.stdout, "Rita" in result.stdout) == (True, True)
    *noted, ended = result.stderr.splitlines()
    assert [note.endswith("; trying again every 0.1 s") for note in noted] == [True, False] * 2
    assert noted[1::2] == ["the service answers again"] * 2
    assert "status 401" in ended


def test_watch_ends_silently_when_its_output_is_closed(base: str, tmp_path: Path) -> None:
    """It notices this before its next request, which is due in a day."""
    environ = Shell(tmp_path).environment | {"LAUDO_URL": base, "LAUDO_TOKEN": TOKEN}
    command = [LAUDO, "relatorios", "--watch", "--every", "86400"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ) as watch:
        assert watch.stdout
        assert watch.stderr
        for _ in range(3):  # all lines that it prints before it waits
            assert watch.stdout.readline().endswith(b"***982247**\n")
        watch.stdout.close()
        try:
            assert watch.wait(60) == 2
        finally:
            watch.kill()
        assert watch.stderr.read() == b""


def test_watch_notices_while_it_waits_that_its_socket_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = socket.socketpair()
    with reader, writer, writer.makefile("w") as piped:
        monkeypatch.setattr(sys, "stdout", piped)
        looks = watching.changes(iter((1, 2)).__next__, every=5)
        assert next(looks) == 1
        reader.close()
        with pytest.raises(output.NoReader):
            next(looks)


def test_watch_in_a_pipe_waits_as_long_as_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    began = time.monotonic()
    with os.fdopen(reader), os.fdopen(writer, "w") as piped:
        monkeypatch.setattr(sys, "stdout", piped)
        looks = watching.changes(iter((1, 2)).__next__, every=0.3)
        assert [next(looks), next(looks)] == [1, 2]
    assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize(("words", "said"), [(["--watch"], ""), (["--count"], "\nerror: interrupted\n")])
def test_ctrl_c_ends_a_command_by_its_signal_and_watch_silently(
    service: Service, base: str, tmp_path: Path, words: list[str], said: str
) -> None:
    """A shell whose command ends by the signal ends the loop around it."""
    asked, go_on = threading.Event(), threading.Event()

    def wait(_asked: int) -> None:
        asked.set()
        go_on.wait(20)

    service.after = wait
    environ = Shell(tmp_path).environment | {"LAUDO_URL": base, "LAUDO_TOKEN": TOKEN}
    command = [sys.executable, "-c", HEEDING, "relatorios", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ, text=True) as process:
        assert asked.wait(20)
        process.send_signal(signal.SIGINT)
        ended = process.communicate(timeout=20)
        go_on.set()
    assert (process.returncode, *ended) == (-signal.SIGINT, "", said)


def test_the_profile_masks_its_token_unless_reveal_is_given(run: Run) -> None:
    assert "api_token\t***\nemail\tana@example.com\n" in run("usuario").stdout
    assert json.loads(run("usuario", "--json", "api_token").stdout) == {"api_token": "***"}
    assert run("usuario", "--jq", ".api_token").stdout == "***\n"
    assert json.loads(run("usuario", "--json", "api_token", "--reveal").stdout) == {"api_token": TOKEN}


def test_client_commands_work_without_the_optional_packages(base: str, tmp_path: Path) -> None:
    optional = (*output.SERVER_PACKAGES, "psycopg", "jq", "pyarrow", "pandas", "polars", "socksio")
    blocked = "; ".join(f"sys.modules['{name}'] = None" for name in optional)
    script = f"import sys; {blocked}; from laudo.cli import main; main()"
    environ = Shell(tmp_path).environment | {"LAUDO_URL": base, "LAUDO_TOKEN": TOKEN}
    for words in (["--help"], ["relatorios", "--count"], ["export", "pessoas", "-o", "a.csv"], ["config"]):
        subprocess.run(
            [sys.executable, "-c", script, *words], check=True, cwd=tmp_path, env=environ, stdout=subprocess.DEVNULL
        )


@pytest.mark.parametrize("missing", ["granian", "apsw", "falcon", "prometheus_client"])
def test_serve_without_the_server_packages_prints_an_install_hint(tmp_path: Path, missing: str) -> None:
    shell = Shell(tmp_path)
    shell.prints("migrate")
    shell.prints("organization", "create", "Modelo")
    script = f"import sys; sys.modules['{missing}'] = None; from laudo.cli import main; main(['serve'])"
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True, env=shell.environment
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: this command needs the service")
    assert done.stderr.endswith("hint: pip install '.[server]' in a clone\n")
