"""The frame in which a write's verb runs: what it was asked for, and where it records what happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # deliveries are changed by writes, and events are recorded with their deliveries
    from app.domain.events import Recorder


@dataclass(frozen=True, slots=True)
class Change:
    """One accepted write. `payload` has been checked; `resource_id` is that in the path, or the new one of a create.

    `token_id` is None where a command asked for it; `events.cause` names the job and the request.
    """

    workspace_id: str
    payload: Mapping[str, Any]
    resource_id: str | None
    events: Recorder
    kind: str
    token_id: str | None

    @property
    def target(self) -> str:
        """The identifier of the resource that the write is about. Only for kinds that name one when accepted."""
        assert self.resource_id is not None
        return self.resource_id


@dataclass(frozen=True, slots=True)
class Effect:
    """What a write did, and to which resource."""

    kind: Literal["made", "changed", "deleted"]
    resource_type: str
    resource_id: str
