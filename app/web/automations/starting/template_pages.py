"""Templates: the recipes of the guides, which can be adopted with a click."""

from __future__ import annotations

from flask import Blueprint, render_template, request

from app.domain.automations import recipes
from app.errors import Conflict, Invalid, NotFound
from app.web.access import page
from app.web.automations import layouts
from app.web.automations.layouts import Picture
from app.web.automations.starting import adoptions
from app.web.forms import Answer, errors_of, status_of, typed
from app.web.redirects import to

blueprint = Blueprint("template_pages", __name__, url_prefix="/workspaces/<workspace>/automations/templates")


@blueprint.get("")
@page("automations.manage")
def index() -> str:
    """Lists all templates with their pictures."""
    shown = [(each, _thumbnail(each)) for each in recipes.all_recipes()]
    return render_template("automations/starting/templates.html", shown=shown)


@blueprint.get("/use")
@page("automations.manage")
def show() -> Answer:
    """Shows a template: its picture, what it does, and what has to be chosen."""
    try:
        return _page(recipes.find(request.args.get("template", "")), {})
    except NotFound:
        return to("template_pages.index")


@blueprint.post("/use")
@page("automations.manage")
def create() -> Answer:
    """Creates the draft and redirects to it. Asks first for resources that have no replacement yet."""
    recipe = recipes.find(typed("template")["template"])
    adoption = _adoption(recipe)
    if not adoption.is_whole and "use" not in request.form:
        return to("template_pages.show", template=recipe.id)
    try:
        return adoptions.create(adoption, str(recipe.body["name"]))
    except (Invalid, Conflict) as error:
        return _page(recipe, errors_of(error)), status_of(error)


def _page(recipe: recipes.Recipe, errors: dict[str, str]) -> str:
    adoption = _adoption(recipe)
    return render_template("automations/starting/template.html", recipe=recipe, adoption=adoption, errors=errors)


def _adoption(recipe: recipes.Recipe) -> adoptions.Adoption:
    return adoptions.adopt(recipe.read(), {}, is_chosen="use" in request.form)


def _thumbnail(recipe: recipes.Recipe) -> Picture:
    body = recipe.body
    return layouts.draw(body["definition"], {}, exits=body.get("exits", ()), goal=body.get("goal"))
