"""The console is light, and there at once."""

import gzip
from time import perf_counter

from console.driver import Console
from laudo.server.console import FOLDER

MOST_BYTES = 120_000
MOST_MODULE_LINES = 300


def test_the_whole_of_it_is_below_120_kb_compressed() -> None:
    files = [file for file in FOLDER.rglob("*") if file.suffix in {".js", ".css", ".svg", ".html"}]
    sizes = {file.name: len(gzip.compress(file.read_bytes(), 9)) for file in files}
    assert sum(sizes.values()) < MOST_BYTES, sizes


def test_the_first_list_is_there_within_a_second(wide: Console) -> None:
    wide.enter()
    times = []
    for _ in range(3):
        began = perf_counter()
        wide.page.goto("about:blank")
        wide.page.goto(wide.base, wait_until="commit")
        wide.rows.first.wait_for()
        times.append(perf_counter() - began)
    assert min(times) < 1, times


def test_modules_are_short_and_open_with_their_charter() -> None:
    for file in FOLDER.rglob("*.js"):
        if "vendor" in file.parts:
            continue
        lines = file.read_text("utf-8").splitlines()
        assert len(lines) <= MOST_MODULE_LINES, file
        assert lines[0].startswith("// "), file
        assert lines[0].endswith("."), file


def test_what_others_wrote_is_listed_with_version_and_licence() -> None:
    listed = (FOLDER / "vendor/README.md").read_text("utf-8")
    for file in (FOLDER / "vendor").iterdir():
        assert file.name in listed or file.name == "README.md"
