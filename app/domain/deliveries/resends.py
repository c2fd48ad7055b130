"""Resends: makes ended, held and retrying deliveries due at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.database import count, rows
from app.lib import ids


@dataclass(frozen=True, slots=True)
class Locked:
    """A delivery that this transaction has locked. `is_in_progress`: it is due or being attempted."""

    status: str
    claim: int
    event_id: str
    endpoint_id: str
    is_in_progress: bool


def lock(delivery_ids: Sequence[str], condition: str = "true", parameters: Sequence[Any] = ()) -> dict[str, Locked]:
    """Locks the free deliveries that meet the condition; returns them by identifier, oldest first.

    Never waits for a lock: senders lock several deliveries in another order, so waiting could deadlock.
    """
    found = rows(
        f"""
        SELECT id, status, claim, event_id, endpoint_id, (leased_until > clock_timestamp()) IS TRUE
            OR (status = 'pending' AND next_attempt_at IS NULL)
        FROM deliveries WHERE id = ANY(%s) AND {condition} ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
        """,
        (list(delivery_ids), *parameters),
    )
    return {id: Locked(*row) for id, *row in found}


def send_again(statuses: Mapping[str, str]) -> dict[str, str]:
    """Makes the deliveries due, in this order. Maps each identifier to the one that is sent for it.

    `statuses`: their statuses by identifier. The current transaction has locked the deliveries, and none is in
    progress. A failed or held delivery restarts its retry schedule, but the numbers of its attempts continue. A
    delivery that waits for a retry keeps its place in the schedule. A delivered one is unchanged, and a new delivery of
    its event is made.
    """
    new_ids = {id: ids.new("dlv") for id, status in statuses.items() if status == "delivered"}
    # One microsecond apart, to keep the order.
    ranks = {id: rank for rank, id in enumerate(statuses)}
    _again([id for id in statuses if id not in new_ids], ranks)
    _anew(new_ids, ranks)
    return {id: new_ids.get(id, id) for id in statuses}


def with_bodies(event_ids: Collection[str]) -> set[str]:
    """Returns the events that still exist, body included: only their deliveries can be sent."""
    return {id for (id,) in rows("SELECT id FROM events WHERE id = ANY(%s)", (list(event_ids),))}


def _again(again: Sequence[str], ranks: dict[str, int]) -> None:
    if again:
        count(
            """
            UPDATE deliveries
            SET status = 'pending', tries = CASE status WHEN 'pending' THEN tries ELSE 0 END, trigger = 'resend',
                due_at = now() + rank * interval '1 microsecond', next_attempt_at = NULL
            FROM unnest(%s::text[], %s::int[]) AS again(id, rank)
            WHERE deliveries.id = again.id AND deliveries.id = ANY(%s)
            """,
            (again, [ranks[id] for id in again], again),
        )


def _anew(new_ids: dict[str, str], ranks: dict[str, int]) -> None:
    if new_ids:
        # A new claim number tells a replay that chose these deliveries earlier that they were resent.
        count("UPDATE deliveries SET claim = claim + 1 WHERE id = ANY(%s)", (list(new_ids),))
        count(
            """
            INSERT INTO deliveries
                (id, workspace_id, event_id, endpoint_id, kind, contact_id, trigger, resent_from, due_at)
            SELECT anew.id, workspace_id, event_id, endpoint_id, kind, contact_id, 'resend', deliveries.id,
                now() + rank * interval '1 microsecond'
            FROM unnest(%s::text[], %s::text[], %s::int[]) AS anew(id, resent_from, rank)
            JOIN deliveries ON deliveries.id = anew.resent_from AND deliveries.id = ANY(%s)
            """,
            (list(new_ids.values()), list(new_ids), [ranks[id] for id in new_ids], list(new_ids)),
        )
