"""Verbs: the functions that apply each kind of write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.domain.assignment import member_changes
from app.domain.automations import automations, listed_starts, moves, runs
from app.domain.broadcasts import broadcasts
from app.domain.channels import channels
from app.domain.contacts import bookings, contacts, sales
from app.domain.conversations import (
    channel_closings,
    conversation_changes,
    messages,
    notes,
    recipients,
    scheduled_messages,
    workspace_changes,
)
from app.domain.deliveries import deliveries, discards, replays
from app.domain.inbox import selections
from app.domain.jobs import failed_jobs, open_failures
from app.domain.lifecycle import erasures, imports, merges
from app.domain.macros import macros, saved_replies
from app.domain.segments import segments
from app.domain.webhooks import endpoints, restarts
from app.domain.work.changes import Change, Effect
from app.models.sets import Key


@dataclass(frozen=True, slots=True)
class Verb:
    """The implementation of a kind of write.

    `needs` returns the keys that the verb gets from its unit of work, for a job's workspace, payload and resource. A
    verb without `needs` runs statements of its own, in a savepoint, after the jobs before it have been written. A verb
    that returns None has done a part of the job and is called again for the rest; its kind must be `is_long`. `end` is
    called with the resource's identifier when the job has succeeded or failed.
    """

    call: Callable[[Change], Effect | None]
    needs: Callable[[str, Mapping[str, Any], str | None], Iterable[Key]] | None = None
    end: Callable[[str], None] | None = None


VERBS: Mapping[str, Verb] = {
    "contacts.upsert": Verb(contacts.upsert, contacts.needs),
    "contacts.update": Verb(contacts.update, contacts.needs),
    "contacts.delete": Verb(erasures.delete),
    "contacts.merge": Verb(merges.go_on),
    "contacts.add_tag": Verb(contacts.add_tag, contacts.needs),
    "contacts.remove_tag": Verb(contacts.remove_tag, contacts.needs),
    "sales.create": Verb(sales.create, sales.needs),
    "bookings.create": Verb(bookings.create, bookings.needs),
    "bookings.cancel": Verb(bookings.cancel, bookings.needs),
    "contacts.import": Verb(imports.go_on, end=imports.end),
    "endpoints.create": Verb(endpoints.create),
    "endpoints.rotate_secret": Verb(endpoints.rotate_secret),
    "endpoints.test": Verb(endpoints.test),
    "endpoints.update": Verb(endpoints.update),
    "endpoints.delete": Verb(endpoints.delete),
    "endpoints.enable": Verb(endpoints.enable),
    "endpoints.resend": Verb(endpoints.resend),
    "deliveries.resend": Verb(deliveries.resend),
    "deliveries.create": Verb(deliveries.create),
    "deliveries.discard": Verb(discards.discard),
    "replays.create": Verb(restarts.create),
    "replays.pause": Verb(replays.pause),
    "replays.continue": Verb(replays.go_on),
    "replays.abort": Verb(replays.abort),
    "automations.create": Verb(automations.create),
    "automations.update": Verb(automations.update),
    "automations.delete": Verb(automations.delete),
    "automations.publish": Verb(automations.publish),
    "automations.unpublish": Verb(automations.unpublish),
    "automations.restore": Verb(automations.restore),
    "automations.pause": Verb(automations.pause),
    "automations.resume": Verb(automations.resume),
    "automations.start": Verb(automations.start, automations.needs),
    "automations.start_list": Verb(listed_starts.start_list),
    "automations.cancel_runs": Verb(automations.cancel_runs),
    "automations.move_runs": Verb(moves.move_runs),
    "segments.create": Verb(segments.create),
    "segments.update": Verb(segments.update),
    "segments.delete": Verb(segments.delete),
    "broadcasts.create": Verb(broadcasts.create),
    "broadcasts.update": Verb(broadcasts.update),
    "broadcasts.pause": Verb(broadcasts.pause),
    "broadcasts.continue": Verb(broadcasts.go_on),
    "broadcasts.abort": Verb(broadcasts.abort),
    "runs.cancel": Verb(runs.cancel, runs.needs),
    "runs.resume": Verb(runs.resume, runs.needs),
    "runs.replay": Verb(runs.replay, runs.needs),
    "conversations.update": Verb(conversation_changes.update, conversation_changes.needs),
    "messages.create": Verb(messages.create, recipients.needs),
    "messages.resend": Verb(messages.resend, recipients.needs),
    "scheduled_messages.create": Verb(scheduled_messages.create, recipients.needs),
    "scheduled_messages.update": Verb(scheduled_messages.update, scheduled_messages.needs),
    "scheduled_messages.delete": Verb(scheduled_messages.delete, scheduled_messages.needs),
    "notes.create": Verb(notes.create, notes.needs),
    "notes.delete": Verb(notes.delete, notes.needs),
    "selections.apply": Verb(selections.apply),
    "saved_replies.create": Verb(saved_replies.create),
    "saved_replies.update": Verb(saved_replies.update),
    "saved_replies.delete": Verb(saved_replies.delete),
    "macros.create": Verb(macros.create),
    "macros.update": Verb(macros.update),
    "macros.delete": Verb(macros.delete),
    "macros.apply": Verb(macros.apply, macros.needs),
    "members.update": Verb(member_changes.update),
    "members.give_back": Verb(member_changes.give_back),
    "channels.create": Verb(channels.create),
    "channels.update": Verb(channels.update),
    "channels.reauthorize": Verb(channels.reauthorize),
    "channels.delete": Verb(channel_closings.delete),
    "workspaces.update": Verb(workspace_changes.update),
    "jobs.discard": Verb(failed_jobs.discard),
    "jobs.replay_many": Verb(open_failures.replay_many),
    "jobs.discard_many": Verb(open_failures.discard_many),
}
