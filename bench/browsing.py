"""How soon the console's first list is there, in Chromium, beside a page of this project's server without a script.

    python bench/browsing.py --rounds 9

Each round opens a new browser context, whose cache is empty, and then comes again, with what it has kept. Milliseconds
from the navigation until the first row is there, as the page's own clock tells; `document` is the same until the
reference's Markdown, which is text alone, has been read. Rounds alternate; shown are the median and the least. Chromium
shares the cores with the server.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

from playwright.sync_api import Browser, BrowserContext, sync_playwright

from client import serving

REPORTS: Final = 10_000
FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_LOADED: Final = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
_FIRST_ROW: Final = """
new Promise((found) => {
  const look = () => document.querySelector('[data-row]') ? found(performance.now()) : requestAnimationFrame(look);
  look();
})
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="how often everything is measured (default: 9)")
    parser.add_argument("--port", type=int, default=8794, help="where the service listens (default: 8794)")
    arguments = parser.parse_args()
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        raise SystemExit("there is no Chromium; hint: tests/console/install-browser")
    found: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="laudo-bench-") as folder,
        serving(Path(folder), REPORTS, arguments.port) as (base, token),
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=path, args=list(FLAGS)) as browser,
    ):
        for number in range(arguments.rounds + 1):
            for name, taken in _round(browser, base, token).items():
                if number:
                    found.setdefault(name, []).append(taken)
    for name, samples in found.items():
        print(f"{name:<26}{median(samples):>7.0f} ms, at least {min(samples):.0f}")


def _round(browser: Browser, base: str, token: str) -> dict[str, float]:
    """Measure once, in milliseconds; the browser has a token already."""
    with browser.new_context() as context:
        context.add_init_script(
            f"if (location.protocol === 'http:') sessionStorage.setItem('laudo.token {base}', '{token}')"
        )
        return {
            "document": _taken(context, f"{base}/docs.md", _LOADED),
            "first list": _taken(context, base, _FIRST_ROW),
            "first list, again": _taken(context, base, _FIRST_ROW),
        }


def _taken(context: BrowserContext, url: str, until: str) -> float:
    page = context.new_page()
    page.goto(url, wait_until="domcontentloaded")
    taken = float(page.evaluate(until))
    page.close()
    return taken


if __name__ == "__main__":
    main()
