"""Resends: deliveries that have ended, or are held, on their way once more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.database import count
from app.lib import ids


@dataclass(frozen=True, slots=True)
class Resent:
    """A delivery that is to go out again, failed, held or delivered; locked by the present transaction."""

    id: str
    status: str


def send_again(deliveries: Sequence[Resent]) -> list[str]:
    """Puts them on their way, in this order; returns the identifiers under which they go, in the same order.

    A failed or held one begins the schedule of retries anew; its attempts are numbered on. What has been delivered
    stays as it is, and a new delivery of the same event goes out.
    """
    new_ids = {each.id: ids.new("dlv") for each in deliveries if each.status == "delivered"}
    # A microsecond for each keeps their order.
    places = {each.id: place for place, each in enumerate(deliveries)}
    _again([each.id for each in deliveries if each.id not in new_ids], places)
    _anew(new_ids, places)
    return [new_ids.get(each.id, each.id) for each in deliveries]


def _again(again: Sequence[str], places: dict[str, int]) -> None:
    if again:
        count(
            """
            UPDATE deliveries
            SET status = 'pending', step = 0, trigger = 'resend', due_at = now() + place * interval '1 microsecond'
            FROM unnest(%s::text[], %s::int[]) AS again(id, place)
            WHERE deliveries.id = again.id AND deliveries.id = ANY(%s)
            """,
            (again, [places[id] for id in again], again),
        )


def _anew(new_ids: dict[str, str], places: dict[str, int]) -> None:
    if new_ids:
        count(
            """
            INSERT INTO deliveries
                (id, workspace_id, event_id, endpoint_id, kind, contact_id, trigger, resent_from, due_at)
            SELECT anew.id, workspace_id, event_id, endpoint_id, kind, contact_id, 'resend', deliveries.id,
                now() + place * interval '1 microsecond'
            FROM unnest(%s::text[], %s::text[], %s::int[]) AS anew(id, resent_from, place)
            JOIN deliveries ON deliveries.id = anew.resent_from AND deliveries.id = ANY(%s)
            """,
            (list(new_ids.values()), list(new_ids), [places[id] for id in new_ids], list(new_ids)),
        )
