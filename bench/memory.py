"""Memory of a worker on SQLite, asked ever different questions by one account and then by many.

    python bench/memory.py --accounts 256 --questions 1000

Megabytes that the process holds (its resident set), server and socket left out: at first, after one account has asked
50 times as many filters by a `nome` that no report has, and after each account has asked so many random lists of its
500 reports. The process that asks has filled nothing.
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import time_ns
from typing import Final

from inside import LIST, Client
from laudo.core.facets import FIELDS
from laudo.core.resources import RELATORIOS
from laudo.demo import invent
from laudo.server import accounts, app, keys, migrations
from laudo.server.config import Settings
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store
from laudo.server.tokens import hash_token, new_token

_REPORTS: Final = 500
_VALUES: Final = {
    "status": ("CONCLUIDO", "PENDENTE", "PROCESSANDO"),
    "tipo_pessoa": ("PESSOA", "EMPRESA"),
    "nome": ("consultaPessoaDefault", "consultaEmpresaDefault", "none"),
    "resultado": ("VALID", "INVALID"),
    "pendente_validacao_manual": ("true", "false"),
}


def main() -> None:
    arguments = _arguments()
    if arguments.folder:
        _ask(arguments.folder, arguments.questions)
        return
    with tempfile.TemporaryDirectory(prefix="laudo-bench-") as folder:
        _fill(Path(folder), arguments.accounts)
        subprocess.run([sys.executable, *sys.argv, "--folder", folder], check=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accounts", type=int, default=256, help="how many ask (default: 256)")
    parser.add_argument("--questions", type=int, default=1000, help="how many each asks (default: 1,000)")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _fill(folder: Path, number: int) -> None:
    """Make a store of `number` accounts, each in an organization of its own, and a file of their tokens."""
    keys.make(folder / "laudo.key")
    key, reports, tokens = keys.load(folder / "laudo.key"), list(invent.relatorios(_REPORTS)), []
    with closing(open_store(_store(folder), write=True)) as database:
        migrations.migrate(database)
        for each in range(number):
            tokens.append(new_token())
            with database.transaction() as connection:
                _, conta = accounts.create_organizacao(connection, f"Organização {each}")
                usuario = accounts.create_usuario(connection, conta.id_conta, email="a@example.com", nome="Analista")
                hashed = hash_token(key, tokens[-1])
                accounts.create_token(connection, usuario.id_usuario, hashed, now_ms=time_ns() // 1_000_000)
            Ingest(database, conta.id_conta).write(reports)
    (folder / "tokens").write_text("\n".join(tokens))


def _ask(folder: Path, questions: int) -> None:
    settings = Settings(store=_store(folder), key_file=str(folder / "laudo.key"), log=False)
    with closing(open_store(settings.store)) as database:
        application = app.create(settings, database=database)
        clients = [Client(application, token) for token in (folder / "tokens").read_text().split()]
        _show("at first")
        for number in range(50 * questions):
            clients[0].get(f"{LIST}?nome=n{number}")
        _show(f"one account, {50 * questions:,} questions")
        lists = _lists()
        for client in clients:
            for _ in range(questions):
                client.get(next(lists))
        _show(f"{len(clients):,} accounts, {questions:,} questions each")


def _lists() -> Iterator[str]:
    """Give lists with random filters on facets, in random orders, on one of the first pages."""
    chosen = random.Random(1)
    orders = [f"{sign}{field.name}" for field in RELATORIOS.fields for sign in ("", "-")]
    while True:
        filters = chosen.sample(FIELDS, chosen.randint(0, 4))
        asked = [f"{name}={chosen.choice(_VALUES[name])}" for name in filters]
        yield f"{LIST}?{'&'.join([*asked, f'sort={chosen.choice(orders)}', f'page={chosen.randint(1, 9)}'])}"


def _show(when: str) -> None:
    [_, resident, *_] = Path("/proc/self/statm").read_text().split()
    print(f"{when:36}{int(resident) * resource.getpagesize() / 1e6:>5.0f} MB", flush=True)


def _store(folder: Path) -> str:
    return f"sqlite:///{folder}/laudo.db"


if __name__ == "__main__":
    main()
