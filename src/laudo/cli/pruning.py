"""`laudo prune`: deletes an organization's reports that have not changed since a date, batch by batch."""

from typing import Final

import click

from laudo.cli import output, progress, usage
from laudo.cli.options import opened, with_organization, with_settings, with_vacuum
from laudo.cli.ranges import Past
from laudo.server.config import Settings

EPILOG: Final = """
\b
Exit codes:
  0    all are gone, if there were any
  1    it failed after some batches, or in --vacuum
  2    nothing done
  130  interrupted; run it again to finish
"""


@click.command("prune", cls=usage.Command, epilog=EPILOG)
@with_organization
@click.option(
    "--before", metavar="DATE", type=Past(), required=True, help="Delete reports that have not changed since then."
)
@click.option("--dry-run", is_flag=True, help="Count the reports, but delete nothing.")
@with_vacuum
@with_settings("store")
def prune_reports(settings: Settings, *, id_organizacao: int, before: int, dry_run: bool, vacuum: bool) -> int:
    """Delete reports that have not changed since a date."""
    from laudo.server.ingest.removal import Removal

    if dry_run and vacuum:
        raise output.Failure("--dry-run and --vacuum cannot be used together; hint: leave one of them out")
    with opened(settings, write=not dry_run, vacuum=vacuum) as database:
        removal = Removal(database, id_organizacao)
        total = removal.count_before(before)
        if dry_run:
            output.summary(f"dry run: {total} to delete, nothing deleted")
            return 0
        deleted = 0
        with (
            output.resumable(lambda: f"{deleted} deleted; hint: run it again to finish" if deleted else ""),
            progress.counting("deleting", "reports") as update,
        ):
            for removed in removal.delete_before(before):
                deleted += removed.reports
                update(deleted, max(deleted, total))
        output.summary(f"{deleted} deleted")
    return 0
