"""Changes: what a write asks of its verb, and what the verb reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.domain.work.events import Cause, Recorder
from app.domain.work.units import Unit
from app.errors import BellhopError
from app.models.jobs import Job


@dataclass(frozen=True, slots=True)
class Change:
    """One write. `payload` has been checked; `resource_id` is the one in the path, or the new one of a create.

    `actor_id` is that of a token (`tok_…`), a member on a page (`mem_…`) or a visit of support staff (`vis_…`); None if
    a command asked for the write. The verb reads and writes through `unit`; `progress` is what an earlier part of a
    long write has kept for the next one.
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
        """Records what the write did, with the write as its cause."""
        recorder = self.unit.recorder(self.workspace_id)
        recorder.cause = self.cause
        return recorder

    @property
    def author(self) -> dict[str, str]:
        """The author of a text that the write adds: a `member`, support staff included, or the `api`."""
        actor_id = self.actor_id or ""
        return {"type": "member" if actor_id.startswith(("mem_", "vis_")) else "api", "id": actor_id}

    @property
    def target(self) -> str:
        """The resource that the write is about. Only for kinds that know it when they are accepted."""
        assert self.resource_id is not None
        return self.resource_id

    def keep(self, **progress: Any) -> None:
        """Keeps the progress of a long write, with the part that it has done. Only for writes that are jobs."""
        Job.update(progress=progress).where(Job.id == self.cause.job_id).execute()


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a write, and its resource. With a `refusal`, its job fails with that, but the effect stays."""

    kind: Literal["made", "changed", "deleted"]
    resource_type: str
    resource_id: str
    refusal: BellhopError | None = None
