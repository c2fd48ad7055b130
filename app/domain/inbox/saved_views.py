"""Saved views: named inbox lists, of one member or of the whole workspace."""

from __future__ import annotations

from collections.abc import Mapping

from app.database import rows, transaction
from app.domain.inbox.choices import FILTERS, VIEWS
from app.errors import Conflict, Fault, Invalid, valid
from app.lib import ids, normalization
from app.models.saved_views import SavedView

# The most views of a member, and of a workspace.
MOST_VIEWS = 50
LONGEST_NAME = 60


def seen_by(workspace_id: str, member_id: str | None) -> list[SavedView]:
    """Returns the views of the workspace, then the member's, both oldest first."""
    own = SavedView.owned_by(workspace_id, member_id) if member_id is not None else []
    return [*SavedView.owned_by(workspace_id, None), *own]


def create(workspace_id: str, member_id: str | None, name: str, filters: Mapping[str, str]) -> SavedView:
    """Saves a view for the member, or for the workspace if `member_id` is None. Safe to repeat.

    Raises Invalid if the name or view is invalid, and Conflict if the name is taken or there are MOST_VIEWS.
    """
    kept = {key: filters[key] for key in ("view", *FILTERS) if filters.get(key)}
    if kept.get("view") not in VIEWS:
        raise Invalid(Fault("/view", "There is no such view."))
    name = _read_name(name)
    with transaction():
        _lock(workspace_id, member_id)
        there = SavedView.owned_by(workspace_id, member_id)
        if (same := _named(there, name)) is not None:
            if same.filters == kept:
                return same
            raise _taken(name)
        if len(there) >= MOST_VIEWS:
            raise Conflict(f"There are at most {MOST_VIEWS} saved views. Delete one first.")
        view = {"id": ids.new("svw"), "workspace_id": workspace_id, "member_id": member_id, "name": name}
        SavedView.insert(**view, filters=kept).execute()
    return SavedView.find(workspace_id, view["id"] or "")


def rename(view: SavedView, name: str) -> None:
    """Renames the view. Raises Invalid if the name is invalid, and Conflict if it is taken."""
    name = _read_name(name)
    with transaction():
        _lock(view.workspace_id, view.member_id)
        same = _named(SavedView.owned_by(view.workspace_id, view.member_id), name)
        if same is not None and same.id != view.id:
            raise _taken(name)
        SavedView.update(name=name).where(SavedView.id == view.id).execute()


def delete(view: SavedView) -> None:
    """Deletes the view. Safe to repeat."""
    SavedView.delete().where(SavedView.id == view.id).execute()


def _read_name(text: str) -> str:
    name = valid("/name", normalization.name, text)
    if len(name) > LONGEST_NAME:
        raise Invalid(Fault("/name", f"A name has at most {LONGEST_NAME} characters."))
    return name


def _named(views: list[SavedView], name: str) -> SavedView | None:
    return next((view for view in views if view.name.casefold() == name.casefold()), None)


def _taken(name: str) -> Conflict:
    return Conflict(f"There is a view with the name “{name}” already.", conflicting_field="name")


def _lock(workspace_id: str, member_id: str | None) -> None:
    """Serializes changes, so that concurrent ones cannot exceed MOST_VIEWS or use a name twice."""
    rows("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"saved_views {workspace_id} {member_id}",))
