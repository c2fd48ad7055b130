"""Pages of the editor: the picture of the draft, the forms of its steps, and the draft as JSON.

A change is stored in the draft's working copy at once. Forms that were saved redirect to a page of the editor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from flask import Blueprint, flash, jsonify, request

from app.domain.automations.editing import clipboards, editors, edits, previews, step_trees, working_copies
from app.domain.automations.editing.working_copies import Copy
from app.domain.automations.steps import GROUPS, STEP_KINDS
from app.errors import Conflict, Fault, Invalid
from app.lib import json
from app.models.automations import Automation
from app.web.access import viewer, workspace_id
from app.web.automation_editor import editor_conditions, editor_forms, editor_inputs, editor_scenes
from app.web.automation_editor.editor_inputs import Choices, Input, Spec
from app.web.automation_editor.editor_scenes import edit, editor_page
from app.web.automations.automation_pages import whole_number
from app.web.automations.json_lines import line_of, pretty
from app.web.forms import Answer, typed, typed_all

blueprint = Blueprint("editor_pages", __name__, url_prefix="/workspaces/<workspace>/automations/<automation_id>/edit")


@blueprint.get("")
@editor_page
def show(copy: Copy) -> Answer:
    """Shows the picture of the draft, without a form."""
    return editor_scenes.render(copy)


@blueprint.get("/new")
@editor_page
def new(copy: Copy) -> Answer:
    """Shows the kinds of steps that can be added at a place, and the step in the viewer's clipboard."""
    place = editor_scenes.place_fields(editor_scenes.place_of(request.args))
    me = editor_scenes.actor_id()
    clipboard = clipboards.of(workspace_id(), me) if me else None
    return editor_scenes.render(copy, "new", place=place, groups=GROUPS, clipboard=clipboard)


@blueprint.post("/new")
@editor_page
def insert(copy: Copy) -> Answer:
    """Adds a step of a kind, or pastes the viewer's clipboard, and redirects to the step's form."""
    given = typed("kind", "in", "list", "after")
    at = editor_scenes.place_of(given)
    if given["kind"] == "paste":
        step_id = _paste(copy, at)
    elif given["kind"] in STEP_KINDS:
        step_id = _insert(copy, at, given["kind"])
    else:
        raise Conflict("There is no such kind of step.")
    return editor_scenes.lead_to("editor_pages.show_step", copy, step=step_id)


@blueprint.get("/step")
@editor_page
def show_step(copy: Copy) -> Answer:
    """Shows the form of the step that the address names; without a name, of the first step."""
    return step_form(copy, editor_scenes.step_asked_for(copy))


@blueprint.post("/step")
@editor_page
def save_step(copy: Copy) -> Answer:
    """Saves the form of a step, changes its rows, previews it, or copies, cuts or moves the step.

    Redirects to the picture after saving. Shows the form again if it has faults (422), or if somebody else has changed
    the step (409).
    """
    step, given = editor_scenes.step_asked_for(copy), typed("do", "base", "new_id")
    if given["do"] in ("copy", "cut", "raise", "lower"):
        return _move(copy, step, given["do"])
    spec, fields = editor_inputs.of_kind(step["kind"]), fields_sent()
    shown: dict[str, Any] = {"fields": fields, "base": given["base"], "new_id": given["new_id"] or step["id"]}
    if (changed := editor_forms.pressed(spec, fields, given["do"])) is not None:
        return step_form(copy, step, **shown | {"fields": changed})
    read = editor_forms.read(spec, fields, _before(copy, step, given["base"]))
    if given["do"] == "preview":
        return step_form(copy, step, **shown, errors=read.errors, preview=_previewed(copy, read.value))
    if read.errors:
        return step_form(copy, step, **shown, errors=read.errors), 422
    return _save(copy, step, read.value, shown, is_typing=given["do"] == "autosave")


@blueprint.get("/delete")
@editor_page
def ask_delete(copy: Copy) -> Answer:
    """Asks for confirmation, and lists the steps that use results of the step to remove."""
    step = editor_scenes.step_asked_for(copy)
    return editor_scenes.render(
        copy,
        "delete",
        step=step,
        inside=sum(1 for _ in step_trees.walk({"steps": [step]})) - 1,
        affected=edits.affected(copy.definition, step["id"]),
        title=STEP_KINDS[step["kind"]].entry.title,
        base=step_trees.print_of(step),
    )


@blueprint.post("/delete")
@editor_page
def delete(copy: Copy) -> Answer:
    """Removes a step and the steps inside it, and redirects to the picture.

    The picture shows an error if one of them was changed since the confirmation page.
    """
    step = editor_scenes.step_asked_for(copy)
    if typed("base")["base"] not in ("", step_trees.print_of(step)):
        raise Conflict("Somebody else has changed this step, or one inside it, since you were asked. Look at it again.")
    copy = edit(copy, f"removed “{step['id']}”", lambda it: edits.remove(it, step["id"]))
    return editor_scenes.lead_to("editor_pages.show", copy)


@blueprint.get("/json")
@editor_page
def show_json(copy: Copy) -> Answer:
    """Shows the draft as indented JSON in a form."""
    return _json_form(copy, pretty(copy.definition), step_trees.print_of(copy.definition))


@blueprint.post("/json")
@editor_page
def save_json(copy: Copy) -> Answer:
    """Replaces the draft with the submitted JSON, and redirects to the editor.

    Shows the form again if the JSON cannot be stored (422), if the draft was changed meanwhile (409), or if the stored
    draft has faults.
    """
    given = typed("text", "base")
    text, base, now = given["text"], given["base"], step_trees.print_of(copy.definition)
    try:
        definition = json.loads(text)
    except ValueError as error:
        line = error.lineno if isinstance(error, orjson.JSONDecodeError) else None
        return _json_form(copy, text, base, faults=[(line, "", f"This is not JSON: {error}.")]), 422
    if base not in ("", now):
        return _json_form(copy, text, now, now=pretty(copy.definition)), 409
    try:
        copy = edit(copy, "changed the JSON", lambda it: definition)
    except Invalid as error:
        return _json_form(copy, text, base, faults=[_placed(text, definition, fault) for fault in error.faults]), 422
    if not copy.faults:
        return editor_scenes.lead_to("editor_pages.show", copy)
    faults = [_placed(text, definition, fault) for fault in copy.faults]
    return _json_form(copy, text, step_trees.print_of(copy.definition), faults=faults, is_kept=True)


@blueprint.post("/undo")
@editor_page
def undo(copy: Copy) -> Answer:
    """Undoes the last change, even by somebody else, and redirects to the picture."""
    return _go(copy, working_copies.undo)


@blueprint.post("/redo")
@editor_page
def redo(copy: Copy) -> Answer:
    """Redoes the change that was undone last, and redirects to the picture."""
    return _go(copy, working_copies.redo)


@blueprint.post("/here")
@editor_page
def say_here(copy: Copy) -> Answer:
    """Records that the viewer has the editor open. Returns JSON, for the script.

    `people`: the names of others who have it open. `seen`: the draft's token.
    """
    people = [who for who in editors.come(copy.automation.id, viewer().actor_id) if who != viewer().actor_id]
    names = editor_scenes.names_of(people)
    return jsonify(seen=editor_scenes.seen_of(copy), people=[names.get(who, "Support") for who in people])


def step_form(copy: Copy, step: Mapping[str, Any], **given: Any) -> str:
    """Renders the form of a step, with its faults. `given`: the typed `fields` and further variables.

    Without `fields`, shows the stored step. `errors` replace the faults of the same fields.
    """
    spec = editor_inputs.of_kind(step["kind"])
    wrong = {
        problem.field: problem.detail
        for problem in reversed(editor_scenes.problems_of(copy, copy.faults))
        if problem.step_id == step["id"]
    }
    base = step_trees.print_of(step_trees.own(step))
    given = {"fields": editor_forms.fields_of(spec, step), "base": base, "new_id": step["id"], **given}
    given["errors"] = wrong | given.get("errors", {})
    return with_form(copy, "step", spec, step, step_id=step["id"], **given)


def with_form(copy: Copy, panel: str, spec: Spec, value: Mapping[str, Any], **given: Any) -> str:
    """Renders the form of `spec` in the panel of that name.

    `value`: the stored step or trigger. `given`: the `fields` and `errors` of the form, and further variables.
    """
    lists = {each.list for each in spec.inputs if each.list}
    if any(each.type == "condition" for each in spec.inputs):
        lists |= {"paths", "tags"}
    return editor_scenes.render(
        copy,
        panel,
        spec=spec,
        value=value,
        rows={each.name: _rows(each, given["fields"]) for each in spec.inputs if each.columns},
        choices=Choices(copy.definition),
        lists=sorted(lists),
        unknown=editor_forms.unknown(spec, value),
        **given,
    )


def fields_sent() -> dict[str, list[str]]:
    """Returns the fields of the submitted form, each with all its values."""
    return {name: typed_all(name) for name in request.form}


def _rows(each: Input, fields: editor_forms.Fields) -> list[tuple[str, ...]]:
    """Returns the rows of an input. A required condition starts with a blank row."""
    rows = editor_forms.rows_of(each, fields)
    return rows or ([editor_conditions.BLANK] if each.type == "condition" and each.is_required else [])


def _insert(copy: Copy, at: step_trees.At, kind: str) -> str:
    made: dict[str, Any] = {}

    def change(definition: Mapping[str, Any]) -> Mapping[str, Any]:
        made.update(edits.begun(kind, definition))
        return edits.insert(definition, at, made)

    edit(copy, f"added a step: {STEP_KINDS[kind].entry.title.lower()}", change)
    return str(made["id"])


def _paste(copy: Copy, at: step_trees.At) -> str:
    clipboard = clipboards.of(workspace_id(), viewer().actor_id)
    if clipboard is None:
        raise Conflict("Nothing is copied yet.")
    step, pasted = clipboard.step, dict[str, str]()
    is_move = clipboard.is_cut and clipboard.source_id == copy.automation.id

    def change(definition: Mapping[str, Any]) -> Mapping[str, Any]:
        if is_move and any(each.step["id"] == step["id"] for each in step_trees.walk(definition)):
            pasted["id"] = step["id"]
            return edits.move(definition, step["id"], at)
        changed, pasted["id"] = edits.paste(definition, at, step)
        return changed

    edit(copy, f"{'moved' if is_move else 'pasted'} “{step['id']}”", change)
    if clipboard.is_cut:
        clipboards.was_pasted(clipboard)
        if not is_move:
            _take_from(clipboard.source_id, step["id"])
    return pasted["id"]


def _take_from(automation_id: str, step_id: str) -> None:
    """Removes a cut step from its former automation, if both still exist."""
    automation = Automation.get_or_none(Automation.id == automation_id, Automation.workspace_id == workspace_id())
    if automation is not None:
        source = working_copies.current(automation)
        try:
            edit(source, f"moved “{step_id}” to another automation", lambda it: edits.remove(it, step_id))
        except Conflict as gone:
            flash(gone.detail, "info")


def _move(copy: Copy, step: Mapping[str, Any], do: str) -> Answer:
    """Copies, cuts or moves a step, and redirects to its form."""
    if do in ("copy", "cut"):
        copied, is_cut = edits.copied(copy.definition, step["id"]), do == "cut"
        clipboards.put(copy.automation, viewer().actor_id, copied, is_cut=is_cut)
        done = "cut" if is_cut else "copied"
        flash(f"“{step['id']}” is {done}. Press + where it belongs, here or elsewhere.", "info")
    else:
        by = -1 if do == "raise" else 1
        copy = edit(copy, f"moved “{step['id']}”", lambda it: edits.move_by(it, step["id"], by))
    return editor_scenes.lead_to("editor_pages.show_step", copy, step=step["id"])


def _save(
    copy: Copy, step: Mapping[str, Any], value: Mapping[str, Any], shown: dict[str, Any], *, is_typing: bool
) -> Answer:
    """Saves the step, and redirects to the picture. If refused, or `is_typing`, shows the form again.

    `shown`: the fields, the fingerprint and the name that the form sent.
    """
    own = step_trees.own(step)
    now = step_trees.print_of(own)
    # The name is changed only on saving: while typing, it may be incomplete.
    name = step["id"] if is_typing else shown["new_id"]
    made = {**value, "id": name, "kind": step["kind"]}
    if shown["base"] not in ("", now) and _without_was(made) != own:
        told = _changed_by(copy, step["id"], shown["base"], own)
        return step_form(copy, step, **shown | {"base": now}, told=told), 409
    try:
        copy = edit(copy, f"changed “{name}”", lambda it: edits.change(it, step["id"], made), is_typing=is_typing)
    except Invalid as error:
        errors = {"new_id" if fault.pointer == "/id" else "": fault.detail for fault in error.faults}
        return step_form(copy, step, **shown, errors=errors), 422
    if is_typing:
        saved = step_trees.find(copy.definition, name).step
        return step_form(copy, saved, fields=shown["fields"], said="Saved.")
    return editor_scenes.lead_to("editor_pages.show", copy, anchor=f"step-{name}")


def _changed_by(copy: Copy, step_id: str, base: str, now: Mapping[str, Any]) -> dict[str, Any]:
    """Returns who changed the step last, when, and how `now` differs from fingerprint `base`."""
    last = working_copies.last_change(copy.automation, step_id)
    before = working_copies.step_with(copy.automation, step_id, base)
    actor_id = (last and last.actor_id) or ""
    return {
        "who": editor_scenes.names_of([actor_id]).get(actor_id, "Somebody"),
        "at": last.made_at if last else None,
        "what": edits.differences(before, now) if before is not None else [],
    }


def _go(copy: Copy, way: Callable[[Automation, int], Copy]) -> Answer:
    revision = whole_number(typed("revision")["revision"])
    copy = way(copy.automation, -1 if revision is None else revision)
    return editor_scenes.lead_to("editor_pages.show", copy)


def _before(copy: Copy, step: Mapping[str, Any], base: str) -> Mapping[str, Any]:
    """Returns the step as the form showed it, if that state is kept; otherwise the current step.

    Only members of the form that differ from the returned step were changed by the user.
    """
    own = step_trees.own(step)
    if base in ("", step_trees.print_of(own)):
        return own
    return working_copies.step_with(copy.automation, step["id"], base) or own


def _previewed(copy: Copy, step: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the step's text rendered for the chosen contact, or an `error`."""
    contact = editor_scenes.contact_of(typed("contact_id")["contact_id"])
    text = step.get("text")
    if contact is None or not isinstance(text, str):
        return {"error": "Choose a contact, and write a text."}
    try:
        rendered, missing = previews.render(text, contact, copy.definition)
    except Conflict as error:
        return {"error": error.detail}
    return {"text": rendered, "missing": missing, "contact_id": contact.id}


def _without_was(step: Mapping[str, Any]) -> dict[str, Any]:
    arms = step.get("arms")
    if not isinstance(arms, list):
        return dict(step)
    return {**step, "arms": [{name: each for name, each in arm.items() if name != "was"} for arm in arms]}


def _placed(text: str, value: Any, fault: Fault) -> tuple[int | None, str, str]:
    return line_of(text, value, fault.pointer), fault.pointer, fault.detail


def _json_form(copy: Copy, text: str, base: str, **given: Any) -> str:
    return editor_scenes.render(copy, "json", text=text, base=base, **{"faults": [], **given})
