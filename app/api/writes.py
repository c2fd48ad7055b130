"""Writes: accepts each as a job; responds with the job, or with its result if the caller waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from flask import Response
from flask.globals import request_ctx

from app.api.authentication import caller
from app.api.problems import problem_response
from app.api.request_ids import request_id
from app.api.responses import BareResponse, respond
from app.domain import resources, writes
from app.domain.jobs import idempotency_keys, jobs
from app.domain.jobs.idempotency_keys import RequestKey, fingerprint
from app.domain.verbs import VERBS
from app.domain.work import controlled_batches
from app.domain.work.changes import Write
from app.errors import NotFound
from app.models.jobs import Job

LONGEST_WAIT_SECONDS = 30

# Matches the first `wait` of a Prefer header. The group has its seconds; None if they are not a number.
_WAIT = re.compile(r'(?:^|,)\s*wait(?![^\s=,;])\s*(?:=\s*"?(\d+(?:\.\d*)?)"?\s*(?=[,;]|$))?', re.IGNORECASE)


def accept(
    kind: str,
    payload: Mapping[str, Any],
    resource_id: str | None = None,
    check: Callable[[], object] | None = None,
    beside: Mapping[str, Any] | None = None,
) -> Response:
    """Accepts a validated write and returns the response. `check`: see `writes.submit`.

    The members of `beside` are added to the response, but not to the response to a repeated request.
    """
    job, is_repeated = writes.submit(write_of(kind, payload, resource_id), idempotency_key(), check)
    return answer(job, is_repeated, None if is_repeated else beside)


def act(
    kind: str, resource_id: str, payload: Mapping[str, Any] | None = None, beside: Mapping[str, Any] | None = None
) -> Response:
    """Like `accept`, but raises NotFound unless the resource exists or a queued write may create it."""
    check = partial(must_exist, VERBS[kind].resource_type, resource_id)
    return accept(kind, payload or {}, resource_id, check, beside)


def steer(kind: str, batch_id: str, state: str) -> Response:
    """Like `act`, but also raises Conflict if the broadcast or replay has ended in another state."""

    def check() -> None:
        if (batch := must_exist(VERBS[kind].resource_type, batch_id)) is not None:
            controlled_batches.refuse_ended(batch, state)

    return accept(kind, {}, batch_id, check)


def is_dry_run(body: dict[str, Any]) -> bool:
    """Removes `dry_run` from the body and returns it. Raises Invalid for an invalid Idempotency-Key."""
    is_dry = bool(body.pop("dry_run", False))
    if is_dry:
        idempotency_key()
    return is_dry


def write_of(kind: str, payload: Mapping[str, Any], resource_id: str | None = None) -> Write:
    """Returns the current request as a write of its caller."""
    who = caller()
    return Write(who.workspace_id, kind, payload, request_id(), resource_id, who.token_id)


def must_exist(resource_type: str, resource_id: str) -> Any | None:
    """Returns the resource; None if a queued write may create it. Raises NotFound otherwise."""
    workspace_id = caller().workspace_id
    try:
        return resources.TYPES[resource_type].find(workspace_id, resource_id)
    except NotFound:
        # A create returns the identifier before its job runs, and callers may use it at once.
        if not Job.will_make(workspace_id, resource_type, resource_id):
            raise
        return None


def answer(job: Job, is_repeated: bool = False, beside: Mapping[str, Any] | None = None) -> Response:
    """Returns the job's result if the caller waits and the job ends in time; otherwise the job (202)."""
    response = None
    if seconds := _preferred_wait():
        job = jobs.wait(job, seconds)
        if response := _result(job, beside):
            response.headers["Preference-Applied"] = f"wait={seconds}"
    if response is None:
        response = respond(202, {"data": resources.represent_job(job), **(beside or {})})
        response.headers["Location"] = resources.job_url(job)
    if is_repeated:
        response.headers["Idempotent-Replayed"] = "true"
    return response


def _result(job: Job, beside: Mapping[str, Any] | None) -> Response | None:
    """Returns a response with the job's outcome; None if it has not ended or the resource is gone."""
    if job.status == "failed":
        assert job.problem is not None
        # The stored problem has the identifier of the request that made the job, not the identifier of this request.
        return problem_response({**job.problem, "traceId": request_id()})
    if job.status != "succeeded":
        return None
    if job.effect == "deleted":
        return BareResponse(status=204)
    document = resources.find(job)
    if document is None:
        return None
    made = job.effect == "made"
    response = respond(201 if made else 200, {"data": document, **(beside or {})})
    if made:
        response.headers["Location"] = resources.url(job)
    return response


def _preferred_wait() -> int:
    """Returns the seconds of `Prefer: wait=N`, up to LONGEST_WAIT_SECONDS; 0 without a valid one.

    An invalid preference is not an error, and only the first `wait` counts (RFC 7240, section 2).
    """
    preferences = request_ctx.request.headers.get("Prefer")
    found = _WAIT.search(preferences) if preferences else None
    return int(min(float(found[1] or 0), LONGEST_WAIT_SECONDS)) if found else 0


def idempotency_key(body: bytes | None = None) -> RequestKey | None:
    """Returns the request's Idempotency-Key with its fingerprint; None without one.

    `body` is required if the request's body has not been kept. Raises Invalid for a key that is not a UUIDv4.
    """
    present = request_ctx.request
    given = present.headers.get("Idempotency-Key")
    if given is None:
        return None
    key = idempotency_keys.parse(given)
    body = present.get_data() if body is None else body
    return RequestKey(key, fingerprint(present.method.encode(), present.path.encode(), present.query_string, body))
