"""`laudo delete`: reports by their UUIDs, documents or age, batch by batch, each counted out of everything at once."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, BytesIO
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import click

from laudo.cli import output, progress, stdin
from laudo.cli.options import of_account, of_organization, opened, with_settings
from laudo.cli.ranges import Past
from laudo.server.config import Settings

if TYPE_CHECKING:
    from laudo.core.sql import Owner
    from laudo.server.database import Database
    from laudo.server.ingest.lines import Line, Unread

    Found = tuple[int, str | Unread]

BATCH: Final = 10_000

EPILOG: Final = """
\b
Exit codes:
  0    all are gone: deleted now, or absent before
  1    some were no UUIDs or documents, or a failure came after some batches
  2    nothing done
  130  interrupted; running it again finishes

Batches of 10,000 are on disk before they are counted. What is no UUID, or no CPF or CNPJ, never stops the rest: its
place goes to stderr, never what it is.
"""


@click.command("delete", epilog=EPILOG)
@click.argument("numeros", metavar="[NUMERO]...", nargs=-1)
@partial(of_account, required=False)
@partial(of_organization, required=False)
@click.option("--before", metavar="DATE", type=Past(), help="Delete what has not changed since then.")
@with_settings("store")
def delete_reports(
    settings: Settings,
    *,
    numeros: tuple[str, ...],
    id_conta: int | None,
    id_organizacao: int | None,
    before: int | None,
) -> int:
    """Delete reports of an account, or an organization.

    NUMERO is a report's UUID; - reads one a line from stdin. With --organization, - reads CPFs and CNPJs in their
    place. --before takes neither.
    """
    if (id_conta is None) == (id_organizacao is None):
        raise output.Failure("it takes --account or --organization; hint: laudo delete --help")
    if not numeros and before is None:
        raise output.Failure("nothing says which reports; hint: laudo delete --help")
    if numeros and before is not None:
        raise output.Failure("--before says which reports; leave the arguments out")
    if numeros and id_organizacao:
        documents(numeros)
    with _begun(settings, id_conta, id_organizacao) as (database, owners):
        if before is not None:
            return _before(database, owners, before)
        return _named(database, owners, numeros, by_documento=id_organizacao is not None)


@dataclass(slots=True)
class Done:
    """What has become of the lines so far; only what is on disk counts."""

    lines: int = 0
    deleted: int = 0
    absent: int = 0
    rejected: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{getattr(self, name)} {name}" for name in ("deleted", "absent", "rejected"))


@contextmanager
def _begun(
    settings: Settings, id_conta: int | None, id_organizacao: int | None
) -> "Iterator[tuple[Database, list[Owner]]]":
    """Open the store, and find the accounts that are meant."""
    from laudo.server.accounts import Level, owners

    level, number = (Level.ACCOUNT, id_conta) if id_conta is not None else (Level.ORGANIZATION, id_organizacao)
    with opened(settings, write=True) as database:
        with database.snapshot() as connection:
            found = owners(connection, level, number or 0)
        yield database, found


def _before(database: "Database", owners: "list[Owner]", instant: int) -> int:
    """Delete what is older than an instant."""
    from laudo.server.ingest.removal import Removal

    deleted = 0
    hint = "run it again to finish"
    removal = Removal(database, owners)
    total = removal.count_before(instant)
    with (
        output.resumable(lambda: f"{deleted} deleted; hint: {hint}" if deleted else ""),
        progress.counting("deleting", "reports") as told,
    ):
        for gone in removal.before(instant):
            deleted += gone.reports
            told(deleted, max(deleted, total))
    output.summary(f"{deleted} deleted")
    return 0


def _named(database: "Database", owners: "list[Owner]", numeros: Sequence[str], *, by_documento: bool) -> int:
    """Delete what lines or arguments name."""
    from laudo.server.ingest.lines import Source

    done = Done()
    place = "line" if numeros == ("-",) else "argument"
    what, parse, delete = _by_documento(database, owners) if by_documento else _by_numero(database, owners[0])
    source = Source(cast("BufferedReader", stdin.opened().buffer) if numeros == ("-",) else _stream(numeros))
    with _resumable(done), progress.following(source.size, "deleting") as report:
        unsettled = 0
        for batch in batches(named(source.lines(), parse, what)):
            given = [each for _, each in batch if isinstance(each, str)]
            before = done.deleted
            if given:
                delete(given, done)
            done.lines += len(batch)
            done.rejected += len(batch) - len(given)
            for number, each in batch:
                if not isinstance(each, str):
                    report.say(f"{place} {number}: {each.reason}")
            report.reached(done.lines, source.consumed)
            unsettled += done.deleted - before
            if unsettled and len(batch) < BATCH:  # Else more is there; to settle each would take a fifth of the time.
                database.settle()
                unsettled = 0
    return _end(done, place, what)


def documents(arguments: Sequence[str]) -> None:
    """Refuse documents that are given as arguments, where other users of the machine see them."""
    if tuple(arguments) != ("-",):
        raise output.Failure("documents are read from stdin, never given as arguments, which others can see; hint: -")


def _resumable(done: Done) -> AbstractContextManager[None]:
    """When it cannot go on, say what is deleted: reports of a document may take several transactions."""
    hint = "run it again to finish"
    return output.resumable(lambda: f"{done.lines} lines ({done}); hint: {hint}" if done.lines or done.deleted else "")


def _by_numero(database: "Database", owner: "Owner") -> "_Way":
    from laudo.core.values import UUID
    from laudo.server.ingest.writer import Ingest

    ingest = Ingest(database, owner.id_conta)

    def delete(numeros: list[str], done: Done) -> None:
        deleted = ingest.delete(numeros)
        done.deleted += deleted
        done.absent += len(numeros) - deleted

    return _Way("UUID", UUID.parse, delete)


def _by_documento(database: "Database", owners: "list[Owner]") -> "_Way":
    from laudo.core.values import DOCUMENTO
    from laudo.server.ingest.removal import Removal

    removal = Removal(database, owners)

    def delete(documentos: list[str], done: Done) -> None:
        absent = set(documentos)
        for gone in removal.of(documentos):
            done.deleted += gone.reports
            absent -= gone.documentos
        done.absent += len(absent)

    return _Way("CPF or CNPJ without mask", DOCUMENTO.parse, delete)


class _Way(NamedTuple):
    """What lines name reports by, and how these are deleted, which counts what has become of them."""

    what: str
    parse: Callable[[str], object]
    delete: Callable[[list[str], Done], None]


def batches(found: "Iterator[Found | None]") -> "Iterator[list[Found]]":
    """Give what is found BATCH at a time, and, at a None, what there is, if anything: no more comes for a while."""
    batch: list[Found] = []
    for each in found:
        if each:
            batch.append(each)
        if len(batch) == BATCH or not each:
            yield batch
            batch = []
    if batch:
        yield batch


def named(
    lines: "Iterator[tuple[int, Line] | None]", parse: Callable[[str], object], what: str
) -> "Iterator[Found | None]":
    """Give what each line names with its number, or why there is nothing; blank lines are left out."""
    from laudo.server.ingest.lines import Unread

    for each in lines:
        if each is None:
            yield None
            continue
        number, line = each
        if not isinstance(line, bytes):
            yield number, line
        elif text := line.removeprefix(_MARK).strip().decode("utf-8", "replace"):
            try:
                yield number, str(parse(text))
            except ValueError:
                yield number, Unread(f"not a {what}")


def _stream(numeros: Sequence[str]) -> BytesIO:
    return BytesIO(b"\n".join(os.fsencode(numero).replace(b"\n", b" ") for numero in numeros))


def _end(done: Done, place: str, what: str) -> int:
    if not done.lines:
        raise output.Failure(f"there is no {place} with a {what}")
    output.summary(str(done))
    if done.rejected == done.lines:
        raise output.Failure(f"no {place} is a {what}")
    return output.IN_PART if done.rejected else 0


_MARK: Final = b"\xef\xbb\xbf"
