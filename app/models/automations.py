"""Automations, their published versions, changes to their counts, and enrolments of contacts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from peewee import CompositeKey, IntegerField, TextField, fn

from app.lib import ids
from app.models.base import OwnedModel, TimeField, json_field, page_before


class Automation(OwnedModel):
    """An automation. `cancellations` select runs that are being cancelled: they take no more steps."""

    PREFIX = "aut"

    name = TextField()
    status = TextField(default="draft")
    version = IntegerField(null=True)
    latest_version = IntegerField(default=0)
    definition = json_field()
    reentry = TextField(null=True)
    exits = json_field(default=list)
    goal = json_field(null=True)
    cancellations = json_field(default=list)
    created_at = TimeField()
    updated_at = TimeField()

    @classmethod
    def newest(cls, workspace_id: str, q: str | None, last_id: str | None, limit: int) -> list[Automation]:
        """Returns the first `limit` automations after `last_id`, newest first, without definitions.

        With `q`, only automations whose name contains it, ignoring case. A search reads all of the workspace's
        automations, at most 1,000.
        """
        columns = (cls.id, cls.workspace_id, cls.name, cls.status, cls.version, cls.latest_version, cls.updated_at)
        query = cls.in_workspace(workspace_id).select(*columns)
        if q is not None:
            query = query.where(fn.STRPOS(fn.LOWER(cls.name), fn.LOWER(q)) > 0)
        return list(page_before(query, cls, [last_id], limit))


class AutomationVersion(OwnedModel):
    """A definition as it was published; it never changes."""

    automation_id = TextField()
    number = IntegerField()
    definition = json_field()
    published_at = TimeField()
    published_by = TextField(null=True)

    class Meta:
        primary_key = CompositeKey("automation_id", "number")

    @classmethod
    def order(cls, filters: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns `number`: versions are sorted by it, because they have no `id`."""
        return ("number",)


class Counted(NamedTuple):
    """The key of a count of runs; of whole runs if `step` is empty.

    `version` and `hour` (of the run's creation) are None in counts by automation only.
    """

    workspace_id: str
    automation_id: str
    key: str
    version: int | None = None
    hour: datetime | None = None
    step: str = ""


class AutomationDelta(OwnedModel):
    """A change to a count that has not been added up yet; it has the columns of `Counted`."""

    automation_id = TextField()
    key = TextField()
    version = IntegerField(null=True)
    hour = TimeField(null=True)
    step = TextField(default="")
    amount = IntegerField()

    @classmethod
    def summed(cls, changes: Iterable[tuple[Counted, int]]) -> list[AutomationDelta]:
        """Returns one row for each count that changes."""
        amounts: Counter[Counted] = Counter()
        for counted, amount in changes:
            amounts[counted] += amount
        return [
            cls(id=ids.new("dlt"), amount=amount, **counted._asdict()) for counted, amount in amounts.items() if amount
        ]


class Enrolment(OwnedModel):
    """A contact's enrolment in an automation: the latest run, and how many runs are unfinished."""

    FIXED: ClassVar[frozenset[str]] = frozenset({"contact_id", "automation_id"})

    contact_id = TextField()
    automation_id = TextField()
    run_id = TextField()
    active = IntegerField()

    @staticmethod
    def id_of(contact_id: str, automation_id: str) -> str:
        """Returns the identifier of that contact's enrolment in that automation."""
        return f"{contact_id}/{automation_id}"
