"""Jobs: accepted writes and their outcomes."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import caller, require
from app.api.lists import PageQuery, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.request_ids import request_id
from app.api.routes import Document, accepts, reads
from app.api.writes import accept, answer, idempotency_key
from app.domain import resources, writes
from app.domain.bodies.jobs import DiscardBody
from app.domain.people.tokens import UNRESTRICTED
from app.domain.resources import JobSchema
from app.domain.verbs import VERBS
from app.lib.schemas import OneOf, ResponseBody
from app.models.jobs import STATUSES, Job

blueprint = Blueprint("jobs", __name__, description="Accepted writes and their outcomes.")


class ResultSchema(ResponseBody):
    """The result of a write of the job's kind."""


class JobQuery(PageQuery):
    status = fields.String(validate=validate.OneOf(STATUSES))
    kind = fields.String(validate=OneOf(list(VERBS)))


@reads(blueprint, "/jobs", None, JobSchema, JobQuery)
def list_jobs(query: dict[str, Any]) -> Document:
    """List the jobs of the kinds that the token has access to, newest first."""
    kinds = [kind for kind, described in VERBS.items() if caller().may(described.restriction)]
    if "kind" in query:
        require(VERBS[query["kind"]].restriction)
        kinds = [query["kind"]]
    chosen = kinds if "status" in query or len(kinds) < len(VERBS) else None
    find = partial(Job.newest, caller().workspace_id, chosen, query.get("status"))
    return page_of(find, query, resources.represent_job)


@reads(blueprint, "/jobs/<job_id>", None, JobSchema)
def show_job(job_id: str) -> Document:
    """Show a job."""
    return resources.represent_job(_find(job_id))


@accepts(blueprint, "POST /jobs/<job_id>/replay", None, ResultSchema, made=True)
@blueprint.alt_response(204, description="The same, if the write is a deletion.", success=True)
def replay_job(job_id: str) -> Response:
    """Replay a failed write as a new job of the same kind, if it failed because of a fault of ours.

    The request is refused with 409 if the write failed for any other cause, if it is an import, or if the job was
    replayed or discarded before.
    """
    key, found = idempotency_key(), _find(job_id)
    return answer(*writes.replay(found, request_id(), caller().token_id, key))


@accepts(blueprint, "POST /jobs/<job_id>/discard", None, JobSchema, DiscardBody)
def discard_job(body: dict[str, Any], job_id: str) -> Response:
    """Discard a failed job: it no longer counts as an open failure, and its request is deleted."""
    return accept("jobs.discard", body, _find(job_id).id)


def _find(job_id: str) -> Job:
    """Returns the job. Raises NotFound, and InsufficientScope if the token does not cover its kind."""
    job = Job.find(caller().workspace_id, job_id)
    # During an update, a newer `web` may accept kinds that this process does not know.
    kind = VERBS.get(job.kind)
    require(kind.restriction if kind else UNRESTRICTED)
    return job
