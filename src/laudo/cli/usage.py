"""What is said of a command line that cannot be read: what is wrong and what to give, never what was given."""

from typing import Final

import click


def said(error: click.ClickException) -> str:
    """Say it in one line. Cron and CI keep what is printed, and a token or a CPF may stand anywhere."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    text, hint = error.format_message(), f"{context.command_path} --help" if context else ""
    if isinstance(error, click.NoSuchCommand):
        text, hint = _unknown(error, "command", error.command_name, hint)
    elif isinstance(error, click.NoSuchOption):
        text, hint = _unknown(error, "option", error.option_name, hint)
    elif context and error.message.startswith(_SURPLUS):
        text, hint = "an argument too many", _WAYS.get(context.info_name, hint)
    return text.removesuffix(".") + (f"; hint: {hint}" if hint else "")


def _unknown(error: click.NoSuchCommand | click.NoSuchOption, kind: str, name: str, hint: str) -> tuple[str, str]:
    """Repeat a name only where it is plainly another one misspelt: a value may be joined to the name of an option."""
    near = error.possibilities or []
    is_misspelt = any(len(name) <= len(each) + _MOST_ADDED for each in near)
    text = error.message if is_misspelt else f"there is no such {kind}"
    return text, f"did you mean {' or '.join(near)}?" if near else hint


_SURPLUS: Final = "Got unexpected extra argument"
_MOST_ADDED: Final = 2
"""Characters that a misspelt name may have more than the one that was meant."""
_WAYS: Final[dict[str | None, str]] = {
    "login": "the token is read from standard input, never given as an argument",
    "relatorios": "filters are options, such as --numero-documento",
    "pessoas": "filters are options, such as --cpf",
}
"""The last word of a command that takes no argument -> how what was meant by one is given."""
