"""Definitions for tests: one that a shop might have, and one with every kind of step and a text of your choice."""

from __future__ import annotations

from typing import Any

from app.domain.automations.steps import STEP_KINDS

IS_VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}


def welcome() -> dict[str, Any]:
    """A welcome with a question, buttons, an experiment and a handover; some of its runs wait, and some fail."""
    buttons = [{"id": each.lower(), "label": each} for each in ("Tulips", "Roses", "Something else")]
    return {
        "triggers": [{"event": "tag.added", "tag": "newsletter"}, {"event": "contact.created", "if": IS_VIP}],
        "steps": [
            {"id": "pause", "kind": "wait", "seconds": 1},
            {"id": "mark", "kind": "add_tag", "tag": "welcomed"},
            {
                "id": "known",
                "kind": "branch",
                "if": {"any": [IS_VIP, {"field": "contact.email", "is": "exists"}]},
                "then": [
                    {"id": "rest", "kind": "wait", "seconds": 86_400},
                    {"id": "ask", "kind": "ask", "text": "Which flowers do you like best?", "format": "choice"}
                    | {"buttons": buttons, "timeout_seconds": 86_400, "otherwise": [{"id": "over", "kind": "stop"}]},
                ],
                "else": [
                    {"id": "hello", "kind": "send_message", "text": "Hello {{ contact.first_name }}! Welcome."},
                    {"id": "note", "kind": "add_note", "text": "Has no address."},
                ],
            },
            {
                "id": "voucher",
                "kind": "split",
                "arms": [
                    {"name": "voucher", "percent": 50, "steps": [{"id": "gift", "kind": "add_tag", "tag": "voucher"}]},
                    {"name": "none", "percent": 50, "steps": []},
                ],
            },
            {"id": "thanks", "kind": "send_message", "text": "Thank you, {{ contact.first_name }}!"},
        ],
    }


def of_every_kind(text: str, automation_id: str | None = None) -> dict[str, Any]:
    """Every kind of step, nested, with that text wherever one may stand; `automation_id`: one that it starts."""
    comparison = {"field": "contact.custom_fields." + text[:80], "is": "equals", "value": text}
    fields: dict[str, Any] = {
        "if": comparison,
        "text": text,
        "retry_text": text,
        "label": text[:100],
        "tag": text[:100],
        "value": text,
        "body": {text: text},
        "result": {text: text},
    }
    steps = []
    for number, (kind, of_kind) in enumerate(STEP_KINDS.items()):
        if kind == "start_automation" and automation_id is None:
            continue
        given = {"id": f"step-{number}", "kind": kind, **of_kind.example}
        given |= _filled(given, fields)
        if kind == "start_automation":
            given |= {"automation_id": automation_id, "variables": {}}
        for inner in _inside(given, kind):
            inner |= {"id": f"{given['id']}-{inner['id']}", **_filled(inner, fields)}
        steps.append(given)
    return {"triggers": [{"event": "contact.updated", "if": comparison}], "steps": steps}


def nested(depth: int, width: int = 2) -> dict[str, Any]:
    """Branches within branches: `width` steps on each way of every level."""

    def steps(level: int, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [
            {"id": f"{name}m{number}", "kind": "send_message", "text": f"Message {number} of {name}"}
            for number in range(width)
        ]
        if level < depth:
            ways = {"then": steps(level + 1, f"{name}t"), "else": steps(level + 1, f"{name}e") if level < 3 else []}
            found.append({"id": f"{name}b", "kind": "branch", "if": IS_VIP, **ways})
        return found

    return {"steps": steps(1, "s")}


def _filled(given: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Those of the fields that steps of its kind have; the tag of an event goes with some events only."""
    kind = STEP_KINDS[given["kind"]]
    return {name: value for name, value in fields.items() if name in kind.fields and name not in kind.trigger}


def _inside(given: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The steps inside the step, copied so that they can be changed."""
    found = []
    for name, value in given.items():
        if name in STEP_KINDS[kind].lists:
            given[name] = [dict(each) for each in value]
            found += given[name]
        elif name == STEP_KINDS[kind].arms:
            given[name] = [arm | {"steps": [dict(each) for each in arm["steps"]]} for arm in value]
            found += [each for arm in given[name] for each in arm["steps"]]
    return found
