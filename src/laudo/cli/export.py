"""`laudo export`: writes a whole list to a file, in constant memory; the file appears only when it is complete."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from laudo.cli import filters, login, output, progress, usage
from laudo.cli.part import FORMATS, Part
from laudo.cli.ranges import Whole
from laudo.core.resources import PESSOAS, RELATORIOS, Resource

if TYPE_CHECKING:
    from laudo.client import Laudo

EPILOG: Final = """
FILE appears only when it is complete. Until then FILE.part and FILE.part.json hold what has arrived so far; run the
same command again to resume. .parquet needs the package pyarrow (pip install pyarrow).
"""


@click.group(cls=usage.Group)
def export() -> None:
    """Export a whole list to a file.

    If it is interrupted, run it again to resume.
    """


def export_command(resource: Resource) -> click.Command:
    """Make the command that exports a list."""

    @click.option(
        "-o",
        "--output",
        "file",
        type=click.Path(path_type=Path, dir_okay=False),
        required=True,
        help=f"File to write; its extension is the format: {', '.join(FORMATS)}.",
    )
    @click.option("--workers", type=Whole(1, 32), default=1, help="Pages to request at a time.  [default: 1]")
    @click.option(
        "--token-renewed",
        is_flag=True,
        help="Resume although another token began the export; both must see the same account.",
    )
    @filters.filters(resource)
    def run(*, file: Path, workers: int, token_renewed: bool, **options: Any) -> None:  # noqa: ANN401 - what click gives
        parameters = filters.pop_given(resource, options)
        access = login.access()
        with access.client() as client:
            part = Part(file, resource, access=access, question=parameters, token_renewed=token_renewed)
            with part.opened():
                _fetch(client, resource, part, workers=workers, parameters=parameters)
                part.finish()
        output.summary(f"{output.counted(part.items, resource.name.removesuffix('s'))} in {file}{_age(part)}")

    run.__doc__ = f"Export all {resource.name}, or those that match filters."
    return export.command(resource.name, epilog=filters.epilog(resource, EPILOG))(run)


def _age(part: Part) -> str:
    """Say since when changes may be missing, if an earlier run began the export: that may be long ago."""
    return f", begun at {part.began:%Y-%m-%dT%H:%M:%SZ}: later changes may be missing" if part.resumed else ""


def _fetch(client: "Laudo", resource: Resource, part: Part, *, workers: int, parameters: dict[str, Any]) -> None:
    if part.done:
        return
    in_batches = getattr(client, f"{resource.name}_in_batches")
    with progress.counting(resource.name, "items", done_before=part.items) as update:
        for batch in in_batches(workers=workers, start=part.place, **parameters):
            part.write(batch)
            update(part.items, batch.total)


relatorios: Final = export_command(RELATORIOS)
pessoas: Final = export_command(PESSOAS)
