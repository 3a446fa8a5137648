"""The SDK with a running `laudo serve`."""

from collections.abc import Iterator

import pytest

import awaiting
from laudo.client import AsyncLaudo, Laudo, TransportError, UnauthorizedError
from live.server import Place, Server, serving


@pytest.fixture
def client(server: Server) -> Iterator[Laudo]:
    with Laudo(server.url, server.place.token) as client:
        yield client


def test_walks_by_cursor_and_by_page_number_agree(client: Laudo) -> None:
    page = client.relatorios(sort="numero_documento")
    by_cursor = list(page)
    assert len(by_cursor) == page.total
    assert list(page.all(workers=4)) == by_cursor


def test_the_async_client_gives_the_same_items(client: Laudo, server: Server) -> None:
    async def walk() -> list[str]:
        async with AsyncLaudo(server.url, server.place.token) as other:
            page = await other.pessoas(nome="maria")
            return [pessoa.cpf async for pessoa in page.all(workers=2)]

    assert awaiting.run(walk()) == [pessoa.cpf for pessoa in client.pessoas(nome="maria")]


def test_a_walk_is_complete_although_answers_break_off(client: Laudo, place: Place) -> None:
    def is_cut(server: Server) -> bool:
        try:
            server.ask("/usuario")
        except EOFError:
            return True
        return False

    with serving(place, "--workers", "1", "--rehearse", "cut=5") as server:
        assert sum(is_cut(server) for _ in range(100)) == 5
        with Laudo(server.url, place.token) as other:
            assert list(other.relatorios(rows=100)) == list(client.relatorios(rows=500))


def test_contar_agrees_with_a_walk(client: Laudo) -> None:
    found = sum(item.status == "CONCLUIDO" for item in client.relatorios(rows=500))
    assert client.contar(status="CONCLUIDO") == found > 0


def test_a_wrong_token_raises_an_error_with_a_request_id(server: Server) -> None:
    with Laudo(server.url, "nobodys-wrong-token") as client, pytest.raises(UnauthorizedError) as caught:
        client.usuario()
    assert caught.value.request_id


def test_a_walk_raises_transport_error_when_the_service_stops(own_place: Place) -> None:
    with serving(own_place, "--workers", "1") as server:
        client = Laudo(server.url, own_place.token)
        batches = client.relatorios_in_batches(rows=25)
        next(batches)
    with client, pytest.raises(TransportError):
        next(batches)
