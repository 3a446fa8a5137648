"""Drives the console in a real browser, and records what must never happen: errors, policy violations, leaks."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final, Literal

from playwright.sync_api import ConsoleMessage, Locator, Page, Request, Route, ViewportSize

from awaiting import PATIENCE

FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--lang=pt-BR"),
)
_AXE: Final = (Path(__file__).parent / "vendor/axe.js").read_text("utf-8")
_TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_REFUSED: Final = "Failed to load resource"
"""The browser logs this for every answer that is not 2xx, even if the page handles it."""

_NOWHERE: Final = "/health"
"""Where a tab is before and after a test: no page of the console, but of its origin, so that storage can be cleared."""
_ICON: Final = "favicon.ico"
"""Chromium with windows requests this at `_NOWHERE`, which names no icon, unlike the pages."""
_PROBED: Final = "**/health"
_PROBE: Final = "fetch('/health', { cache: 'no-store' }).then(({ status }) => status, () => 0)"
"""Requests a route that is always there; gives the status, or 0 without an answer."""

_ENTER: Final = "([name, token]) => sessionStorage.getItem('left') || sessionStorage.setItem(name, token)"
_CLEAR: Final = """() => {
    localStorage.clear()
    sessionStorage.clear()
    return [Date, setTimeout, fetch].every((native) => `${native}`.includes('[native code]'))
}"""

_SMALL_TARGETS: Final = """[...document.querySelectorAll('a, button, input, select, summary')].filter((e) => {
    if (e.matches('.sr, .skip, [hidden]') || !e.checkVisibility()) return false
    const inline = e.matches('p a, dd a, .accepted a')
    const { width, height } = e.getBoundingClientRect()
    const label = e.matches('[type=checkbox]') ? e.closest('label').getBoundingClientRect() : { width: 0, height: 0 }
    return !inline && width > 1 && (Math.max(width, label.width) < 24 || Math.max(height, label.height) < 24)
}).map((e) => e.outerHTML.slice(0, 160))"""
_COUNTED: Final = """[...document.querySelectorAll('[data-filter] .number')].every((one) =>
    one.textContent && !one.matches('[aria-busy=true]'))"""


def chromium(*, with_windows: bool = False) -> str | None:
    """Give the path of the system's Chromium; prefers the headless shell, which takes a third less time."""
    without = () if with_windows else ("chromium-headless-shell",)
    names = (*without, "chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@dataclass(frozen=True, slots=True)
class Look:
    """A theme and a window size."""

    theme: str
    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.theme}-{self.width}"

    @property
    def size(self) -> ViewportSize:
        return {"width": self.width, "height": self.height}

    @property
    def scheme(self) -> Literal["dark", "light"]:
        return "dark" if self.theme == "dark" else "light"


WIDE: Final = (1440, 900)
PHONE: Final = (390, 844)
LOOKS: Final = tuple(Look(theme, *size) for theme in ("light", "dark") for size in (WIDE, PHONE))
FLOWS: Final = (Look("light", *WIDE), Look("dark", *PHONE))
"""Each theme and each width once. Flows run in these; other tests check each combination."""


@dataclass(slots=True)
class Console:
    """A tab with the console."""

    page: Page
    base: str
    token: str = field(repr=False)
    look: Look = LOOKS[0]
    faults: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    refusals_expected: bool = False
    lasts: bool = False
    """Whether something was done to the tab that would affect its next page, too."""

    def watch(self) -> None:
        """Start recording faults and requests."""

        def on_message(message: ConsoleMessage) -> None:
            expected = self.refusals_expected or message.location["url"] == f"{self.base}/{_ICON}"
            expected = expected and message.text.startswith(_REFUSED)
            if message.type in {"error", "warning"} and not expected:
                self.faults.append(f"{message.type}: {message.text}")

        def on_request(request: Request) -> None:
            self.requests.append(request)

        self.page.on("console", on_message)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("request", on_request)
        self.page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) =>"
            " console.error('policy', event.violatedDirective, event.blockedURI))"
        )

    @property
    def lasting(self) -> Page:
        """The page, for changes that would outlast it: the tab is closed after the test and not used again.

        Answering with an altered file of the console is such a change, too: browsers cache the file.
        """
        self.lasts = True
        return self.page

    def leave(self) -> None:
        """Reset the tab for the next test."""
        for page in self.page.context.pages:
            if page != self.page:
                page.close()
        self.page.context.set_offline(False)
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.goto(self.base + _NOWHERE, wait_until="commit")
        assert self.page.evaluate(_CLEAR), "a lasting change was made without Console.lasting"
        self.page.context.clear_cookies()
        self.page.emulate_media(
            media="null", color_scheme=self.look.scheme, reduced_motion="reduce", forced_colors="null"
        )
        if self.page.viewport_size != self.look.size:
            self.page.set_viewport_size(self.look.size)
        self.page.mouse.move(-1, -1)
        session = self.page.context.new_cdp_session(self.page)
        session.send("Page.resetNavigationHistory")
        session.detach()
        self.requests.clear()
        self.refusals_expected = False

    def enter(self, address: str = "") -> "Console":
        """Open an address with the token already in the session, and wait until the page is loaded."""
        if not self.page.url.startswith(self.base):
            self.page.goto(self.base + _NOWHERE)
        self.page.evaluate(_ENTER, [self.own("token"), self.token])
        self.page.goto(f"{self.base}/{address}")
        self.settle()
        return self

    def own(self, what: str) -> str:
        """Give the name under which the tab stores something for its service."""
        return f"laudo.{what} {self.base}"

    def settle(self) -> None:
        """Wait until the page loads nothing more."""
        self.page.locator("main").first.wait_for()
        self.until("!document.querySelector('[aria-busy=true], .skeleton')")

    def until(self, expression: str, argument: object = None) -> None:
        """Wait until an expression is true. The page's policy forbids Playwright's own `wait_for_function`."""
        asked = f"async (given) => Boolean({expression})"
        self._wait(lambda: self.page.evaluate(asked, argument), f"never: {expression} {argument}")

    def _wait(self, condition: Callable[[], object], fault: str) -> None:
        """Like `awaiting.until`, but lets Playwright work meanwhile: it calls handlers only then."""
        ends = monotonic() + PATIENCE
        while not condition():
            assert monotonic() < ends, fault
            self.page.wait_for_timeout(20)

    def intercept(self, address: str | re.Pattern[str], answer: Callable[[Route], object]) -> None:
        """Answer in place of the service. Waits until that takes effect: until then, requests may still pass.

        For a page that is not open yet there is nothing to wait for.
        """
        self.page.route(address, answer)
        if not self.page.url.startswith(self.base) or self.page.url == self.base + _NOWHERE:
            return
        self.page.route(_PROBED, lambda route: route.fulfill(status=204))
        self.until(f"await {_PROBE} === 204")
        self.page.unroute(_PROBED)

    def hold(self, address: str | re.Pattern[str]) -> list[Route]:
        """Hold requests back, until the test answers them; gives those that have arrived so far."""
        held: list[Route] = []

        def hold(route: Route) -> None:
            held.append(route)

        self.intercept(address, hold)
        return held

    def await_first(self, held: Sequence[Route]) -> Route:
        """Wait until a request is held back; gives the first one."""
        self._wait(lambda: held, "no request was held back")
        return held[0]

    def disconnect(self) -> None:
        """Take the network away. Waits until that takes effect: until then, requests may still be answered."""
        self.page.context.set_offline(True)
        self.until(f"await {_PROBE} === 0")

    def reconnect(self) -> None:
        """Restore the network, then send the event `online`: the browser sends its own before requests can succeed."""
        self.page.context.set_offline(False)
        self.until(f"await {_PROBE} !== 0")
        self.page.evaluate("dispatchEvent(new Event('online'))")

    @property
    def phone(self) -> bool:
        return self.look.width < 900

    @property
    def rows(self) -> Locator:
        return self.page.locator("[data-row]")

    @property
    def total(self) -> int:
        return int(re.sub(r"\D", "", self.page.locator("[data-total]").inner_text()))

    @property
    def hash(self) -> str:
        return self.page.url.partition("#")[2]

    def await_counts(self) -> None:
        """Wait until every choice of a filter shows its count."""
        self.until(_COUNTED)

    def await_total(self, total: int) -> None:
        """Wait until the list shows this total and is loaded."""
        shown = f"{total:,}".replace(",", ".")
        self.until(
            "document.querySelector('[data-total]')?.textContent.split(' ')[0] === given"
            " && !document.querySelector('[aria-busy=true]')",
            shown,
        )

    def filters(self) -> None:
        """Open the filters, if they are not beside the list."""
        if self.phone and not self.page.locator(".filters").count():
            self.page.get_by_role("button", name="Filtros").click()

    def filtered(self) -> None:
        """Close the filters, if they are not beside the list."""
        if self.phone:
            self.page.get_by_role("button", name="Ver a lista").click()

    def find(self, text: str) -> None:
        """Search with the quick find."""
        box = self.page.locator("[data-find]")
        box.fill(text)
        box.press("Enter")
        self.settle()

    def run(self, module: str, expression: str) -> Any:  # noqa: ANN401 - a test knows what it asked for
        """Evaluate an expression with a module of the console as `m`."""
        folder = self.page.locator("script[type=module]").first.evaluate("script => script.src").rpartition("/")[0]
        return self.page.evaluate(f"import('{folder}/{module}').then((m) => {expression})")

    def flaws(self) -> list[str]:
        """Give what makes the page hard to use: violations, targets below 24 pixels, sideways scrolling."""
        sideways = [] if self.fits_its_width() else ["the page scrolls sideways"]
        return [*self.violations(), *self.page.evaluate(_SMALL_TARGETS), *sideways]

    def fits_its_width(self) -> bool:
        """Tell whether the page needs no sideways scrolling."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))

    def violations(self) -> list[str]:
        """Give the accessibility violations that axe-core finds."""
        self.page.evaluate(_AXE)
        found = self.page.evaluate(
            "(tags) => axe.run(document, { runOnly: tags, resultTypes: ['violations'], selectors: false })"
            ".then(({ violations }) =>"
            " violations.flatMap(({ id, nodes }) => nodes.map((n) => id + ': ' + n.html.slice(0, 160) + ' ' +"
            " n.failureSummary.slice(0, 300))))",
            _TAGS,
        )
        return list(found)
