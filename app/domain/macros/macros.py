"""Macros: several actions that members take in a conversation at once, all or none of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from itertools import islice
from typing import Any

from marshmallow import fields
from peewee import fn

from app import bounds
from app.domain.conversations import conversations
from app.domain.macros import macro_actions
from app.domain.macros.macro_actions import ACTION_KINDS, Use
from app.domain.macros.saved_replies import Rendering
from app.domain.people import members
from app.domain.work import audit
from app.domain.work.changes import Change, Effect
from app.domain.work.quotas import Quota
from app.domain.work.units import Unit
from app.errors import MAX_FAULTS, BellhopError, Conflict, Fault, Invalid, NotFound
from app.lib import json
from app.lib.schemas import ResponseBody, about, time
from app.models.macros import Macro

QUOTA = Quota(Macro, 500, "macros")
MOST_ACTIONS = 20
# Above this size, the templates of actions may take 25 ms, so a process checks only one such request at a time.
_LARGE_BYTES = 4 * 1024
EXAMPLE = [
    {"kind": "reply", "text": "Hello {{ contact.first_name }}, your refund is on its way."},
    {"kind": "label", "labels": ["refund"]},
    {"kind": "close"},
]


def create(change: Change) -> Effect:
    """Creates a macro. Raises Conflict above the QUOTA, and Invalid for names of missing resources."""
    QUOTA.keep(change.workspace_id)
    _refuse_unknown(change.workspace_id, change.payload, may_be_queued=False)
    Macro.insert(id=change.target, workspace_id=change.workspace_id, **change.payload).execute()
    audit.record(change, "macro", change.target, _detail(change.payload, change.payload["name"]))
    return Effect("made", "macro", change.target)


def update(change: Change) -> Effect:
    """Changes the fields given. Raises NotFound, and Invalid like `create`."""
    macro = Macro.find(change.workspace_id, change.target)
    _refuse_unknown(change.workspace_id, change.payload, may_be_queued=False)
    Macro.update(**change.payload, updated_at=fn.now()).where(Macro.id == macro.id).execute()
    audit.record(change, "macro", macro.id, _detail(change.payload, macro.name))
    return Effect("changed", "macro", macro.id)


def delete(change: Change) -> Effect:
    """Deletes the macro. Raises NotFound."""
    macro = Macro.find(change.workspace_id, change.target)
    Macro.delete().where(Macro.id == macro.id).execute()
    audit.record(change, "macro", macro.id, {"name": macro.name})
    return Effect("deleted", "macro", macro.id)


def apply(change: Change) -> Effect:
    """Takes all actions of the payload's macro in the conversation, in their order.

    Raises NotFound if the conversation, its contact or the macro is gone, and Busy. If an action is refused, raises
    Conflict with its `pointer` and a `code`; then no action has an effect.
    """
    contact, conversation = conversations.hold(change, change.target)
    macro = _seen_by(change.unit, change.workspace_id, change.payload["macro_id"])
    member_id = _member_id(change)
    use = Use(change, Rendering(contact, member_id), member_id)
    for index, action in enumerate(macro.actions):
        try:
            ACTION_KINDS[action["kind"]].apply(use, action)
        except BellhopError as error:
            raise _refusal(error, index, action["kind"]) from error
    return Effect("changed", "conversation", conversation.id)


def check(workspace_id: str, body: Mapping[str, Any], *_: object) -> None:
    """Raises Invalid for actions that could not be taken even after all queued writes.

    Raises Overloaded for large actions, if too many requests compute or wait.
    """
    actions = body.get("actions", ())
    is_large = len(json.dumps(actions)) > _LARGE_BYTES
    with bounds.alone(workspace_id) if is_large else nullcontext():
        found = list(islice(macro_actions.faults(actions, "/actions"), MAX_FAULTS))
    if found:
        raise Invalid(*found)
    _refuse_unknown(workspace_id, body, may_be_queued=True)


def check_use(workspace_id: str, payload: Mapping[str, Any], *_: object) -> None:
    """Raises Invalid if the payload's `member_id` belongs to no member of the workspace."""
    if "member_id" in payload and not members.exists(workspace_id, payload["member_id"]):
        raise Invalid(Fault("/member_id", "There is no such member in this workspace."))


def starts_automations(body: Mapping[str, Any]) -> bool:
    """Whether an action of the body starts an automation."""
    return any(action.get("kind") == "start_automation" for action in body.get("actions", ()))


class MacroSchema(ResponseBody):
    id = fields.String()
    name = fields.String(metadata={"example": "Refund"})
    actions = fields.List(fields.Dict(), metadata=about("Each is an Action, as it was given.", example=EXAMPLE))
    created_at = time("When the macro was created.")
    updated_at = time("When it last changed.")


represent = MacroSchema.of


def _refuse_unknown(workspace_id: str, payload: Mapping[str, Any], *, may_be_queued: bool) -> None:
    actions = payload.get("actions", ())
    if found := list(macro_actions.unknown(workspace_id, actions, "/actions", may_be_queued=may_be_queued)):
        raise Invalid(*found)


def _detail(payload: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns the audit entry's detail: the name, and the kinds of the actions if these are given."""
    shown: dict[str, Any] = {"name": payload.get("name", name)}
    if "actions" in payload:
        shown["actions"] = [action["kind"] for action in payload["actions"]]
    return shown


def _seen_by(unit: Unit, workspace_id: str, macro_id: str) -> Macro:
    """Returns the macro, read once per unit. Raises NotFound.

    The macro stays current: a write that changes macros never shares a unit with `apply`, or runs at the same time.
    """
    of_id = Macro.in_workspace(workspace_id).where(Macro.id == macro_id)
    found: Macro | None = unit.noted(("macro", workspace_id, macro_id), of_id.first)
    if found is None:
        raise NotFound("There is no such macro in this workspace.")
    return found


def _member_id(change: Change) -> str | None:
    """Returns the member for whom the macro is applied; None if there is none.

    This is the member that the payload names, or else the author, if that is a member on a page.
    """
    is_member = change.author["type"] == "member" and change.author["id"].startswith("mem_")
    named: str | None = change.payload.get("member_id")
    return named or (change.author["id"] if is_member else None)


def _refusal(error: BellhopError, index: int, kind: str) -> Conflict:
    detail = error.faults[0].detail if isinstance(error, Invalid) else error.detail
    facts = {"code": ACTION_KINDS[kind].code, **getattr(error, "facts", {}), "pointer": f"/actions/{index}"}
    return Conflict(f"Action {index + 1} ({kind}): {detail}", **facts)
