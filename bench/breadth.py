"""What grows with other things than an account's reports: accounts, tokens, combinations of fields, words of names.

    python bench/breadth.py
    python bench/breadth.py --only accounts --sizes 1k,10k

Each store is made anew on SQLite, in a temporary folder. Milliseconds of CPU, each measured once.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time
from typing import Final

from msgspec.structs import replace

from flat import Asker, parsed
from flat import number as size_of
from inside import Client
from laudo.core.documents import cpf_digits
from laudo.core.resources import PESSOAS, RELATORIOS
from laudo.core.sql import Owner
from laudo.demo import invent
from laudo.server import accounts, app, migrations
from laudo.server.config import Settings
from laudo.server.database import Database
from laudo.server.ingest import removal
from laudo.server.ingest.copying import Copy
from laudo.server.ingest.records import Relatorio
from laudo.server.ingest.removal import Removal
from laudo.server.ingest.verify import verify
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store
from laudo.server.tokens import hash_token, new_token
from stores import Built

Measured = Iterator[tuple[str, float]]
_KEY: Final = bytes(32)
_BATCH: Final = 1000
_ERASED: Final = 100
_LEFT: Final = 100
_NUMERO: Final = "00000000-0000-4000-8000-000000000001"
_VOCABULARY: Final = [f"{first}{second}ra" for first in "bcdfglmnpr" for second in ("a", "e", "i", "o", "u")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SUBJECTS, help="measure this alone")
    parser.add_argument("--sizes", help="comma separated, with k or M; by default two for each")
    arguments = parser.parse_args()
    for name, (measure, usual) in SUBJECTS.items():
        for size in map(size_of, (arguments.sizes or usual).split(",")) if arguments.only in {None, name} else ():
            with TemporaryDirectory() as folder:
                url = f"sqlite:///{Path(folder) / 'laudo.db'}"
                with closing(open_store(url, write=True)) as database:
                    migrations.migrate(database)
                    for what, milliseconds in measure(database, url, size):
                        print(f"{size:>9,} {name:<28}{what:<44}{milliseconds:>10.2f} ms", flush=True)


def _of_one_person(database: Database, _url: str, size: int) -> Measured:
    """Delete the newest of a person's reports: the writer looks for the one that is the newest now."""
    owner = _organization(database)
    reports = [
        replace(each, tipo_pessoa="PESSOA", numero_documento=_cpf(1), nome_pessoa="Pessoa Exemplo")
        for each in invent.relatorios(size)
    ]
    _write(database, owner, reports)
    newest = max(reports, key=lambda each: each.atualizado_em)
    ingest = Ingest(database, owner.id_conta)
    yield "delete the newest report", _cpu(lambda: ingest.delete([newest.numero]))


def _accounts(database: Database, _url: str, size: int) -> Measured:
    """Find, erase, prune, verify, delete and copy in an organization whose accounts have one report each."""
    first = _organization(database)
    with database.transaction() as connection:
        for _ in range(size - 1):
            accounts.create_conta(connection, first.id_organizacao, "Filial")
    reports = list(invent.relatorios(size))
    for id_conta, report in enumerate(reports, first.id_conta):
        Ingest(database, id_conta).write([report])
    removing = Removal(database, first.id_organizacao)
    document = reports[0].numero_documento
    absent = [_cpf(number) for number in range(_ERASED)]
    with database.snapshot() as connection:
        yield "find a document", _cpu(lambda: list(removal.reports_of(connection, first.id_organizacao, document)))
    yield f"erase {_ERASED} documents that nobody has", _cpu(lambda: list(removing.delete_documents(absent)))
    yield "prune nothing", _cpu(lambda: list(removing.delete_before(0)))
    yield "verify", _cpu(lambda: list(verify(database)))
    person = replace(reports[0], numero=_NUMERO, numero_documento=_cpf(1), tipo_pessoa="PESSOA", nome_pessoa="Pessoa")
    ingest = Ingest(database, first.id_conta)
    ingest.write([person])
    yield "delete a person's newest report", _cpu(lambda: ingest.delete([person.numero]))
    with TemporaryDirectory() as folder, closing(open_store(f"sqlite:///{Path(folder) / 'copy.db'}", write=True)) as to:
        migrations.migrate(to)
        yield "copy", _cpu(lambda: _copy(Copy(database, to)))


def _copy(copy: Copy) -> None:
    copy.copy_callers()
    copy.copy_reports()
    copy.count()
    list(copy.compare())
    copy.verify()


def _combinations(database: Database, url: str, size: int) -> Measured:
    """Give each report a `nome` of its own, and then delete almost all: their combinations stay, emptied."""
    owner = _organization(database)
    reports = [replace(each, nome=f"modelo{number:06}") for number, each in enumerate(invent.relatorios(size))]
    _write(database, owner, reports)
    yield from _of_combinations(database, Built(url, owner, 0, 0), reports[-1], "in use")
    deleted = [each.numero for each in reports[_LEFT:]]
    ingest = Ingest(database, owner.id_conta)
    for start in range(0, len(deleted), _BATCH):
        ingest.delete(deleted[start : start + _BATCH])
    yield from _of_combinations(database, Built(url, owner, 0, 0), reports[0], "emptied")


def _of_combinations(database: Database, built: Built, report: Relatorio, state: str) -> Measured:
    newer = replace(report, atualizado_em=report.atualizado_em + 1)
    yield f"first report of a writer, {state}", _cpu(lambda: Ingest(database, built.owner.id_conta).write([newer]))
    with closing(open_store(built.url)) as reading:
        asker = Asker(reading, built)
        asker.answer(parsed(RELATORIOS, "", 1))
        filtered = parsed(RELATORIOS, "tipo_pessoa=PESSOA", 1)
        yield f"first filter after a write, {state}", _cpu(lambda: asker.answer(filtered))
        yield f"a filter again, {state}", _cpu(lambda: asker.answer(filtered))
    with database.transaction() as connection:
        made = partial(accounts.create_conta, connection, built.owner.id_organizacao, "Filial")
        yield f"make an account, {state}", _cpu(made)


def _tokens(database: Database, url: str, size: int) -> Measured:
    """List users with a token each, and let all of them ask one worker, one after the other and then again."""
    owner, tokens = _organization(database), [new_token() for _ in range(size)]
    with database.transaction() as connection:
        for token in tokens:
            user = accounts.create_usuario(connection, owner.id_conta, email="suporte@example.com", nome="Suporte")
            accounts.create_token(connection, user.id_usuario, hash_token(_KEY, token), now_ms=invent.NOW_MS)
    with database.snapshot() as connection:
        yield "read all users", _cpu(lambda: accounts.usuarios(connection))
        yield "read all tokens", _cpu(lambda: accounts.tokens(connection))
        yield "tell whether there is any", _cpu(lambda: accounts.has_tokens(connection))
    with closing(open_store(url)) as reading:
        application = app.create(Settings(store=url, log=False), database=reading, key=_KEY)
        for when in ("at first", "again"):
            took = _cpu(lambda: [Client(application, token).get("/relatorios") for token in tokens])
            yield f"a list for each token in turn, {when}", took / size


def _persons(database: Database, url: str, size: int) -> Measured:
    """Search for several words that most names have, since each has forty of fifty."""
    owner, seeded = _organization(database), Random(1)
    reports = [
        replace(each, tipo_pessoa="PESSOA", numero_documento=_cpf(number), nome_pessoa=_long_name(seeded))
        for number, each in enumerate(invent.relatorios(size))
    ]
    _write(database, owner, reports)
    with closing(open_store(url)) as reading:
        asker = Asker(reading, Built(url, owner, 0, 0))
        for words in (1, 2, 4):
            answer = partial(asker.answer, parsed(PESSOAS, f"nome={'+'.join(_VOCABULARY[:words])}", 1))
            answer()
            yield f"first page of {words} words of 40", _cpu(answer)


def _organization(database: Database) -> Owner:
    with database.transaction() as connection:
        organizacao, conta = accounts.create_organizacao(connection, "Organização Exemplo")
    return Owner(organizacao.id_organizacao, conta.id_conta)


def _write(database: Database, owner: Owner, reports: list[Relatorio]) -> None:
    ingest = Ingest(database, owner.id_conta)
    for start in range(0, len(reports), _BATCH):
        ingest.write(reports[start : start + _BATCH])


def _cpf(number: int) -> str:
    base = f"{number + 800_000_000}"  # The demonstration's reports have none of these.
    return base + cpf_digits(base)


def _long_name(seeded: Random) -> str:
    return " ".join(seeded.sample(_VOCABULARY, 40))


def _cpu(work: Callable[[], object]) -> float:
    started = process_time()
    work()
    return (process_time() - started) * 1e3


SUBJECTS: Final = {
    "reports of one person": (_of_one_person, "5k,50k"),
    "accounts": (_accounts, "300,3k"),
    "combinations": (_combinations, "3k,30k"),
    "tokens": (_tokens, "3k,30k"),
    "persons": (_persons, "3k,30k"),
}
"""What there is much of -> how it is measured, and with how much by default."""

if __name__ == "__main__":
    main()
