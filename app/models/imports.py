"""Imports of contacts, their pending lines, and the errors of bad lines."""

from __future__ import annotations

from peewee import IntegerField, TextField

from app.models.base import BaseModel, OwnedModel, TimeField, json_field


class Import(OwnedModel):
    PREFIX = "imp"

    job_id = TextField()
    total = IntegerField()
    done = IntegerField(default=0)
    failed = IntegerField()
    created_at = TimeField()
    finished_at = TimeField(null=True)


class LineError(BaseModel):
    import_id = TextField()
    number = IntegerField()
    problem = json_field()

    class Meta:
        table_name = "import_errors"
        primary_key = False

    @classmethod
    def of(cls, import_id: str, after: str | None, limit: int) -> list[LineError]:
        """The first `limit` errors after line number `after`, in the order of the lines."""
        query = cls.select().where(cls.import_id == import_id, cls.number > int(after or 0))
        return list(query.order_by(cls.number).limit(limit))
