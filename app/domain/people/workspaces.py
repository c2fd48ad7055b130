"""Workspaces, each created with a first token."""

from __future__ import annotations

from typing import Any

from app.database import transaction
from app.domain.people import tokens
from app.domain.work.changes import Change, Effect
from app.errors import NotFound
from app.lib import ids
from app.models.workspaces import Workspace

MOST_OPT_OUT_WORDS = 100


def create(name: str) -> tuple[Workspace, str]:
    """Creates a workspace and an unrestricted token, which cannot be shown again. Returns both."""
    workspace = Workspace(id=ids.new("ws"), name=name)
    with transaction():
        Workspace.insert(id=workspace.id, name=name).execute()
        _, token = tokens.issue(workspace.id, "First token")
    return workspace, token


def update(change: Change) -> Effect:
    """Changes the given fields of the workspace."""
    if change.payload:
        Workspace.update(**change.payload).where(Workspace.id == change.workspace_id).execute()
    return Effect("changed", "workspace", change.workspace_id)


def find(workspace_id: str) -> Workspace:
    """The workspace. Raises NotFound."""
    workspace = Workspace.get_or_none(Workspace.id == workspace_id)
    if workspace is None:
        raise NotFound(f"There is no workspace {workspace_id}.")
    return workspace


def represent(workspace: Workspace) -> dict[str, Any]:
    """The workspace as the API shows it."""
    return {
        "id": workspace.id,
        "name": workspace.name,
        "timezone": workspace.timezone,
        "quiet_hours": workspace.quiet_hours,
        "opt_out_words": workspace.opt_out_words,
        "created_at": workspace.created_at,
    }
