"""How many connections a worker accepts, and how many threads answer what comes over them."""

import resource
from typing import Final

from laudo.cli import output
from laudo.server.config import Settings

_ALL: Final = 1024
"""How many connections all workers accept together."""

_FILES: Final = 64
"""How many other files a worker has open, at most, beside a connection to the store for each thread."""

_FILES_A_WORKER: Final = 6
"""And how many that it inherits for each of all workers, at most."""


def accepted(settings: Settings) -> int:
    """Give how many connections each worker accepts: fewer where only few files may be open.

    At that limit it would try again and again to accept one more, which burns its core, and could not open what it
    answers from. Granian, once imported, has raised the limit as far as that may be done.
    """
    share = max(1, _ALL // settings.workers)
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    left = limit - _FILES - _FILES_A_WORKER * settings.workers - threads(settings)
    if limit == resource.RLIM_INFINITY or left >= share:
        return share
    number = max(1, left)
    output.note(f"each worker accepts {number} connections, not {share}: no more than {limit} files may be open")
    return number


def threads(settings: Settings) -> int:
    """Give how many threads answer; on SQLite one: more would fight for the interpreter."""
    from laudo.server import stores

    return 1 if stores.file(settings.store) else settings.bounds.threads(1 + len(settings.read_store))
