"""Exits and the goal, which the editor changes outside the draft, with effect at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, request

from app.domain.automations import definitions
from app.domain.automations.editing import edits, step_trees
from app.domain.automations.editing.working_copies import Copy
from app.errors import Conflict, Fault, Invalid
from app.web import writes
from app.web.access import page
from app.web.automation_editor import editor_forms, editor_inputs, editor_pages, editor_scenes, editor_writes
from app.web.forms import Answer, errors_of, status_of, typed

blueprint = Blueprint("editor_rules", __name__, url_prefix="/workspaces/<workspace>/automations/<automation_id>/edit")

WEEK_SECONDS = 7 * 24 * 60 * 60
# The schemas of exits and of the goal.
_SORTS = {"exits": "Trigger", "goal": "Goal"}


@blueprint.get("/rules")
@page("automations.manage")
def index(automation_id: str) -> str:
    """Shows the exits, which end runs early, and the goal."""
    copy = editor_scenes.find(automation_id)
    exits = editor_pages.listed(copy.automation.exits)
    return editor_scenes.render(copy, "rules", exits=exits, goal=copy.automation.goal)


@blueprint.get("/rule")
@page("automations.manage")
def show(automation_id: str) -> Answer:
    """Shows the form of an exit, or of the goal."""
    copy, which = editor_scenes.find(automation_id), _which(request.args.get("of"))
    base = step_trees.print_of(copy.automation.goal) if which == "goal" else request.args.get("base", "")
    return _form(copy, which, _before(copy, which, base), base)


@blueprint.post("/rule")
@page("automations.manage")
def save_rule(automation_id: str) -> Answer:
    """Saves or removes an exit, or the goal, and redirects to the list of exits and the goal.

    Buttons that change rows, and faults, show the form again.
    """
    copy, given = editor_scenes.find(automation_id), typed("do", "base", "of")
    which, base = _which(given["of"]), given["base"]
    before, spec = _before(copy, which, base), editor_inputs.of_trigger(_SORTS[which])
    fields = editor_writes.fields_sent()
    if (changed := editor_forms.pressed(spec, fields, given["do"])) is not None:
        return _form(copy, which, before, base, fields=changed, pressed=given["do"])
    read = editor_forms.read(spec, fields, before)
    is_gone = given["do"] == "delete"
    if read.errors and not is_gone:
        return _form(copy, which, before, base, fields=fields, errors=read.errors), 422
    try:
        body = {which: _changed(copy, which, base, None if is_gone else read.value)}
        writes.submit("automations.update", body, copy.automation.id)
    except (Invalid, Conflict) as error:
        return _form(copy, which, before, base, fields=fields, errors=errors_of(error)), status_of(error)
    return editor_scenes.lead_to("editor_rules.index", copy)


def _changed(copy: Copy, which: str, base: str, rule: Mapping[str, Any] | None) -> Any:
    """Returns the goal, or all exits, with `rule` in place of the one with fingerprint `base`.

    Raises Invalid, Conflict.
    """
    if which == "goal":
        if base != step_trees.print_of(copy.automation.goal):
            raise Conflict(
                "Somebody else has changed the goal meanwhile. This is what you wrote; save it anyway, or not."
            )
        faults = definitions.goal_faults(rule) if rule is not None else []
        changed: Any = rule
    else:
        changed = edits.replace_trigger({"triggers": copy.automation.exits}, base or None, rule)["triggers"]
        faults = [
            Fault(fault.pointer.removeprefix(f"/{place}"), fault.detail)
            for place, each in enumerate(changed)
            for fault in definitions.exit_faults(changed)
            if each is rule and fault.pointer.startswith(f"/{place}/")
        ]
    if faults:
        raise Invalid(*faults)
    return changed


def _before(copy: Copy, which: str, base: str) -> Mapping[str, Any]:
    if which == "goal":
        return copy.automation.goal or {"within_seconds": WEEK_SECONDS}
    return editor_writes.with_print(copy.automation.exits, base)


def _which(of: str | None) -> str:
    return "goal" if of == "goal" else "exits"


def _form(copy: Copy, which: str, rule: Mapping[str, Any], base: str, **given: Any) -> str:
    spec = editor_inputs.of_trigger(_SORTS[which])
    given = {"fields": editor_forms.fields_of(spec, rule), "errors": {}, **given}
    return editor_pages.with_form(copy, "rule", spec, rule, base=base, which=which, **given)
