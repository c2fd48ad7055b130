"""Quotas: how many rows of a model a workspace may have."""

from __future__ import annotations

from dataclasses import dataclass

from app.errors import Conflict
from app.models.base import OwnedModel
from app.models.jobs import Job


@dataclass(slots=True)
class Quota:
    """The most rows of a model in a workspace. `noun`: the plural with which its kinds of jobs begin."""

    model: type[OwnedModel]
    most: int
    noun: str

    def check(self, workspace_id: str) -> None:
        """Raises Conflict like `keep`, unless a queued deletion may make room."""
        try:
            self.keep(workspace_id)
        except Conflict:
            if not is_deletion_queued(workspace_id, self.noun):
                raise

    def keep(self, workspace_id: str) -> None:
        """Raises Conflict if there is no room. Exact, because writes are applied one at a time."""
        if self.model.in_workspace(workspace_id).count() >= self.most:
            name = self.noun.replace("_", " ")
            raise Conflict(f"A workspace has at most {self.most:,} {name}. Delete one first.")


def is_deletion_queued(workspace_id: str, noun: str) -> bool:
    """Returns whether a queued or running write of the workspace deletes a row of `noun`."""
    deletes = (Job.kind == f"{noun}.delete") & Job.status.in_(["queued", "running"])
    return bool(Job.in_workspace(workspace_id).where(deletes).exists())
