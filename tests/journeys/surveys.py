"""A survey in stories: an automation that asks people, what they say, and the account of every question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.journeys.audit import rows
from tests.journeys.conversing import Talker, Talks

STEPS = [
    {"id": "begun", "kind": "add_tag", "tag": "asked"},
    {
        **{"id": "guests", "kind": "ask", "text": "guests-{{ contact.id }}", "format": "number"},
        "retry_text": "again-{{ contact.id }}",
    },
    {"id": "mark", "kind": "label_conversation", "label": "asked"},
    {"id": "note", "kind": "add_note", "text": "{{ steps.guests.value }} guests"},
    {"id": "name", "kind": "send_message", "text": "name-{{ contact.id }}"},
    {"id": "reply", "kind": "wait_for_reply"},
    {"id": "aside", "kind": "snooze_conversation", "seconds": 86400},
    {"id": "thanks", "kind": "send_message", "text": "{{ steps.reply.text }}: {{ steps.guests.value }}"},
    {"id": "ended", "kind": "remove_tag", "tag": "asked"},
    {"id": "close", "kind": "close_conversation"},
]
_LOG = Counter([*((step["id"], "succeeded") for step in STEPS), *[("guests", "waiting")] * 2, ("reply", "waiting")])


def _hello(talker: Talker) -> str:
    return f"hello-{talker.number}"


def _many(talker: Talker) -> str:
    return f"many-{talker.number}"


def _guests(talker: Talker) -> str:
    return str(1_000 + talker.number)


def _name(talker: Talker) -> str:
    return f"name-{talker.number}"


def flaws(talks: Talks, automation: str) -> Iterator[str]:
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
    notes = Counter(rows(talks.stack, "SELECT text FROM notes WHERE workspace_id = %s", talks.shop.workspace_id))
    if notes != Counter((f"{_guests(talker)} guests",) for talker in talks.talkers):
        yield f"the notes are {notes}"
    marked = "SELECT labels, status, count(*) FROM conversations WHERE workspace_id = %s GROUP BY 1, 2"
    if (talked := rows(talks.stack, marked, talks.shop.workspace_id)) != [(["asked"], "closed", len(talks.talkers))]:
        yield f"the conversations are {talked}"
    told = Counter(rows(talks.stack, "SELECT kind FROM events WHERE workspace_id = %s", talks.shop.workspace_id))
    for kind in ("tag.added", "tag.removed", "conversation.labelled", "conversation.snoozed", "conversation.closed"):
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


# What people say, in this order: the second is no number.
SAID = (_hello, _many, _guests, _name)
