"""The key under which tokens are hashed, in a file that only its owner may read."""

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

_KEY_BYTES: Final = 32
_ROOT: Final = 0
_FORBIDDEN_BITS: Final = 0o077
_FORBIDDEN_BITS_OF_ROOT: Final = 0o037
"""For a file that root owns: its group may read it, but not change it. Kubernetes provides secrets in this way."""
_NO_KEY: Final = "no token works without it; hint: restore it, or name it with --key-file"


class KeyFileError(Exception):
    """A key file cannot be used; the text says what to do, and never shows the key."""


def load(path: str | Path) -> bytes:
    """Read the key (32 bytes) under which tokens are hashed.

    Raises KeyFileError if the file is missing, malformed or readable by others; root's file may be read by its group.
    """
    file = Path(path).absolute()
    try:
        with file.open("rb") as stream:
            status, text = os.fstat(stream.fileno()), stream.read(1024)
    except FileNotFoundError:
        raise KeyFileError(f"the key file {file} does not exist, and {_NO_KEY}") from None
    except OSError as error:
        raise KeyFileError(f"cannot read the key file {file}: {error.strerror}") from error
    is_from_root = status.st_uid == _ROOT != os.geteuid()
    if status.st_mode & (_FORBIDDEN_BITS_OF_ROOT if is_from_root else _FORBIDDEN_BITS):
        hint = f"chmod 600 {file}, and give it to the user that runs laudo"
        raise KeyFileError(f"the key file {file} can be read by others; hint: {hint}")
    if not re.fullmatch(rb"[0-9a-f]{64}\n?", text):
        raise KeyFileError(
            f"the key file {file} is not 64 hexadecimal digits; hint: restore it, no token works without it"
        )
    return bytes.fromhex(text.decode())


def make(path: str | Path) -> bool:
    """Make a missing key file, whole or not at all; tells whether it made one.

    If two processes do so at the same time, the first one's key stays. Raises KeyFileError.
    """
    file = Path(path).absolute()
    if file.exists():
        return False
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(secrets.token_hex(_KEY_BYTES) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        return _publish(temporary, file)
    except OSError as error:
        raise KeyFileError(f"cannot create the key file {file}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _publish(temporary: Path, file: Path) -> bool:
    try:
        file.hardlink_to(temporary)
    except FileExistsError:
        return False
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True
