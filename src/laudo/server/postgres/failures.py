"""What went wrong -> the store's errors: the table of PostgreSQL's codes, and of its refusals to connect."""

import re
from collections.abc import Callable
from typing import Final

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGresult

from laudo.server.database import Locked, Lost, StoreError, Unavailable

LOST: Final = "the connection to PostgreSQL was lost; ask again"
HUNG: Final = "PostgreSQL does not answer in time; check its server and the network"


def is_fatal(result: PGresult) -> bool:
    """Tell whether the server has ended the session with this error, or the client's library has."""
    severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED)
    return severity is None or severity in {b"FATAL", b"PANIC"}


def failed(result: PGresult) -> Exception:
    """Give the error to raise for a result; one that is a mistake of ours stays psycopg's, without values of rows.

    The codes are those of https://www.postgresql.org/docs/current/errcodes-appendix.html.
    """
    code = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    if is_fatal(result):
        return Lost(LOST)
    said = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode("utf-8", "replace")
    if code == _UNSUPPORTED and "cached plan" in said:
        return Lost("the schema has changed under a prepared statement; ask again")
    for start in (code, code[:2]):
        if start in _CODES:
            kind, text = _CODES[start]
            return kind(f"{text} (SQLSTATE {code})")
    return _mistake(code)(said)


def refused(error: psycopg.Error) -> StoreError:
    """Give the error to raise when no connection could be made.

    The client's library tells no code here, so that a refusal for good is known by its English words; one in another
    language counts as one that may pass.
    """
    said = " ".join(str(error).split())
    for pattern, text in _REFUSALS:
        if pattern.search(said):
            return StoreError(f"{text}: {said}")
    return Unavailable(f"PostgreSQL cannot be reached: {said}")


def _mistake(code: str) -> Callable[[str], Exception]:
    try:
        return psycopg.errors.lookup(code)
    except KeyError:
        return psycopg.DatabaseError


_SCHEMA: Final = "the store has no schema, or an older one; run `laudo migrate`"
_RIGHTS: Final = "the store's user lacks a right; run `laudo migrate --grants` as the owner"
_UNPREPARED: Final = "a prepared statement is unknown: PgBouncer must be 1.21 or newer with max_prepared_statements set"
_UNSUPPORTED: Final = "0A000"

_CODES: Final[dict[str, tuple[type[Exception], str]]] = {
    "08": (Unavailable, "PostgreSQL cannot reach a part of the store"),
    "25006": (Unavailable, "this PostgreSQL only reads: it is a replica, or the store was not opened to write"),
    "26000": (Unavailable, _UNPREPARED),
    "28": (StoreError, "PostgreSQL refuses the store's user; check its name, password and pg_hba.conf"),
    "3D000": (StoreError, "PostgreSQL has no such database; create it, or correct the store's URL"),
    "3F000": (Unavailable, _SCHEMA),
    "40": (Lost, "PostgreSQL has undone the transaction because of another one; it may be repeated"),
    "42501": (StoreError, _RIGHTS),
    "42703": (Unavailable, _SCHEMA),
    "42P01": (Unavailable, _SCHEMA),
    "42P05": (Unavailable, _UNPREPARED),
    "53": (Unavailable, "PostgreSQL lacks disk, memory or connections"),
    "55P03": (Locked, "the store is locked by another writer; try again when it has finished"),
    "57": (Unavailable, "PostgreSQL cannot go on now"),
    "57014": (Unavailable, "PostgreSQL did not finish a statement within its time limit"),
    "58": (Unavailable, "PostgreSQL cannot read or write its files; check its disk and its log"),
    "XX001": (StoreError, "the store is damaged; see PostgreSQL's log, and restore a backup"),
    "XX002": (StoreError, "an index of the store is damaged; see PostgreSQL's log"),
}
"""By code, or by class, which is its first two characters."""

_REFUSALS: Final = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (
            (
                "authentication failed|no password supplied|no pg_hba.conf entry|role .* does not exist|no such user"
                "|not permitted to log in"
            ),
            "PostgreSQL refuses the store's user; check its name, password and pg_hba.conf",
        ),
        (
            "database .* does not exist|no such database|permission denied for database",
            "the store's database cannot be used; create it, grant CONNECT, or correct the URL",
        ),
        (
            "unsupported startup parameter",
            "PgBouncer refuses the session's settings; set its ignore_startup_parameters = options",
        ),
        ("invalid .*connection option|invalid .*value", "a parameter of the store's URL is wrong"),
        ("certificate|does not support SSL|root.crt", "the connection cannot be encrypted as the URL demands"),
    )
)
