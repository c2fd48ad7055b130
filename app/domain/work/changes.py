"""Changes: the request for a write, the input of its verb, and the effect that the verb returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.domain.work.events import Cause, Recorder
from app.domain.work.units import Unit
from app.errors import BellhopError
from app.models.jobs import Job


@dataclass(frozen=True, slots=True)
class Write:
    """A caller's request. `payload` has been checked. `resource_id`: None if it is not known yet."""

    workspace_id: str
    kind: str
    payload: Mapping[str, Any]
    trace_id: str
    resource_id: str | None = None
    actor_id: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One write. `payload` has been checked. `resource_id`: from the path, or the new id of a create.

    `actor_id`: a token (`tok_…`), a member on a page (`mem_…`) or a visit of support staff (`vis_…`); None if a command
    made the write. The verb reads and writes through `unit`. `progress`: what the earlier part of a long write stored
    with `keep`.
    """

    workspace_id: str
    payload: Mapping[str, Any]
    resource_id: str | None
    kind: str
    actor_id: str | None
    cause: Cause
    unit: Unit
    progress: Mapping[str, Any] | None = None

    @property
    def events(self) -> Recorder:
        """The recorder for the events of the write, with the write as their cause."""
        recorder = self.unit.recorder(self.workspace_id)
        recorder.cause = self.cause
        return recorder

    @property
    def author(self) -> dict[str, str]:
        """The author of a text that the write adds: `member`, also for support staff, or `api`."""
        actor_id = self.actor_id or ""
        return {"type": "member" if actor_id.startswith(("mem_", "vis_")) else "api", "id": actor_id}

    @property
    def target(self) -> str:
        """The resource that the write is about. Only for kinds whose resource is known on acceptance."""
        assert self.resource_id is not None
        return self.resource_id

    def keep(self, **progress: Any) -> None:
        """Stores how far a long write has come. Only for writes that are jobs.

        Call it in the transaction that makes the changes.
        """
        Job.update(progress=progress).where(Job.id == self.cause.job_id).execute()


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a write, and its resource. With a `refusal`, it is kept although the job fails."""

    kind: Literal["made", "changed", "deleted"]
    resource_type: str
    resource_id: str
    refusal: BellhopError | None = None
