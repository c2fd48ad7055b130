"""Imports of contacts, and the errors of their invalid lines."""

from __future__ import annotations

from typing import NamedTuple

from peewee import BooleanField, IntegerField, TextField

from app.database import rows
from app.models.base import BaseModel, OwnedModel, TimeField, json_field

MOST_GROUPS = 20
_GROUPS = """
    SELECT field, detail, is_imported, count(*) AS lines, min(number) AS first FROM (
        SELECT number, is_imported, ltrim(coalesce(fault->>'pointer', ''), '/') AS field,
            coalesce(fault->>'detail', problem->>'detail', problem->>'title', '') AS detail
        FROM import_errors LEFT JOIN LATERAL json_array_elements(problem->'errors') AS fault ON true
        WHERE import_id = %s) AS faults
    GROUP BY field, detail, is_imported ORDER BY lines DESC, first, field LIMIT %s
"""


class Group(NamedTuple):
    """The lines of an import with the same fault. `lines`: how many; `first`: the lowest number."""

    field: str
    detail: str
    is_imported: bool
    lines: int
    first: int


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
    # Whether the line was imported without the cells that the problem names.
    is_imported = BooleanField(default=False)

    class Meta:
        table_name = "import_errors"
        primary_key = False

    @classmethod
    def of(cls, import_id: str, after: str | None, limit: int, *, with_imported: bool = False) -> list[LineError]:
        """Returns the next `limit` errors after line `after`. `with_imported`: also of imported lines."""
        query = cls.select().where(cls.import_id == import_id, cls.number > int(after or 0))
        if not with_imported:
            query = query.where(~cls.is_imported)
        return list(query.order_by(cls.number).limit(limit))

    @classmethod
    def groups(cls, import_id: str) -> list[Group]:
        """Returns the errors grouped by fault: at most MOST_GROUPS groups, the largest first."""
        return [Group(*each) for each in rows(_GROUPS, (import_id, MOST_GROUPS))]
