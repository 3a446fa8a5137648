"""`laudo organization|account|user`: manages who may ask, level by level."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Final

import click

from laudo.cli import output, usage
from laudo.cli.options import Command, as_json, id_option, opened, with_settings
from laudo.cli.ranges import Id
from laudo.server.config import Settings

_webhook: Final = click.option("--webhook-url", default="", help="Shown by /usuario; laudo never sends anything there.")


@click.group(cls=usage.Group)
def organization() -> None:
    """Manage organizations.

    An organization sees the people that its accounts have consulted.
    """


@organization.command("create")
@click.argument("name")
@_webhook
@as_json
@with_settings("store")
def create_organization(settings: Settings, *, name: str, webhook_url: str, json_: bool) -> None:
    """Create an organization and its first account, "principal"."""
    from laudo.server import accounts

    with opened(settings, write=True) as database, database.transaction() as connection:
        made, first = accounts.create_organizacao(connection, name, webhook_url=webhook_url)
    text = f"organization {made.id_organizacao}, with account {first.id_conta} ({first.nome_conta})"
    output.answer(asdict(made) | {"id_conta": first.id_conta}, text, as_json=json_)


@click.group(cls=usage.Group)
def account() -> None:
    """Manage accounts of organizations.

    An account sees only its own reports.
    """


@account.command("create")
@click.argument("name")
@id_option("organization", "id_organizacao", "Id of the organization that the account belongs to.")
@_webhook
@as_json
@with_settings("store")
def create_account(settings: Settings, *, name: str, id_organizacao: int, webhook_url: str, json_: bool) -> None:
    """Create another account in an organization."""
    from laudo.server import accounts

    with opened(settings, write=True) as database, database.transaction() as connection:
        made = accounts.create_conta(connection, id_organizacao, name, webhook_url=webhook_url)
    text = f"account {made.id_conta} of organization {made.id_organizacao}"
    output.answer(asdict(made), text, as_json=json_)


@click.group(cls=usage.Group)
def user() -> None:
    """Manage users of accounts.

    A user belongs to one account and holds tokens for it.
    """


@user.command("create")
@id_option("account", "id_conta", "Id of the account that the user belongs to.")
@click.option("--email", required=True, help="Shown by /usuario.")
@click.option("--name", required=True, help="Shown by /usuario.")
@as_json
@with_settings("store")
def create_user(settings: Settings, *, id_conta: int, email: str, name: str, json_: bool) -> None:
    """Create a user in an account."""
    from laudo.server import accounts

    with opened(settings, write=True) as database, database.transaction() as connection:
        made = accounts.create_usuario(connection, id_conta, email=email, nome=name)
    output.answer(asdict(made), f"user {made.id_usuario} of account {made.id_conta}", as_json=json_)


def _add_commands(group: click.Group, lister: str, texts: Mapping[str, str]) -> None:
    """Add `list`, `update`, `disable` and `enable`, the same at each level.

    `lister` names the function that lists; `texts` are the options of `update`, each with the column that it changes.
    """
    noun = str(group.name)

    @group.command("list", help=f"List all {noun}s.")
    @as_json
    @with_settings("store")
    def show(settings: Settings, *, json_: bool) -> None:
        from laudo.server import accounts

        with opened(settings) as database, database.snapshot() as connection:
            output.listing([asdict(one) for one in getattr(accounts, lister)(connection)], as_json=json_)

    @group.command("update", help=f"Change what is kept of this {noun}, from the next request on.")
    @click.argument("number", metavar="ID", type=Id(noun))
    @_options(texts)
    @with_settings("store")
    def update(settings: Settings, *, number: int, **given: str | None) -> None:
        from laudo.server import accounts

        changes = {column: text for column, text in given.items() if text is not None}
        if not changes:
            raise click.UsageError(f"nothing to change without {' or '.join(texts)}", click.get_current_context())
        with opened(settings, write=True) as database, database.transaction() as connection:
            accounts.update(connection, accounts.Level[noun.upper()], number, **changes)
        output.summary(f"{noun} {number} is updated")

    @group.command("disable", help=f"Refuse all tokens of this {noun}, from the next request on.")
    @click.argument("number", metavar="ID", type=Id(noun))
    @with_settings("store")
    def disable(settings: Settings, *, number: int) -> None:
        _set_enabled(settings, noun, number, enabled=False)

    @group.command("enable", help=f"Let the tokens of this {noun} work again.")
    @click.argument("number", metavar="ID", type=Id(noun))
    @with_settings("store")
    def enable(settings: Settings, *, number: int) -> None:
        _set_enabled(settings, noun, number, enabled=True)


def _set_enabled(settings: Settings, noun: str, number: int, *, enabled: bool) -> None:
    from laudo.server import accounts

    with opened(settings, write=True) as database, database.transaction() as connection:
        accounts.set_enabled(connection, accounts.Level[noun.upper()], number, enabled=enabled)
    output.summary(f"{noun} {number} is {'enabled' if enabled else 'disabled'}")


def _options(texts: Mapping[str, str]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option, column in reversed([*texts.items()]):
            command = click.option(option, column, help=_ABOUT[option])(command)
        return command

    return decorate


_ABOUT: Final = {
    "--name": "New name.",
    "--email": "New address, shown by /usuario.",
    "--webhook-url": 'New address, shown by /usuario; "" for none.',
}

_add_commands(organization, "organizacoes", {"--name": "nome_organizacao"})
_add_commands(account, "contas", {"--name": "nome_conta", "--webhook-url": "webhook_url"})
_add_commands(user, "usuarios", {"--name": "nome_usuario", "--email": "email"})
