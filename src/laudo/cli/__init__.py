"""The command line: a command's module is loaded when the command is named, its engine when it runs."""

import os
from importlib import import_module
from typing import Any, Final, NoReturn

import click

from laudo.cli import output


class Entry(click.Group):
    """A group whose commands are the rows of COMMANDS, and which reports every failure in one clear line."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"laudo.cli.{module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for an unknown one, give all commands to the error, so that it can suggest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def main(self, *args: Any, **extra: Any) -> NoReturn:  # noqa: ANN401 - click's signature
        """Run, and exit with a documented code."""
        with output.ended_by_signal(), output.failures_in_one_line():
            if COMPLETION in os.environ:
                import_module("laudo.cli.completion")
            code = super().main(*args, **(extra | {"prog_name": "laudo", "standalone_mode": False}))
            output.exit_with(code)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:  # noqa: ANN401 - the same
        """Parse the command line; `--help` is printed here."""
        with output.flushed():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - the same
        with output.flushed():
            return super().invoke(ctx)


COMMANDS: Final = {
    "login": ("login", "login"),
    "logout": ("login", "logout"),
    "relatorios": ("queries", "relatorios"),
    "pessoas": ("queries", "pessoas"),
    "usuario": ("queries", "usuario"),
    "export": ("export", "export"),
    "pull": ("pull", "pull"),
    "serve": ("service", "serve"),
    "demo": ("service", "demo"),
    "migrate": ("service", "migrate"),
    "config": ("service", "show_config"),
    "import": ("imports", "import_reports"),
    "delete": ("deletes", "delete_reports"),
    "find": ("persons", "find_reports"),
    "erase": ("persons", "erase_reports"),
    "prune": ("pruning", "prune_reports"),
    "verify": ("verifying", "verify"),
    "copy": ("copying", "copy_store"),
    "citus": ("citus", "citus"),
    "organization": ("accounts", "organization"),
    "account": ("accounts", "account"),
    "user": ("accounts", "user"),
    "token": ("tokens", "token"),
}
"""Command -> its module in this package and its name there, in the order of `laudo --help`."""

COMPLETION: Final = "_LAUDO_COMPLETE"
"""The environment variable that a shell sets when it asks for completions."""

EPILOG: Final = """
\b
Exit codes:
  0    done
  1    done in part: `import`, `delete`, `find`, `erase`, `prune`, `copy`,
       `export`, `pull` or `migrate` could not finish, or `create` could not
       print what it made; or probably done, but the connection was lost at
       the very end; or `verify` or `copy` found differences
  2    nothing done, or `find` could not print everything; stderr says why
  130  interrupted

Every setting is a flag (--max-rows), an environment variable (LAUDO_MAX_ROWS) and a key of laudo.toml (max_rows).
Flags override variables, and variables override the file. `laudo config` shows the settings in force. NO_COLOR is
respected.
"""


@click.group(cls=Entry, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="laudo", message="%(prog)s %(version)s")
def main() -> None:
    """Query an identity-validation service, or run the query side of one."""
