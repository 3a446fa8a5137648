"""Flags made from the table of settings, and how commands open a store."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from laudo.cli import output, usage
from laudo.cli.ranges import Id
from laudo.server import config
from laudo.server.config import SETTINGS, Setting, Settings
from laudo.server.config.kinds import FILE

if TYPE_CHECKING:
    from laudo.server.database import Database

Command = Callable[..., int | None]
"""A function that click calls; the number that it returns, if any, is the exit code."""

ALL: Final = tuple(setting.name for setting in SETTINGS)


def with_settings(*names: str, **defaults: object) -> Callable[[Command], Command]:
    """Add a flag for each named setting, and --config; the command gets the Settings as its first argument.

    `defaults` stand for flags that are not given: they too win over the environment and the file.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*, config_file: Path | None, **options: object) -> int | None:
            given = {name: options.pop(name) for name in names}
            settings = config.load(_merged(defaults, given), os.environ, config_file)
            return command(settings, **options)

        return flags(*names, **defaults)(run)

    return decorate


def flags(*names: str, **defaults: object) -> Callable[[Command], Command]:
    """Add the flags of these settings, and --config; the help shows `defaults` in place of the table's."""

    def decorate(command: Command) -> Command:
        command = _CONFIG(command)
        for setting in reversed(SETTINGS):
            if setting.name in names:
                adjusted = setting.defaulting(defaults[setting.name]) if setting.name in defaults else setting
                command = _flag(adjusted)(command)
        return command

    return decorate


@contextmanager
def opened(
    settings: Settings, *, write: bool = False, distributed: bool = True, vacuum: bool = False
) -> "Iterator[Database]":
    """Open the store, whose schema must be current, so that a wrong path never makes an empty store.

    If Citus is installed, the tables must also be distributed as planned, unless `distributed` is False. With
    `vacuum`, the store's file is rewritten after the block ends without an error; raises Failure at once if the store
    is not in a file.
    """
    from laudo.server import citus
    from laudo.server.database import NO_VACUUM, PATIENT
    from laudo.server.schema import require_current
    from laudo.server.stores import file_path, open_store

    bounds = replace(PATIENT, prepare=settings.prepare)
    with closing(open_store(settings.store, bounds=bounds)) as database:
        if vacuum and not file_path(settings.store):
            raise output.Failure(f"--vacuum: {NO_VACUUM}")
        with database.snapshot() as connection:
            require_current(connection)
            if distributed:
                citus.check(connection)
        if not write:
            yield database
            return
    with closing(open_store(settings.store, write=True, bounds=bounds)) as database:
        yield database
        if vacuum:
            with output.resumable(lambda: "all deletions; hint: run it again to rewrite the file"):
                database.vacuum()


def key(settings: Settings, *, create: bool) -> bytes:
    """Load the key under which tokens are hashed; if a new one is made, tell the user to keep a copy."""
    from laudo.server import keys

    if create and keys.make(settings.key_file):
        output.note(
            f"created the key file {Path(settings.key_file).absolute()}; keep a copy, no token works without it"
        )
    return keys.load(settings.key_file)


def id_option(noun: str, name: str, about: str, *, required: bool = True) -> Callable[[Command], Command]:
    """Make an option that takes the id of an organization, an account or a user."""
    return click.option(f"--{noun}", name, metavar="ID", type=Id(noun), required=required, help=about)


def with_account(command: Command) -> Command:
    """Add --account, whose reports the command writes or deletes."""
    return id_option("account", "id_conta", "Id of the account that the reports belong to.")(command)


def with_organization(command: Command) -> Command:
    """Add --organization, whose reports, in all accounts, the command finds or deletes."""
    text = "Id of the organization that the reports belong to, in any account."
    return id_option("organization", "id_organizacao", text)(command)


def with_vacuum(command: Command) -> Command:
    """Add --vacuum, which the command passes to `opened`."""
    text = "Then rewrite SQLite's file: nothing deleted remains in it, and it is as small as possible."
    return click.option("--vacuum", is_flag=True, help=text)(command)


def as_json(command: Command) -> Command:
    return click.option("--json", "json_", is_flag=True, help="Print JSON.")(command)


_CONFIG: Final = click.option(
    "--config",
    "config_file",
    cls=usage.Setting,
    type=click.Path(path_type=Path),
    help="Settings file (TOML).  [default: LAUDO_CONFIG, or ./laudo.toml if it exists]",
)


def _flag(setting: Setting) -> Callable[[Command], Command]:
    text = setting.about.removesuffix(".")
    shown = setting.default_shown or "none"
    if setting.is_switch:
        names = f"{setting.flag}/--no-{setting.flag.removeprefix('--')}"
        return click.option(names, setting.name, cls=usage.Setting, default=None, help=f"{text}.  [default: {shown}]")
    metavar = "N" if isinstance(setting.default, int) else "TEXT"
    type_ = click.Path(readable=False) if setting.parse is FILE.parse else None  # Shells complete paths.
    return click.option(
        setting.flag, setting.name, cls=usage.Setting, metavar=metavar, type=type_, help=f"{text}.  [default: {shown}]"
    )


def _merged(defaults: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    return dict(defaults) | {name: value for name, value in given.items() if value is not None}
