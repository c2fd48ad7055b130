"""Saved views: saving the current list under a name, renaming it, deleting it.

Forms redirect to the list, which shows the reason of a refusal.
"""

from __future__ import annotations

from collections.abc import Callable

from flask import Blueprint, flash, redirect
from werkzeug.wrappers import Response

from app.domain.inbox import saved_views
from app.errors import Conflict, Invalid
from app.models.saved_views import SavedView
from app.web.access import Forbidden, page, viewer, workspace_id
from app.web.forms import sentence_of, typed
from app.web.inbox import views

blueprint = Blueprint("saved_view_forms", __name__, url_prefix="/workspaces/<workspace>/inbox/views")

SHARE = "views.share"


@blueprint.post("")
@page("conversations.answer")
def create() -> Response:
    """Saves the list in the address, for the viewer or, if `shared`, for everybody. Safe to repeat."""
    given = typed("name", "shared")
    if given["shared"] and not viewer().may(SHARE):
        raise Forbidden.to(SHARE)
    view, member_id = views.asked_for(), None if given["shared"] else viewer().member_id

    def save() -> None:
        if not given["shared"] and member_id is None:
            raise Conflict("Support staff have no views of their own. Save it for the workspace.")
        saved_views.create(workspace_id(), member_id, given["name"], {"view": view.name, **view.filters})

    return _changed(save, "The view is saved.")


@blueprint.post("/<saved_view_id>/rename")
@page("conversations.answer")
def rename(saved_view_id: str) -> Response:
    """Renames the view, for everybody who sees it."""
    return _changed(lambda: saved_views.rename(_own(saved_view_id), typed("name")["name"]), "The view is renamed.")


@blueprint.post("/<saved_view_id>/delete")
@page("conversations.answer")
def delete(saved_view_id: str) -> Response:
    """Deletes the view, not its conversations."""
    return _changed(lambda: saved_views.delete(_own(saved_view_id)), "The view is deleted.")


def may_change(view: SavedView) -> bool:
    """Whether the viewer may change the view: their own, or with SHARE a view of the workspace."""
    return viewer().may(SHARE) if view.member_id is None else viewer().member_id == view.member_id


def _own(saved_view_id: str) -> SavedView:
    found = SavedView.find(workspace_id(), saved_view_id)
    if not may_change(found):
        raise Conflict("This view is not yours to change.")
    return found


def _changed(change: Callable[[], object], done: str) -> Response:
    try:
        change()
        flash(done, "good")
    except (Invalid, Conflict) as error:
        flash(sentence_of(error), "error")
    return redirect(views.asked_for().address("inbox_pages.index"), 303)
