"""Random definitions of automations: few names, so that runs get in each other's way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import count
from random import Random
from typing import Any

HOUR = 3600
TAGS = ("a", "b", "c")
# Members: one whose identifier is to be put here, and one whom no workspace has.
MEMBER, NOBODY = f"mem_{'0' * 26}", f"mem_{'7' * 26}"
_TEXTS = (
    *(*TAGS * 4, "{{ contact.first_name }}", "{{ trigger.variables.word }}", "{{ trigger.event.data.tag }}"),
    *("{{ steps.REPLY.text }}", "{{ steps.REPLY.text }}", "{{ steps.CALL.body.tag }}"),
    *(
        "{{ contact.custom_fields.plan }}!",
        "{{ run.variables.own }}",
        "{{ run.variables.word }}",
        "{{ steps.ROUND.item }}",
        "{{ steps.SUB.result.word }}",
    ),
)
DRAWN = (
    *("add_tag", "add_tag", "remove_tag", "set_field", "wait", "http_request", "close_conversation", "stop"),
    *("send_message", "send_message", "send_message", "wait_for_reply", "wait_for_reply", "start_automation", "branch"),
    *("set_variable", "set_variable", "split", "repeat", "ask", "ask", "wait_for_event", "wait_for_event"),
    *("label_conversation", "snooze_conversation", "add_note", "assign_conversation"),
)
_EVENTS = (
    *("tag.added", "tag.added", "tag.added", "tag.removed", "message.received"),
    *("automation.completed", "automation.cancelled", "conversation.labelled", "conversation.woken"),
    "conversation.assigned",
)


_PLACES = {
    "wait_for_reply": "steps.REPLY",
    "http_request": "steps.CALL",
    "repeat": "steps.ROUND",
    "start_automation": "steps.SUB",
}


def definition(random: Random, startable: Sequence[str]) -> dict[str, Any]:
    """A definition without faults, which may start these automations."""
    drawn = {"triggers": triggers(random), "steps": _steps(random, startable, count(1), depth=1)}
    text = json.dumps(drawn)
    for kind, place in _PLACES.items():
        found = re.search(rf'"id": "(\w+)", "kind": "{kind}"', text)
        text = text.replace(place, f"steps.{found[1]}" if found else "trigger.variables")
    if drawn["triggers"] and not any(each["event"].startswith("tag.") for each in drawn["triggers"]):
        text = text.replace("trigger.event.data.tag", "trigger.variables.word")
    return dict(json.loads(text))


def triggers(random: Random) -> list[dict[str, Any]]:
    """Two triggers or exits at most."""
    return [_trigger(random) for _ in range(random.choice((0, 1, 1, 2)))]


def some_exits(random: Random) -> list[dict[str, Any]]:
    """Two at most, some of which depend on the run."""
    return [each for each, _ in zip(_exits(random), triggers(random), strict=False)]


def _exits(random: Random) -> Iterator[dict[str, Any]]:
    while True:
        of_run = (
            {"field": "run.variables.own", "is": "equals", "value": random.choice(TAGS)},
            {"not": {"field": "run.variables.word", "is": "exists"}},
        )
        yield _trigger(random) | ({"if": random.choice(of_run)} if random.random() < 0.3 else {})


def some_goal(random: Random) -> dict[str, Any] | None:
    """One, which may depend on the run, or none."""
    goal = next(iter(some_exits(random)), None)
    return goal and {"within_seconds": 86_400} | {name: goal[name] for name in goal if name != "also_replies"}


def _trigger(random: Random) -> dict[str, Any]:
    event = random.choice(_EVENTS)
    tag = {"tag": random.choice(TAGS)} if event.startswith("tag.") and random.random() < 0.7 else {}
    replies = {"also_replies": True} if event == "message.received" and random.random() < 0.5 else {}
    return {"event": event, **tag, **replies} | ({"if": _of_contact(random)} if random.random() < 0.3 else {})


def _steps(random: Random, startable: Sequence[str], numbers: Iterator[int], depth: int) -> list[dict[str, Any]]:
    steps = []
    for _ in range(random.randint(2 - depth, 5 - depth)):
        kind = random.choice(DRAWN if startable else [kind for kind in DRAWN if kind != "start_automation"])
        step = {"id": f"s{next(numbers)}", "kind": kind, **_fields(random, kind, startable)}
        for name in {
            "branch": ("then", "else"),
            "wait_for_reply": ("otherwise",),
            "ask": ("otherwise",),
            "wait_for_event": ("otherwise",),
            "repeat": ("steps",),
        }.get(kind, ()):
            step[name] = _steps(random, startable, numbers, depth + 1) if depth < 3 else []
        for arm in step.get("arms", ()):
            arm["steps"] = _steps(random, startable, numbers, depth + 1) if depth < 3 else []
        steps.append(step)
    return steps


def _fields(random: Random, kind: str, startable: Sequence[str]) -> dict[str, Any]:
    text = random.choice(_TEXTS)
    if kind == "set_field":
        return random.choice(
            (
                {"field": "first_name", "value": text},
                {"field": "plan", "value": random.choice((text, None))},
                {"field": "email", "value": random.choice(("one@example.com", "two@example.com"))},
                {"field": "opted_out", "value": random.choice(("true", "false", "false"))},
            )
        )
    waits: dict[str, Any] = random.choice(({}, {"wait": True}, {"wait": True, "cancel_together": True}))
    shares = random.choice(((50, 50), (0, 100), (99.5, 0.5)))
    fields: dict[str, dict[str, Any]] = {
        "add_tag": {"tag": text},
        "remove_tag": {"tag": random.choice(TAGS)},
        "label_conversation": {"label": text},
        "add_note": {"text": text},
        "assign_conversation": {"assignee_id": random.choice((MEMBER, MEMBER, NOBODY, None))},
        "snooze_conversation": {"until": f"{date.today() + timedelta(days=random.randint(2, 4))}T00:00:00Z"},
        "wait": {"seconds": HOUR * random.randint(0, 2)},
        "send_message": {"text": text, **_files(random)},
        "wait_for_reply": {"timeout_seconds": HOUR * random.randint(1, 3)},
        "ask": {
            **{
                "text": text,
                "retry_text": random.choice(TAGS),
                **random.choice(({"format": "number"}, _choice(random))),
            },
            **{"attempts": random.randint(1, 3), "timeout_seconds": HOUR * random.randint(1, 3), **_files(random)},
        },
        "wait_for_event": {
            **{name: value for name, value in next(_exits(random)).items() if name != "also_replies"},
            "timeout_seconds": HOUR * random.randint(1, 3),
        },
        "http_request": {"method": "POST", "address": "https://shop.example/", "body": text},
        "start_automation": {"automation_id": random.choice(startable or [""]), "variables": {"word": text}, **waits},
        "stop": {"result": {"word": text}},
        "branch": {"if": _condition(random, 0)},
        "set_variable": {"name": random.choice(("own", "word")), "value": text},
        "split": {"arms": [{"name": name, "percent": share} for name, share in zip("ab", shares, strict=True)]},
        "repeat": random.choice(
            (
                {"times": random.randint(0, 3)},
                {"over": random.choices(TAGS, k=random.randint(0, 2))},
                {"times": 2, "while": _condition(random, 1)},
            )
        ),
    }
    return fields.get(kind, {})


def _of_contact(random: Random) -> dict[str, Any]:
    return random.choice(
        (
            {"field": "contact.tags", "is": "contains", "value": random.choice(TAGS)},
            {"field": "contact.first_name", "is": "equals", "value": random.choice(TAGS)},
            {"field": "contact.custom_fields.plan", "is": "exists"},
        )
    )


def _choice(random: Random) -> dict[str, Any]:
    labels = ("a", random.choice(("b", "{{ contact.first_name }}", "a {{ trigger.variables.word }}, and many more")))
    return {
        "format": "choice",
        "buttons": [{"id": each, "label": label} for each, label in zip("xy", labels, strict=True)],
    }


def _files(random: Random) -> dict[str, Any]:
    """The last is no address, whatever it is made of."""
    addresses = (*["https://shop.example/a", "https://shop.example/{{ contact.id }}"] * 2, "{{ run.variables.word }}")
    return {"attachments": [{"address": random.choice(addresses)}]} if random.random() < 0.5 else {}


def _condition(random: Random, depth: int) -> dict[str, Any]:
    name = random.choice(("all", "any", "not", *[""] * 6)) if depth < 2 else ""
    if name:
        inner = [_condition(random, depth + 1) for _ in range(random.randint(1, 2))]
        return {name: inner[0] if name == "not" else inner}
    of_run = (
        {"field": "steps.REPLY.timed_out", "is": "equals", "value": True},
        {"field": "steps.CALL.error", "is": "exists"},
        {"field": "trigger.variables.word", "is": "equals", "value": random.choice(TAGS)},
    )
    return random.choice((*of_run, *[_of_contact(random)] * 3))
