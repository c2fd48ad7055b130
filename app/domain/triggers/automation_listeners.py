"""Automation listeners: the automations whose runs an event may start, end or wake."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from app import sql
from app.database import count, rows
from app.domain.triggers import timed_triggers
from app.domain.triggers.conditions import fields, holds
from app.domain.triggers.run_states import Reentry, Start
from app.domain.work.events import NewEvent
from app.lib import json
from app.lib.caches import Cache
from app.models.runs import Run

# Bellhop's own messages trigger nothing, so that two automations cannot answer each other. Deletions trigger nothing
# either: their contact is gone.
UNHEARD = frozenset({"message.sent", "message.delivered", "message.read", "message.failed", "contact.deleted"})

# The prefix of the keys under which automations listen for events that their runs wait for.
_AWAITED = "awaited "

Trigger = Mapping[str, Any]


@dataclass(frozen=True)
class ObservedEvent:
    """An event, as passed to listeners. `after`: the last automation that it has been passed to.

    `recorded_at`: when the event was recorded; None if the current transaction recorded it.
    """

    workspace_id: str
    event: NewEvent
    after: str = ""
    recorded_at: datetime | None = None

    @property
    def keys(self) -> set[str]:
        """The keys under which automations may listen for the event; empty if it triggers nothing."""
        event = self.event
        if event.contact_id is None or event.only is not None or event.kind in UNHEARD:
            return set()
        timed = timed_triggers.heard_by(event.kind)
        keys = {event.kind, awaited_key(event.kind), timed, event.tag and f"{event.kind}:{event.tag}"}
        return {key for key in keys if key}

    @cached_property
    def document(self) -> dict[str, Any]:
        """The body of the event as receivers get it, parsed."""
        return dict(json.loads(self.event.body))

    @cached_property
    def is_reply(self) -> bool:
        """Whether the event is a message that a run waited for as a reply."""
        return self.event.kind == "message.received" and self.document["data"]["message"].get("run_id") is not None

    @cached_property
    def variables(self) -> dict[str, Any]:
        """The values that conditions on the event can name."""
        data = self.document["data"]
        named = {name: data.get(name) for name in ("contact", "conversation")}
        return named | {"trigger": {"event": self.document, "variables": {}}, "steps": {}}


@dataclass(frozen=True, slots=True)
class Listener:
    """An automation, and the parts of it that events are compared with.

    `triggers`: the triggers of its published version; empty if it may not start runs.
    """

    id: str
    name: str
    version: int
    reentry: Reentry | None
    triggers: Sequence[Trigger]
    exits: Sequence[Trigger]
    goal: Trigger | None

    def start(self, workspace_id: str, contact_id: str, trace_id: str, **columns: Any) -> Start:
        """Returns the start of a run of the published version. `columns`: further fields of Start."""
        return Start(workspace_id, self.id, self.version, contact_id, trace_id, goal=self.goal, **columns)

    def starts(self, observed: ObservedEvent) -> bool:
        """Returns whether a trigger matches; for a reply that a run awaited, one with `also_replies`."""
        return any(
            is_of(trigger, observed, observed.variables) and (trigger.get("also_replies") or not observed.is_reply)
            for trigger in self.triggers
        )

    def plans_on(self, observed: ObservedEvent) -> bool:
        """Returns whether the event may set the time of a timed trigger."""
        return bool(timed_triggers.concerned(self.triggers, observed.event.kind))

    def may_exit_on(self, observed: ObservedEvent) -> bool:
        """Returns whether an exit may match the event for some run; `exits_on` decides about a run."""
        return any(is_of(each, observed, {} if _names_run(each) else observed.variables) for each in self.exits)

    def exits_all_on(self, observed: ObservedEvent) -> bool:
        """Returns whether an exit matches the event for every run, because its condition names no run."""
        return any(not _names_run(each) and is_of(each, observed, observed.variables) for each in self.exits)

    def exits_on(self, observed: ObservedEvent, run: Run) -> bool:
        """Returns whether an exit matches the event for `run`."""
        return any(is_of(each, observed, observed.variables | of_run(run)) for each in self.exits)

    def may_reach_goal_on(self, observed: ObservedEvent) -> bool:
        """Returns whether the event may be the goal for some run; `reaches_goal_on` decides about a run."""
        goal = self.goal
        return goal is not None and is_of(goal, observed, {} if _names_run(goal) else observed.variables)

    def reaches_goal_on(self, observed: ObservedEvent, run: Run) -> bool:
        """Returns whether the event is the goal for `run`: not reached before, and within the run's time."""
        if self.goal is None or run.goal_until is None or observed.event.at > run.goal_until:
            return False
        return is_of(self.goal, observed, observed.variables | of_run(run))


class Listeners:
    """The automations of a workspace that listen to `keys`, found by at most two statements."""

    def __init__(self, workspace_id: str, keys: Collection[str]) -> None:
        found = rows(_FIND, {"workspace_id": workspace_id, "keys": sql.array(keys)}) if keys else []
        starting = {(id, version) for _, _, id, _, version, *_, is_open in found if is_open}
        triggers = _triggers(starting)
        self._awaiting = {(id, key) for key, _, id, *_ in found}
        listeners = {
            id: Listener(id, name, version, reentry, triggers[id, version] if is_open else (), exits, goal)
            for _, _, id, name, version, reentry, exits, goal, is_open in found
        }
        self._by_key: dict[str, list[tuple[datetime, Listener]]] = {}
        for key, since, id, *_ in found:
            self._by_key.setdefault(key, []).append((since, listeners[id]))

    def of(self, observed: ObservedEvent) -> Iterator[Listener]:
        """Returns the listeners that the event has not been passed to yet, ordered by id.

        Leaves out listeners that registered after the event was recorded.
        """
        at = observed.recorded_at
        keyed = [each for key in observed.keys for each in self._by_key.get(key, ())]
        listening = {listener.id: listener for since, listener in keyed if at is None or since <= at}
        return (listening[id] for id in sorted(listening) if id > observed.after)

    def awaits(self, listener: Listener, observed: ObservedEvent) -> bool:
        """Returns whether runs of the automation may wait for an event of this kind."""
        return (listener.id, awaited_key(observed.event.kind)) in self._awaiting


def starting(automation_ids: Collection[str]) -> dict[str, Listener]:
    """Returns the automations among `automation_ids` that may start runs, by id."""
    found = rows(_STARTING, {"ids": sql.array(automation_ids)})
    triggers = _triggers({(id, version) for id, _, version, *_ in found})
    return {
        id: Listener(id, name, version, reentry, triggers[id, version], exits, goal)
        for id, name, version, reentry, exits, goal in found
    }


def listen(workspace_id: str, automation_id: str, keys: Collection[str]) -> None:
    """Replaces the keys that the automation listens to.

    Awaited keys stay: runs may still wait for them. An event that was recorded before the automation listened to its
    key starts nothing, even if it is processed later.
    """
    stale = "DELETE FROM automation_listeners WHERE automation_id = %s AND key <> ALL(%s) AND NOT starts_with(key, %s)"
    count(stale, (automation_id, list(keys), _AWAITED))
    count(
        """
        INSERT INTO automation_listeners (workspace_id, key, automation_id) SELECT %s, unnest(%s::text[]), %s
        ON CONFLICT DO NOTHING
        """,
        (workspace_id, list(keys), automation_id),
    )


def awaited_key(kind: str) -> str:
    """Returns the key under which automations listen if their runs may wait for events of that kind."""
    return f"{_AWAITED}{kind}"


def is_of(trigger: Trigger, observed: ObservedEvent, variables: Mapping[str, Any]) -> bool:
    """Returns whether `trigger` matches the event. Without `variables`, its condition counts as true."""
    if trigger.get("event") != observed.event.kind or trigger.get("tag") not in (None, observed.event.tag):
        return False
    condition = trigger.get("if")
    return condition is None or not variables or holds(condition, variables)


def _names_run(trigger: Trigger) -> bool:
    named = fields(trigger["if"]) if "if" in trigger else ()
    return any(name.partition(".")[0] in ("run", "steps") for _, name in named)


def of_run(run: Run) -> dict[str, Any]:
    """Returns the values that conditions can name about a run, besides the event."""
    variables = {**run.variables, **run.own_variables}
    return {"steps": run.saved, "run": {"id": run.id, "variables": variables, "trigger": {"event": run.event}}}


def _triggers(versions: Collection[tuple[str, int]]) -> dict[tuple[str, int], Sequence[Trigger]]:
    """Returns the triggers of `versions`. One statement reads those that are not in the cache."""
    known = {version: _TRIGGERS.get(version) for version in versions}
    if missing := [version for version, triggers in known.items() if triggers is None]:
        read = """
            SELECT version.automation_id, version.number, version.definition->'triggers'
            FROM automation_versions version JOIN unnest(%s::text[], %s::int[]) AS sought(automation_id, number)
                ON version.automation_id = sought.automation_id AND version.number = sought.number
        """
        for automation_id, number, triggers in rows(read, tuple(map(list, zip(*missing, strict=True)))):
            known[automation_id, number] = triggers or []
            _TRIGGERS.put((automation_id, number), triggers or [], 1)
    return {version: triggers or () for version, triggers in known.items()}


# Published versions never change, so entries need no expiry.
_TRIGGERS: Cache[tuple[str, int], Sequence[Trigger]] = Cache(10_000)

_FIND = sql.prepared(
    "find_listeners",
    """
    SELECT listener.key, listener.since, automation.id, automation.name, automation.version, automation.reentry,
        automation.exits, automation.goal,
        automation.version IS NOT NULL AND automation.status IN ('published', 'paused')
    FROM automation_listeners listener JOIN automations automation ON automation.id = listener.automation_id
    WHERE listener.workspace_id = %(workspace_id)s AND listener.key = ANY(%(keys)s::text[])
    """,
)

_STARTING = sql.prepared(
    "find_starting",
    """
    SELECT id, name, version, reentry, exits, goal FROM automations
    WHERE id = ANY(%(ids)s::text[]) AND version IS NOT NULL AND status IN ('published', 'paused')
    """,
)
