"""Controlled batches: the columns and the list that replays and broadcasts share."""

from __future__ import annotations

from typing import ClassVar, Self

from peewee import IntegerField, TextField

from app.models.base import MailModel, TimeField, page_before


class ControlledBatch(MailModel):
    """A replay or a broadcast. NOUN begins the names of the tables of its parts and of its rows."""

    NOUN: ClassVar[str]

    state = TextField()
    count = IntegerField(default=0)
    per_second = IntegerField(null=True)
    created_by = TextField(null=True)
    trace_id = TextField()
    paced_until = TimeField(null=True)
    wakes_at = TimeField(null=True)
    created_at = TimeField()
    finished_at = TimeField(null=True)

    @classmethod
    def newest(cls, workspace_id: str, state: str | None, last_id: str | None, limit: int) -> list[Self]:
        """Returns up to `limit` batches after `last_id`, newest first. `state`: None for any state."""
        query = cls.in_workspace(workspace_id)
        if state is not None:
            query = query.where(cls.state == state)
        return list(page_before(query, cls, [last_id], limit))

    @property
    def is_finished(self) -> bool:
        """Whether the batch is done or aborted."""
        return self.state in ("done", "aborted")
