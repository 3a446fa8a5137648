"""The rules of Citus for schemas and statements, checked on plain PostgreSQL.

Citus keeps all rows of an organization on one machine, so unique keys, joins and changes must stay within one.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
import pytest

import everything
import postgres_server
from laudo.server import migrations
from laudo.server.citus import DISTRIBUTED, REFERENCE
from laudo.server.stores import open_store
from postgres_server import Server

EXPRESSIONS: Final = {"pessoa_words": "an index of words, each of which begins with its organization"}
"""Indexes on expressions, which cannot begin with the column of the organization, and why they are allowed."""

Connection = psycopg.Connection[Any]

# All tests run in one worker, so that all functions are run on a store only once.
pytestmark = pytest.mark.xdist_group("citus")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server.start() as started:
        for name in ("kept", "used"):
            started.execute(f"CREATE DATABASE {name}")
            database = open_store(started.url(name), write=True)
            migrations.migrate(database)
            database.close()
        yield started


@pytest.fixture
def migrated(server: Server) -> Iterator[Connection]:
    """A transaction that is rolled back, on a store that nothing else uses."""
    with psycopg.connect(server.url("kept")) as connection:
        yield connection
        connection.rollback()


# The schema.


class Rule(NamedTuple):
    """A rule: a query that finds violations, a script that violates it, and `named`, what the query then finds."""

    query: str
    broken: str
    named: str


_OWN: Final = "relnamespace = current_schema()::regnamespace"
_TENANT: Final = "SELECT own.attnum FROM pg_attribute AS own WHERE own.attrelid = {} AND own.attname = 'id_organizacao'"

RULES: Final[Mapping[str, Rule]] = {
    "a table is distributed or a reference table, and nothing else is in the schema but indexes": Rule(
        f"SELECT relname FROM pg_class WHERE {_OWN} AND relkind NOT IN ('i', 'I', 't')"
        " AND NOT (relkind = 'r' AND relname = ANY (%(distributed)s::text[] || %(reference)s::text[]))",
        "CREATE TABLE more (id_organizacao BIGINT NOT NULL PRIMARY KEY)",
        "more",
    ),
    "there is no view": Rule(
        f"SELECT relname FROM pg_class WHERE {_OWN} AND relkind IN ('v', 'm')",
        "CREATE VIEW more AS SELECT 1",
        "more",
    ),
    "there is no sequence": Rule(
        f"SELECT relname FROM pg_class WHERE {_OWN} AND relkind = 'S'",
        "ALTER TABLE facet ADD COLUMN more BIGSERIAL",
        "facet_more_seq",
    ),
    "a table that is listed exists": Rule(
        "SELECT name FROM unnest(%(distributed)s::text[] || %(reference)s::text[]) AS name"
        " WHERE to_regclass(name) IS NULL",
        "DROP TABLE heartbeat",
        "heartbeat",
    ),
    "a table is plain, and survives a crash": Rule(
        f"SELECT relname FROM pg_class WHERE {_OWN} AND relkind = 'r'"
        " AND (relpersistence <> 'p' OR relispartition OR relhassubclass OR relrowsecurity)",
        "ALTER TABLE facet SET UNLOGGED",
        "facet",
    ),
    "a distributed table has the organization, of one type, never null": Rule(
        "SELECT name FROM unnest(%(distributed)s::text[]) AS name LEFT JOIN pg_attribute"
        " ON attrelid = to_regclass(name) AND attname = 'id_organizacao' AND atttypid = 'bigint'::regtype"
        " AND attnotnull WHERE attnum IS NULL",
        "ALTER TABLE tally ALTER COLUMN id_organizacao TYPE INTEGER",
        "tally",
    ),
    "a primary key begins with the organization": Rule(
        "SELECT name FROM unnest(%(distributed)s::text[]) AS name LEFT JOIN pg_index ON indrelid = to_regclass(name)"
        f" AND indisprimary AND indkey[0] = ({_TENANT.format('indrelid')}) WHERE indexrelid IS NULL",
        "ALTER TABLE tally DROP CONSTRAINT tally_pkey; ALTER TABLE tally ADD PRIMARY KEY"
        " (id_conta, id_organizacao, axis, parent, facet, bucket)",
        "tally",
    ),
    "a reference table has a primary key": Rule(
        "SELECT name FROM unnest(%(reference)s::text[]) AS name LEFT JOIN pg_index ON indrelid = to_regclass(name)"
        " AND indisprimary WHERE indexrelid IS NULL",
        "ALTER TABLE token DROP CONSTRAINT token_pkey",
        "token",
    ),
    "what is unique begins with the organization": Rule(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indisunique"
        " AND indrelid = ANY (%(distributed)s::text[]::regclass[])"
        f" AND indkey[0] <> ({_TENANT.format('indrelid')})",
        "ALTER TABLE usuario ADD CONSTRAINT more UNIQUE (email)",
        "more",
    ),
    "an index begins with the organization": Rule(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = ANY (%(distributed)s::text[]::regclass[])"
        f" AND indkey[0] <> ({_TENANT.format('indrelid')})"
        " AND NOT (indexrelid::regclass::text = ANY (%(expressions)s::text[]) AND indexprs IS NOT NULL)",
        "CREATE INDEX more ON relatorio (recency)",
        "more",
    ),
    "an index is valid": Rule(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = ANY (%(distributed)s::text[]::regclass[])"
        " AND NOT indisvalid",
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'pessoa_nome_recency'::regclass",
        "pessoa_nome_recency",
    ),
    "a foreign key has the organization on both sides": Rule(
        "SELECT conname FROM pg_constraint WHERE contype = 'f' AND NOT EXISTS ("
        " SELECT FROM unnest(conkey, confkey) AS pair (one, other)"
        f" WHERE one = ({_TENANT.format('conrelid')}) AND other = ({_TENANT.format('confrelid')}))",
        "ALTER TABLE token ADD CONSTRAINT more FOREIGN KEY (id_token) REFERENCES token (id_token)",
        "more",
    ),
    "a foreign key joins distributed tables, and changes nothing": Rule(
        "SELECT conname FROM pg_constraint WHERE contype = 'f' AND ((confupdtype, confdeltype) <> ('a', 'a')"
        " OR NOT ARRAY[conrelid, confrelid]::regclass[] <@ %(distributed)s::text[]::regclass[])",
        "ALTER TABLE token ADD CONSTRAINT more FOREIGN KEY (id_organizacao) REFERENCES organizacao",
        "more",
    ),
    "a constraint is a key, a check or a foreign key": Rule(
        "SELECT conname FROM pg_constraint WHERE connamespace = current_schema()::regnamespace"
        " AND (contype NOT IN ('p', 'u', 'c', 'f', 'n') OR condeferrable)",
        "ALTER TABLE facet ADD CONSTRAINT more EXCLUDE (total WITH =)",
        "more",
    ),
    "there is no trigger": Rule(
        "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal",
        "CREATE TRIGGER more BEFORE UPDATE ON facet FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "more",
    ),
    "there is no rule": Rule(
        f"SELECT rulename FROM pg_rewrite JOIN pg_class ON pg_class.oid = ev_class WHERE {_OWN}",
        "CREATE RULE more AS ON DELETE TO facet DO INSTEAD NOTHING",
        "more",
    ),
    "there is no function": Rule(
        "SELECT proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace",
        "CREATE FUNCTION more() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "more",
    ),
    "there is no type": Rule(
        "SELECT typname FROM pg_type WHERE typnamespace = current_schema()::regnamespace"
        " AND typtype IN ('d', 'e', 'r')",
        "CREATE DOMAIN more AS int",
        "more",
    ),
    "there is no extension": Rule(
        "SELECT extname FROM pg_extension WHERE extname NOT LIKE 'citus%%' AND extname <> 'plpgsql'",
        "UPDATE pg_extension SET extname = 'more'",
        "more",
    ),
    "a default is a constant": Rule(
        "SELECT attname FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum"
        " WHERE attgenerated <> '' OR pg_get_expr(adbin, adrelid) !~ '^([0-9]+|''[^'']*''::text)$'",
        "ALTER TABLE token ALTER COLUMN created_at SET DEFAULT extract(epoch FROM now())::bigint",
        "created_at",
    ),
    "no column is an identity": Rule(
        f"SELECT attname FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid WHERE {_OWN} AND attidentity <> ''",
        "ALTER TABLE token ALTER COLUMN id_token ADD GENERATED ALWAYS AS IDENTITY",
        "id_token",
    ),
    "a column is a number, bytes, or a text that is compared by its bytes": Rule(
        f"SELECT attname FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid WHERE {_OWN} AND relkind = 'r'"
        " AND attnum > 0 AND NOT attisdropped AND (atttypid, attcollation) NOT IN (('bigint'::regtype, 0),"
        " ('bytea'::regtype, 0), ('text'::regtype, (SELECT oid FROM pg_collation WHERE collname = 'C')))",
        "ALTER TABLE token ADD COLUMN more TEXT",
        "more",
    ),
    "a planner knows that an account is of one organization": Rule(
        "SELECT attrelid::regclass::text FROM pg_attribute WHERE attname = 'id_conta'"
        " AND attrelid = ANY (%(distributed)s::text[]::regclass[]) AND NOT EXISTS (SELECT FROM pg_statistic_ext"
        f" WHERE stxrelid = attrelid AND ARRAY[attnum, ({_TENANT.format('pg_attribute.attrelid')})] <@ stxkeys::int2[]"
        " AND stxkind @> '{d,f}')",
        "DROP STATISTICS relatorio_owner",
        "relatorio",
    ),
}


def found(connection: Connection, rule: Rule) -> list[str]:
    """Return the violations of a rule."""
    lists = {"distributed": list(DISTRIBUTED), "reference": list(REFERENCE), "expressions": list(EXPRESSIONS)}
    return [str(name) for (name,) in connection.execute(rule.query.encode(), lists).fetchall()]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_schema_obeys_the_rule(migrated: Connection, rule: Rule) -> None:
    assert found(migrated, rule) == []


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_rule_detects_a_violation(migrated: Connection, rule: Rule) -> None:
    migrated.execute(rule.broken.encode())
    assert found(migrated, rule) == [rule.named]


def test_tables_are_listed_once_and_after_the_tables_they_reference(migrated: Connection) -> None:
    assert len({*DISTRIBUTED, *REFERENCE}) == len((*DISTRIBUTED, *REFERENCE))
    pairs = migrated.execute(
        "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
    ).fetchall()
    assert pairs
    assert all(DISTRIBUTED.index(other) < DISTRIBUTED.index(own) for own, other in pairs)


# The statements.

FORBIDDEN: Final[Mapping[str, str]] = {
    "a clock or chance, which each machine has its own": (
        r"\b(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|random|gen_random_uuid)\s*\("
        r"|\b(current_timestamp|current_date|current_time|localtime|localtimestamp)\b"
    ),
    "a sequence": r"\b(nextval|currval|lastval|setval)\s*\(",
    "a change within a WITH": r"\bWITH\b.*\b(INSERT|UPDATE|DELETE|MERGE)\b",
    "a lock on rows or tables": r"\bFOR\s+(NO\s+KEY\s+UPDATE|UPDATE|KEY\s+SHARE|SHARE)\b|\bLOCK\s+TABLE\b",
    "where a row lies, or who wrote it": r"\b(xmin|xmax|cmin|cmax|ctid|tableoid)\b",
    "a message to other sessions": r"\b(LISTEN|UNLISTEN|NOTIFY)\b|\bpg_notify\b",
    "what a change gives back": r"\bRETURNING\b",
    "a state of the session, but how a transaction is made durable": (
        r"\b(current_setting|set_config)\s*\((?!'synchronous_commit')|\b(current_user|session_user)\b|\bSAVEPOINT\b"
    ),
    "a procedure": r"^\s*(CALL|DO|MERGE)\b",
    "a change of the organization": r"\bSET\b(?:(?!\bWHERE\b|\bFROM\b).)*\bid_organizacao\s*=",
}

OF_THE_WHOLE_STORE: Final[Mapping[str, str]] = {
    r"SELECT COALESCE\(MAX\(id_\w+\), 0\) FROM \w+": "a new id is unique in the whole store",
    r"SELECT [\w, ]+ FROM (organizacao|conta|usuario) ORDER BY [\w, ]+": "a list for those who run the store",
    r"SELECT id_organizacao(, id_conta)? FROM (conta|usuario) WHERE id_\w+ = \?": "an id on the command line",
    r"SELECT count\(\*\), id_organizacao.* WHERE (\w+ \S+ 0 AND )?NOT EXISTS \(.*\) GROUP BY id_organizacao.*": (
        "what has no owner is found where its owner would be"
    ),
}
"""Statements of the command line that are not limited to one organization, and why."""


@pytest.fixture(scope="module")
def record(server: Server, tmp_path_factory: pytest.TempPathFactory) -> everything.Record:
    return everything.done(server.url("used"), tmp_path_factory.mktemp("used") / "laudo.key")


def test_the_record_covers_every_function_that_queries_a_store(record: everything.Record) -> None:
    kept = (
        "server/migrations",
        "server/locks",
        "server/roles",
        "server/citus",
        "server/heartbeats",
        "server/replicas",
    )
    engines = ("core/sql/sqlite", "server/sqlite", "server/postgres")
    others = (*kept, *engines, "server/ingest/words", "server/ingest/copying")
    known = everything.functions()
    asking = {(module, name) for module, name in known if not module.startswith(others)}
    assert len(asking) > 80
    assert asking - record.functions == set()
    assert len(record.statements) > 200  # most differ only in order and filters


@pytest.mark.parametrize("pattern", FORBIDDEN.values(), ids=FORBIDDEN)
def test_no_recorded_statement_uses_a_forbidden_construct(record: everything.Record, pattern: str) -> None:
    forbidden = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    assert [text for text in record.statements if forbidden.search(text)] == []


@pytest.mark.parametrize("pattern", FORBIDDEN.values(), ids=FORBIDDEN)
def test_no_sql_in_the_source_uses_a_forbidden_construct(pattern: str) -> None:
    """This finds statements of rare cases, which may be missing from the recorded ones."""
    forbidden = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    texts = list(_texts())
    assert len(texts) > 50
    assert [text for text in texts if forbidden.search(text)] == []


def test_every_statement_stays_within_one_organization(record: everything.Record) -> None:
    others = [text for text in record.statements if not any(re.fullmatch(each, text) for each in OF_THE_WHOLE_STORE)]
    assert len(record.statements) - len(others) >= len(OF_THE_WHOLE_STORE)
    assert [text for text in others if not all(map(_is_owned, _blocks(text)))] == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT item FROM relatorio WHERE id_conta = ?",
        "SELECT item FROM relatorio WHERE id_organizacao > ?",
        "SELECT nome FROM relatorio JOIN facet USING (id_conta, facet) WHERE id_organizacao = ?",
        "SELECT 1 FROM conta WHERE id_organizacao = ? AND EXISTS (SELECT 1 FROM facet WHERE total > 0)",
        "UPDATE facet SET total = 0 WHERE id_conta = ?",
        "UPDATE facet SET total = given.total FROM unnest(?::bigint[]) AS given (total) WHERE facet.facet = ?",
        "DELETE FROM pessoa WHERE cpf = ?",
        "INSERT INTO conta (id_conta, id_organizacao) VALUES (?, ?)",
        "INSERT INTO conta (id_organizacao, id_conta) SELECT given.* FROM unnest(?::bigint[], ?::bigint[]) AS given",
        "INSERT INTO tally (id_organizacao, total) SELECT id_organizacao, total FROM bucket",
    ],
)
def test_a_statement_across_organizations_is_detected(text: str) -> None:
    assert not all(map(_is_owned, _blocks(text)))


def _blocks(text: str) -> list[str]:
    """Split a statement into its SELECTs, each without the nested ones; other parentheses become braces."""
    blocks = []
    while inner := re.search(r"\(([^()]*)\)", text):
        is_query = inner[1].lstrip().upper().startswith("SELECT")
        if is_query:
            blocks.append(inner[1])
        text = f"{text[: inner.start()]}{'<query>' if is_query else '{' + inner[1] + '}'}{text[inner.end() :]}"
    return [*blocks, text]


def _is_owned(block: str) -> bool:
    """Tell whether a SELECT or a change limits each distributed table to one organization."""
    inserted = re.match(r"\s*INSERT INTO (\w+) \{(\w+)", block)
    if inserted and inserted[1] in DISTRIBUTED:
        given = re.search(r"\bVALUES \{\?|\bSELECT \?1::bigint\b|\bSELECT id_organizacao\b", block)
        if inserted[2] != "id_organizacao" or not given:
            return False
        block = block[inserted.end() :]
    tables = [name for name in _TABLE.findall(block) if name in DISTRIBUTED]
    return len(tables) <= len(_BOUND.findall(block)) + len(_JOINED.findall(block))


_TABLE: Final = re.compile(r"\b(?:FROM|JOIN|UPDATE|USING)\s+(\w+)")
_BOUND: Final = re.compile(r"\bid_organizacao = \?")
_JOINED: Final = re.compile(r"\bUSING \{id_organizacao\b|\b\w+\.id_organizacao = \w+\.id_organizacao\b")


def _texts() -> Iterator[str]:
    """Yield the SQL constants of the source, except SQLite's, queries of the catalog, and those that open a session."""
    for path in [*everything.SOURCE.glob("core/sql/**/*.py"), *everything.SOURCE.glob("server/**/*.py")]:
        if path.stem not in {"sqlite", "words", "roles", "citus", "session"} and "migrations" not in path.parts:
            yield from _constants(path)


def _constants(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text("utf-8"))
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in described]
    yield from (node.value for node in constants if isinstance(node.value, str) and _SQL.search(node.value))


_SQL: Final = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|SET|ORDER BY|JOIN)\b")
