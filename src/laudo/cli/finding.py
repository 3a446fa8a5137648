"""`laudo find`: all that an organization's accounts keep of persons or companies, straight from the store."""

from io import BufferedReader
from typing import TYPE_CHECKING, Final, cast

import click

from laudo.cli import output, stdin
from laudo.cli.deletes import batches, documents, named
from laudo.cli.options import of_organization, opened, with_settings
from laudo.server.config import Settings

if TYPE_CHECKING:
    from laudo.server.ingest.removal import Found

EPILOG: Final = """
\b
Exit codes:
  0    all reports are printed, if there are any
  1    some lines were no CPF or CNPJ
  2    nothing done

Each report is a line of JSON, with the fields of the API, id_conta and nome_pessoa. What is no CPF or CNPJ never stops
the rest: its line's number goes to stderr, never what it is.
"""


@click.command("find", epilog=EPILOG)
@click.argument("documentos", metavar="-", nargs=-1, required=True)
@of_organization
@with_settings("store")
def find_reports(settings: Settings, *, documentos: tuple[str, ...], id_organizacao: int) -> int:
    """Print the reports of persons and companies.

    - reads their CPFs and CNPJs, one a line, from stdin.
    """
    from laudo.core.values import DOCUMENTO
    from laudo.server.accounts import Level, owners
    from laudo.server.ingest.lines import Source
    from laudo.server.ingest.removal import of

    documents(documentos)
    source = Source(cast("BufferedReader", stdin.opened().buffer))
    lines = rejected = reports = 0
    with opened(settings) as database:
        for batch in batches(named(source.lines(), DOCUMENTO.parse, "CPF or CNPJ without mask")):
            lines += len(batch)
            for number, each in batch:
                if not isinstance(each, str):
                    rejected += 1
                    output.note(f"line {number}: {each.reason}")
                    continue
                with database.snapshot() as connection:
                    found = owners(connection, Level.ORGANIZATION, id_organizacao)
                    for report in of(connection, found, each):
                        reports += 1
                        click.echo(_line(report))
    if rejected == lines:
        raise output.Failure("no line is a CPF or CNPJ without mask")
    output.note(f"{reports} report{'s' * (reports != 1)}")
    return output.IN_PART if rejected else 0


def _line(found: "Found") -> str:
    """Give a report's item, as the API shows it, with what the API leaves out around it."""
    import msgspec

    nome_pessoa = msgspec.json.encode(found.nome_pessoa).decode()
    return f'{{"id_conta":{found.id_conta},{found.item[1:-1]},"nome_pessoa":{nome_pessoa}}}'
