import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from errno import ENOSPC
from pathlib import Path

import pytest

from laudo.server import keys
from laudo.server.keys import KeyFileError


def test_a_key_is_created_once_and_then_kept(tmp_path: Path) -> None:
    file = tmp_path / "laudo.key"
    assert keys.make(file)
    key = keys.load(file)
    assert len(key) == 32
    assert file.read_text() == key.hex() + "\n"
    assert not keys.make(file)
    assert keys.load(file) == key


def test_only_the_owner_can_read_a_key_file_and_no_other_file_remains(tmp_path: Path) -> None:
    file = tmp_path / "laudo.key"
    keys.make(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_full_disk_leaves_no_partial_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "there.key"
    keys.make(there)

    def full(_: int) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeyFileError, match="No space left on device"):
        keys.make(tmp_path / "laudo.key")
    assert not keys.make(there)
    assert list(tmp_path.iterdir()) == [there]


def test_a_key_and_its_folder_entry_are_synced_to_disk_before_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a power cut lost the key, no token hashed with it would ever work again."""
    file = tmp_path / "laudo.key"
    synced: list[tuple[int | None, bool]] = []

    def sync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced.append((status.st_size if stat.S_ISREG(status.st_mode) else None, file.exists()))

    monkeypatch.setattr(os, "fsync", sync)
    assert keys.make(file)
    assert synced == [(len(f"{keys.load(file).hex()}\n"), False), (None, True)]


def test_concurrent_creators_agree_on_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread finds a key before all of them have written one."""
    file, written = tmp_path / "laudo.key", threading.Barrier(8)

    def wait(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            written.wait(60)

    def begin(_: int) -> tuple[bool, bytes]:
        return keys.make(file), keys.load(file)

    monkeypatch.setattr(os, "fsync", wait)
    with ThreadPoolExecutor(8) as pool:
        begun = list(pool.map(begin, range(8)))
    assert sorted(made for made, _ in begun) == [*[False] * 7, True]
    assert {key for _, key in begun} == {keys.load(file)}


def test_loading_does_not_create_a_missing_key(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="does not exist"):
        keys.load(tmp_path / "laudo.key")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    """The hint names the owner, too: with mode 600, nobody else can read the key."""
    file = tmp_path / "laudo.key"
    keys.make(file)
    file.chmod(mode)
    with pytest.raises(KeyFileError, match=r"can be read by others; hint: chmod 600 .*, and give it to the user that"):
        keys.load(file)


@pytest.mark.parametrize(
    ("mode", "owner", "is_taken"),
    [
        (0o440, 0, True),
        (0o640, 0, True),
        (0o660, 0, False),
        (0o444, 0, False),
        (0o440, 10001, False),
        (0o440, 7, False),
    ],
)
def test_a_group_may_read_but_not_write_a_key_owned_by_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, owner: int, *, is_taken: bool
) -> None:
    file = tmp_path / "laudo.key"
    keys.make(file)
    monkeypatch.setattr(os, "geteuid", lambda: 10001)
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result((0o100000 | mode, 0, 0, 1, owner, 10001, 65, 0, 0, 0)))
    with nullcontext() if is_taken else pytest.raises(KeyFileError, match="can be read by others"):
        keys.load(file)


def test_root_refuses_its_own_key_if_its_group_can_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "laudo.key"
    keys.make(file)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result((0o100640, 0, 0, 1, 0, 0, 65, 0, 0, 0)))
    with pytest.raises(KeyFileError, match="can be read by others"):
        keys.load(file)


@pytest.mark.parametrize("content", [b"", b"00" * 31, b"00" * 33, b"zz" * 32, b"00" * 32 + b"\n\n", b"\xff" * 64])
def test_a_malformed_key_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "laudo.key"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(KeyFileError, match="is not 64 hexadecimal digits") as error:
        keys.load(file)
    assert "0000" not in str(error.value).replace(str(file), "")


def test_a_folder_in_place_of_the_key_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match=r"cannot read the key file .*: Is a directory"):
        keys.load(tmp_path)


def test_a_key_file_in_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="cannot create the key file"):
        keys.make(tmp_path / "none" / "laudo.key")


def test_a_key_file_may_be_a_symlink_like_a_mounted_secret(tmp_path: Path) -> None:
    keys.make(tmp_path / "real.key")
    (tmp_path / "laudo.key").symlink_to(tmp_path / "real.key")
    assert not keys.make(tmp_path / "laudo.key")
    assert keys.load(tmp_path / "laudo.key") == keys.load(tmp_path / "real.key")
