"""What went wrong -> the store's errors: PostgreSQL's codes, its refusals to connect, and our own requirements."""

import re
from collections.abc import Callable
from typing import Final

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGconn, PGresult

from laudo.server.database import LOCKED, NO_SCHEMA, Busy, Locked, Lost, RolledBack, Slow, StoreError, Unavailable

OLDEST: Final = 14
"""Older versions of PostgreSQL are no longer maintained."""

LOST: Final = "the connection to PostgreSQL was lost; try again"
HUNG: Final = "PostgreSQL does not answer in time; check the server and the network"
NO_HOST: Final = "the host name in the store's URL is not valid: a part between dots is empty or too long"
"""For such a name psycopg, which looks it up, raises no error of its own."""


def is_fatal(result: PGresult) -> bool:
    """Tell whether a session is useless after this error.

    Either the server or libpq has ended it, or the schema has changed since its statements were prepared.
    """
    severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED)
    if severity is None or severity in {b"FATAL", b"PANIC"}:
        return True
    return result.error_field(pq.DiagnosticField.SOURCE_FUNCTION) == b"RevalidateCachedQuery"


def failed(result: PGresult) -> Exception:
    """Give the error to raise for a result; our own mistake stays psycopg's error, without values of rows.

    The codes are those of https://www.postgresql.org/docs/current/errcodes-appendix.html.
    """
    code = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    if is_fatal(result):
        return Lost(_ENDED.get(code, LOST))
    message = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode("utf-8", "replace")
    if result.error_field(pq.DiagnosticField.SOURCE_FUNCTION) == b"check_enable_rls":
        return StoreError(f"{_POLICY} (SQLSTATE {code})")
    if code == "42501" and _SCHEMA_DENIED.search(message):
        return StoreError(f"{_CREATE} (SQLSTATE {code})")
    if text := _rolled_back(result, code):
        return RolledBack(f"{text} (SQLSTATE {code})")
    for start in (code, code[:2]):
        if start in _CODES:
            kind, text = _CODES[start]
            return kind(f"{text} (SQLSTATE {code})")
    return _psycopg_error(code)(message)


def refused(error: psycopg.Error) -> StoreError:
    """Give the error to raise if no connection could be made.

    libpq gives no code here, so the server's message is matched, in English and in Portuguese, which the server uses
    if that is its machine's language. An error that is not recognized counts as temporary.
    """
    message = " ".join(str(error).split())
    if _CUT_OFF.search(message):
        return Lost(LOST)
    for pattern, text in _REFUSALS:
        if pattern.search(message):
            return StoreError(text, message)
    if _NO_CONNECTION_LEFT.search(message):
        return Busy("PostgreSQL has no connection left", message)
    return Unavailable("PostgreSQL cannot be reached", message)


def require_supported(libpq: PGconn, store: str) -> None:
    """Raise StoreError if the server is too old, or if the database's encoding is not UTF8."""
    if libpq.server_version < OLDEST * 10_000:
        version = libpq.server_version // 10_000
        raise StoreError(f"{store}: PostgreSQL {version} is too old: laudo needs {OLDEST} or newer")
    encoding = (libpq.parameter_status(b"server_encoding") or b"").decode()
    if encoding != "UTF8":
        raise StoreError(f"{store}: the database has the encoding {encoding}: create one with ENCODING 'UTF8'")


def _rolled_back(result: PGresult, code: str) -> str:
    """Tell what to say if a replica has cancelled a statement, or if another session has changed the same catalogs."""
    function = result.error_field(pq.DiagnosticField.SOURCE_FUNCTION)
    if code == "40001" and function in _INTERRUPTS:
        return _HELD_UP
    is_catalog = result.error_field(pq.DiagnosticField.SCHEMA_NAME) == b"pg_catalog"
    return _ROLLED_BACK if (code, function) in _CONCURRENT_CHANGES or (code == "23505" and is_catalog) else ""


def _psycopg_error(code: str) -> Callable[[str], Exception]:
    try:
        return psycopg.errors.lookup(code)
    except KeyError:
        return psycopg.DatabaseError


_HELD_UP: Final = (
    "a replica ended the transaction because it held up the replay of changes; ask the primary, "
    "or raise the replica's max_standby_streaming_delay"
)
_INTERRUPTS: Final = (b"ProcessRecoveryConflictInterrupt", b"ProcessInterrupts")
"""Functions that cancel a statement from outside: up to PostgreSQL 16 the second one."""
_ENDED: Final = {
    "40001": f"{_HELD_UP} (SQLSTATE 40001)",
    "25P03": "PostgreSQL ended a transaction that was idle for longer than idle_in_transaction_session_timeout; "
    "raise it, or try again (SQLSTATE 25P03)",
    "25P04": "PostgreSQL ended a transaction that took longer than transaction_timeout; raise it for the store's "
    "user (SQLSTATE 25P04)",
}
"""Why the server has ended a session, if the transaction itself is the reason."""
_RIGHTS: Final = (
    "the store's user lacks a right; run `laudo migrate --grants` as the owner of the tables, "
    "and grant the user laudo_reader, or laudo_writer to write"
)
_CREATE: Final = (
    "the store's user may not create tables in the schema; run this as the owner, or GRANT it CREATE ON SCHEMA"
)
_POLICY: Final = (
    "row-level security is enabled on a table of the store and would hide rows: disable it, "
    "or give the store's user BYPASSRLS"
)
_USER: Final = "PostgreSQL refuses the store's user; check its name, password and pg_hba.conf"
_READ_ONLY: Final = (
    "this PostgreSQL is read-only: it is a replica, default_transaction_read_only is on, "
    "or the store was not opened for writing"
)
_UNPREPARED: Final = (
    "a prepared statement is unknown: PgBouncer must be 1.21 or newer with max_prepared_statements set; "
    "with an older one, set prepare = false"
)

_ROLLED_BACK: Final = "PostgreSQL rolled back the transaction because of another one; try again"
_CONCURRENT_CHANGES: Final = {("42710", b"CreateRole"), ("XX000", b"simple_heap_update")}

_CODES: Final[dict[str, tuple[type[Exception], str]]] = {
    "08": (Unavailable, "PostgreSQL cannot reach a part of the store"),
    "25006": (Unavailable, _READ_ONLY),
    "26000": (Unavailable, _UNPREPARED),
    "28": (StoreError, _USER),
    "3D000": (StoreError, "PostgreSQL has no such database; create it, or correct the store's URL"),
    "3F000": (
        StoreError,
        "no schema in the user's search_path exists and may be used; create one, or correct search_path",
    ),
    "40": (RolledBack, _ROLLED_BACK),
    "42501": (StoreError, _RIGHTS),
    "42703": (Unavailable, NO_SCHEMA),
    "42P01": (Unavailable, NO_SCHEMA),
    "42P05": (Unavailable, _UNPREPARED),
    "42P07": (StoreError, "another application's table is in the way; give laudo a database or schema of its own"),
    "53": (Unavailable, "PostgreSQL has run out of memory, connections or another resource; see its log"),
    "53100": (Unavailable, "no space is left on PostgreSQL's disk"),
    "55P03": (Locked, LOCKED),
    "57": (Unavailable, "PostgreSQL cannot continue now"),
    "57014": (Slow, "PostgreSQL did not finish a statement within its time limit (statement_timeout)"),
    "58": (Unavailable, "PostgreSQL cannot read or write its files; check its disk and its log"),
    "XX001": (StoreError, "the store is damaged; see PostgreSQL's log, and restore a backup"),
    "XX002": (StoreError, "an index of the store is damaged; see PostgreSQL's log"),
}
"""By code, or by class, which is its first two characters."""

_SCHEMA_DENIED: Final = re.compile("denied for schema|negada para (o )?esquema")
"""Matches if the right to make a table is missing, an error with the same code as for any other right."""

_CUT_OFF: Final = re.compile("terminating connection|terminando conex|server closed the connection")
"""Somebody may have just ended all sessions, even those that were only starting."""

_REFUSALS: Final = (
    (
        re.compile(
            "authentication failed|no password supplied|pg_hba.conf|role .* does not exist|not permitted to log in"
            "|no such user|falhou para usu|role .* n.{1,2}o existe"
        ),
        _USER,
    ),
    (
        re.compile(
            "database .* does not exist|permission denied for database|no such database"
            "|banco de dados .* n.{1,2}o existe|permiss.{1,2}o negada para banco"
        ),
        "the store's database cannot be used; create it, grant CONNECT on it, or correct the store's URL",
    ),
    (
        re.compile("unsupported startup parameter"),
        "PgBouncer refuses the session's settings; set its ignore_startup_parameters = options",
    ),
    (
        re.compile(
            "certificate|does not support SSL|channel binding required|invalid .* value|invalid value|invalid .*option"
            "|unrecognized configuration parameter|definition of service|service file"
            "|bad value for|invalid port number|could not match|could not parse network address"
        ),
        "a parameter of the store's URL is wrong, or the server does not support it",
    ),
)

_NO_CONNECTION_LEFT: Final = re.compile(
    "too many (clients|connections)|connection slots|no more connections|muitos clientes|muitas conex|slots de conex"
)
"""What PostgreSQL says at the limit of a server, a role or a database, and what PgBouncer says."""
