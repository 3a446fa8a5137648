import fcntl
import json
import resource
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from click.testing import Result

from client.service import TOKEN, Service, pessoa, refused, relatorio
from client.socket_service import listening, of_app
from engines import Stores
from factories import Store, contents, cpf
from factories import relatorio as stored
from laudo.core.sql import Statement
from laudo.server.ingest.writer import Ingest
from laudo.server.stores import open_store
from shell import Shell, one_line
from wsgi import NewApp

STATE = "pull.json"
Run = Callable[..., Result]
DROPPED = httpx.ReadError("dropped")


@contextmanager
def pulling(laudo: Shell, base: str, token: str) -> Iterator[Run]:
    def run(*words: str) -> Result:
        account = () if "--account" in words else ("--account", "1")
        given = ("--from", base, *account, "--state", str(laudo.folder / STATE), *words)
        return laudo("pull", *given, env={"LAUDO_TOKEN": token})

    yield run


@pytest.fixture
def service() -> Service:
    service = Service([relatorio(number, numero_documento=cpf(number % 700)) for number in range(2600, 0, -1)])
    service.pessoas = [person(number) for number in range(700)]
    return service


def person(number: int) -> dict[str, object]:
    return pessoa(0, cpf=cpf(number), nome=f"Pessoa {number}", atualizado_em="2026-01-01T00:00:00.000Z")


@pytest.fixture
def run(laudo: Shell, service: Service) -> Iterator[Run]:
    with listening(service) as base, pulling(laudo, base, TOKEN) as run:
        yield run


def count(laudo: Shell, table: str) -> int:
    database = open_store(laudo.store)
    try:
        return len(contents(database)[table])
    finally:
        database.close()


def test_the_first_pull_brings_everything_and_the_next_one_only_changes(
    run: Run, laudo: Shell, service: Service
) -> None:
    first = run()
    assert first.stdout == "2600 inserted, 0 updated, 0 unchanged, 0 stale, 0 rejected; the service has 2600\n"
    assert "everything is read again" not in first.stderr
    assert (count(laudo, "relatorio"), count(laudo, "pessoa")) == (2600, 700)
    asked = len(service.requests)
    migrated_later(laudo)
    service.most_rows = 500
    service.relatorios.insert(0, relatorio(90_000, numero_documento=cpf(800)))
    service.pessoas.insert(0, pessoa(0, cpf=cpf(800), nome="Nova Pessoa", atualizado_em="2026-02-01T00:00:00.000Z"))
    assert run().stdout.startswith("1 inserted, 0 updated, 301 unchanged, 0 stale, 0 rejected; the service has 2601")
    assert {each.url.params["page"] for each in service.requests[asked:]} == {"1"}
    assert run().stdout.startswith("0 inserted, 0 updated, 1 unchanged, ")
    assert pulled(laudo) == [STATE]
    assert TOKEN not in (laudo.folder / STATE).read_text()


def migrated_later(laudo: Shell) -> None:
    """Pretend that the later migrations were applied long after the first one."""
    later = "UPDATE migration SET applied_at = applied_at + 9 WHERE name <> (SELECT min(name) FROM migration)"
    with closing(open_store(laudo.store, write=True)) as database, database.transaction() as connection:
        connection.run_script(later)


def test_no_report_is_missed_while_the_list_changes(run: Run, laudo: Shell, service: Service) -> None:
    def write(asked: int) -> None:
        if asked < 12:
            changed = service.relatorios.pop(len(service.relatorios) // 2)
            service.relatorios.insert(0, {**changed, "atualizado_em": f"2026-03-01T00:00:{asked:02}.000Z"})
            service.relatorios.insert(0, relatorio(90_000 + asked, atualizado_em=f"2026-03-01T00:01:{asked:02}.000Z"))

    service.after = write
    service.script = [None, None, refused(503, Retry_After="0"), None, refused(429, Retry_After="0"), None, DROPPED]
    assert run().exit_code == 0
    assert run().exit_code == 0
    assert count(laudo, "relatorio") == len(service.relatorios)
    assert run("--whole").stdout.startswith("0 inserted, 0 updated, ")


@pytest.mark.parametrize(("answered", "words"), [(1, ()), (2, ()), (3, ("--whole",)), (4, ()), (5, ())])
def test_an_interrupted_pull_resumes(
    run: Run, laudo: Shell, service: Service, answered: int, words: tuple[str, ...]
) -> None:
    service.script = [*[None] * answered, refused(500)]
    result = run(*words)
    assert result.exit_code == (2 if answered == 1 else 1)
    assert "hint: run it again to resume" in one_line(result)
    assert {stat.S_IMODE((laudo.folder / name).stat().st_mode) for name in pulled(laudo)} == {0o600}
    asked = len(service.requests)
    assert run(*words).exit_code == 0
    # A whole pull requests one page of persons, three of reports, and then the newest page of each again.
    assert len(service.requests) - asked == max(6 - answered, 2)
    assert (count(laudo, "relatorio"), count(laudo, "pessoa")) == (2600, 700)


def test_a_pull_that_fails_while_it_reads_names_says_that_they_are_kept(run: Run, service: Service) -> None:
    service.pessoas = [person(number) for number in range(2600)]
    earlier = "what earlier runs have copied"
    for answered, kept in ((1, "1000 names"), (0, earlier), (1, "1000 names"), (1, "600 names"), (0, earlier)):
        service.script = [*[None] * answered, refused(401)]
        result = run()
        assert result.exit_code == 2
        assert f"; kept: {kept}; hint: run it again to resume" in one_line(result)


def test_names_that_were_not_kept_are_read_again(run: Run, laudo: Shell, service: Service) -> None:
    service.relatorios = [relatorio(1, numero_documento=cpf(1))]
    service.pessoas = [person(number) for number in range(1100)]
    file = laudo.folder / f"{STATE}.names"

    def damage(asked: int) -> None:
        if asked == 1:
            file.write_bytes(b"x" * 10_000)

    service.after = damage
    assert "cannot use the file of names" in one_line(run())
    file.unlink()
    assert run().exit_code == 0
    assert not [request for request in service.requests if "cpf" in request.url.params]


def test_a_second_pull_at_the_same_time_is_refused(run: Run, laudo: Shell, service: Service) -> None:
    with (laudo.folder / f"{STATE}.lock").open("ab") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        result = run()
    said = f"error: another `laudo pull` is writing {laudo.folder / STATE}; hint: wait until it ends"
    assert (result.exit_code, one_line(result)) == (2, said)
    assert service.requests == []
    assert run().exit_code == 0
    assert pulled(laudo) == [STATE]


def test_a_lock_file_of_another_program_is_refused_and_unchanged(run: Run, laudo: Shell, service: Service) -> None:
    lock = laudo.folder / f"{STATE}.lock"
    lock.write_text("mine")
    assert one_line(run()) == f"error: {lock} is not a file of `laudo pull`; hint: name another --state"
    assert lock.read_text() == "mine"
    assert service.requests == []


def test_a_first_pull_that_fails_on_its_second_walk_counts_each_report_once(run: Run, service: Service) -> None:
    service.most_rows = 100
    refused_sizes, persons, reports = 2, 7, 26
    second_walk = refused_sizes + 1 + refused_sizes + 1  # until the newest 100 reports have come again
    service.script = [*[None] * (refused_sizes + persons + refused_sizes + reports + second_walk), refused(500)]
    result = run()
    assert "; kept: 2600 inserted, 0 updated, 0 unchanged, 0 stale, 0 rejected" in one_line(result)
    assert service.requests[-2].url.query == b"page=1&rows=100"


def test_a_whole_pull_does_not_resume_an_ordinary_pull(run: Run, laudo: Shell, service: Service) -> None:
    service.script = [None, None, None, refused(500)]
    assert run().exit_code == 1
    service.relatorios[900] |= {"mensagem": "Outra."}
    assert run("--whole").stdout.startswith("600 inserted, 1 updated, ")
    assert count(laudo, "relatorio") == 2600


def test_every_whole_pull_reads_everything_again(run: Run, service: Service) -> None:
    del service.relatorios[1000:]
    assert run("--whole").exit_code == 0
    for mensagem in ("Outra.", "Ainda outra."):
        service.relatorios[900] |= {"mensagem": mensagem}
        assert run("--whole").stdout.startswith("0 inserted, 1 updated, ")


@pytest.mark.parametrize("answer", [refused(400), refused(401), refused(500)])
def test_a_pull_refused_at_its_first_request_leaves_no_files(
    run: Run, laudo: Shell, service: Service, answer: httpx.Response
) -> None:
    service.script = [answer] * 4
    result = run()
    assert (result.exit_code, one_line(result)) == (2, f"error: Não. (status {answer.status_code}, request abc-1)")
    assert pulled(laudo) == []


def pulled(laudo: Shell) -> list[str]:
    """The files that a pull leaves behind."""
    return sorted(path.name for path in laudo.folder.iterdir() if "pull" in path.name)


@pytest.mark.parametrize("answered", [0, 1])
def test_a_failed_later_pull_leaves_no_names_file(run: Run, laudo: Shell, service: Service, answered: int) -> None:
    assert run().exit_code == 0
    service.script = [*[None] * answered, refused(500)]
    result = run()
    assert (result.exit_code, one_line(result)) == (2, "error: Não. (status 500, request abc-1)")
    assert pulled(laudo) == [STATE]


@pytest.mark.parametrize("answered", [1, 4])
@pytest.mark.parametrize("words", [(), ("--whole",)])
def test_a_list_restarts_if_the_service_no_longer_knows_the_place(
    run: Run, laudo: Shell, service: Service, answered: int, words: tuple[str, ...]
) -> None:
    service.pessoas = [person(number) for number in range(2600)]
    service.script = [*[None] * answered, refused(500)]
    run(*words)
    service.most_rows = 500
    name = "pessoas" if answered == 1 else "relatorios"
    result = run(*words)
    assert f"the service no longer knows the place in {name}: they are read from the start" in result.stderr
    assert (result.exit_code, count(laudo, "relatorio"), count(laudo, "pessoa")) == (0, 2600, 700)
    assert pulled(laudo) == [STATE]


def test_an_existing_names_file_becomes_readable_by_its_owner_only(run: Run, laudo: Shell, service: Service) -> None:
    file = laudo.folder / f"{STATE}.names"
    file.touch()
    file.chmod(0o644)
    service.script = [None, refused(500)]
    assert run().exit_code == 2
    assert file.stat().st_size
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_full_disk_leaves_no_empty_names_file(run: Run, laudo: Shell, service: Service) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    service.after = lambda _asked: resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        result = run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cannot use the file of names" in one_line(result)
    assert pulled(laudo) == []


@pytest.mark.parametrize("made", ["CREATE TABLE mine (a)", "CREATE TABLE nome (a)", "PRAGMA user_version = 7"])
def test_a_names_file_of_another_program_is_refused_and_unchanged(run: Run, laudo: Shell, made: str) -> None:
    file = laudo.folder / f"{STATE}.names"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(made)
    before = (file.read_bytes(), file.stat().st_mtime_ns)
    said = f"error: {file} is not a file of `laudo pull`; hint: remove it, or name another --state"
    result = run()
    assert (result.exit_code, one_line(result)) == (2, said)
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


@pytest.mark.parametrize(
    ("damaged", "when", "reason"),
    [
        (f"{STATE}.names", 3, "cannot use the file of names"),
        (f"{STATE}.names", 5, "cannot use the file of names"),
        (STATE, 3, "Is a directory"),
    ],
)
def test_a_pull_that_fails_midway_reports_what_it_kept(
    run: Run, laudo: Shell, service: Service, *, damaged: str, when: int, reason: str
) -> None:
    file = laudo.folder / damaged

    def damage(asked: int) -> None:
        if asked == when and damaged == STATE:
            file.unlink()
            file.mkdir()
        elif asked == when:
            file.write_bytes(b"x" * 10_000)

    service.after = damage
    result = run()
    assert result.exit_code == 1
    assert reason in one_line(result)
    assert "kept: " in result.stderr
    assert count(laudo, "relatorio") >= 1000
    file.rmdir() if damaged == STATE else file.unlink(missing_ok=True)
    assert run().exit_code == 0
    assert (count(laudo, "relatorio"), count(laudo, "pessoa")) == (2600, 700)


def test_a_report_dated_in_the_future_hides_no_later_reports(run: Run, laudo: Shell, service: Service) -> None:
    service.relatorios.insert(0, relatorio(80_000, atualizado_em="2099-01-01T00:00:00.000Z"))
    assert run().exit_code == 0
    for number in (90_000, 90_001):
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        service.relatorios.insert(1, relatorio(number, numero_documento=cpf(1), atualizado_em=now))
        assert run().stdout.startswith("1 inserted, 0 updated, ")
    assert count(laudo, "relatorio") == 2603
    since = json.loads((laudo.folder / STATE).read_text())["since"]
    assert datetime.fromisoformat(since) <= datetime.now(UTC)


def test_a_report_dated_in_the_year_1_hides_no_later_reports(run: Run, laudo: Shell, service: Service) -> None:
    service.relatorios = [relatorio(1, atualizado_em="0001-01-01T00:00:00.000Z")]
    for _ in range(2):
        rejected = run()
        assert rejected.stdout.startswith("0 inserted, 0 updated, 0 unchanged, 0 stale, 1 rejected")
        assert rejected.exit_code == 1
    service.relatorios.insert(0, relatorio(2, numero_documento=cpf(1)))
    assert run().stdout.startswith("1 inserted, ")
    assert count(laudo, "relatorio") == 1


def test_a_resumed_pull_brings_reports_added_since_its_interruption(run: Run, laudo: Shell, service: Service) -> None:
    """The newest report is dated in the future, so that the next pull starts from the time when this one began."""
    service.relatorios.insert(0, relatorio(80_000, atualizado_em="2099-01-01T00:00:00.000Z"))
    service.script = [None, None, None, refused(500)]
    assert run().exit_code == 1
    state, now = laudo.folder / STATE, datetime.now(UTC)
    began = {"began": (now - timedelta(hours=1)).isoformat()}
    state.write_text(json.dumps(json.loads(state.read_text()) | began))
    came = (now - timedelta(minutes=30)).isoformat(timespec="milliseconds")
    service.relatorios.insert(1, relatorio(90_000, numero_documento=cpf(1), atualizado_em=came))
    assert run().exit_code == 0
    assert count(laudo, "relatorio") == 2602


def test_invalid_reports_are_counted_and_reported_without_invalid_values(run: Run, service: Service) -> None:
    service.relatorios = [relatorio(2, numero="x-secret"), relatorio(1, numero_documento=cpf(1))]
    service.relatorios += [relatorio(3, numero_documento="٥٢٩٩٨٢٢٤٧٢٥")]  # Unicode digits, which no CPF has
    service.relatorios += [relatorio(4, numero="y-secret", tipo_pessoa="z-secret")]
    result = run()
    assert result.exit_code == 1
    assert result.stdout.startswith("1 inserted, 0 updated, 0 unchanged, 0 stale, 3 rejected")
    assert [line.partition("; accepted: ")[0] for line in result.stderr.splitlines()] == [
        "rejected: numero is not accepted",
        f"rejected: {relatorio(3)['numero']}: numero_documento is not accepted for Pessoa",
        "rejected: tipo_pessoa is not accepted",
    ]
    assert "secret" not in result.output


def test_tipo_pessoa_is_accepted_in_any_letter_case(run: Run, laudo: Shell, service: Service) -> None:
    service.relatorios = [relatorio(1, numero_documento=cpf(1), tipo_pessoa="PESSOA")]
    assert run().stdout.startswith("1 inserted, 0 updated, 0 unchanged, 0 stale, 0 rejected")
    found = json.loads(laudo.prints("find", "-", "--organization", "1", stdin=cpf(1)))
    assert (found["tipo_pessoa"], found["nome_pessoa"]) == ("Pessoa", "Pessoa 1")


def test_reports_of_an_unlisted_person_are_counted_as_without_a_name(run: Run, service: Service) -> None:
    service.relatorios = [relatorio(1, numero_documento=cpf(9999))]
    assert "1 without a name" in run().stdout


class IgnoringFilters(Service):
    """A service that ignores filters and lists everything."""

    def list(self, path: str, filters: dict[str, str], *, page: int, rows: int) -> httpx.Response:  # noqa: ARG002
        return super().list(path, {}, page=page, rows=rows)


def test_a_person_never_gets_the_name_of_another_person(laudo: Shell) -> None:
    service = IgnoringFilters([relatorio(number, numero_documento=cpf(9999)) for number in range(50, 0, -1)])
    service.pessoas = [pessoa(0, cpf=cpf(1), nome="Outra Pessoa")]
    with listening(service) as base, pulling(laudo, base, TOKEN) as run:
        assert run("--whole").exit_code == 0
    assert names(laudo) == {cpf(9999): "Nome não informado"}
    assert sum("cpf" in request.url.params for request in service.requests) == 2


def names(laudo: Shell) -> dict[str, str]:
    """The stored name of each CPF."""
    with closing(open_store(laudo.store)) as database:
        return dict(database.fetch(Statement("SELECT cpf, nome FROM pessoa")))


@pytest.mark.parametrize("asked", [1, 2, 5, 6])
def test_a_rename_during_a_pull_is_stored_by_the_next_pull_at_the_latest(
    run: Run, laudo: Shell, service: Service, asked: int
) -> None:
    def rename(requests: int) -> None:
        if requests == asked:
            now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            report = next(each for each in service.relatorios if each["numero_documento"] == cpf(5))
            service.relatorios.remove(report)
            service.relatorios.insert(0, {**report, "atualizado_em": now})
            service.pessoas.insert(0, pessoa(0, cpf=cpf(5), nome="Nome Novo", atualizado_em=now))
            service.pessoas.remove(person(5))

    service.after = rename
    assert run().exit_code == 0
    if asked > 4:
        assert run().exit_code == 0
    assert names(laudo)[cpf(5)] == "Nome Novo"


def test_a_rename_by_a_report_that_the_token_does_not_see_is_stored(run: Run, laudo: Shell, service: Service) -> None:
    assert run().exit_code == 0
    changed = {"nome": "Nome Novo", "atualizado_em": "2026-02-01T00:00:00.000Z"}
    other_account = pessoa(0, cpf=cpf(900), nome="Outra Pessoa", atualizado_em="2026-02-01T00:00:00.000Z")
    service.pessoas = [person(5) | changed, other_account, *(each for each in service.pessoas if each != person(5))]
    asked = len(service.requests)
    assert run().stdout.startswith("0 inserted, 4 updated, 301 unchanged, ")  # all four are about that person
    filters = [each.url.params.get("numero_documento") for each in service.requests[asked:]]
    assert filters == [None, None, cpf(5)]
    assert names(laudo) == {cpf(number): f"Pessoa {number}" for number in range(700)} | {cpf(5): "Nome Novo"}
    asked = len(service.requests)
    assert run().stdout.startswith("0 inserted, 0 updated, 301 unchanged, ")
    assert len(service.requests) - asked == 2


@pytest.mark.engines("sqlite", reason="PostgreSQL maintains its index of words by itself")
def test_an_old_name_leaves_no_bytes_in_the_file_after_a_rename(run: Run, laudo: Shell, service: Service) -> None:
    service.relatorios = [relatorio(1, numero_documento=cpf(1))]
    for name in ("Ana Kwyzbrrt", "Ana"):
        service.pessoas = [pessoa(0, cpf=cpf(1), nome=name)]
        assert run("--whole").exit_code == 0
        assert names(laudo) == {cpf(1): name}
        assert (b"kwyzbrrt" in (laudo.folder / "laudo.db").read_bytes().lower()) == (name != "Ana")


def test_a_whole_pull_brings_names_that_were_missing(run: Run, laudo: Shell, service: Service) -> None:
    service.relatorios = [relatorio(number, numero_documento=cpf(number)) for number in (2, 1)]
    service.pessoas = []
    assert run().exit_code == 0
    assert set(names(laudo).values()) == {"Nome não informado"}
    service.pessoas = [pessoa(0, cpf=cpf(number), nome=f"Pessoa {number}") for number in (1, 2)]
    assert run("--whole").exit_code == 0
    assert names(laudo) == {cpf(1): "Pessoa 1", cpf(2): "Pessoa 2"}


@pytest.mark.parametrize("walked", [(), ("--whole",)])
def test_a_person_no_longer_listed_keeps_the_name(
    run: Run, laudo: Shell, service: Service, walked: tuple[str, ...]
) -> None:
    service.relatorios = [relatorio(number, numero_documento=cpf(number)) for number in (2, 1)]
    assert run().exit_code == 0
    service.pessoas = []
    service.relatorios.insert(0, relatorio(3, numero_documento=cpf(2), atualizado_em="2026-03-01T00:00:00.000Z"))
    result = run(*walked)
    assert result.stdout.startswith("1 inserted, 0 updated, ")
    assert "without a name" not in result.stdout
    assert names(laudo) == {cpf(1): "Pessoa 1", cpf(2): "Pessoa 2"}


@pytest.mark.parametrize("answered", [3, 20])
def test_a_new_store_gets_everything_despite_an_existing_state(
    run: Run, laudo: Shell, service: Service, stores: Stores, answered: int
) -> None:
    service.script = [*[None] * answered, refused(500)]
    run()
    service.script = []
    other = stores.new()
    laudo.prints("organization", "create", "Outro", "--store", other)
    with closing(open_store(other, write=True)) as database:
        with database.transaction() as connection:
            connection.run_script("UPDATE migration SET applied_at = applied_at + 1")
        Ingest(database, 1).write([stored(90_000)])
    result = run("--store", other)
    assert result.stdout.startswith("2600 inserted, ")
    assert "everything is read again" in result.stderr


def test_a_store_restored_from_a_backup_gets_its_missing_reports(
    run: Run, laudo: Shell, service: Service, stores: Stores
) -> None:
    assert run().exit_code == 0
    backup = stores.copy(laudo.store)
    for number in range(3):
        new = relatorio(90_000 + number, atualizado_em=f"2026-0{3 + number}-01T00:00:00.000Z")
        service.relatorios.insert(0, new)
        assert run().stdout.startswith("1 inserted, ")
    assert run("--store", backup).stdout.startswith("3 inserted, ")


def test_a_restored_store_that_was_written_to_gets_its_missing_reports(
    run: Run, laudo: Shell, service: Service, stores: Stores
) -> None:
    """The version alone would say that nothing is missing: what others write raises it above the progress."""
    assert run().exit_code == 0
    backup = stores.copy(laudo.store)
    service.relatorios.insert(0, relatorio(90_000, atualizado_em="2026-03-01T00:00:00.000Z"))
    assert run().stdout.startswith("1 inserted, ")
    with closing(open_store(backup, write=True)) as database:
        Ingest(database, 1).write([stored(90_001)])
    service.relatorios.insert(0, relatorio(90_002, atualizado_em="2026-04-01T00:00:00.000Z"))
    assert run("--store", backup).stdout.startswith("2 inserted, ")


def test_what_others_write_does_not_make_a_pull_read_everything(run: Run, laudo: Shell, service: Service) -> None:
    assert run().exit_code == 0
    with closing(open_store(laudo.store, write=True)) as database:
        Ingest(database, 1).write([stored(90_001)])
    service.relatorios.insert(0, relatorio(90_002, atualizado_em="2026-04-01T00:00:00.000Z"))
    assert run().stderr == ""


def test_a_pull_into_an_unknown_account_leaves_no_files(run: Run, laudo: Shell) -> None:
    assert one_line(run("--account", "9")) == "error: there is no account 9; hint: laudo account list"
    assert pulled(laudo) == []


@pytest.mark.engines("sqlite", reason="what is sent does not depend on the store")
def test_a_token_is_not_sent_to_another_service_than_laudo_url(service: Service, laudo: Shell) -> None:
    elsewhere = {"LAUDO_URL": "http://elsewhere.test", "LAUDO_TOKEN": "token-of-elsewhere"}
    folder = {"XDG_CONFIG_HOME": str(laudo.folder)}
    with listening(service) as base:
        words = ("pull", "--from", base, "--account", "1")
        assert one_line(laudo(*words, env=elsewhere | folder)).startswith(
            f"error: there is no token for {base}; hint: "
        )
        assert not service.requests
        assert laudo("login", "--url", base, "--with-token", stdin=TOKEN, env=folder).exit_code == 0
        assert laudo(*words, env=elsewhere | folder).exit_code == 0
        assert laudo(*words, env={"LAUDO_URL": f"{base}/", "LAUDO_TOKEN": TOKEN}).exit_code == 0


@pytest.mark.parametrize(("name", "other"), [("base_url", "http://elsewhere.test"), ("id_conta", 2)])
def test_a_state_of_another_service_or_account_is_refused(
    run: Run, laudo: Shell, service: Service, name: str, other: object
) -> None:
    service.relatorios = []
    run()
    state = laudo.folder / STATE
    known = json.loads(state.read_text()) | {name: other}
    state.write_text(json.dumps(known))
    said = f"belongs to another mirror, of {known['base_url']}; hint: name another --state or --account"
    assert said in one_line(run())


@pytest.mark.parametrize("words", [(), ("--whole",)])
def test_a_state_of_another_token_requires_the_option_token_renewed(
    run: Run, laudo: Shell, service: Service, words: tuple[str, ...]
) -> None:
    service.script = [None, None, None, refused(500)]
    run()
    state = laudo.folder / STATE
    known = json.loads(state.read_text())
    state.write_text(json.dumps(known | {"token": "0" * 64}))
    hint = "give --token-renewed if it sees the same account, else another --state and --account"
    said = f"error: {state} is of another token; hint: {hint}"
    assert one_line(run(*words)) == said
    assert run(*words, "--token-renewed").exit_code == 0
    assert json.loads(state.read_text())["token"] == known["token"]
    assert TOKEN not in state.read_text()


@pytest.mark.parametrize("content", [b"SQLite format 3\0", b'{"base_url": "\xff"}'])
def test_an_invalid_state_file_is_refused_and_unchanged(run: Run, laudo: Shell, content: bytes) -> None:
    (laudo.folder / STATE).write_bytes(content)
    reason = f"{laudo.folder / STATE} is not a file of `laudo pull`; hint: name another --state to start over"
    assert one_line(run()) == f"error: {reason}"
    assert (laudo.folder / STATE).read_bytes() == content


@pytest.mark.engines("sqlite", reason="only a store in a file has a folder for the state")
def test_the_state_is_kept_beside_the_store_by_default(laudo: Shell, service: Service) -> None:
    with listening(service) as base:
        assert laudo("pull", "--from", base, "--account", "1", env={"LAUDO_TOKEN": TOKEN}).exit_code == 0
    assert [path.name for path in laudo.folder.glob("*pull*")] == ["laudo.db.pull-1.json"]


def test_a_missing_token_is_reported(laudo: Shell) -> None:
    result = laudo("pull", "--from", "http://127.0.0.1:9", "--account", "1", env={"XDG_CONFIG_HOME": str(laudo.folder)})
    assert "there is no token for http://127.0.0.1:9" in one_line(result)


def test_a_mirror_of_laudo_gives_the_same_answers(laudo: Shell, store: Store, new_app: NewApp) -> None:
    source = store.account()
    many = [
        stored(n, atualizado_em=1_700_000_000_000 + n, numero_documento=cpf(n % 300), nome_pessoa=f"Ana {n % 300}")
        for n in range(2100)
    ]
    for start in range(0, 2100, 700):
        store.write(source, many[start : start + 700])
    app = new_app()
    with listening(of_app(app)) as base, pulling(laudo, base, source.token) as run:
        assert run().stdout.startswith("2100 inserted")
        store.write(source, [stored(7, atualizado_em=1_800_000_000_000, status="PENDENTE", resultado=None)])
        assert run().stdout.startswith("0 inserted, 1 updated")
    token = laudo.prints("token", "create", "--user", "1").splitlines()[-1].split()[-1]
    mine = open_store(laudo.store)
    from laudo.server import app as application
    from laudo.server.config import Settings
    from wsgi import Client

    ours = Client(
        application.create(Settings(store=laudo.store, key_file=str(laudo.key_file), log=False), database=mine), token
    )
    theirs = Client(app, source.token)
    for url in ("/relatorios?rows=1000&page=2", "/pessoas?rows=500", "/relatorios?status=PENDENTE"):
        assert ours.get(url).body == theirs.get(url).body
    mine.close()
