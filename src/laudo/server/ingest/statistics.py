"""Has PostgreSQL look at tables that fill: what it has not looked at it takes for small, and reads whole accounts.

Autovacuum would do so within a minute or two, in which each first page costs what COUNT does.
"""

from typing import Final

from laudo.core.sql import Statement
from laudo.server.database import Connection

LEAST: Final = 1000
"""Reports of which it matters how they are found."""
GROWTH: Final = 4


class Statistics:
    """What the server's planner has been told of an account by one writer."""

    def __init__(self) -> None:
        """Start with nothing told."""
        self._told = 0

    def follow(self, connection: Connection, reports: int) -> None:
        """Have the tables looked at, where the server knows of no more than a quarter of the reports of one account.

        Who does not own the tables may not have it: the server warns, and does nothing.
        """
        analyze = connection.dialect.analyze
        if not analyze or reports < max(LEAST, self._told * GROWTH):
            return
        self._told = reports
        [(known,)] = connection.fetch(Statement(_KNOWN))
        if known * GROWTH <= reports:
            connection.run_script(analyze)


_KNOWN: Final = """
SELECT CASE WHEN EXISTS (
  SELECT FROM pg_stats WHERE schemaname = current_schema() AND tablename = 'relatorio' AND attname = 'id_conta'
) THEN reltuples ELSE 0 END
FROM pg_class WHERE oid = to_regclass('relatorio')
"""
"""Whoever makes an index counts the rows of its table, and tells nothing of what these hold."""
