"""`split`: continues with a random arm, always the same one for a contact."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.domain.automations.steps.base import Done, Entry, Outcome, StepContext, StepKind, Words
from app.domain.triggers.plain_words import Given, Names, cut
from app.errors import Fault

MOST_ARMS = 20


def begin(context: StepContext) -> Outcome:
    """Continues with the contact's arm."""
    run, step = context.run, context.step
    name = arm_of(f"{run.automation_id}/{step.id}/{context.contact.id}", step.fields["arms"])
    return Done(f"The contact gets the arm '{name}'.", output=name, saved={step.id: {"arm": name}}, to=name)


def arm_of(drawn: str, arms: Sequence[Mapping[str, Any]]) -> str:
    """Returns the name of the arm that a hash of `drawn` picks.

    The same text always gets the same arm. The probability of an arm is its percentage.
    """
    number = int.from_bytes(hashlib.sha256(drawn.encode()).digest()[:8]) / 2**64 * 100
    for arm in arms:
        number -= arm["percent"]
        if number < 0:
            return str(arm["name"])
    return str(next(arm["name"] for arm in reversed(arms) if arm["percent"] > 0))


def check(step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields the faults of the arms' names, and of the sum of percentages."""
    arms = step["arms"]
    names = [arm["name"] for arm in arms]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Fault(f"{pointer}/arms/{index}/name", "Change this: another arm has the same name.")
    total = round(sum(arm["percent"] for arm in arms), 6)
    if total != 100:
        yield Fault(f"{pointer}/arms", f"The percentages add up to {total:g}. Make them add up to 100.")


def _words(step: Given, names: Names) -> Words:
    shares = [arm["percent"] for arm in step["arms"]]
    if len(set(shares)) == 1:
        return Words("Split at random", f"every arm {shares[0]:g} %")
    return Words("Split at random", cut(", ".join(f"{arm['name']} {arm['percent']:g} %" for arm in step["arms"]), 120))


def _way(step: Given, key: str) -> tuple[str, str]:
    percent = next(arm.get("percent") for arm in step["arms"] if arm.get("name") == key)
    label = f"{key} · {percent:g} %" if isinstance(percent, (int, float)) else key
    return cut(label, 40), f"The arm {key}" + (f", {percent:g} %" if percent is not None else "")


_HALVES = [{"name": name, "percent": 50, "steps": []} for name in "ab"]
KIND = StepKind(
    entry=Entry("Split at random", "shuffle", members={"arms": _HALVES}),
    words=_words,
    way=_way,
    description="Continues with the steps of one of several arms, chosen by chance: each arm as often as its percentage"
    " says, and for a contact always the same. `steps.<id>.arm` is its name. After each arm comes the step after the"
    " split.",
    fields={
        "arms": {
            "type": "array",
            "minItems": 2,
            "maxItems": MOST_ARMS,
            "items": {
                "type": "object",
                "required": ["name", "percent"],
                "additionalProperties": False,
                "properties": {
                    "name": {
                        "type": "string",
                        "pattern": "^[A-Za-z0-9_-]{1,64}$",
                        "x-form": "a name of 1 to 64 letters, digits, '_' and '-'",
                    },
                    "percent": {"type": "number", "minimum": 0, "maximum": 100},
                    "steps": {"type": "array"},
                },
            },
            "description": "Each with a `name`, a `percent` and its `steps`. The percentages add up to 100.",
        },
    },
    required=("arms",),
    arms="arms",
    results=("arm",),
    check=check,
    begin=begin,
    example={
        "arms": [
            {"name": "short", "percent": 50, "steps": [{"id": "hi", "kind": "send_message", "text": "Hi!"}]},
            {"name": "none", "percent": 50, "steps": []},
        ]
    },
)
