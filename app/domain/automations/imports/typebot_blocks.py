"""Converts Typebot's blocks to steps, except inputs: see `typebot_inputs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.automations.imports.buttons_of_messages import files_of
from app.domain.automations.imports.flow_graphs import Step
from app.domain.automations.imports.sources import Ledger, NameTable, listed, mapping, name_of, quoted, text
from app.domain.automations.imports.typebot_values import Variables, plain, response_path

Block = Mapping[str, Any]


@dataclass(slots=True)
class Reading:
    """The context of reading blocks: names, variables, and the block's place for noting losses."""

    names: NameTable
    variables: Variables
    ledger: Ledger = field(default_factory=Ledger)
    source: str = ""
    where: str = ""
    title: str = ""

    def lose(self, why: str) -> None:
        """Notes that part of the block has no equivalent."""
        self.ledger.lose(self.source, self.where, why)

    def template(self, value: Any) -> str:
        """Converts the text to one of our templates."""
        return self.variables.template(value, self.lose)

    def step(self, kind: str, **fields: Any) -> Step:
        """Returns a step with a unique identifier, named after the group."""
        verb = kind.partition("_")[0]
        return {"id": self.names.fresh(name_of(f"{self.title} {verb}", verb)[:48]), "kind": kind, **fields}

    def set(self, variable_id: Any, value: Any) -> list[Step]:
        """Returns the step that sets a variable; [] if there is no such variable."""
        name = self.variables.of_id(variable_id)
        return [] if name is None else [self.step("set_variable", name=name, value=value)]


def steps_of(block: Block, reading: Reading) -> list[Step]:
    """Converts a block to steps. If there is no equivalent, notes the loss and returns []."""
    kind = text(block.get("type"))
    if kind in _STEPS:
        return _STEPS[kind](block, reading)
    reading.lose(_WHY.get(kind, f"There is no step like the block '{kind[:60]}'."))
    return []


def _say(block: Block, reading: Reading) -> list[Step]:
    content = mapping(block.get("content"))
    said = reading.template(
        plain(content.get("richText")) or text(content.get("plainText")) or text(content.get("html"))
    )
    if not said.strip():
        reading.lose("The text is empty.")
        return []
    return [reading.step("send_message", text=said)]


def _show(block: Block, reading: Reading) -> list[Step]:
    content = mapping(block.get("content"))
    address = reading.template(content.get("url"))
    kind = text(block.get("type"))
    if kind == "embed" or content.get("type") not in (None, "url"):
        reading.lose("It becomes a message with the address.")
        files = []
        address = address or text(content.get("id"))
    else:
        files = files_of([address], reading.lose)
    if files:
        return [reading.step("send_message", text=_CAPTIONS.get(kind, "A file"), attachments=files)]
    return [reading.step("send_message", text=address)] if address.strip() else []


def _set(block: Block, reading: Reading) -> list[Step]:
    options = mapping(block.get("options"))
    kind, name = text(options.get("type")) or "Custom", reading.variables.of_id(options.get("variableId"))
    if name is None:
        reading.lose("It sets no variable.")
        return []
    value: str | None = None
    if kind == "Custom" and not options.get("isCode"):
        value = reading.variables.expression(options.get("expressionToEvaluate"), reading.lose)
    elif kind == "Append value(s)":
        own = f"run.variables.{name}"
        value = f"{{% if {own} %}}{{{{ {own} }}}}, {{% endif %}}{reading.template(options.get('item'))}"
        reading.lose("The list becomes a text with commas.")
    elif kind in _VALUES:
        value = _VALUES[kind]
    if value is None:
        said = quoted(text(options.get("expressionToEvaluate"))) if kind == "Custom" else f"'{kind[:40]}'"
        reading.lose(f"The value {said} has no equivalent.")
        return []
    return reading.set(options.get("variableId"), value)


def _wait(block: Block, reading: Reading) -> list[Step]:
    given = text(mapping(block.get("options")).get("secondsToWaitFor"))
    try:
        seconds = round(float(given))
    except (ValueError, OverflowError):
        reading.lose(f"The time {quoted(given)} is no number of seconds.")
        return []
    return [reading.step("wait", seconds=max(seconds, 0))]


def _redirect(block: Block, reading: Reading) -> list[Step]:
    address = reading.template(mapping(block.get("options")).get("url"))
    if not address.strip():
        reading.lose("It has no address.")
        return []
    reading.lose("Nobody is led to another page. It becomes a message with the address.")
    return [reading.step("send_message", text=address)]


def _request(block: Block, reading: Reading) -> list[Step]:
    options = mapping(block.get("options"))
    webhook = mapping(options.get("webhook"))
    address = reading.template(webhook.get("url"))
    if not address:
        reading.lose("It has no address.")
        return []
    if query := "&".join(f"{key}={value}" for key, value in _pairs(webhook, "queryParams", reading)):
        address += ("&" if "?" in address else "?") + query
    headers = dict(_pairs(webhook, "headers", reading))
    step = reading.step("http_request", method=text(webhook.get("method")) or "POST", address=address)
    if headers:
        step["headers"] = headers
    if body := reading.template(webhook.get("body")):
        step["body"] = body
        step.setdefault("headers", {}).setdefault("Content-Type", "application/json")
    return [step, *_mapped(options, str(step["id"]), reading)]


def _pairs(webhook: Mapping[str, Any], name: str, reading: Reading) -> list[tuple[str, str]]:
    pairs = [(text(each.get("key")), each.get("value")) for each in listed(webhook.get(name), f"'{name}'")]
    return [(key, reading.template(value)) for key, value in pairs if key]


def _mapped(options: Mapping[str, Any], request: str, reading: Reading) -> list[Step]:
    made = []
    for each in listed(options.get("responseVariableMapping"), "'responseVariableMapping'"):
        said = text(each.get("bodyPath"))
        if path := response_path(said):
            made += reading.set(each.get("variableId"), f"{{{{ steps.{request}.{path} }}}}")
        else:
            reading.lose(f"The part {quoted(said)} of the response has no equivalent.")
    return made


_CAPTIONS = {"image": "An image", "video": "A video", "audio": "A recording"}
_VALUES: Mapping[str, str] = {
    "Empty": "",
    "Now": '{{ "now" | date: "%Y-%m-%dT%H:%M:%SZ" }}',
    "Today": '{{ "now" | date: "%Y-%m-%d" }}',
    "Yesterday": '{{ "now" | add_days: -1 | date: "%Y-%m-%d" }}',
    "Tomorrow": '{{ "now" | add_days: 1 | date: "%Y-%m-%d" }}',
    "User ID": "{{ contact.id }}",
    "Result ID": "{{ run.id }}",
    "Contact name": "{{ contact.first_name }}",
    "Phone number": "{{ contact.phone }}",
}
_STEPS: Mapping[str, Callable[[Block, Reading], list[Step]]] = {
    "text": _say,
    **dict.fromkeys(("image", "video", "audio", "embed"), _show),
    "Set variable": _set,
    "Wait": _wait,
    "Redirect": _redirect,
    **dict.fromkeys(("Webhook", "Zapier", "Make.com", "Pabbly"), _request),
}
_MODEL = "There is no step that asks a language model. A request to a server of yours can."
_WHY: Mapping[str, str] = {
    **dict.fromkeys(
        ("openai", "OpenAI", "mistral", "anthropic", "groq", "together-ai", "deepseek", "perplexity"), _MODEL
    ),
    **dict.fromkeys(("open-router", "dify-ai", "chat-node"), _MODEL),
    "Code": "There is no step that runs code.",
    "Email": "There is no step that sends an e-mail. A request to a server of yours can.",
    "Typebot link": "It starts another typebot. Import that too, then add a step that starts the automation.",
    "payment input": "There is no step that takes a payment.",
    "file input": "There is no step that asks for a file.",
    "cards": "There are no cards.",
    "Google Sheets": "There is no step for spreadsheets. A request to a server of yours can.",
    "Google Analytics": "There is no page that could be measured.",
    "Pixel": "There is no page that could be measured.",
    "Chatwoot": "There is no step like it. Assign the conversation to a member instead.",
    "webhook": "There is no step that waits for a request from another server.",
    "Return": "Flows do not return to the one that they were started from.",
}
