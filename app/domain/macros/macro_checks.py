"""Checks of macros: find the faults of their actions, for the person who writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.domain.automations.steps import templated_values, times
from app.domain.conversations import conversations
from app.domain.macros import renderings, saved_replies
from app.domain.macros.macro_actions import KINDS, ME, Kind
from app.domain.people import members
from app.domain.work import schema_checks
from app.errors import Fault, pointer_to
from app.lib.nearest_names import meant
from app.models.automations import Automation
from app.models.jobs import Job
from app.models.saved_replies import SavedReply

Actions = Sequence[Mapping[str, Any]]


def _schema(name: str, kind: Kind) -> dict[str, Any]:
    return {
        "type": "object",
        "description": kind.description,
        "required": ["kind", *kind.required],
        "additionalProperties": False,
        "properties": {"kind": {"type": "string", "const": name}, **kind.fields},
        "example": {"kind": name, **kind.example},
    }


def _choice(kind: Kind) -> dict[str, Any]:
    """Returns the part of the schema that requires exactly one member of `one_of`.

    Only for the OpenAPI document: `_faults` checks the rule itself, and reports it in a sentence.
    """
    if not kind.one_of:
        return {}
    all_of_them = {"type": "object", "required": list(kind.one_of), "properties": {each: {} for each in kind.one_of}}
    none_of_them = {"type": "object", "properties": {each: {"not": {}} for each in kind.one_of}}
    # With the simpler oneOf, generated clients would lose the fields.
    return {"not": {"anyOf": [all_of_them, none_of_them]}}


def _component(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_")) + "Action"


# Components of the OpenAPI document.
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "Action": {
        "description": "An action of a macro; its members depend on its kind.",
        "oneOf": [{"$ref": f"#/components/schemas/{_component(name)}"} for name in KINDS],
        "discriminator": {
            "propertyName": "kind",
            "mapping": {name: f"#/components/schemas/{_component(name)}" for name in KINDS},
        },
    },
    **{_component(name): _schema(name, kind) | _choice(kind) for name, kind in KINDS.items()},
}


def faults(actions: Actions, pointer: str) -> Iterator[Fault]:
    """Yields the faults of the actions, without looking up the resources that they name."""
    for index, action in enumerate(actions):
        yield from _faults(action, f"{pointer}/{index}")


def unknown(workspace_id: str, actions: Actions, pointer: str, *, may_be_queued: bool) -> Iterator[Fault]:
    """Yields a fault for each member, saved reply or published automation that does not exist.

    The actions must be valid. With `may_be_queued`, a resource that an unfinished write concerns is no fault: the write
    may create or publish it.
    """

    def is_queued(resource_type: str, resource_id: str) -> bool:
        return may_be_queued and Job.will_make(workspace_id, resource_type, resource_id)

    named = {name: {each[name] for each in actions if each.get(name)} for name in _REFERENCES}
    known = {
        "assignee_id": {ME} | members.existing(workspace_id, named["assignee_id"]),
        "saved_reply_id": _existing(SavedReply, workspace_id, named["saved_reply_id"]),
        "automation_id": _existing(Automation, workspace_id, named["automation_id"], ~Automation.version.is_null()),
    }
    for index, action in enumerate(actions):
        for name, detail in _REFERENCES.items():
            value = action.get(name)
            if value and value not in known[name] and not is_queued(name.removesuffix("_id"), value):
                yield Fault(f"{pointer}/{index}/{name}", detail)


_REFERENCES = {
    "assignee_id": conversations.NO_MEMBER.detail,
    "saved_reply_id": "There is no such saved reply in this workspace.",
    "automation_id": "There is no such automation in this workspace, or it is not published.",
}


def _existing(model: Any, workspace_id: str, row_ids: set[str], *conditions: Any) -> set[str]:
    if not row_ids:
        return set()
    return {row.id for row in model.in_workspace(workspace_id).where(model.id.in_(row_ids), *conditions)}


def _faults(action: Mapping[str, Any], at: str) -> Iterator[Fault]:
    name = action.get("kind")
    if not isinstance(name, str) or name not in KINDS:
        yield Fault(f"{at}/kind", f"Give the kind of the action.{meant(name, KINDS)} The kinds are {', '.join(KINDS)}.")
        return
    kind = KINDS[name]
    wrong = list(schema_checks.faults(action, _schema(name, kind), at))
    yield from wrong
    if kind.one_of and sum(each in action for each in kind.one_of) != 1:
        yield Fault(at, f"Give either {' or '.join(map(repr, kind.one_of))}.")
    if not wrong:
        yield from _text_faults(action, kind, at)


def _text_faults(action: Mapping[str, Any], kind: Kind, at: str) -> Iterator[Fault]:
    for name in kind.templates:
        text = action.get(name)
        if text is None:
            continue
        if name == "until":
            yield from templated_values.check(name, times.read, action, at)
            yield from renderings.faults(text, at + pointer_to(name))
        else:
            yield from saved_replies.text_faults(text, at + pointer_to(name))
