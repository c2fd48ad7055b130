"""Forms of the editor: changes, undo and redo, previews, the clipboard, and who is editing.

A change is stored in the working copy at once. Most requests redirect to a page of the editor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, flash, jsonify, request
from werkzeug.wrappers import Response

from app.domain.automations.editing import clipboards, editors, edits, new_steps, previews, step_trees, working_copies
from app.domain.automations.editing.working_copies import Copy
from app.domain.automations.steps import KINDS
from app.domain.bodies.pointers import refuse_bad_text
from app.errors import Conflict, Invalid
from app.models.automations import Automation
from app.web.access import page, viewer, workspace_id
from app.web.automation_editor import editor_forms, editor_inputs, editor_pages, editor_scenes
from app.web.forms import Answer, typed, typed_all

blueprint = Blueprint("editor_writes", __name__, url_prefix="/workspaces/<workspace>/automations/<automation_id>/edit")


@blueprint.post("/new")
@page("automations.manage")
def insert(automation_id: str) -> Response:
    """Adds a step of a kind, or pastes the viewer's clipboard, and redirects to the step's form.

    If it is refused, redirects to the picture, which shows the error.
    """
    copy, given = editor_scenes.find(automation_id), typed("kind", "in", "list", "after")
    at = editor_scenes.place_of(given)
    try:
        if given["kind"] == "paste":
            step_id = _paste(copy, at)
        elif given["kind"] in KINDS:
            step_id = _insert(copy, at, given["kind"])
        else:
            raise Conflict("There is no such kind of step.")
    except (Conflict, Invalid) as error:
        return editor_scenes.back(copy, error)
    return editor_scenes.lead_to("editor_pages.show_step", copy, step=step_id)


@blueprint.post("/step")
@page("automations.manage")
def save_step(automation_id: str) -> Answer:
    """Saves the form of a step, changes its rows, previews it, or copies, cuts or moves the step.

    Redirects to the picture after saving. Shows the form again if it has faults (422), or if somebody else has changed
    the step (409).
    """
    copy, given = editor_scenes.find(automation_id), typed("do", "base", "new_id", "step")
    try:
        step = editor_scenes.step_asked_for(copy)
    except Conflict as gone:
        return editor_scenes.back(copy, gone)
    if given["do"] in _MOVES:
        return _do(copy, step, given["do"])
    spec, fields = editor_inputs.of_kind(step["kind"]), fields_sent()
    shown = {"base": given["base"], "new_id": given["new_id"] or step["id"]}
    if (changed := editor_forms.pressed(spec, fields, given["do"])) is not None:
        return editor_pages.step_form(copy, step, fields=changed, pressed=given["do"], **shown)
    own = step_trees.own(step)
    read = editor_forms.read(spec, fields, _before(copy, step, given["base"]))
    if given["do"] == "preview":
        previewed = _previewed(copy, read.value)
        return editor_pages.step_form(copy, step, fields=fields, errors=read.errors, preview=previewed, **shown)
    if read.errors:
        return editor_pages.step_form(copy, step, fields=fields, errors=read.errors, **shown), 422
    now = step_trees.print_of(own)
    is_typing = given["do"] == "autosave"
    # The name is changed only on saving: while typing, it may be incomplete.
    name = step["id"] if is_typing else given["new_id"] or step["id"]
    made = {**read.value, "id": name, "kind": step["kind"]}
    if given["base"] not in ("", now) and _without_was(made) != own:
        told = editor_pages.changed_by(copy, step["id"], given["base"])
        return editor_pages.step_form(copy, step, fields=fields, **{**shown, "base": now}, told=told), 409
    done = f"changed “{made['id']}”"
    try:
        copy = edit(copy, done, lambda it: edits.change(it, step["id"], made), is_typing=is_typing)
    except Invalid as error:
        errors = {"new_id" if fault.pointer == "/id" else "": fault.detail for fault in error.faults}
        return editor_pages.step_form(copy, step, fields=fields, errors=errors, **shown), 422
    except Conflict as error:
        return editor_scenes.back(copy, error)
    if is_typing:
        saved = step_trees.find(copy.definition, made["id"]).step
        return editor_pages.step_form(copy, saved, fields=fields, said="Saved.")
    return editor_scenes.lead_to("editor_pages.show", copy, anchor=f"step-{made['id']}")


@blueprint.post("/delete")
@page("automations.manage")
def delete(automation_id: str) -> Answer:
    """Removes a step and the steps inside it, and redirects to the picture.

    The picture shows an error if one of them was changed since the confirmation page.
    """
    copy, given = editor_scenes.find(automation_id), typed("base", "step")
    try:
        step = editor_scenes.step_asked_for(copy)
        if given["base"] not in ("", step_trees.print_of(step)):
            raise Conflict(
                "Somebody else has changed this step, or one inside it, since you were asked. Look at it again."
            )
        copy = edit(copy, f"removed “{step['id']}”", lambda it: edits.remove(it, step["id"]))
    except (Conflict, Invalid) as error:
        return editor_scenes.back(copy, error)
    return editor_scenes.lead_to("editor_pages.show", copy)


@blueprint.post("/trigger")
@page("automations.manage")
def save_trigger(automation_id: str) -> Answer:
    """Saves or removes a trigger of the draft, and redirects to the picture or the triggers.

    Buttons that change rows, and faults, show the form again.
    """
    copy, given = editor_scenes.find(automation_id), typed("do", "base", "sort")
    sort = given["sort"] if given["sort"] in dict(editor_inputs.sorts_of_triggers()) else "Trigger"
    before = with_print(copy.definition.get("triggers", []), given["base"])
    spec, fields = editor_inputs.of_trigger(sort), fields_sent()
    shown: dict[str, Any] = {"base": given["base"]}
    if (changed := editor_forms.pressed(spec, fields, given["do"])) is not None:
        return editor_pages.trigger_form(copy, sort, before, fields=changed, pressed=given["do"], **shown)
    read = editor_forms.read(spec, fields, before)
    if read.errors and given["do"] != "delete":
        return editor_pages.trigger_form(copy, sort, before, fields=fields, errors=read.errors, **shown), 422
    is_gone = given["do"] == "delete"
    made = None if is_gone else read.value
    try:
        done = "removed a trigger" if is_gone else "changed a trigger" if given["base"] else "added a trigger"
        copy = edit(copy, done, lambda it: edits.replace_trigger(it, given["base"] or None, made))
    except (Conflict, Invalid) as error:
        return editor_scenes.back(copy, error)
    return editor_scenes.lead_to("editor_pages.show_triggers" if is_gone else "editor_pages.show", copy)


@blueprint.post("/undo")
@page("automations.manage")
def undo(automation_id: str) -> Response:
    """Undoes the last change, and redirects to the picture. A Conflict is shown there."""
    return _go(automation_id, working_copies.undo)


@blueprint.post("/redo")
@page("automations.manage")
def redo(automation_id: str) -> Response:
    """Redoes the change that was undone last, and redirects like `undo`."""
    return _go(automation_id, working_copies.redo)


@blueprint.post("/here")
@page("automations.manage")
def say_here(automation_id: str) -> Response:
    """Records that the viewer has the editor open. Returns JSON.

    `people`: who else has it open. `seen`: the draft's token.
    """
    copy = editor_scenes.find(automation_id)
    people = [who for who in editors.come(copy.automation.id, viewer().actor_id) if who != viewer().actor_id]
    names = editor_scenes.names_of(people)
    return jsonify(seen=editor_scenes.seen_of(copy), people=[names.get(who, "Support") for who in people])


def _insert(copy: Copy, at: step_trees.At, kind: str) -> str:
    made: dict[str, Any] = {}

    def change(definition: Mapping[str, Any]) -> Mapping[str, Any]:
        made.update(new_steps.begun(kind, definition))
        return edits.insert(definition, at, made)

    edit(copy, f"added a step: {KINDS[kind].entry.title.lower()}", change)
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


def _do(copy: Copy, step: Mapping[str, Any], do: str) -> Response:
    """Copies, cuts or moves a step, and redirects to its form; to the picture with an error."""
    try:
        if do in ("copy", "cut"):
            clipboards.put(
                copy.automation, viewer().actor_id, edits.copied(copy.definition, step["id"]), is_cut=do == "cut"
            )
            flash(
                f"“{step['id']}” is {'cut' if do == 'cut' else 'copied'}. Press + where it belongs, here or elsewhere.",
                "info",
            )
        else:
            by = -1 if do == "raise" else 1
            copy = edit(copy, f"moved “{step['id']}”", lambda it: edits.move_by(it, step["id"], by))
    except (Conflict, Invalid) as error:
        return editor_scenes.back(copy, error)
    return editor_scenes.lead_to("editor_pages.show_step", copy, step=step["id"])


def edit(copy: Copy, done: str, change: working_copies.Change, *, is_typing: bool = False) -> Copy:
    """Changes the working copy on behalf of the viewer.

    Raises what `change` raises, and Invalid for text that cannot be stored.
    """

    def clean(definition: Mapping[str, Any]) -> Mapping[str, Any]:
        changed = change(definition)
        refuse_bad_text(changed)
        return changed

    return working_copies.edit(copy.automation, viewer().actor_id, done, clean, is_typing=is_typing)


def _go(automation_id: str, way: Any) -> Response:
    copy, given = editor_scenes.find(automation_id), typed("revision")["revision"]
    try:
        copy = way(copy.automation, int(given) if given.isascii() and given.isdigit() and len(given) < 10 else -1)
    except Conflict as error:
        return editor_scenes.back(copy, error)
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
    """Renders the step's text for the chosen contact."""
    contact = editor_scenes.contact_of(typed("contact_id")["contact_id"])
    text = step.get("text")
    if contact is None or not isinstance(text, str):
        return {"error": "Choose a contact, and write a text."}
    try:
        rendered, missing = previews.render(text, contact, copy.definition)
    except Conflict as error:
        return {"error": error.detail}
    return {"text": rendered, "missing": missing, "contact_id": contact.id}


def with_print(values: Any, its_print: str) -> Mapping[str, Any]:
    """Returns the value with that fingerprint; {} if there is none."""
    return next((each for each in values if step_trees.print_of(each) == its_print), {})


def _without_was(step: Mapping[str, Any]) -> dict[str, Any]:
    arms = step.get("arms")
    if not isinstance(arms, list):
        return dict(step)
    return {**step, "arms": [{name: each for name, each in arm.items() if name != "was"} for arm in arms]}


def fields_sent() -> dict[str, list[str]]:
    """Returns the form's fields, each with all its values."""
    return {name: typed_all(name) for name in request.form}


_MOVES = ("copy", "cut", "raise", "lower")
