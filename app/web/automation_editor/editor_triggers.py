"""Forms of the draft's triggers, and of the automation's exits and goal.

Exits and the goal are not part of the draft: their changes take effect at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flask import Blueprint, request

from app.domain.automations import definitions
from app.domain.automations.editing import edits, step_trees
from app.domain.automations.editing.working_copies import Copy
from app.errors import Conflict, Fault, Invalid
from app.web import writes
from app.web.automation_editor import editor_forms, editor_inputs, editor_scenes
from app.web.automation_editor.editor_pages import fields_sent, with_form
from app.web.automation_editor.editor_scenes import edit, editor_page
from app.web.forms import Answer, errors_of, status_of, typed

blueprint = Blueprint(
    "editor_triggers", __name__, url_prefix="/workspaces/<workspace>/automations/<automation_id>/edit"
)

WEEK_SECONDS = 7 * 24 * 60 * 60
# The schemas of exits and of the goal.
_SORTS = {"exits": "Trigger", "goal": "Goal"}


@blueprint.get("/triggers")
@editor_page
def show_triggers(copy: Copy) -> Answer:
    """Shows the automation's triggers, and the types that can be added."""
    triggers = _listed(copy.definition.get("triggers", []))
    return editor_scenes.render(copy, "triggers", triggers=triggers, sorts=editor_inputs.TRIGGERS.items())


@blueprint.get("/trigger")
@editor_page
def show_trigger(copy: Copy) -> Answer:
    """Shows the form of a trigger: the one whose fingerprint is `base`, or a new one."""
    base = request.args.get("base", "")
    trigger = _with_print(copy.definition.get("triggers", []), base)
    if base and trigger is None:
        raise Conflict("This trigger is not there any more, or somebody has changed it.")
    sort = _sort(request.args.get("sort", "")) if trigger is None else editor_inputs.sort_of(trigger)
    return _form(copy, "trigger", sort, trigger or {}, base, sort=sort)


@blueprint.post("/trigger")
@editor_page
def save_trigger(copy: Copy) -> Answer:
    """Saves or removes a trigger of the draft, and redirects to the picture or the triggers.

    Buttons that change rows, and faults, show the form again.
    """
    given = typed("do", "base", "sort")
    base, sort, is_gone = given["base"], _sort(given["sort"]), given["do"] == "delete"
    before, fields = _with_print(copy.definition.get("triggers", []), base) or {}, fields_sent()
    spec = editor_inputs.of_trigger(sort)
    if (changed := editor_forms.pressed(spec, fields, given["do"])) is not None:
        return _form(copy, "trigger", sort, before, base, sort=sort, fields=changed)
    read = editor_forms.read(spec, fields, before)
    if read.errors and not is_gone:
        return _form(copy, "trigger", sort, before, base, sort=sort, fields=fields, errors=read.errors), 422
    made = None if is_gone else read.value
    done = "removed a trigger" if is_gone else "changed a trigger" if base else "added a trigger"
    copy = edit(copy, done, lambda it: edits.replace_trigger(it, base or None, made))
    return editor_scenes.lead_to("editor_triggers.show_triggers" if is_gone else "editor_pages.show", copy)


@blueprint.get("/rules")
@editor_page
def show_rules(copy: Copy) -> Answer:
    """Lists the exits, which end runs early, and the goal."""
    return editor_scenes.render(copy, "rules", exits=_listed(copy.automation.exits), goal=copy.automation.goal)


@blueprint.get("/rule")
@editor_page
def show_rule(copy: Copy) -> Answer:
    """Shows the form of an exit, or of the goal."""
    which = "goal" if request.args.get("of") == "goal" else "exits"
    base = step_trees.print_of(copy.automation.goal) if which == "goal" else request.args.get("base", "")
    return _form(copy, "rule", _SORTS[which], _before(copy, which, base), base, which=which)


@blueprint.post("/rule")
@editor_page
def save_rule(copy: Copy) -> Answer:
    """Saves or removes an exit, or the goal, and redirects to the list of exits and the goal.

    Buttons that change rows, and faults, show the form again.
    """
    given = typed("do", "base", "of")
    base, which, is_gone = given["base"], "goal" if given["of"] == "goal" else "exits", given["do"] == "delete"
    sort, before, fields = _SORTS[which], _before(copy, which, base), fields_sent()
    spec = editor_inputs.of_trigger(sort)
    if (changed := editor_forms.pressed(spec, fields, given["do"])) is not None:
        return _form(copy, "rule", sort, before, base, which=which, fields=changed)
    read = editor_forms.read(spec, fields, before)
    if read.errors and not is_gone:
        return _form(copy, "rule", sort, before, base, which=which, fields=fields, errors=read.errors), 422
    try:
        body = {which: _changed(copy, which, base, None if is_gone else read.value)}
        writes.submit("automations.update", body, copy.automation.id)
    except (Invalid, Conflict) as error:
        errors = errors_of(error)
        return _form(copy, "rule", sort, before, base, which=which, fields=fields, errors=errors), status_of(error)
    return editor_scenes.lead_to("editor_triggers.show_rules", copy)


def _changed(copy: Copy, which: str, base: str, rule: Mapping[str, Any] | None) -> Any:
    """Returns the goal, or all exits, with `rule` in place of the one with fingerprint `base`.

    Raises Invalid if the rule has faults, and Conflict if somebody else has changed the rule.
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
        place = next((f"/{number}" for number, each in enumerate(changed) if each is rule), None)
        faults = [
            Fault(fault.pointer.removeprefix(place), fault.detail)
            for fault in definitions.exit_faults(changed)
            if place and fault.pointer.startswith(f"{place}/")
        ]
    if faults:
        raise Invalid(*faults)
    return changed


def _before(copy: Copy, which: str, base: str) -> Mapping[str, Any]:
    if which == "goal":
        return copy.automation.goal or {"within_seconds": WEEK_SECONDS}
    return _with_print(copy.automation.exits, base) or {}


def _sort(asked: str) -> str:
    return asked if asked in editor_inputs.TRIGGERS else "Trigger"


def _with_print(rules: Sequence[Mapping[str, Any]], base: str) -> Mapping[str, Any] | None:
    return next((each for each in rules if step_trees.print_of(each) == base), None)


def _listed(rules: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], str]]:
    return [(rule, step_trees.print_of(rule)) for rule in rules]


def _form(copy: Copy, panel: str, schema: str, rule: Mapping[str, Any], base: str, **given: Any) -> str:
    """Renders the form of a trigger, an exit or the goal. `schema`: the name of its schema."""
    spec = editor_inputs.of_trigger(schema)
    given = {"fields": editor_forms.fields_of(spec, rule), "errors": {}, **given}
    return with_form(copy, panel, spec, rule, base=base, **given)
