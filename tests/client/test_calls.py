import logging
import pickle
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints
from uuid import UUID

import httpx
import pytest
from rich.pretty import pretty_repr

from client.conftest import Client, NewClient
from client.service import PROFILE, TOKEN, Clock, Service, listed, pessoa, refused, relatorio
from laudo.client import (
    AnswerError,
    AsyncLaudo,
    BadRequestError,
    DeadlineError,
    Laudo,
    LaudoError,
    Limits,
    Network,
    NotReadyError,
    ParameterError,
    PessoaFilters,
    Place,
    RateLimitError,
    RelatorioFilters,
    ServerError,
    StatusError,
    TransportError,
    UnauthorizedError,
)
from laudo.core.resources import PESSOAS, RELATORIOS, Resource
from laudo.core.resources import PROFILE as PROFILE_FIELDS

RESET = httpx.ReadError("reset")
DEEP = b'{"x": ' + b"[" * 1_000_000
"""Nested deeper than any stack: since Python 3.14 the limit is the stack's size in bytes, not a number of calls."""


# What a call returns.


def test_a_page_has_items_total_number_and_size(client: Client, service: Service) -> None:
    service.relatorios = [relatorio(number) for number in range(60, 0, -1)]
    page = client.call("relatorios", page=2)
    assert (len(page.itens), page.total, page.pagina, page.linhas) == (25, 60, 2, 25)
    assert page.itens[0].to_wire() == relatorio(35)
    assert page.itens[0].atualizado_em == datetime(2026, 1, 1, 0, 0, 35, tzinfo=UTC)


def test_a_total_of_pessoas_sent_as_text_becomes_an_integer(client: Client, service: Service) -> None:
    service.pessoas = [pessoa(1), pessoa(2)]
    page = client.call("pessoas", nome="Pessoa 2")
    assert (page.total, page.itens[0].nome) == (1, "Pessoa 2")
    assert client.call("contar_pessoas") == 2


def test_usuario_returns_the_profile(client: Client) -> None:
    profile = client.call("usuario")
    assert {name: getattr(profile, name) for name, _ in PROFILE_FIELDS} == PROFILE


def test_a_closed_client_sends_no_requests(client: Client, service: Service) -> None:
    page = client.call("relatorios")
    client.call("close")
    client.call("close")
    for method in ("usuario", "relatorios"):
        with pytest.raises(RuntimeError, match="the client is closed"):
            client.call(method)
    with pytest.raises(RuntimeError, match="the client is closed"):
        client.batches("relatorios_in_batches", workers=2)
    assert (page.total, len(service.requests)) == (0, 1)


def test_items_batches_and_errors_can_be_pickled_but_pages_cannot(client: Client, service: Service) -> None:
    """Processes that multiprocessing does not fork (the default since Python 3.14) receive pickled values."""
    service.relatorios = [relatorio(1), relatorio(2)]
    page, batches = client.call("relatorios"), client.batches("relatorios_in_batches")
    service.script = [refused(429, retry_after="900")]
    with pytest.raises(RateLimitError) as caught:
        client.call("contar")
    kept = (page.itens, batches, client.call("usuario"), caught.value)
    *values, error = pickle.loads(pickle.dumps(kept))  # noqa: S301 - pickled by this test
    assert (*values, str(error), error.retry_after) == (*kept[:3], str(caught.value), 900)
    with pytest.raises(TypeError, match="clients hold a token, so they and their pages cannot be pickled"):
        pickle.dumps(page)


def test_contar_requests_the_smallest_page(client: Client, service: Service) -> None:
    service.relatorios = [relatorio(1), relatorio(2, status="PROCESSANDO")]
    assert client.call("contar", status="CONCLUIDO") == 1
    assert service.requests[-1].url.query == b"page=1&rows=25&status=CONCLUIDO"


def test_requests_have_the_specified_headers_and_url(client: Client, service: Service) -> None:
    client.call("usuario")
    client.call("relatorios", sort="-nome", pendente_validacao_manual=None)
    plain, filtered = service.requests
    assert plain.headers["Content-Type"] == "application/json"
    assert filtered.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert filtered.headers["Authorization"] == TOKEN
    assert (filtered.headers["Accept"], filtered.headers["Accept-Encoding"]) == ("application/json", "gzip")
    assert str(filtered.url) == "http://service.test/relatorios?page=1&rows=25&sort=-nome"


# Arguments that are refused before a request is sent.


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"rows": 30}, "rows must be a multiple of 25"),
        ({"rows": 0}, "rows must be a multiple of 25"),
        ({"rows": True}, "rows must be a multiple of 25"),
        ({"page": 0}, "page must be a whole number, 1 or more"),
        ({"page": True}, "page must be a whole number, 1 or more"),
        ({"sort": "cor"}, "sort must be one of these fields"),
        ({"sort": "--nome"}, "sort must be one of these fields"),
        ({"sort": 5}, "sort must be one of these fields"),
        ({"status": "PRONTO"}, "status of relatorios must be one of PROCESSANDO"),
        ({"numero_documento": "529.982.247-25"}, "without mask"),
        ({"numero_documento": "５２９９８２２４７２５"}, "(0 to 9 and A to Z)"),
        ({"numero_documento": "529\N{NO-BREAK SPACE}98224725"}, "without mask or spaces"),
        ({"numero_documento": 52998224725}, "numero_documento of relatorios must be"),
        ({"numero": "1"}, "a UUID"),
        ({"nome": ""}, "nome of relatorios must be"),
        ({"nome": "x" * 201}, "a text of 1 to 200 characters"),
        ({"nome": "a\x00b"}, "nome of relatorios must be"),
        ({"nome": "a\x9fb"}, "nome of relatorios must be"),
        ({"nome": "a\ud800b"}, "nome of relatorios must be"),
        ({"numero_documeto": "1"}, "the nearest is numero_documento"),
        ({"linhas": 25}, "relatorios has no such filter; the filters are numero_documento, tipo_pessoa, nome, "),
        ({"atualizado_em_de": datetime(2026, 1, 1)}, "of relatorios must be a datetime with a time zone (tzinfo), s"),  # noqa: DTZ001 - it must have no time zone
        ({"status": datetime(2026, 1, 1)}, "status of relatorios must be one of PRO"),  # noqa: DTZ001 - the same
        ({"atualizado_em_ate": datetime.max.replace(tzinfo=timezone(timedelta(hours=-3)))}, "with a time zone"),
        ({"atualizado_em_de": datetime.min.replace(tzinfo=timezone(timedelta(hours=3)))}, "with a time zone"),
    ],
)
def test_an_invalid_parameter_is_refused_without_a_request(
    client: Client, service: Service, arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        client.call("relatorios", **arguments)
    assert text in caught.value.message
    assert service.requests == []


def test_the_error_for_an_invalid_instant_does_not_mention_url_encoding(client: Client) -> None:
    with pytest.raises(ParameterError) as caught:
        client.call("relatorios", atualizado_em_de="2026-01-31T12:00:00%2B03:00")
    assert caught.value.message == (
        "atualizado_em_de of relatorios must be a date, such as 2026-01-31, or a date and time with a time zone "
        "(ISO 8601), such as 2026-01-31T12:00:00Z"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"rows": 30}, "rows must be a multiple of 25"),
        ({"workers": 0}, "workers must be a whole number of at least 1"),
    ],
)
def test_a_walk_refuses_invalid_rows_or_workers_without_a_request(
    client: Client, service: Service, arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(ParameterError, match=text):
        client.batches("relatorios_in_batches", **arguments)
    assert service.requests == []


def test_values_are_sent_in_their_documented_spelling(client: Client, service: Service) -> None:
    service.script = [listed([], total=0)]
    client.call(
        "relatorios",
        status="em análise",
        tipo_pessoa="Pessoa",
        pendente_validacao_manual=True,
        atualizado_em_de=date(2026, 1, 31),
        atualizado_em_ate=datetime(2026, 2, 1, 12, tzinfo=UTC),
    )
    asked = dict(service.requests[0].url.params)
    assert asked == {
        "page": "1",
        "rows": "25",
        "status": "EM ANALISE",
        "tipo_pessoa": "PESSOA",
        "pendente_validacao_manual": "true",
        "atualizado_em_de": "2026-01-31",
        "atualizado_em_ate": "2026-02-01T12:00:00Z",
    }


@pytest.mark.parametrize("nome", ["a\u00a0b", "\U0001f469\u200d\U0001f52c", "a\u2028b", "\ue000", "x" * 200])
def test_a_filter_accepts_any_text_that_can_be_stored(client: Client, service: Service, nome: str) -> None:
    service.relatorios = [relatorio(2, nome=nome), relatorio(1)]
    assert [item.nome for item in client.call("relatorios", nome=nome).itens] == [nome]


class Matriz(str, Enum):  # noqa: UP042 - its str() is not its value, unlike that of a StrEnum
    DEFAULT = "consultaPessoaDefault"
    NOME = "-nome"


def test_a_string_enum_member_is_sent_as_its_value(client: Client, service: Service) -> None:
    client.call("relatorios", nome=Matriz.DEFAULT, sort=Matriz.NOME)
    asked = dict(service.requests[0].url.params)
    assert (asked["nome"], asked["sort"]) == ("consultaPessoaDefault", "-nome")


def test_numero_accepts_a_uuid_object(client: Client, service: Service) -> None:
    service.relatorios = [relatorio(0xAB), relatorio(1)]
    number = relatorio(0xAB)["numero"]
    assert [item.numero for item in client.call("relatorios", numero=UUID(number)).itens] == [number]


@pytest.mark.parametrize(("typed", "resource"), [(RelatorioFilters, RELATORIOS), (PessoaFilters, PESSOAS)])
def test_typed_filters_match_the_table_of_resources(typed: type, resource: Resource) -> None:
    types = get_type_hints(typed)
    assert list(types) == [each.name for each in resource.filters]
    for each in resource.filters:
        if each.kind.choices and each.kind.json_type == "string":
            assert get_args(get_args(types[each.name])[0]) == each.kind.choices


INVALID_URLS = [None, b"http://h", "", "service.test", "ftp://service.test", "http://", "http://u:p@h", "http://h/?x=1"]
INVALID_URLS += [
    "http://h:abc",
    "http://h:80a",
    "http://h:99999",
    "http://h:-1",
    "http://h\n",
    "http://h ost",
    "http://h/ ",
]
INVALID_URLS += [
    "http://a..b",
    "http://.h",
    "http://xn--.com",
    f"http://{'a' * 64}.com",
    "http://h\\x",
    "http://\udce9",
]
INVALID_URLS += ["http://[x", "http://[::1", "http://[zz]", "http://127.0.0.1:8000/#/relatorios", "http://h#"]


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, None])
def test_invalid_workers_are_refused_even_for_a_single_page(
    client: Client,
    service: Service,
    workers: Any,  # noqa: ANN401
) -> None:
    service.relatorios = [relatorio(1)]
    with pytest.raises(ParameterError, match=r"^workers must be a whole number of at least 1$"):
        client.all("relatorios", workers=workers)
    page = Laudo("http://service.test", TOKEN, transport=httpx.MockTransport(service)).relatorios()
    with pytest.raises(ParameterError):
        page.all(workers=workers)


@pytest.mark.parametrize("make", [Laudo, AsyncLaudo])
@pytest.mark.parametrize("name", ["limits", "network", "timing", "transport"])
@pytest.mark.parametrize("value", ["http://proxy.test", 10, {}])
def test_the_error_for_an_argument_of_the_wrong_class_names_it(make: Any, name: str, value: object) -> None:  # noqa: ANN401
    with pytest.raises(ParameterError, match=f"^{name} must be an instance of "):
        make("http://service.test", TOKEN, **{name: value})


@pytest.mark.parametrize(("name", "value"), [("verify", "ca.pem"), ("verify", None), ("proxy", 8080)])
def test_network_refuses_invalid_arguments(name: str, value: Any) -> None:  # noqa: ANN401
    with pytest.raises(ParameterError, match=f"{name} must be"):
        Network(**{name: value})


@pytest.mark.parametrize("base", INVALID_URLS)
def test_an_invalid_base_url_is_refused(base: Any) -> None:  # noqa: ANN401
    with pytest.raises(ParameterError, match="base_url"):
        Laudo(base, TOKEN)


@pytest.mark.parametrize(
    "base",
    [
        "http://h",
        "HTTPS://h.test./",
        "http://[::1]:80/a/b",
        "http://[fe80::1%25eth0]",
        "http://münchen.de",
        "http://a_b:",
    ],
)
def test_a_valid_base_url_is_accepted(base: str) -> None:
    with Laudo(base, TOKEN) as client:
        assert repr(client) == f"Laudo({base.rstrip('/')!r})"


@pytest.mark.parametrize("token", ["", "two words", "x\n", "ç", None, b"token"])
def test_an_invalid_token_is_refused_and_not_quoted(token: Any) -> None:  # noqa: ANN401
    with pytest.raises(ParameterError) as caught:
        Laudo("http://service.test", token)
    assert not token or str(token) not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("SSL_CERT_FILE=missing", "No such file or directory"),
        ("SSL_CERT_FILE=folder", "Is a directory"),
        ("SSL_CERT_FILE=empty", "NO_CERTIFICATE_OR_CRL_FOUND"),
        ("SSL_CERT_DIR=missing", "No such file or directory"),
        ("SSL_CERT_DIR=empty", "Not a directory"),
    ],
)
@pytest.mark.parametrize("make", [Laudo, AsyncLaudo])
def test_the_error_for_unreadable_certificates_names_variable_and_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, make: type[Laudo | AsyncLaudo], given: str, said: str
) -> None:
    name, kind = given.split("=")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    for each in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, str(tmp_path / kind))
    with pytest.raises(ParameterError) as caught:
        make("https://service.test", TOKEN)
    assert str(caught.value) == f"cannot read the certificates to trust: {name} is {tmp_path / kind}, {said}"
    make("http://service.test", TOKEN)
    with pytest.raises(ParameterError, match=name):
        make("http://service.test", TOKEN, network=Network(proxy="https://proxy.test"))


@pytest.mark.parametrize(
    ("proxy", "shown"),
    [
        ("ana:secret@proxy.test:3128", "http://proxy.test:3128"),
        ("http://ana:secret@proxy.test", "http://proxy.test"),
        ("http://ana:secret@proxy.test:port", None),
        ("http://ana:secret@proxy.test:99999", None),
        ("http://ana:secret@proxy..test", None),
        ("ftp://ana:secret@proxy.test", None),
        ("ana:secret@", None),
        ("socks5://ana:secret@proxy.test", None),
    ],
)
def test_a_proxy_url_needs_no_scheme_and_never_shows_its_password(
    monkeypatch: pytest.MonkeyPatch, proxy: str, shown: str | None
) -> None:
    assert "secret" not in repr(Network(proxy=proxy))
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    if shown:
        found = Network()._proxy("http://service.test")
        assert found is not None
        assert (str(found.url), found.auth) == (shown, ("ana", "secret"))
        Laudo("http://service.test", TOKEN).close()
        return
    with pytest.raises(ParameterError) as caught:
        Laudo("http://service.test", TOKEN)
    assert caught.value.__context__ is None
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("service", "is_direct"),
    [
        ("http://service.test:8080", True),
        ("http://service.test:8081", False),
        ("http://service.test", False),
        ("https://other.test", True),
        ("https://other.test:8443", False),
        ("http://[fd00::1]:8080", True),
        ("http://[fd00::1]:8081", False),
    ],
)
def test_a_port_in_no_proxy_is_respected(monkeypatch: pytest.MonkeyPatch, service: str, *, is_direct: bool) -> None:
    for scheme in ("http", "https"):
        monkeypatch.setenv(f"{scheme}_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "service.test:8080,other.test:443,[fd00::1]:8080")
    assert (Network()._proxy(service) is None) == is_direct


@pytest.mark.parametrize(
    ("host", "is_direct"),
    [
        ("10.20.30.40", True),
        ("11.20.30.40", False),
        ("[fd00::1]", True),
        ("[fe00::1]", False),
        ("[fe00:0::2]", True),
        ("[fe00:0::3]", True),
        ("10.test", False),
        ("service.test", False),
    ],
)
def test_ip_addresses_and_ranges_in_no_proxy_are_respected(
    monkeypatch: pytest.MonkeyPatch, host: str, *, is_direct: bool
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "no/range, 10.1.0.0/8,fd00::/8, fe00::2,[fe00::3]")
    assert (Network()._proxy(f"http://{host}:8000") is None) == is_direct


def test_all_proxy_is_used_for_schemes_without_their_own_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://own.test")
    monkeypatch.setenv("all_proxy", "http://all.test")
    found = [Network()._proxy(f"{scheme}://service.test") for scheme in ("http", "https")]
    assert [proxy and str(proxy.url) for proxy in found] == ["http://all.test", "http://own.test"]


# Errors.


def test_a_wrong_token_raises_unauthorized_error_without_a_retry(new_client: NewClient, service: Service) -> None:
    with pytest.raises(UnauthorizedError) as caught:
        new_client(service, "wrong").call("usuario")
    assert (caught.value.status, caught.value.message, caught.value.request_id) == (
        401,
        "Falha na autenticação.",
        "abc-1",
    )
    assert str(caught.value) == "Falha na autenticação. (status 401, request abc-1)"
    assert len(service.requests) == 1


@pytest.mark.parametrize("status", [400, 422])
def test_status_400_or_422_raises_bad_request_error_with_its_keys(
    client: Client, service: Service, status: int
) -> None:
    body = {"error": "Bad Request", "message": "Não.", "validation": {"source": "query", "keys": ["rows"]}}
    service.script = [httpx.Response(status, json=body | {"status_code": status})]
    with pytest.raises(BadRequestError) as caught:
        client.call("relatorios")
    assert (caught.value.status, caught.value.keys) == (status, ("rows",))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"message": None, "validation": {"keys": ["rows"]}}, ("the service refused the request", ("rows",))),
        ({"message": ["Não."], "validation": {"keys": ["rows"]}}, ("the service refused the request", ("rows",))),
        ({"message": "ã" * 10_000, "validation": {"keys": ["rows"]}}, ("ã" * 10_000, ("rows",))),
        ({"message": "ã" * 10_001, "validation": {"keys": ["rows"]}}, ("the service refused the request", ("rows",))),
        ({"message": "Não.", "validation": None}, ("Não.", ())),
        ({"message": "Não.", "validation": {"keys": "rows"}}, ("Não.", ())),
        ({"message": "Não.", "validation": {"keys": ["rows", 1]}}, ("Não.", ())),
    ],
)
def test_valid_parts_of_an_error_body_are_read_and_others_ignored(
    client: Client, service: Service, body: dict[str, object], said: tuple[str, tuple[str, ...]]
) -> None:
    service.script = [httpx.Response(400, json=body)]
    with pytest.raises(BadRequestError) as caught:
        client.call("relatorios")
    assert (caught.value.message, caught.value.keys) == said


@pytest.mark.parametrize("body", [b"<html>no</html>", b"\xff", b'{"message": "N\xe3o."}', DEEP])
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (403, "the service refused the request"),
        (404, "this API was not found there; check the address"),
        (407, "the proxy refused the request; check the user name and password in its address"),
        (500, "the service, or a proxy in front of it, cannot answer"),
    ],
)
def test_an_unreadable_error_body_is_replaced_by_a_message_for_its_status(
    client: Client, service: Service, body: bytes, status: int, said: str
) -> None:
    service.script = [httpx.Response(status, content=body)]
    with pytest.raises(StatusError) as caught:
        client.call("usuario")
    assert str(caught.value) == f"{said} (status {status})"


def test_an_answer_with_a_byte_order_mark_is_read(client: Client, service: Service) -> None:
    mark = b"\xef\xbb\xbf"
    service.script = [
        httpx.Response(200, content=mark + b'{"result": %s}' % LIST),
        httpx.Response(400, content=mark + b'{"message": "N\xc3\xa3o.", "validation": {"keys": ["rows"]}}'),
    ]
    assert client.call("relatorios").total == 7
    with pytest.raises(BadRequestError, match="Não") as caught:
        client.call("relatorios")
    assert caught.value.keys == ("rows",)


LIST = b'{"itens": [], "paginacao": {"atual": 1, "linhas": 25, "total": 7}}'


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", ": Input data was truncated"),
        (b"[]", ": Expected `object`, got `array`"),
        (b"{}", ": Object missing required field `result`"),
        (b"\xff", ": JSON is malformed: invalid character (byte 0)"),
        (DEEP, ""),
        (
            b'{"result": %s}' % LIST.replace(b"7", b"null"),
            ": Expected `int | str`, got `null` - at `$.result.paginacao.total`",
        ),
        (
            b'{"result": %s}' % LIST.replace(b"7", b"-1"),
            ": Expected `int` >= 0 - at `$.result.paginacao.total`",
        ),
        (
            b'{"result": %s}' % LIST.replace(b"7", b"1.5"),
            ": Expected `int | str`, got `float` - at `$.result.paginacao.total`",
        ),
        (
            b'{"result": %s}' % LIST.replace(b"linhas", b"rows"),
            ": Object missing required field `linhas` - at `$.result.paginacao`",
        ),
        (
            b'{"result": %s}' % LIST.replace(b"[]", b'[{"numero": 52998224725}]'),
            ": Expected `str`, got `int` - at `$.result.itens[0].numero`",
        ),
        (
            b'{"result": %s}' % LIST.replace(b"[]", b'[{"numero": "52998224725"}]'),
            ": Object missing required field `status` - at `$.result.itens[0]`",
        ),
    ],
)
def test_an_answer_that_violates_the_contract_raises_answer_error(
    client: Client, service: Service, body: bytes, said: str
) -> None:
    service.script = [httpx.Response(200, content=body, headers={"X-Request-Id": "abc-2"})]
    with pytest.raises(AnswerError) as caught:
        client.call("relatorios")
    assert caught.value.message == f"the answer does not follow this API{said}"
    assert (caught.value.status, caught.value.request_id) == (200, "abc-2")
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"<!doctype html><title>Entrar como 52998224725</title>", "a web page, not JSON"),
        (b"\xef\xbb\xbf\r\n <html>", "a web page, not JSON"),
        (b"", "empty"),
        (b"\n", "empty"),
    ],
)
def test_the_error_names_a_web_page_or_an_empty_body(client: Client, service: Service, body: bytes, what: str) -> None:
    service.script = [httpx.Response(200, content=body)]
    with pytest.raises(AnswerError) as caught:
        client.call("usuario")
    hint = "check the address, and whether a proxy or a login page is in front of it"
    assert caught.value.message == f"the answer of http://service.test is {what}: {hint}"


@pytest.mark.parametrize(
    "instant", ["2026-01-31T12:00:00", "9999-12-31T23:00:00-03:00", "0001-01-01T00:00:00+03:00", "2026-01-31"]
)
def test_an_instant_that_cannot_be_converted_to_utc_raises_answer_error(
    client: Client, service: Service, instant: str
) -> None:
    service.script = [listed([relatorio(1, atualizado_em=instant)], total=1)]
    service.script += [listed([pessoa(1, atualizado_em=instant)], total=1)]
    for method in ("relatorios", "pessoas"):
        with pytest.raises(AnswerError, match="itens") as caught:
            client.call(method)
        assert instant not in str(caught.value)


def test_instants_are_converted_to_utc(client: Client, service: Service) -> None:
    service.script = [listed([pessoa(1, atualizado_em="2026-01-31T22:00:00-03:00")], total=1)]
    found = client.call("pessoas").itens[0]
    assert (found.atualizado_em.day, found.atualizado_em.tzinfo) == (1, UTC)
    assert found.to_wire()["atualizado_em"] == "2026-02-01T01:00:00.000Z"


@pytest.mark.parametrize("total", [7, "7", 10**15 - 1, "9" * 15])
def test_a_total_may_be_a_number_or_a_text_in_both_lists(client: Client, service: Service, total: int | str) -> None:
    service.script = [listed([], total=total), listed([], total=total)]
    assert client.call("contar") == int(total)
    assert client.call("contar_pessoas") == int(total)


@pytest.mark.parametrize(
    "total",
    [-1, "-7", "1_0", "+7", " 7", "7\n", "\u0663", "\u00b2", "", "many", True, 10**15, 10**30, "9" * 16],
    ids=ascii,
)
def test_an_invalid_total_raises_answer_error(client: Client, service: Service, total: object) -> None:
    service.script = [listed([], total=total), listed([], total=total)]
    for method in ("contar", "contar_pessoas"):
        with pytest.raises(AnswerError, match=r"^the answer does not follow this API") as caught:
            client.call(method)
        assert caught.value.status == 200


def test_304_for_a_request_without_an_etag_raises_answer_error(client: Client, service: Service) -> None:
    service.script = [httpx.Response(304, headers={"ETag": '"1"'})]
    with pytest.raises(AnswerError, match="nothing has changed, but the request did not ask that") as caught:
        client.call("relatorios")
    assert caught.value.status == 304


@pytest.mark.parametrize(
    ("location", "hint"),
    [
        ("https://service.test/usuario?cpf=52998224725", "its address probably begins with https://"),
        ("HTTPS://Service.TEST:8443/", "its address probably begins with https://"),
        ("https://elsewhere.test/usuario?cpf=52998224725", "check the address"),
        ("http://service.test/entrar", "check the address"),
        ("/entrar", "check the address"),
        ("https://[service.test/", "check the address"),
        (None, "check the address"),
    ],
)
def test_a_redirect_is_not_followed_and_the_error_says_what_to_change(
    client: Client, service: Service, location: str | None, hint: str
) -> None:
    service.script = [httpx.Response(302, headers={"Location": location} if location else {})]
    with pytest.raises(AnswerError) as caught:
        client.call("usuario")
    assert caught.value.message == f"the service redirects, and redirects are not followed; {hint}"
    assert len(service.requests) == 1


# Retries.


@pytest.mark.parametrize(
    "failure",
    [RESET, httpx.ConnectError("no"), httpx.RemoteProtocolError("half a body"), httpx.ConnectTimeout("late")]
    + [refused(status) for status in (429, 502, 503, 504)],
)
def test_a_transient_failure_is_retried_twice(
    client: Client, service: Service, clock: Clock, failure: httpx.Response | Exception
) -> None:
    service.script = [failure, failure, None]
    assert client.call("contar") == 0
    assert clock.pauses == [0.25, 0.5]


def test_pauses_between_retries_double(new_client: NewClient, service: Service, clock: Clock) -> None:
    service.script = [RESET] * 5
    new_client(service, limits=Limits(retries=5)).call("usuario")
    assert clock.pauses == [0.25, 0.5, 1, 2, 4]


def test_each_pause_is_shortened_at_random_by_at_most_half(
    new_client: NewClient, service: Service, clock: Clock
) -> None:
    clock.chances = [0.0, 0.5, 1.0]
    service.script = [RESET] * 3
    new_client(service, limits=Limits(retries=3)).call("usuario")
    assert clock.pauses == [0.125, 0.375, 1]


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (RESET, TransportError),
        (httpx.ReadTimeout("late"), DeadlineError),
        (refused(429), RateLimitError),
        (refused(503), ServerError),
    ],
)
def test_the_third_failure_is_final(
    client: Client, service: Service, failure: httpx.Response | Exception, kind: type[LaudoError]
) -> None:
    service.script = [failure] * 3
    with pytest.raises(kind):
        client.call("usuario")
    assert len(service.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500, 501])
def test_a_permanent_failure_is_not_retried(client: Client, service: Service, status: int) -> None:
    service.script = [refused(status)]
    with pytest.raises(StatusError):
        client.call("usuario")
    assert len(service.requests) == 1


def test_retry_after_is_added_to_the_pause(client: Client, service: Service, clock: Clock) -> None:
    service.script = [refused(429, Retry_After="7"), None]
    client.call("usuario")
    assert clock.pauses == [7.25]


def test_a_429_with_retry_after_is_retried_until_the_deadline(client: Client, service: Service, clock: Clock) -> None:
    service.script = [refused(429, Retry_After="7")] * 7 + [None]
    assert client.call("contar") == 0
    service.script = [refused(429, Retry_After="7")] * 100
    with pytest.raises(RateLimitError):
        client.call("contar")
    assert (len(service.requests), clock.pauses) == (17, [7.25] * 15)


def test_a_429_with_retry_after_0_is_retried_only_twice(client: Client, service: Service) -> None:
    service.script = [refused(429, Retry_After="0")] * 100
    with pytest.raises(RateLimitError):
        client.call("contar")
    assert len(service.requests) == 3


def test_a_429_is_not_retried_if_retries_is_0(new_client: NewClient, service: Service, clock: Clock) -> None:
    service.script = [refused(429, Retry_After="1")]
    with pytest.raises(RateLimitError):
        new_client(service, limits=Limits(retries=0)).call("contar")
    assert clock.pauses == []


INVALID_SECONDS: list[Any] = [0, -1, float("nan"), None, "10", True]


@pytest.mark.parametrize("seconds", INVALID_SECONDS)
def test_limits_refuse_invalid_seconds(seconds: float) -> None:
    with pytest.raises(ParameterError, match="deadline must be a number of seconds above 0"):
        Limits(deadline=seconds)
    with pytest.raises(ParameterError, match="connect must be a number of seconds above 0"):
        Limits(connect=seconds)
    with pytest.raises(ParameterError, match="read must be a number of seconds above 0"):
        Limits(read=seconds)


@pytest.mark.parametrize("retries", [-1, 1.5, None, "2"])
def test_limits_refuse_an_invalid_number_of_retries(retries: int) -> None:
    with pytest.raises(ParameterError, match="retries must be a whole number of at least 0"):
        Limits(retries=retries)


def test_an_infinite_limit_becomes_a_timeout_of_a_million_seconds(new_client: NewClient, service: Service) -> None:
    endless = float("inf")
    new_client(service, limits=Limits(deadline=endless, connect=endless, read=endless)).call("usuario")
    assert set(service.requests[0].extensions["timeout"].values()) == {1e6}


def test_a_retry_after_beyond_the_deadline_ends_the_call(client: Client, service: Service, clock: Clock) -> None:
    service.script = [refused(503, Retry_After="3600")]
    with pytest.raises(ServerError) as caught:
        client.call("usuario")
    assert (caught.value.retry_after, clock.pauses) == (3600, [])
    assert str(caught.value).endswith(", retry after 3600 s)")


def test_a_retry_after_date_out_of_range_is_ignored(client: Client, service: Service, clock: Clock) -> None:
    service.script = [refused(503, Retry_After="Mon, 01 Jan 99999999999999999999 00:00:00 GMT"), None]
    client.call("usuario")
    assert clock.pauses == [0.25]


@pytest.mark.parametrize("form", ["%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S -0000"])
def test_a_retry_after_date_without_a_time_zone_is_utc(
    monkeypatch: pytest.MonkeyPatch, client: Client, service: Service, form: str
) -> None:
    monkeypatch.setenv("TZ", "America/Sao_Paulo")
    time.tzset()
    try:
        service.script = [refused(503, Retry_After=time.strftime(form, time.gmtime(time.time() + 3600)))]
        with pytest.raises(ServerError) as caught:
            client.call("usuario")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert caught.value.retry_after == pytest.approx(3600, abs=1800)


def test_a_retry_after_date_in_the_past_adds_no_pause(client: Client, service: Service, clock: Clock) -> None:
    service.script = [refused(503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"), None]
    client.call("usuario")
    assert clock.pauses == [0.25]


def test_the_deadline_covers_all_attempts(new_client: NewClient, service: Service, clock: Clock) -> None:
    def late(_: httpx.Request) -> httpx.Response:
        clock.time += 4
        raise httpx.ReadTimeout("late")

    service.script = [late] * 3
    with pytest.raises(DeadlineError):
        new_client(service, limits=Limits(deadline=8)).call("usuario")
    assert len(service.requests) == 2
    assert service.requests[1].extensions["timeout"] == dict.fromkeys(("connect", "read", "write", "pool"), 3.75)


def test_a_call_past_its_deadline_has_a_positive_socket_timeout(new_client: NewClient, service: Service) -> None:
    """The deadline may pass while the machine sleeps. Sockets refuse negative timeouts; an answer may still come."""
    with suppress(DeadlineError):
        new_client(service, limits=Limits(deadline=1e-9)).call("usuario")
    assert set(service.requests[0].extensions["timeout"].values()) == {0.001}


@pytest.mark.parametrize("answered", [0, 150])
def test_a_service_that_is_down_gets_only_ten_retries(client: Client, service: Service, answered: int) -> None:
    """The earlier answers of the service make no difference."""
    for _ in range(answered):
        client.call("usuario")
    service.requests.clear()
    service.script = [RESET] * 1000
    for _ in range(100):
        with pytest.raises(TransportError):
            client.call("usuario")
    assert len(service.requests) == 110


def test_answers_restore_the_retry_budget(client: Client, service: Service) -> None:
    service.script = [RESET] * 1000
    for _ in range(6):
        with pytest.raises(TransportError):
            client.call("usuario")
    service.script = [*[None] * 9, RESET]
    for _ in range(9):
        client.call("usuario")
    with pytest.raises(TransportError):
        client.call("usuario")
    assert service.script == []
    for _ in range(25):
        client.call("usuario")
    service.requests.clear()
    service.script = [RESET, RESET, None]
    client.call("usuario")
    assert len(service.requests) == 3


# Waiting for a result.


def test_wait_for_sends_the_etag_and_returns_the_finished_report(
    client: Client, service: Service, clock: Clock
) -> None:
    number = relatorio(1)["numero"]
    service.script = [
        listed([], total=0),
        listed([relatorio(1, status="PROCESSANDO")], total=1, headers={"ETag": '"1"'}),
        httpx.Response(304, headers={"ETag": '"1"'}),
        listed([relatorio(1)], total=1),
    ]
    assert client.call("wait_for", numero=number).status == "CONCLUIDO"
    assert [request.headers.get("If-None-Match") for request in service.requests] == [None, None, '"1"', '"1"']
    assert clock.pauses == [0.625, 0.9375, 1.40625]


def test_an_etag_that_is_not_ascii_is_not_sent_back(client: Client, service: Service) -> None:
    for etag in ('"é"'.encode("latin-1"), '"é"'.encode()):
        unready = listed([relatorio(1, status="PROCESSANDO")], total=1)
        unready.headers = httpx.Headers([(b"ETag", etag)])
        service.script.append(unready)
    service.script.append(listed([relatorio(1)], total=1))
    assert client.call("wait_for", numero=relatorio(1)["numero"]).status == "CONCLUIDO"
    assert [request.headers.get("If-None-Match") for request in service.requests] == [None] * 3


def test_wait_for_times_out_with_not_ready_error(client: Client, clock: Clock) -> None:
    with pytest.raises(NotReadyError) as caught:
        client.call("wait_for", numero=relatorio(1)["numero"], timeout=600)
    assert str(caught.value) == ("timed out: the service shows no report with this numero to this token")
    assert clock.time == 599
    assert max(clock.pauses) <= 18.75


def test_a_timeout_names_the_last_status_of_the_report(client: Client, service: Service) -> None:
    service.script = [
        listed([relatorio(1, status="PROCESSANDO")], total=1),
        listed([relatorio(1, status="EM ANALISE")], total=1, headers={"ETag": '"1"'}),
        *[httpx.Response(304, headers={"ETag": '"1"'})] * 100,
    ]
    with pytest.raises(NotReadyError) as caught:
        client.call("wait_for", numero=relatorio(1)["numero"], timeout=600)
    assert str(caught.value) == "timed out: the report is EM ANALISE, not CONCLUIDO"


def test_a_short_wait_asks_again_before_its_timeout(client: Client, service: Service) -> None:
    service.script = [listed([], total=0), listed([relatorio(1)], total=1)]
    assert client.call("wait_for", numero=relatorio(1)["numero"], timeout=0.9).status == "CONCLUIDO"


@pytest.mark.parametrize("timeout", [0.5, 20])
def test_a_slow_service_does_not_prolong_a_wait(client: Client, service: Service, clock: Clock, timeout: float) -> None:
    def slow(request: httpx.Request) -> httpx.Response:
        read = request.extensions["timeout"]["read"]
        clock.time += min(read, 12)
        if read < 12:
            raise httpx.ReadTimeout("late")
        return service.answer(request)

    service.script = [slow] * 20
    with pytest.raises(NotReadyError):
        client.call("wait_for", numero=relatorio(1)["numero"], timeout=timeout)
    assert timeout - 1 <= clock.time <= timeout


def test_a_read_timeout_at_the_end_of_a_wait_raises_not_ready_error(
    client: Client, service: Service, clock: Clock
) -> None:
    def late(_: httpx.Request) -> httpx.Response:
        clock.time += 19.9
        raise httpx.ReadTimeout("late")

    service.script = [late]
    with pytest.raises(NotReadyError):
        client.call("wait_for", numero=relatorio(1)["numero"], timeout=20)


def test_a_refusal_at_the_end_of_a_wait_is_raised(client: Client, service: Service, clock: Clock) -> None:
    def late(_: httpx.Request) -> httpx.Response:
        clock.time += 19.9
        return refused(503)

    service.script = [late]
    with pytest.raises(ServerError):
        client.call("wait_for", numero=relatorio(1)["numero"], timeout=20)


def test_a_wait_without_any_answer_raises_deadline_error(client: Client, service: Service, clock: Clock) -> None:
    service.script = [httpx.ReadTimeout("late")] * 1000
    with pytest.raises(DeadlineError):
        client.call("wait_for", numero=relatorio(1)["numero"])
    assert clock.time == 599


def test_a_past_outage_changes_neither_later_pauses_nor_the_error(
    client: Client, service: Service, clock: Clock
) -> None:
    service.script = [refused(503, Retry_After="100"), listed([], total=0), listed([], total=0)]
    with pytest.raises(NotReadyError):
        client.call("wait_for", numero=relatorio(1)["numero"], timeout=600)
    assert clock.pauses[0] == 100
    assert max(clock.pauses[1:]) <= 18.75


def test_a_wait_that_oversleeps_its_timeout_asks_once_more(
    new_client: NewClient, service: Service, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = clock.sleep
    monkeypatch.setattr(clock, "sleep", lambda seconds: sleep(seconds + 1000))
    service.script = [listed([], total=0)]
    service.relatorios = [relatorio(1)]
    assert new_client(service).call("wait_for", numero=relatorio(1)["numero"]).status == "CONCLUIDO"


@pytest.mark.parametrize("failure", [RESET, httpx.ConnectError("no"), refused(502), refused(503), refused(429)])
def test_wait_for_continues_through_an_outage(
    client: Client, service: Service, clock: Clock, failure: httpx.Response | Exception
) -> None:
    service.script = [listed([], total=0), *[failure] * 20, None]
    service.relatorios = [relatorio(1)]
    assert client.call("wait_for", numero=relatorio(1)["numero"]).status == "CONCLUIDO"
    assert clock.time > 60


def test_wait_for_respects_retry_after_or_fails_if_it_is_too_long(
    client: Client, service: Service, clock: Clock
) -> None:
    service.script = [refused(503, Retry_After="100"), None]
    service.relatorios = [relatorio(1)]
    client.call("wait_for", numero=relatorio(1)["numero"])
    assert clock.pauses == [100]
    service.script = [refused(503, Retry_After="1000")]
    with pytest.raises(ServerError):
        client.call("wait_for", numero=relatorio(1)["numero"])
    assert clock.pauses == [100]


def test_a_wait_obeys_each_retry_after_once(client: Client, service: Service, clock: Clock) -> None:
    service.script = [refused(503, Retry_After="100"), *[refused(503)] * 3, None]
    service.relatorios = [relatorio(1)]
    client.call("wait_for", numero=relatorio(1)["numero"])
    assert clock.pauses == [100, 0.25, 0.5, 0.9375]


def test_a_permanent_failure_ends_a_wait_at_once(client: Client, service: Service, clock: Clock) -> None:
    service.script = [refused(401)]
    with pytest.raises(UnauthorizedError):
        client.call("wait_for", numero=relatorio(1)["numero"])
    assert clock.pauses == []


@pytest.mark.parametrize("numero", [None, "", "1", 1, True])
def test_wait_for_refuses_an_invalid_numero(client: Client, service: Service, numero: object) -> None:
    with pytest.raises(ParameterError, match="numero of relatorios must be a UUID"):
        client.call("wait_for", numero=numero)
    assert service.requests == []


def test_wait_for_refuses_an_answer_with_another_report(client: Client, service: Service) -> None:
    service.script = [listed([relatorio(2), relatorio(1)], total=2)]
    with pytest.raises(AnswerError, match="a report that was not requested"):
        client.call("wait_for", numero=relatorio(1)["numero"])


@pytest.mark.parametrize("timeout", INVALID_SECONDS)
def test_wait_for_refuses_an_invalid_timeout(client: Client, service: Service, timeout: float) -> None:
    with pytest.raises(ParameterError, match="timeout must be a number of seconds above 0"):
        client.call("wait_for", numero=relatorio(1)["numero"], timeout=timeout)
    assert service.requests == []


@pytest.mark.parametrize(("asked", "answered"), [(str.upper, str.lower), (str.lower, str.upper), (UUID, str.upper)])
def test_wait_for_ignores_the_case_of_a_numero(
    client: Client, service: Service, asked: Callable[[str], object], answered: Callable[[str], str]
) -> None:
    number = str(relatorio(0xAB)["numero"])
    service.script = [listed([relatorio(0xAB, numero=answered(number))], total=1)]
    assert client.call("wait_for", numero=asked(number)).numero == answered(number)


# Secrets.


def test_no_repr_shows_a_token_or_a_person(service: Service) -> None:
    service.relatorios = [relatorio(1)]
    service.pessoas = [pessoa(52998224725, nome="Maria"), *(pessoa(number) for number in range(30))]
    client = Laudo("http://service.test", TOKEN, transport=httpx.MockTransport(service))
    place = next(client.pessoas_in_batches(rows=25)).place
    assert place
    assert "52998224725" in place.seen
    shown = [client, client.relatorios(), client.relatorios().itens, client.pessoas().itens, client.usuario()]
    shown += [
        *client.relatorios_in_batches(),
        *client.pessoas_in_batches(),
        place,
        Place(25, "", cursor=TOKEN),
        client._wire,
    ]
    text = " ".join([*map(repr, shown), *map(pretty_repr, shown)])
    for secret in (TOKEN, "52998224725", "Maria", "ana@example.com"):
        assert secret not in text
    assert "Laudo('http://service.test')" in text


def test_no_log_and_no_exception_shows_a_token_or_a_person(
    client: Client, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.script = [None, RESET, RESET, RESET]
    with caplog.at_level(logging.DEBUG):
        client.call("relatorios", numero_documento="52998224725")
        with pytest.raises(TransportError) as caught:
            client.call("pessoas", cpf="52998224725")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    for secret in (TOKEN, "52998224725"):
        assert secret not in caplog.text + repr(caught.value)
