"""Tests of requests: sends the request of one step once, for real, at a user's command."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import structlog

from app import bounds
from app.config import settings
from app.domain.automations import http_requests
from app.domain.automations.definitions import programs
from app.domain.automations.editing import previews
from app.domain.automations.interpreter import Interpreter
from app.domain.automations.simulations import Rehearsal, blank_contact, run_of_draft
from app.domain.automations.steps import http_request
from app.domain.automations.steps.base import StepFailed, Wait
from app.errors import Conflict, Overloaded
from app.models.automations import Automation
from app.models.contacts import Contact
from app.outbound import Answer, Outbound

log = structlog.get_logger(__name__)

# Short, because the user waits for it.
TIMEOUT_SECONDS = 10.0
_RATES = bounds.Rates()


@dataclass(frozen=True, slots=True)
class Tested:
    """The result of a test. `saved`: the value of `steps.<id>`. `error`: a sentence; None on success."""

    error: str | None
    status: int | None = None
    duration_ms: int | None = None
    body: str = ""
    saved: Mapping[str, Any] = field(default_factory=dict)


def send(automation: Automation, definition: Mapping[str, Any], step_id: str, contact: Contact | None) -> Tested:
    """Sends the step's request for the contact (None: an empty one), with a sample event.

    The draft must be able to run. The same addresses are allowed as for runs. Raises Overloaded, and Conflict if the
    step sends no request or the workspace tests too many requests.
    """
    if seconds := _RATES.take(automation.workspace_id, bounds.TESTED_REQUESTS_PER_WORKSPACE):
        raise Conflict(f"Too many requests were tested in this workspace. Try again in {seconds} seconds.")
    step = programs.compile(definition).steps.get(step_id)
    if step is None or step.kind != "http_request":
        raise Conflict("This step sends no request.")
    contact = contact or blank_contact(automation.workspace_id)
    run = run_of_draft(automation, contact, previews.sample_event(definition, automation.workspace_id))
    context = Interpreter(Rehearsal([contact, run]), run, automation.name)
    context.step = step
    try:
        outcome = http_request.begin(context)
    except StepFailed as error:
        return Tested(error.text)
    if not isinstance(outcome, Wait) or outcome.request is None:
        return Tested(outcome.text, saved=getattr(outcome, "saved", {}).get(step_id, {}))
    with bounds.waiting(automation.workspace_id) as has_place:
        if not has_place:
            raise Overloaded()
        answer = asyncio.run(_send(outcome.request))
    log.info("request.tested", automation=automation.id, step=step_id, code=answer.status, error_code=answer.error_code)
    context.answer = http_requests.answer_of(answer, attempts=1)
    done = http_request.resume(context)
    saved = getattr(done, "saved", {}).get(step_id, {})
    return Tested(answer.error, answer.status, answer.duration_ms, str(context.answer["body"]), saved)


async def _send(request: Mapping[str, Any]) -> Answer:
    configured = settings()
    outbound = Outbound(
        timeout_seconds=TIMEOUT_SECONDS,
        allowed_networks=configured.webhook_allowed_networks,
        ca_file=configured.webhook_ca_file,
    )
    try:
        return await outbound.request(
            request["method"],
            request["address"],
            (request["body"] or "").encode(),
            {**request["headers"], "Idempotency-Key": str(uuid4())},
            most_bytes=http_requests.MOST_BYTES,
            timeout_seconds=TIMEOUT_SECONDS,
        )
    finally:
        await outbound.close()
