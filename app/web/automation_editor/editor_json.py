"""Edits the draft as JSON, with the line and pointer of each fault."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Blueprint

from app.domain.automations.editing import step_trees
from app.domain.automations.editing.working_copies import Copy
from app.errors import Fault, Invalid
from app.lib import json
from app.web.access import page
from app.web.automation_editor import editor_scenes
from app.web.automation_editor.editor_scenes import edit, of_copy
from app.web.automations.json_lines import line_of, pretty
from app.web.forms import Answer, typed

blueprint = Blueprint("editor_json", __name__, url_prefix="/workspaces/<workspace>/automations/<automation_id>/edit")


@blueprint.get("/json")
@page("automations.manage")
@of_copy
def show(copy: Copy) -> Answer:
    """Shows the draft as JSON."""
    return _form(copy, pretty(copy.definition), step_trees.print_of(copy.definition))


@blueprint.post("/json")
@page("automations.manage")
@of_copy
def save(copy: Copy) -> Answer:
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
        return _form(copy, text, base, faults=[(line, "", f"This is not JSON: {error}.")]), 422
    if base not in ("", now):
        return _form(copy, text, now, now=pretty(copy.definition)), 409
    try:
        copy = edit(copy, "changed the JSON", lambda it: definition)
    except Invalid as error:
        return _form(copy, text, base, faults=[_placed(text, definition, fault) for fault in error.faults]), 422
    if not (found := editor_scenes.copy_faults(copy)):
        return editor_scenes.lead_to("editor_pages.show", copy)
    faults = [_placed(text, definition, fault) for fault in found]
    return _form(copy, text, step_trees.print_of(copy.definition), faults=faults, is_kept=True)


def _placed(text: str, value: Any, fault: Fault) -> tuple[int | None, str, str]:
    return line_of(text, value, fault.pointer), fault.pointer, fault.detail


def _form(copy: Copy, text: str, base: str, **given: Any) -> str:
    return editor_scenes.render(copy, "json", text=text, base=base, **{"faults": [], **given})
