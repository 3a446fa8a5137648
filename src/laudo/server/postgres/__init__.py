"""The PostgreSQL engine, over psycopg's binding of libpq: a store that many processes and machines share."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Final

from laudo.core.sql import POSTGRES, Dialect, Statement
from laudo.server.database import NO_VACUUM, Bounds, Mark, Row, StoreError, Unavailable, retry_lost
from laudo.server.postgres import address
from laudo.server.postgres.pool import Pool
from laudo.server.postgres.session import Session
from laudo.server.postgres.transaction import ALONE, SNAPSHOT, TRANSACTION, PostgresConnection

_NOTHING: Final = Statement("SELECT")

_WITH_MARK: Final = (
    """SELECT CASE WHEN NOT pg_is_in_recovery() AND to_regclass('pg_catalog.pg_dist_partition') IS NULL
AND to_regproc('pg_catalog.pg_stat_have_stats') IS NOT NULL
THEN timestamptz_send(pg_postmaster_start_time()) || timestamptz_send(pg_stat_get_bgwriter_stat_reset_time())
|| pg_snapshot_send(pg_current_snapshot()) END, marked.* FROM (""",
    ") AS marked",
)
"""The mark: when the server was started, when its statistics began, which a crash resets, and the transactions whose
work a statement sees. While all are the same, nobody has committed. After a crash the server may give numbers of ended
transactions again, since not every end is on the disk. There is no mark on a standby, which does not know all running
transactions; with Citus, which does not tell what its workers have done; and on PostgreSQL 14, which lacks the function
looked for, and keeps its statistics in a file that takes too long to read."""


class Postgres:
    """A store on a server. Threads share its few connections; without `write` these only read."""

    dialect: Dialect = POSTGRES

    def __init__(self, url: str, *, write: bool, bounds: Bounds) -> None:
        """Connect once, so that a wrong URL, user or server is found now; raises StoreError.

        A store opened to read may be unreachable, which is no error: a worker may start before its store.
        """
        self._bounds = bounds
        self._conninfo = address.conninfo(url, bounds, write=write)
        self._name = address.display_name(self._conninfo)
        self._write = write
        limit = bounds.write_timeout_ms if write else bounds.statement_timeout_ms
        self._pool = Pool(partial(self._open, limit), bounds)
        try:
            self._pool.give_back(self._pool.borrow())
        except Unavailable:
            if write:
                raise

    def __repr__(self) -> str:
        """Show no password."""
        return f"Postgres({self})"

    def __str__(self) -> str:
        """Name only the host and the database."""
        return self._name

    def fetch(self, statement: Statement) -> list[Row]:
        """Run one statement in a snapshot of its own, and again if its connection is lost.

        A store opened to write runs it only once, since it may change something. Raises Unavailable, StoreError.
        """
        return self.fetch_each((statement,))[-1]

    def fetch_each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Do the same with several statements, in one round trip."""
        return self._run(statements)[0]

    def fetch_marked(self, statements: Sequence[Statement]) -> tuple[list[list[Row]], Mark]:
        """Do the same, and give the mark of the state that the first one saw; once a session is lost, marks differ."""
        first, *others = statements or (_NOTHING,)
        [marked, *found], generation = self._run((Statement(_with_mark(first.text), first.params), *others))
        mark = marked[0][0] if marked else None
        rows = [row[1:] for row in marked]
        return [rows, *found] if statements else [], mark and b"%d %b" % (generation, mark)

    def mark(self) -> Mark:
        """Give None: only a query tells whether something has changed."""
        return None

    def snapshot(self) -> PostgresConnection:
        """Give a connection inside one transaction that only reads, all of it in one state of the store."""
        return PostgresConnection(self._pool, SNAPSHOT)

    def transaction(self) -> PostgresConnection:
        """Give a connection inside a transaction in which each statement sees what others have made durable."""
        return PostgresConnection(self._pool, TRANSACTION)

    def alone(self) -> PostgresConnection:
        """Give a connection outside of the pool and of any transaction; only the server limits its statements' time."""
        return PostgresConnection(Pool(partial(self._open, 0), self._bounds), ALONE)

    def empty_log(self) -> None:
        """Do nothing: a server manages its log by itself."""

    def vacuum(self) -> None:
        raise StoreError(NO_VACUUM)

    def close(self) -> None:
        """Close every connection; one that is in use is closed when its transaction ends."""
        self._pool.close()

    def _open(self, limit_ms: int) -> Session:
        plan_mode = "force_custom_plan" if self._write else "auto"
        return Session.open(self._conninfo, limit_ms=limit_ms, prepare=self._bounds.prepare, plan_mode=plan_mode)

    def _run(self, statements: Sequence[Statement]) -> tuple[list[list[Row]], int]:
        """Give the rows of each statement, and the generation of the session that ran them."""
        attempt = partial(self._run_once, statements)
        return attempt() if self._write else retry_lost(attempt)

    def _run_once(self, statements: Sequence[Statement]) -> tuple[list[list[Row]], int]:
        session = self._pool.borrow()
        try:
            for statement in statements:
                session.send(statement.text, statement.params)
            found = [session.receive()] if len(statements) == 1 else session.receive_each(len(statements))
            return found, session.generation
        finally:
            self._pool.give_back(session)


@lru_cache(maxsize=4096)
def _with_mark(text: str) -> str:
    return text.join(_WITH_MARK)
