"""Clipboards: steps that members have copied or cut, to paste into any automation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peewee import fn

from app.models.automations import Automation
from app.models.working_copies import StepClipboard

# For how many days a copied or cut step can be pasted.
KEPT_DAYS = 30


def put(automation: Automation, actor_id: str, step: Mapping[str, Any], *, is_cut: bool) -> None:
    """Stores the step in the actor's clipboard, in place of the previous one."""
    values = {"step": step, "source_id": automation.id, "is_cut": is_cut, "updated_at": fn.now()}
    StepClipboard.insert(workspace_id=automation.workspace_id, actor_id=actor_id, **values).on_conflict(
        conflict_target=[StepClipboard.workspace_id, StepClipboard.actor_id], update=values
    ).execute()


def of(workspace_id: str, actor_id: str) -> StepClipboard | None:
    """Returns the actor's clipboard in the workspace; None if nothing was copied or cut."""
    mine = (StepClipboard.workspace_id == workspace_id) & (StepClipboard.actor_id == actor_id)
    found: StepClipboard | None = StepClipboard.select().where(mine).first()
    return found


def was_pasted(clipboard: StepClipboard) -> None:
    """Marks a cut step as a copy, because it has been removed from its source."""
    mine = (StepClipboard.workspace_id == clipboard.workspace_id) & (StepClipboard.actor_id == clipboard.actor_id)
    StepClipboard.update(is_cut=False).where(mine).execute()
