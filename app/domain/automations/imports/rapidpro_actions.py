"""Converts RapidPro's actions to steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.domain.automations.imports.buttons_of_messages import buttons_of, files_of
from app.domain.automations.imports.flow_graphs import Step
from app.domain.automations.imports.rapidpro_expressions import result_name, template_of
from app.domain.automations.imports.sources import Ledger, NameTable, listed, mapping, name_of, text, texts
from app.domain.automations.steps.templated_values import with_texts

Action = Mapping[str, Any]


@dataclass(slots=True)
class Reading:
    """The context of reading actions: names of steps, and the action's place for noting losses."""

    names: NameTable
    ledger: Ledger
    source: str = ""
    where: str = ""
    uses_categories: bool = False

    def lose(self, why: str) -> None:
        """Notes that part of the action has no equivalent."""
        self.ledger.lose(self.source, self.where, why)

    def template(self, value: Any) -> str:
        """Converts the text to one of our templates."""
        return template_of(text(value), self.lose)

    def step(self, wanted: str, kind: str, **fields: Any) -> Step:
        """Returns a step with a unique identifier."""
        return {"id": self.names.fresh(wanted), "kind": kind, **fields}

    def set(self, name: str, value: Any) -> Step:
        """Returns a step that sets a variable."""
        return self.step(f"set_{name}"[:50], "set_variable", name=name, value=value)


def steps_of(action: Action, reading: Reading) -> list[Step]:
    """Converts an action to steps. If there is no equivalent, notes the loss and returns []."""
    kind = text(action.get("type"))
    if kind in _STEPS:
        return _STEPS[kind](action, reading)
    reading.lose(_WHY.get(kind, f"There is no step like the action '{kind[:60]}'."))
    return []


def _send(action: Action, reading: Reading) -> list[Step]:
    files = texts(action.get("attachments"))
    attachments = files_of([reading.template(each.partition(":")[2]) for each in files], reading.lose)
    said = reading.template(action.get("text")) or ("A file for you" if attachments else "")
    replies = action.get("quick_replies") or []
    labels = [text(mapping(each).get("text", each)) for each in replies] if isinstance(replies, list) else []
    fields = {
        "buttons": buttons_of([reading.template(each) for each in labels], reading.lose),
        "attachments": attachments,
    }
    if action.get("templating") or action.get("template"):
        reading.lose("Its WhatsApp template has to be chosen again.")
    if action.get("all_urns"):
        reading.lose("It is sent in the contact's latest conversation only, not to all addresses.")
    if not said.strip():
        reading.lose("The message has no text.")
        return []
    return [reading.step("say", "send_message", text=said, **{name: value for name, value in fields.items() if value})]


def _set_field(action: Action, reading: Reading) -> list[Step]:
    field = mapping(action.get("field"))
    key = name_of(text(field.get("key")) or text(field.get("name")), "field")
    return [_field(reading, f"custom_fields.{key}", action.get("value"))]


def _set_named(field: str, member: str) -> Callable[[Action, Reading], list[Step]]:
    return lambda action, reading: [_field(reading, field, action.get(member))]


def _field(reading: Reading, field: str, value: Any) -> Step:
    name = f"set_{field.removeprefix('custom_fields.')}"[:50]
    return reading.step(name, "set_field", field=field, value=reading.template(value) or None)


def _urn(action: Action, reading: Reading) -> list[Step]:
    fields = {"tel": "phone", "mailto": "email", "ext": "external_id"}
    scheme = text(action.get("scheme"))
    if scheme not in fields:
        reading.lose(f"Contacts have no address of the kind '{scheme[:40]}'.")
        return []
    return [_field(reading, fields[scheme], action.get("path"))]


def _groups(kind: str) -> Callable[[Action, Reading], list[Step]]:
    def make(action: Action, reading: Reading) -> list[Step]:
        if action.get("all_groups"):
            reading.lose("There is no step that removes all tags.")
            return []
        return [
            reading.step(kind, kind, tag=tag[:100])
            for group in listed(action.get("groups"), "'groups' of an action")
            if (tag := reading.template(group.get("name") or group.get("name_match")).strip())
        ]

    return make


def _labels(action: Action, reading: Reading) -> list[Step]:
    labels = [reading.template(each.get("name")) for each in listed(action.get("labels"), "'labels' of an action")]
    return [reading.step("label", "label_conversation", label=label) for label in labels if label.strip()]


def _result(action: Action, reading: Reading) -> list[Step]:
    name = result_name(text(action.get("name")))
    made = [reading.set(name, reading.template(action.get("value")))]
    category = text(action.get("category"))
    return [*made, reading.set(f"{name}_category", category)] if category and reading.uses_categories else made


def _local(action: Action, reading: Reading) -> list[Step]:
    name, value = result_name(text(action.get("local"))), reading.template(action.get("value"))
    if action.get("operation") == "increment":
        by = value if value.lstrip("-").isdigit() else "1"
        value = f"{{{{ run.variables.{name} | default: 0 | plus: {by} }}}}"
    elif action.get("operation") == "clear":
        value = ""
    return [reading.set(name, value)]


def _webhook(action: Action, reading: Reading) -> list[Step]:
    headers = {name[:200]: reading.template(value) for name, value in mapping(action.get("headers")).items()}
    fields: dict[str, Any] = {
        "method": text(action.get("method")).upper(),
        "address": reading.template(action.get("url")),
    }
    if headers:
        fields["headers"] = headers
    if body := text(action.get("body")):
        fields["body"] = _body(body, reading)
    if fields["address"].startswith("http://"):
        fields["address"] = "https://" + fields["address"].removeprefix("http://")
        reading.lose("The address began with http://; here it begins with https://.")
    request = reading.step("request", "http_request", **fields, save_as="webhook")
    at = f"steps.{request['id']}"
    made = [request, reading.set("webhook_status", f"{{{{ {at}.status | default: 0 }}}}")]
    if result := text(action.get("result_name")):
        name = result_name(result)
        outcome = f"{{% if {at}.error or {at}.status > 299 %}}Failure{{% else %}}Success{{% endif %}}"
        made += [reading.set(name, f"{{{{ {at}.status }}}}"), reading.set(f"{name}_category", outcome)]
    return made


def _body(body: str, reading: Reading) -> Any:
    """Converts a JSON body to JSON with templates as strings, and any other to one template."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return reading.template(body)
    return with_texts(value, reading.template) if isinstance(value, (dict, list)) else reading.template(body)


def _ticket(action: Action, reading: Reading) -> list[Step]:
    said = [text(mapping(action.get("topic")).get("name")), reading.template(action.get("body") or action.get("note"))]
    reading.lose("A ticket becomes a note in the conversation. Add a step that assigns it to a member.")
    note = "\n".join(each for each in said if each.strip())
    return [reading.step("ticket", "add_note", text=note or "A ticket was opened here.")]


_STEPS: Mapping[str, Callable[[Action, Reading], list[Step]]] = {
    "send_msg": _send,
    "set_contact_field": _set_field,
    "set_contact_name": _set_named("first_name", "name"),
    "set_contact_language": _set_named("locale", "language"),
    "set_contact_timezone": _set_named("timezone", "timezone"),
    "add_contact_urn": _urn,
    "add_contact_groups": _groups("add_tag"),
    "remove_contact_groups": _groups("remove_tag"),
    "add_input_labels": _labels,
    "set_run_result": _result,
    "set_run_local": _local,
    "call_webhook": _webhook,
    "open_ticket": _ticket,
}
_OTHER_FLOW = "It starts another flow. Import that too, then add a step that starts the automation."
_WHY: Mapping[str, str] = {
    "enter_flow": _OTHER_FLOW,
    "start_session": _OTHER_FLOW,
    "send_email": "There is no step that sends an e-mail. A request to a server of yours can.",
    "send_broadcast": "There is no step that writes to other contacts.",
    "transfer_airtime": "There is no step that transfers airtime.",
    "call_llm": "There is no step that asks a language model. A request to a server of yours can.",
    "call_resthook": "There are no resthooks. Use a request, or the webhooks of the workspace.",
    "call_classifier": "There are no classifiers.",
    "set_contact_channel": "There is no preferred channel of a contact. A message can name one.",
    "set_contact_status": "A contact cannot be blocked by a step.",
    "say_msg": "There are no calls.",
    "play_audio": "There are no calls.",
}
