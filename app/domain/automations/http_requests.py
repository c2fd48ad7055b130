"""HTTP requests of runs: mail of a workspace, sent under one key until a response is final, then handed to the run.

A row of `run_requests` is there exactly as long as its run waits for the response, but for those of runs that ended
meanwhile, which are dropped when they are claimed. A run gets as its answer: `status` (null: there was no response),
`body` (text), `is_whole`, `duration_ms`, `attempts` and `error` (null, or `code` and `detail`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app import logs, mailbox, metrics, sql
from app.database import count, rows
from app.domain.triggers import run_states
from app.lib import json
from app.mailbox import Claimed, Mail, Waiting
from app.outbound import Answer

MAIL = Mail(
    table="run_requests",
    owner="workspace_id",
    queue="run-requests",
    carries=("run_id", "key::text", "request", "tries"),
)
WAITING = Waiting(MAIL, "next_attempt_at")

TIMEOUT_SECONDS = 30.0
# An attempt may wait for a connection, and its outcome must be recorded.
LEASE_SECONDS = TIMEOUT_SECONDS + 10
# Before the second and the third attempt.
PAUSES_SECONDS = (1.0, 10.0)
# Bytes kept of a response's body.
MOST_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A claimed request with all that one attempt needs. `tries`: the attempts made before."""

    claimed: Claimed
    run_id: str
    method: str
    address: str
    headers: Mapping[str, str]
    body: bytes
    tries: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an attempt. After a fault of ours the request waits for `pause_seconds`."""

    dispatch: Dispatch
    answer: Answer
    pause_seconds: float = 0.0

    @property
    def next_attempt_seconds(self) -> float | None:
        """In how many seconds to try again; None if the response is final."""
        answer, tries = self.answer, self.dispatch.tries
        if answer.is_ours:
            return self.pause_seconds
        is_final = answer.error_code == "private_address" or (
            answer.status is not None and not _may_pass(answer.status)
        )
        return None if is_final or tries >= len(PAUSES_SECONDS) else PAUSES_SECONDS[tries]


def claim(rooms: Mapping[str, int]) -> tuple[list[Dispatch], set[str]]:
    """Claims up to that many due requests of each workspace; also returns the workspaces that may have more.

    Drops those whose run does not wait for them any more.
    """
    claimed = mailbox.claim(MAIL, rooms, LEASE_SECONDS)
    if not claimed:
        return [], set()
    numbers = Counter(row.owner for row in claimed)
    dropped = _drop_unwanted(claimed)
    wanted = [_dispatch(row) for row in claimed if row.id not in dropped]
    return wanted, {owner for owner, room in rooms.items() if numbers[owner] == room}


def record(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Hands final responses to their runs and puts the other requests off.

    Returns the outcomes that have to be recorded later, because another transaction has locked their run. Safe to
    repeat: an outcome counts once, under the claim that it was made with.
    """
    again = [outcome for outcome in outcomes if outcome.next_attempt_seconds is not None]
    final = [outcome for outcome in outcomes if outcome.next_attempt_seconds is None]
    if again:
        _put_off(again)
    locked = _hand_over(final) if final else set()
    _log([outcome for outcome in outcomes if outcome.dispatch.claimed.id not in locked])
    return [outcome for outcome in final if outcome.dispatch.claimed.id in locked]


def _may_pass(status: int) -> bool:
    """Whether a response with this status says that a later attempt may succeed."""
    return status >= 500 or status == 429


def _drop_unwanted(claimed: Sequence[Claimed]) -> Collection[str]:
    dropped = rows(
        """
        DELETE FROM run_requests request USING unnest(%s::text[], %s::int[]) AS claimed(id, claim)
        WHERE request.id = claimed.id AND request.claim = claimed.claim AND NOT EXISTS (
            SELECT FROM runs
            WHERE runs.id = request.run_id AND runs.wait = request.wait AND runs.waits_for = 'response')
        RETURNING request.id
        """,
        ([row.id for row in claimed], [row.claim for row in claimed]),
    )
    metrics.RUN_REQUESTS.labels("dropped").inc(len(dropped))
    return {id for (id,) in dropped}


def _dispatch(claimed: Claimed) -> Dispatch:
    run_id, key, request, tries = claimed.carried
    headers = {**request["headers"], "Idempotency-Key": key}
    body = (request["body"] or "").encode()
    return Dispatch(claimed, run_id, request["method"], request["address"], headers, body, tries)


def _put_off(outcomes: Sequence[Outcome]) -> None:
    count(
        """
        UPDATE run_requests request
        SET tries = request.tries + outcome.spent, next_attempt_at = now() + outcome.pause * interval '1 second',
            due_at = NULL, leased_until = NULL
        FROM unnest(%s::text[], %s::int[], %s::int[], %s::float[]) AS outcome(id, claim, spent, pause)
        WHERE request.id = outcome.id AND request.claim = outcome.claim
        """,
        (
            *_claims(outcomes),
            [0 if outcome.answer.is_ours else 1 for outcome in outcomes],
            [outcome.next_attempt_seconds for outcome in outcomes],
        ),
    )


def _hand_over(outcomes: Sequence[Outcome]) -> set[str]:
    """Makes runs that wait for these responses due, with their answers; returns the requests whose runs are locked."""
    ids, claims = _claims(outcomes)
    answers = [json.dumps(_answer(outcome)).decode() for outcome in outcomes]
    found = rows(sql.load("hand_over_responses"), {"ids": ids, "claims": claims, "answers": answers})
    for workspace_id in {workspace_id for _, workspace_id in found if workspace_id}:
        mailbox.ring(run_states.MAIL, workspace_id)
    return {id for id, workspace_id in found if workspace_id is None}


def _claims(outcomes: Sequence[Outcome]) -> tuple[list[str], list[int]]:
    claims = [outcome.dispatch.claimed for outcome in outcomes]
    return [claimed.id for claimed in claims], [claimed.claim for claimed in claims]


def _answer(outcome: Outcome) -> dict[str, Any]:
    answer = outcome.answer
    return {
        "status": answer.status,
        # PostgreSQL's text holds no NUL; a server may send what it likes.
        "body": answer.body.decode("utf-8", "replace").replace("\0", ""),
        "is_whole": answer.is_whole,
        "duration_ms": answer.duration_ms,
        "attempts": outcome.dispatch.tries + 1,
        "error": None if answer.ok else {"code": answer.error_code, "detail": answer.error},
    }


def _log(outcomes: Sequence[Outcome]) -> None:
    lines = []
    for outcome in outcomes:
        answer, dispatch = outcome.answer, outcome.dispatch
        came_of = "succeeded" if answer.ok else "failed" if outcome.next_attempt_seconds is None else "retried"
        metrics.RUN_REQUESTS.labels("ours" if answer.is_ours else came_of).inc()
        lines.append(
            {
                "run": dispatch.run_id,
                "workspace": dispatch.claimed.owner,
                "number": dispatch.tries + 1,
                "code": answer.status,
                "error_code": answer.error_code,
                "error": answer.error_without_target,
                "duration_ms": answer.duration_ms,
                "status": came_of,
            }
        )
    logs.info_each("run.request", lines)
