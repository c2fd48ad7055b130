"""Writes from pages: the same jobs as the API's. A page waits for its job and shows its problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flask import flash, request

from app.domain import writes
from app.domain.bodies.pointers import refuse_bad_text
from app.domain.jobs import idempotency_keys, jobs
from app.domain.jobs.idempotency_keys import RequestKey, fingerprint
from app.domain.work.changes import Write
from app.errors import BellhopError, Conflict, Fault, IdempotencyKeyReused, Invalid
from app.models.jobs import Job
from app.web.access import DELAYED_SECONDS, viewer, workspace_id

STILL_QUEUED = "This was accepted and is waiting for its place in the queue. Reload the page in a moment."
_SENT_BEFORE = "You have sent this form before, with other entries. Look at what that did, then send it again."


def submit(
    kind: str,
    payload: Mapping[str, Any],
    resource_id: str | None = None,
    check: Callable[[], object] | None = None,
    store: Callable[[str], None] | None = None,
) -> Job:
    """Accepts a write by the viewer and waits for it.

    Of repeated clicks on a form, only the first counts; the others get its job. `check` and the check of the verb may
    raise to refuse the write at once, but a repeated click still gets its job. `store`: see `writes.accept`. Raises
    what the write raises: Invalid with pointers, Conflict, NotFound. A job that has not ended after DELAYED_SECONDS is
    returned unfinished, and the next page says so. If the workspace's writes are delayed already, it is returned at
    once.
    """
    return submit_once(kind, payload, resource_id, check, store)[0]


def submit_once(
    kind: str,
    payload: Mapping[str, Any],
    resource_id: str | None = None,
    check: Callable[[], object] | None = None,
    store: Callable[[str], None] | None = None,
) -> tuple[Job, bool]:
    """Like `submit`. Also returns whether an earlier click of the form made the job."""
    refuse_bad_text(dict(payload))
    with _refusing_reused_keys():
        job, was_there = writes.submit(_write(kind, payload, resource_id), _form_key(), check, store)
    job = wait(job)
    if job.status == "failed":
        raise _refusal(job)
    if not job.is_finished:
        flash(STILL_QUEUED, "info")
    return job, was_there


def tell(
    done: str, kind: str, payload: Mapping[str, Any], resource_id: str, check: Callable[[], object] | None = None
) -> bool:
    """Submits a write. Flashes the Conflict, or `done` once the write has taken effect.

    Returns whether the write was accepted. Raises like `submit`, except Conflict.
    """
    try:
        job = submit(kind, payload, resource_id, check)
    except Conflict as conflict:
        flash(conflict.detail, "error")
        return False
    if job.is_finished:
        flash(done, "good")
    return True


def begin(kind: str, resource_id: str, store: Callable[[str], None], content: bytes = b"") -> Job:
    """Accepts a long write without waiting for it, once per form and `content`.

    `store`: see `writes.accept`. `content`: a digest of the form's upload.
    """
    with _refusing_reused_keys():
        return writes.accept(_write(kind, {}, resource_id), _form_key(content), store)[0]


def replay(failed: Job) -> Job:
    """Replays a failed write and waits for the new job. Of repeated clicks, only the first counts.

    Returns the new job in whatever state it ends. Raises Conflict if the failed one cannot be replayed.
    """
    job, _ = writes.replay(failed, trace_id(), viewer().actor_id, _form_key())
    return wait(job)


def wait(job: Job) -> Job:
    """Waits for the job, up to DELAYED_SECONDS, or not at all while writes are delayed. Returns it."""
    return job if viewer().is_delayed else jobs.wait(job, DELAYED_SECONDS)


def trace_id() -> str:
    """Returns the identifier of this request."""
    return str(request.environ["bellhop.request_id"])


@contextmanager
def _refusing_reused_keys() -> Iterator[None]:
    """Raises Conflict if the form's key was used with other values.

    This happens if somebody goes back to a sent form. The page then shows the form again, with a new key.
    """
    try:
        yield
    except IdempotencyKeyReused as error:
        raise Conflict(_SENT_BEFORE) from error


def _write(kind: str, payload: Mapping[str, Any], resource_id: str | None) -> Write:
    return Write(workspace_id(), kind, payload, trace_id(), resource_id, viewer().actor_id)


def _form_key(content: bytes = b"") -> RequestKey | None:
    """Returns the form's key, by which a second click is detected; None if it is invalid."""
    try:
        key = idempotency_keys.parse(request.form.get("once", ""))
    except Invalid:
        return None
    fields = sorted((name, value) for name, value in request.form.items(multi=True) if name != "csrf_token")
    body = "\n".join(f"{len(value)} {name}={value}" for name, value in fields).encode()
    return RequestKey(key, fingerprint(request.method.encode(), request.path.encode(), body, content))


def _refusal(job: Job) -> BellhopError:
    problem = job.problem or {}
    if faults := [Fault(each["pointer"], each["detail"]) for each in problem.get("errors", [])]:
        return Invalid(*faults)
    facts = {name: str(value) for name, value in problem.items() if name.startswith("conflicting_")}
    return Conflict(str(problem.get("detail", "The write failed.")), **facts)
