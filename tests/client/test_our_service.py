"""Both clients with laudo's own service, in this process: its cursors, ETags and refusals."""

from collections import Counter
from collections.abc import Callable

import httpx
import pytest

from client.conftest import Client as SdkClient
from client.conftest import NewClient as NewSdkClient
from factories import Account, Store, cpf, numero, relatorio
from laudo.client import BadRequestError, UnauthorizedError, to_dicts
from wsgi import Client, NewApp

Handler = Callable[[httpx.Request], httpx.Response]


@pytest.fixture
def account(store: Store) -> Account:
    return store.account(webhook_url="https://example.com/hook")


@pytest.fixture
def handler(new_app: NewApp) -> Handler:
    app = new_app(max_rows=500)

    def handle(request: httpx.Request) -> httpx.Response:
        target = request.url.raw_path.decode()
        answer = Client(app, None).ask("GET", target, headers=dict(request.headers))
        handle.__dict__.setdefault("asked", []).append(target)
        return httpx.Response(answer.status, headers=answer.headers, content=answer.body)

    return handle


@pytest.fixture
def sdk(new_client: NewSdkClient, handler: Handler, account: Account) -> SdkClient:
    return new_client(handler, account.token)


def test_a_walk_by_cursor_gives_every_report_once(
    store: Store, account: Account, sdk: SdkClient, handler: Handler
) -> None:
    store.write(account, [relatorio(number, atualizado_em=number * 1000) for number in range(1, 1301)])
    found = [item.numero for item in sdk.all("relatorios")]
    assert found == [numero(number) for number in range(1300, 0, -1)]
    asked = handler.__dict__["asked"]
    assert sum("cursor=" in target for target in asked) == 2


def test_a_walk_gives_the_same_items_with_one_or_four_workers(store: Store, account: Account, sdk: SdkClient) -> None:
    store.write(account, [relatorio(number, atualizado_em=number * 1000) for number in range(1, 1301)])
    assert to_dicts(sdk.all("relatorios", workers=4)) == to_dicts(sdk.all("relatorios"))


@pytest.mark.parametrize("first", [1, 3])
@pytest.mark.parametrize("then", [1, 3])
def test_a_walk_may_resume_with_another_number_of_workers(
    store: Store, account: Account, sdk: SdkClient, first: int, then: int
) -> None:
    store.write(account, [relatorio(number, atualizado_em=number * 1000) for number in range(1, 401)])
    begun = sdk.batches("relatorios_in_batches", rows=100, workers=first)[0]
    store.write(account, [relatorio(number, atualizado_em=number * 1000) for number in range(401, 431)])
    rest = sdk.batches("relatorios_in_batches", workers=then, start=begun.place)
    found = [item.numero for batch in (begun, *rest) for item in batch.itens]
    assert found == [numero(number) for number in range(400, 0, -1)]


def test_a_walk_is_complete_despite_rehearsed_refusals(
    store: Store, account: Account, new_app: NewApp, new_client: NewSdkClient
) -> None:
    store.write(account, [relatorio(number, atualizado_em=number * 1000) for number in range(1, 1301)])
    app, met = Client(new_app(max_rows=25, rehearse=("503=5", "429=20")), account.token), Counter[int]()

    def handle(request: httpx.Request) -> httpx.Response:
        answer = app.get(request.url.raw_path.decode())
        met[answer.status] += 1
        return httpx.Response(answer.status, headers=answer.headers, content=answer.body)

    found = [item.numero for item in new_client(handle, account.token).all("relatorios")]
    assert found == [numero(number) for number in range(1300, 0, -1)]
    assert met[503] > 1
    assert met[429] > 5


def test_the_client_reads_pessoas_counts_and_the_profile(store: Store, account: Account, sdk: SdkClient) -> None:
    store.write(account, [relatorio(1, numero_documento=cpf(1)), relatorio(2, numero_documento=cpf(2))])
    assert sdk.call("pessoas", nome="mar sil").total == 2
    assert sdk.call("contar", numero_documento=cpf(1)) == 1
    assert sdk.call("contar_pessoas", busca="") == 2
    profile = sdk.call("usuario")
    assert (profile.api_token, profile.webhook_url) == (account.token, "https://example.com/hook")


def test_wait_for_sends_the_etag(store: Store, account: Account, new_client: NewSdkClient, handler: Handler) -> None:
    store.write(account, [relatorio(1, status="PROCESSANDO", resultado=None)])
    statuses: list[int] = []

    def watched(request: httpx.Request) -> httpx.Response:
        if len(statuses) == 2:
            store.write(account, [relatorio(1, atualizado_em=2_000_000_000_000)])
        answer = handler(request)
        statuses.append(answer.status_code)
        return answer

    done = new_client(watched, account.token).call("wait_for", numero=numero(1))
    assert (done.status, statuses) == ("CONCLUIDO", [200, 304, 200])


def test_refusals_raise_errors_with_a_request_id_or_keys(
    account: Account, new_client: NewSdkClient, handler: Handler
) -> None:
    with pytest.raises(UnauthorizedError) as caught:
        new_client(handler, "x" * 20).call("usuario")
    assert caught.value.request_id
    with pytest.raises(BadRequestError) as refused:
        new_client(handler, account.token).call("relatorios", rows=1000)
    assert refused.value.keys == ("rows",)
