"""The commands `python -m app member …`: the people who sign in."""

from __future__ import annotations

import click

from app.commands.command_lines import Commands, password, print_json
from app.domain.assignment import member_changes
from app.domain.people import accounts, links, members, workspaces
from app.domain.people.roles import ROLES
from app.errors import NotFound


@click.group(cls=Commands)
def member() -> None:
    """Members: the people who sign in."""


@member.command("create")
@click.argument("workspace_id", metavar="WORKSPACE")
@click.argument("email")
@click.option("--role", type=click.Choice(ROLES), required=True)
@click.option("--support", is_flag=True, help="Staff, who act in every workspace on visits. See also: support create.")
def create_member(workspace_id: str, email: str, role: str, support: bool) -> None:
    """Create a member. The password is read from standard input or a prompt.

    Somebody who has an account gets the new password, and their sessions end. With --support the membership gives no
    rights, as staff act in every workspace on visits; `support create` makes an account of staff without one.
    """
    workspaces.find(workspace_id)
    made, account = members.create(workspace_id, email, password(), role, support)
    print_json({"id": made.id, "email": account.email, "role": made.role, "support": account.is_support})


@member.command("invite")
@click.argument("workspace_id", metavar="WORKSPACE")
@click.argument("email")
@click.option("--role", type=click.Choice(ROLES), required=True)
def invite_member(workspace_id: str, email: str, role: str) -> None:
    """Print a link for joining the workspace, valid for 7 days.

    Somebody without a password sets one with the link.
    """
    workspaces.find(workspace_id)
    click.echo(links.invite(workspace_id, email, role).address)


@member.command("reset")
@click.argument("email")
def reset_password(email: str) -> None:
    """Print a link that sets somebody's password, once and within an hour."""
    if (account := accounts.find(email)) is None:
        raise NotFound(f"There is no account {email}.")
    click.echo(links.reset(account).address)


@member.command("list")
@click.argument("workspace_id", metavar="WORKSPACE")
def list_members(workspace_id: str) -> None:
    """Print the workspace's members as JSON, oldest first."""
    workspaces.find(workspace_id)
    shown = [
        {
            "id": each.member_id,
            "email": each.email,
            "role": each.role,
            "support": each.is_support,
            "has_password": each.has_password,
            "created_at": each.created_at,
        }
        for each in members.of_workspace(workspace_id)
    ]
    print_json({"members": shown})


@member.command("remove")
@click.argument("workspace_id", metavar="WORKSPACE")
@click.argument("member_id", metavar="MEMBER_ID")
def remove_member(workspace_id: str, member_id: str) -> None:
    """Remove a member by their identifier (mem_…). They have no access from then on."""
    workspaces.find(workspace_id)
    member_changes.remove(workspace_id, member_id, actor_id=None)
    print_json({"id": member_id, "removed": True})
