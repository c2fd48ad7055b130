"""New automations from files and templates: shows what each would become, and creates the draft.

Also sends an automation's draft as a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app import bounds
from app.domain.automations import recipes
from app.domain.automations.imports import automation_files, named_resources
from app.domain.automations.imports.named_resources import Named
from app.domain.automations.imports.sources import MOST_BYTES, Imported, Unreadable
from app.domain.people import members
from app.errors import Conflict, Invalid, NotFound
from app.lib import graphemes, ids, json, normalization
from app.models.automations import Automation
from app.models.channels import Channel
from app.models.segments import Segment
from app.web import uploads, writes
from app.web.access import page, workspace_id
from app.web.automations import layouts, mentions
from app.web.automations.automation_pages import name_of
from app.web.automations.layouts import Picture
from app.web.automations.showings import Showing
from app.web.forms import Answer, errors_of, status_of, typed, typed_all
from app.web.redirects import to

blueprint = Blueprint("automation_imports", __name__, url_prefix="/workspaces/<workspace>/automations")

MOST_LISTED = 1_000  # the most parts without an equivalent in Bellhop that the preview lists
MOST_OFFERED = 1_000  # the most resources that a select offers
MOST_NAMED = 50  # the most selects of a page
NOBODY = ""  # the option that leaves a resource out
_MODELS: Mapping[str, Any] = {"automation": Automation, "channel": Channel, "segment": Segment}


@dataclass(frozen=True, slots=True)
class Choice:
    """A resource that the automation names. `label`: its former name; `chosen`: its replacement."""

    named: Named
    label: str
    chosen: str
    options: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Adoption:
    """An automation that can be created. `imported`: with the replacements; `drawn`: its picture."""

    imported: Imported
    choices: Sequence[Choice]
    drawn: Picture
    showing: Showing

    @property
    def is_whole(self) -> bool:
        """Whether every resource that the automation names has a replacement in this workspace."""
        return all(choice.chosen for choice in self.choices)


@blueprint.get("/import")
@page("automations.manage")
def new() -> str:
    """Shows the form for a file or its text."""
    return _form("")


@blueprint.post("/import")
# A larger limit than the file's, so that a file that is too large gets an error at its field.
@page("automations.manage", most_bytes=4 * MOST_BYTES)
def create() -> Answer:
    """Shows what the file would become; with `create`, creates the draft and redirects to it.

    Shows the form again, with 422, if the file cannot be read.
    """
    given = typed("text", "flow", "shown", "name", "create")
    raw = next((each.stream.read(MOST_BYTES + 1) for each in uploads.given("file")), given["text"])
    number = int(given["flow"]) if re.fullmatch("[0-9]{1,5}", given["flow"]) else 0
    # The typed name and choices are for the flow that the page showed. Ignore them if another flow was selected.
    is_same = given["shown"] in ("", str(number))
    try:
        with bounds.alone(workspace_id()):
            file = automation_files.recognize(raw)
            imported = file.read(number)
            adoption = _adopted(imported, file.names, is_chosen=is_same and "use" in request.form)
    except Unreadable as error:
        return _form(given["text"], {"file": error.detail}), 422
    name = given["name"] if is_same and given["name"] else _named_like(imported.name)
    errors, status = dict[str, str](), 200
    if given["create"]:
        try:
            return _create(adoption, name_of(name))
        except (Invalid, Conflict) as error:
            errors, status = errors_of(error), status_of(error)
    page_ = render_template(
        "automations/starting/preview.html",
        adoption=adoption,
        kind=automation_files.FILE_KINDS[file.kind],
        name=name,
        errors=errors,
        flows=[(str(at), each) for at, each in enumerate(file.flows)],
        flow=str(number),
        text=json.dumps(file.document).decode(),
        lost=adoption.imported.lost[:MOST_LISTED],
    )
    return page_, status


@blueprint.get("/<automation_id>/file")
@page("automations.see")
def show_file(automation_id: str) -> Response:
    """Sends the draft as a JSON file that another workspace can import."""
    automation = Automation.find(workspace_id(), automation_id)
    names = mentions.names_of(workspace_id(), automation.definition, automation.exits)
    response = Response(json.dumps(automation_files.file_of(automation, names)), mimetype="application/json")
    response.headers["Content-Disposition"] = f'attachment; filename="{automation.id}.json"'
    return response


@blueprint.get("/templates")
@page("automations.manage")
def show_templates() -> str:
    """Lists all templates with small pictures."""
    shown = []
    for recipe in recipes.all_recipes():
        body = recipe.body
        drawn = layouts.draw(body["definition"], {}, exits=body.get("exits", ()), goal=body.get("goal"))
        shown.append((recipe, drawn))
    return render_template("automations/starting/templates.html", shown=shown)


@blueprint.get("/templates/use")
@page("automations.manage")
def show_template() -> Answer:
    """Shows a template: its picture, and selects for the resources. Redirects to the list if unknown."""
    try:
        return _template(recipes.find(request.args.get("template", "")), {})
    except NotFound:
        return to("automation_imports.show_templates")


@blueprint.post("/templates/use")
@page("automations.manage")
def use_template() -> Answer:
    """Creates the draft and redirects to it. Asks first for resources that have no replacement yet."""
    recipe = recipes.find(typed("template")["template"])
    adoption = _adopted_recipe(recipe)
    if not adoption.is_whole and "use" not in request.form:
        return to("automation_imports.show_template", template=recipe.id)
    try:
        return _create(adoption, str(recipe.body["name"]))
    except (Invalid, Conflict) as error:
        return _template(recipe, errors_of(error)), status_of(error)


def _form(text: str, errors: dict[str, str] | None = None) -> str:
    return render_template("automations/starting/import.html", text=text[:MOST_BYTES], errors=errors or {})


def _template(recipe: recipes.Recipe, errors: dict[str, str]) -> str:
    adoption = _adopted_recipe(recipe)
    return render_template("automations/starting/template.html", recipe=recipe, adoption=adoption, errors=errors)


def _adopted_recipe(recipe: recipes.Recipe) -> Adoption:
    return _adopted(recipe.read(), {}, is_chosen="use" in request.form)


def _adopted(imported: Imported, names: Mapping[str, str], *, is_chosen: bool) -> Adoption:
    """Returns what the automation becomes here. `names`: former names of resources, by identifier.

    If `is_chosen`, the form's fields `use` say what replaces each resource. Otherwise, resources of the same identifier
    or name do. Raises Unreadable.
    """
    given = typed_all("use") if is_chosen else []
    named = named_resources.named(imported)
    if len(named) > MOST_NAMED:
        raise Unreadable(
            f"The file names {len(named):,} automations, members, channels and segments. At most {MOST_NAMED} can be"
            " chosen here: import it in parts."
        )
    offered = {sort: _options(sort) for sort in dict.fromkeys(each.sort for each in named)}
    choices = []
    for number, each in enumerate(named):
        options = offered[each.sort]
        known = dict(options)
        if is_chosen:
            chosen = given[number] if number < len(given) else NOBODY
        else:
            same = [key for key, label in options if label == names.get(each.id)]
            chosen = each.id if each.id in known else (same or [NOBODY])[0]
        chosen = chosen if chosen in known else NOBODY
        choices.append(Choice(each, names.get(each.id, ""), chosen, options))
    chosen_ids = {choice.named.id: choice.chosen for choice in choices}
    made = named_resources.replaced(imported, chosen_ids, lambda key: names.get(key) or f"'{key}'")
    known = mentions.names_of(workspace_id(), made.definition, made.exits)
    drawn = layouts.draw(made.definition, known, exits=made.exits, goal=made.goal)
    return Adoption(made, choices, drawn, Showing())


def _create(adoption: Adoption, name: str) -> Response:
    """Creates the draft and redirects to it, or to the list if the write is delayed.

    Raises Invalid, Conflict.
    """
    made = adoption.imported
    body: dict[str, Any] = {"name": name, "definition": made.definition, "exits": list(made.exits)}
    body |= {"goal": made.goal, "reentry": made.reentry}
    job = writes.submit("automations.create", body, ids.new("aut"))
    if not job.is_finished:
        return to("automation_pages.index")
    return to("automation_pages.show", "It is a draft. Look it over, then publish it.", automation_id=job.resource_id)


def _named_like(name: str) -> str:
    """Returns the name, cut to 200 characters; a default if it is not valid."""
    try:
        return normalization.name(graphemes.cut(name, 200))
    except ValueError:
        return "Imported automation"


def _options(sort: str) -> list[tuple[str, str]]:
    """Returns NOBODY and the workspace's resources of this type as options of a select."""
    if sort == "member":
        found = [(each.member_id, each.email) for each in members.of_workspace(workspace_id())]
    else:
        model = _MODELS[sort]
        query = model.in_workspace(workspace_id()).select(model.id, model.name)
        found = [(row.id, row.name) for row in query.order_by(model.name).limit(MOST_OFFERED)]
    return [(NOBODY, "None: leave it out"), *found]
