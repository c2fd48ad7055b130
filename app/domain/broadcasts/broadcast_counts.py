"""Counts of a broadcast: its messages by status, its skipped contacts by reason, and so on.

Database triggers note what each transaction changes, and the scheduler adds the changes up. A read is exact, because it
includes changes not yet added up, and costs the same for any number of contacts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from app.channels.base import Outcome
from app.database import rows
from app.domain.conversations.message_statuses import OF_OUTCOMES
from app.domain.work import deltas
from app.models.broadcasts import Broadcast

IS_ANY_NEW = "EXISTS (SELECT FROM broadcast_deltas)"
_PLAIN = ("waiting", "replied", "started", *(OF_OUTCOMES[each] for each in (Outcome.FAILED, Outcome.UNKNOWN)))
MOST_LOOKED_AT = 10_000
STARTED, SKIPPED, FAILED = "started", "skipped:", "failed:"


def add(broadcast: Broadcast, amounts: Mapping[str, int]) -> None:
    """Adds `amounts` to the broadcast's counts, in the caller's transaction."""
    if amounts:
        rows(_ADD, (broadcast.workspace_id, broadcast.id, list(amounts), list(amounts.values())))


def of(broadcast_ids: Collection[str]) -> dict[str, Counter[str]]:
    """Returns the amounts by key, for each broadcast id."""
    amounts: dict[str, Counter[str]] = {each: Counter() for each in broadcast_ids}
    for broadcast_id, key, amount in rows(_READ, {"ids": list(broadcast_ids)}):
        amounts[broadcast_id][key] = amount
    return amounts


def fold(limit: int = 20_000) -> int:
    """Adds up to `limit` changes to the counts; returns how many. Safe to run concurrently."""
    return deltas.fold("broadcast", "broadcast_id", limit)


def shown(given: Mapping[str, int]) -> dict[str, Any]:
    """Returns the amounts as the API shows them: read counts as delivered, and delivered as sent."""
    amounts = Counter(given)
    read = amounts["read"]
    delivered = amounts["delivered"] + read
    return {
        "sent": amounts["sent"] + delivered,
        "delivered": delivered,
        "read": read,
        **{name: amounts[name] for name in _PLAIN},
        "failures": _by(amounts, FAILED),
        "skipped": _by(amounts, SKIPPED),
    }


def opted_out_since(broadcast_id: str) -> int:
    """Returns how many of the first MOST_LOOKED_AT contacts that replied have opted out."""
    return int(rows(_OPTED_OUT, (broadcast_id, MOST_LOOKED_AT))[0][0])


def goals_reached(broadcast_id: str) -> int:
    """Returns how many of the broadcast's first MOST_LOOKED_AT runs have reached their goal."""
    return int(rows(_GOALS, (broadcast_id, MOST_LOOKED_AT))[0][0])


def _by(amounts: Counter[str], kind: str) -> dict[str, int]:
    found = {key.removeprefix(kind): amount for key, amount in amounts.items() if key.startswith(kind) and amount}
    return dict(sorted(found.items()))


_ADD = """
    INSERT INTO broadcast_deltas (workspace_id, broadcast_id, key, amount)
    SELECT %s, %s, key, amount FROM unnest(%s::text[], %s::int[]) AS added(key, amount) RETURNING id
"""
_READ = """
    SELECT broadcast_id, key, sum(amount)::bigint FROM (
        SELECT broadcast_id, key, amount FROM broadcast_counts WHERE broadcast_id = ANY(%(ids)s)
        UNION ALL
        SELECT broadcast_id, key, amount FROM broadcast_deltas WHERE broadcast_id = ANY(%(ids)s)) AS counted
    GROUP BY broadcast_id, key
"""
_OPTED_OUT = """
    SELECT count(*) FROM (
        SELECT contact_id FROM broadcast_rows WHERE broadcast_id = %s AND replied_at IS NOT NULL
        ORDER BY number LIMIT %s) AS replied
    JOIN contacts ON contacts.id = replied.contact_id WHERE opted_out
"""
_GOALS = """
    SELECT count(*) FROM (
        SELECT run_id FROM broadcast_rows WHERE broadcast_id = %s AND outcome = 'started' ORDER BY number LIMIT %s
    ) AS started
    JOIN runs ON runs.id = started.run_id WHERE goal_reached_at IS NOT NULL
"""
