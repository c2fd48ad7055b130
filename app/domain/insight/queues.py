"""Queues: how much mail is due in each, and for how long.

All workspaces together are sampled each minute. The current states, and the mail of one workspace, are looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from app import mailbox
from app.database import count, rows
from app.domain import mails
from app.domain.automations import http_requests
from app.domain.deliveries import fan_out, lanes, sweeps
from app.domain.jobs import jobs
from app.domain.mails import MailKind
from app.domain.triggers import run_states
from app.mailbox import Mail

# Counting stops at this number: "10,000+".
MOST_COUNTED = 10_000
MOST_MAILBOXES = 1_000  # the most mailboxes that are examined in one statement

# The names of the kinds of mail on the pages.
NAMES: Mapping[str, str] = {
    "jobs": "writes",
    "events": "fan-outs",
    "runs": "runs",
    "run_requests": "requests",
    "sweeps": "sweeps",
    "messages": "messages",
    "arrivals": "arrivals",
    "uploads": "fetches",
    "read_receipts": "read-receipts",
    "channel_requests": "channel-requests",
    "replays": "replays",
    "broadcasts": "broadcasts",
    "deliveries": "deliveries",
    "slow_deliveries": "slow-deliveries",
}
_OF_WORKSPACES = (jobs.MAIL, fan_out.MAIL, run_states.MAIL, http_requests.MAIL)
# For these kinds, an index finds the mail of one workspace.
_COUNTED = ("writes", "fan-outs", "runs", "requests", "sweeps", "messages", "deliveries", "slow-deliveries")


@dataclass(frozen=True, slots=True)
class Queue:
    """How much mail waits, and how long the oldest has been due.

    For one workspace, claimed mail counts as well, a depth above MOST_COUNTED means only that there is more, and
    `oldest_seconds` is about the mail that was examined.
    """

    name: str
    depth: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class Sample:
    """The last sample of a queue in the minute from `starts_at`, over all workspaces."""

    starts_at: datetime
    depth: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class State:
    """The mail of a kind, by its queue.

    Counts stop at MOST_COUNTED + 1, which means "more than MOST_COUNTED". `due`: rows that may be claimed or are.
    `oldest_seconds`: how long the oldest unclaimed row could have been claimed. `claimed`: rows that a worker has.
    `suspect`: rows whose lease ended without an outcome. `later`: rows that wait for their time, and are no mail yet.
    """

    queue: str
    due: int
    oldest_seconds: float
    claimed: int
    suspect: int
    later: int
    served_by: str


def states() -> list[State]:
    """Returns the current state of every kind of mail, of all workspaces."""
    return [_state(kind) for kind in mails.MAIL_KINDS]


def note(found: Iterable[Queue]) -> int:
    """Stores the states for this minute, replacing earlier ones; returns how many queues have mail."""
    found = list(found)
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
    """Returns the samples of each queue in the last `length`, one day at most, oldest first."""
    found: dict[str, list[Sample]] = {name: [] for name in NAMES.values()}
    query = """
        SELECT queue, starts_at, depth, oldest_seconds FROM queue_minutes
        WHERE queue = ANY(%s) AND starts_at > now() - %s ORDER BY starts_at
    """
    for name, *sampled in rows(query, (list(found), min(length, timedelta(days=1)))):
        found[name].append(Sample(*sampled))
    return found


def of_workspace(workspace_id: str) -> list[Queue]:
    """Returns the workspace's current mail in the busiest queues.

    Examines the newest MOST_MAILBOXES of its endpoints, and of its connected channels.
    """
    counted = rows(_OF_WORKSPACE, {"workspace_id": workspace_id, "most": MOST_COUNTED + 1})
    found = {name: Queue(name, depth, seconds) for name, depth, seconds in counted}
    return [found.get(name, Queue(name, 0, 0.0)) for name in _COUNTED]


def _state(kind: MailKind) -> State:
    mail = kind.mail
    [(due, claimed, suspect)] = rows(_DUE.format(mail=mail), (MOST_COUNTED + 1,))
    later = 0
    if kind.later is not None:
        [(later,)] = rows(_LATER.format(mail=mail, column=kind.later), (MOST_COUNTED + 1,))
    return State(mail.queue, due, _oldest_seconds(mail) if due else 0.0, claimed, suspect, later, kind.served_by)


def _oldest_seconds(mail: Mail) -> float:
    _, after, oldest = mailbox.overdue(mail, 0, MOST_MAILBOXES)
    highest = max(oldest.values())
    while after:
        _, after, oldest = mailbox.overdue(mail, 0, MOST_MAILBOXES, after)
        highest = max(highest, *oldest.values())
    return highest


_DUE = """
    SELECT count(*), count(*) FILTER (WHERE leased_until > now()), count(*) FILTER (WHERE leased_until <= now())
    FROM (SELECT leased_until FROM {mail.table} WHERE due_at IS NOT NULL LIMIT %s) AS due
"""
_LATER = """
    SELECT count(*) FROM (
        SELECT FROM {mail.table} WHERE {column} IS NOT NULL LIMIT %s) AS later
"""

# The pause of an endpoint does not count as a delay of the queue.
_DUE_FOR = "max(extract(epoch FROM now() - greatest(due_at, probe_at, paced_until)))"


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
    [_of_owner(NAMES[mail.table], mail) for mail in _OF_WORKSPACES]
    + [
        _of_endpoints("'sweeps'", sweeps.MAIL),
        _of_endpoints("CASE WHEN slow_until > now() THEN 'slow-deliveries' ELSE 'deliveries' END", lanes.FAST),
        _OF_CHANNELS,
    ]
)
