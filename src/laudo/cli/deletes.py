"""`laudo delete`: deletes reports of one account by their UUIDs, in batches; each batch updates all counts.

`laudo find` and `laudo erase` read their lines as this module does; `erase` also counts and reports as it does.
"""

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import click

from laudo.cli import output, progress, stdin, usage
from laudo.cli.options import opened, with_account, with_settings, with_vacuum
from laudo.server.config import Settings

if TYPE_CHECKING:
    from laudo.server.database import Database
    from laudo.server.ingest.lines import Line, Unread

    Found = tuple[int, str | Unread]

BATCH: Final = 10_000

EPILOG: Final = """
\b
Exit codes:
  0    all are gone: deleted now, or already absent
  1    some were not UUIDs, or it failed after some batches or in --vacuum
  2    nothing done
  130  interrupted; run it again to finish

Each batch of 10,000 is on disk before it is counted. An argument or line that is not a UUID does not stop the rest:
stderr gives its number, never its text.
"""


@click.command("delete", cls=usage.Command, epilog=EPILOG)
@click.argument("numeros", metavar="NUMERO...", nargs=-1, required=True)
@with_account
@with_vacuum
@with_settings("store")
def delete_reports(settings: Settings, *, numeros: tuple[str, ...], id_conta: int, vacuum: bool) -> int:
    """Delete reports of an account.

    NUMERO is the UUID of a report; - reads UUIDs from stdin, one per line.
    """
    from laudo.core.values import UUID
    from laudo.server.ingest.writer import Ingest

    with opened(settings, write=True, vacuum=vacuum) as database:
        ingest = Ingest(database, id_conta)

        def delete(batch: list[str], done: Done) -> None:
            deleted = ingest.delete(batch)
            done.deleted += deleted
            done.absent += len(batch) - deleted

        return delete_named(database, numeros, Kind("UUID", UUID.parse), delete)


@dataclass(slots=True)
class Done:
    """What has become of the lines so far; counts only what is on disk."""

    lines: int = 0
    deleted: int = 0
    absent: int = 0
    rejected: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{getattr(self, name)} {name}" for name in ("deleted", "absent", "rejected"))


class Kind(NamedTuple):
    """What a line holds to name reports, such as a UUID, and how it is parsed."""

    name: str
    parse: Callable[[str], object]


def delete_named(
    database: "Database", arguments: Sequence[str], kind: Kind, delete: Callable[[list[str], Done], None]
) -> int:
    """Delete what the arguments name, or the lines of stdin if `-` is the only argument; gives the exit code.

    `delete` counts what it deleted, and what was absent, in the Done that it is given.
    """
    from laudo.server.ingest.lines import Source

    done = Done()
    place = "line" if arguments == ("-",) else "argument"
    source = Source(cast("BufferedReader", stdin.opened().buffer) if arguments == ("-",) else _stream(arguments))
    with _resumable(done), progress.reading(source.size, "deleting") as display:
        must_empty_log = False
        for batch in _batches(parse_lines(source.lines(), kind)):
            valid = [value for _, value in batch if isinstance(value, str)]
            if valid:
                delete(valid, done)
                must_empty_log = True
            done.lines += len(batch)
            done.rejected += len(batch) - len(valid)
            for number, value in batch:
                if not isinstance(value, str):
                    display.say(f"{place} {number}: {value.reason}")
            display.update(done.lines, source.consumed)
            if must_empty_log and len(batch) < BATCH:  # Else more follows; each time, it would take a fifth.
                database.empty_log()
                must_empty_log = False
    return _summarize(done, place, kind.name)


def _resumable(done: Done) -> AbstractContextManager[None]:
    """On a failure, say what is deleted: the reports of one document may take several transactions."""
    hint = "run it again to finish"

    def kept() -> str:
        lines = output.counted(done.lines, "line")
        return f"{lines} ({done}); hint: {hint}" if done.lines or done.deleted else ""

    return output.resumable(kept)


def _batches(lines: "Iterator[Found | None]") -> "Iterator[list[Found]]":
    """Group what is found into batches of BATCH; a None ends a batch early, since no more comes for a while."""
    batch: list[Found] = []
    for line in lines:
        if line:
            batch.append(line)
        if len(batch) == BATCH or not line:
            yield batch
            batch = []
    if batch:
        yield batch


def parse_lines(lines: "Iterator[tuple[int, Line] | None]", kind: Kind) -> "Iterator[Found | None]":
    """Give each line's number with what the line names, or why it names nothing; blank lines are skipped."""
    from laudo.server.ingest.lines import Unread

    for item in lines:
        if item is None:
            yield None
            continue
        number, line = item
        if not isinstance(line, bytes):
            yield number, line
        elif text := line.removeprefix(BOM_UTF8).strip().decode("utf-8", "replace"):
            try:
                yield number, str(kind.parse(text))
            except ValueError:
                yield number, Unread(f"not a {kind.name}")


def _stream(numeros: Sequence[str]) -> BytesIO:
    return BytesIO(b"\n".join(os.fsencode(numero).replace(b"\n", b" ") for numero in numeros))


def _summarize(done: Done, place: str, name: str) -> int:
    if not done.lines:
        raise output.Failure(f"there is no {place} with a {name}")
    output.summary(str(done))
    if done.rejected == done.lines:
        raise output.Failure(f"no {place} is a {name}")
    return output.IN_PART if done.rejected else 0
