import os
import pty
import re
import socket
import stat
import subprocess
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from laudo.core.sql import Statement
from laudo.server import accounts, keys
from laudo.server.stores import open_store
from laudo.server.tokens import hash_token, presented
from shell import LAUDO, Shell, one_line

ADOPTED = "token-of-another-service"
OPERATING = Path(__file__).parents[2] / "docs" / "operating.md"


def test_only_the_token_is_printed_on_stdout(laudo: Shell) -> None:
    result = laudo("token", "create", "--user", "1")
    assert re.fullmatch(r"laudo_[0-9A-Za-z]{38}\n", result.stdout)
    assert result.stderr.splitlines()[-1] == "token 1 of user 1, never expires"
    assert presented(result.stdout.strip())


def test_the_first_token_creates_a_key_file_for_its_owner_only(laudo: Shell) -> None:
    assert not laudo.key_file.exists()
    made, again = (laudo("token", "create", "--user", "1").stderr for _ in range(2))
    assert stat.S_IMODE(laudo.key_file.stat().st_mode) == 0o600
    assert made.startswith(f"created the key file {laudo.key_file}; keep a copy")
    assert "key file" not in again


def test_an_unknown_user_creates_no_key_file(laudo: Shell) -> None:
    result = laudo("token", "create", "--user", "404")
    assert one_line(result) == "error: there is no user 404; hint: laudo user list"
    assert not laudo.key_file.exists()


def test_creating_a_token_does_not_read_the_others(laudo: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "tokens", pytest.fail)
    for number in (1, 2):
        assert f"token {number} of user 1" in laudo("token", "create", "--user", "1").stderr


def test_a_lost_key_is_not_replaced_while_tokens_depend_on_it(laudo: Shell) -> None:
    laudo.prints("token", "create", "--user", "1")
    laudo.key_file.unlink()
    for words in (["token", "create", "--user", "1"], ["serve"]):
        result = laudo(*words)
        assert result.exit_code == 2
        assert one_line(result) == (
            f"error: the key file {laudo.key_file} does not exist, and no token works without it; "
            "hint: restore it, or name it with --key-file"
        )
    assert not laudo.key_file.exists()


@pytest.mark.engines("sqlite", reason="does not depend on the engine")
def test_the_documented_commands_replace_a_lost_key(laudo: Shell) -> None:
    laudo.prints("token", "create", "--user", "1")
    laudo.key_file.unlink()
    [commands] = re.findall(r"\nIf the key is lost.*?```sh\n(.*?)```", OPERATING.read_text(), re.DOTALL)
    make_key, *others = commands.splitlines()
    subprocess.run(["sh", "-c", make_key], cwd=laudo.folder, check=True)
    *_, token = (laudo.prints(*command.split()[1:]) for command in others)
    assert [item["state"] for item in laudo.lists("token", "list")] == ["revoked", "active"]
    with closing(open_store(laudo.store)) as database:
        [*_, (held,)] = database.fetch(Statement("SELECT hash FROM token ORDER BY id_token"))
    assert held == hash_token(keys.load(laudo.key_file), token)


def test_no_key_is_created_while_the_store_does_not_answer(tmp_path: Path) -> None:
    laudo = Shell(tmp_path, "postgresql://127.0.0.1:9/laudo")
    with socket.create_server(("127.0.0.1", 0)) as taken:  # so that it cannot begin to serve
        result = laudo("serve", "--port", str(taken.getsockname()[1]))
    away, missing = result.stderr.splitlines()
    assert away.startswith("the store does not answer yet: ")
    assert missing.startswith(f"error: the key file {laudo.key_file} does not exist")
    assert (result.exit_code, laudo.key_file.exists()) == (2, False)


def test_the_error_about_a_missing_key_file_names_its_folder(laudo: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    laudo.prints("token", "create", "--user", "1")
    monkeypatch.chdir(laudo.key_file.parent)
    told = one_line(laudo("serve", "--key-file", "other.key"))
    assert told.startswith(f"error: the key file {laudo.key_file.with_name('other.key')} does not exist")


def test_serve_refuses_a_key_file_that_others_can_read(laudo: Shell) -> None:
    laudo.prints("token", "create", "--user", "1")
    laudo.key_file.chmod(0o644)
    result = laudo("serve")
    assert result.exit_code == 2
    assert "hint: chmod 600" in one_line(result)


def test_tokens_are_listed_without_their_text(laudo: Shell) -> None:
    tokens = [laudo.prints("token", "create", "--user", "1") for _ in range(2)]
    shown = laudo.prints("token", "list") + laudo.prints("token", "list", "--json")
    assert not [token for token in tokens if token in shown]
    assert [item["state"] for item in laudo.lists("token", "list", "--user", "1")] == ["active", "active"]
    assert laudo.lists("token", "list", "--user", "2") == []


def test_a_revoked_token_is_listed_as_revoked(laudo: Shell) -> None:
    laudo.prints("token", "create", "--user", "1")
    assert laudo.prints("token", "revoke", "1") == "token 1 is revoked"
    [item] = laudo.lists("token", "list")
    assert item["state"] == "revoked"
    created, revoked = (datetime.fromisoformat(str(item[name])) for name in ("created_at", "revoked_at"))
    assert created <= revoked


@pytest.mark.parametrize("level", ["user", "account", "organization"])
def test_a_token_below_a_disabled_level_is_listed_as_disabled(laudo: Shell, level: str) -> None:
    laudo.prints("token", "create", "--user", "1")
    laudo.prints(level, "disable", "1")
    assert [item["state"] for item in laudo.lists("token", "list")] == ["disabled"]
    laudo.prints(level, "enable", "1")
    assert [item["state"] for item in laudo.lists("token", "list")] == ["active"]


@pytest.mark.parametrize(("text", "hours"), [("12h", 12), ("90d", 90 * 24), ("52w", 52 * 7 * 24)])
def test_a_token_can_expire_after_a_duration(laudo: Shell, text: str, hours: int) -> None:
    laudo.prints("token", "create", "--user", "1", "--expires-in", text)
    [item] = laudo.lists("token", "list")
    begin, end = (datetime.fromisoformat(str(item[name])) for name in ("created_at", "expires_at"))
    assert end - begin == timedelta(hours=hours)


def test_a_token_can_expire_at_an_instant(laudo: Shell) -> None:
    laudo.prints("token", "create", "--user", "1", "--expires-at", "2999-01-31T12:00:00-03:00")
    assert [item["expires_at"] for item in laudo.lists("token", "list")] == ["2999-01-31T15:00:00.000Z"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--expires-in", "90"], "such as 12h, 90d or 52w"),
        (["--expires-in", "0d"], "such as 12h, 90d or 52w"),
        (["--expires-in", "999999w"], "such as 12h, 90d or 52w"),
        (["--expires-in", "-1d"], "such as 12h, 90d or 52w"),
        (["--expires-at", "tomorrow"], "must be an instant such as 2027-01-31T12:00:00Z"),
        (["--expires-at", "2027-01-31"], "must be an instant such as 2027-01-31T12:00:00Z"),
        (["--expires-at", "2001-01-31T12:00:00Z"], "already have expired"),
        (["--expires-in", "1d", "--expires-at", "2999-01-31T12:00:00Z"], "not both"),
    ],
)
def test_an_invalid_expiry_creates_no_token(laudo: Shell, words: list[str], reason: str) -> None:
    result = laudo("token", "create", "--user", "1", *words)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert laudo.lists("token", "list") == []


def test_a_token_of_another_service_is_read_from_stdin_and_not_printed(laudo: Shell) -> None:
    result = laudo("token", "create", "--user", "1", "--from-stdin", stdin=f"{ADOPTED}\n")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert ADOPTED not in result.stderr
    assert [item["state"] for item in laudo.lists("token", "list")] == ["active"]


@pytest.mark.engines("sqlite", reason="does not depend on the engine")
def test_a_typed_token_is_not_shown_on_the_terminal(laudo: Shell) -> None:
    ours, theirs = pty.openpty()
    command = [LAUDO, "token", "create", "--user", "1", "--from-stdin"]
    environ, shown = laudo.environment, b""
    with subprocess.Popen(command, env=environ, stdin=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        while not shown.endswith(b"Token: "):
            shown += os.read(ours, 1000)
        os.write(ours, f"{ADOPTED}\n".encode())
        with suppress(OSError):  # Linux raises it once the other end is closed
            while more := os.read(ours, 1000):
                shown += more
    os.close(ours)
    assert process.returncode == 0
    assert b"token 1 of user 1, never expires" in shown
    assert ADOPTED.encode() not in shown


@pytest.mark.parametrize(
    "stdin",
    ["", "short", "x" * 201, "x" * 5000, "two words of a token", "a,comma,in,a,token", "laudo_" + "0" * 38, "ã" * 20],
)
def test_an_unusable_token_is_refused_and_not_printed(laudo: Shell, stdin: str) -> None:
    result = laudo("token", "create", "--user", "1", "--from-stdin", stdin=stdin)
    assert result.exit_code == 2
    line = one_line(result)
    assert line.startswith(("error: a token must have 16 to 200 ", "error: the token begins with laudo_"))
    assert not stdin or stdin not in line
    assert laudo.lists("token", "list") == []


def test_an_existing_token_is_refused(laudo: Shell) -> None:
    laudo.prints("token", "create", "--user", "1", "--from-stdin", stdin=ADOPTED)
    result = laudo("token", "create", "--user", "1", "--from-stdin", stdin=ADOPTED)
    assert result.exit_code == 2
    assert "already has this token" in one_line(result)


@pytest.fixture
def tokens(laudo: Shell) -> tuple[str, str]:
    """A token of our own, and an adopted token of another service."""
    token = laudo.prints("token", "create", "--user", "1")
    laudo.prints("token", "create", "--user", "1", "--from-stdin", stdin=ADOPTED)
    return token, ADOPTED


def test_the_store_holds_no_token(laudo: Shell, tokens: tuple[str, str]) -> None:
    with closing(open_store(laudo.store)) as database:
        held = repr([database.fetch(Statement(f"SELECT * FROM {table}")) for table in ("token", "usuario", "conta")])
    assert held.count("ana@example.com") == 1
    assert not [token for token in tokens if token in held]


@pytest.mark.engines("sqlite", reason="the test cannot read the files of a server")
def test_no_file_beside_the_store_holds_a_token(laudo: Shell, tokens: tuple[str, str]) -> None:
    held = b"".join(path.read_bytes() for path in laudo.folder.iterdir())
    assert not [token for token in tokens if token.encode() in held]
