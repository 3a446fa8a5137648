"""`laudo token`: makes, lists and revokes tokens; each is printed once, alone on stdout, and never read from argv."""

import re
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from laudo.cli import options, output, stdin, usage
from laudo.cli.options import as_json, id_option, opened, with_settings
from laudo.cli.ranges import Id, Instant
from laudo.server.config import Settings

if TYPE_CHECKING:
    from laudo.server.accounts import Token

_HOUR_MS: Final = 3_600_000
_UNITS: Final = {"h": _HOUR_MS, "d": 24 * _HOUR_MS, "w": 7 * 24 * _HOUR_MS}
_LONGEST_INPUT: Final = 4096


@click.group(cls=usage.Group)
def token() -> None:
    """Manage tokens of users.

    A client sends a token in the header Authorization. A user can have several tokens.
    """


@token.command("create", epilog="The token is shown only once: the store keeps only its keyed hash.")
@id_option("user", "id_usuario", "Id of the user that the token belongs to.")
@click.option("--expires-in", metavar="TIME", help="Let it expire after hours, days or weeks: 12h, 90d, 52w.")
@click.option("--expires-at", metavar="INSTANT", type=Instant(), help="Let it expire then: 2027-01-31T12:00:00Z.")
@click.option(
    "--from-stdin", is_flag=True, help="Read an existing token from stdin instead, so that a client can keep it."
)
@with_settings("store", "key_file")
def create(
    settings: Settings, *, id_usuario: int, expires_in: str | None, expires_at: int | None, from_stdin: bool
) -> None:
    """Create a token and print it, alone on stdout."""
    from laudo.server import accounts
    from laudo.server.tokens import hash_token, new_token

    now_ms = _now_ms()
    expiry = _expiry(now_ms, expires_in, expires_at)
    with opened(settings, write=True) as database:
        with database.snapshot() as connection:
            accounts.owner_of(connection, id_usuario)
            is_first = not accounts.has_tokens(connection)
        text = _read_token() if from_stdin else new_token()
        key = options.key(settings, create=is_first)
        with database.transaction() as connection:
            token_hash = hash_token(key, text)
            made = accounts.create_token(connection, id_usuario, token_hash, now_ms=now_ms, expires_at=expiry)
            if not from_stdin:
                _print_token(text)
    output.note(f"token {made.id_token} of user {made.id_usuario}, {_expiry_text(expiry)}")


@token.command("list")
@id_option("user", "id_usuario", "List only the tokens of this user.", required=False)
@as_json
@with_settings("store")
def show(settings: Settings, *, id_usuario: int | None, json_: bool) -> None:
    """List all tokens.

    Shows when each was created, when it expires and whether it works; never its text.
    """
    from laudo.server import accounts

    with opened(settings) as database, database.snapshot() as connection:
        tokens, disabled = accounts.tokens(connection), accounts.disabled(connection)
    now_ms = _now_ms()
    shown = [one for one in tokens if id_usuario in (None, one.id_usuario)]
    output.listing([_item(one, now_ms, disabled=one.id_usuario in disabled) for one in shown], as_json=json_)


@token.command("revoke")
@click.argument("id_token", metavar="ID", type=Id("token"))
@with_settings("store")
def revoke(settings: Settings, *, id_token: int) -> None:
    """Revoke a token for good, from the next request on."""
    from laudo.server import accounts

    with opened(settings, write=True) as database, database.transaction() as connection:
        accounts.revoke_token(connection, id_token, now_ms=_now_ms())
    output.summary(f"token {id_token} is revoked")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _expiry(now_ms: int, expires_in: str | None, expires_at: int | None) -> int | None:
    if expires_in is not None and expires_at is not None:
        raise output.Failure("give --expires-in or --expires-at, not both")
    if expires_in is not None:
        found = re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", expires_in)
        if not found:
            raise output.Failure("--expires-in must be a number of hours, days or weeks such as 12h, 90d or 52w")
        return now_ms + int(found[1]) * _UNITS[found[2]]
    return expires_at


def _print_token(text: str) -> None:
    """Print a token before it is stored: one that works but that nobody has is worse than one that does not work."""
    if problem := output.try_print(text):
        raise output.Failure(f"no token was created, since it could not be printed: {problem}")


def _read_token() -> str:
    """Read a token from stdin; a terminal does not show what is typed."""
    from laudo.server.tokens import adopted_token

    stream = stdin.opened()
    if stream.isatty():
        return adopted_token(stdin.prompt("Token", hidden=True, hint="pipe it in"))
    return adopted_token(stream.buffer.read(_LONGEST_INPUT).decode("ascii", "replace"))


def _expiry_text(expiry: int | None) -> str:
    from laudo.core.values import render_instant

    return "never expires" if expiry is None else f"expires {render_instant(expiry)}"


def _item(one: "Token", now_ms: int, *, disabled: bool) -> output.Item:
    from laudo.core.values import render_instant

    instants = ("created_at", "expires_at", "revoked_at")
    item = asdict(one)
    shown = {name: item[name] and render_instant(item[name]) for name in instants}
    return item | shown | {"state": one.state(now_ms, disabled=disabled)}
