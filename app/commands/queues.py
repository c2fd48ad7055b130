"""The command `python -m app queues`: what waits in each queue, and which processes serve it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import click
import redis

from app import presence
from app.commands.command_lines import Command, as_json, print_list
from app.domain.insight import mail_states
from app.domain.insight.mail_states import State


@click.command(cls=Command)
@as_json
def queues(*, as_json: bool) -> None:
    """Show what waits in each queue, for how long, and how many processes serve it.

    \b
    DUE      may be worked on now
    OLDEST   for how many seconds the first of these has waited for a worker
    CLAIMED  of these, those that a worker has
    SUSPECT  of these, those whose worker has died or hangs; others take them up
             within seconds, and what kills three workers fails
    LATER    not due yet: retries, runs that wait, scheduled messages

    Counting ends at 10,001, which stands for any number above 10,000.

    Nothing hangs while OLDEST is small. If it grows and RUNNING is 0, start a process of that type; if they run, look
    into their logs, then start more. Messages of a channel that is not connected are due, and wait for that.
    """
    try:
        running: Mapping[str, int] | None = Counter(each.type for each in presence.processes())
    except redis.RedisError as error:
        click.echo(f"bellhop: who runs is not known, as Redis does not respond: {error}", err=True)
        running = None
    print_list("queues", [_row(state, running) for state in mail_states.look()], as_json=as_json)


def _row(state: State, running: Mapping[str, int] | None) -> dict[str, Any]:
    return {
        "queue": state.queue,
        **{name: getattr(state, name) for name in ("due", "claimed", "suspect", "later")},
        "oldest": round(state.oldest_seconds, 1),
        "served_by": state.served_by,
        "running": None if running is None else running.get(state.served_by, 0),
    }
