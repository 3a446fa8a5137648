"""A browser, a served demonstration, and tabs in each look. A fault in a tab fails the test that used it.

The console depends only on the responses, which are the same on every engine, so it is tested on SQLite alone.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from console.driver import FLAGS, FLOWS, LOOKS, Console, Look, chromium
from live.server import Place, Server, serving


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of the console on two workers at most: each needs a browser and a server."""
    here = Path(__file__).parent
    ours = [item for item in items if item.path.is_relative_to(here)]
    for number, item in enumerate(ours):
        item.add_marker(pytest.mark.xdist_group(f"console{number % 2}"))


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    yield from launched(playwright, chromium())


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """10,000 invented reports, with a token of the account that has the most."""
    return Place(tmp_path_factory.mktemp("console")).demonstrate()


@pytest.fixture(scope="session")
def server(place: Place) -> Iterator[Server]:
    with serving(place, "--workers", "1") as running:
        yield running


@pytest.fixture
def api(server: Server) -> Iterator[httpx.Client]:
    """A client of the same API, to compare with what the console shows."""
    with httpx.Client(base_url=server.url, headers={"Authorization": server.place.token}) as client:
        yield client


@pytest.fixture(params=FLOWS, ids=str)
def tab(request: pytest.FixtureRequest, browser: Browser, server: Server) -> Iterator[Console]:
    """A tab of the test's own; two runs cover both themes and both widths."""
    yield from opened(browser, server, request.param)


@pytest.fixture(params=LOOKS, ids=str)
def any_look(request: pytest.FixtureRequest, browser: Browser, server: Server) -> Iterator[Console]:
    """A tab for each combination of theme and width."""
    yield from opened(browser, server, request.param)


@pytest.fixture
def phone(browser: Browser, server: Server) -> Iterator[Console]:
    """A tab of phone size."""
    yield from opened(browser, server, LOOKS[1])


@pytest.fixture
def wide(browser: Browser, server: Server) -> Iterator[Console]:
    """A tab of desktop size; also for tests that do not depend on the look."""
    yield from opened(browser, server, LOOKS[0])


@pytest.fixture(scope="module")
def shared(browser: Browser, server: Server) -> Iterator[Console]:
    """One tab that all tests of a file share; they must leave it as it is."""
    yield from opened(browser, server, LOOKS[0])


def launched(playwright: Playwright, path: str | None) -> Iterator[Browser]:
    if path is None:
        if os.environ.get("REQUIRE_BROWSER"):
            pytest.fail("there is no Chromium: tests/console/install-browser could not install one")
        pytest.skip("there is no Chromium")
    browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
    yield browser
    browser.close()


def opened(browser: Browser, server: Server, look: Look) -> Iterator[Console]:
    """Give a tab of this look: one that was used before and reset, or else a new one.

    A used tab has the files of the console in its cache, which halves the time to open the console.
    """
    left = _LEFT.setdefault((browser, server, look), [])
    console = left.pop() if left else new_tab(browser, server, look)
    yield console
    leaked = [request.url for request in console.requests if console.token in request.url]
    if console.lasts or console.base != server.url:
        console.page.context.close()
    else:
        console.leave()
        left.append(console)
    faults, console.faults = console.faults, []
    assert not faults
    assert not leaked


_LEFT: Final[dict[tuple[Browser, Server, Look], list[Console]]] = {}
"""Tabs that are not in use."""


def new_tab(browser: Browser, server: Server, look: Look) -> Console:
    context = browser.new_context(
        viewport=look.size,
        color_scheme=look.scheme,
        locale="pt-BR",
        timezone_id="America/Sao_Paulo",
        permissions=["clipboard-read", "clipboard-write"],
        reduced_motion="reduce",
        accept_downloads=True,
    )
    context.set_default_timeout(30_000)
    console = Console(context.new_page(), server.url, server.place.token, look)
    console.watch()
    console.leave()
    return console
