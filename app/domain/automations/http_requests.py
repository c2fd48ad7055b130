"""HTTP requests of runs: a workspace's mail, retried under one key until a response is final.

A row of `run_requests` exists exactly while its run waits for the response; rows of runs that ended meanwhile are
dropped when they are claimed. The run's answer has `status` (null: no response), `body` (text), `is_whole`,
`duration_ms`, `attempts` and `error` (null, or `code` and `detail`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from app import logs, mailbox, metrics, sql
from app.channels.base import Request
from app.database import rows
from app.domain.triggers import run_states
from app.domain.work import request_attempts
from app.domain.work.request_attempts import Dispatch, Outcome
from app.lib import encodings, json
from app.logs import tracing
from app.mailbox import Found, Mail, Waiting
from app.models.runs import Run
from app.outbound import Answer

if TYPE_CHECKING:
    from app.logs.spans import Spans


class Carried(NamedTuple):
    """The columns of a request that are loaded with its claim. `tries`: earlier attempts."""

    run_id: str
    key: UUID
    request: Mapping[str, Any]
    tries: int


MAIL = Mail(table="run_requests", owner="workspace_id", queue="run-requests", carries=Carried)
WAITING = Waiting(MAIL, "next_attempt_at")

TIMEOUT_SECONDS = 30.0
# The attempt's time limit, plus the wait for a connection and the time to record the outcome.
LEASE_SECONDS = TIMEOUT_SECONDS + 10
# The pauses before the second and the third attempt.
PAUSES_SECONDS = (1.0, 10.0)
# The most bytes of a response's body that are kept.
MOST_BYTES = 65_536
# The most requests in progress: in a process, and of each workspace in it.
MOST_UNDER_WAY, MOST_EACH = 400, 20
# The condition of a request that its run no longer waits for.
_UNWANTED = """NOT EXISTS (
    SELECT FROM runs WHERE runs.id = mail.run_id AND runs.wait = mail.wait AND runs.waits_for = 'response')"""


def claim(rooms: Mapping[str, int]) -> Found[Dispatch, Outcome]:
    """Claims up to `rooms` due requests of each workspace. Drops requests that no run waits for."""
    claimed = mailbox.claim(MAIL, rooms, LEASE_SECONDS)
    dropped = mailbox.drop(MAIL, claimed, _UNWANTED)
    metrics.RUN_REQUESTS.labels("dropped").inc(len(dropped))
    wanted = [Dispatch(row, _request(row.carried)) for row in claimed if row.id not in dropped]
    return Found(wanted, more=mailbox.may_have_more(rooms, claimed))


def record(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Passes final responses to their runs, and schedules retries of the other requests.

    Returns the outcomes to record later, because another transaction has locked their run. Safe to repeat: an outcome
    counts once, and only under the claim it was made with.
    """
    final = request_attempts.put_off(WAITING, outcomes, PAUSES_SECONDS)
    locked = _hand_over(final) if final else set()
    recorded = [outcome for outcome in outcomes if outcome.claimed.id not in locked]
    _log(recorded)
    if tracing.spans is not None and recorded:
        _trace(tracing.spans, recorded)
    return [outcome for outcome in final if outcome.claimed.id in locked]


def _request(carried: Carried) -> Request:
    given = carried.request
    headers = {**given["headers"], "Idempotency-Key": str(carried.key)}
    return Request(given["method"], given["address"], headers, (given["body"] or "").encode())


def _hand_over(outcomes: Sequence[Outcome]) -> set[str]:
    """Makes the waiting runs due, with their answers; returns the requests whose runs are locked."""
    answers = [json.dumps(answer_of(each.answer, each.claimed.carried.tries + 1)).decode() for each in outcomes]
    claims = {"ids": [each.claimed.id for each in outcomes], "claims": [each.claimed.claim for each in outcomes]}
    found = rows(sql.load("hand_over_responses"), claims | {"answers": answers})
    for workspace_id in {workspace_id for _, workspace_id in found if workspace_id}:
        mailbox.ring(run_states.MAIL, workspace_id)
    return {id for id, workspace_id in found if workspace_id is None}


def answer_of(answer: Answer, attempts: int) -> dict[str, Any]:
    """Returns the answer that the run gets for a response, or for a request without one."""
    return {
        "status": answer.status,
        # PostgreSQL's text cannot hold NULs, which a server may send.
        "body": encodings.text_of(answer.body, dict(answer.headers).get("content-type")).replace("\0", ""),
        "is_whole": answer.is_whole,
        "duration_ms": answer.duration_ms,
        "attempts": attempts,
        "error": None if answer.ok else {"code": answer.error_code, "detail": answer.error},
    }


def _log(outcomes: Sequence[Outcome]) -> None:
    lines = []
    for outcome in outcomes:
        answer, claimed = outcome.answer, outcome.claimed
        is_final = outcome.next_attempt_seconds(PAUSES_SECONDS) is None
        came_of = "succeeded" if answer.ok else "failed" if is_final else "retried"
        metrics.RUN_REQUESTS.labels("ours" if answer.is_ours else came_of).inc()
        lines.append(
            {
                "run": claimed.carried.run_id,
                "workspace": claimed.owner,
                "number": claimed.carried.tries + 1,
                "code": answer.status,
                "error_code": answer.error_code,
                "error": answer.error_without_target,
                "duration_ms": answer.duration_ms,
                "status": came_of,
            }
        )
    logs.info_each("run.request", lines)


def _trace(spans: Spans, outcomes: Sequence[Outcome]) -> None:
    """Adds a span for each request, unless its run no longer exists."""
    now, roots = time.time(), Run.root_ids({outcome.claimed.carried.run_id for outcome in outcomes})
    for outcome in outcomes:
        claimed, answer, request = outcome.claimed, outcome.answer, outcome.dispatch.request
        run_id = claimed.carried.run_id
        if run_id in roots:
            spans.add(
                f"{request.method} of a run",
                "CLIENT",
                tracing.trace_of(roots[run_id]),
                tracing.span_of(claimed.id, str(claimed.claim)),
                tracing.span_of(run_id),
                (now - answer.duration_ms / 1000, now),
                tracing.of_request(request.method, request.address, claimed.carried.tries, answer.status),
                answer.error_code,
            )
