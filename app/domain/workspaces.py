"""Workspaces: made with a first token."""

from __future__ import annotations

from app.database import transaction
from app.domain import tokens
from app.errors import NotFound
from app.lib import ids
from app.models.workspaces import Workspace


def create(name: str) -> tuple[Workspace, str]:
    """Makes a workspace and an unrestricted token for it; the token cannot be had again."""
    workspace = Workspace(id=ids.new("ws"), name=name)
    with transaction():
        Workspace.insert(id=workspace.id, name=name).execute()
        _, token = tokens.issue(workspace.id, "First token")
    return workspace, token


def find(workspace_id: str) -> Workspace:
    """Raises NotFound."""
    workspace = Workspace.get_or_none(Workspace.id == workspace_id)
    if workspace is None:
        raise NotFound(f"There is no workspace {workspace_id}.")
    return workspace
