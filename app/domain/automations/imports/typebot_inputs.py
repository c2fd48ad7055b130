"""Converts Typebot's inputs to questions, and the connections from their buttons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.domain.automations.imports.buttons_of_messages import buttons_of
from app.domain.automations.imports.flow_graphs import Element, Link, Step
from app.domain.automations.imports.sources import listed, mapping, text
from app.domain.automations.imports.typebot_blocks import Block, Reading
from app.domain.automations.steps.ask import MOST_ATTEMPTS
from app.domain.channels import buttons

FORMATS: Mapping[str, str] = {
    "text input": "text",
    "number input": "number",
    "email input": "email",
    "url input": "text",
    "date input": "date",
    "time input": "text",
    "phone number input": "phone",
    "rating input": "number",
    "choice input": "choice",
    "picture choice input": "choice",
}
_UNCHECKED = {"url input": "an address", "time input": "a time of day"}


def is_input(block: Block) -> bool:
    """Whether the block is an input that has an equivalent step."""
    return text(block.get("type")) in FORMATS


def ask(
    element: Element, block: Block, question: Mapping[str, Any], reading: Reading, links: Mapping[str, Link]
) -> Element:
    """Makes the element ask a block's question; returns the element that follows the answer.

    `question`: text and files of the message before it. `links`: connections from the block, by button; "" for the
    block's own.
    """
    kind, options = text(block.get("type")), mapping(block.get("options"))
    format_, fields = FORMATS[kind], dict(question)
    items = listed(block.get("items"), "'items'") if format_ == "choice" else []
    labels = {text(each.get("id")): reading.template(each.get("content") or each.get("title")) for each in items}
    _warn(kind, options, items, reading)
    is_open = bool(options.get("isMultipleChoice") or options.get("dynamicVariableId") or options.get("dynamicItems"))
    if format_ == "choice" and (is_open or not 0 < len(labels) <= buttons.MOST):
        format_ = "text"
        fields["text"] = "\n".join([fields.get("text", ""), *(f"- {each}" for each in labels.values() if each)]).strip()
    elif format_ == "choice":
        fields["buttons"] = buttons_of(list(labels.values()), reading.lose)
    kind = "ask" if fields.get("text") or format_ != "text" else "wait_for_reply"
    if kind == "ask" and not fields.get("text"):
        reading.lose("It has no text before it, so it asks “Please answer.”")
        fields["text"] = "Please answer."
    if format_ != "text":
        fields |= {"format": format_, "attempts": MOST_ATTEMPTS}
        if retry := reading.template(options.get("retryMessageContent")):
            fields["retry_text"] = retry
    step = reading.step(kind, **{name: value for name, value in fields.items() if value})
    element.steps.append(step)
    chosen = Element(f"{element.key}/answer", element.where, [*element.sources, *labels])
    chosen.steps += reading.set(options.get("variableId"), _answer(step))
    _lead(chosen, step, labels, links, is_choice=format_ == "choice")
    element.shape, element.links = "otherwise", [Link(None), Link(chosen.key)]
    return chosen


def _warn(kind: str, options: Mapping[str, Any], items: list[Mapping[str, Any]], reading: Reading) -> None:
    if kind in _UNCHECKED:
        reading.lose(f"That the answer is {_UNCHECKED[kind]} is not checked.")
    if kind == "rating input":
        reading.lose(f"That the answer is at most {text(options.get('length')) or 10} is not checked.")
    if options.get("isMultipleChoice"):
        reading.lose("Only one answer can be picked, so the answers are listed in the text.")
    if options.get("dynamicVariableId") or options.get("dynamicItems"):
        reading.lose("Its answers come from a variable and are left out.")
    if len(items) > buttons.MOST:
        reading.lose(f"A message has at most {buttons.MOST} buttons, so the answers are listed in the text.")
    if kind == "picture choice input":
        reading.lose("Buttons have no pictures.")
    if any(mapping(each.get("displayCondition")).get("isEnabled") for each in items):
        reading.lose("Its buttons are always shown, whatever the conditions.")


def _answer(step: Step) -> str:
    """Returns the template for the answer's variable; for a button, its full label."""
    at = f"steps.{step['id']}"
    if step.get("format") != "choice":
        return f"{{{{ {at}.{'value' if 'format' in step else 'text'} }}}}"
    named = [each for each in step.get("buttons", ()) if each["id"].startswith("option_")]
    if not named:
        return f"{{{{ {at}.value }}}}"
    cases = "".join(f'{{% when "{each["id"]}" %}}{each["label"]}' for each in named)
    return f"{{% case {at}.button_id %}}{cases}{{% else %}}{{{{ {at}.value }}}}{{% endcase %}}"


def _lead(
    chosen: Element, step: Step, labels: Mapping[str, str], links: Mapping[str, Link], *, is_choice: bool
) -> None:
    """Adds the answer's connections: one per button, and one for all others."""
    last = links.get("", Link(None))
    if not any(key in links for key in labels):
        chosen.links = [last] if "" in links else []
        return
    chosen.shape, chosen.is_exclusive = "cases", is_choice
    at = f"steps.{step['id']}"
    offered = {_folded(each["id"]): each["id"] for each in step.get("buttons", ())}
    for number, (key, label) in enumerate(labels.items(), 1):
        if key not in links:
            continue
        link = links[key]
        link.condition = {"field": f"{at}.text", "is": "contains", "value": label or str(number)}
        if is_choice:
            known = offered.get(_folded(label)) or f"option_{number}"
            link.condition = {"field": f"{at}.button_id", "is": "equals", "value": known}
        chosen.links.append(link)
    if is_choice and len(chosen.links) == len(step["buttons"]):
        chosen.links[-1].condition = None  # one of the buttons is always pressed
    else:
        chosen.links.append(last)


def _folded(label: str) -> str:
    return " ".join(label.split())
