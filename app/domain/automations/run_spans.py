"""Spans of runs: one for each transaction that continues a run."""

from __future__ import annotations

import time
from collections.abc import Sequence

from app.domain.automations.interpreter import Interpreter
from app.domain.triggers.run_states import MAIL
from app.logs import tracing
from app.models.runs import Run


def add_all(carried_on: Sequence[Interpreter], began: float) -> None:
    """Adds the spans of runs that one transaction has continued since `began`, if tracing is on.

    The identifier of a run's first span depends only on the run, so that events, messages and further runs can refer to
    it.
    """
    if tracing.spans is None:
        return
    now = time.time()
    for interpreter in carried_on:
        run = interpreter.run
        span_id = tracing.span_of(run.id) if interpreter.has_begun else tracing.span_of(run.id, str(run.claim))
        parent_id = _cause_of(run) if interpreter.has_begun else tracing.span_of(run.id)
        failure = run.failure if interpreter.ended_as == "failed" else None
        tracing.spans.add(
            "run",
            "CONSUMER",
            _trace_of(run),
            span_id,
            parent_id,
            (began, now),
            {
                "messaging.system": "bellhop",
                "messaging.operation.type": "process",
                "messaging.destination.name": MAIL.queue,
                "messaging.message.id": run.id,
                "messaging.batch.message_count": len(carried_on),
                "bellhop.workspace.id": run.workspace_id,
                "bellhop.automation.id": run.automation_id,
                "bellhop.run.steps": [f"{kind} {status}" for kind, status in interpreter.taken],
                "bellhop.run.ended_as": interpreter.ended_as,
            },
            failure["code"] if failure else None,
        )


def _trace_of(run: Run) -> str:
    return tracing.trace_of(run.trace_id or run.event_id or run.id)


def _cause_of(run: Run) -> int | None:
    cause_id = run.event_id or run.parent_id or run.job_id
    return tracing.span_of(cause_id) if cause_id else None
