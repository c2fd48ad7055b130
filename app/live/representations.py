"""Representations: loads the resources of updates as the API shows them, with one query per kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from app.database import DatabaseAway
from app.domain import resources
from app.domain.contacts import contact_names
from app.domain.conversations import conversations, messages, notes
from app.domain.insight.updates import Update
from app.domain.people import notifications
from app.domain.triggers import run_states
from app.models.conversations import Conversation, Message
from app.models.jobs import Job
from app.models.notes import Note
from app.models.notifications import Notification
from app.models.runs import Run

log = structlog.get_logger(__name__)

_KINDS: Mapping[str, tuple[Any, Callable[[Any], dict[str, Any]]]] = {
    "conversation": (Conversation, conversations.represent),
    "message": (Message, messages.represent),
    "note": (Note, notes.represent),
    "run": (Run, run_states.represent),
    "job": (Job, resources.represent_job),
    "notification": (Notification, notifications.represent),
}


@dataclass(frozen=True, slots=True)
class Document:
    """A resource: its row, and what the API shows of it. Conversations also have `contact_name`."""

    row: Any
    shown: dict[str, Any]


def load(updates: Iterable[Update]) -> dict[tuple[str, str], Document]:
    """Loads the resources of the updates, by kind and identifier. Leaves out deleted ones."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for update in updates:
        wanted[update.kind].add(update.subject_id)
    found: dict[tuple[str, str], Document] = {}
    for kind, subject_ids in wanted.items():
        if kind not in _KINDS:
            continue  # a kind of a newer version, during a rollout
        model, represent = _KINDS[kind]
        for row in model.select().where(model.id.in_(sorted(subject_ids))):
            try:
                found[kind, row.id] = Document(row, represent(row))
            except DatabaseAway:
                raise
            except Exception:  # a resource that cannot be shown must not end the streams
                log.exception("live.not_shown", kind=kind, id=row.id)
    _name_contacts([document for (kind, _), document in found.items() if kind == "conversation"])
    return found


def peers(found: Mapping[tuple[str, str], Document]) -> dict[str, tuple[str, str | None]]:
    """Returns (channel, peer) of the conversations of the messages in `found`, by identifier."""
    wanted = {document.row.conversation_id for (kind, _), document in found.items() if kind == "message"}
    query = Conversation.select(Conversation.id, Conversation.channel_id, Conversation.peer)
    return {each.id: (each.channel_id, each.peer) for each in query.where(Conversation.id.in_(sorted(wanted)))}


def _name_contacts(shown: Sequence[Document]) -> None:
    workspace_ids = {document.row.workspace_id for document in shown}
    names = contact_names.names_in(workspace_ids, {document.row.contact_id for document in shown})
    for document in shown:
        document.shown["contact_name"] = names.get(document.row.contact_id)
