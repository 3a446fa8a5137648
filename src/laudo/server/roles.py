"""The roles of a store on PostgreSQL, and what each may do: one owns the tables, one writes, one reads.

None of them can log in: a login becomes a member of one, as by `GRANT laudo_reader TO api`. There are no default
privileges on new tables: `grant_on_new_tables` grants the rights, in the transaction of the migration.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

from laudo.core.sql import Statement
from laudo.server import locks
from laudo.server.citus import DISTRIBUTED, REFERENCE
from laudo.server.database import Connection, Database, StoreError, Unavailable

OWNER: Final = "laudo_owner"
"""Changes the schema: `laudo migrate`."""
WRITER: Final = "laudo_writer"
"""Imports, deletes and repairs, and keeps organizations, accounts, users and tokens."""
READER: Final = "laudo_reader"
"""Answers: `laudo serve`, `laudo find`, `laudo verify`. It writes nothing but the heartbeat."""
ROLES: Final = (OWNER, WRITER, READER)
_PUBLIC: Final = "public"
"""Everybody who may connect; no role can have this name."""

TABLES: Final = (*DISTRIBUTED, *REFERENCE)
_WRITE: Final = frozenset({"SELECT", "INSERT", "UPDATE"})
_READ: Final[dict[str, frozenset[str]]] = dict.fromkeys(TABLES, frozenset({"SELECT"}))

RIGHTS: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    WRITER: _READ
    | dict.fromkeys(("organizacao", "conta", "usuario", "token", "facet"), _WRITE)
    | dict.fromkeys(("bucket", "tally", "relatorio", "pessoa", "word"), _WRITE | {"DELETE"}),
    READER: _READ | {"heartbeat": _WRITE},
    _PUBLIC: dict.fromkeys(TABLES, frozenset()),
}
"""Role -> table -> privileges, none of which it may grant to others."""


class Place(NamedTuple):
    """The names of the store's database and schema, quoted where necessary."""

    database: str
    schema: str


class RolesError(StoreError):
    """The store's user lacks the rights; somebody who has them can run the `statements`."""

    def __init__(self, statements: list[str]) -> None:
        super().__init__(
            "the store's user may not create roles, or does not own the database, its schema or the tables"
        )
        self.statements = statements


def grant(database: Database, *, seconds: float = locks.SECONDS) -> list[str]:
    """Make the missing roles, grant the rights that each lacks, and revoke those that it should not have.

    Gives the statements that were run, none if all was right. Raises RolesError, StoreError.
    """
    return locks.retry(partial(_grant, database), "granting", seconds)


def grant_on_new_tables(connection: Connection) -> None:
    """Grant the rights on tables that a migration has made; a store without these roles stays without them."""
    if connection.dialect.name == "postgres" and _owners(connection, _OWNER_OF_TABLES).get("migration") == OWNER:
        for statement in _missing(connection):
            connection.run_script(statement)


def _grant(database: Database) -> list[str]:
    statements: list[str] = []
    try:
        with database.transaction() as connection:
            locks.lock_without_waiting(connection, "roles")
            statements += _missing(connection)
            for statement in statements:
                connection.run_script(statement)
            _require_all(connection)
    except Unavailable:
        raise
    except StoreError as error:
        raise RolesError(statements) from error
    return statements


def _require_all(connection: Connection) -> None:
    """Raise StoreError if something is still missing: if the user may not grant something, PostgreSQL only warns."""
    if list(_missing(connection)):
        raise StoreError("PostgreSQL granted less than was requested")


def _missing(connection: Connection) -> Iterator[str]:
    """Give the statements that are missing, with the schema: whoever runs them may have another search_path."""
    known = {name for (name,) in connection.fetch(Statement(_KNOWN, (list(ROLES),)))}
    place = Place(*connection.fetch(Statement(_PLACE))[0])
    yield from (f"CREATE ROLE {role} NOLOGIN" for role in ROLES if role not in known)
    yield from _membership(connection, known)
    yield from _access_grants(connection, place, known)
    yield from _ownership(connection, place)
    for role, rights in RIGHTS.items():
        yield from _privileges(connection, place, role, rights)


def _membership(connection: Connection, known: Iterable[str]) -> Iterator[str]:
    """Make a user that owns the tables a member of OWNER, which will own them, so that it can still change them."""
    [(user, is_superuser, is_owner)] = connection.fetch(Statement(_USER, (list(TABLES),)))
    is_member = OWNER in known and connection.fetch(Statement(_IS_MEMBER, (OWNER,))) == [(True,)]
    if is_owner and not is_superuser and not is_member:
        yield f"GRANT {OWNER} TO {user}"


def _access_grants(connection: Connection, place: Place, known: Iterable[str]) -> Iterator[str]:
    """Let all roles connect, and only the owner make tables; in PostgreSQL 14's `public` everybody may."""
    all_may_create = _access(connection, _PUBLIC)[2]
    for role in ROLES:
        checked_role = role if role in known else _PUBLIC
        connects, uses, creates = _access(connection, checked_role)
        if not connects:
            yield f"GRANT CONNECT ON DATABASE {place.database} TO {role}"
        if not uses:
            yield f"GRANT USAGE ON SCHEMA {place.schema} TO {role}"
        if role == OWNER and (all_may_create or not creates):
            yield f"GRANT CREATE ON SCHEMA {place.schema} TO {role}"
    if all_may_create:
        yield f"REVOKE CREATE ON SCHEMA {place.schema} FROM PUBLIC"


def _access(connection: Connection, role: str) -> tuple[bool, bool, bool]:
    """Tell whether a role may connect to the database, use its schema, and make tables there."""
    [(connects, uses, creates)] = connection.fetch(Statement(_ACCESS, (role,) * 3))
    return connects, uses, creates


def _ownership(connection: Connection, place: Place) -> Iterator[str]:
    for kind, text in (("TABLE", _OWNER_OF_TABLES), ("STATISTICS", _OWNER_OF_STATISTICS)):
        for name, owner in _owners(connection, text).items():
            if owner != OWNER:
                yield f"ALTER {kind} {place.schema}.{name} OWNER TO {OWNER}"


def _owners(connection: Connection, text: str) -> dict[str, str]:
    return {str(name): str(owner) for name, owner in connection.fetch(Statement(text, (list(TABLES),)))}


def _privileges(connection: Connection, place: Place, role: str, rights: Mapping[str, frozenset[str]]) -> Iterator[str]:
    granted: dict[str, set[str]] = {}
    grantable: dict[str, set[str]] = {}
    for table, privilege, is_grantable in connection.fetch(Statement(_GRANTED, (list(TABLES), role))):
        granted.setdefault(table, set()).add(privilege)
        if is_grantable:
            grantable.setdefault(table, set()).add(privilege)
    for table, wanted in rights.items():
        held = granted.get(table, set())
        if table in grantable:
            options = ", ".join(sorted(grantable[table]))
            yield f"REVOKE GRANT OPTION FOR {options} ON {place.schema}.{table} FROM {role} CASCADE"
        if lacking := sorted(wanted - held):
            yield f"GRANT {', '.join(lacking)} ON {place.schema}.{table} TO {role}"
        if excess := sorted(held - wanted):
            yield f"REVOKE {', '.join(excess)} ON {place.schema}.{table} FROM {role}"


_KNOWN: Final = "SELECT rolname::text FROM pg_roles WHERE rolname = ANY(?)"
_USER: Final = """
SELECT quote_ident(rolname), rolsuper,
    EXISTS (SELECT FROM pg_database WHERE datname = current_database() AND datdba = pg_roles.oid) OR EXISTS (
        SELECT FROM pg_class
        WHERE relnamespace = quote_ident(current_schema())::regnamespace
          AND relname = ANY(?) AND relowner = pg_roles.oid
    )
FROM pg_roles WHERE rolname = current_user
"""
"""The user, whether it is a superuser, and whether it owns the database or a table."""
_IS_MEMBER: Final = "SELECT pg_has_role(?, 'USAGE')"
_PLACE: Final = "SELECT quote_ident(current_database()), quote_ident(current_schema())"
_ACCESS: Final = """
SELECT has_database_privilege(?::name, current_database(), 'CONNECT'),
       has_schema_privilege(?::name, current_schema(), 'USAGE'),
       has_schema_privilege(?::name, current_schema(), 'CREATE')
"""
_OWNER_OF_TABLES: Final = """
SELECT relname::text, pg_get_userbyid(relowner)::text FROM pg_class
WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind IN ('r', 'p') AND relname = ANY(?)
ORDER BY relname
"""
_OWNER_OF_STATISTICS: Final = """
SELECT stxname::text, pg_get_userbyid(stxowner)::text FROM pg_statistic_ext JOIN pg_class ON pg_class.oid = stxrelid
WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relname = ANY(?) ORDER BY stxname
"""
_GRANTED: Final = """
SELECT relname::text, privilege_type || coalesce(' (' || quote_ident(attname) || ')', ''), is_grantable
FROM pg_class, LATERAL (
    SELECT NULL, relacl UNION ALL SELECT attname, attacl FROM pg_attribute WHERE attrelid = pg_class.oid
) AS granting (attname, acl), aclexplode(acl)
WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relname = ANY(?)
  AND coalesce(pg_get_userbyid(nullif(grantee, 0))::text, 'public') = ?
"""
"""Privileges on tables, and on single columns, which no role needs, and whether each may be granted to others."""
