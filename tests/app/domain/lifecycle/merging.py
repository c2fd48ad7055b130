"""Merges as arrivals make them: in a unit of work, with a write that follows."""

from __future__ import annotations

from typing import Any

from app.database import transaction
from app.domain.lifecycle import merges
from app.domain.triggers import batches
from app.domain.work.changes import Change
from app.domain.work.events import Cause
from app.domain.work.units import Unit
from app.models import sets
from app.models.contacts import Contact
from tests.cast import Api


def merge_at_once(api: Api, kept_id: str, other_id: str, *, then: Exception | None = None) -> Any:
    """Merges in a unit, as an arrival does; `then` is raised at its end. The write that follows is not applied yet."""

    def task(unit: Unit) -> Contact:
        change = Change(api.workspace_id, {}, None, "test", None, Cause(None, "trace-1"), unit)
        merged = merges.merge(change, *(unit.get(*key) for key in keys))
        if then is not None:
            raise then
        return merged

    keys = [sets.key(Contact, api.workspace_id, "id", each) for each in (kept_id, other_id)]
    with transaction():
        return batches.run([task], keys)
