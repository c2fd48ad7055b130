"""`repeat`: repeats a list of steps, while a condition holds, or for each element of a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.domain.automations.steps.base import Done, Entry, Outcome, StepContext, StepKind, Words, whole_number
from app.domain.triggers import conditions
from app.domain.triggers.plain_words import LONGEST_TEXT, Given, Names, condition, cut, many, value_of
from app.errors import Fault

MOST_ROUNDS = 100


def begin(context: StepContext) -> Outcome:
    """Starts the next round, which leads back here. After the last round, continues."""
    step = context.step
    former = context.run.saved.get(step.id, {})
    rounds = former["index"] + 1 if former.get("is_under_way") else 0
    items = _items(context)
    most = min(step.fields.get("times", MOST_ROUNDS), MOST_ROUNDS if items is None else len(items))
    if rounds >= most or ("while" in step.fields and not context.holds(step.fields["while"])):
        times = "once" if rounds == 1 else f"{rounds} times"
        return Done(f"The steps were taken {times}.", output=rounds, saved={step.id: {"rounds": rounds}})
    state = {"index": rounds, "item": None if items is None else items[rounds], "is_under_way": True}
    return Done(f"Round {rounds + 1} begins.", output=state["item"], saved={step.id: state}, to="steps")


def check(step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields a fault if the step does not say how often to repeat."""
    if not step.keys() & {"times", "while", "over"}:
        yield Fault(pointer, "Give 'times', 'while' or 'over'.")


def _items(context: StepContext) -> list[Any] | None:
    """Returns the elements of `over`, [] for anything but a list; None if the step has no `over`."""
    over = context.step.fields.get("over")
    if over is None:
        return None
    found = conditions.value_at(over, context.variables) if isinstance(over, str) else over
    return found[:MOST_ROUNDS] if isinstance(found, list) else []


def _words(step: Given, names: Names) -> Words:
    how = []
    if "over" in step:
        over = step["over"]
        how.append(f"for each of {value_of(over)}" if isinstance(over, str) else f"for each of {len(over)} elements")
    if "times" in step:
        how.append(f"{many(step['times'], 'time')}{' at most' if how or 'while' in step else ''}")
    if "while" in step:
        how.append(f"as long as {condition(step['while'])}")
    return Words("Repeat", cut(", ".join(how), 2 * LONGEST_TEXT))


KIND = StepKind(
    entry=Entry("Repeat steps", "repeat", members={"times": 2}),
    words=_words,
    way=lambda step, key: ("Each round", "In each round"),
    description="Takes its steps several times: `times`, as long as the condition `while` holds before a round, or once"
    f" for each element of `over`; at most {MOST_ROUNDS} times. `steps.<id>` has `index`, which counts rounds from 0,"
    " and `item`, the element; in the end, `rounds` is how many there were.",
    fields={
        "times": whole_number(0, MOST_ROUNDS, "How many rounds there are at most."),
        "while": {"description": "The condition for a further round."},
        "over": {
            "type": ["array", "string"],
            "items": {},
            "maxItems": MOST_ROUNDS,
            "description": "A list, or the path of one, such as `trigger.variables.items`.",
        },
        "steps": {"description": "The steps of a round."},
    },
    required=("steps",),
    conditions=("while",),
    paths=("over",),
    lists=("steps",),
    loops=True,
    results=("index", "item", "rounds"),
    check=check,
    begin=begin,
    example={
        "over": "trigger.variables.items",
        "steps": [{"id": "mark", "kind": "add_tag", "tag": "bought-{{ steps.step.item }}"}],
    },
)
