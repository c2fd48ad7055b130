"""The commands `python -m app support …`: the accounts of support staff."""

from __future__ import annotations

import click

from app.commands.command_lines import Commands, password, print_json
from app.domain.people import support_accounts


@click.group(cls=Commands)
def support() -> None:
    """Support accounts: staff, who belong to no workspace and act in each of them on visits."""


@support.command("create")
@click.argument("email")
def create(email: str) -> None:
    """Create a support account. The password is read from standard input or a prompt."""
    account = support_accounts.create(email, password())
    print_json({"id": account.id, "email": account.email, "support": True})


@support.command("list")
def list_accounts() -> None:
    """Print the support accounts as JSON, oldest first, including disabled ones."""
    names = ("id", "email", "disabled_at", "seen_at", "member_of", "created_at")
    accounts = support_accounts.of_installation()
    print_json({"accounts": [{name: getattr(each, name) for name in names} for each in accounts]})


@support.command("reset")
@click.argument("email")
def reset(email: str) -> None:
    """Print a link that sets the account's password, once and within an hour."""
    click.echo(support_accounts.reset(email))


@support.command("disable")
@click.argument("email")
def disable(email: str) -> None:
    """End the account's sessions and visits at once, and let it sign in no more until it is enabled."""
    account = support_accounts.disable(email)
    print_json({"id": account.id, "email": account.email, "disabled": True})


@support.command("enable")
@click.argument("email")
def enable(email: str) -> None:
    """Let a disabled account sign in again.

    Prints a link that sets its password, once and within an hour.
    """
    click.echo(support_accounts.enable(email))


@support.command("remove")
@click.argument("email")
def remove(email: str) -> None:
    """Turn the account into an ordinary one. Ends its sessions and visits.

    It keeps its memberships, and is no longer staff.
    """
    account = support_accounts.remove(email)
    print_json({"id": account.id, "email": account.email, "support": False})
