"""The command `python -m app failures`: counts, replays or discards a workspace's failed jobs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from app.commands import command_writes
from app.commands.command_lines import Command, print_json
from app.domain.bodies.jobs import LONGEST_REASON
from app.domain.jobs import failed_jobs, parts
from app.domain.people import workspaces
from app.domain.verbs import VERBS
from app.problems import PROBLEMS

# The value of --exception for jobs that failed without an exception, as on the page.
NONE = "none"


@click.command("failures", cls=Command)
@click.argument("workspace_id", metavar="WORKSPACE")
@click.option("--kind", type=click.Choice(list(VERBS)), metavar="KIND", help="Only of this kind.")
@click.option("--problem", type=click.Choice(list(PROBLEMS)), metavar="SLUG", help="Only with this problem.")
@click.option("--exception", metavar="TYPE", help=f"Only broken by this exception; {NONE}: by none.")
@click.option("--replay", "replays", is_flag=True, help="Replay those that can be replayed.")
@click.option("--discard", "reason", metavar="REASON", help="Discard them all, for this reason.")
def failures(workspace_id: str, replays: bool, reason: str | None, **filters: str | None) -> None:
    """Count a workspace's failed jobs that were neither replayed nor discarded, by cause.

    With --replay or --discard, do that to what was counted, and print how many were done.
    """
    if replays and reason is not None:
        raise click.UsageError("Give --replay or --discard.")
    if reason is not None and not 1 <= len(reason.strip()) <= LONGEST_REASON:
        raise click.UsageError(f"A reason has 1 to {LONGEST_REASON} characters.")
    workspaces.find(workspace_id)
    chosen = {name: "" if value == NONE else value for name, value in filters.items() if value is not None}
    found = failed_jobs.preview(workspace_id, chosen, list(VERBS))
    if not replays and reason is None:
        causes = [asdict(cause) for cause in found.causes]
        print_json({"count": found.count, "replayable": found.replayable, "causes": causes})
    elif found.until is None:
        print_json({"count": 0, "done": 0})
    else:
        kind = "jobs.replay_many" if replays else "jobs.discard_many"
        given = {"reason": reason.strip()} if reason is not None else {}
        _settle(workspace_id, kind, {**given, "filter": chosen, "until": found.until})


def _settle(workspace_id: str, kind: str, payload: dict[str, Any]) -> None:
    parts.refuse_more(workspace_id)
    progress = parts.progress_of(command_writes.run(workspace_id, kind, payload, workspace_id))
    assert progress is not None
    print_json(asdict(progress))
