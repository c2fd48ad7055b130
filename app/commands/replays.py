"""The command `python -m app replay`: sends chosen deliveries again and shows the progress."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import click

from app import mailbox
from app.commands import command_writes
from app.commands.command_lines import Command, Time, print_json
from app.domain.deliveries import replay_choices, replays
from app.domain.people import workspaces
from app.domain.webhooks import catalogue
from app.domain.work.controlled_batches import MOST_PER_SECOND
from app.errors import Fault, Invalid
from app.lib import ids
from app.models.replays import Replay
from app.outbound.answers import ERROR_CODES

PAUSE_SECONDS = 0.2
SHOWN_EVERY_SECONDS = 1.0


@click.command("replay", cls=Command)
@click.argument("workspace_id", metavar="WORKSPACE")
@click.option("--endpoint", "endpoint_ids", multiple=True, metavar="ENDPOINT_ID", help="Only of these endpoints.")
@click.option(
    "--except-endpoint", "except_endpoint_ids", multiple=True, metavar="ENDPOINT_ID", help="Of all endpoints but these."
)
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(replay_choices.STATUSES),
    help="Only with these statuses; by default failed and held.",
)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(catalogue.EVENT_KINDS)), metavar="KIND")
@click.option("--error-code", "error_codes", multiple=True, type=click.Choice(ERROR_CODES), metavar="CODE")
@click.option("--status-code", "status_codes", multiple=True, type=click.IntRange(100, 599), metavar="CODE")
@click.option("--since", type=Time(), help="Created at this time or later.")
@click.option("--until", type=Time(), help="Created before this time.")
@click.option("--per-second", type=click.IntRange(1, MOST_PER_SECOND), metavar="NUMBER")
@click.option("--canary", is_flag=True, help="Send one, then wait until the replay is continued.")
@click.option("--dry-run", is_flag=True, help="Only count the deliveries that would go out.")
def replay(workspace_id: str, per_second: int | None, canary: bool, dry_run: bool, **given: Any) -> None:
    """Send chosen deliveries of a workspace again; prints the replay as JSON when it ends or waits.

    Options that are given several times choose any of their values. Interrupting the command does not end the replay.
    """
    workspaces.find(workspace_id)
    chosen = {name: _as_json(value) for name, value in given.items() if value}
    if not chosen:
        raise Invalid(Fault("/filter", "give at least one option that chooses deliveries"))
    if dry_run:
        print_json(replays.preview(workspace_id, chosen))
        return
    payload = {"filter": chosen, "per_second": per_second, "canary": canary}
    replay_id = ids.new("rpl")
    command_writes.run(workspace_id, "replays.create", payload, replay_id)
    _follow(replay_id)
    print_json(replays.represent(Replay.find(workspace_id, replay_id)))


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


def _follow(replay_id: str) -> None:
    """Works on the replay, beside any workers, until it ends or waits to be continued."""
    said = 0.0
    while True:
        mailbox.wake_and_ring(replays.WAITING)
        replays.work(replay_id)
        found: Replay = Replay.get_by_id(replay_id)
        waits = found.due_at is None and found.wakes_at is None
        if waits or time.monotonic() > said + SHOWN_EVERY_SECONDS:
            said = time.monotonic()
            click.echo(f"{found.state}: {found.sent:,} sent, {found.skipped:,} skipped of {found.count:,}", err=True)
        if waits:
            return
        if found.due_at is None:
            time.sleep(PAUSE_SECONDS)
