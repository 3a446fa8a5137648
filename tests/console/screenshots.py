"""Draws docs/screenshots: each view in light and dark, with the demonstration's data, on a fixed day."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.sync_api import Browser, sync_playwright

ROOT: Final = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from console.driver import FLAGS, PHONE, Console, Look, chromium  # noqa: E402 - found by the line above
from live.server import Place, serving  # noqa: E402 - the same

FOLDER: Final = ROOT / "docs/screenshots"
MOST_BYTES: Final = 200_000
NOW: Final = datetime(2026, 9, 30, 20, tzinfo=UTC)
DESK: Final = (1280, 680)


def filtered(console: Console) -> None:
    console.enter("#/relatorios?tipo_pessoa=PESSOA&atualizado_em_de=2026-09-01")


def opened(console: Console) -> None:
    console.enter("#/relatorios?status=EM+ANALISE")
    console.rows.nth(4).click()
    console.page.locator(".others li, .others p").first.wait_for()


def searched(console: Console) -> None:
    console.enter("#/pessoas")
    console.page.get_by_role("searchbox", name="Buscar pessoas").fill("maria sil")
    console.page.wait_for_timeout(500)


def drawn(console: Console) -> None:
    console.enter("#/painel")
    console.page.locator(".volume .chart").wait_for()


def asked(console: Console) -> None:
    console.page.goto(console.base)
    console.page.get_by_label("Token de acesso").wait_for()


VIEWS: Final[dict[str, tuple[Callable[[Console], object], tuple[int, int]]]] = {
    "entrar": (asked, DESK),
    "relatorios": (filtered, DESK),
    "detalhe": (opened, (1280, 660)),
    "pessoas": (searched, DESK),
    "painel": (drawn, (1280, 870)),
    "perfil": (lambda console: console.enter("#/perfil"), DESK),
    "docs": (lambda console: console.enter("docs"), DESK),
    "telefone": (lambda console: console.enter(""), PHONE),
}


def main() -> None:
    """Draw every view; fails if a picture is too large for the repository."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with demonstration() as (base, token), sync_playwright() as playwright:
        # Date fields use the browser's language, which Chromium with windows reads from this variable.
        environment: dict[str, str | float | bool] = {**os.environ, "LANGUAGE": "pt_BR"}
        browser = playwright.chromium.launch(
            executable_path=chromium(with_windows=True), args=list(FLAGS), env=environment
        )
        for name, (show, size) in VIEWS.items():
            for theme in ("light", "dark"):
                file = FOLDER / f"{name}-{theme}.png"
                console = new_console(browser, Look(theme, *size), base, token)
                show(console)
                console.page.wait_for_timeout(600)
                console.page.screenshot(path=file)
                console.page.context.close()
                sys.stdout.write(f"{file.relative_to(ROOT)}  {file.stat().st_size:,} bytes\n")
        browser.close()
    heavy = [file.name for file in FOLDER.glob("*.png") if file.stat().st_size > MOST_BYTES]
    if heavy:
        raise SystemExit(f"more than {MOST_BYTES:,} bytes: {', '.join(heavy)}")


def new_console(browser: Browser, look: Look, base: str, token: str) -> Console:
    context = browser.new_context(
        viewport={"width": look.width, "height": look.height},
        color_scheme="dark" if look.theme == "dark" else "light",
        locale="pt-BR",
        timezone_id="America/Sao_Paulo",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.clock.set_fixed_time(NOW)
    return Console(page, base, token, look)


@contextmanager
def demonstration() -> Iterator[tuple[str, str]]:
    """Serve the demonstration; gives its address and a token."""
    with TemporaryDirectory() as folder:
        place = Place(Path(folder)).demonstrate()
        with serving(place, "--workers", "1") as server:
            yield server.url, place.token


if __name__ == "__main__":
    main()
