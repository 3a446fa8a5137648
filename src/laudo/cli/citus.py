"""`laudo citus plan|apply`: distributes the tables of a store on PostgreSQL over many machines."""

from typing import Final

import click

from laudo.cli import output, usage
from laudo.cli.options import opened, with_settings
from laudo.server.config import Settings

DONE: Final = "the tables are distributed as planned"


@click.group(cls=usage.Group)
def citus() -> None:
    """Distribute a store on PostgreSQL over many machines.

    All that belongs to an organization lies on one of them.
    """


@citus.command()
@with_settings("store")
def plan(settings: Settings) -> None:
    """Print the SQL that distributes every table.

    Nothing is changed. The store must be migrated; it need not have Citus.
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
    """Distribute every table, with the rows it has.

    All of it or nothing. Doing so again changes nothing; after `laudo migrate` it distributes what is new.
    """
    from laudo.server import citus as cluster

    with opened(settings, write=True, distributed=False) as database:
        statements = cluster.apply(database)
    output.summary("\n".join(f"{statement};" for statement in statements) or DONE)
