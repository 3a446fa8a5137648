"""The store's URL -> libpq's parameters: hosts, user, timeouts, keepalives, and the settings of a session."""

import math
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from laudo.server.database import Bounds, StoreError


def conninfo(url: str, bounds: Bounds, *, write: bool) -> str:
    """Give the connection string; the URL and its service win over our defaults.

    The settings of a session are sent as `options`, with the first message, so that they cost no round trip and never
    stay behind on a connection that PgBouncer lends to others. PgBouncer must be told to ignore them
    (`ignore_startup_parameters = options`); then those of the role apply, which docs/operating.md lists.
    Raises StoreError, which shows no password.
    """
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:
        raise StoreError(_MALFORMED) from None
    except UnicodeDecodeError:
        raise StoreError(_NOT_UTF8) from None
    hosts, ports, name = (str(given.get(key, "")) for key in ("host", "port", "dbname"))
    path = url.partition("?")[0].partition("://")[2].partition("/")[2]
    if "@" in hosts + path or re.fullmatch("[0-9,]*", ports) is None or "://" in name:
        # Pieces of a password, or of another URL, which an error about an unknown host or database would show.
        raise StoreError(_MALFORMED)
    given = {**_from_service_file(given), **given}
    settings: dict[str, object] = {
        "statement_timeout": bounds.write_timeout_ms if write else bounds.statement_timeout_ms,
        "jit": "off",
        **_COMMON_SETTINGS,
        "max_parallel_workers_per_gather": 0,
        "work_mem": _WORK_MEM,
        **(_WRITER_SETTINGS if write else _READER_SETTINGS),
    }
    user_options = str(given.get("options", os.environ.get("PGOPTIONS", "")))
    options = [*(f"-c {name}={value}" for name, value in settings.items()), user_options]
    defaults = _DEFAULTS | {"connect_timeout": str(math.ceil(bounds.connect_timeout_ms / 1000))}
    ours = {"client_encoding": "UTF8", "options": " ".join(options).strip()}
    target = str(given.get("target_session_attrs", os.environ.get("PGTARGETSESSIONATTRS")))
    if not write and target in _SERVER_ROLE:
        ours["target_session_attrs"] = _SERVER_ROLE[target]
    return make_conninfo("", **{**defaults, **given, **ours})


def display_name(conninfo: str) -> str:
    """Name the store by its hosts, their ports if given, and its database: no user, no password."""
    params = conninfo_to_dict(conninfo)
    hosts, ports = (str(params.get(name, "")).split(",") for name in ("host", "port"))
    # One port is that of every host.
    pairs = zip(hosts, ports * len(hosts) if len(ports) == 1 else ports, strict=False)
    return f"postgresql://{','.join(_server(*pair) for pair in pairs)}/{params.get('dbname', '')}"


def _from_service_file(given: Mapping[str, Any]) -> dict[str, str]:
    """Give the parameters of a service file that are otherwise set here or by psycopg, which does not read the file.

    libpq reads the file itself when it connects: it finds the other parameters, such as the password, and errors.
    """
    name = str(given.get("service", os.environ.get("PGSERVICE", "")))
    if not name:
        return {}
    section = re.compile(rf"^\s*\[{re.escape(name)}\](.*?)(?=^\s*\[|\Z)", re.MULTILINE | re.DOTALL)
    user_file = str(given.get("servicefile", os.environ.get("PGSERVICEFILE", "~/.pg_service.conf")))
    for file in (Path(user_file), Path(os.environ.get("PGSYSCONFDIR", os.devnull), "pg_service.conf")):
        with suppress(OSError, RuntimeError):
            if found := section.search(file.expanduser().read_text("utf-8", "replace")):
                # If a key is there twice, the first one counts.
                entries = dict(reversed(_ENTRIES(found[1])))
                return {key: value for key, value in entries.items() if key in _SERVICE_KEYS}
    return {}


def _server(host: str, port: str) -> str:
    """Name a server as in a URL; one behind a Unix socket by the socket's folder."""
    if host.startswith("/"):
        return host
    name = f"[{host}]" if ":" in host else host
    return f"{name}:{port}" if port else name


_MALFORMED: Final = (
    "the store's URL is not valid for PostgreSQL: it must look like postgresql://user@host:5432/database, "
    "with %40, %2F and %3A for @, / and : in a name or password, and libpq's parameters after ?, "
    "with %20 and %3D for spaces and = in their values"
)
_NOT_UTF8: Final = "the %-escapes in the store's URL are not UTF-8, in which é is %C3%A9"
_WORK_MEM: Final = "32MB"
"""For a search among millions of persons: with the default 4 MB, its bitmap is lossy, and whole pages are searched."""
_COMMON_SETTINGS: Final = {
    "array_nulls": "on",
    "default_transaction_isolation": r"read\ committed",
    "gin_fuzzy_search_limit": 0,
    "row_security": "off",
}
"""They override settings of the role and the database: otherwise lists and counts could lack rows, and a replica would
refuse serializable transactions. A policy of a table that hides rows then raises an error."""
_READER_SETTINGS: Final = {"default_transaction_read_only": "on"}
_WRITER_SETTINGS: Final = {"lock_timeout": 0}
"""Writers wait for one another for as long as a statement may take."""
_SERVER_ROLE: Final = {"read-write": "primary", "read-only": "standby"}
"""What a reader means by target_session_attrs: libpq would find that our session may not write, on any server."""
_ENTRIES: Final = re.compile(r"^[^\S\n]*(\w+)=(.*?)[^\S\n]*$", re.MULTILINE).findall
_DEFAULTS: Final = {
    "fallback_application_name": "laudo",
    "keepalives_idle": "30",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
_SERVICE_KEYS: Final = {
    *_DEFAULTS,
    *("host", "hostaddr", "port", "dbname", "connect_timeout", "load_balance_hosts", "options", "target_session_attrs"),
}
