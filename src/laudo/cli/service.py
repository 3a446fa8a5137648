"""`laudo serve|demo|migrate|config`: the service itself."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from laudo.cli import options, output, serving, usage
from laudo.cli.options import ALL, as_json, flags, opened, with_settings
from laudo.cli.ranges import Instant, Whole
from laudo.server import config
from laudo.server.config import SETTINGS, Settings

if TYPE_CHECKING:
    from laudo.demo import Demo

DEMO_STORE: Final = "sqlite:///demo.db"
_NEWER: Final = "the store is newer than this version of laudo, which may serve it but not write reports to it"
_REFUSED: Final = (
    "the token is refused: it was revoked, or its user, account or organization is disabled; "
    "hint: create another token, or enable them again"
)

_SERVE: Final = """
\b
Exit codes:
  0    stopped by SIGTERM, SIGHUP or Ctrl-C, after it had finished the
       requests in flight
  1    a worker died again and again; stderr says why
  2    it could not start, or could not replace a worker
  130  interrupted by Ctrl-C before it was ready
"""


@click.command(cls=usage.Command, epilog=_SERVE)
@with_settings(*ALL)
def serve(settings: Settings) -> None:
    """Serve the API. The store's schema must be current: see `laudo migrate`."""
    serving.run(settings)


@click.command(cls=usage.Command)
@click.option("--count", type=Whole(1, 100_000_000), default=10_000, show_default=True, help="Number of reports.")
@click.option(
    "--until", "until_ms", metavar="INSTANT", type=Instant(), help="Where the dates of the reports end.  [default: now]"
)
@click.option("--no-serve", is_flag=True, help="Only fill the store, do not serve.")
@click.option("--live", is_flag=True, help="Let reports arrive and change while it serves.")
@with_settings("store", "key_file", "host", "port", "workers", "log", "rehearse", store=DEMO_STORE, log=False)
def demo(settings: Settings, *, count: int, until_ms: int | None, no_serve: bool, live: bool) -> None:
    """Serve invented reports for a first look.

    Fills the store with two organizations, prints a token and a curl command to paste, and serves.

    The reports are the same each time, except for their dates, which end at --until. A second start finds the data of
    the first and prints the same token. The store is sqlite:///demo.db unless you give --store; LAUDO_STORE is not
    used, so that a real store never gets invented reports by mistake.
    """
    if no_serve and live:
        raise click.UsageError("--live and --no-serve cannot be used together")
    _check_until(until_ms)
    if not no_serve:
        serving.free_address(settings.host, settings.port)  # Before the address is printed: it may be taken.
    filled = _fill(settings, count, until_ms)
    if live:
        from laudo.server.ingest import ahead

        with ahead.run(_run_live(settings, filled)):
            serving.run(settings)
    elif not no_serve:
        serving.run(settings)


@click.command(cls=usage.Command)
@click.option("--grants", is_flag=True, help="Also create the roles of a PostgreSQL store and grant them their rights.")
@with_settings("store")
def migrate(settings: Settings, *, grants: bool) -> None:
    """Create a store, or bring its schema up to date.

    Running it again changes nothing.

    The roles are laudo_owner (migrate), laudo_writer (import, accounts) and laudo_reader (serve). They cannot log in:
    `GRANT laudo_reader TO login` gives a login the rights of one. What later migrations add is granted as well.
    """
    from laudo.server import stores

    if grants and stores.file_path(settings.store):
        raise output.Failure("a SQLite store has no roles: whoever may read or write the file may use the store")
    show = output.note if grants else output.summary  # Then stdout has only the SQL.
    applied, is_newer = _migrate(settings, show)
    if not applied:
        show(_NEWER if is_newer else "the store is up to date")
    if grants:
        _grant(settings, fail_code=output.IN_PART if applied else output.NOTHING_DONE)


@click.command("config", cls=usage.Command)
@as_json
@flags(*ALL)
def show_config(*, config_file: Path | None, json_: bool, **given: object) -> None:
    """Show the settings in force.

    Shows each value and where it came from; passwords are masked.
    """
    settings, sources = config.resolve(given, os.environ, config_file)
    items = [
        {"setting": setting.name, "value": setting.show(settings), "source": sources[setting.name]}
        for setting in SETTINGS
    ]
    output.listing(items, as_json=json_)


def _migrate(settings: Settings, show: Callable[[str], object] = lambda _text: None) -> tuple[list[str], bool]:
    """Bring the schema up to date, and `show` each step; gives the steps, and whether the store is newer than this."""
    from laudo.server import schema
    from laudo.server.migrations import migrate as bring_up_to_date
    from laudo.server.stores import open_store

    applied: list[str] = []

    def on_applied(name: str) -> None:
        applied.append(name)
        show(f"applied {name}")

    hint = "run `laudo migrate` again to finish"
    kept = output.resumable(lambda: f"{', '.join(applied)}; hint: {hint}" if applied else "")
    with kept, closing(open_store(settings.store, write=True)) as database:
        bring_up_to_date(database, on_applied=on_applied)
        with database.snapshot() as connection:
            return applied, schema.is_newer(connection)


def _grant(settings: Settings, *, fail_code: int) -> None:
    from laudo.server import roles
    from laudo.server.stores import open_store

    with closing(open_store(settings.store, write=True)) as database:
        try:
            statements = roles.grant(database)
        except roles.RolesError as error:
            click.echo("".join(f"{statement};\n" for statement in error.statements), nl=False)
            output.fail(f"{error}; hint: let somebody who may do so run the statements printed above", code=fail_code)
    output.summary("\n".join(f"{statement};" for statement in statements) or "the roles are up to date")


def _check_until(until_ms: int | None) -> None:
    from laudo import demo as invented
    from laudo.core.values import render_instant

    if until_ms is not None and until_ms < invented.EARLIEST_MS:
        earliest = render_instant(invented.EARLIEST_MS)
        message = f"--until must be {earliest} or later: the reports span three years"
        raise click.UsageError(message)


def _fill(settings: Settings, count: int, until_ms: int | None) -> "Demo":
    from laudo import demo as invented
    from laudo.server import callers, stores, tokens

    if file := stores.file_path(settings.store):
        file.parent.mkdir(parents=True, exist_ok=True)
    _migrate(settings)
    key = options.key(settings, create=True)
    until_ms = time.time_ns() // 1_000_000 if until_ms is None else until_ms
    with opened(settings, write=True, distributed=False) as store:
        filled = invented.fill(store, key, count=count, until_ms=until_ms)
        token = filled.accesses[0].token
        works = callers.caller_of(store, tokens.hash_token(key, token), now_ms=time.time_ns() // 1_000_000)
    if not filled.written:
        output.note("the store was filled before and is left as it is; hint: for another --count, give another --store")
    if not works:
        output.note(_REFUSED)
    base = serving.base_url(settings)
    click.echo(f"base URL  {base}")
    click.echo(f"token     {token}")
    click.echo(f"try       curl -H 'Authorization: {token}' '{base}/relatorios?tipo_pessoa=PESSOA'")
    return filled


def _run_live(settings: Settings, filled: "Demo") -> Iterator[None]:
    """Write what happens to the reports, in a separate process that ends with the service; yields nothing."""
    from laudo import demo as invented
    from laudo.server.database import StoreError

    try:
        with opened(settings, write=True, distributed=False) as store:
            invented.run_live(store, filled)
    except StoreError as error:
        output.note(f"no more reports arrive: {error}; hint: start again once the store can be written")
    yield from ()
