"""Options made from the table of resources: a new filter of the API is an option without another line."""

from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from laudo.core.resources import Filter, Resource

Command = Callable[..., int | None]


class Value(click.ParamType[str]):
    """A text whose possible values, if there are few, complete; what is accepted is for the client to say."""

    name = "text"

    def __init__(self, choices: tuple[str, ...]) -> None:
        self._choices = choices

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(each) for each in self._choices if each.upper().startswith(incomplete.upper())]


def filters(resource: Resource) -> Callable[[Command], Command]:
    """Give a command `--sort` and an option for each filter of a list; it is called with their names of the wire."""

    def decorate(command: Command) -> Command:
        orders = tuple(f"{sign}{field.name}" for field in resource.fields for sign in ("", "-"))
        text = "Field to sort by, with - before it for descending."
        command = click.option("--sort", metavar="FIELD", type=Value(orders), help=text)(command)
        for filter_ in reversed(resource.filters):
            command = _option(filter_)(command)
        return command

    return decorate


def given(resource: Resource, options: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `filters` out of all options: those that were given, as the client wants them."""
    names = [filter_.name for filter_ in resource.filters]
    return {name: value for name in ("sort", *names) if (value := options.pop(name)) is not None}


def _option(filter_: Filter) -> Callable[[Command], Command]:
    flag = f"--{filter_.name.replace('_', '-')}"
    shown = "|".join(filter_.kind.choices) or filter_.kind.example
    kind = Value(filter_.kind.choices)
    return click.option(flag, filter_.name, metavar=shown, type=kind, help=filter_.description)
