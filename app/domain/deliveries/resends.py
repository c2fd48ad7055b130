"""Resends: makes ended, held and retrying deliveries due at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.database import count, rows
from app.lib import ids

# Excludes pending deliveries that do not wait for a retry: they are due or in progress, and are sent anyway.
RESENDABLE = "(deliveries.status <> 'pending' OR deliveries.next_attempt_at IS NOT NULL)"


@dataclass(frozen=True, slots=True)
class Resent:
    """A delivery to send, for which RESENDABLE holds. The current transaction has locked it."""

    id: str
    status: str


def send_again(deliveries: Sequence[Resent]) -> list[str]:
    """Makes the deliveries due, in this order; returns the identifiers that they are sent under.

    A failed or held delivery restarts its retry schedule, but the numbers of its attempts continue. A delivery that
    waits for a retry keeps its place in the schedule. A delivered one is unchanged, and a new delivery of its event is
    made.
    """
    new_ids = {each.id: ids.new("dlv") for each in deliveries if each.status == "delivered"}
    # One microsecond apart, to keep the order.
    ranks = {each.id: rank for rank, each in enumerate(deliveries)}
    _again([each.id for each in deliveries if each.id not in new_ids], ranks)
    _anew(new_ids, ranks)
    return [new_ids.get(each.id, each.id) for each in deliveries]


def with_bodies(event_ids: Collection[str]) -> set[str]:
    """The events that still exist, body included: only their deliveries can be sent."""
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
