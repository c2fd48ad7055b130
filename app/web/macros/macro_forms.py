"""The form of a macro: a row for each action, with a choice and a text that depend on its kind."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.conversations import snoozes
from app.domain.macros import macros
from app.domain.macros.macro_actions import ACTION_KINDS, ME
from app.errors import Conflict, Fault, Invalid
from app.web import forms
from app.web.forms import typed_all

LABELS: Mapping[str, str] = {
    "reply": "Answer the contact",
    "note": "Add a note",
    "assign": "Assign the conversation",
    "label": "Add labels",
    "unlabel": "Remove labels",
    "snooze": "Snooze the conversation",
    "close": "Close the conversation",
    "start_automation": "Start an automation",
}
# The units of a snooze in seconds. With None, the text is a time.
UNITS: Mapping[str, int | None] = {"minutes": 60, "hours": 60 * 60, "days": 24 * 60 * 60, "seconds": 1, "until": None}
NOBODY = "nobody"
_PRESSED = re.compile(r"(remove|up|down)-(\d{1,2})")


@dataclass(frozen=True, slots=True)
class Row:
    """An action as entered in the form. `errors` are by field; under "", those of the whole action."""

    kind: str
    choice: str = ""
    text: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)


def typed_rows() -> list[Row]:
    """Returns the form's rows of known kinds; at most one too many, which validation refuses."""
    fields = zip(typed_all("kind"), typed_all("choice"), typed_all("text"), strict=False)
    found = [Row(*each) for each in fields if each[0] in ACTION_KINDS]
    return found[: macros.MOST_ACTIONS + 1]


def pressed(rows: Sequence[Row], button: str, kind: str) -> list[Row] | None:
    """Returns the rows with one added, removed or moved by the button; None for other buttons."""
    after = list(rows)
    if button == "add":
        return [*after, Row(kind)] if kind in ACTION_KINDS and len(after) < macros.MOST_ACTIONS else after
    if (found := _PRESSED.fullmatch(button)) is None:
        return None
    place = int(found[2])
    if place < len(after):
        row = after.pop(place)
        if found[1] != "remove":
            after.insert(max(0, place + (-1 if found[1] == "up" else 1)), row)
    return after


def row_of(action: Mapping[str, Any]) -> Row:
    """Returns the row that shows an action of the API."""
    kind = action["kind"]
    if kind in ("label", "unlabel"):
        return Row(kind, text="\n".join(action["labels"]))
    if kind == "assign":
        return Row(kind, action["assignee_id"] or NOBODY)
    if kind == "start_automation":
        return Row(kind, action["automation_id"])
    if kind == "snooze":
        return Row(kind, *_duration(action["seconds"])) if "seconds" in action else Row(kind, "until", action["until"])
    return Row(kind, action.get("saved_reply_id", ""), action.get("text", ""))


def actions_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Returns the actions of the rows, as in the API. Raises Invalid for empty or unclear rows."""
    if not rows:
        raise Invalid(Fault("/actions", "Add at least one action."))
    found, faults = [], []
    for place, row in enumerate(rows):
        try:
            found.append({"kind": row.kind} | _members_of(row))
        except ValueError as error:
            faults.append(Fault(f"/actions/{place}", str(error)))
    if faults:
        raise Invalid(*faults)
    return found


def errors_of(error: Invalid | Conflict, rows: Sequence[Row]) -> tuple[dict[str, str], list[Row]]:
    """Returns the form's errors by field, and the rows with their own errors."""
    if isinstance(error, Conflict):
        return {"": error.detail}, list(rows)
    of_rows: dict[int, dict[str, str]] = defaultdict(dict)
    others = []
    for fault in error.faults:
        _, name, *inner = [*fault.pointer.split("/"), ""]
        if name == "actions" and inner[0]:
            of_rows[int(inner[0])].setdefault(_field_of(inner[1]), fault.detail)
        else:
            others.append(fault)
    of_form = forms.errors_of(Invalid(*others)) if others else {}
    return of_form, [replace(row, errors=of_rows.get(place, {})) for place, row in enumerate(rows)]


def summary_of(actions: Sequence[Mapping[str, Any]]) -> str:
    """Describes a macro's first four actions in words, and counts the rest."""
    said = ", then ".join(LABELS[action["kind"]].lower() for action in actions[:4])
    return said[:1].upper() + said[1:] + (f" and {len(actions) - 4} more" if len(actions) > 4 else "")


def _field_of(member: str) -> str:
    """Returns the field of a row for a member of an action; "" for the row as a whole."""
    return "choice" if member.endswith("_id") else "text" if member else ""


def _duration(seconds: int) -> tuple[str, str]:
    """Returns the largest unit that divides the seconds, and the number of units."""
    units = [(unit, size) for unit, size in UNITS.items() if size and seconds % size == 0]
    unit, size = max(units, key=lambda each: each[1])
    return unit, str(seconds // size)


def _members_of(row: Row) -> dict[str, Any]:
    """Returns the members of the row's action besides its kind. Raises ValueError for the user to read."""
    if row.kind == "snooze":
        return _snooze(row)
    if row.kind in ("label", "unlabel"):
        labels = [line.strip() for line in row.text.split("\n") if line.strip()]
        if not labels:
            raise ValueError("Write a label.")
        return {"labels": labels}
    if row.kind == "assign":
        if not row.choice:
            raise ValueError("Choose who gets the conversation.")
        return {"assignee_id": None if row.choice == NOBODY else row.choice}
    if row.kind == "start_automation":
        if not row.choice:
            raise ValueError("Choose an automation.")
        return {"automation_id": row.choice}
    if row.kind == "note":
        return {"text": _written(row, "Write the text of the note.")}
    if row.kind == "reply":
        if row.choice and row.text.strip():
            raise ValueError("Choose a saved reply or write a text, not both.")
        if row.choice:
            return {"saved_reply_id": row.choice}
        return {"text": _written(row, "Choose a saved reply, or write the text of the answer.")}
    return {}


def _snooze(row: Row) -> dict[str, Any]:
    if row.choice == "until":
        return {"until": _written(row, "Write until when.").strip()}
    size, text = UNITS.get(row.choice), row.text.strip()
    if size is None or not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) < 1:
        raise ValueError("Write for how long, as a whole number.")
    seconds = int(text) * size
    if seconds > snoozes.MOST_DAYS * 24 * 60 * 60:
        raise ValueError(f"Snooze for {snoozes.MOST_DAYS} days at most.")
    return {"seconds": seconds}


def _written(row: Row, otherwise: str) -> str:
    if not row.text.strip():
        raise ValueError(otherwise)
    return row.text


assert LABELS.keys() == ACTION_KINDS.keys()
assert ME != NOBODY
