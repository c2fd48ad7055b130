"""Saved views: saving the current list under a name, renaming it, deleting it."""

from __future__ import annotations

from flask import Blueprint, flash, redirect
from werkzeug.wrappers import Response

from app.domain.inbox import saved_views
from app.errors import Conflict, Invalid
from app.models.saved_views import SavedView
from app.web.access import Forbidden, page, viewer, workspace_id
from app.web.forms import errors_of, typed
from app.web.inbox import views

blueprint = Blueprint("saved_view_forms", __name__, url_prefix="/workspaces/<workspace>/inbox/views")

SHARE = "views.share"
_NOT_YOURS = "This view is not yours to change."


@blueprint.post("")
@page("conversations.answer")
def create() -> Response:
    """Saves the list in the address, for the viewer or for the workspace (`shared`).

    Safe to repeat. Redirects to the list. If the view is refused, the list shows the reason.
    """
    given = typed("name", "shared")
    if given["shared"] and not viewer().may(SHARE):
        raise Forbidden.to(SHARE)
    view, membership = views.asked_for(), viewer().membership
    try:
        if not given["shared"] and membership is None:
            raise Conflict("Support staff have no views of their own. Save it for the workspace.")
        member_id = None if given["shared"] or membership is None else membership.member_id
        saved_views.create(workspace_id(), member_id, given["name"], {"view": view.name, **view.filters})
        flash("The view is saved.", "good")
    except (Invalid, Conflict) as error:
        flash(next(iter(errors_of(error).values())), "error")
    return _back()


@blueprint.post("/<saved_view_id>/rename")
@page("conversations.answer")
def rename(saved_view_id: str) -> Response:
    """Renames the view, and redirects to the list. If it is refused, the list shows the reason."""
    found = SavedView.find(workspace_id(), saved_view_id)
    if not may_change(found):
        flash(_NOT_YOURS, "error")
        return _back()
    try:
        saved_views.rename(found, typed("name")["name"])
        flash("The view is renamed.", "good")
    except (Invalid, Conflict) as error:
        flash(next(iter(errors_of(error).values())), "error")
    return _back()


@blueprint.post("/<saved_view_id>/delete")
@page("conversations.answer")
def delete(saved_view_id: str) -> Response:
    """Deletes the view, not its conversations, and redirects to the list."""
    found = SavedView.find(workspace_id(), saved_view_id)
    if not may_change(found):
        flash(_NOT_YOURS, "error")
        return _back()
    saved_views.delete(found)
    flash("The view is deleted.", "good")
    return _back()


def may_change(view: SavedView) -> bool:
    """Whether the viewer may change the view: their own, or with SHARE a view of the workspace."""
    if view.member_id is None:
        return viewer().may(SHARE)
    membership = viewer().membership
    return membership is not None and membership.member_id == view.member_id


def _back() -> Response:
    return redirect(views.asked_for().address("inbox_pages.index"), 303)
