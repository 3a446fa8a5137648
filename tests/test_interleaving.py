"""If somebody commits during a request, the answer shows the state before or after it, and no cache is stale."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final

import pytest

from factories import NOON, Account, Store, cpf, relatorio
from forwarding import Forwarding, ForwardingConnection
from laudo.core.sql import Statement
from laudo.server.database import Connection, Database, Mark, Row
from laudo.server.stores import open_store
from strategies import many
from wsgi import Answer, Client, NewApp

URLS: Final = (
    "/relatorios",
    "/relatorios?page=3",
    "/relatorios?sort=-nome&page=2",
    "/relatorios?status=CONCLUIDO&sort=numero_documento",
    "/relatorios?atualizado_em_de=2026-02-02",
    "/relatorios?sort=-mensagem&page=2",
    "/pessoas",
    "/pessoas?busca=maria&sort=nome",
    "/pessoas?sort=-cpf&page=2",
)


class Interrupted(Forwarding):
    """A store that calls a function just before its n-th operation."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._left = -1
        self._happen: Callable[[], object] = int

    def interrupt(self, at: int, happen: Callable[[], object]) -> None:
        """Call `happen` before operation `at` from now on, counted from 0."""
        self._left, self._happen = at, happen

    @property
    def is_over(self) -> bool:
        return self._left < 0

    def step(self) -> None:
        if self._left == 0:
            self._happen()
        self._left -= 1

    def fetch(self, statement: Statement) -> list[Row]:
        self.step()
        return self._database.fetch(statement)

    def mark(self) -> Mark:
        self.step()
        return self._database.mark()

    def fetch_marked(self, statements: Sequence[Statement]) -> tuple[list[list[Row]], Mark]:
        self.step()
        return self._database.fetch_marked(statements)

    def reading(self, connection: Connection) -> Connection:
        return _InterruptedConnection(connection, self)

    def writing(self, connection: Connection) -> Connection:
        pytest.fail(f"a request began a write transaction: {connection}")

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        self.step()
        with super().snapshot() as connection:
            yield connection


class _InterruptedConnection(ForwardingConnection[Interrupted]):
    def fetch(self, statement: Statement) -> list[Row]:
        self._store.step()
        return super().fetch(statement)


def state_of(answer: Answer) -> tuple[int, bytes, str]:
    """Return what must belong to one state; not the links, whose cursors hold the version at which a walk began."""
    return answer.status, answer.body, answer.headers["etag"]


@pytest.mark.parametrize("is_warm", [True, False])
@pytest.mark.parametrize("url", URLS)
def test_a_commit_during_a_request_is_seen_completely_or_not_at_all(
    store: Store, store_url: str, account: Account, new_app: NewApp, url: str, *, is_warm: bool
) -> None:
    numbers = count(1_000)
    store.write(account, many(150))
    database = Interrupted(open_store(store_url))

    def commit() -> None:
        """Change the items and the total of every one of the URLS."""
        batch = [next(numbers) for _ in range(30)]
        people = [f"Maria {number}" for number in batch]
        store.write(
            account,
            [
                relatorio(
                    number,
                    atualizado_em=NOON * 2 + number,
                    numero_documento=cpf(number),
                    nome_pessoa=name,
                    mensagem=name,
                )
                for number, name in zip(batch, people, strict=True)
            ],
        )

    for at in count():
        client = Client(new_app(database), account.token)
        if is_warm:
            # Now the facets are cached but not the page, and the store counts as unchanged if its state is asked for.
            for _ in range(4):
                client.get(f"{url}{'&' if '?' in url else '?'}rows=50")
        before = state_of(Client(new_app(), account.token).get(url))
        database.interrupt(at, commit)
        answer = state_of(client.get(url))
        if not database.is_over:
            break
        after = state_of(Client(new_app(), account.token).get(url))
        assert before != after
        assert answer in {before, after}, at
        assert state_of(client.get(url)) == after, at
    assert at >= 2


@pytest.mark.parametrize("url", URLS)
def test_a_token_revoked_during_a_request_is_refused_in_the_next_one(
    store: Store, store_url: str, account: Account, new_app: NewApp, url: str
) -> None:
    database = Interrupted(open_store(store_url))
    application = new_app(database)
    for at in count():
        id_token, token = store.token(account.id_usuario)
        client = Client(application, token)
        client.get(url)
        database.interrupt(at, lambda: store.revoke(id_token))  # noqa: B023 - it is called in this iteration
        assert client.get(url).status in {200, 401}
        if not database.is_over:
            break
        assert client.get(url).status == 401
