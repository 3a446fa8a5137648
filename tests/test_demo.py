"""The invented data is repeatable and valid, and it has the promised proportions."""

import gzip
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from itertools import islice, pairwise, takewhile
from uuid import UUID

import pytest
from stdnum.br import cnpj, cpf

from laudo import demo
from laudo.core.documents import is_cnpj, is_cpf
from laudo.core.sql import Statement
from laudo.core.values import DAY
from laudo.demo import live, names
from laudo.server.callers import caller_of
from laudo.server.database import Database
from laudo.server.ingest.records import Relatorio, Source, read
from laudo.server.tokens import hash_token, presented

COUNT = 20_000
KEY = bytes(range(32))
START_MS = 1_800_000_000_000


@pytest.fixture(scope="module")
def invented() -> list[Relatorio]:
    return list(demo.relatorios(COUNT))


def test_the_same_seed_gives_the_same_reports_and_another_seed_gives_others() -> None:
    first = list(demo.relatorios(500, seed=7))
    assert first == list(demo.relatorios(500, seed=7))
    others = list(demo.relatorios(500, seed=8))
    assert not {r.numero for r in first} & {r.numero for r in others}
    assert not {r.numero_documento for r in first} & {r.numero_documento for r in others}


def test_the_demo_invents_as_many_reports_as_requested() -> None:
    assert [sum(1 for _ in demo.relatorios(count)) for count in (0, 1, 2, 999)] == [0, 1, 2, 999]


def test_reports_are_invented_lazily() -> None:
    assert len(list(islice(demo.relatorios(10**9), 100))) == 100


def test_numeros_are_distinct_uuids_of_version_4(invented: list[Relatorio]) -> None:
    assert all(str(UUID(r.numero)) == r.numero and UUID(r.numero).version == 4 for r in invented)
    assert len({r.numero for r in invented}) == COUNT


def test_cpfs_and_cnpjs_are_valid_and_belong_to_their_tipo_pessoa(invented: list[Relatorio]) -> None:
    cpfs = {r.numero_documento for r in invented if r.tipo_pessoa == "Pessoa"}
    cnpjs = {r.numero_documento for r in invented if r.tipo_pessoa == "Empresa"}
    assert all(cpf.is_valid(document) and is_cpf(document) for document in cpfs)
    assert all(is_cnpj(document) for document in cnpjs)
    assert all(cnpj.is_valid(document) for document in cnpjs if document.isdecimal())


def test_some_cnpjs_carry_letters(invented: list[Relatorio]) -> None:
    cnpjs = {r.numero_documento for r in invented if r.tipo_pessoa == "Empresa"}
    assert 0.15 < sum(not document.isdecimal() for document in cnpjs) / len(cnpjs) < 0.35


def test_no_cpf_is_one_digit_repeated() -> None:
    repeated = {digit * 11 for digit in "0123456789"}
    assert all(r.numero_documento not in repeated for r in demo.relatorios(COUNT, persons=COUNT))


def test_a_document_always_has_the_same_name(invented: list[Relatorio]) -> None:
    names: dict[str, str] = {}
    assert all(names.setdefault(r.numero_documento, r.nome_pessoa) == r.nome_pessoa for r in invented)


@pytest.mark.parametrize(("persons", "expected"), [(None, 0.3), (COUNT // 10, 0.1), (COUNT // 2, 0.5)])
def test_the_persons_argument_sets_the_number_of_distinct_cpfs(persons: int | None, expected: float) -> None:
    cpfs = {r.numero_documento for r in demo.relatorios(COUNT, persons=persons) if r.tipo_pessoa == "Pessoa"}
    assert len(cpfs) / COUNT == pytest.approx(expected, rel=0.01)


def test_most_documents_have_few_reports_and_some_have_many(invented: list[Relatorio]) -> None:
    times = sorted(Counter(r.numero_documento for r in invented).values())
    assert times[len(times) // 2] <= 2
    assert 30 < times[-1] < COUNT / 50


def test_names_look_brazilian_and_about_one_in_twenty_is_a_maria(
    invented: list[Relatorio],
) -> None:
    nomes = list({r.numero_documento: r.nome_pessoa for r in invented if r.tipo_pessoa == "Pessoa"}.values())
    assert 0.04 < sum(nome.startswith("Maria ") for nome in nomes) / len(nomes) < 0.065
    assert sum(not nome.isascii() for nome in nomes) > len(nomes) / 10
    assert all(any(f" {particle} " in nome for nome in nomes) for particle in ("da", "de", "do", "dos"))
    assert all(nome == " ".join(nome.split()) for nome in nomes)
    assert len(set(nomes)) > len(nomes) / 2


def test_a_fifth_of_the_reports_are_on_companies(invented: list[Relatorio]) -> None:
    assert _share(invented, tipo_pessoa="Empresa") == pytest.approx(0.2, abs=0.01)


def test_each_matriz_has_one_tipo_pessoa(invented: list[Relatorio]) -> None:
    tipos = {(r.nome, r.tipo_pessoa) for r in invented}
    assert len(tipos) == 12
    assert all(nome.startswith(f"consulta{tipo}") for nome, tipo in tipos)


def test_every_status_occurs_and_most_reports_are_concluded(invented: list[Relatorio]) -> None:
    statuses = {r.status for r in invented}
    assert statuses == {"CONCLUIDO", "PROCESSANDO", "PRE-PROCESSANDO", "EM ANALISE", "PENDENTE"}
    assert _share(invented, status="CONCLUIDO") == pytest.approx(0.85, abs=0.02)


def test_open_reports_are_mostly_among_the_newest(invented: list[Relatorio]) -> None:
    opened = [index for index, r in enumerate(invented) if r.status != "CONCLUIDO"]
    assert sum(index >= COUNT * 0.8 for index in opened) / len(opened) > 0.6


def test_exactly_the_concluded_reports_have_a_resultado(invented: list[Relatorio]) -> None:
    assert all((r.resultado is not None) == (r.status == "CONCLUIDO") for r in invented)
    concluded = [r for r in invented if r.status == "CONCLUIDO"]
    assert _share(concluded, resultado="VALID") == pytest.approx(0.88, abs=0.02)
    assert _share(concluded, resultado="INVALID") == pytest.approx(0.12, abs=0.02)


def test_reports_that_wait_for_a_person_are_mostly_in_analysis_or_pending(invented: list[Relatorio]) -> None:
    waiting = Counter(r.status for r in invented if r.pendente_validacao_manual)
    assert waiting["EM ANALISE"] + waiting["PENDENTE"] > waiting.total() * 0.8
    assert set(waiting) == {"EM ANALISE", "PENDENTE", "CONCLUIDO"}


def test_fields_with_few_values_have_100_to_150_combinations(invented: list[Relatorio]) -> None:
    keys = {(r.nome, r.tipo_pessoa, r.status, r.resultado, r.pendente_validacao_manual) for r in invented}
    assert 100 <= len(keys) <= 150


def test_instants_ascend_over_the_last_three_years(invented: list[Relatorio]) -> None:
    instants = [r.atualizado_em for r in invented]
    assert all(before <= after for before, after in pairwise(instants))
    day = 86_400_000
    assert demo.NOW_MS - 1095 * day <= instants[0] < demo.NOW_MS - 1094 * day
    assert demo.NOW_MS - day < instants[-1] < demo.NOW_MS


def test_few_reports_fall_on_nights_and_weekends(invented: list[Relatorio]) -> None:
    hours = [(r.atualizado_em // 3_600_000) + 72 for r in invented]  # 1970-01-01 was a Thursday
    weekend = sum(hour // 24 % 7 >= 5 for hour in hours)
    night = sum(2 <= hour % 24 < 10 for hour in hours)
    assert 0 < weekend < COUNT / 10
    assert 0 < night < COUNT / 8


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_written_lines_are_read_back_as_the_same_reports(
    invented: list[Relatorio], compress: Callable[[bytes], bytes]
) -> None:
    content = compress(b"".join(demo.ndjson_lines(invented)))
    name = "relatorios.ndjson" if compress is bytes else "relatorios.ndjson.gz"
    assert list(read(Source(BytesIO(content), name))) == list(enumerate(invented, 1))


def test_two_organizations_split_reports_70_to_30_and_share_some_cpfs(database: Database) -> None:
    filled = demo.fill(database, KEY, count=3000)
    assert filled.written == 3000
    per_conta = _fetch(database, "SELECT id_conta, count(*) FROM relatorio GROUP BY id_conta ORDER BY id_conta")
    assert per_conta == [(1, 2100), (2, 900)]
    shared = "SELECT count(*) FROM (SELECT cpf FROM pessoa GROUP BY cpf HAVING count(*) = 2) AS shared"
    assert _fetch(database, shared)[0][0] > 50


def test_every_token_of_the_demo_works(database: Database) -> None:
    filled = demo.fill(database, KEY, count=100)
    with database.snapshot() as connection:
        callers = [caller_of(connection, hash_token(KEY, a.token), now_ms=1) for a in filled.accesses]
    assert [(c.nome_organizacao, c.email) for c in callers if c] == [
        ("Organização Exemplo", "analista@example.com"),
        ("Organização Exemplo", "integracao@example.com"),
        ("Organização Vizinha", "analista@example.net"),
    ]


def test_a_second_fill_writes_nothing_and_returns_the_same_tokens(database: Database) -> None:
    first = demo.fill(database, KEY, count=200)
    before = _recount(database)
    second = demo.fill(database, KEY, count=200)
    assert second.accesses == first.accesses
    assert second.written == 0
    assert _recount(database) == before


@pytest.mark.parametrize("change", ["organizacao SET enabled = 0", "token SET revoked_at = 1"])
def test_a_store_whose_tokens_are_refused_is_not_filled_again(database: Database, change: str) -> None:
    demo.fill(database, KEY, count=200)
    with database.transaction() as connection:
        connection.run_script(f"UPDATE {change}")
    instants = "SELECT recency FROM relatorio ORDER BY numero"
    before = _fetch(database, instants)
    assert demo.fill(database, KEY, count=200, until_ms=demo.NOW_MS + DAY).written == 0
    assert _fetch(database, instants) == before


def test_the_next_fill_completes_an_interrupted_one(database: Database) -> None:
    demo.fill(database, KEY, count=200)
    with database.transaction() as connection:
        connection.run_script("DELETE FROM token")  # tokens are written last, so without them the demo is incomplete
    assert demo.fill(database, KEY, count=200).written == 0
    assert _recount(database) == (2, 3, 3, 200)


def test_two_fills_at_the_same_time_leave_one_demo(database: Database) -> None:
    with ThreadPoolExecutor(2) as threads:
        filled = list(threads.map(lambda _: demo.fill(database, KEY, count=200), range(2)))
    assert filled[0].accesses == filled[1].accesses
    assert _recount(database) == (2, 3, 3, 200)


def test_tokens_are_well_formed_depend_on_the_key_and_stay_out_of_repr() -> None:
    tokens = [demo.demo_token(KEY, number) for number in (1, 2)] + [demo.demo_token(bytes(32), 1)]
    assert len(set(tokens)) == 3
    assert all(presented(token) == token for token in tokens)
    shown = repr(demo.Demo((demo.Access(1, tokens[0]),), 0))
    assert tokens[0] not in shown


# With --live


@pytest.fixture(scope="module")
def histories() -> dict[int, list[Relatorio]]:
    """Return the states of the first 300 new reports by their numbers, each report's states in order."""
    found: dict[int, list[Relatorio]] = {}
    for number, state in takewhile(lambda change: change[0] < 400, live.changes(5, START_MS)):
        found.setdefault(number, []).append(state)
    return {number: states for number, states in found.items() if number < 300}


def test_a_report_arrives_every_2_seconds_and_concludes_within_40_seconds(
    histories: dict[int, list[Relatorio]],
) -> None:
    assert [states[0].atualizado_em - START_MS for states in histories.values()] == list(range(0, 600_000, 2000))
    for states in histories.values():
        assert states[0].status == "PRE-PROCESSANDO"
        assert states[-1].status == "CONCLUIDO"
        assert states[-1].atualizado_em - states[0].atualizado_em < 40_000
        assert all(before.atualizado_em + 2000 <= after.atualizado_em for before, after in pairwise(states))


def test_a_live_report_keeps_its_identity_when_its_status_changes(histories: dict[int, list[Relatorio]]) -> None:
    for states in histories.values():
        assert len({(s.numero, s.nome, s.tipo_pessoa, s.numero_documento, s.nome_pessoa) for s in states}) == 1
        assert all((s.resultado is not None) == (s.status == "CONCLUIDO") for s in states)
        assert all(before.status != after.status for before, after in pairwise(states))
    assert {s.status for states in histories.values() for s in states} == {outcome[0] for outcome in names.OUTCOMES}


def test_live_changes_are_in_time_order_and_depend_on_the_seed() -> None:
    first, other = (list(islice(live.changes(seed, START_MS), 300)) for seed in (1, 2))
    assert all(before.atualizado_em <= after.atualizado_em for (_, before), (_, after) in pairwise(first))
    assert not {state.numero for _, state in first} & {state.numero for _, state in other}


def test_live_changes_are_written_in_time_and_split_70_to_30(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = demo.fill(database, KEY, count=10)
    clock = Clock(START_MS)
    monkeypatch.setattr(demo, "time", clock)
    with pytest.raises(TimeoutError):
        demo.run_live(database, filled)
    newest = "SELECT id_conta, -min(recency), count(*) FROM relatorio GROUP BY id_conta ORDER BY id_conta"
    assert [(id_conta, count) for id_conta, _, count in _fetch(database, newest)] == [(1, 7 + 42), (2, 3 + 18)]
    assert START_MS + 110_000 < _fetch(database, newest)[0][1] <= clock.now_ms


class Clock:
    """A clock on which sleeping takes no real time; after two minutes of its own it raises TimeoutError."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = self._end = now_ms
        self._end += 119_999

    def time_ns(self) -> int:
        return self.now_ms * 1_000_000

    def sleep(self, seconds: float) -> None:
        self.now_ms += round(seconds * 1000)
        if self.now_ms > self._end:
            raise TimeoutError


def _share(relatorios: list[Relatorio], **wanted: str) -> float:
    hits = sum(all(getattr(r, name) == value for name, value in wanted.items()) for r in relatorios)
    return hits / len(relatorios)


def _fetch(database: Database, text: str) -> list[tuple[int, ...]]:
    with database.snapshot() as connection:
        return connection.fetch(Statement(text))


def _recount(database: Database) -> tuple[int, ...]:
    tables = ("organizacao", "usuario", "token", "relatorio")
    return tuple(_fetch(database, f"SELECT count(*) FROM {table}")[0][0] for table in tables)
