"""`laudo import`: writes a file of reports to one account, in batches, each durable before it is counted."""

import gc
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import click

from laudo.cli import files, output, progress, stdin, usage
from laudo.cli.options import opened, with_account, with_settings
from laudo.cli.ranges import Word
from laudo.server.config import Settings

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from laudo.server.ingest.batches import Batch
    from laudo.server.ingest.changes import Counts
    from laudo.server.ingest.records import Format
    from laudo.server.ingest.writer import Ingest

EPILOG: Final = """
\b
Exit codes:
  0    no line was rejected
  1    some lines were rejected, or it failed after some batches
  2    nothing done
  130  interrupted; run it again to finish

Each line is one report, with the fields of the API and nome_pessoa. Of two reports with the same numero, the one with
the newer atualizado_em wins. One that is already there counts as unchanged, an older one as stale, and one that differs
under the same instant as conflicting. A batch has up to 20,000 lines, as many as take about a second, and is on disk
before it is counted. Lines from a pipe wait for a second at most. The number of each rejected line and the reason,
never its content, and the numero of each conflicting report go to --errors or stderr.
"""


@click.command("import", cls=usage.Command, epilog=EPILOG)
@click.argument("file", type=stdin.File())
@with_account
@click.option(
    "--format",
    "file_format",
    type=Word(["ndjson", "csv"]),
    help="Format; detected from the name or the content if not given.",
)
@click.option("--errors", type=click.Path(path_type=Path), help="File for rejected lines and conflicting reports.")
@click.option("--dry-run", is_flag=True, help="Read and check everything, write nothing.")
@click.option("--accept-invalid-documents", is_flag=True, help="Do not verify check digits of CPF and CNPJ.")
@with_settings("store")
def import_reports(
    settings: Settings,
    *,
    file: BufferedReader,
    id_conta: int,
    file_format: "Format | None",
    errors: Path | None,
    dry_run: bool,
    accept_invalid_documents: bool,
) -> int:
    """Import a file of reports.

    FILE is NDJSON or CSV, and may be gzipped (.gz); - reads stdin.
    """
    from laudo.server.ingest import records
    from laudo.server.ingest.batches import batches
    from laudo.server.ingest.changes import Counts
    from laudo.server.ingest.writer import Ingest

    source = records.Source(file, getattr(file, "name", ""))
    found = records.read(source, file_format=file_format, accept_invalid_documents=accept_invalid_documents)
    done = Done(Counts())
    with (
        _gc_disabled(),
        _read(batches(found, source), in_background=source.is_long and not dry_run) as read,
        opened(settings, write=not dry_run) as database,
    ):
        ingest = Ingest(database, id_conta)
        with (
            _resumable(done),
            _rejections(errors) as rejections,
            progress.reading(source.size, "importing") as display,
        ):
            _import(read, done, None if dry_run else ingest, display=display, rejections=rejections)
            ingest.erase_old_names()
    return _summarize(done, dry_run=dry_run)


@dataclass(slots=True)
class Done:
    """What has become of the lines so far; counts only what is on disk."""

    counts: "Counts"
    lines: int = 0
    rejected: int = 0

    def __str__(self) -> str:
        return f"{self.counts}, {self.rejected} rejected"


def _read(batches: "Iterator[Batch]", *, in_background: bool) -> "AbstractContextManager[Iterator[Batch]]":
    """Read a long file in a separate process while this one writes; forked before this one opens anything else."""
    if not in_background:
        return nullcontext(batches)
    from laudo.server.ingest import ahead

    return ahead.run(batches)


def _import(
    read: "Iterator[Batch]",
    done: Done,
    ingest: "Ingest | None",
    *,
    display: progress.Display,
    rejections: TextIO | None,
) -> None:
    """Count what is read, and write it if there is an `ingest`."""
    for batch in read:
        conflicting: list[str] = []
        if batch.reports and ingest:
            counts, conflicting = ingest.write_prepared(batch.reports)
            done.counts = done.counts.plus(counts)
        done.lines += batch.lines
        done.rejected += len(batch.rejected)
        for numero in conflicting:
            _report(f"numero {numero}: {_CONFLICTING}", display, rejections)
        for item in batch.rejected:
            _report(f"line {item.line_number}: {item.reason}", display, rejections, final=item.final)
        if rejections:
            rejections.flush()
        display.update(done.lines, batch.consumed)
        del batch  # else it would stay in memory until the next one is read


def _report(text: str, display: progress.Display, rejections: TextIO | None, *, final: bool = False) -> None:
    """Write a line to the file for rejections, or else to stderr; the `final` one goes to both."""
    if rejections:
        rejections.write(text + "\n")
    if final or not rejections:
        display.say(text)


@contextmanager
def _gc_disabled() -> Iterator[None]:
    """Turn garbage collection off: parsed lines make no cycles, and it takes a tenth of an import's time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _rejections(path: Path | None) -> Iterator[TextIO | None]:
    """Open the file for rejections, empty.

    Raises Failure if it holds anything else, such as the import, a store or a key, or if another import writes it.
    """
    if path is None:
        yield None
        return
    if path == Path("-"):
        raise output.Failure("--errors: - is not a file; hint: without --errors, rejections go to stderr")
    with TextIOWrapper(BufferedWriter(file := _NamedInErrors(path, "a")), encoding="utf-8") as stream:
        if path.is_file():
            _begin(file, path)
        yield stream


def _begin(file: FileIO, path: Path) -> None:
    """Lock and empty the file: if two imports wrote it, neither could tell afterwards whose lines it holds."""
    try:
        files.lock(file)
    except BlockingIOError:
        raise output.Failure(f"--errors: another import is writing {path}; hint: name another file") from None
    if _holds_something_else(path):
        raise output.Failure(f"--errors: {path} holds something other than rejections; hint: name another file")
    file.truncate(0)


class _NamedInErrors(FileIO):
    """A file that names itself in the error if it cannot be written: the store may be on another disk."""

    def write(self, buffer: "ReadableBuffer", /) -> int:
        with files.naming(Path(self.name)):
            return super().write(buffer)


def _holds_something_else(path: Path) -> bool:
    with path.open("rb") as file:
        return any(not _REJECTION_LINE(line) for line in iter(lambda: file.readline(_LONGEST_REJECTION), b""))


def _resumable(done: Done) -> AbstractContextManager[None]:
    """On a failure, say how many lines are on disk."""
    hint = "run it again to finish (nothing is written twice)"

    def kept() -> str:
        return f"{output.counted(done.lines, 'line')} ({done}); hint: {hint}" if done.lines else ""

    return output.resumable(kept)


def _summarize(done: Done, *, dry_run: bool) -> int:
    if not done.lines:
        raise output.Failure("the file has no lines, or only a header")
    valid = done.lines - done.rejected
    output.summary(f"dry run: {valid} valid, {done.rejected} rejected, nothing written" if dry_run else str(done))
    if not valid:
        raise output.Failure("every line was rejected")
    return output.IN_PART if done.rejected else 0


_CONFLICTING: Final = "the store has this report with the same atualizado_em and other content, which was kept"
_BEGINNINGS: Final = b"|".join(word[:end] for word in (b"line ", b"numero ") for end in range(1, len(word) + 1))
_REJECTION_LINE: Final = re.compile(rb"(line \d+|numero [0-9a-f-]+)(: .*\n|(:.*)?)|" + _BEGINNINGS).fullmatch
"""Matches a line of the file for rejections, or the part of one that a killed import has left."""
_LONGEST_REJECTION: Final = 65_536
"""Bytes, more than any rejection has, so that a long line of some other file does not fill the memory."""
