"""The command `python -m app queues`: what waits in each queue, and which processes serve it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import click
import redis

from app import process_registry
from app.commands.command_lines import Command, as_json, print_list
from app.domain.insight.queues import State, states


@click.command(cls=Command)
@as_json
def queues(*, as_json: bool) -> None:
    """Show how much mail each queue has, how long it has waited, and how many processes serve it.

    \b
    DUE      may be claimed, or is claimed
    OLDEST   seconds for which the oldest unclaimed mail has waited for a worker
    CLAIMED  part of DUE: a worker has it
    SUSPECT  part of DUE: its worker died or hangs; another one takes over within
             seconds, and mail that kills three workers fails
    LATER    not due yet: retries, runs that wait, scheduled messages

    A count of 10,001 means more than 10,000.

    While OLDEST stays small, nothing hangs. If it grows, look at RUNNING, the number of processes of the type
    SERVED_BY. If it is 0, start one; otherwise read their logs, then start more. Messages stay due while their channel
    is not connected.
    """
    try:
        running: Mapping[str, int] | None = Counter(each.type for each in process_registry.processes())
    except redis.RedisError as error:
        click.echo(f"bellhop: who runs is not known, as Redis does not respond: {error}", err=True)
        running = None
    print_list("queues", [_row(state, running) for state in states()], as_json=as_json)


def _row(state: State, running: Mapping[str, int] | None) -> dict[str, Any]:
    return {
        "queue": state.queue,
        **{name: getattr(state, name) for name in ("due", "claimed", "suspect", "later")},
        "oldest": round(state.oldest_seconds, 1),
        "served_by": state.served_by,
        "running": None if running is None else running.get(state.served_by, 0),
    }
