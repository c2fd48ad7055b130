"""An automation of a flower shop that many contacts have gone through, and whose second version sells more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.lib import ids
from tests.browser import seeds
from tests.browser.services import Service, Workspace

GOAL = {"event": "sale.recorded", "within_seconds": 7 * 24 * 60 * 60}
HELLO = "Hello {{ contact.first_name }}, welcome to Lovelace Flowers!"
BUTTONS = [{"id": name.lower(), "label": name} for name in ("Flowers", "Plants")]
# By version and step: how often each was counted, in the way that the service counts runs.
COUNTED: Mapping[int, Mapping[str, Mapping[str, int]]] = {
    1: {
        "": {"completed": 604, "failed": 9, "goals": 61, "goal_after:51": 34, "goal_after:57": 27},
        "hello": {"entered": 613, "left": 604, "failed": 9},
        "coupon": {"entered": 604, "left": 604, "arm:ten": 310, "arm:fifteen": 294}
        | {"goal_arm:ten": 22, "goal_arm:fifteen": 39},
    },
    2: {
        "": {"completed": 741, "waiting": 65, "failed": 12, "goals": 141, "goal_after:48": 83, "goal_after:56": 58},
        "hello": {"entered": 818, "left": 806, "failed": 12},
        "taste": {"entered": 806, "left": 741, "waiting": 65, "arm:otherwise": 102},
        "coupon": {"entered": 741, "left": 741, "arm:ten": 372, "arm:fifteen": 369}
        | {"goal_arm:ten": 48, "goal_arm:fifteen": 93},
        "ten": {"entered": 372, "left": 372},
        "fifteen": {"entered": 369, "left": 369},
    },
}


def make_coupons(service: Service, workspace: Workspace) -> str:
    """Publishes two versions, counts their runs, and returns the automation's identifier."""
    caller = workspace.caller()
    for name in seeds.NAMES:  # before it is published, which would start it for them
        seeds.make_contact(caller, name)
    body = {"name": "Welcome, with a coupon", "goal": GOAL, "definition": _definition(1)}
    automation_id = str(caller.apply("POST", "automations", body).data["id"])
    caller.apply("POST", f"automations/{automation_id}/publish")
    caller.apply("PATCH", f"automations/{automation_id}", {"definition": _definition(2)})
    caller.apply("POST", f"automations/{automation_id}/publish")
    for row in _counts():
        service.query(
            "INSERT INTO automation_deltas (id, workspace_id, automation_id, version, step, key, amount, hour)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, date_trunc('hour', now(), 'UTC'))",
            *(ids.new("dlt"), workspace.id, automation_id, *row),
        )
    return automation_id


def _definition(version: int) -> dict[str, Any]:
    taste = {"id": "taste", "kind": "ask", "text": "What do you like?", "format": "choice", "buttons": BUTTONS}
    arms = [
        {"name": name, "percent": 50, "steps": [_message(name, f"{percent} % off with the code {name.upper()}.")]}
        for name, percent in (("ten", 10), ("fifteen", 15))
    ]
    hello = HELLO if version > 1 else "Welcome!"
    question = [{**taste, "timeout_seconds": 24 * 60 * 60}] if version > 1 else []
    split = {"id": "coupon", "kind": "split", "arms": arms}
    return {"triggers": [{"event": "contact.created"}], "steps": [_message("hello", hello), *question, split]}


def _message(step_id: str, text: str) -> dict[str, Any]:
    return {"id": step_id, "kind": "send_message", "text": text}


def _counts() -> Iterator[tuple[int, str, str, int]]:
    for version, steps in COUNTED.items():
        for step, counted in steps.items():
            for key, amount in counted.items():
                yield version, step, key, amount
