"""The writer's rules: newer versions win, a batch is stored whole or not at all, the newest report names a person."""

import itertools
import random
import time
from collections.abc import Iterator

import pytest

from factories import NEWER, NOON, SMALL, Account, Store, contents, cpf, empresa, numero, relatorio, versions
from laudo.core.axes import numero_key
from laudo.core.sql import Statement
from laudo.server.database import Connection, StoreError
from laudo.server.ingest import claims, pessoas
from laudo.server.ingest.pessoas import Pessoas
from laudo.server.ingest.verify import verify
from laudo.server.ingest.writer import Counts, Ingest
from wsgi import Client


@pytest.fixture
def ingest(store: Store, account: Account) -> Ingest:
    return Ingest(store.database, account.id_conta)


# Rules for reports.


def test_a_new_report_is_inserted_and_the_same_again_is_unchanged(ingest: Ingest) -> None:
    assert ingest.write([relatorio(1), relatorio(2)]) == Counts(inserted=2)
    assert ingest.write([relatorio(2), relatorio(1), relatorio(3)]) == Counts(inserted=1, unchanged=2)


def test_a_newer_report_replaces_an_older_one(ingest: Ingest, acme: Client) -> None:
    ingest.write([relatorio(1, status="PROCESSANDO", resultado=None)])
    assert ingest.write([relatorio(1, status="CONCLUIDO", atualizado_em=NOON + 1)]) == Counts(updated=1)
    [item] = acme.get("/relatorios").itens
    assert (item["status"], item["resultado"], item["atualizado_em"]) == (
        "CONCLUIDO",
        "VALID",
        "2026-01-31T12:00:00.001Z",
    )


@pytest.mark.parametrize("instant", [NOON - 1, NOON, 0])
def test_a_report_that_is_not_newer_is_counted_and_changes_nothing(store: Store, ingest: Ingest, instant: int) -> None:
    ingest.write([relatorio(1)])
    before = contents(store.database), versions(store.database)
    expected = Counts(conflicting=1) if instant == NOON else Counts(stale=1)
    assert ingest.write([relatorio(1, mensagem="Outra.", atualizado_em=instant)]) == expected
    assert (contents(store.database), versions(store.database)) == before


@pytest.mark.parametrize(
    "change",
    [
        {"status": "PENDENTE"},
        {"nome": "outra"},
        {"resultado": None},
        {"mensagem": ""},
        {"pendente_validacao_manual": True},
        {"numero_documento": cpf(5)},
        {"nome_pessoa": "Outra Pessoa"},
    ],
)
def test_any_field_changes_only_with_a_newer_instant(ingest: Ingest, change: dict[str, object]) -> None:
    ingest.write([relatorio(1)])
    assert ingest.write([relatorio(1, **change)]) == Counts(conflicting=1)
    assert ingest.write([relatorio(1, **change, atualizado_em=NOON + 1)]) == Counts(updated=1)


def test_the_same_rules_apply_within_a_batch(ingest: Ingest, acme: Client) -> None:
    first, second = relatorio(1), relatorio(1, mensagem="Depois.", atualizado_em=NOON + 1)
    assert ingest.write([first, first, second, first, second]) == Counts(1, 1, 2, 1)
    assert [item["mensagem"] for item in acme.get("/relatorios").itens] == ["Depois."]


def test_the_order_of_a_batch_decides_nothing_about_a_stored_report(ingest: Ingest, acme: Client) -> None:
    ingest.write([relatorio(1)])
    second, third = (relatorio(1, mensagem=f"{n}.", atualizado_em=NOON + n) for n in (2, 3))
    assert ingest.write([third, second]) == Counts(updated=1, stale=1)
    assert [item["mensagem"] for item in acme.get("/relatorios").itens] == ["3."]


def test_an_empty_batch_changes_nothing(store: Store, ingest: Ingest) -> None:
    ingest.write([relatorio(1)])
    before = contents(store.database)
    assert ingest.write([]) == Counts()
    assert ingest.delete([]) == ingest.delete([relatorio(2).numero]) == 0
    assert contents(store.database) == before


def test_a_new_facet_does_not_get_the_number_of_an_empty_one(store: Store, account: Account) -> None:
    store.write(account, [relatorio(1), relatorio(2, nome="outra")])
    store.delete(account, 2)
    store.write(account, [relatorio(3, nome="terceira")])
    assert list(verify(store.database)) == []


def test_the_same_numero_in_two_accounts_is_two_reports(store: Store, account: Account, ingest: Ingest) -> None:
    other = store.account(account.id_organizacao)
    assert ingest.write([relatorio(1)]) == Counts(inserted=1)
    assert store.write(other, [relatorio(1)]) == Counts(inserted=1)


def test_a_missing_account_cannot_be_written_to(store: Store) -> None:
    with pytest.raises(StoreError, match="account 99"):
        Ingest(store.database, 99)


def test_versions_grow_only_when_the_lists_change(store: Store, account: Account) -> None:
    sister = store.account(account.id_organizacao)

    seen = [versions(store.database)]

    def grown() -> tuple[bool, ...]:
        seen.append(versions(store.database))
        return tuple(now > then for now, then in zip(seen[-1], seen[-2], strict=True))

    assert seen == [(0, 0, 0)]
    store.write(account, [relatorio(1), relatorio(2)])
    assert grown() == (True, True, False)
    store.write(account, [relatorio(1), relatorio(2, mensagem="Outra.", atualizado_em=0)])
    assert grown() == (False, False, False)
    store.write(account, [empresa(3)])
    assert grown() == (False, True, False)
    store.write(sister, [relatorio(1, atualizado_em=NOON + 1)])
    assert grown() == (True, False, True)


def stop_clock(monkeypatch: pytest.MonkeyPatch, at_ms: int) -> None:
    """Stop the clock that versions follow."""
    monkeypatch.setattr("laudo.server.ingest.versions.time_ns", lambda: at_ms * 1_000_000)


def test_versions_follow_the_clock_and_grow_even_if_it_goes_back(
    store: Store, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = time.time_ns() // 1_000_000
    ahead_ms = now_ms + 3_600_000
    found = [versions(store.database)[-1]]
    for number, (clock_ms, least_ms) in enumerate(
        ((now_ms, now_ms), (ahead_ms, ahead_ms), (ahead_ms, ahead_ms), (now_ms, ahead_ms))
    ):
        stop_clock(monkeypatch, clock_ms)
        store.write(account, [relatorio(2, atualizado_em=NOON + number)])
        assert 0 <= (versions(store.database)[-1] >> 20) - least_ms <= number
        found.append(versions(store.database)[-1])
    assert found == sorted(set(found))


@pytest.mark.parametrize("ahead_ms", [0, 3_600_000])
def test_a_restored_store_never_reuses_a_version(
    store: Store, account: Account, monkeypatch: pytest.MonkeyPatch, ahead_ms: int
) -> None:
    """This holds for any clock, so no ETag ever names two different states."""
    now_ms = time.time_ns() // 1_000_000
    stop_clock(monkeypatch, now_ms + ahead_ms)
    store.write(account, [relatorio(1)])
    found = [versions(store.database)[-1]]
    stop_clock(monkeypatch, now_ms)
    for number in (2, 3):
        store.write(account, [relatorio(number)])
        found.append(versions(store.database)[-1])
        store.database.fetch(Statement("UPDATE conta SET version = ?", (found[0],)))
    assert len(set(found)) == len(found)


def test_a_migration_does_not_make_a_store_another_one(store: Store, account: Account) -> None:
    """So a mirror that has filled it goes on after an update."""
    writer = Ingest(store.database, account.id_conta)
    before = writer.note_pull()
    store.database.fetch(Statement("INSERT INTO migration (name, applied_at) VALUES ('9999_more.sql', ?)", (1 << 60,)))
    assert writer.pulled() == before


# People.


def people(client: Client) -> dict[str, tuple[str, int]]:
    """Return each person's name, and milliseconds after NOON, by CPF."""
    items = client.get("/pessoas?rows=1000").itens
    return {item["cpf"]: (item["nome"], int(item["atualizado_em"][20:23])) for item in items}


def test_a_person_has_the_name_of_the_newest_report_in_any_order(ingest: Ingest, acme: Client, store: Store) -> None:
    reports = [
        relatorio(n, nome_pessoa=f"Nome {n}", atualizado_em=NOON + n, numero_documento=cpf(1)) for n in (1, 2, 3)
    ]
    for order in itertools.permutations(reports):
        for report in order:
            ingest.write([report])
        assert people(acme) == {cpf(1): ("Nome 3", 3)}
    assert len(contents(store.database)["pessoa"]) == 1


def test_of_two_newest_reports_the_smaller_numero_names_the_person(
    store: Store, account: Account, acme: Client
) -> None:
    sister = store.account(account.id_organizacao)
    for number, (first, second) in enumerate(itertools.permutations((account, sister))):
        document = cpf(number)
        larger = relatorio(9, nome_pessoa="Maior", numero_documento=document, atualizado_em=NOON + number)
        smaller = relatorio(8, nome_pessoa="Menor", numero_documento=document, atualizado_em=NOON + number)
        store.write(first, [larger])
        store.write(second, [smaller])
        assert people(acme)[document] == ("Menor", number)


def test_within_a_batch_the_smaller_numero_names_the_person(ingest: Ingest, acme: Client) -> None:
    ingest.write([relatorio(9, nome_pessoa="Maior"), relatorio(8, nome_pessoa="Menor"), relatorio(7, atualizado_em=0)])
    assert [name for name, _ in people(acme).values()] == ["Menor"]


def test_for_equal_numeros_the_older_account_names_the_person(store: Store, account: Account, acme: Client) -> None:
    sister = store.account(account.id_organizacao)
    store.write(sister, [relatorio(1, nome_pessoa="Segunda")])
    store.write(account, [relatorio(1, nome_pessoa="Primeira")])
    assert [name for name, _ in people(acme).values()] == ["Primeira"]


def test_a_report_with_a_new_document_moves_its_person(ingest: Ingest, acme: Client) -> None:
    ingest.write([relatorio(1, numero_documento=cpf(1), nome_pessoa="Um")])
    ingest.write([relatorio(1, numero_documento=cpf(2), nome_pessoa="Dois", atualizado_em=NOON + 1)])
    assert people(acme) == {cpf(2): ("Dois", 1)}


def test_a_report_that_is_not_written_adds_no_person(ingest: Ingest, acme: Client) -> None:
    ingest.write([relatorio(1, numero_documento=cpf(1), nome_pessoa="Um")])
    stale = relatorio(1, numero_documento=cpf(2), nome_pessoa="Dois", atualizado_em=NOON - 1)
    assert ingest.write([stale, relatorio(3, numero_documento=cpf(3), nome_pessoa="Três")]) == Counts(1, stale=1)
    assert people(acme) == {cpf(1): ("Um", 0), cpf(3): ("Três", 0)}


def test_a_name_that_changes_only_in_accents_is_stored(store: Store, ingest: Ingest, acme: Client) -> None:
    ingest.write([relatorio(1, nome_pessoa="Jose")])
    ingest.write([relatorio(1, nome_pessoa="José", atualizado_em=NOON + 1)])
    assert [name for name, _ in people(acme).values()] == ["José"]
    assert list(verify(store.database)) == []


@pytest.mark.parametrize("later", [(0, 1, 2), (0, 2, 1)])
def test_a_person_whose_two_newest_reports_leave_together_falls_back(
    ingest: Ingest, acme: Client, later: tuple[int, ...]
) -> None:
    ingest.write([relatorio(n, nome_pessoa=f"Nome {n}", atualizado_em=NOON + ms) for n, ms in enumerate(later)])
    assert ingest.delete([numero(1), numero(2)]) == 2
    assert [name for name, _ in people(acme).values()] == ["Nome 0"]


def test_a_person_falls_back_to_the_next_newest_report_of_any_account(
    store: Store, account: Account, ingest: Ingest, acme: Client
) -> None:
    sister = store.account(account.id_organizacao)
    store.write(sister, [relatorio(5, numero_documento=cpf(1), nome_pessoa="Antes", atualizado_em=NOON + 1)])
    ingest.write([relatorio(1, numero_documento=cpf(1), nome_pessoa="Bem antes")])
    ingest.write([relatorio(2, numero_documento=cpf(1), nome_pessoa="Agora", atualizado_em=NOON + 2)])
    assert people(acme) == {cpf(1): ("Agora", 2)}
    ingest.write([relatorio(2, numero_documento=cpf(2), nome_pessoa="Fora", atualizado_em=NOON + 3)])
    assert people(acme) == {cpf(1): ("Antes", 1), cpf(2): ("Fora", 3)}


def test_a_person_is_looked_up_only_when_the_newest_report_leaves(
    ingest: Ingest, acme: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an organization with a thousand accounts it would take a thousand look-ups, or a read of as many reports."""
    ingest.write([relatorio(n, nome_pessoa=f"Nome {n}", atualizado_em=NOON + n // 2) for n in range(1, 6)])
    looked: list[int] = []
    read_newest = Pessoas._newest

    def counted(self: Pessoas, connection: Connection, cpfs: list[str]) -> dict[str, claims.PessoaRow]:
        looked.append(len(cpfs))
        return read_newest(self, connection, cpfs)

    monkeypatch.setattr(Pessoas, "_newest", counted)
    for leaving, left in ((1, "Nome 4"), (4, "Nome 5"), (2, "Nome 5"), (5, "Nome 3"), (3, None)):
        assert ingest.delete([numero(leaving)]) == 1
        assert [name for name, _ in people(acme).values()] == ([left] if left else [])
    assert looked == [0, 1, 0, 1, 1]


@pytest.mark.parametrize("many", [1, 1000])
def test_newest_reports_are_found_by_look_ups_and_among_all_reports(
    store: Store, account: Account, acme: Client, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    """Persons are looked up in each account, or found by reading all reports if these are fewer."""
    monkeypatch.setattr(pessoas, "_MANY", many)
    sisters = [store.account(account.id_organizacao) for _ in range(3)]
    stranger = store.account()
    for number, each in enumerate((*sisters, stranger)):
        store.write(each, [relatorio(n, numero_documento=cpf(n), nome_pessoa=f"Em {number}") for n in range(0, 20, 3)])
    store.write(
        account, [relatorio(n, numero_documento=cpf(n), nome_pessoa="Agora", atualizado_em=NOON + 1) for n in range(20)]
    )
    assert store.delete(account, *range(20)) == 20
    assert people(acme) == {cpf(n): ("Em 0", 0) for n in range(0, 20, 3)}
    assert list(verify(store.database)) == []


def test_two_persons_can_swap_documents_within_one_batch(ingest: Ingest, acme: Client) -> None:
    ingest.write([relatorio(n, numero_documento=cpf(n), nome_pessoa=f"Nome {n}") for n in (1, 2)])
    ingest.write(
        [relatorio(n, numero_documento=cpf(3 - n), nome_pessoa=f"Nome {n}", atualizado_em=NOON + n) for n in (1, 2)]
    )
    assert people(acme) == {cpf(1): ("Nome 2", 2), cpf(2): ("Nome 1", 1)}


def test_a_report_that_becomes_a_companys_removes_its_person(ingest: Ingest, acme: Client) -> None:
    ingest.write([relatorio(1)])
    ingest.write([empresa(1, nome_pessoa="Acme Ltda.", atualizado_em=NOON + 1)])
    assert people(acme) == {}
    ingest.write([relatorio(1, atualizado_em=NOON + 2)])
    assert len(people(acme)) == 1


# A store that changes under its writer.


def test_a_writer_stops_when_a_newer_version_migrates_the_store(store: Store, ingest: Ingest) -> None:
    ingest.write([relatorio(1)])
    before = contents(store.database)
    with store.database.transaction() as connection:
        connection.run_script(NEWER)
    for writing in (lambda: ingest.write([relatorio(2)]), lambda: ingest.delete([relatorio(1).numero])):
        with pytest.raises(StoreError, match="was migrated meanwhile"):
            writing()
    assert contents(store.database) == before


def test_a_writer_stops_when_the_store_has_lost_acknowledged_reports(store: Store, ingest: Ingest) -> None:
    """A standby may take over without the last batches; if the writer continued, nobody would import them again."""
    ingest.write([relatorio(1)])
    with store.database.snapshot() as connection:
        [(before,)] = connection.fetch(Statement("SELECT version FROM conta"))
    ingest.write([relatorio(2)])
    with store.database.transaction() as connection:
        connection.fetch(Statement("DELETE FROM relatorio WHERE numero = ?", (numero_key(numero(2)),)))
        connection.fetch(Statement("UPDATE conta SET version = ?", (before,)))
    for asking in (lambda: ingest.write([relatorio(3)]), lambda: ingest.delete([numero(1)]), ingest.note_pull):
        with pytest.raises(StoreError, match="has lost reports that it had acknowledged"):
            asking()


def test_a_store_migrated_by_a_newer_version_gets_no_writer(store: Store, account: Account) -> None:
    with store.database.transaction() as connection:
        connection.run_script(NEWER)
    with pytest.raises(StoreError, match="the store was migrated by a newer version of laudo"):
        Ingest(store.database, account.id_conta)


# How the buckets of an axis grow.


def test_no_bucket_exceeds_its_size_or_stays_empty_behind_another(store: Store, account: Account) -> None:
    """Bounded sizes make it possible to find any place by reading one coarse and one fine bucket."""
    ingest = Ingest(store.database, account.id_conta, sizes=SMALL)
    reports = [relatorio(n, atualizado_em=NOON + 7 * n % 501, numero_documento=cpf(n)) for n in range(500)]
    written, gone = iter(reports), iter(random.Random(3).sample(reports, 450))
    for coming, leaving in ((1, 0), (11, 0), (1, 0), (300, 0), (100, 150), (87, 300)):
        ingest.write(list(itertools.islice(written, coming)))
        ingest.delete([each.numero for each in itertools.islice(gone, leaving)])
        for fine in _buckets(store):
            assert len(fine) <= SMALL.most_children
            assert max(fine) <= SMALL.most_rows
            assert 0 not in fine[1:]


def test_only_a_bucket_that_exceeds_its_size_is_split(store: Store, account: Account) -> None:
    reports = [relatorio(n, atualizado_em=NOON + n, numero_documento=cpf(n)) for n in range(13)]
    by_numero = Statement("SELECT total FROM bucket WHERE id_conta > 0 AND axis = 2 AND parent > 0 ORDER BY lower")
    small = Ingest(store.database, account.id_conta, sizes=SMALL)
    small.write(reports[:12])
    assert store.database.fetch(by_numero) == [(12,)]
    small.write(reports[12:])
    assert store.database.fetch(by_numero) == [(6,), (7,)]


def test_reports_with_which_a_dropped_bucket_began_can_leave_again(store: Store, account: Account) -> None:
    small = Ingest(store.database, account.id_conta, sizes=SMALL)
    reports = [relatorio(n, atualizado_em=NOON + n, numero_documento=cpf(n)) for n in range(20)]
    small.write(reports)
    small.delete([each.numero for each in reports[1:]])
    for each in reports[1:]:
        small.write([each])
        assert small.delete([each.numero]) == 1
    assert list(verify(store.database)) == []


def test_no_coarse_bucket_stays_empty_when_reports_are_rewritten(store: Store, account: Account) -> None:
    """Each new instant moves a report to the front of its order; the emptied buckets would accumulate."""
    ingest = Ingest(store.database, account.id_conta, sizes=SMALL)
    numbers, shuffled = list(range(60)), random.Random(3)
    for instant in range(NOON, NOON + 6_000, 1_000):
        shuffled.shuffle(numbers)
        for start in range(0, len(numbers), 20):
            ingest.write([relatorio(n, atualizado_em=instant + n) for n in numbers[start : start + 20]])
            assert all(map(any, _buckets(store)))
    assert list(verify(store.database)) == []


def _buckets(store: Store) -> Iterator[list[int]]:
    """Yield for each coarse bucket the numbers of rows in its fine ones, in order."""
    asked = "SELECT id_organizacao, id_conta, axis, parent, lower, total FROM bucket WHERE parent > 0"
    rows = sorted(store.database.fetch(Statement(asked)))
    for _, fine in itertools.groupby(rows, key=lambda row: row[:4]):
        yield [row[-1] for row in fine]
