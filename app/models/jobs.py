"""Jobs: accepted writes, the mail of a workspace."""

from __future__ import annotations

from peewee import BigIntegerField, BlobField, IntegerField, TextField

from app.models.base import BaseModel, OwnedModel, TimeField, json_field


class Job(OwnedModel):
    id = TextField(primary_key=True)
    position = BigIntegerField()
    token_id = TextField(null=True)
    kind = TextField()
    status = TextField(default="queued")
    payload = json_field(null=True)
    effect = TextField(null=True)
    resource_type = TextField(null=True)
    resource_id = TextField(null=True)
    problem = json_field(null=True)
    trace_id = TextField()
    due_at = TimeField(null=True)
    claim = IntegerField(default=0)
    created_at = TimeField()
    started_at = TimeField(null=True)
    finished_at = TimeField(null=True)

    class Meta:
        table_name = "jobs"

    @property
    def is_finished(self) -> bool:
        return self.status in ("succeeded", "failed")

    @classmethod
    def batch(cls, ids: list[str]) -> list[Job]:
        """The jobs in the order in which they were accepted."""
        return list(cls.select().where(cls.id.in_(ids)).order_by(cls.position))

    @classmethod
    def will_make(cls, workspace_id: str, resource_type: str, resource_id: str) -> bool:
        """Whether a job that has not ended yet concerns that resource."""
        is_of_resource = (cls.resource_type == resource_type) & (cls.resource_id == resource_id)
        return bool(cls.in_workspace(workspace_id).where(is_of_resource, cls.due_at.is_null(False)).exists())


class IdempotencyKey(BaseModel):
    token_id = TextField()
    key = TextField()
    fingerprint = BlobField()
    job_id = TextField()
    created_at = TimeField()

    class Meta:
        table_name = "idempotency_keys"
        primary_key = False
