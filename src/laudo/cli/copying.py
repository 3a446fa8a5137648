"""`laudo copy`: copies a store into another one, of either engine, and compares the two at the end."""

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from laudo.cli import output, progress, usage
from laudo.cli.options import opened, with_settings
from laudo.server.config import Settings

if TYPE_CHECKING:
    from laudo.server.database import Database
    from laudo.server.ingest.copying import Copy, Done

EPILOG: Final = """
\b
Exit codes:
  0    the stores are equal
  1    they differ because the source changed meanwhile, or the copy failed
       after some of it was done; run it again
  2    nothing done: wrong usage, or the target has data of its own; stderr
       says why
  130  interrupted; run it again to resume

LAUDO_STORE is not used. The target is a store created by `laudo migrate --store URL`, or an earlier copy, which is
brought up to date: reports that the source does not have are deleted there. The source is only read, and its service
can keep running. No service may use the target until the copy is done. Stop imports, at least for the last run.

At the end both stores are read again and compared, and the counts of the target are recounted. Tokens work on the
target with the same key file, and what clients keep (ETags, cursors) stays valid.
"""


@click.command("copy", cls=usage.Command, epilog=EPILOG)
@click.option("--from", "source_url", metavar="URL", required=True, help="Store to copy from.")
@click.option("--to", "target_url", metavar="URL", required=True, help="Store to copy to.")
@with_settings()
def copy_store(settings: Settings, *, source_url: str, target_url: str) -> int:
    """Copy a store into another one.

    From SQLite to PostgreSQL, from PostgreSQL to SQLite, or between two stores of the same kind.
    """
    from laudo.server.ingest.copying import Copy

    with ExitStack() as stack:
        source = _opened(stack, "--from", replace(settings, store=source_url))
        target = _opened(stack, "--to", replace(settings, store=target_url), write=True)
        copy = Copy(source, target)
        hint = "run it again to resume"
        with output.resumable(lambda: f"{_summary(copy.done)}; hint: {hint}" if copy.done.organizations else ""):
            _copy(copy)
            found = _differences(copy)
    for difference in found:
        output.note(difference)
    if found:
        output.fail("the stores differ; hint: stop what writes to them, then run it again", code=output.IN_PART)
    output.note("the stores are equal; the tokens work with the same key file")
    return 0


def _copy(copy: "Copy") -> None:
    copy.copy_callers()
    with progress.counting("copying", "reports") as update:
        copy.copy_reports(update)
    with progress.counting("counting") as update:
        copy.count(update)
    output.summary(_summary(copy.done))


def _summary(done: "Done") -> str:
    reports = ", ".join(f"{number} {name}" for name, number in done.reports._asdict().items())
    organizations = output.counted(done.organizations, "organization")
    return f"{organizations}, {output.counted(done.accounts, 'account')}; reports: {reports}"


def _differences(copy: "Copy") -> list[str]:
    with progress.counting("comparing", "reports") as update:
        found = list(copy.compare(update))
    with progress.counting("verifying") as update:
        return [*found, *map(str, copy.verify(update))]


def _opened(stack: ExitStack, flag: str, settings: Settings, *, write: bool = False) -> "Database":
    """Open one of the stores until the stack closes; a failure names its flag."""
    from laudo.server.database import StoreError

    try:
        return stack.enter_context(opened(settings, write=write))
    except StoreError as error:
        raise output.Failure(f"{flag}: {error}") from error
