"""`atualizado_em_de` and `atualizado_em_ate`, the filters that both lists share."""

import pytest

from factories import Account, Store, cpf, relatorio
from wsgi import Client

LISTS = ("/relatorios", "/pessoas")
MIDNIGHT = 1_769_817_600_000
"""2026-01-31T00:00:00.000Z."""

HOUR = 3_600_000
HOURS = (-24, -1, 0, 1, 12, 23, 24, 25, 48)
"""When the reports were updated, in hours after MIDNIGHT; each is about another person."""


@pytest.fixture
def dated(acme: Client, store: Store, account: Account) -> Client:
    store.write(
        account,
        [
            relatorio(number, atualizado_em=MIDNIGHT + hour * HOUR, numero_documento=cpf(number))
            for number, hour in enumerate(HOURS)
        ],
    )
    return acme


def hours(client: Client, path: str, **parameters: object) -> list[int]:
    """Give the items that are found, as hours after MIDNIGHT."""
    answer = client.get(path, sort="atualizado_em", **parameters)
    key = "numero" if path == "/relatorios" else "cpf"
    places = {relatorio(number).numero: hour for number, hour in enumerate(HOURS)}
    places |= {cpf(number): hour for number, hour in enumerate(HOURS)}
    assert answer.total == len(answer.itens)
    return [places[item[key]] for item in answer.itens]


@pytest.mark.parametrize("path", LISTS)
def test_a_start_date_means_the_beginning_of_that_day(dated: Client, path: str) -> None:
    assert hours(dated, path, atualizado_em_de="2026-01-31") == [0, 1, 12, 23, 24, 25, 48]


@pytest.mark.parametrize("path", LISTS)
def test_an_end_date_includes_that_day(dated: Client, path: str) -> None:
    assert hours(dated, path, atualizado_em_ate="2026-01-31") == [-24, -1, 0, 1, 12, 23]


@pytest.mark.parametrize("path", LISTS)
def test_a_start_instant_is_inclusive_and_an_end_instant_exclusive(dated: Client, path: str) -> None:
    assert hours(dated, path, atualizado_em_de="2026-01-31T01:00:00Z") == [1, 12, 23, 24, 25, 48]
    assert hours(dated, path, atualizado_em_ate="2026-01-31T01:00:00Z") == [-24, -1, 0]
    assert hours(dated, path, atualizado_em_de="2026-01-31T01:00:00.001Z") == [12, 23, 24, 25, 48]
    assert hours(dated, path, atualizado_em_ate="2026-01-31T01:00:00.001Z") == [-24, -1, 0, 1]


@pytest.mark.parametrize("path", LISTS)
def test_an_instant_between_two_milliseconds_is_rounded_up(dated: Client, path: str) -> None:
    assert hours(dated, path, atualizado_em_de="2026-01-31T01:00:00.0001Z") == [12, 23, 24, 25, 48]
    assert hours(dated, path, atualizado_em_ate="2026-01-31T01:00:00.0001Z") == [-24, -1, 0, 1]
    assert hours(dated, path, atualizado_em_de="2026-01-31T00:59:59.999999Z") == [1, 12, 23, 24, 25, 48]
    assert hours(dated, path, atualizado_em_de="2026-01-31T01:00:00.000000001Z") == [12, 23, 24, 25, 48]
    assert hours(dated, path, atualizado_em_ate="2026-01-31T01:00:00,0000001+00:00") == [-24, -1, 0, 1]
    assert hours(dated, path, atualizado_em_de="2026-01-31T01:00:00.000000000Z") == [1, 12, 23, 24, 25, 48]
    assert hours(dated, path, atualizado_em_ate="9999-12-31T23:59:59.9999Z") == list(HOURS)
    assert dated.get(path, atualizado_em_de="9999-12-31T23:59:59.9999Z").keys == ["atualizado_em_de"]


@pytest.mark.parametrize("path", LISTS)
def test_an_instant_may_have_any_offset_and_a_date_is_a_day_in_utc(dated: Client, path: str) -> None:
    given = {"atualizado_em_de": "2026-01-30T22:00:00-03:00", "atualizado_em_ate": "2026-02-01T00:00+00:00"}
    assert hours(dated, path, **given) == [1, 12, 23]
    assert hours(dated, path, atualizado_em_de="2026-01-31t12:00Z", atualizado_em_ate="2026-02-01 00:00Z") == [12, 23]
    assert hours(dated, path, atualizado_em_de="2026-01-31", atualizado_em_ate="2026-01-31") == [0, 1, 12, 23]


@pytest.mark.parametrize("path", LISTS)
def test_a_range_that_ends_before_it_begins_is_empty(dated: Client, path: str) -> None:
    assert hours(dated, path, atualizado_em_de="2026-02-01", atualizado_em_ate="2026-01-31") == []
    assert hours(dated, path, atualizado_em_de="2026-01-31T12:00Z", atualizado_em_ate="2026-01-31T12:00Z") == []


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "text",
    [
        *("", "2026", "2026-1-31", "2026-02-30", "2026-13-01", "0000-01-01", "31/01/2026", "20260131", "2026-W05-6"),
        *("2026-01-31T12:00:00", "2026-01-31T25:00Z", "2026-01-31T12Z", "1769817600000", "hoje", "2026-01-31 "),
    ],
)
@pytest.mark.parametrize("name", ["atualizado_em_de", "atualizado_em_ate"])
def test_a_malformed_date_or_instant_is_refused(empty: Client, path: str, name: str, text: str) -> None:
    answer = empty.get(path, **{name: text})
    assert answer.keys == [name]
    assert "2026-01-31" in answer.json["message"]


@pytest.mark.parametrize("path", LISTS)
def test_february_29_exists_in_leap_years_only(empty: Client, path: str) -> None:
    years = ("0004", "1900", "2000", "2023", "2024", "2100", "2400")
    accepted = [year for year in years if empty.get(path, atualizado_em_de=f"{year}-02-29").status == 200]
    assert accepted == ["0004", "2000", "2024", "2400"]


@pytest.mark.parametrize("path", LISTS)
def test_an_unencoded_plus_is_refused_with_how_to_encode_it(empty: Client, path: str) -> None:
    instant = "2026-01-31T12:00:00{}00:00"
    answer = empty.get(f"{path}?atualizado_em_de={instant.format('+')}")
    assert answer.json["message"] == (
        "O parâmetro atualizado_em_de deve ser uma data, como 2026-01-31, ou data e hora com fuso (ISO 8601), como "
        "2026-01-31T12:00:00Z (o + do fuso se escreve %2B na URL)."
    )
    assert empty.get(f"{path}?atualizado_em_de={instant.format('%2B')}").status == 200
