"""Options made from the table of resources: a new filter of the API becomes an option without more code."""

from collections.abc import Callable
from typing import Any

import click

from laudo.core.resources import Filter, Resource

Command = Callable[..., int | None]
Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def filters(resource: Resource) -> Callable[[Command], Command]:
    """Add `--sort` and an option for each filter of a list; the command gets them under their names in the API."""

    def decorate(command: Command) -> Command:
        orders = tuple(f"{sign}{field.name}" for field in resource.fields for sign in ("", "-"))
        text = "Field to sort by; put - before it for descending order."
        command = click.option("--sort", "sort", metavar="FIELD", shell_complete=_completer(orders), help=text)(command)
        for filter_ in reversed(resource.filters):
            command = _option(filter_)(command)
        return command

    return decorate


def epilog(resource: Resource, text: str) -> str:
    """Give the end of a command's help: a text, and the fields that an item has."""
    return f"{text}\nFields: {', '.join(field.name for field in resource.fields)}."


def pop_given(resource: Resource, options: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of `filters` from `options` and give those that are set; raises ParameterError."""
    from laudo.client import questions

    names = [filter_.name for filter_ in resource.filters]
    parameters = {name: value for name in ("sort", *names) if (value := options.pop(name)) is not None}
    getattr(questions, resource.name)(
        {name: parameters[name] for name in parameters if name != "sort"}, sort=parameters.get("sort")
    )
    return parameters


def _option(filter_: Filter) -> Callable[[Command], Command]:
    flag = f"--{filter_.name.replace('_', '-')}"
    shown = "|".join(map(_typed, filter_.kind.choices or [filter_.kind.example]))
    complete = _completer(filter_.kind.choices)
    return click.option(flag, filter_.name, metavar=shown, shell_complete=complete, help=filter_.english)


def _typed(value: str) -> str:
    """Write a value as one types it in a shell."""
    return f'"{value}"' if " " in value else value


def _completer(choices: tuple[str, ...]) -> Complete:
    """Make a function that completes a value from these choices, ignoring case; the client decides what is accepted."""
    return lambda _context, _parameter, text: [choice for choice in choices if choice.upper().startswith(text.upper())]
