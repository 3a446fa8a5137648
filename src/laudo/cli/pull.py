"""`laudo pull`: mirrors another service into an account of the local store."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from laudo.cli import files, login, output, progress, usage
from laudo.cli.options import id_option, opened, with_settings
from laudo.server.config import Settings

if TYPE_CHECKING:
    from laudo.mirror import Mirror, State
    from laudo.server.ingest.writer import Ingest

EPILOG: Final = """
\b
Exit codes:
  0    done
  1    some reports were rejected, or it failed after others were stored
  2    nothing was stored
  130  interrupted; run it again to resume

The token is LAUDO_TOKEN, unless LAUDO_URL names another service, or the one that `laudo login` saved for this service.
The progress is kept in --state. An interrupted run resumes when you run it again; later runs copy only what has
changed. The service does not need any of our extensions.
"""


@click.command(cls=usage.Command, epilog=EPILOG)
@click.option("--from", "base_url", metavar="URL", required=True, help="Base URL of the service.")
@id_option("account", "id_conta", "Id of the account to copy into.")
@click.option("--whole", is_flag=True, help="Read everything again, not only what has changed.")
@click.option(
    "--token-renewed", is_flag=True, help="Accept a token other than the previous one; it must see the same account."
)
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="File for the progress.  [default: beside the SQLite file, or in the working directory]",
)
@with_settings("store")
def pull(
    settings: Settings, *, base_url: str, id_conta: int, whole: bool, token_renewed: bool, state: Path | None
) -> int:
    """Mirror another service into an account of the store.

    The first run copies all reports and persons' names, later runs only what has changed.
    """
    from laudo.mirror import Mirror
    from laudo.mirror.names import Names
    from laudo.server.ingest.writer import Ingest

    access = login.access(base_url)
    path = state or _default_path(settings.store, id_conta)
    with opened(settings, write=True) as database, _alone(path):
        current = _read_state(path, access, id_conta, token_renewed=token_renewed)
        if whole and not current.whole:  # else a whole walk is under way, and goes on
            current = current.restarted(whole=True)
        ingest = Ingest(database, id_conta)
        with access.client() as client, closing(Names(path.with_name(f"{path.name}.names"))) as names:
            current = _matching_state(current, ingest)
            mirror = Mirror(client, ingest, current, names=names, save=partial(_save, path), notify=output.note)
            resumable = output.resumable(
                lambda: _kept(mirror),
                lambda: output.IN_PART if mirror.summary.stored else output.NOTHING_DONE,
            )
            with resumable, progress.counting_lists() as on_progress:
                mirror.run(on_progress)
    return _summarize(mirror)


def _summarize(mirror: "Mirror") -> int:
    unnamed = f", {mirror.summary.unnamed} without a name" if mirror.summary.unnamed else ""
    output.summary(f"{mirror.summary}{unnamed}; the service has {mirror.summary.total}")
    return output.IN_PART if mirror.summary.rejected else 0


def _kept(mirror: "Mirror") -> str:
    """Say what the next run will not ask for again, and how to get the rest; empty if there is nothing."""
    kept = "what earlier runs have copied" if mirror.resumes else ""
    if mirror.summary.names:
        kept = output.counted(mirror.summary.names, "name")
    if mirror.summary.stored:
        kept = str(mirror.summary)
    return f"{kept}; hint: run it again to resume" if kept else ""


def _default_path(store: str, id_conta: int) -> Path:
    from laudo.server import stores

    file = stores.file_path(store) or Path("laudo")
    return file.with_name(f"{file.name}.pull-{id_conta}.json")


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    """Keep other pulls from this state by an empty file beside it, which is removed in the end.

    Raises Failure if another one has it, or if the file is not empty: then it is somebody else's, as `poetry.lock` is.
    """
    path = state.with_name(f"{state.name}.lock")
    with files.open_locked(path, f"another `laudo pull` is writing {state}") as stream:
        if os.fstat(stream.fileno()).st_size:
            raise output.Failure(f"{path} is not a file of `laudo pull`; hint: name another --state")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _read_state(path: Path, access: login.Access, id_conta: int, *, token_renewed: bool) -> "State":
    """Read how far the mirror is; raises Failure if the file is not ours, or of another mirror or token."""
    import msgspec

    from laudo.mirror import State

    fresh = State(base_url=access.base_url, id_conta=id_conta, token=access.identity()["token"])
    try:
        current = msgspec.json.decode(path.read_bytes(), type=State)
    except FileNotFoundError:
        return fresh
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise output.Failure(
            f"{path} is not a file of `laudo pull`; hint: name another --state to start over"
        ) from None
    if (current.base_url, current.id_conta) != (fresh.base_url, fresh.id_conta):
        raise output.Failure(
            f"{path} belongs to another mirror, of {current.base_url}; hint: name another --state or --account"
        )
    if current.token != fresh.token and not token_renewed:
        hint = "give --token-renewed if it sees the same account, else another --state and --account"
        raise output.Failure(f"{path} is of another token; hint: {hint}")
    current.token = fresh.token
    return current


def _matching_state(current: "State", ingest: "Ingest") -> "State":
    """Start over if the store is not the one that the state describes: what it lacks would never be asked for again."""
    if current == (fresh := current.restarted(whole=current.whole)) or current.matches(ingest.pulled()):
        return current
    output.note("the store is not that of the last run, or was restored from an older backup: everything is read again")
    return fresh


def _save(path: Path, state: "State") -> None:
    import msgspec

    files.write_atomically(path, msgspec.json.encode(state).decode())
