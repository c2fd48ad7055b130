"""Workspaces, each created with a first token."""

from __future__ import annotations

from marshmallow import fields

from app.database import transaction
from app.domain.people import tokens
from app.domain.work.changes import Change, Effect
from app.errors import NotFound
from app.lib import ids
from app.lib.schemas import ResponseBody, about, time
from app.models.workspaces import Workspace

MOST_OPT_OUT_WORDS = 100
# Descriptions of the fields, for the schemas of requests and responses.
QUIET_HOURS = "Automations send nothing in these hours of the contact's time zone, else of the workspace's."
OPT_OUT_WORDS = "A message that is one of these words alone opts its contact out, in any case of letters."
EXAMPLE_WORDS = ["stop", "unsubscribe"]


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
    """Returns the workspace. Raises NotFound."""
    workspace = Workspace.get_or_none(Workspace.id == workspace_id)
    if workspace is None:
        raise NotFound(f"There is no workspace {workspace_id}.")
    return workspace


class WorkspaceSettingsSchema(ResponseBody):
    id = fields.String()
    name = fields.String(metadata={"example": "Demo"})
    timezone = fields.String()
    quiet_hours = fields.Dict(allow_none=True, metadata=about(QUIET_HOURS, example={"from": "21:00", "to": "08:00"}))
    opt_out_words = fields.List(
        fields.String(),
        allow_none=True,
        metadata=about(f"{OPT_OUT_WORDS} null: the built-in words.", example=EXAMPLE_WORDS),
    )
    created_at = time("When the workspace was created.")


represent = WorkspaceSettingsSchema.of
