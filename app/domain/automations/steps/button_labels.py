"""Buttons of a step's message. Their labels are templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.domain.automations.steps.base import Moment, StepFailed
from app.domain.channels import buttons
from app.domain.channels.buttons import MOST_LABEL
from app.errors import Fault
from app.lib import graphemes

FIELD: Mapping[str, Any] = {
    "type": "array",
    "minItems": 1,
    "maxItems": buttons.MOST,
    "items": {
        "type": "object",
        "required": ["id", "label"],
        "additionalProperties": False,
        "properties": {
            "id": {"type": "string", "pattern": buttons.ID, "x-form": buttons.ID_FORM},
            "label": {"type": "string", "minLength": 1},
        },
    },
    "description": f"Answers to pick from, each with an `id` and a `label` of {MOST_LABEL} characters; a longer one"
    " that a template makes is cut, and numbered if another would be the same.",
}
_GAP = re.compile(r"[\x00-\x1f\x7f-\x9f\s]+")


def faults(given: Sequence[Mapping[str, str]], pointer: str) -> Iterator[Fault]:
    """Yields faults of repeated buttons, and of labels without templates that are empty or too long."""
    for index, button in enumerate(given):
        label = button["label"]
        if "{" not in label and not 0 < len(_in_a_line(label)) <= MOST_LABEL:
            yield Fault(f"{pointer}/{index}/label", f"Give a label of 1 to {MOST_LABEL} characters.")
    for fault in buttons.repeated(given):
        yield Fault(pointer + fault.pointer, fault.detail)


def rendered(moment: Moment) -> list[dict[str, str]]:
    """Returns the step's buttons with one-line labels, cut to MOST_LABEL. Raises StepFailed."""
    given = moment.step.fields.get("buttons", ())
    made = [{"id": each["id"], "label": _in_a_line(moment.render(each["label"]))} for each in given]
    for each in made:
        if not each["label"]:
            raise StepFailed("template", f"The label of the button '{each['id']}' is empty.")
    for fault in buttons.repeated(made):
        label = _cut(made[int(fault.pointer.split("/")[1])]["label"])
        raise StepFailed("template", f"Two buttons have the label '{label}'.")
    labels = _all_cut([each["label"] for each in made])
    return [each | {"label": label} for each, label in zip(made, labels, strict=True)]


def _in_a_line(text: str) -> str:
    return _GAP.sub(" ", text).strip()


def _all_cut(labels: Sequence[str]) -> list[str]:
    """Cuts long labels to MOST_LABEL. Numbers a label that would otherwise equal another."""
    taken = {buttons.folded(label) for label in labels if len(label) <= MOST_LABEL}
    made = []
    for label in labels:
        cut, number = _cut(label), 1
        while len(label) > MOST_LABEL and buttons.folded(cut) in taken:
            number += 1
            cut = _cut(label, f" {number}")
        taken.add(buttons.folded(cut))
        made.append(cut)
    return made


def _cut(label: str, mark: str = "") -> str:
    return label if len(label) <= MOST_LABEL else f"{graphemes.cut(label, MOST_LABEL - 1 - len(mark)).rstrip()}…{mark}"
