"""Spans of sent messages. Messages do not store their trace: it is looked up if tracing is on."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Protocol

from app.channels.base import Outcome, Verdict
from app.database import rows
from app.domain.work import request_spans
from app.lib import ids
from app.logs import tracing
from app.mailbox import Claimed

# The most time between the ids of a message and of the job that created it: one request makes both.
_APART = timedelta(seconds=10)
_FINE = (Outcome.SENT, Outcome.LATER)


class Sending(Protocol):
    """The outcome for a claimed message."""

    @property
    def claimed(self) -> Claimed:
        """The claimed row of the message."""

    @property
    def verdict(self) -> Verdict:
        """The meaning of the provider's answer."""

    @property
    def at(self) -> float | None:
        """The Unix time at which the message was claimed for sending; None if no request was made."""


def add(sendings: Sequence[Sending], recorded: Collection[str]) -> None:
    """Adds spans of messages that were sent and recorded. Does nothing if tracing is off."""
    if tracing.spans is None:
        return
    sent = [each for each in sendings if each.at is not None and each.claimed.id in recorded]
    now, causes = time.time(), _causes([each.claimed.id for each in sent])
    for each in sent:
        assert each.at is not None
        claimed, verdict = each.claimed, each.verdict
        trace_id, cause_id = causes.get(claimed.id) or (tracing.trace_of(claimed.id), None)
        tracing.spans.add(
            "send message",
            "CLIENT",
            trace_id,
            tracing.span_of(claimed.id, str(claimed.claim)),
            tracing.span_of(cause_id) if cause_id else None,
            (each.at, now),
            {
                "bellhop.message.id": claimed.id,
                "bellhop.channel.id": claimed.owner,
                "bellhop.message.outcome": verdict.outcome.value,
            },
            None if verdict.outcome in _FINE else verdict.code or verdict.outcome.value,
        )


def _causes(message_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Returns the trace, and the run or job, of each message that a run or job created."""
    if not message_ids:
        return {}
    found = rows("SELECT id, run_id, workspace_id FROM messages WHERE id = ANY(%s)", (list(message_ids),))
    run_of = {id: run_id for id, run_id, _ in found if run_id}
    traces = request_spans.traces_of(set(run_of.values()))
    causes = {id: (traces[run_id], run_id) for id, run_id in run_of.items() if run_id in traces}
    others = [(id, workspace_id) for id, run_id, workspace_id in found if not run_id]
    for id, trace_id, job_id in rows(_JOBS, _near(others)) if others else ():
        causes[id] = tracing.trace_of(trace_id), job_id
    return causes


def _near(messages: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Returns the range of ids in which to look for the jobs that created the messages."""
    times = [ids.time_of(id) for id, _ in messages]
    return {
        "ids": [id for id, _ in messages],
        "workspaces": [workspace_id for _, workspace_id in messages],
        "firsts": [ids.bound("job", at - _APART) for at in times],
        "lasts": [ids.bound("job", at + _APART) for at in times],
    }


_JOBS = """
    SELECT message.id, job.trace_id, job.id
    FROM unnest(%(ids)s::text[], %(workspaces)s::text[], %(firsts)s::text[], %(lasts)s::text[])
        AS message(id, workspace_id, first, last)
    CROSS JOIN LATERAL (
        SELECT id, trace_id FROM jobs
        WHERE workspace_id = message.workspace_id AND kind = 'messages.create' AND status = 'succeeded'
            AND jobs.id BETWEEN message.first AND message.last AND resource_id = message.id
        LIMIT 1) AS job
"""
