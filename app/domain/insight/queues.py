"""Queues: how much is due in each, and for how long; sampled for everybody, looked up for one workspace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from app import mailbox
from app.database import count, rows
from app.domain.automations import http_requests
from app.domain.channels import arrivals, fetches, outboxes
from app.domain.deliveries import fan_out, lanes, sweeps
from app.domain.jobs import jobs
from app.domain.triggers import run_states
from app.mailbox import Mail

# Counting stops here: "10,000+".
MOST_COUNTED = 10_000
MOST_MAILBOXES = 1_000

_BY_NAME: Mapping[str, Mail] = {
    "writes": jobs.MAIL,
    "fan-outs": fan_out.MAIL,
    "runs": run_states.MAIL,
    "requests": http_requests.MAIL,
    "sweeps": sweeps.MAIL,
    "messages": outboxes.MAIL,
    "arrivals": arrivals.MAIL,
    "fetches": fetches.MAIL,
}
NAMES = (*_BY_NAME, "deliveries", "slow-deliveries")
_OF_WORKSPACES = {name: mail for name, mail in _BY_NAME.items() if mail.owner == "workspace_id"}


@dataclass(frozen=True, slots=True)
class Queue:
    """The mail that is due or being worked on, and how long the oldest has been due.

    A depth above MOST_COUNTED stands for any such number; then the oldest is that of what was looked at.
    """

    name: str
    depth: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class Sample:
    """A queue as it was in a minute."""

    starts_at: datetime
    depth: int
    oldest_seconds: float


def sample() -> int:
    """Notes the state of every queue for this minute; returns how many have something due.

    Safe to repeat: the last one counts.
    """
    found = [_look_at(name, mail) for name, mail in _BY_NAME.items()] + _look_at_lanes()
    count(
        """
        INSERT INTO queue_minutes (queue, starts_at, depth, oldest_seconds)
        SELECT sampled.queue, date_trunc('minute', now()), sampled.depth, sampled.oldest_seconds
        FROM unnest(%s::text[], %s::int[], %s::real[]) AS sampled(queue, depth, oldest_seconds)
        ON CONFLICT (queue, starts_at) DO UPDATE SET depth = excluded.depth, oldest_seconds = excluded.oldest_seconds
        """,
        ([each.name for each in found], [each.depth for each in found], [each.oldest_seconds for each in found]),
    )
    return sum(each.depth > 0 for each in found)


def samples(length: timedelta) -> dict[str, list[Sample]]:
    """The samples of each queue of that time up to now, oldest first. A day at most, since each minute is a row."""
    found: dict[str, list[Sample]] = {name: [] for name in NAMES}
    query = """
        SELECT queue, starts_at, depth, oldest_seconds FROM queue_minutes
        WHERE queue = ANY(%s) AND starts_at > now() - %s ORDER BY starts_at
    """
    for name, *sampled in rows(query, (list(NAMES), min(length, timedelta(days=1)))):
        found[name].append(Sample(*sampled))
    return found


def of_workspace(workspace_id: str) -> list[Queue]:
    """The workspace's mail in every queue, at this moment; of its endpoints, that of the newest MOST_MAILBOXES."""
    counted = rows(_OF_WORKSPACE, {"workspace_id": workspace_id, "most": MOST_COUNTED + 1})
    found = {name: Queue(name, depth, seconds) for name, depth, seconds in counted}
    return [found.get(name, Queue(name, 0, 0.0)) for name in NAMES]


def _look_at(name: str, mail: Mail) -> Queue:
    depth = f"SELECT count(*) FROM (SELECT 1 FROM {mail.table} WHERE due_at IS NOT NULL LIMIT %s) AS due"
    [(found,)] = rows(depth, (MOST_COUNTED + 1,))
    return Queue(name, found, mailbox.overdue(mail, 0, MOST_MAILBOXES)[2] if found else 0.0)


def _look_at_lanes() -> list[Queue]:
    found = {is_slow: (depth, seconds) for is_slow, depth, seconds in rows(_LANES, {"most": MOST_COUNTED + 1})}
    lane_names = (lanes.FAST.queue, lanes.SLOW.queue)
    return [Queue(name, *found.get(is_slow, (0, 0.0))) for is_slow, name in enumerate(lane_names)]


# A pause of its endpoint is no fault of the queue's.
_DUE_FOR = "max(extract(epoch FROM now() - greatest(due_at, probe_at, paced_until)))"

# Mail of stopped endpoints is in no lane.
_LANES = f"""
    SELECT (slow_until > now()) IS TRUE, count(*), greatest({_DUE_FOR}, 0)::float
    FROM (SELECT endpoint_id, due_at FROM deliveries WHERE due_at IS NOT NULL LIMIT %(most)s) AS due
    JOIN endpoints ON endpoints.id = endpoint_id
    WHERE state = 'active' GROUP BY 1
"""


def _of_owner(name: str, mail: Mail) -> str:
    return f"""
        SELECT '{name}', count(*), coalesce(greatest(max(extract(epoch FROM now() - due_at)), 0), 0)::float FROM (
            SELECT due_at FROM {mail.table} WHERE workspace_id = %(workspace_id)s AND due_at IS NOT NULL
            ORDER BY workspace_id, {mail.order} LIMIT %(most)s) AS due
    """


def _of_endpoints(name: str, mail: Mail) -> str:
    return f"""
        SELECT {name}, count(*), coalesce(greatest({_DUE_FOR}, 0), 0)::float FROM (
            SELECT due.due_at, slow_until, probe_at, paced_until FROM (
                SELECT * FROM endpoints WHERE workspace_id = %(workspace_id)s ORDER BY id DESC LIMIT {MOST_MAILBOXES}
            ) AS endpoints CROSS JOIN LATERAL (
                SELECT due_at FROM {mail.table} WHERE endpoint_id = endpoints.id AND due_at IS NOT NULL
                ORDER BY endpoint_id, {mail.order} LIMIT %(most)s) AS due
            LIMIT %(most)s) AS due
        GROUP BY 1
    """


# Only the first message of a conversation is due.
_OF_CHANNELS = f"""
    SELECT 'messages', count(*),
        coalesce(greatest(max(extract(epoch FROM now() - greatest(due_at, paused_until, paced_until))), 0), 0)::float
    FROM (
        SELECT due.due_at, paused_until, paced_until FROM (
            SELECT * FROM channels WHERE workspace_id = %(workspace_id)s AND state = 'connected'
            ORDER BY id DESC LIMIT {MOST_MAILBOXES}
        ) AS channels CROSS JOIN LATERAL (
            SELECT due_at FROM messages WHERE channel_id = channels.id AND due_at <= now()
            ORDER BY channel_id, due_at LIMIT %(most)s) AS due
        LIMIT %(most)s) AS due
"""

_OF_WORKSPACE = " UNION ALL ".join(
    [_of_owner(name, mail) for name, mail in _OF_WORKSPACES.items()]
    + [
        _of_endpoints("'sweeps'", sweeps.MAIL),
        _of_endpoints("CASE WHEN slow_until > now() THEN 'slow-deliveries' ELSE 'deliveries' END", lanes.FAST),
        _OF_CHANNELS,
    ]
)
