"""Timed starts: begin runs for timed triggers that are due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.domain.contacts import contacts
from app.domain.triggers import run_states
from app.domain.triggers.automation_listeners import Listener
from app.domain.triggers.conditions import holds
from app.domain.triggers.run_states import Start
from app.domain.triggers.timed_triggers import Trigger
from app.domain.work import events
from app.domain.work.units import Unit
from app.lib import json
from app.lib.request_ids import kept_or_new
from app.models.contacts import Contact


def enter(
    unit: Unit, listener: Listener, contact: Contact, triggers: Sequence[Trigger], kind: str, **further: Any
) -> None:
    """Begins a run if the condition of a trigger holds and the contact may enter. Raises Busy.

    The run gets an event of `kind`, made here, with the contact's current state and `further` as its `data`.
    """
    data = {"contact": contacts.represent(contact), **further}
    event = dict(json.loads(events.body(None, kind, unit.now, contact.workspace_id, data)))
    named = {"contact": event["data"]["contact"], "conversation": None, "steps": {}}
    named["trigger"] = {"event": event, "variables": {}}
    if any("if" not in trigger or holds(trigger["if"], named) for trigger in triggers):
        start = Start(
            contact.workspace_id,
            listener.id,
            listener.version,
            contact.id,
            kept_or_new(None),
            event=event,
            goal=listener.goal,
            depth=1,
        )
        run_states.enter(unit, start, listener.reentry or "after_finish")
