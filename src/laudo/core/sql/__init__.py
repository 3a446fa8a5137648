"""Look-up → Statement: every SELECT of the lists is written here and starts from the owner."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from laudo.core.facets import FIELDS
from laudo.core.lookups import At, Before, Children, Count, Found, Holding, LookUp, Plain, Read, Whole
from laudo.core.resources import Resource
from laudo.core.sql import pages, places, plain
from laudo.core.sql.dialect import Dialect, Owner, Statement
from laudo.core.sql.parts import with_first_column
from laudo.core.sql.postgres import POSTGRES
from laudo.core.sql.sqlite import SQLITE
from laudo.core.sql.writes import How, Write

__all__ = [
    "POSTGRES",
    "SQLITE",
    "Dialect",
    "How",
    "Owner",
    "Statement",
    "Write",
    "facets",
    "in_one_statement",
    "statement",
    "total",
    "version",
    "with_version",
]


def statement(lookup: LookUp, owner: Owner, dialect: Dialect) -> Statement:
    """Write a look-up of an owner's rows in an engine's dialect."""
    return _BUILDERS[type(lookup)](lookup, owner, dialect)


def in_one_statement(lookup: Read | Whole | Plain, resource: Resource, owner: Owner, dialect: Dialect) -> Statement:
    """Write a look-up that also gives the list's version; statements for the beginning of a list are cached."""
    read = lookup.read if isinstance(lookup, Whole) else lookup
    begins = isinstance(read, Read) and read.lower is None and read.upper is None
    write = _cached if begins and len(read.facets or ()) <= _FEW else _written
    return write(lookup, resource, owner, dialect)


def with_version(asked: Statement, resource: Resource, owner: Owner) -> Statement:
    """Add the list's version to a statement, as the first column of each row."""
    return with_first_column(version(resource, owner), asked)


def version(resource: Resource, owner: Owner) -> Statement:
    """Ask for the version of an owner's list."""
    if resource.whole_organization:
        return Statement(_VERSION_OF_ORGANIZACAO, (owner.id_organizacao,))
    return Statement(_VERSION_OF_CONTA, owner)


def total(resource: Resource, owner: Owner) -> Statement:
    """Ask how many rows an owner's list has without filters."""
    return places.total(resource.newest_axis, owner)


def facets(resource: Resource, owner: Owner, *, one_by_one: bool = True) -> Statement:
    """Ask for an owner's facets, each row a `Facet`; persons are one facet, and so are reports unless `one_by_one`."""
    if one_by_one and not resource.whole_organization:
        return Statement(_FACETS, owner)
    whole = total(resource, owner)
    return Statement(f"SELECT 0, total FROM ({whole.text}) AS whole", whole.params)


def _written(lookup: LookUp, resource: Resource, owner: Owner, dialect: Dialect) -> Statement:
    return with_version(statement(lookup, owner, dialect), resource, owner)


_cached: Final = lru_cache(maxsize=512)(_written)
_FEW: Final = 256
"""How many facets a cached statement may name."""
_BUILDERS: Final[dict[type[LookUp], Callable[[Any, Owner, Dialect], Statement]]] = {
    Children: places.children,
    Holding: places.holding,
    Before: places.before,
    At: places.at,
    Count: places.count,
    Read: pages.read,
    Whole: pages.whole,
    Plain: plain.plain,
    Found: plain.found,
}
_VERSION_OF_CONTA: Final = "SELECT version FROM conta WHERE id_organizacao = ? AND id_conta = ?"
_VERSION_OF_ORGANIZACAO: Final = "SELECT version FROM organizacao WHERE id_organizacao = ?"
_FACETS: Final = (
    f"SELECT facet, total, {', '.join(FIELDS)} FROM facet WHERE id_organizacao = ? AND id_conta = ? AND total > 0"
)
