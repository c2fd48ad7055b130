"""Runs of automations, in a mailbox for each workspace; their logs, and their requests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from peewee import SQL, BooleanField, IntegerField, TextField, UUIDField

from app.database import rows
from app.lib import ids
from app.models.base import Count, MailModel, OwnedModel, TimeField, count_newest, json_field, page_before

UNFINISHED = ("queued", "running", "waiting", "held")
FINISHED = ("completed", "failed", "cancelled")
STATUSES = (*UNFINISHED, *FINISHED)
# The values of the filter `at`: the run waits in its current step, or has failed in it.
AT_STEP = ("waiting", "failed")
FAILURE_CODES = ("limit", "no_channel", "opted_out", "template", "gone", "error")
# The filters of the list, the most selective first.
_FILTERS = ("contact_id", "failure", "automation_id", "status")
# The index by codes has the same expressions, so that PostgreSQL can use it.
_FAILED, _CODE = "failure IS NOT NULL", "(failure->>'code')"


class Run(MailModel):
    """A run. It changes only in a transaction that has locked its contact.

    `step`: the step to take next, or the one that waits. A wait ends when its `answer` arrives, or at `resume_at`. Then
    `due_at` is set, so that a worker continues the run. `taken`: the steps taken so far. `unbroken`: the steps since
    the last wait. `logged`: the entries of its log. `goal_until`: until when an event may reach the goal; null if no
    event can. `is_counted`: the run is also counted by version and step, not only by automation.
    """

    # What a run was started with. `contact_id` (changed by a merge) and `version` (changed by a move) are left out.
    FIXED: ClassVar[frozenset[str]] = frozenset(
        {
            *("automation_id", "variables", "event", "depth"),
            *("job_id", "event_id", "parent_id", "is_awaited", "is_counted", "trace_id", "created_at"),
        }
    )

    automation_id = TextField()
    version = IntegerField()
    contact_id = TextField()
    conversation_id = TextField(null=True)
    status = TextField(default="queued")
    reason = TextField(null=True)
    failure = json_field(null=True)
    variables = json_field(default=dict)
    event = json_field(null=True)
    saved = json_field(default=dict)
    own_variables = json_field(default=dict)
    result = json_field(null=True)
    step = TextField(null=True)
    taken = IntegerField(default=0)
    unbroken = IntegerField(default=0)
    logged = IntegerField(default=0)
    wait = IntegerField(default=0)
    waits_for = TextField(null=True)
    answer = json_field(null=True)
    prompted = TextField(null=True)
    is_released = BooleanField(default=False)
    is_awaited = BooleanField(default=False)
    is_counted = BooleanField(default=False)
    depth = IntegerField(default=0)
    job_id = TextField(null=True)
    event_id = TextField(null=True)
    parent_id = TextField(null=True)
    trace_id = TextField()
    resume_at = TimeField(null=True)
    goal_until = TimeField(null=True)
    goal_reached_at = TimeField(null=True)
    deaths = IntegerField(default=0)
    created_at = TimeField()
    started_at = TimeField(null=True)
    finished_at = TimeField(null=True)

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended, with any result."""
        return self.status in FINISHED

    @property
    def root_id(self) -> str:
        """The identifier that names the run's trace: the request's, the event's or else its own."""
        return str(self.trace_id or self.event_id or self.id)

    @classmethod
    def root_ids(cls, run_ids: Collection[str]) -> dict[str, str]:
        """Returns the `root_id` of each run, by run id. Leaves out runs that do not exist."""
        columns = (cls.id, cls.trace_id, cls.event_id)
        found = cls.select(*columns).where(cls.id.in_(list(run_ids))) if run_ids else ()
        return {run.id: run.root_id for run in found}

    @classmethod
    def newest(cls, workspace_id: str, filters: Mapping[str, Any], last_id: str | None, limit: int) -> list[Run]:
        """Returns the first `limit` runs after `last_id` that match every filter, newest first.

        Filters: `automation_id`, `contact_id`, `status`, `failure` (a code). With `automation_id`, also `version`,
        `step` and `at` (one of AT_STEP), all three together: the runs that wait in the step or failed in it. `since`:
        only runs created at that time or later.
        """
        if _is_at_step(filters):
            return list(page_before(cls._at_step(workspace_id, filters), cls, [last_id], limit))
        given = {name: filters[name] for name in _FILTERS if name in filters}
        if not given:
            return list(page_before(cls.in_workspace(workspace_id), cls, [last_id], limit))
        values = {
            "workspace_id": workspace_id,
            "statuses": [given["status"]] if "status" in given else list(STATUSES),
            "last_id": last_id or "run_~",
            "limit": limit,
            **given,
        }
        found = rows(_newest(given), values)
        return list(cls.select().where(cls.id.in_([id for (id,) in found])).order_by(cls.id.desc())) if found else []

    @classmethod
    def counted(cls, workspace_id: str, filters: Mapping[str, Any], most: int) -> Count:
        """Returns how many runs match, among the newest `most` that match the most selective filter.

        Filters: as for `newest`, but `since` and `until` are compared with the time in the run's identifier.
        """
        if _is_at_step(filters):
            return count_newest(cls._at_step(workspace_id, filters), cls, [], most)
        conditions = [_is(name, filters[name]) for name in _FILTERS if name in filters]
        first = cls._made_in(cls.in_workspace(workspace_id).where(*conditions[:1]), filters)
        return count_newest(first, cls, conditions[1:], most)

    @classmethod
    def _at_step(cls, workspace_id: str, filters: Mapping[str, Any]) -> Any:
        """Returns a query for the runs at a step, as the step's counts define them."""
        query = cls.in_workspace(workspace_id).where(
            cls.automation_id == filters["automation_id"],
            cls.version == filters["version"],
            cls.step == filters["step"],
            cls.waits_for.is_null(False) if filters["at"] == "waiting" else SQL("status = 'failed'"),
            *(_is(name, filters[name]) for name in ("contact_id", "status", "failure") if name in filters),
        )
        return cls._made_in(query, filters)

    @classmethod
    def _made_in(cls, query: Any, filters: Mapping[str, Any]) -> Any:
        if "since" in filters:
            query = query.where(cls.id >= ids.bound("run", filters["since"]))
        return query.where(cls.id < ids.bound("run", filters["until"])) if "until" in filters else query


class RunStep(OwnedModel):
    """An entry of a run's log. `detail`: `input`, `output`, `code`, `text`, and any `warnings`."""

    run_id = TextField()
    number = IntegerField()
    step = TextField()
    kind = TextField()
    status = TextField()
    at = TimeField()
    detail = json_field()

    @classmethod
    def latest(cls, run: Run, limit: int) -> list[RunStep]:
        """Returns the last `limit` entries of the run's log, oldest first."""
        # No entry is older than its run, so partitions before the run's are skipped.
        of_run = (cls.run_id == run.id) & (cls.id >= ids.around("stp", run.created_at, -1))
        return list(cls.select().where(of_run).order_by(cls.number.desc()).limit(limit))[::-1]


class RunRequest(MailModel):
    """A request whose response a run waits for. `wait`: the number of the wait that it ends."""

    run_id = TextField()
    wait = IntegerField()
    key = UUIDField()
    request = json_field()
    tries = IntegerField(default=0)
    next_attempt_at = TimeField(null=True)


def _is_at_step(filters: Mapping[str, Any]) -> bool:
    return {"automation_id", "version", "step", "at"} <= filters.keys()


def _is(name: str, value: str) -> Any:
    if name == "failure":
        return SQL(f"({_FAILED} AND {_CODE} = %s)", (value,))
    return getattr(Run, name) == value


def _newest(given: Mapping[str, Any]) -> str:
    """Returns the query for the identifiers of the newest matching runs.

    Whole index tuples are compared, so that the planner reads the index in order. An automation's runs have an index by
    status; with a contact, all runs of the contact are examined.
    """
    if "contact_id" in given:
        columns, wanted = "contact_id", "%(contact_id)s"
    elif "failure" in given:
        columns, wanted = _CODE, "%(failure)s"
    elif "automation_id" in given:
        columns, wanted = "automation_id, status", "%(automation_id)s, state.status"
    else:
        columns, wanted = "status", "state.status"
    others = [f"{name} = %({name})s" for name in given if name not in (*columns.split(", "), "failure")]
    if "failure" in given:
        others += [_FAILED, f"{_CODE} = %(failure)s"]
    states = "unnest(%(statuses)s::text[]) AS state(status)" if "status" in columns else "(SELECT) AS once"
    conditions = " AND ".join(["workspace_id = %(workspace_id)s", *others])
    return f"""
        SELECT newest.id FROM {states} CROSS JOIN LATERAL (
            SELECT id FROM runs
            WHERE {conditions} AND ({columns}, id) >= ({wanted}, '') AND ({columns}, id) < ({wanted}, %(last_id)s)
            ORDER BY {", ".join(f"{column} DESC" for column in columns.split(", "))}, id DESC
            LIMIT %(limit)s) AS newest
        ORDER BY newest.id DESC LIMIT %(limit)s
    """
