"""Every write is a job: accepts it, and answers with the job, or with its result where the caller prefers to wait."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from flask import Response
from flask.globals import request_ctx

from app.api import resources
from app.api.authentication import caller
from app.api.problems import problem_response
from app.api.request_ids import request_id
from app.api.responses import BareResponse, respond
from app.domain import jobs
from app.domain.jobs import OnceKey, Write
from app.errors import BellhopError, Fault, Invalid, NotFound
from app.models.jobs import Job

LONGEST_WAIT_SECONDS = 30
# Waiting requests hold a thread each, and the other half of a process's threads for PATIENCE_SECONDS at most. While
# writes take effect as fast as usual a place is free by then; who finds none gets the 202.
_waiting_places = threading.BoundedSemaphore(8)
PATIENCE_SECONDS = 0.5

# A UUIDv4 (RFC 9562), bare or between quotes.
_KEY = re.compile(
    r'("?)([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})\1', re.ASCII | re.IGNORECASE
)
_WAIT = re.compile(r'(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?=[,;]|$)', re.IGNORECASE)


def accept(
    kind: str,
    payload: Mapping[str, Any],
    resource_id: str | None = None,
    check: Callable[[], object] | None = None,
    beside: Mapping[str, Any] | None = None,
) -> Response:
    """Accepts a write that has been validated, and answers.

    `check` raises what refuses it at once in view of the present state, such as NotFound; a request that is a
    replay gets its job all the same. `beside` goes into the answer beside `data`, once: replays do not show it.
    """
    once = once_key()
    if check is not None:
        try:
            check()
        except BellhopError:
            earlier = jobs.replayed(caller().token_id, once) if once else None
            if earlier is None:
                raise
            return answer(earlier, replayed=True)
    job, replayed = jobs.accept(write_of(kind, payload, resource_id), once)
    return answer(job, replayed, None if replayed else beside)


def write_of(kind: str, payload: Mapping[str, Any], resource_id: str | None = None) -> Write:
    """What the present request asks for."""
    who = caller()
    return Write(who.workspace_id, kind, payload, request_id(), resource_id, who.token_id)


def must_exist(resource_type: str, resource_id: str) -> None:
    """Raises NotFound, unless it is there or a write that waits may make it.

    Its identifier is known before it is made, and may be used at once.
    """
    workspace_id = caller().workspace_id
    try:
        resources.TYPES[resource_type].find(workspace_id, resource_id)
    except NotFound:
        if not Job.will_make(workspace_id, resource_type, resource_id):
            raise


def answer(job: Job, replayed: bool = False, beside: Mapping[str, Any] | None = None) -> Response:
    """The answer to a write: its job, or what became of that where the caller prefers to wait and it ended in time."""
    response = None
    if seconds := _preferred_wait():
        job = _wait(job, seconds)
        if response := _result(job, beside):
            response.headers["Preference-Applied"] = f"wait={seconds}"
    if response is None:
        response = respond(202, {"data": resources.represent_job(job), **(beside or {})})
        response.headers["Location"] = resources.job_url(job)
    if replayed:
        response.headers["Idempotent-Replayed"] = "true"
    return response


def _wait(job: Job, seconds: int) -> Job:
    ends = time.monotonic() + seconds
    if not _waiting_places.acquire(timeout=PATIENCE_SECONDS):
        return jobs.wait(job, 0)  # it may have ended meanwhile
    try:
        return jobs.wait(job, ends - time.monotonic())
    finally:
        _waiting_places.release()


def _result(job: Job, beside: Mapping[str, Any] | None) -> Response | None:
    """What a synchronous API would answer; None while the job has not ended, or where what it made is gone again."""
    if job.status == "failed":
        assert job.problem is not None
        # The trace is that of the request that was accepted; this response belongs to that of now.
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


def _preferred_wait() -> int | None:
    """The seconds of `Prefer: wait=N` (RFC 7240); None without one, or out of range: a preference is never an error."""
    preferences = request_ctx.request.environ.get("HTTP_PREFER")
    found = _WAIT.search(preferences) if preferences else None
    seconds = int(found[1]) if found else 0
    return seconds if 1 <= seconds <= LONGEST_WAIT_SECONDS else None


def once_key(body: bytes | None = None) -> OnceKey | None:
    """The Idempotency-Key of the present request, with what it stands for; None without one. Raises Invalid.

    `body` is given where it has not been kept for later readers.
    """
    present = request_ctx.request
    given = present.environ.get("HTTP_IDEMPOTENCY_KEY")
    if given is None:
        return None
    found = _KEY.fullmatch(given.strip())
    if found is None:
        raise Invalid(Fault("", "The Idempotency-Key header must be a UUIDv4, new for each operation."))
    body = present.get_data() if body is None else body
    parts = (present.method.encode(), present.path.encode(), present.query_string, body)
    return OnceKey(found[2].lower(), jobs.fingerprint(*parts))
