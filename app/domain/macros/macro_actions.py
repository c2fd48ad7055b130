"""Actions of macros: their fields, their faults, and how the verb of a write carries each out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from app.domain.automations import automations
from app.domain.automations.definitions.json_schemas import any_kind, name_of, object_schema
from app.domain.automations.steps import templated_values, times
from app.domain.automations.steps.conversation_steps import SNOOZE_FIELDS
from app.domain.conversations import conversation_changes, conversations, messages, notes, snoozes
from app.domain.macros import saved_replies
from app.domain.macros.saved_replies import Rendering
from app.domain.people import members
from app.domain.work import schema_checks
from app.domain.work.changes import Change
from app.errors import AutomationNotPublished, Conflict, Fault, NotFound, pointer_to
from app.lib import ids, normalization
from app.lib.nearest_names import meant
from app.models.automations import Automation
from app.models.conversations import Conversation, Message
from app.models.jobs import Job
from app.models.saved_replies import SavedReply

ME = "me"
_NOBODY = "A token applies this macro, so `me` is no member. Give `member_id`."
Actions = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Use:
    """One application of a macro, by the write `change`.

    `member_id`: the member who applies the macro; None if a token does so for nobody.
    """

    change: Change
    rendering: Rendering
    member_id: str | None

    @property
    def conversation(self) -> Conversation:
        """The conversation, as the earlier actions have left it."""
        found = self.change.unit.get(Conversation, self.change.workspace_id, "id", self.change.target)
        assert found is not None
        return found

    def update(self, **payload: Any) -> None:
        """Changes the conversation on behalf of the member, like `PATCH`."""
        conversation_changes.update(replace(self.change, payload=payload | {"member_id": self.member_id}))

    def as_new(self, prefix: str, **payload: Any) -> Change:
        """Returns a change that creates a row in the conversation. `prefix`: of the row's identifier."""
        named = {"conversation_id": self.change.target, "contact_id": self.conversation.contact_id}
        return replace(self.change, payload=named | payload, resource_id=ids.new(prefix))


@dataclass(frozen=True, slots=True)
class ActionKind:
    """A kind of action. `fields`: the JSON Schemas of its members besides `kind`.

    All members in `required` and exactly one in `one_of` must be given. The members in `templates` hold templates.
    `apply` raises a BellhopError to refuse the action. `code`: the code of a refusal, if the error has none of its own.
    """

    description: str
    apply: Callable[[Use, Mapping[str, Any]], None]
    code: str
    fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    example: Mapping[str, Any] = field(default_factory=dict)


def _reply(use: Use, action: Mapping[str, Any]) -> None:
    template, files = action.get("text"), []
    if template is None:
        found = saved_replies.seen_by(use.change.unit, use.change.workspace_id, action["saved_reply_id"])
        if found is None:
            raise Conflict("The saved reply has been deleted.", code="gone")
        template, files = found.text, [{"upload_id": each["id"]} for each in found.attachments]
    change = use.as_new("msg", text=use.rendering.render(template), attachments=files)
    messages.create(change)
    queued = change.unit.get(Message, change.workspace_id, "id", change.target)
    assert queued is not None
    if queued.failure is not None:
        raise Conflict(queued.failure["detail"], code=queued.failure["code"])


def _note(use: Use, action: Mapping[str, Any]) -> None:
    text = use.rendering.render(action["text"])
    try:
        notes.read_text(text)
    except ValueError as error:
        raise Conflict(str(error), code="template") from error
    notes.create(use.as_new("nte", text=text))


def _assign(use: Use, action: Mapping[str, Any]) -> None:
    assignee_id = action["assignee_id"]
    if assignee_id == ME:
        if use.member_id is None:
            raise Conflict(_NOBODY, code="nobody")
        assignee_id = use.member_id
    use.update(assignee_id=assignee_id)


def _label(use: Use, action: Mapping[str, Any]) -> None:
    use.update(labels=[*use.conversation.labels, *_labels(action)])


def _unlabel(use: Use, action: Mapping[str, Any]) -> None:
    use.update(labels=conversation_changes.labels_without(use.conversation, _labels(action)))


def _snooze(use: Use, action: Mapping[str, Any]) -> None:
    now = use.change.unit.now
    if "seconds" in action:
        until = now + timedelta(seconds=action["seconds"])
    else:
        try:
            until = times.read(use.rendering.render(action["until"]))
        except ValueError as error:
            raise Conflict(str(error), code="template") from error
    if not snoozes.is_possible(until, now):
        raise Conflict(f"The time has passed, or is more than {snoozes.MOST_DAYS} days away.", code="time")
    use.update(snoozed_until=until.isoformat())


def _start(use: Use, action: Mapping[str, Any]) -> None:
    try:
        effect = automations.start(use.as_new("run", automation_id=action["automation_id"]))
    except NotFound as error:
        raise Conflict("The automation has been deleted.", code="gone") from error
    except AutomationNotPublished as error:
        raise Conflict(error.detail, code="not_published") from error
    if effect.refusal is not None:
        raise effect.refusal


def _labels(action: Mapping[str, Any]) -> list[str]:
    return [normalization.label(each) for each in action["labels"]]


def _text(most: int) -> Mapping[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most, "description": "The text: a template."}


_LABELS: Mapping[str, Any] = {
    "type": "array",
    "minItems": 1,
    "maxItems": conversation_changes.MOST_LABELS,
    "items": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": f"^{normalization.TAG}$",
        "x-form": "a label without control characters that is more than spaces",
    },
    "description": "The labels.",
}

ACTION_KINDS: Mapping[str, ActionKind] = {
    "reply": ActionKind(
        description="Writes to the contact: `text`, or the text of a saved reply. Opens the conversation if it is"
        " closed.",
        apply=_reply,
        code="message",
        fields={
            "text": _text(saved_replies.LONGEST_TEXT),
            "saved_reply_id": {
                "type": "string",
                "pattern": "^srp_[0-7][0-9a-hjkmnp-tv-z]{25}$",
                "x-form": "the identifier of a saved reply, which begins with srp_",
                "description": "The saved reply, as it is when the macro is applied.",
            },
        },
        one_of=("text", "saved_reply_id"),
        templates=("text",),
        example={"text": "Hello {{ contact.first_name }}, your refund is on its way."},
    ),
    "note": ActionKind(
        description="Adds a note.",
        apply=_note,
        code="limit",
        fields={"text": _text(notes.MOST_CHARACTERS)},
        required=("text",),
        templates=("text",),
        example={"text": "Refunded by {{ member.email }}."},
    ),
    "assign": ActionKind(
        description="Assigns the conversation.",
        apply=_assign,
        code="gone",
        fields={
            "assignee_id": {
                "type": ["string", "null"],
                "pattern": f"^({ME}|mem_[0-7][0-9a-hjkmnp-tv-z]{{25}})$",
                "x-form": f"the identifier of a member, which begins with mem_, or '{ME}'",
                "description": f"A member; `{ME}`: the one who applies the macro; null removes the assignee.",
            }
        },
        required=("assignee_id",),
        example={"assignee_id": ME},
    ),
    "label": ActionKind(
        description="Adds labels.",
        apply=_label,
        code="limit",
        fields={"labels": _LABELS},
        required=("labels",),
        example={"labels": ["refund"]},
    ),
    "unlabel": ActionKind(
        description="Removes labels, those of them that the conversation has.",
        apply=_unlabel,
        code="limit",
        fields={"labels": _LABELS},
        required=("labels",),
        example={"labels": ["urgent"]},
    ),
    "snooze": ActionKind(
        description="Snoozes the conversation, which must be open.",
        apply=_snooze,
        code="closed",
        fields=SNOOZE_FIELDS,
        one_of=("seconds", "until"),
        templates=("until",),
        example={"seconds": 7200},
    ),
    "close": ActionKind(
        description="Closes the conversation.",
        apply=lambda use, action: use.update(status="closed"),
        code="closed",
    ),
    "start_automation": ActionKind(
        description="Starts an automation for the contact.",
        apply=_start,
        code="reentry",
        fields={
            "automation_id": {
                "type": "string",
                "pattern": "^aut_[0-7][0-9a-hjkmnp-tv-z]{25}$",
                "x-form": "the identifier of an automation, which begins with aut_",
                "description": "The automation, which must be published.",
            }
        },
        required=("automation_id",),
        example={"automation_id": "aut_01m8362f00ehpa3xypmbhkxwpq"},
    ),
}


def _schema(name: str, kind: ActionKind) -> dict[str, Any]:
    properties = {"kind": {"type": "string", "const": name}, **kind.fields}
    example = {"kind": name, **kind.example}
    return object_schema(kind.description, ["kind", *kind.required], properties, example)


def _choice(kind: ActionKind) -> dict[str, Any]:
    """Returns the part of the schema that requires exactly one member of `one_of`.

    Only for the OpenAPI document: `_faults` checks the rule itself, and reports it in a sentence.
    """
    if not kind.one_of:
        return {}
    all_of_them = {"type": "object", "required": list(kind.one_of), "properties": {each: {} for each in kind.one_of}}
    none_of_them = {"type": "object", "properties": {each: {"not": {}} for each in kind.one_of}}
    # With the simpler oneOf, generated clients would lose the fields.
    return {"not": {"anyOf": [all_of_them, none_of_them]}}


# Components of the OpenAPI document.
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "Action": any_kind("Action", ACTION_KINDS, "An action of a macro; its members depend on its kind."),
    **{name_of(name, "Action"): _schema(name, kind) | _choice(kind) for name, kind in ACTION_KINDS.items()},
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
    if not isinstance(name, str) or name not in ACTION_KINDS:
        yield Fault(
            f"{at}/kind",
            f"Give the kind of the action.{meant(name, ACTION_KINDS)} The kinds are {', '.join(ACTION_KINDS)}.",
        )
        return
    kind = ACTION_KINDS[name]
    wrong = list(schema_checks.faults(action, _schema(name, kind), at))
    yield from wrong
    if kind.one_of and sum(each in action for each in kind.one_of) != 1:
        yield Fault(at, f"Give either {' or '.join(map(repr, kind.one_of))}.")
    if not wrong:
        yield from _text_faults(action, kind, at)


def _text_faults(action: Mapping[str, Any], kind: ActionKind, at: str) -> Iterator[Fault]:
    for name in kind.templates:
        text = action.get(name)
        if text is None:
            continue
        if name == "until":
            yield from templated_values.check(name, times.read, action, at)
            yield from saved_replies.template_faults(text, at + pointer_to(name))
        else:
            yield from saved_replies.text_faults(text, at + pointer_to(name))
