"""Errors of a wrong command line: they say what is wrong and what to give, never what was given."""

from collections import Counter
from typing import Final

import click
from click.core import augment_usage_errors


class Command(click.Command):
    """Takes each option once, as a request takes each parameter: one of two values would be ignored."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; raises BadParameter for an option that is given again."""
        if not ctx.resilient_parsing:  # It is set while a shell completes.
            with augment_usage_errors(ctx):
                _, _, given = self.make_parser(ctx).parse_args(list(args))
            for param, times in Counter(given).items():
                if times > 1 and isinstance(param, click.Option) and not (param.is_flag or isinstance(param, Setting)):
                    raise click.BadParameter("given more than once, but takes one value", ctx, param)
        return super().parse_args(ctx, args)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command


class Setting(click.Option):
    """An option whose last value wins, over the environment and over an earlier one in a script or an alias."""


def describe(error: click.ClickException) -> str:
    """Describe an error in one line, without the values that were typed.

    Cron and CI keep what is printed, and a token or a CPF may be anywhere on the command line.
    """
    context = error.ctx if isinstance(error, click.UsageError) else None
    text, hint = error.format_message(), f"{context.command_path} --help" if context else ""
    if isinstance(error, click.NoSuchCommand):
        text, hint = _unknown(error, "command", error.command_name, hint)
    elif isinstance(error, click.NoSuchOption):
        text, hint = _unknown(error, "option", error.option_name, hint)
    elif isinstance(error, click.BadOptionUsage) and context and error.message.endswith(_NO_VALUE):
        text = f"{error.option_name} needs {_accepted(context, error.option_name)}"
    elif context and error.message.startswith(_EXTRA_ARGUMENT):
        text, hint = "unexpected argument", _ARGUMENT_HINTS.get(context.info_name, hint)
    return text.removesuffix(".") + (f"; hint: {hint}" if hint else "")


def _unknown(error: click.NoSuchCommand | click.NoSuchOption, kind: str, name: str, hint: str) -> tuple[str, str]:
    """Repeat a name only if it is clearly a misspelt one: a value may be attached to the name of an option."""
    similar = error.possibilities or []
    is_misspelt = any(len(name) <= len(known) + _MAX_ADDED for known in similar)
    text = error.message if is_misspelt else f"there is no such {kind}"
    return text, f"did you mean {' or '.join(similar)}?" if similar else hint


def _accepted(context: click.Context, flag: str) -> str:
    """Say what an option takes: in words if its type has them, else as in its help."""
    option = next(param for param in context.command.params if flag in param.opts)
    return getattr(option.type, "accepts", f"a value: {option.make_metavar(context)}")


_NO_VALUE: Final = "requires an argument."
_EXTRA_ARGUMENT: Final = "Got unexpected extra argument"
_MAX_ADDED: Final = 2
"""How many characters longer a misspelt name may be than the one that was meant."""
_QUOTES: Final = "a value with spaces needs quotes"
_ARGUMENT_HINTS: Final[dict[str | None, str]] = {
    "login": "the token is read from standard input, never given as an argument",
    "relatorios": f"filters are options, such as --numero-documento; {_QUOTES}",
    "pessoas": f"filters are options, such as --cpf; {_QUOTES}",
}
"""Last word of a command that takes no argument -> how to give what an argument was meant to say."""
