"""`python -m app`: all groups, and the commands for workspaces, tokens, endpoints and secrets."""

from __future__ import annotations

import signal
import sys

import click

from app import config, database, migrations
from app.commands import command_lines, command_writes, noun_commands
from app.commands.arrivals import arrivals_group
from app.commands.audit_log import audit_group
from app.commands.command_lines import Commands, print_json
from app.commands.health import health
from app.commands.members import member
from app.commands.open_failures import failures
from app.commands.queues import queues
from app.commands.replays import replay
from app.commands.support import support
from app.config import settings
from app.domain.billing import plans
from app.domain.insight import checks
from app.domain.people import tokens, workspaces
from app.domain.webhooks import catalogue, endpoints
from app.domain.work import secrets
from app.errors import Fault, Invalid, SettingsError
from app.lib import addresses, ids, versions
from app.lib.nearest_names import meant
from app.models.endpoints import Endpoint

LONGEST_LIFE_SECONDS = 100 * 365 * 24 * 3600


@click.group(cls=Commands)
@click.version_option(versions.running(), prog_name="Bellhop", message="%(prog)s %(version)s")
def main() -> None:
    """Operate Bellhop. docs/settings.md describes the settings."""


_OTHERS = (member, support, audit_group, replay, failures, arrivals_group, health, queues)
for command in (*_OTHERS, *noun_commands.groups()):
    main.add_command(command)


@main.group()
def db() -> None:
    """The database."""


@db.command()
@click.option("--release", "is_release", is_flag=True, help="As the Procfile's release: stay, under honcho and nf.")
def upgrade(is_release: bool) -> None:
    """Run the pending migrations. Safe to repeat, and from several machines at once."""
    for name in migrations.upgrade():
        click.echo(f"ran {name}")
    click.echo("The database is up to date.")
    if is_release and (manager := config.manager()):
        _stay(manager)


def _stay(manager: str) -> None:
    """Waits for SIGTERM or SIGINT, without a database connection."""
    ends = {signal.SIGTERM, signal.SIGINT}
    click.echo(f"This process waits now, as {manager} ends everything when one ends.")
    database.database.close()
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    signal.sigwait(ends)


@main.group()
def workspace() -> None:
    """Workspaces."""


@workspace.command("create")
@click.argument("name", callback=command_lines.name)
def create_workspace(name: str) -> None:
    """Create a workspace and an unrestricted token; prints both as JSON."""
    made, token = workspaces.create(name)
    print_json({"workspace": {"id": made.id, "name": made.name}, "token": token})


@workspace.command("plan")
@click.argument("workspace_id", metavar="WORKSPACE")
@click.argument("plan", type=click.Choice(list(plans.PLANS)))
@click.option("--now", "at_once", is_flag=True, help="Apply it to the whole current month, too.")
def change_plan(workspace_id: str, plan: str, at_once: bool) -> None:
    """Change a workspace's plan from the next month on; prints it as JSON."""
    workspaces.find(workspace_id)
    since = plans.change(workspace_id, plan, at_once=at_once)
    print_json({"workspace": workspace_id, "plan": plan, "since": since.starts_at})


@main.group()
def token() -> None:
    """API tokens."""


@token.command("create")
@click.argument("workspace_id", metavar="WORKSPACE")
@click.argument("further", nargs=-1, type=click.Choice(tokens.RESTRICTIONS), metavar="")
@click.option(
    "--restrict", multiple=True, type=click.Choice(tokens.RESTRICTIONS), help="Limit it to one or more of these."
)
@click.option("--expires-in", type=click.IntRange(1, LONGEST_LIFE_SECONDS), metavar="SECONDS")
@click.option("--name", default="Made on the command line", callback=command_lines.name)
def create_token(
    workspace_id: str, further: tuple[str, ...], restrict: tuple[str, ...], expires_in: int | None, name: str
) -> None:
    """Create a token; prints it as JSON. It cannot be shown again."""
    if further and not restrict:
        raise click.UsageError(f"'{further[0]}' is a restriction: put --restrict before it.")
    workspaces.find(workspace_id)
    token_id, made = tokens.issue(workspace_id, name, (*restrict, *further) or None, expires_in)
    print_json({"id": token_id, "token": made})


@token.command("list")
@click.argument("workspace_id", metavar="WORKSPACE")
def list_tokens(workspace_id: str) -> None:
    """Print the workspace's tokens as JSON, oldest first, including expired and revoked ones."""
    workspaces.find(workspace_id)
    print_json({"tokens": tokens.of_workspace(workspace_id)})


@token.command("revoke")
@click.argument("token_id", metavar="TOKEN_ID")
def revoke_token(token_id: str) -> None:
    """Revoke a token by its identifier (tok_…)."""
    tokens.revoke(token_id)
    print_json({"id": token_id, "revoked": True})


@main.group()
def endpoint() -> None:
    """Webhook endpoints."""


@endpoint.command("create")
@click.argument("workspace_id", metavar="WORKSPACE")
@click.argument("address")
@click.option("--events", required=True, metavar="KIND,…", help="Event kinds, separated by commas; '*' for all.")
@click.option(
    "--max-per-second",
    type=click.IntRange(1, endpoints.MOST_PER_SECOND),
    metavar="NUMBER",
    help="The most deliveries in a second; by default there is no limit.",
)
@click.option("--ordered", is_flag=True, help="One delivery at a time, in the order of events.")
def create_endpoint(workspace_id: str, address: str, events: str, max_per_second: int | None, ordered: bool) -> None:
    """Create a webhook endpoint; prints it and its secret as JSON. The secret cannot be shown again."""
    workspaces.find(workspace_id)
    kinds = [kind.strip() for kind in events.split(",")]
    if why := addresses.check_address(address, settings().webhook_allowed_networks):
        raise Invalid(Fault("/address", why))
    for kind in kinds:
        if kind != "*" and kind not in catalogue.EVENT_KINDS:
            raise Invalid(Fault("/events", f"there is no event kind '{kind}'.{meant(kind, catalogue.EVENT_KINDS)}"))
    secret, endpoint_id = endpoints.new_secret(), ids.new("whe")
    payload = {
        "address": address,
        "events": kinds,
        "max_per_second": max_per_second,
        "ordered": ordered,
        "sealed_secret": endpoints.seal(secret),
    }
    command_writes.run(workspace_id, "endpoints.create", payload, endpoint_id)
    made = endpoints.represent(Endpoint.find(workspace_id, endpoint_id))
    print_json({"endpoint": made, "secret": secret})


@main.group("secrets")
def stored_secrets() -> None:
    """Secrets that are encrypted with SECRET_KEY."""


@stored_secrets.command("reencrypt")
def reencrypt_secrets() -> None:
    """Encrypt all stored secrets with the newest key of SECRET_KEY.

    Safe to repeat, and while the service runs.
    """
    found = secrets.reencrypt()
    print_json({"reencrypted": found.reencrypted, "already": found.already, "unreadable": found.unreadable})
    if number := len(found.unreadable):
        raise SettingsError(f"no key in SECRET_KEY decrypts {number} of the stored secrets")


@main.command(cls=click.Command)
def check() -> None:
    """Check settings, servers, migrations, secrets and processes.

    Prints a line for each, and exits with 1 if one is wrong.
    """
    if not _report("settings"):
        sys.exit(1)  # the other checks need them
    results = [_report(name) for name in checks.CHECKS]
    sys.exit(0 if all(results) else 1)


def _report(name: str) -> bool:
    result = checks.look(name)
    click.echo(f"{'ok   ' if result.is_good else 'WRONG'}  {name}: {result.text}")
    return result.is_good
