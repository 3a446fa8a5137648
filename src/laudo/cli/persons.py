"""`laudo find` and `laudo erase`: print or delete all that an organization has of persons or companies."""

import re
from collections.abc import Sequence
from io import BufferedReader
from typing import TYPE_CHECKING, Final, cast

import click

from laudo.cli import output, stdin, terminal, usage
from laudo.cli.deletes import Done, Kind, delete_named, parse_lines
from laudo.cli.options import opened, with_organization, with_settings, with_vacuum
from laudo.server.config import Settings

if TYPE_CHECKING:
    from laudo.server.ingest.removal import StoredReport

_FIND: Final = """
\b
Exit codes:
  0    all reports are printed, if there are any
  1    some lines were not a CPF or CNPJ
  2    no line was one, or not all reports could be read or printed
  130  interrupted

Each report is a line of JSON, with the fields of the API, id_conta and nome_pessoa. A line that is not a CPF or CNPJ
does not stop the rest: stderr gives its number, never its text.
"""

_ERASE: Final = """
\b
Exit codes:
  0    all are gone: deleted now, or already absent
  1    some lines were not a CPF or CNPJ, or it failed after some batches or
       in --vacuum
  2    nothing done
  130  interrupted; run it again to finish

A line that is not a CPF or CNPJ does not stop the rest: stderr gives its number, never its text. `laudo find` shows
what would be deleted. SQLite's file may keep parts of deleted data in gaps until --vacuum rewrites it; if you run
several commands, give it with the last one.
"""


@click.command("find", cls=usage.Command, epilog=_FIND)
@click.argument("documentos", metavar="-", nargs=-1, required=True)
@with_organization
@with_settings("store")
def find_reports(settings: Settings, *, documentos: tuple[str, ...], id_organizacao: int) -> int:
    """Print all reports of persons and companies.

    - reads their CPFs and CNPJs from stdin, one per line, with or without mask; a repeated one is printed once.
    """
    from laudo.server.accounts import owners
    from laudo.server.ingest import removal
    from laudo.server.ingest.lines import Source

    _require_stdin(documentos)
    kind, source = _kind(), Source(cast("BufferedReader", stdin.opened().buffer))
    lines = rejected = reports = 0
    printed: set[str] = set()
    with opened(settings) as database:
        with database.snapshot() as connection:
            owners(connection, id_organizacao)
        for number, document in filter(None, parse_lines(source.lines(), kind)):
            lines += 1
            if not isinstance(document, str):
                rejected += 1
                output.note(f"line {number}: {document.reason}")
                continue
            if document in printed:
                continue
            printed.add(document)
            with database.snapshot() as connection:
                for report in removal.reports_of(connection, id_organizacao, document):
                    reports += 1
                    click.echo(terminal.escaped(_line(report)))
    if rejected == lines:
        raise output.Failure(f"no line is a {kind.name}")
    output.note(output.counted(reports, "report"))
    return output.IN_PART if rejected else 0


@click.command("erase", cls=usage.Command, epilog=_ERASE)
@click.argument("documentos", metavar="-", nargs=-1, required=True)
@with_organization
@with_vacuum
@with_settings("store")
def erase_reports(settings: Settings, *, documentos: tuple[str, ...], id_organizacao: int, vacuum: bool) -> int:
    """Delete all reports of persons and companies.

    - reads their CPFs and CNPJs from stdin, one per line, with or without mask.
    """
    from laudo.server.ingest.removal import Removal

    _require_stdin(documentos)
    with opened(settings, write=True, vacuum=vacuum) as database:
        removal = Removal(database, id_organizacao)

        def erase(batch: list[str], done: Done) -> None:
            absent = set(batch)
            for removed in removal.delete_documents(batch):
                done.deleted += removed.reports
                absent -= removed.documentos
            done.absent += len(absent)

        return delete_named(database, documentos, _kind(), erase)


def _require_stdin(arguments: Sequence[str]) -> None:
    """Refuse documents given as arguments, which other users of the machine can see."""
    if tuple(arguments) != ("-",):
        raise output.Failure(
            "documents are read from stdin, since other users can see arguments; hint: give - as the only argument"
        )


def _kind() -> Kind:
    from laudo.core.values import DOCUMENTO

    return Kind("CPF or CNPJ", lambda text: DOCUMENTO.parse(_PUNCTUATION("", text) if _MASKED(text) else text))


def _line(found: "StoredReport") -> str:
    """Give a report's item as the API shows it, with the account's id and the person's name added."""
    import msgspec

    nome_pessoa = msgspec.json.encode(found.nome_pessoa).decode()
    return f'{{"id_conta":{found.id_conta},{found.item[1:-1]},"nome_pessoa":{nome_pessoa}}}'


_MASKED: Final = re.compile(r"\d{3}\.\d{3}\.\d{3}-\d\d|\w\w\.\w{3}\.\w{3}/\w{4}-\d\d", re.ASCII).fullmatch
"""Matches a document as forms and letters write it."""
_PUNCTUATION: Final = re.compile("[./-]").sub
