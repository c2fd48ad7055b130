"""Publications: turns drafts into versions, and registers the events that automations listen to."""

from __future__ import annotations

from typing import Any

from peewee import fn

from app.database import delete_some, rows
from app.domain.automations import definitions
from app.domain.segments import schedules, segments
from app.domain.triggers import automation_listeners, start_scans, timed_triggers
from app.domain.triggers.start_scans import MOST_TIMED
from app.domain.work.units import Busy
from app.errors import Conflict, Fault, Invalid
from app.models.automations import Automation, AutomationVersion
from app.models.channels import Channel

# The most rows that one transaction removes.
PART = 1_000
# The tables that have rows of an automation, except the tables of runs and their logs.
_TABLES = (
    *("enrolments", "automation_deltas", "automation_counts", "run_counts"),
    *("automation_versions", "automation_listeners", "waiting_starts", "timed_triggers", "schedules"),
    "segment_contacts",
    *("working_copies", "working_copy_states"),
)


def publish(automation: Automation, published_by: str | None) -> None:
    """Makes the draft the next version. A paused automation stays paused.

    Raises Invalid if the draft names an automation, a channel or a segment that does not exist. Raises Conflict if the
    draft closes a loop of automations, or if the workspace has too many timed triggers.
    """
    _check_named(automation, Automation, "automation")
    _check_named(automation, Channel, "channel")
    _check_segments(automation)
    _check_timed(automation)
    published = _published_starters(automation)
    if (closed := definitions.loop(automation.id, automation.definition, published)) is not None:
        raise Conflict(closed.detail)
    number = automation.latest_version + 1
    AutomationVersion.insert(
        automation_id=automation.id,
        number=number,
        workspace_id=automation.workspace_id,
        definition=automation.definition,
        published_by=published_by,
    ).execute()
    status = "paused" if automation.status == "paused" else "published"
    Automation.update(status=status, version=number, latest_version=number, updated_at=fn.now()).where(
        Automation.id == automation.id
    ).execute()
    _listen(automation, automation.definition)


def listen(automation: Automation) -> None:
    """Makes the automation listen to its published triggers, and to its current exits and goal.

    Also replaces its schedules and start scans. Without a published version, it has no triggers.
    """
    definition = {}
    if automation.version is not None:
        number = AutomationVersion.number == automation.version
        definition = AutomationVersion.get((AutomationVersion.automation_id == automation.id) & number).definition
    _listen(automation, definition)


def remove_part(automation: Automation) -> bool:
    """Deletes some of the automation's rows, its own last; returns whether all are gone. Raises Busy."""
    for table in _TABLES:
        # Skips rows that another transaction has locked: a later call deletes them. Raises Busy if only these are left.
        if delete_some(table, "automation_id = %s", "automation_id", (automation.id,), PART):
            return False
        if rows(f"SELECT 1 FROM {table} WHERE automation_id = %s LIMIT 1", (automation.id,)):
            raise Busy
    Automation.delete().where(Automation.id == automation.id).execute()
    return True


def _check_named(automation: Automation, model: Any, noun: str) -> None:
    named = definitions.identifiers(automation.definition, f"{noun}_id")
    if not named:
        return
    known = model.in_workspace(automation.workspace_id).where(model.id.in_(list(named.values())))
    there_are = {found.id for found in known}
    detail = f"There is no such {noun} in this workspace."
    if faults := [Fault(f"/definition{at}", detail) for at, each in named.items() if each not in there_are]:
        raise Invalid(*faults)


def _check_segments(automation: Automation) -> None:
    faults = [
        Fault(f"/definition/triggers/{number}/segment_id", "There is no such segment in this workspace.")
        for number, trigger in enumerate(automation.definition.get("triggers", []))
        if timed_triggers.is_scheduled(trigger) and not segments.find(automation.workspace_id, trigger["segment_id"])
    ]
    if faults:
        raise Invalid(*faults)


def _check_timed(automation: Automation) -> None:
    own = {timed_triggers.key_of(each) for each in timed_triggers.timed(automation.definition.get("triggers", []))}
    counted = (start_scans.count_others, schedules.count_others)
    if own and len(own) + sum(others(automation.workspace_id, automation.id) for others in counted) > MOST_TIMED:
        raise Conflict(
            f"Published automations have at most {MOST_TIMED} triggers by time together. Unpublish one first, or remove"
            " some of these triggers."
        )


def _published_starters(automation: Automation) -> dict[str, Any]:
    """Returns the published definitions of other automations that start automations, by identifier."""
    found = rows(
        """
        SELECT automations.id, automation_versions.definition FROM automations
        JOIN automation_versions ON automation_id = automations.id AND number = automations.version
        WHERE automations.workspace_id = %s AND automations.id <> %s
            AND automation_versions.definition::text LIKE '%%start_automation%%'
        """,
        (automation.workspace_id, automation.id),
    )
    return dict(found)


def _listen(automation: Automation, definition: Any) -> None:
    keys = definitions.listened_keys(definition, automation.exits, automation.goal)
    automation_listeners.listen(automation.workspace_id, automation.id, keys)
    timed = timed_triggers.timed(definition.get("triggers", []))
    scheduled = [trigger for trigger in timed if timed_triggers.is_scheduled(trigger)]
    schedules.watch(automation.workspace_id, automation.id, scheduled)
    start_scans.watch(automation.workspace_id, automation.id, [each for each in timed if each not in scheduled])
