"""`laudo verify`: checks that all that is kept besides the reports agrees with them."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from laudo.cli import output, progress, usage
from laudo.cli.options import as_json, opened, with_settings
from laudo.server.config import Settings

if TYPE_CHECKING:
    from laudo.server.database import Database
    from laudo.server.ingest.verify import Difference

DIFFERS: Final = 1

EPILOG: Final = """
\b
Exit codes:
  0    nothing differs, or --repair has repaired what differed and a second
       pass found nothing
  1    something differs, or --repair could not repair all of it
  2    could not verify: wrong usage, settings or store; stderr says why
  130  interrupted; each account and organization is unchanged or repaired

Recounts all reports and compares what is kept beside them: totals of facets, buckets and tallies of each order,
persons, the index of their words, versions, items. Each difference is one line of numbers, without names or documents.
The service can keep running; while --repair rewrites an account or organization, other writers wait.

--repair never deletes reports, accounts and users, and cannot repair those of an account or organization that does not
exist, nor facets and instants that are lost in the reports' items too. These are listed with what helps, which --json
calls the remedy.
"""


@click.command("verify", cls=usage.Command, epilog=EPILOG)
@click.option("--repair", is_flag=True, help="Rewrite what differs, then verify again.")
@as_json
@with_settings("store")
def verify(settings: Settings, *, repair: bool, json_: bool) -> int:
    """Recount everything and list what differs."""
    from laudo.server.ingest.verify import repair as rewrite

    with opened(settings, write=repair) as database:
        found = _differences(database)
        output.listing([asdict(each) for each in found], as_json=True) if json_ else _print_differences(found)
        if not found:
            output.note("nothing differs")
            return 0
        if not repair:
            output.note("; ".join([output.counted(len(found), "difference"), *_hints(found)]))
            return DIFFERS
        with progress.counting("repairing") as update:
            rewrite(database, found, update)
        left = _differences(database)
    for difference in left:
        output.note(f"still differs: {difference}")
    repaired = f"{output.counted(len(found), 'difference')}, {_repaired(found)}"
    second_pass = f"a second pass found {output.counted(len(left), 'difference') if left else 'none'}"
    warning = [_PERHAPS_NOT_ALL] if _has_uncounted(found) else []
    output.note("; ".join([repaired, second_pass, *warning, *_hints(left)]))
    return DIFFERS if left else 0


def _differences(database: "Database") -> "list[Difference]":
    from laudo.server.ingest.verify import verify as differing

    with progress.counting("verifying") as update:
        return list(differing(database, update))


def _print_differences(found: "list[Difference]") -> None:
    for difference in found:
        click.echo(str(difference))


def _repaired(found: "list[Difference]") -> str:
    number = sum(not difference.remedy for difference in found)
    if number == len(found):
        return "repaired"
    return f"{number} of them repaired" if number else "not repaired"


def _hints(found: "list[Difference]") -> list[str]:
    """Give each remedy once, first what is true of --repair."""
    from laudo.server.ingest import uncounted

    repair = uncounted.HINT if _has_uncounted(found) else _REPAIR_HINT
    remedies = sorted({difference.remedy or "" for difference in found})
    return [f"hint: {remedy or repair}" for remedy in remedies]


def _has_uncounted(found: "list[Difference]") -> bool:
    from laudo.server.ingest.verify import UNCOUNTED

    return any(difference.what == UNCOUNTED for difference in found)


_PERHAPS_NOT_ALL: Final = "if a copy was not finished here, perhaps not all reports have come"
_REPAIR_HINT: Final = "`laudo verify --repair` rewrites what differs"
