"""Jobs: accepted writes, in a mailbox for each workspace."""

from __future__ import annotations

from collections.abc import Sequence

from peewee import BigIntegerField, BlobField, IntegerField, TextField

from app.database import rows
from app.models.base import BaseModel, MailModel, TimeField, json_field, page_before

STATUSES = ["queued", "running", "succeeded", "failed"]


class Job(MailModel):
    PREFIX = "job"

    position = BigIntegerField()
    # A token (`tok_…`), a member on a page (`mem_…`) or a visit of support staff (`vis_…`); null for a command.
    actor_id = TextField(null=True, column_name="token_id")
    kind = TextField()
    status = TextField(default="queued")
    payload = json_field(null=True)
    progress = json_field(null=True)
    effect = TextField(null=True)
    resource_type = TextField(null=True)
    resource_id = TextField(null=True)
    problem = json_field(null=True)
    # The exception that broke the job, if its payload is kept: see `app.lib.breakages`.
    broke = json_field(null=True)
    trace_id = TextField()
    deaths = IntegerField(default=0)
    unknown_since = TimeField(null=True)
    replayed_from = TextField(null=True)
    replayed_as = TextField(null=True)
    discarded_at = TimeField(null=True)
    discard_reason = TextField(null=True)
    created_at = TimeField()
    started_at = TimeField(null=True)
    finished_at = TimeField(null=True)

    @property
    def is_finished(self) -> bool:
        """Whether the job has succeeded or failed."""
        return self.status in ("succeeded", "failed")

    @classmethod
    def batch(cls, ids: list[str]) -> list[Job]:
        """Returns the jobs with these `ids`, in the order in which they were accepted."""
        return list(cls.select().where(cls.id.in_(ids)).order_by(cls.position))

    @classmethod
    def newest(
        cls, workspace_id: str, kinds: Sequence[str] | None, status: str | None, last_id: str | None, limit: int
    ) -> list[Job]:
        """Returns up to `limit` jobs of the kinds and status after `last_id`, newest first; None: any.

        If a status is given, `kinds` must not be None; it may list all kinds.
        """
        if kinds is None:
            return list(page_before(cls.in_workspace(workspace_id), cls, [last_id], limit))
        # Reads the newest jobs of each kind and status from an index. Compares whole index tuples, so that the planner
        # reads the index in order.
        found = rows(
            """
            SELECT newest.id
            FROM unnest(%(kinds)s::text[]) AS wanted(kind) CROSS JOIN unnest(%(statuses)s::text[]) AS state(status)
            CROSS JOIN LATERAL (
                SELECT id FROM jobs
                WHERE workspace_id = %(workspace_id)s AND id < %(last_id)s
                    AND (kind, status, id) >= (wanted.kind, state.status, '')
                    AND (kind, status, id) < (wanted.kind, state.status, %(last_id)s)
                ORDER BY kind DESC, status DESC, id DESC LIMIT %(limit)s) AS newest
            ORDER BY newest.id DESC LIMIT %(limit)s
            """,
            {
                "kinds": list(kinds),
                "statuses": STATUSES if status is None else [status],
                "workspace_id": workspace_id,
                "last_id": last_id or "job_~",
                "limit": limit,
            },
        )
        return list(cls.select().where(cls.id.in_([id for (id,) in found])).order_by(cls.id.desc())) if found else []

    @classmethod
    def open_failures(cls, workspace_id: str, kind: str | None, last_id: str | None, limit: int) -> list[Job]:
        """Returns up to `limit` open failures after `last_id`, newest first; of any `kind` if None."""
        query = cls.in_workspace(workspace_id).where(
            cls.status == "failed", cls.replayed_as.is_null(), cls.discarded_at.is_null()
        )
        if kind is not None:
            query = query.where(cls.kind == kind)
        return list(page_before(query, cls, [last_id], limit))

    @classmethod
    def broken(cls, workspace_id: str, last_id: str | None, limit: int) -> list[Job]:
        """Returns up to `limit` failed jobs after `last_id` whose payload is kept, newest first."""
        return cls._few("status = 'failed' AND payload IS NOT NULL", workspace_id, last_id, limit)

    @classmethod
    def set_aside(cls, workspace_id: str, last_id: str | None, limit: int) -> list[Job]:
        """Returns up to `limit` jobs after `last_id` of kinds not known to any worker yet, newest first."""
        return cls._few("unknown_since IS NOT NULL", workspace_id, last_id, limit)

    @classmethod
    def _few(cls, condition: str, workspace_id: str, last_id: str | None, limit: int) -> list[Job]:
        """Returns up to `limit` jobs after `last_id` that meet the condition of a partial index."""
        # Sorts all jobs that meet the condition: few do, and the planner finds no better way.
        query = f"""
            WITH few AS MATERIALIZED (SELECT id FROM jobs WHERE workspace_id = %s AND {condition})
            SELECT id FROM few WHERE id < %s ORDER BY id DESC LIMIT %s
        """
        found = [id for (id,) in rows(query, (workspace_id, last_id or "job_~", limit))]
        return list(cls.select().where(cls.id.in_(found)).order_by(cls.id.desc())) if found else []

    @classmethod
    def will_make(cls, workspace_id: str, resource_type: str, resource_id: str) -> bool:
        """Whether an unfinished job concerns that resource."""
        is_of_resource = (cls.resource_type == resource_type) & (cls.resource_id == resource_id)
        return bool(cls.in_workspace(workspace_id).where(is_of_resource, cls.due_at.is_null(False)).exists())


class IdempotencyKey(BaseModel):
    actor_id = TextField(column_name="token_id")
    key = TextField()
    fingerprint = BlobField()
    job_id = TextField()
    created_at = TimeField()

    class Meta:
        primary_key = False
