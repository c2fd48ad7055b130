"""Verbs: the kinds of write, what each requires, and the function that applies it."""

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
from app.domain.jobs import failed_jobs
from app.domain.lifecycle import erasures, imports, merges
from app.domain.macros import macros, saved_replies
from app.domain.people.tokens import UNRESTRICTED
from app.domain.segments import segments
from app.domain.webhooks import endpoints
from app.domain.work.changes import Change, Effect
from app.domain.work.quotas import Quota
from app.models.sets import Key


@dataclass(frozen=True, slots=True)
class Verb:
    """A kind of write, and the function that applies it.

    `restriction`: what a token needs; UNRESTRICTED, or None if any token will do. `resource_type`: the type of the
    write's resource.

    `needs` returns the keys that the verb gets from its unit of work, for a job's workspace, payload and resource. A
    verb without `needs` runs statements of its own, in a savepoint, after the jobs before it have been written. A verb
    that returns None has done a part of the job and is called again for the rest; its kind must be LONG. `end` is
    called with the resource's identifier when the job has succeeded or failed.

    `check` raises an error to refuse a write before it is accepted, unless a queued write may make it possible. It gets
    the identifier of the workspace, the payload, and the identifiers of the resource and the actor. `quota`, which is
    checked as well, limits the rows that the verb may make.

    `is_audited`: the verb records the change in the audit log. `gives_way`: the next part of the job comes after
    waiting writes, and up to MOST_PASSING that are accepted later. `comes_first`: the write stops other work, so it
    precedes waiting writes, unless one of them is about the same resource.
    """

    call: Callable[[Change], Effect | None]
    restriction: str | None
    resource_type: str
    needs: Callable[[str, Mapping[str, Any], str | None], Iterable[Key]] | None = None
    check: Callable[..., object] | None = None
    quota: Quota | None = None
    end: Callable[[str], None] | None = None
    is_audited: bool = False
    gives_way: bool = False
    comes_first: bool = False


def _replay_many(change: Change) -> Effect | None:
    return failed_jobs.replay_many(change, list(VERBS))


VERBS: Mapping[str, Verb] = {
    "contacts.upsert": Verb(contacts.upsert, "contacts", "contact", contacts.needs),
    "contacts.update": Verb(contacts.update, "contacts", "contact", contacts.needs),
    "contacts.delete": Verb(erasures.delete, "contacts", "contact"),
    "contacts.merge": Verb(merges.go_on, "contacts", "contact", check=merges.check),
    "contacts.add_tag": Verb(contacts.add_tag, "contacts", "contact", contacts.needs),
    "contacts.remove_tag": Verb(contacts.remove_tag, "contacts", "contact", contacts.needs),
    "sales.create": Verb(sales.create, "contacts", "sale", sales.needs, sales.check),
    "bookings.create": Verb(bookings.create, "contacts", "booking", bookings.needs),
    "bookings.cancel": Verb(bookings.cancel, "contacts", "booking", bookings.needs),
    "contacts.import": Verb(imports.go_on, "contacts", "import", end=imports.end),
    "endpoints.create": Verb(endpoints.create, "webhooks", "endpoint", quota=endpoints.QUOTA, is_audited=True),
    "endpoints.rotate_secret": Verb(endpoints.rotate_secret, "webhooks", "endpoint", is_audited=True),
    "endpoints.test": Verb(endpoints.test, "webhooks", "delivery", is_audited=True),
    "endpoints.update": Verb(endpoints.update, "webhooks", "endpoint", is_audited=True),
    "endpoints.delete": Verb(endpoints.delete, "webhooks", "endpoint", is_audited=True),
    "endpoints.enable": Verb(endpoints.enable, "webhooks", "endpoint", is_audited=True),
    "endpoints.resend": Verb(endpoints.resend, "webhooks", "sweep", is_audited=True),
    "deliveries.resend": Verb(
        deliveries.resend, "webhooks", "delivery", check=deliveries.find_resendable, is_audited=True
    ),
    "deliveries.create": Verb(deliveries.create, "webhooks", "delivery", check=deliveries.check, is_audited=True),
    "deliveries.discard": Verb(discards.discard, "webhooks", "job", is_audited=True, gives_way=True),
    "replays.create": Verb(endpoints.create_replay, "webhooks", "replay", is_audited=True),
    "replays.pause": Verb(replays.pause, "webhooks", "replay", is_audited=True, comes_first=True),
    "replays.continue": Verb(replays.go_on, "webhooks", "replay", is_audited=True),
    "replays.abort": Verb(replays.abort, "webhooks", "replay", is_audited=True, comes_first=True),
    "automations.create": Verb(automations.create, "automations", "automation", quota=automations.QUOTA),
    "automations.update": Verb(automations.update, "automations", "automation"),
    "automations.delete": Verb(automations.delete, "automations", "automation"),
    "automations.publish": Verb(automations.publish, "automations", "automation"),
    "automations.unpublish": Verb(automations.unpublish, "automations", "automation"),
    "automations.restore": Verb(automations.restore, "automations", "automation"),
    "automations.pause": Verb(automations.pause, "automations", "automation"),
    "automations.resume": Verb(automations.resume, "automations", "automation"),
    "automations.start": Verb(automations.start, "automations", "run", automations.needs, automations.check_start),
    "automations.start_list": Verb(listed_starts.start_list, "automations", "automation"),
    "automations.cancel_runs": Verb(automations.cancel_runs, "automations", "automation", gives_way=True),
    "automations.move_runs": Verb(moves.move_runs, "automations", "automation"),
    "segments.create": Verb(segments.create, "automations", "segment", quota=segments.QUOTA),
    "segments.update": Verb(segments.update, "automations", "segment"),
    "segments.delete": Verb(segments.delete, "automations", "segment"),
    "broadcasts.create": Verb(broadcasts.create, "automations", "broadcast", is_audited=True),
    "broadcasts.update": Verb(broadcasts.update, "automations", "broadcast", is_audited=True),
    "broadcasts.pause": Verb(broadcasts.pause, "automations", "broadcast", is_audited=True, comes_first=True),
    "broadcasts.continue": Verb(broadcasts.go_on, "automations", "broadcast", is_audited=True),
    "broadcasts.abort": Verb(broadcasts.abort, "automations", "broadcast", is_audited=True, comes_first=True),
    "runs.cancel": Verb(runs.cancel, "automations", "run", runs.needs),
    "runs.resume": Verb(runs.resume, "automations", "run", runs.needs),
    "runs.replay": Verb(runs.replay, "automations", "run", runs.needs),
    "conversations.update": Verb(
        conversation_changes.update, "inbox", "conversation", conversation_changes.needs, conversation_changes.check
    ),
    "messages.create": Verb(messages.create, "inbox", "message", recipients.needs, recipients.check),
    "messages.resend": Verb(messages.resend, "inbox", "message", recipients.needs),
    "scheduled_messages.create": Verb(
        scheduled_messages.create, "inbox", "message", recipients.needs, scheduled_messages.check_new
    ),
    "scheduled_messages.update": Verb(
        scheduled_messages.update, "inbox", "message", scheduled_messages.needs, scheduled_messages.check_change
    ),
    "scheduled_messages.delete": Verb(
        scheduled_messages.delete, "inbox", "message", scheduled_messages.needs, scheduled_messages.check_change
    ),
    "notes.create": Verb(notes.create, "inbox", "note", notes.needs, notes.check),
    "notes.delete": Verb(notes.delete, "inbox", "note", notes.needs),
    "selections.apply": Verb(selections.apply, "inbox", "workspace", gives_way=True),
    "saved_replies.create": Verb(
        saved_replies.create,
        "inbox",
        "saved_reply",
        check=saved_replies.check,
        quota=saved_replies.QUOTA,
        is_audited=True,
    ),
    "saved_replies.update": Verb(
        saved_replies.update, "inbox", "saved_reply", check=saved_replies.check, is_audited=True
    ),
    "saved_replies.delete": Verb(saved_replies.delete, "inbox", "saved_reply", is_audited=True),
    "macros.create": Verb(macros.create, "inbox", "macro", check=macros.check, quota=macros.QUOTA, is_audited=True),
    "macros.update": Verb(macros.update, "inbox", "macro", check=macros.check, is_audited=True),
    "macros.delete": Verb(macros.delete, "inbox", "macro", is_audited=True),
    "macros.apply": Verb(macros.apply, "inbox", "conversation", conversation_changes.needs, macros.check_use),
    "members.update": Verb(member_changes.update, "inbox", "member", check=member_changes.check, is_audited=True),
    "members.give_back": Verb(member_changes.give_back, "inbox", "member"),
    "channels.create": Verb(
        channels.create, "inbox", "channel", check=channels.check_members, quota=channels.QUOTA, is_audited=True
    ),
    "channels.update": Verb(channels.update, "inbox", "channel", check=channels.check_change, is_audited=True),
    "channels.reauthorize": Verb(channels.reauthorize, "inbox", "channel", is_audited=True),
    "channels.delete": Verb(channel_closings.delete, "inbox", "channel", is_audited=True),
    "workspaces.update": Verb(workspace_changes.update, UNRESTRICTED, "workspace"),
    "jobs.discard": Verb(failed_jobs.discard, None, "job", check=failed_jobs.check, is_audited=True, comes_first=True),
    "jobs.replay_many": Verb(_replay_many, UNRESTRICTED, "workspace", is_audited=True, gives_way=True),
    "jobs.discard_many": Verb(failed_jobs.discard_many, UNRESTRICTED, "workspace", is_audited=True, gives_way=True),
}
