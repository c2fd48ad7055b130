"""Jobs: the list of accepted writes, and the forms that replay or discard a failed one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Blueprint, Response, flash, render_template
from werkzeug.wrappers import Response as AnyResponse

from app.domain.bodies.jobs import DiscardBody
from app.domain.jobs import failed_jobs, parts
from app.domain.people import message_access
from app.domain.verbs import VERBS
from app.errors import Conflict, Invalid
from app.lib import ids, json
from app.models.jobs import STATUSES, Job
from app.web import event_bodies, filters, periods, writes
from app.web.access import page, viewer, workspace_id
from app.web.filters import Filter
from app.web.forms import checked, errors_of, typed
from app.web.lists import MOST_EXPORTED, columns, file_of, sliced, wanted_format
from app.web.redirects import to

blueprint = Blueprint("job_pages", __name__, url_prefix="/workspaces/<workspace>/dashboard/jobs")

# A further state to filter by: failed, and neither replayed nor discarded.
OPEN = "open"
_STATES = [("", "Any state"), (OPEN, "failed, still open"), *((status, status) for status in STATUSES)]
FILTERS = {
    "status": Filter("State", filters.one_of((OPEN, *STATUSES)), _STATES),
    "kind": filters.select("Kind", "All kinds", VERBS),
    **periods.FILTERS,
}


@blueprint.get("")
@page("dashboard.see")
def index() -> str | Response:
    """Lists the jobs that match the filters, newest first, as a page or as a file."""
    chosen = filters.read(FILTERS)
    fetch = periods.ranged(partial(_fetch, chosen.values), chosen.values, partial(ids.bound, "job"))
    if wanted_format():
        return file_of(lambda: [_flat(job) for job in fetch(None, MOST_EXPORTED)], "jobs")
    return render_template(
        "jobs/index.html",
        page=sliced(fetch),
        **chosen.shown(),
        presets=periods.presets(),
        open=OPEN,
    )


@blueprint.get("/<job_id>")
@page("dashboard.see")
def show(job_id: str) -> str:
    """Shows a job: its outcome and, if it failed, its payload and the forms that settle it."""
    return _page(Job.find(workspace_id(), job_id), {}, {})


@blueprint.post("/<job_id>/replay")
@page("jobs.manage")
def replay(job_id: str) -> AnyResponse:
    """Replays the failed job and redirects to the new one; back to the failed one after a Conflict."""
    failed = Job.find(workspace_id(), job_id)
    try:
        new = writes.replay(failed)
    except Conflict as conflict:
        return to("job_pages.show", conflict.detail, "error", job_id=failed.id)
    if new.status == "succeeded":
        flash("It succeeded this time.", "good")
    return to("job_pages.show", job_id=new.id)


@blueprint.post("/<job_id>/discard")
@page("jobs.manage")
def discard(job_id: str) -> AnyResponse:
    """Discards the failed job and redirects to it. Shows the form again if the reason is invalid."""
    failed, given = Job.find(workspace_id(), job_id), typed("reason")
    try:
        body = checked(DiscardBody(), {"reason": given["reason"].strip()})
        writes.tell("The job is discarded.", "jobs.discard", body, failed.id)
    except Invalid as error:
        return Response(_page(failed, given, errors_of(error)), 422)
    return to("job_pages.show", job_id=failed.id)


def _fetch(values: Mapping[str, Any], after: str | None, limit: int) -> list[Job]:
    status, kind = values.get("status"), values.get("kind")
    if status == OPEN:
        return Job.open_failures(workspace_id(), kind, after, limit)
    kinds = [kind] if kind else list(VERBS) if status else None
    return Job.newest(workspace_id(), kinds, status, after, limit)


def _page(job: Job, given: Mapping[str, str], errors: Mapping[str, str]) -> str:
    refusal = None
    if job.status == "failed":
        try:
            failed_jobs.refuse(job)
            failed_jobs.refuse_replay(job)
        except Conflict as conflict:
            refusal = conflict.detail
    is_open = job.status == "failed" and job.replayed_as is None and job.discarded_at is None
    return render_template(
        "jobs/show.html",
        job=job,
        is_open=is_open,
        settled=parts.progress_of(job),
        refusal=refusal,
        asked=_asked(job) if viewer().may(message_access.SEE) else None,
        broke=job.broke if viewer().signed.is_support and viewer().may(message_access.SEE) else None,
        given=given,
        errors=errors,
    )


def _asked(job: Job) -> dict[str, Any] | None:
    """Returns the payload of a failed job without its secret; None if it is not kept."""
    if job.status != "failed" or job.payload is None:
        return None
    shown = {name: value for name, value in job.payload.items() if name != "sealed_secret"}
    return event_bodies.shown(json.dumps(shown))


def _flat(job: Job) -> dict[str, Any]:
    return {
        **columns(job, "id", "kind", "status", "resource_type", "resource_id"),
        "problem": job.problem["detail"] if job.problem else None,
        **columns(job, "created_at", "started_at", "finished_at", "replayed_as", "discarded_at", "discard_reason"),
    }
