"""`laudo login|logout`, and the only place that reads or writes which service to ask with which token."""

import hashlib
import json
import os
import stat
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import click

from laudo.cli import files, output, stdin, usage

if TYPE_CHECKING:
    from laudo.client import Laudo

URL: Final = "LAUDO_URL"
TOKEN: Final = "LAUDO_TOKEN"  # noqa: S105 - the name of a variable
_LONGEST_LINE: Final = 4096
"""Characters, more than the client accepts in a token."""
_SCRIPTED: Final = "laudo login --url URL --with-token"
"""How to log in where nobody can be prompted."""
_SAVED_NAMES: Final = ("the base URL that `laudo login` saved", "the token that `laudo login` saved")
_HINT: Final = f"hint: run `laudo login`, or set {URL} and {TOKEN}"


@dataclass(frozen=True, slots=True)
class Access:
    """A service and a token for it."""

    base_url: str
    token: str = field(repr=False)

    def client(self) -> "Laudo":
        from laudo.client import Laudo

        return Laudo(self.base_url, self.token)

    def identity(self) -> dict[str, str]:
        """Give what identifies this access: the base URL, and a hash of the token."""
        return {"base_url": self.base_url, "token": hashlib.sha256(self.token.encode("utf-8", "replace")).hexdigest()}


@click.command(
    cls=usage.Command, epilog=f"Both are checked before they are saved. {URL} and {TOKEN} override what is saved."
)
@click.option("--url", metavar="URL", help="Base URL of the service; without --with-token it may be prompted for.")
@click.option("--with-token", is_flag=True, help="Read the token from stdin instead of prompting for it.")
def login(*, url: str | None, with_token: bool) -> None:
    """Save the address of a service and your token.

    They go to a file that only you can read.
    """
    if with_token and url is None:
        raise click.UsageError("--with-token needs --url", click.get_current_context())
    stream = stdin.opened()
    base_url = stdin.prompt("Base URL", hint=_SCRIPTED) if url is None else url
    token = stream.readline(_LONGEST_LINE).strip() if with_token else stdin.prompt("Token", hidden=True, hint=_SCRIPTED)
    if not token:
        raise output.Failure("there is no token on the first line of standard input")
    access = _checked(Access(base_url.rstrip("/"), token), names=("the base URL", "the token"))
    with access.client() as client:
        organization = client.usuario().nome_organizacao
    _write(access)
    output.summary(f"logged in to {access.base_url}, organization {' '.join(organization.split())}")
    if _is_unencrypted(access.base_url):
        output.note("the token is sent unencrypted, and whoever intercepts it can use it; hint: use https://")
    for name in (URL, TOKEN):
        if os.environ.get(name):
            output.note(f"{name} is set and overrides what is saved")


@click.command(cls=usage.Command)
def logout() -> None:
    """Remove the saved address and token.

    The token itself stays valid until it is revoked.
    """
    path = file()
    try:
        path.unlink()
    except FileNotFoundError:
        output.summary("nothing was saved")
    else:
        output.summary(f"logged out: removed {path}")
    if os.environ.get(TOKEN):
        output.note(f"{TOKEN} is set and is still used")


def access(base_url: str | None = None) -> Access:
    """Give the service and token of the environment, else the saved ones; raises Failure if there are none.

    `base_url`, if given, wins over both. What is saved is read only if it is needed. A saved token is sent only to the
    service that it was saved for, and that of the environment to none but the one that the environment names, if any.
    """
    from laudo.client import calls

    named, token = os.environ.get(URL), os.environ.get(TOKEN)
    url = named if base_url is None else base_url
    if named and url and named.rstrip("/") != url.rstrip("/"):
        token = None
    names = ("--from" if base_url is not None else URL if url else _SAVED_NAMES[0], TOKEN if token else _SAVED_NAMES[1])
    if base_url is not None and not base_url.strip("/"):
        raise output.Failure("--from is empty; hint: give the base URL of a service")
    saved = None if url and token else _read()
    url = (url or (saved.base_url if saved else "")).rstrip("/")
    if not url:
        raise output.Failure(f"there is no service to ask; {_HINT}")
    token = token or (saved.token if saved and saved.base_url == url else "")
    if not token:
        calls.check_address(url, name=names[0])
        raise output.Failure(f"there is no token for {url}; {_HINT}")
    return _checked(Access(url, token), names=names)


def _checked(access: Access, *, names: tuple[str, str]) -> Access:
    """Give it unchanged; raises ParameterError, with these names, if no service can be asked with it."""
    from laudo.client import calls

    calls.check(access.base_url, access.token, names=names)
    return access


def _is_unencrypted(base_url: str) -> bool:
    """Tell whether what is sent there leaves this machine unencrypted."""
    address = urlsplit(base_url)
    host = address.hostname or ""
    try:
        is_local = ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost" or host.endswith(".localhost")
    return address.scheme == "http" and not is_local


def file() -> Path:
    """Give the path of what is saved; raises Failure if there is no home folder."""
    try:
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    except RuntimeError:
        raise output.Failure(f"there is no home folder; hint: set HOME, or {URL} and {TOKEN}") from None
    return folder / "laudo" / "login.json"


def _read() -> Access | None:
    try:
        with file().open(encoding="utf-8") as stream:
            if stat.S_IMODE(os.fstat(stream.fileno()).st_mode) & 0o077:
                raise output.Failure(f"other users can read {file()}; hint: chmod 600 {file()}")
            saved = json.load(stream)
            base_url, token = saved["base_url"], saved["token"]
            if isinstance(base_url, str) and isinstance(token, str):
                return Access(base_url, token)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        pass
    raise output.Failure(f"{file()} is not a file of `laudo login`; hint: run `laudo login`")


def _write(access: Access) -> None:
    path = file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.write_atomically(path, json.dumps({"base_url": access.base_url, "token": access.token}))
