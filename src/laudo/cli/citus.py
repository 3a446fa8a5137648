"""`laudo citus plan|apply`: distributes the tables of a store on PostgreSQL over many machines."""

from typing import Final

import click

from laudo.cli import output, usage
from laudo.cli.options import opened, with_settings
from laudo.server.config import Settings

DONE: Final = "the tables are distributed as planned"


@click.group(cls=usage.Group)
def citus() -> None:
    """Distribute a PostgreSQL store over several machines.

    All rows of an organization are on the same machine.
    """


@citus.command()
@with_settings("store")
def plan(settings: Settings) -> None:
    """Print the SQL that distributes the tables.

    This changes nothing. The store must be migrated; it does not need Citus yet.
    """
    from laudo.server import citus as cluster

    with opened(settings, distributed=False) as database, database.snapshot() as connection:
        statements = cluster.plan(connection)
    if statements:
        click.echo(cluster.script(statements), nl=False)
    else:
        output.note(DONE)


@citus.command()
@with_settings("store")
def apply(settings: Settings) -> None:
    """Distribute all tables, with their rows, in one transaction.

    Running it again changes nothing; after `laudo migrate` it distributes the new tables.
    """
    from laudo.server import citus as cluster

    with opened(settings, write=True, distributed=False) as database:
        statements = cluster.apply(database)
    output.summary("\n".join(f"{statement};" for statement in statements) or DONE)
