"""`laudo relatorios|pessoas|usuario`: asks a service, with every filter of the table as an option."""

import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from laudo.cli import answers, filters, login, output, terminal, usage, watching
from laudo.cli.ranges import Multiple, Real, Whole
from laudo.core.query import STEP
from laudo.core.resources import PESSOAS, PROFILE, RELATORIOS, Resource

if TYPE_CHECKING:
    from laudo.client import Laudo

EPILOG: Final = """
Without a format option, a terminal shows a table, or the items one below the other if it is too narrow (--columns
leaves some out); a file or another program gets tab-separated columns. CPFs are masked. --json, --jq and --csv print
whole values.
"""
_CLEAR_SCREEN: Final = "\x1b[H\x1b[2J"
_CONTRADICTIONS: Final = {
    "--all": ("--page", "--watch"),
    "--columns": ("--count", "--curl", "--jq", "--json"),
    "--count": ("--all", "--csv", "--jq", "--json", "--page", "--reveal", "--rows", "--sort", "--watch"),
    "--csv": ("--jq", "--json", "--reveal"),
    "--curl": ("--all", "--count", "--csv", "--jq", "--json", "--reveal", "--watch"),
    "--jq": ("--reveal",),
    "--json": ("--reveal",),
}
"""Option -> the options that contradict it: one of the two would be ignored."""
_COMPLEMENTS: Final = (("--workers", "--all"), ("--every", "--watch"))
"""Pairs of options: the first one would be ignored without the second."""


def list_command(resource: Resource) -> click.Command:
    """Make the command that asks for a list."""
    names = [field.name for field in resource.fields]

    @answers.formats(names)
    @click.option("--page", type=Whole(min=1), default=1, help="Page to show.  [default: 1]")
    @click.option("--rows", type=Multiple(STEP), help="Items per page, a multiple of 25.  [default: 25]")
    @click.option("--all", "all_", is_flag=True, help="Show all items instead of one page.")
    @click.option(
        "--workers", type=Whole(1, 32), default=1, help="With --all: pages to request at a time.  [default: 1]"
    )
    @click.option("--count", is_flag=True, help="Print only the number of items.")
    @click.option("--watch", is_flag=True, help="Print again whenever something changes, until Ctrl-C.")
    @click.option(
        "--every", type=Real(0.1, 86_400), default=2.0, help="With --watch: seconds between checks.  [default: 2]"
    )
    @click.option("--curl", is_flag=True, help="Print the request instead of sending it.")
    @filters.filters(resource)
    def ask(**options: Any) -> None:  # noqa: ANN401 - what click gives
        _refuse_ignored_options(click.get_current_context())
        parameters = filters.pop_given(resource, options)
        access = login.access()
        if options.pop("curl"):
            click.echo(_curl(access.base_url, resource, parameters, options))
            return
        with access.client() as client:
            _ask(client, resource, parameters, **options)

    ask.__doc__ = f"List the {resource.name} of a service."
    return click.command(resource.name, cls=usage.Command, epilog=filters.epilog(resource, EPILOG))(ask)


relatorios: Final = list_command(RELATORIOS)
pessoas: Final = list_command(PESSOAS)


@click.command(cls=usage.Command, epilog=f"Fields: {', '.join(name for name, _ in PROFILE)}.")
@answers.with_json([name for name, _ in PROFILE], "JSON")
@click.option("--jq", metavar="EXPRESSION", help="Filter the JSON with a jq expression.")
@click.option("--reveal", is_flag=True, help="Do not mask the token.")
@click.option("--curl", is_flag=True, help="Print the request instead of sending it.")
def usuario(*, json_: Sequence[str] | None, jq: str | None, reveal: bool, curl: bool) -> None:
    """Show who is asking: the profile that belongs to the token."""
    _refuse_ignored_options(click.get_current_context(), exclusive=("--curl",))
    access = login.access()
    if curl:
        click.echo(_curl_command(f"{access.base_url}/usuario"))
        return
    fields = json_ or [name for name, _ in PROFILE]
    with access.client() as client:
        profile = client.usuario()
    shown = {name: getattr(profile, name) for name in fields}
    if "api_token" in shown and not reveal:
        shown |= {"api_token": "***"}
    if jq is not None:
        answers.query(shown, jq)
    elif json_ is not None:
        click.echo(terminal.as_json(shown))
    else:
        answers.pairs(shown)


def _refuse_ignored_options(context: click.Context, *, exclusive: Iterable[str] = tuple(_CONTRADICTIONS)) -> None:
    given = {
        option.opts[0]
        for option in context.command.params
        if option.name and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    }
    for pair in ((name, other) for name in exclusive for other in _CONTRADICTIONS[name]):
        if given.issuperset(pair):
            raise click.UsageError(f"{' and '.join(pair)} cannot be used together", context)
    for name, needed in _COMPLEMENTS:
        if name in given and needed not in given:
            raise click.UsageError(f"{name} needs {needed}", context)


def _ask(
    client: "Laudo",
    resource: Resource,
    parameters: dict[str, Any],
    *,
    page: int,
    rows: int | None,
    all_: bool,
    workers: int,
    count: bool,
    watch: bool,
    every: float,
    **formats: Any,  # noqa: ANN401 - for `answers.show`
) -> None:
    names = [field.name for field in resource.fields]
    method = getattr(client, resource.name)
    if count:
        click.echo(method(**parameters).total)
    elif watch:
        _watch(lambda: method(page=page, rows=rows, **parameters).itens, names, formats, every=every)
    elif all_:
        batches = getattr(client, f"{resource.name}_in_batches")(rows=rows, workers=workers, **parameters)
        answers.show(_pages(batches), names, **formats)
    else:
        found = method(page=page, rows=rows, **parameters)
        answers.show([_to_wire(found.itens)], names, **formats)
        if answers.in_columns(**formats):
            output.note(_page_position(found, resource.name))


def _page_position(found: Any, name: str) -> str:  # noqa: ANN401 - a page of either list
    """Say which part of the list a page is, so that nobody takes it for the whole list."""
    total = f"{output.counted(found.total, name.removesuffix('s'))} in all"
    pages = -(-found.total // max(found.linhas, len(found.itens), 1))
    if 0 < pages < found.pagina:
        return f"page {found.pagina} is beyond the last page, {pages}; {total}"
    if pages > 1:
        return f"page {found.pagina} of {pages}, {total}; --page and --all show the others"
    return total


def _pages(batches: Iterable[Any]) -> Iterator[Iterable[answers.Wire]]:
    """Yield the items of each batch; a failure says how much of the list is missing."""
    from laudo.client import LaudoError

    done = total = 0
    try:
        for batch in batches:
            yield _to_wire(batch.itens)
            done, total = done + len(batch.itens), batch.total
    except LaudoError as error:
        if not done:
            raise
        raise output.Failure(f"the list breaks off after {done} of {output.counted(total, 'item')}: {error}") from error


def _to_wire(itens: Iterable[Any]) -> Iterable[answers.Wire]:
    return (item.to_wire() for item in itens)


def _watch(fetch: Any, names: list[str], formats: dict[str, Any], *, every: float) -> None:  # noqa: ANN401 - of either list
    output.end_on_next_interrupt()  # Nothing has failed: it is how one ends it.
    is_screen = sys.stdout.isatty() and not terminal.is_dumb()
    for itens in watching.changes(fetch, every=every):
        click.echo(_CLEAR_SCREEN if is_screen else "", nl=False)
        most_lines = shutil.get_terminal_size().lines - 1 if is_screen else None  # The cursor needs one.
        answers.show([_to_wire(itens)], names, **formats, most_lines=most_lines)


def _curl(base_url: str, resource: Resource, parameters: dict[str, Any], options: dict[str, Any]) -> str:
    from laudo.client import calls, questions

    call = getattr(questions, resource.name)(parameters, sort=parameters.pop("sort", None))
    return _curl_command(calls.address(base_url, questions.page(call, page=options["page"], rows=options["rows"])))


def _curl_command(url: str) -> str:
    """Write the request as a command to paste, with the token's variable in place of the token."""
    return f'curl -H "Authorization: ${login.TOKEN}" {shlex.quote(url)}'
