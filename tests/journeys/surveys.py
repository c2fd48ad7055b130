"""A survey in stories: an automation that asks people, what they say, and the account of every question and file."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.journeys.audit import rows
from tests.journeys.conversing import Talker, Talks
from tests.stack.receiver import Answer, Receiver

FILES = "/files"  # below it, one for each contact
STEPS = [
    {"id": "begun", "kind": "add_tag", "tag": "asked"},
    {
        **{"id": "guests", "kind": "ask", "text": "guests-{{ contact.id }}", "format": "number"},
        "retry_text": "again-{{ contact.id }}",
    },
    {"id": "mark", "kind": "label_conversation", "label": "asked"},
    {"id": "note", "kind": "add_note", "text": "{{ steps.guests.value }} guests"},
    {"id": "assign", "kind": "assign_conversation"},
    {"id": "name", "kind": "send_message", "text": "name-{{ contact.id }}"},
    {"id": "reply", "kind": "wait_for_reply"},
    {"id": "aside", "kind": "snooze_conversation", "seconds": 86400},
    {"id": "thanks", "kind": "send_message", "text": "{{ steps.reply.text }}: {{ steps.guests.value }}"},
    {"id": "ended", "kind": "remove_tag", "tag": "asked"},
    {"id": "close", "kind": "close_conversation"},
]
_WAITS = ("guests", "guests", "name", "reply")
_LOG = Counter([*((step["id"], "succeeded") for step in STEPS), *((step, "waiting") for step in _WAITS)])


def steps(files: Receiver, member_id: str) -> list[dict[str, Any]]:
    """The steps, one of which sends a file from that server, and one assigns the conversation to the member."""
    further = {
        "assign": {"assignee_id": member_id},
        "name": {"attachments": [{"address": f"{files.url(FILES)}/{{{{ contact.id }}}}"}]},
    }
    return [step | further.get(str(step["id"]), {}) for step in STEPS]


def serve_files(released: threading.Event, path: str, _body: bytes) -> Answer:
    """What the server of the files answers, once it is released: each file has the contact's identifier."""
    return Answer(body=_file(path.rpartition("/")[2]), released=released) if path.startswith(FILES) else Answer()


def _file(contact_id: str) -> bytes:
    return f"%PDF-1.7 {contact_id}".encode()


def _hello(talker: Talker) -> str:
    return f"hello-{talker.number}"


def _many(talker: Talker) -> str:
    return f"many-{talker.number}"


def _guests(talker: Talker) -> str:
    return str(1_000 + talker.number)


def _name(talker: Talker) -> str:
    return f"name-{talker.number}"


def flaws(talks: Talks, automation: str, member_id: str) -> Iterator[str]:
    """What is wrong with the runs: each must have ended, with its steps taken once and its talker's answers."""
    query = "SELECT conversation_id, id, contact_id, status, saved FROM runs WHERE automation_id = %s"
    runs = {found[0]: found[1:] for found in rows(talks.stack, query, automation)}
    if len(runs) != len(talks.talkers):
        yield f"{len(runs)} conversations with runs"
    reached = Counter(text for texts in talks.reached().values() for text in texts)
    for talker in talks.talkers:
        run_id, contact_id, status, saved = runs[talker.conversation_id]
        guests, reply = saved["guests"], saved["reply"]
        answers = int(_guests(talker)), 2, _name(talker)
        if status != "completed" or (guests["value"], guests["attempts"], reply["text"]) != answers:
            yield f"{talker}: {status}, {saved}"
        log = Counter(rows(talks.stack, "SELECT step, status FROM run_steps WHERE run_id = %s", run_id))
        if log != _LOG:
            yield f"{talker}: its log has {log}"
        yield from _flaws_of_messages(talks, talker, run_id, contact_id, reached)
        yield from _flaws_of_files(talks, talker, run_id, contact_id)
    notes = Counter(rows(talks.stack, "SELECT text FROM notes WHERE workspace_id = %s", talks.shop.workspace_id))
    if notes != Counter((f"{_guests(talker)} guests",) for talker in talks.talkers):
        yield f"the notes are {notes}"
    marked = "SELECT labels, status, assignee_id FROM conversations WHERE workspace_id = %s"
    talked = rows(talks.stack, marked, talks.shop.workspace_id)
    if talked != [(["asked"], "closed", member_id)] * len(talks.talkers):
        yield f"the conversations are {talked}"
    told = Counter(rows(talks.stack, "SELECT kind FROM events WHERE workspace_id = %s", talks.shop.workspace_id))
    changes = ("labelled", "assigned", "snoozed", "closed")
    for kind in ("tag.added", "tag.removed", *(f"conversation.{change}" for change in changes)):
        if told[(kind,)] != len(talks.talkers):
            yield f"{kind} happened {told[(kind,)]} times"


def _flaws_of_messages(
    talks: Talks, talker: Talker, run_id: str, contact_id: str, reached: Counter[str]
) -> Iterator[str]:
    query = "SELECT direction, text, status FROM messages WHERE run_id = %s ORDER BY created_at, id"
    messages = rows(talks.stack, query, run_id)
    thanks = f"{_name(talker)}: {_guests(talker)}"
    texts = [("out", f"guests-{contact_id}"), ("in", _many(talker)), ("out", f"again-{contact_id}")]
    texts += [("in", _guests(talker)), ("out", f"name-{contact_id}"), ("in", _name(talker)), ("out", thanks)]
    if [(direction, text) for direction, text, _ in messages] != texts:
        yield f"{talker}: its messages are {messages}"
    for direction, text, status in messages:
        if direction == "out" and (status not in ("sent", "unknown") or reached[text] > 1):
            yield f"{talker}: {text} is {status}, and was taken {reached[text]} times"


def _flaws_of_files(talks: Talks, talker: Talker, run_id: str, contact_id: str) -> Iterator[str]:
    """One file was fetched and belongs to its message, and a provider got it once, unless it is unknown whether."""
    text, content = f"name-{contact_id}", _file(contact_id)
    query = """
        SELECT messages.text, bytes, status FROM uploads LEFT JOIN messages ON messages.id = message_id
        WHERE uploads.run_id = %s
    """
    kept = rows(talks.stack, query, run_id)
    if [each[:2] for each in kept] != [(text, len(content))]:
        yield f"{talker}: its files are {kept}"
    taken, is_known = talks.files()[text], [each[2] for each in kept] == ["sent"]
    if talker.kind != "web_chat" and taken != [content] and (is_known or taken):
        yield f"{talker}: the provider has its files {taken}"


# What people say, in this order: the second is no number.
SAID = (_hello, _many, _guests, _name)
