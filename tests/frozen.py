"""Small stores, kept in `frozen_stores/` as the version with each schema has filled them, for migrations to meet.

`.venv/bin/python tests/frozen.py` adds one, filled by this version, named by the last migration of PostgreSQL.
"""

import io
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

import apsw
from msgspec.structs import replace

from factories import Store
from laudo.core.sql import POSTGRES, SQLITE, Statement
from laudo.server import migrations, schema
from laudo.server.database import Database
from laudo.server.ingest import records, words
from laudo.server.ingest.records import Rejected, Relatorio, Source
from laudo.server.stores import open_store
from strategies import many

_FOLDER: Final = Path(__file__).with_name("frozen_stores")
PATHS: Final = sorted(_FOLDER.iterdir())
"""The frozen stores, the oldest first."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """The rows of a store, and for each engine the last migration that its version knew."""

    migrations: dict[str, str]
    tables: dict[str, list[dict[str, Any]]]

    @classmethod
    def read(cls, path: Path) -> Self:
        kept = json.loads(path.read_text("utf-8"), object_hook=_bytes)
        return cls(kept["migrations"], {table: _rows(*rows) for table, rows in kept["tables"].items()})

    def thaw(self, database: Database, folder: Path) -> None:
        """Make the store again in an empty one: the older schema, whose files are put into `folder`, and the rows."""
        for file in schema.files(schema.folder(database.dialect)):
            if file.name <= self.migrations[database.dialect.name]:
                (folder / file.name).write_text(file.read_text("utf-8"), "utf-8")
        migrations.migrate(database, folder=folder)
        with database.transaction() as connection:
            for table, rows in self.tables.items():
                columns = [each for each in rows[0] if connection.has_column(table, each)]
                text = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
                connection.fetch_each([Statement(text, tuple(row[each] for each in columns)) for row in rows])
            if connection.dialect.keeps_words:
                words.rebuild(connection)

    def reports(self) -> Iterator[tuple[int, Relatorio]]:
        """Give the reports, each with its id_conta, as an import of this version reads them."""
        for row in self.tables["relatorio"]:
            line = json.dumps({**json.loads(row["item"]), "nome_pessoa": row["nome_pessoa"]}).encode()
            for found in records.read(Source(io.BytesIO(line)), accept_invalid_documents=True):
                assert found is not None
                assert not isinstance(found, Rejected)
                yield row["id_conta"], found[1]


def last_migrations() -> dict[str, str]:
    """Give the last migration of each engine that this version knows."""
    return {engine.name: schema.files(schema.folder(engine))[-1].name for engine in (SQLITE, POSTGRES)}


def _freeze() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "laudo.db"
        with closing(open_store(f"sqlite:///{path}", write=True)) as database:
            migrations.migrate(database)
            _fill(Store(database, path.with_name("laudo.key")))
        tables = _tables(apsw.Connection(str(path)))
    last = last_migrations()
    text = json.dumps({"migrations": last, "tables": tables}, ensure_ascii=False, default=_hex)
    (_FOLDER / f"{last['postgres'][:4]}.json").write_text(text.replace("], [", "],\n[") + "\n", "utf-8")


def _fill(store: Store) -> None:
    """Write, change and delete reports of three accounts, two of them of one organization."""
    first = store.account()
    for seed, account in enumerate((first, store.account(first.id_organizacao), store.account())):
        reports = [each for each in many(30, seed=seed) if len(each.nome_pessoa) < 50]
        store.write(account, reports)
        store.write(
            account, [replace(each, atualizado_em=each.atualizado_em + 1, mensagem="") for each in reports[::4]]
        )
        store.delete(account, *range(3))


def _tables(connection: apsw.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Give each table's columns, followed by its rows."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for table in [str(name) for (name,) in connection.execute(_TABLES)]:
        cursor = connection.execute(f"SELECT * FROM {table}")
        found[table] = [tuple(name for name, *_ in cursor.get_description()), *cursor]
    return found


def _rows(columns: list[str], *rows: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _hex(value: bytes) -> dict[str, str]:
    return {"hex": value.hex()}


def _bytes(value: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON is anything
    return bytes.fromhex(value["hex"]) if value.keys() == {"hex"} else value


_TABLES: Final = """
SELECT name FROM sqlite_schema
WHERE type = 'table' AND name <> 'migration' AND substr(name, 1, 12) <> 'pessoa_words'
ORDER BY rowid
"""
"""All but the index of words, which only SQLite has as a table, and the migrations."""

if __name__ == "__main__":
    _freeze()
