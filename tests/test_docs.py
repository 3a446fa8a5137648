"""The documentation is correct: its examples run, its tables are complete, its links resolve."""

import inspect
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import httpx
import pytest
from psycopg.conninfo import conninfo_to_dict

from laudo import cli
from laudo.cli import connections, deletes, imports, serving
from laudo.client import Limits, calls, transports, walk
from laudo.core import errors, query, values
from laudo.core.resources import LISTS, PROFILE
from laudo.server import edges
from laudo.server.config import SETTINGS, Settings
from laudo.server.database import Bounds
from laudo.server.ingest import batches, lines, ndjson, removal
from laudo.server.ingest.fields import ACCEPTED, OPTIONAL
from laudo.server.logs import Line
from laudo.server.postgres import address
from laudo.server.sqlite import session

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
DECISIONS = sorted(ROOT.glob("docs/decisions/*.md"))
API = (ROOT / "docs/api.md").read_text("utf-8")
OPERATING = (ROOT / "docs/operating.md").read_text("utf-8")
CLI = (ROOT / "docs/cli.md").read_text("utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")

WORDS = {8: "eight", 10: "ten"}
UNREAD = WORDS[connections._UNREAD_TIMEOUTS]
UNREAD_MINUTES = WORDS[connections._UNREAD_TIMEOUTS * Settings().idle_timeout_ms // 60_000]

JSON = dict[str, "JSON"] | list["JSON"] | str | int | bool | None


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


# Pages that must stay short.


@pytest.mark.parametrize(("page", "most"), [("README.md", 150), ("ARCHITECTURE.md", 120)])
def test_a_page_for_newcomers_stays_short(page: str, most: int) -> None:
    assert len((ROOT / page).read_text("utf-8").splitlines()) <= most


# Lists that must be complete.


def test_operating_lists_every_setting_as_the_code_defines_it() -> None:
    rows = [f"| `{s.name}` | {_default(s.default_shown)} | {s.accepts} | {s.about} |" for s in SETTINGS]
    listed = [line for line in _section(OPERATING, "Settings").splitlines() if line.startswith("| `")]
    assert listed == rows, "docs/operating.md should have these rows:\n" + "\n".join(rows)


def _default(shown: str) -> str:
    return (shown if " " in shown else f"`{shown}`") if shown else "none"


def test_the_report_shown_in_the_readme_can_be_imported() -> None:
    shown = re.findall(r"```json\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert [line.count("nome_pessoa") for each in shown for line in each.splitlines()] == [1]
    assert ndjson.parse(shown[0].encode()) is not None


def test_operating_lists_every_field_of_an_import() -> None:
    rows = [
        f"| `{field}` | {'optional' if field in OPTIONAL else 'required'} | {accepted} |"
        for field, accepted in ACCEPTED.items()
    ]
    listed = [line for line in _section(OPERATING, "Import").splitlines() if line.startswith("| `")]
    assert listed == rows, "docs/operating.md should have these rows:\n" + "\n".join(rows)


@pytest.mark.parametrize(
    ("page", "chapter", "figure"),
    [
        ("operating", "Import", f"may have {lines.LONGEST // 1024} KiB"),
        ("operating", "Import", f"batches of {batches.LEAST:,} to {batches.MOST:,}"),
        ("operating", "Import", f"Where less than {session._AMPLE_BYTES >> 30} GiB is free"),
        ("operating", "Delete", f"up to {deletes.BATCH:,} at a time"),
        ("operating", "Delete", f"up to {removal.MOST:,} in one transaction"),
        ("operating", "Workers and stopping", f"for up to {serving._STOP_SECONDS} seconds"),
        ("operating", "How much it carries", f"{connections._TOTAL:,} for all workers together"),
        (
            "operating",
            "How much it carries",
            f"{connections._OTHER_FILES}, {connections._FILES_PER_WORKER} for each of all workers",
        ),
        ("operating", "Behind a proxy", f"{UNREAD} times that, {UNREAD_MINUTES} minutes unless set otherwise"),
        ("api", "Parameters of both lists", f"({Settings().max_rows} unless configured)"),
        ("api", "Parameters of both lists", f"more than {query.MOST_PAIRS} parameters"),
        ("api", "Parameters of both lists", f"longer than {query.MOST_CHARACTERS} characters"),
        ("api", "Parameters of both lists", f"({query.MOST_CURSOR_CHARACTERS:,} for a `cursor`)"),
        ("sdk", "Lists", f"asks for pages of {walk.ROWS[0]:,}"),
        ("sdk", "Lists", f"through {walk._MOST_EMPTY} pages without an item"),
        *(("sdk", "What can go wrong", f"| `{name}` | {limit:g} |") for name, limit in asdict(Limits()).items()),
        ("sdk", "What can go wrong", f"at most {Limits().deadline:g} seconds in all"),
        ("sdk", "What can go wrong", f"more than {calls.LARGEST // 1_000_000} MB"),
        ("stand-in", "When some requests fail", f"up to {connections._EXTRA_THREADS} delayed answers"),
    ],
)
def test_figures_in_the_documents_match_the_code(page: str, chapter: str, figure: str) -> None:
    text = (ROOT / f"docs/{page}.md").read_text("utf-8")
    assert figure in " ".join(_section(text, chapter).split())


def test_figures_in_the_help_match_the_code() -> None:
    assert f"has up to {batches.MOST:,} lines" in imports.EPILOG
    assert f"Each batch of {deletes.BATCH:,} " in deletes.EPILOG


def test_the_console_and_its_page_state_how_often_it_checks_for_news() -> None:
    folder = ROOT / "src/laudo/console"
    refresh = re.search(r"REFRESH_MS = (\d+)_000;", (folder / "lists.js").read_text("utf-8"))
    assert refresh is not None
    assert f"every {refresh[1]} seconds" in (ROOT / "docs/console.md").read_text("utf-8")
    assert f"a cada {refresh[1]} segundos" in (folder / "views/freshness.js").read_text("utf-8")


def test_api_and_operating_state_the_idle_timeout_of_connections() -> None:
    seconds = Settings().idle_timeout_ms // 1000
    for page, chapter in ((API, "Connections"), (OPERATING, "Behind a proxy")):
        assert f"{seconds} seconds" in " ".join(_section(page, chapter).split()), chapter
    assert f"{UNREAD} times as long" in _section(API, "Connections")


def test_operating_and_cli_list_every_command() -> None:
    commands = [path for path in _commands(cli.main, ()) if path]
    listed = re.findall(r"^\| `laudo ([a-z -]+?)(?: [A-Z\[-].*)?` \|", OPERATING + CLI, re.MULTILINE)
    assert sorted(listed) == sorted(commands)


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    context = click.Context(command)
    for child in command.list_commands(context):
        found = command.get_command(context, child)
        assert found is not None
        if not found.hidden:
            yield from _commands(found, (*path, child))


def test_operating_and_the_help_list_the_same_commands_for_exit_code_1() -> None:
    said = [re.search(r"done in part(.*?)(?:can be|could)", text, re.DOTALL) for text in (OPERATING, cli.EPILOG)]
    operating, help_ = (re.findall(r"`(\w+)`", found[1]) if found else [] for found in said)
    assert operating == help_
    assert operating


def test_api_explains_every_parameter() -> None:
    for resource in LISTS:
        chapters = _section(API, f"GET /{resource.name}") + _section(API, "Parameters of both lists")
        listed = set(re.findall(r"^\| `(\w+)` \|", chapters, re.MULTILINE))
        assert listed == set(query.accepted_names(resource)), resource.name


def test_operating_lists_the_session_settings_that_roles_need_for_pgbouncer() -> None:
    chapter = OPERATING.partition("\n### PgBouncer\n")[2].partition("\n### ")[0]
    for write in (False, True):
        options = conninfo_to_dict(address.conninfo("postgresql://db/laudo", Bounds(), write=write))["options"]
        sent = dict(re.findall(r"-c (\w+)=((?:\\.|\S)*)", str(options)))
        # The reader's role may write only the heartbeat anyway, and must be able to, so it cannot have this setting.
        sent.pop("default_transaction_read_only", None)
        sent["statement_timeout"] = f"{Bounds().statement_timeout_ms // 1000}s"
        for setting, value in sent.items():
            shown = f"{setting} = {value}".replace("\\ ", " ")
            assert re.search(rf"[` ]{re.escape(shown)}[`;]", chapter.replace("'", "")), setting


def test_api_states_the_length_limit_of_a_folded_search_name() -> None:
    assert f"written out, as `㎏` to `kg`, up to {values._MOST_FOLDED} characters" in _section(API, "GET /pessoas")
    assert values.fold("㎏") == "kg"


def test_api_lists_the_headers_that_scripts_of_other_origins_can_use() -> None:
    found = re.search(r"may send (.*?), and read (.*?)\. A request", " ".join(_section(API, "Headers").split()))
    assert found is not None
    named = [", ".join(re.findall(r"`([\w-]+)`", part)) for part in found.groups()]
    assert named == [edges._ALLOWED_HEADERS, edges._EXPOSED_HEADERS]


def test_api_shows_every_field() -> None:
    for resource in LISTS:
        shown = re.findall(r'^ {8}"(\w+)":', _section(API, f"GET /{resource.name}"), re.MULTILINE)
        assert shown == [field.name for field in resource.fields], resource.name
    assert re.findall(r'^ {4}"(\w+)":', _section(API, "Asking"), re.MULTILINE) == [field for field, _ in PROFILE]


def test_api_lists_every_error() -> None:
    rows = re.findall(r"^\| (\d{3}) \| `([\w ]+)` \|", _section(API, "Errors"), re.MULTILINE)
    assert rows == [(str(kind.status), kind.error) for kind in errors.TABLE]


def test_operating_lists_every_field_of_a_log_line() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", _section(OPERATING, "Logs"), re.MULTILINE)
    assert ", ".join(rows) == ", ".join(f"`{field}`" for field in Line.__struct_fields__)


def test_operating_lists_every_metric_with_its_labels() -> None:
    script = """
from laudo.server import metrics
for family in (*metrics._families(), metrics._lag()):
    print(family._name + ("_total" if family._type == "counter" else ""), *family._labelnames)
"""  # In a process of its own: whoever imports prometheus_client first decides where it counts.
    done = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True)
    listed = re.findall(r"^- `(laudo_\w+)`(.*)", _section(OPERATING, "Metrics"), re.MULTILINE)
    assert [[name, *re.findall(r"`(\w+)`", labels)] for name, labels in listed] == [
        line.split() for line in done.stdout.splitlines()
    ]


def test_api_lists_every_value_of_an_enumeration() -> None:
    for resource in LISTS:
        chapter = _section(API, f"GET /{resource.name}") + _section(API, "Parameters of both lists")
        for filter_ in resource.filters:
            row = re.search(rf"^\| `{filter_.name}` \|([^|]*)\|", chapter, re.MULTILINE)
            assert row is not None
            if filter_.kind.choices:
                assert tuple(re.findall(r"`([^`]+)`", row[1])) == filter_.kind.choices, filter_.name


def test_the_sdk_page_lists_the_ssl_cert_environment_variables() -> None:
    read = set(re.findall(r"SSL_CERT_\w+", inspect.getsource(transports)))
    assert read <= set(re.findall(r"`(SSL_CERT_\w+)`", (ROOT / "docs/sdk.md").read_text("utf-8")))


@pytest.mark.parametrize("page", DECISIONS, ids=name)
def test_a_decision_says_what_would_change_our_mind(page: Path) -> None:
    text = page.read_text("utf-8")
    heading = re.match(r"# (\d+)\. ", text)
    assert heading is not None
    assert int(heading[1]) == int(page.name[:4])
    for part in ("**Decision.**", "**Why.**", "**What would change our mind.**"):
        assert part in text


def test_decisions_are_numbered_without_gaps_and_all_linked() -> None:
    assert [int(page.name[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    for page in DECISIONS:
        assert f"(docs/decisions/{page.name})" in ARCHITECTURE


def test_the_code_map_matches_the_source_folder() -> None:
    source = ROOT / "src/laudo"
    folder = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if (path.is_dir() and any(path.rglob("*.py"))) or (path.suffix == ".py" and path.name != "__init__.py")
    }
    folder.add("console")
    assert set(_code_map(ARCHITECTURE)) == folder


def test_the_console_map_matches_its_folder() -> None:
    folder = ROOT / "src/laudo/console"
    modules = {path.relative_to(folder).as_posix() for path in folder.rglob("*.js") if "vendor" not in path.parts}
    page = (ROOT / "docs/console.md").read_text("utf-8")
    assert set(re.findall(r"^\| `([\w/]+\.js)` \|", page, re.MULTILINE)) == modules


def _code_map(text: str) -> Iterator[str]:
    """Read the tree below `src/laudo/`: two blanks indent one level, and a folder's name ends in a slash.

    One line may name several modules, separated by commas.
    """
    lines = text.partition("\nsrc/laudo/\n")[2].splitlines()
    parents: list[str] = []
    for line in lines:
        if not line.startswith(" "):
            return
        depth = (len(line) - len(line.lstrip())) // 2 - 1
        for entry in re.split(r"(?<!,) ", line.strip())[0].split(", "):
            parents[depth:] = [entry.rstrip("/")]
            yield "/".join(parents)


# Links that must resolve.


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_relative_link_resolves(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", _without_code(page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if anchor:
            assert anchor in _anchors(linked.read_text("utf-8")), target


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def _section(text: str, heading: str) -> str:
    found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,2}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[2]


# Examples that must run: in every ```console block the `$` lines are one script, the other lines its output.


@dataclass(frozen=True, slots=True)
class Example:
    """The console blocks of one page in their order, since later ones may build on earlier ones."""

    page: str
    blocks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A running demo."""

    base: str
    token: str


def _examples() -> list[Example]:
    found = []
    for page in PAGES:
        blocks = _blocks(page, "console")
        if blocks:
            found.append(Example(name(page), tuple(blocks)))
    return found


def _blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Serve a demo on a free port, from a new folder, as a newcomer would."""
    folder = tmp_path_factory.mktemp("demo")
    port = _free_port()
    command = ["laudo", "demo", "--port", str(port), "--store", f"sqlite:///{folder}/laudo.db"]
    with (
        (folder / "err").open("w") as errors,
        subprocess.Popen(
            command, cwd=folder, env=_environment(), stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            base = f"http://127.0.0.1:{port}"
            token = _printed_token(process)
            with httpx.Client(transport=httpx.HTTPTransport(retries=6)) as client:
                client.get(f"{base}/ready").raise_for_status()
            yield Live(base=base, token=token)
        finally:
            process.terminate()
            process.communicate(timeout=20)


def _printed_token(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        token = re.search(r"laudo_\w{38}", line)
        if token:
            return token[0]
    raise AssertionError("the demo printed no token")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LAUDO_")}
    scripts = Path(sys.executable).parent
    return kept | {"PATH": f"{scripts}{os.pathsep}{kept['PATH']}", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}


@pytest.mark.xdist_group("demo")
@pytest.mark.parametrize("example", _examples(), ids=lambda example: example.page)
def test_console_examples_print_what_the_page_shows(example: Example, live: Live, tmp_path: Path) -> None:
    if not (shutil.which("curl") and shutil.which("bash")):
        pytest.skip("the examples need bash and curl")
    for block in example.blocks:
        steps = _steps(block)
        for (command, expected), (status, answer) in zip(steps, _run(steps, live, tmp_path), strict=True):
            if not expected:
                assert status == 0, f"{command}\n{answer}"
            else:
                assert _alike(expected, answer), f"{command}\n\nexpected\n{expected}\n\nanswered\n{answer}"


def _steps(block: str) -> list[tuple[str, str]]:
    """Split a block into commands, each with the output shown below it; a backslash continues a line."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    pattern = re.compile(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)\Z", re.DOTALL)
    found = [pattern.match(part) for part in parts]
    return [(match[1], match[2].strip()) for match in found if match]


def _run(steps: list[tuple[str, str]], live: Live, folder: Path) -> list[tuple[int, str]]:
    """Run the commands in one shell; returns each command's exit code and output."""
    script = "\n".join(f"{command}\nprintf '\\0%s\\0' $?" for command, _ in steps)
    done = subprocess.run(
        ["bash", "-c", script.replace("http://127.0.0.1:8000", live.base)],
        cwd=folder,
        env=_client_environment(live, folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    parts = done.stdout.split("\0")
    return [(int(status), answer.strip()) for answer, status in zip(parts[::2], parts[1::2], strict=False)]


def _client_environment(live: Live, folder: Path) -> dict[str, str]:
    """Return an environment for a client of the demo that keeps all its files in the folder."""
    access = {"LAUDO_URL": live.base, "LAUDO_TOKEN": live.token, "XDG_CONFIG_HOME": str(folder)}
    return _environment() | access | {"BASE": live.base, "TOKEN": live.token}


@pytest.mark.xdist_group("demo")
@pytest.mark.parametrize("page", [page for page in PAGES if "```pycon" in page.read_text("utf-8")], ids=name)
def test_python_examples_print_what_the_page_shows(page: Path, live: Live, tmp_path: Path) -> None:
    blocks = _blocks(page, "pycon")
    (tmp_path / "examples.txt").write_text("\n".join(blocks).replace("…", "..."), "utf-8")
    options = ["-o", "ELLIPSIS", "-o", "IGNORE_EXCEPTION_DETAIL"]
    done = subprocess.run(
        [sys.executable, "-m", "doctest", *options, "examples.txt"],
        cwd=tmp_path,
        env=_client_environment(live, tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.xdist_group("demo")
def test_the_documented_pytest_fixture_serves_the_reports_of_a_file(tmp_path: Path) -> None:
    page = ROOT / "docs/stand-in.md"
    [fixture, test], [report] = _blocks(page, "python"), _blocks(page, "json")
    counts = test + "        assert client.contar() == 1\n"
    for file, text in (("conftest.py", fixture), ("test_client.py", counts), ("relatorios.ndjson", report)):
        (tmp_path / file).write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)],
        cwd=tmp_path,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(("heading", "tool"), [("Backups of SQLite", "sqlite3"), ("In a container", "docker")])
def test_documented_backup_commands_fail_if_vacuum_into_fails(heading: str, tool: str, tmp_path: Path) -> None:
    """On a full disk SQLite leaves a partial copy, and later commands would turn it into a store without tables."""
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```$", _section(OPERATING, heading), re.MULTILINE | re.DOTALL)
    [commands] = [block for block in blocks if "VACUUM INTO" in block]
    failing = tmp_path / tool
    failing.write_text('#!/bin/sh\ncase "$*" in *"VACUUM INTO"*) exit 13; esac\n')
    failing.chmod(0o700)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    assert subprocess.run(["sh", "-c", commands], cwd=tmp_path, env={"PATH": path}, check=False).returncode == 13
    assert [*tmp_path.iterdir()] == [failing]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_documented_commands_write_secrets_to_owner_only_files(page: Path) -> None:
    commands = re.findall(r"^.*(?:laudo find|token create|pg_dump|docker exec) .*> .*$", page.read_text(), re.MULTILINE)
    assert [command for command in commands if "(umask 077; " not in command] == []


def _alike(expected: str, answer: str) -> bool:
    """Compare an answer with the one shown: refusals and plain text word for word, other JSON by its shape."""
    try:
        shown: JSON = json.loads(expected)
    except ValueError:
        return _same_text(expected, answer)
    given: JSON = json.loads(answer)
    refused = isinstance(shown, dict) and "error" in shown
    return _same(shown, given, exactly=refused)


def _same(shown: JSON, given: JSON, *, exactly: bool) -> bool:
    if isinstance(shown, dict) and isinstance(given, dict):
        pairs = zip(shown.values(), given.values(), strict=False)
        return list(shown) == list(given) and all(_same(*pair, exactly=exactly) for pair in pairs)
    if isinstance(shown, list) and isinstance(given, list):
        if exactly or not shown:
            return shown == given
        return bool(given) and all(_same(shown[0], item, exactly=False) for item in given)
    if isinstance(shown, str) and isinstance(given, str):
        return not exactly or _same_text(shown, given)
    return shown == given if exactly else type(shown) is type(given)


def _same_text(shown: str, given: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, given, re.DOTALL) is not None
