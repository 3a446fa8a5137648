"""Lets PostgreSQL analyze tables that fill: without statistics it takes them for small, and reads whole accounts.

Autovacuum would analyze them within a minute or two, in which each first page costs as much as COUNT.
"""

from typing import Final

from laudo.core.sql import Statement
from laudo.server.database import Connection

LEAST: Final = 1000
"""Reports from which on it matters how they are found."""
GROWTH: Final = 4


class Statistics:
    """How many reports an account had when its writer last compared them with the planner's statistics."""

    def __init__(self) -> None:
        self._last_reports = 0

    def analyze_if_grown(self, connection: Connection, reports: int) -> None:
        """Analyze the tables if the server knows of no more than a quarter of the reports of one account.

        If the user does not own the tables, the server warns and does nothing.
        """
        analyze = connection.dialect.analyze
        if not analyze or reports < max(LEAST, self._last_reports * GROWTH):
            return
        self._last_reports = reports
        [(known,)] = connection.fetch(Statement(_KNOWN))
        if known * GROWTH <= reports:
            connection.run_script(analyze)


_KNOWN: Final = """
SELECT CASE WHEN EXISTS (
  SELECT FROM pg_stats WHERE schemaname = current_schema() AND tablename = 'relatorio' AND attname = 'id_conta'
) THEN reltuples ELSE 0 END
FROM pg_class WHERE oid = to_regclass('relatorio')
"""
"""Making an index also counts a table's rows, but not what they hold: so pg_stats is looked at, too."""
