"""Pages of the editor: the picture of the draft, with the open form beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flask import Blueprint, request

from app.domain.automations.editing import edits, step_trees, working_copies
from app.domain.automations.editing.working_copies import Copy
from app.domain.automations.steps import GROUPS, KINDS
from app.errors import Conflict
from app.web.access import page
from app.web.automation_editor import editor_conditions, editor_forms, editor_inputs, editor_scenes
from app.web.automation_editor.editor_choices import Choices
from app.web.automation_editor.editor_inputs import Input, Spec
from app.web.forms import Answer

blueprint = Blueprint("editor_pages", __name__, url_prefix="/workspaces/<workspace>/automations/<automation_id>/edit")


@blueprint.get("")
@page("automations.manage")
def show(automation_id: str) -> str:
    """Shows the picture for editing."""
    return editor_scenes.render(editor_scenes.find(automation_id))


@blueprint.get("/new")
@page("automations.manage")
def new(automation_id: str) -> str:
    """Shows the kinds of steps that can be added at a place."""
    at = editor_scenes.place_of(request.args)
    place = editor_scenes.place_fields(at)
    return editor_scenes.render(
        editor_scenes.find(automation_id), "new", place=place, groups=GROUPS, clipboard=editor_scenes.clipboard()
    )


@blueprint.get("/step")
@page("automations.manage")
def show_step(automation_id: str) -> Answer:
    """Shows the form of a step."""
    copy = editor_scenes.find(automation_id)
    try:
        step = editor_scenes.step_asked_for(copy)
    except Conflict as gone:
        return editor_scenes.back(copy, gone)
    return step_form(copy, step)


@blueprint.get("/delete")
@page("automations.manage")
def ask_delete(automation_id: str) -> Answer:
    """Shows what removing a step affects."""
    copy = editor_scenes.find(automation_id)
    try:
        step = editor_scenes.step_asked_for(copy)
    except Conflict as gone:
        return editor_scenes.back(copy, gone)
    inside = sum(1 for _ in step_trees.walk({"steps": [step]})) - 1
    return editor_scenes.render(
        copy, "delete", step=step, inside=inside, affected=edits.affected(copy.definition, step["id"]),
        title=KINDS[step["kind"]].entry.title, base=step_trees.print_of(step),
    )  # fmt: skip


@blueprint.get("/triggers")
@page("automations.manage")
def show_triggers(automation_id: str) -> str:
    """Shows the automation's triggers, and the types that can be added."""
    copy = editor_scenes.find(automation_id)
    return editor_scenes.render(
        copy, "triggers", triggers=listed(copy.definition.get("triggers", [])), sorts=editor_inputs.sorts_of_triggers()
    )


@blueprint.get("/trigger")
@page("automations.manage")
def show_trigger(automation_id: str) -> Answer:
    """Shows the form of a trigger: the one whose fingerprint is `base`, or a new one."""
    copy = editor_scenes.find(automation_id)
    base = request.args.get("base")
    for trigger in copy.definition.get("triggers", []):
        if base == step_trees.print_of(trigger):
            return trigger_form(copy, editor_inputs.sort_of(trigger), trigger, base)
    if base:
        return editor_scenes.back(copy, Conflict("This trigger is not there any more, or somebody has changed it."))
    sort = request.args.get("sort", "")
    return trigger_form(copy, sort if sort in dict(editor_inputs.sorts_of_triggers()) else "Trigger", {}, "")


def step_form(copy: Copy, step: Mapping[str, Any], **given: Any) -> str:
    """Renders the form of a step. `given`: the typed `fields`, `errors` and anything else to show."""
    spec = editor_inputs.of_kind(step["kind"])
    own = step_trees.own(step)
    wrong = {
        problem.field: problem.detail
        for problem in reversed(editor_scenes.problems_of(copy, editor_scenes.Addresses(copy)))
        if problem.step_id == step["id"]
    }
    given = {"fields": editor_forms.fields_of(spec, step), "base": step_trees.print_of(own), **given}
    given["errors"] = wrong | given.get("errors", {})
    return with_form(copy, "step", spec, step, step_id=step["id"], new_id=given.pop("new_id", step["id"]), **given)


def trigger_form(copy: Copy, sort: str, trigger: Mapping[str, Any], base: str, **given: Any) -> str:
    """Renders the form of a trigger."""
    spec = editor_inputs.of_trigger(sort)
    given = {"fields": editor_forms.fields_of(spec, trigger), "errors": {}, **given}
    return with_form(copy, "trigger", spec, trigger, base=base, sort=sort, **given)


def changed_by(copy: Copy, step_id: str, base: str) -> dict[str, Any]:
    """Returns who changed the step since its fingerprint was `base`, when, and both values."""
    last = working_copies.last_change(copy.automation, step_id)
    before = working_copies.step_with(copy.automation, step_id, base)
    placed = next((each for each in step_trees.walk(copy.definition) if each.step["id"] == step_id), None)
    now = step_trees.own(placed.step) if placed else {}
    names = editor_scenes.names_of([last.actor_id] if last and last.actor_id else [])
    return {
        "who": names.get(last.actor_id or "", "Somebody") if last else "Somebody",
        "at": last.made_at if last else None,
        "what": edits.differences(before, now) if before is not None else [],
    }


def with_form(copy: Copy, panel: str, spec: Spec, value: Mapping[str, Any], **given: Any) -> str:
    """Renders the form of `spec` in a panel.

    `given`: its `fields`, `errors` and anything else to show.
    """
    fields, choices = given.pop("fields"), Choices(copy.definition)
    lists = {each.list for each in spec.inputs if each.list}
    if any(each.type == "condition" for each in spec.inputs):
        lists |= {"paths", "tags"}
    sheet = {
        "fields": fields,
        "errors": given["errors"],
        "value": value,
        "rows": {each.name: _rows(each, fields) for each in spec.inputs if editor_forms.columns_of(each)},
        "columns": {each.name: editor_forms.columns_of(each) for each in spec.inputs},
        "choices": choices,
        "lists": sorted(lists),
        "unknown": editor_forms.unknown(spec, value),
        "templates": any(each.is_template for each in spec.inputs),
        "has_text": any(each.type == "text" for each in spec.inputs),
    }
    return editor_scenes.render(copy, panel, spec=spec, value=value, sheet=sheet, choices=choices, **given)


def _rows(each: Input, fields: editor_forms.Fields) -> list[tuple[str, ...]]:
    """Returns the rows of an input. A required condition starts with a blank row."""
    rows = editor_forms.rows_of(each, fields)
    return rows or ([editor_conditions.BLANK] if each.type == "condition" and each.is_required else [])


def listed(triggers: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], str]]:
    """Pairs triggers with their fingerprints."""
    return [(trigger, step_trees.print_of(trigger)) for trigger in triggers]
