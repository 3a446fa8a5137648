"""The console is light: its files are small, each is loaded once, and nothing else is requested."""

import gzip

from console.driver import Console
from laudo.server.console import FOLDER

MOST_BYTES = 90_000
MOST_MODULE_LINES = 300


def test_the_console_is_smaller_than_90_kb_compressed() -> None:
    files = [file for file in FOLDER.rglob("*") if file.suffix in {".js", ".css", ".svg", ".html"}]
    sizes = {file.name: len(gzip.compress(file.read_bytes(), 9)) for file in files}
    assert sum(sizes.values()) < MOST_BYTES, sizes


def test_opening_the_list_loads_each_file_once_and_nothing_else(wide: Console) -> None:
    """Measures what is requested, not how long it takes, which depends on how busy the machine is."""
    wide.enter()
    wide.page.goto("about:blank")
    asked: list[str] = []
    wide.lasting.on("request", lambda request: asked.append(request.url.removeprefix(wide.base).partition("?")[0]))
    wide.page.goto(wide.base, wait_until="commit")
    wide.rows.first.wait_for()
    files = [path for path in asked if path.startswith("/console/")]
    assert len(files) == len(set(files)) > 0, asked
    assert {*asked} - {*files} <= {"/", "/openapi.json", "/usuario", "/relatorios"}, asked


def test_the_list_is_requested_before_domcontentloaded(wide: Console) -> None:
    """The request is sent while the modules are evaluated, which DOMContentLoaded waits for."""
    wide.enter()
    asked, ended = wide.page.evaluate(
        "[performance.getEntriesByType('resource').find(({ name }) => name.endsWith('/relatorios')).startTime,"
        " performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd]"
    )
    assert 0 < asked < ended


def test_modules_are_short_and_start_with_a_charter() -> None:
    for file in FOLDER.rglob("*.js"):
        if "vendor" in file.parts:
            continue
        lines = file.read_text("utf-8").splitlines()
        assert len(lines) <= MOST_MODULE_LINES, file
        assert lines[0].startswith("// "), file
        assert lines[0].endswith("."), file


def test_every_vendored_file_is_listed_in_the_readme() -> None:
    listed = (FOLDER / "vendor/README.md").read_text("utf-8")
    for file in (FOLDER / "vendor").iterdir():
        assert file.name in listed or file.name == "README.md"
