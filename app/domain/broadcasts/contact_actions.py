"""Contact actions: how a broadcast reaches a contact, by a message or by starting an automation."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app import bounds
from app.channels.kinds import CHANNEL_KINDS
from app.database import rows
from app.domain.broadcasts import routes
from app.domain.broadcasts.routes import Address, Route
from app.domain.channels import media
from app.domain.contacts import contacts
from app.domain.conversations import conversations, messages, recipients, sending_checks
from app.domain.triggers import automation_listeners, run_states
from app.domain.work.changes import Change
from app.domain.work.events import Cause
from app.domain.work.units import Busy, Unit
from app.errors import Invalid
from app.lib import ids, json, templates
from app.lib.templates import Budget, Overspent, TemplateError, TooLong
from app.models import sets
from app.models.broadcasts import Broadcast
from app.models.contacts import Contact
from app.models.sets import Key

# The most messages of a broadcast in outboxes: what its channels send in SECONDS_UNDER_WAY, and never more than
# MOST_UNDER_WAY. So a pause or an end takes effect soon, and other messages find a short queue.
MOST_UNDER_WAY, SECONDS_UNDER_WAY = 1_000, 2.0
# A workspace with this many runs due begins no more for its broadcasts.
MOST_DUE = 500


@dataclass(frozen=True, slots=True)
class Reached:
    """A contact that was reached, with the message or run that the contact got."""

    message_id: str | None = None
    run_id: str | None = None

    @property
    def outcome(self) -> str:
        """The outcome to store in the contact's row."""
        return "started" if self.message_id is None else "sent"


class Skipped(Exception):
    """The contact does not get the broadcast. `reason`: one of REASONS."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TooEarly(Exception):
    """The contact cannot be reached yet. `until`: when the contact's quiet hours end."""

    def __init__(self, until: datetime) -> None:
        super().__init__(until)
        self.until = until


class SendMessage:
    """Sends a broadcast's message to each contact's latest conversation on a connected channel."""

    def __init__(self, broadcast: Broadcast) -> None:
        self._broadcast = broadcast
        self._message = broadcast.message
        [(self._quiet_hours, self._timezone)] = rows(_WORKSPACE, (broadcast.workspace_id,))

    def problem(self) -> str | None:
        """Returns a sentence if a channel keeps messages from being sent; None if they can be sent."""
        found = rows(_CHANNELS, (self._broadcast.workspace_id, self._broadcast.channel_id))
        if not found and self._broadcast.channel_id is not None:
            return "Its channel has been deleted."
        away = [name for name, state in found if state == "reauthorization_required"]
        if away:
            return f"The channel '{away[0]}' has to be connected again. Do that, then continue."
        if all(state != "connected" for _, state in found):
            return "No channel is connected. Connect one, then continue."
        return None

    def room(self) -> int:
        """Returns how many more messages fit into the outboxes."""
        found = rows(_KINDS, (self._broadcast.workspace_id, self._broadcast.channel_id))
        rates = [(number, CHANNEL_KINDS[kind].channel_rate) for kind, number in found]
        per_second = sum(math.inf if rate is None else number * rate.per_second for number, rate in rates)
        most = min(per_second * SECONDS_UNDER_WAY, MOST_UNDER_WAY)
        return max(int(most) - under_way(self._broadcast.id), 0)

    def needs(self, contact_ids: Sequence[str]) -> list[Key]:
        """Returns the keys of the contacts, to be locked together."""
        return [sets.key(Contact, self._broadcast.workspace_id, "id", each) for each in contact_ids]

    def prefetch(self, contact_ids: Sequence[str], unit: Unit) -> None:
        """Reads locked contacts' latest conversations and recent texts, and the addresses reached before."""
        free = [key.value for key in self.needs(contact_ids) if unit.is_free(key)]
        messages.prefetch_for(unit, self._broadcast.workspace_id, free)
        addresses = set()
        for contact_id in free:
            with suppress(Skipped, Busy):
                addresses.add(self._way(unit, _contact_of(self._broadcast, contact_id, unit)).address)
        self._look_up(unit, addresses)

    def reach(self, contact_id: str, unit: Unit) -> Reached:
        """Queues the message to the contact. Raises Skipped, TooEarly, Busy."""
        contact = _contact_of(self._broadcast, contact_id, unit)
        way = self._way(unit, contact)
        has_template = bool(self._message.get("template"))
        if routes.refusal(way, has_template=has_template, opted_out=False, at=unit.now) is not None:
            raise Skipped("window_closed")
        if self._quiet_hours:
            ends = sending_checks.quiet_hours_end(unit.now, self._quiet_hours, contact.timezone, self._timezone)
            if ends is not None:
                raise TooEarly(ends)
        taken = _taken(self._broadcast.id, way.address)
        if taken not in unit.notes:
            self._look_up(unit, {way.address})
        if unit.notes[taken]:
            raise Skipped("duplicate")
        message_id = self._queue(unit, contact, way)
        unit.notes[taken] = True
        return Reached(message_id=message_id)

    def _way(self, unit: Unit, contact: Contact) -> Route:
        """Returns the channel and address for the contact. Raises Skipped if there are none, and Busy."""
        chosen = self._broadcast.channel_id
        latest = recipients.latest(unit, contact, channel_id=chosen, kind=None)
        way = routes.find(contact, latest, recipients.offered(unit, contact.workspace_id, chosen))
        if way is None:
            raise Skipped("no_channel")
        return way

    def _look_up(self, unit: Unit, addresses: Collection[Address]) -> None:
        """Notes in the unit which of the addresses already got the message, for any contact."""
        if not addresses:
            return
        listed = sorted(addresses)
        found = rows(
            _TAKEN,
            {
                "kinds": [each.kind for each in listed],
                "peers": [each.peer for each in listed],
                "workspace_id": self._broadcast.workspace_id,
                "broadcast_id": self._broadcast.id,
            },
        )
        taken = {Address(*each) for each in found}
        unit.notes |= {_taken(self._broadcast.id, each): each in taken for each in listed}

    def _queue(self, unit: Unit, contact: Contact, way: Route) -> str:
        try:
            text, template = render(self._message, contact, self._timezone)
        except TemplateError as error:
            raise Skipped("template") from error
        named = [each["id"] for each in self._message.get("attachments", ())]
        if routes.is_empty(CHANNEL_KINDS[way.channel.kind], text, len(named)):
            raise Skipped("template")
        if text is not None and sending_checks.count_recent(unit, contact.id, text) >= sending_checks.MOST_IDENTICAL:
            raise Skipped("limit")
        broadcast, cause = self._broadcast, Cause(None, self._broadcast.trace_id)
        change = Change(contact.workspace_id, {}, broadcast.id, "broadcasts", broadcast.created_by, cause, unit)
        message_id = ids.new("msg")
        conversation = way.conversation or recipients.open_on(change, contact, way.channel, way.peer, is_quiet=True)
        try:
            message = messages.draft(
                unit,
                conversation,
                text,
                author={"type": "broadcast", "id": broadcast.id},
                template=template,
                message_id=message_id,
                attachments=media.claim_uploads(unit, contact.workspace_id, named, message_id),
                buttons=self._message.get("buttons", ()),
                broadcast_id=broadcast.id,
            )
        except Invalid as error:
            raise Skipped("template") from error
        noted = conversations.alter(unit, conversation, broadcast_id=broadcast.id)
        return str(messages.queue_draft(change, contact, noted, message).id)


class StartAutomation:
    """Starts a broadcast's automation for each contact."""

    def __init__(self, broadcast: Broadcast) -> None:
        self._broadcast = broadcast
        self._automation_id = str(broadcast.automation_id)
        self._listener = automation_listeners.starting([self._automation_id]).get(self._automation_id)

    def problem(self) -> str | None:
        """Returns a sentence if the automation is not published; None if it is."""
        return None if self._listener else "The automation is not published. Publish it, then continue."

    def room(self) -> int:
        """Returns how many more runs may be due in the workspace."""
        [(due,)] = rows(_DUE, (self._broadcast.workspace_id, MOST_DUE))
        return MOST_DUE - int(due)

    def needs(self, contact_ids: Sequence[str]) -> list[Key]:
        """Returns the keys to lock: the contacts, and their enrolments in the automation."""
        return run_states.needs(self._broadcast.workspace_id, self._automation_id, contact_ids)

    def prefetch(self, contact_ids: Sequence[str], unit: Unit) -> None:
        """Reads nothing: the rows of `needs` are enough."""

    def reach(self, contact_id: str, unit: Unit) -> Reached:
        """Begins a run of the automation for the contact. Raises Skipped, Busy."""
        contact, listener = _contact_of(self._broadcast, contact_id, unit), self._listener
        assert listener is not None
        start = listener.start(contact.workspace_id, contact.id, self._broadcast.trace_id)
        if run_states.keeps_out(unit, start, listener.reentry or "every") is not None:
            run_states.count_refused(unit, start, "reentry")
            raise Skipped("reentry")
        return Reached(run_id=run_states.begin(unit, start).id)


Action = SendMessage | StartAutomation


def of(broadcast: Broadcast) -> Action:
    """Returns SendMessage if the broadcast has a message, and StartAutomation if not."""
    return StartAutomation(broadcast) if broadcast.message is None else SendMessage(broadcast)


def render(message: Mapping[str, Any], contact: Contact, timezone: str) -> tuple[str | None, Any]:
    """Returns the message's text and template, rendered for a contact. Raises TemplateError."""
    text, template = message.get("text"), message.get("template")
    if "{" not in f"{text}{template}":
        return text, template
    variables = json.loads(json.dumps({"contact": contacts.represent(contact), "workspace": {"timezone": timezone}}))
    budget = Budget(bounds.COMPUTING_PER_STEP.most)

    def rendered(each: str) -> str:
        return templates.render(each, variables, budget)

    try:
        return text and rendered(text), templates.fill(template, rendered, messages.MOST_TEMPLATE_BYTES)
    except Overspent as error:
        bounds.COMPUTING_PER_STEP.reached()
        raise TemplateError(
            f"The message takes more than {budget.most:,} steps to be filled in. Make it shorter."
        ) from error
    except TooLong as error:
        raise TemplateError(messages.TEMPLATE_TOO_LONG) from error


def under_way(broadcast_id: str) -> int:
    """Returns how many messages of the broadcast are in outboxes."""
    return int(rows(_UNDER_WAY, (broadcast_id,))[0][0])


def _contact_of(broadcast: Broadcast, contact_id: str, unit: Unit) -> Contact:
    """Returns the contact. Raises Skipped if it was deleted or has opted out, and Busy."""
    contact = unit.get(Contact, broadcast.workspace_id, "id", contact_id)
    if contact is None:
        raise Skipped("erased")
    if contact.opted_out:
        raise Skipped("opted_out")
    return contact


def _taken(broadcast_id: str, address: Address) -> tuple[str, str, Address]:
    return ("got the broadcast", broadcast_id, address)


_WORKSPACE = "SELECT quiet_hours, timezone FROM workspaces WHERE id = %s"
_CHANNELS = """
    SELECT name, state FROM channels WHERE workspace_id = %s AND deleted_at IS NULL AND id = coalesce(%s, id)
    ORDER BY id
"""
_KINDS = """
    SELECT kind, count(*) FROM channels
    WHERE workspace_id = %s AND deleted_at IS NULL AND state = 'connected' AND id = coalesce(%s, id) GROUP BY kind
"""
_TAKEN = """
    SELECT DISTINCT wanted.kind, wanted.peer
    FROM unnest(%(kinds)s::text[], %(peers)s::text[]) AS wanted(kind, peer)
    JOIN channels ON channels.workspace_id = %(workspace_id)s AND channels.kind = wanted.kind
    JOIN conversations ON conversations.channel_id = channels.id AND conversations.peer = wanted.peer
    JOIN broadcast_rows row ON row.broadcast_id = %(broadcast_id)s AND row.contact_id = conversations.contact_id
    WHERE row.outcome = 'sent'
"""
_UNDER_WAY = """
    SELECT count(*) FROM messages WHERE broadcast_id = %s AND (due_at IS NOT NULL OR is_behind)
"""
_DUE = """
    SELECT count(*) FROM (SELECT FROM runs WHERE workspace_id = %s AND due_at IS NOT NULL LIMIT %s) AS due
"""
