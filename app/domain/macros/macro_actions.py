"""Actions of macros: their fields, and how each is carried out by the verb of a write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from app.domain.automations import automations
from app.domain.automations.steps import times
from app.domain.conversations import conversation_changes, conversation_labels, messages, notes, snoozes
from app.domain.macros import saved_replies
from app.domain.macros.renderings import Rendering
from app.domain.work.changes import Change
from app.errors import AutomationNotPublished, Conflict, NotFound
from app.lib import ids, normalization
from app.models.conversations import Conversation, Message

ME = "me"
_NOBODY = "A token applies this macro, so `me` is no member. Give `member_id`."


@dataclass(frozen=True, slots=True)
class Use:
    """One application of a macro, by the write `change`.

    `member_id`: the member on whose behalf; None if a token applies the macro for no member.
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
        """Returns the change for a verb that creates a row in the conversation. `prefix`: of its id."""
        named = {"conversation_id": self.change.target, "contact_id": self.conversation.contact_id}
        return replace(self.change, payload=named | payload, resource_id=ids.new(prefix))


@dataclass(frozen=True, slots=True)
class Kind:
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
    use.update(labels=sorted({*use.conversation.labels, *_labels(action)}))


def _unlabel(use: Use, action: Mapping[str, Any]) -> None:
    use.update(labels=sorted(set(use.conversation.labels) - _labels(action)))


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


def _close(use: Use, action: Mapping[str, Any]) -> None:
    use.update(status="closed")


def _start(use: Use, action: Mapping[str, Any]) -> None:
    try:
        effect = automations.start(use.as_new("run", automation_id=action["automation_id"]))
    except NotFound as error:
        raise Conflict("The automation has been deleted.", code="gone") from error
    except AutomationNotPublished as error:
        raise Conflict(error.detail, code="not_published") from error
    if effect.refusal is not None:
        raise effect.refusal


def _labels(action: Mapping[str, Any]) -> set[str]:
    return {normalization.label(each) for each in action["labels"]}


_LABELS: Mapping[str, Any] = {
    "type": "array",
    "minItems": 1,
    "maxItems": conversation_labels.MOST_LABELS,
    "items": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": f"^{normalization.TAG}$",
        "x-form": "a label without control characters that is more than spaces",
    },
    "description": "The labels.",
}

KINDS: Mapping[str, Kind] = {
    "reply": Kind(
        description="Writes to the contact: `text`, or the text of a saved reply. Opens the conversation if it is"
        " closed.",
        apply=_reply,
        code="message",
        fields={
            "text": {
                "type": "string",
                "minLength": 1,
                "maxLength": saved_replies.LONGEST_TEXT,
                "description": "The text: a template.",
            },
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
    "note": Kind(
        description="Adds a note.",
        apply=_note,
        code="limit",
        fields={
            "text": {
                "type": "string",
                "minLength": 1,
                "maxLength": notes.MOST_CHARACTERS,
                "description": "The text: a template.",
            }
        },
        required=("text",),
        templates=("text",),
        example={"text": "Refunded by {{ member.email }}."},
    ),
    "assign": Kind(
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
    "label": Kind(
        description="Adds labels.",
        apply=_label,
        code="limit",
        fields={"labels": _LABELS},
        required=("labels",),
        example={"labels": ["refund"]},
    ),
    "unlabel": Kind(
        description="Removes labels, those of them that the conversation has.",
        apply=_unlabel,
        code="limit",
        fields={"labels": _LABELS},
        required=("labels",),
        example={"labels": ["urgent"]},
    ),
    "snooze": Kind(
        description="Snoozes the conversation, which must be open.",
        apply=_snooze,
        code="closed",
        fields={
            "seconds": {
                "type": "integer",
                "minimum": 1,
                "maximum": snoozes.MOST_DAYS * 24 * 60 * 60,
                "description": f"For how long; {snoozes.MOST_DAYS} days at most.",
            },
            "until": times.FIELD | {"description": "A time (RFC 3339), or a template that gives one."},
        },
        one_of=("seconds", "until"),
        templates=("until",),
        example={"seconds": 7200},
    ),
    "close": Kind(description="Closes the conversation.", apply=_close, code="closed"),
    "start_automation": Kind(
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
