"""Known answers: the values that a question's buttons can return.

Finds conditions that compare an answer with any other value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from app.domain.automations.steps.ask import CHOICE
from app.domain.channels.buttons import folded
from app.domain.triggers import conditions
from app.domain.triggers.comparisons import COMPARISONS, text
from app.lib.nearest_names import nearest

# The answers that buttons can give: by path, such as `steps.size.value`, then by the answer as conditions compare it.
# Each is a pair of the answer and the button's other name: a label and an identifier, or the reverse.
Answers: TypeAlias = Mapping[str, Mapping[str, tuple[str, str]]]

# For each operator that can be checked, the operator that compares a value with one answer.
_CHECKED = {
    **{name: name for name in ("equals", "contains", "starts_with", "has_word", "matches")},
    **{"one_of": "equals", "not_equals": "equals", "not_contains": "contains"},
}


def of_steps(steps: Iterable[Mapping[str, Any]]) -> Answers:
    """Returns the answers at paths that only buttons can set. Leaves out labels with templates."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    open_names: set[str] = set()
    for step in steps:
        names = [step[key] for key in ("id", "save_as") if isinstance(step.get(key), str)]
        offered = _offered(step)
        if not offered:
            open_names.update(f"steps.{name}" for name in names)
            continue
        by_label = [(label, button_id) for button_id, label in offered]
        paths = {f"steps.{step.get('id')}.button_id": offered}
        if not any("{" in label for label, _ in by_label):
            paths |= {f"steps.{step.get('id')}.value": by_label, f"steps.{step.get('save_as')}": by_label}
        for path, given in paths.items():
            of_path = found.setdefault(path, {})
            for answer, other in given:
                of_path.setdefault(text(answer), (answer, other))
    return {path: given for path, given in found.items() if not {path, path.rpartition(".")[0]} & open_names}


def faults(condition: Any, answers: Answers, spend: Callable[[int], None]) -> Iterator[tuple[str, str]]:
    """Yields (pointer, sentence) for each value in the condition that no button can return.

    The condition must be valid otherwise. `spend` is called with the number of answers that a value is compared with.
    """
    for pointer, comparison in conditions.comparisons(condition):
        given, how = answers.get(comparison["field"]), _CHECKED.get(comparison["is"])
        if not given or how is None or "value" not in comparison:
            continue
        value = comparison["value"]
        for place, each in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if how != "matches" and text(each) in given:
                continue
            spend(len(given))
            if not any(COMPARISONS[how](answer, each) for answer, _ in given.values()):
                at = "" if place is None else f"/{place}"
                yield f"{pointer}/value{at}", _sentence(str(each), [*given.values()])


def _offered(step: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns (identifier, label) of each button of a choice; nothing for any other step."""
    given = step.get("buttons")
    if step.get("kind") != "ask" or step.get("format") != CHOICE or not isinstance(given, list):
        return []
    buttons = [each for each in given if isinstance(each, dict)]
    return [
        (each["id"], " ".join(each["label"].split()))
        for each in buttons
        if isinstance(each.get("id"), str) and isinstance(each.get("label"), str)
    ]


def _sentence(value: str, given: Sequence[tuple[str, str]]) -> str:
    meant = next((answer for answer, other in given if folded(other) == folded(value)), None)
    meant = meant or nearest(value, [answer for answer, _ in given])
    which = f"Did you mean '{meant}'?" if meant else f"There are: {', '.join(repr(answer) for answer, _ in given)}."
    return f"No button of the question gives '{value[:100]}' here. {which}"
