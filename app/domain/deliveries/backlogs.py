"""Backlogs: counts an endpoint's deliveries that wait, are held, or have failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.database import rows
from app.models.base import Count
from app.models.deliveries import Delivery


@dataclass(frozen=True, slots=True)
class Backlog:
    """Counts of deliveries by state. `retrying`: how many of the `waiting` ones wait for a retry."""

    waiting: Count
    retrying: Count
    held: Count
    failed: Count


def of(endpoint_id: str, most: int) -> Backlog:
    """Counts the endpoint's backlog, among its newest `most` pending and `most` held or failed ones."""
    counted = rows(_COUNTED, {"endpoint_id": endpoint_id, "limit": most + 1})
    [(waiting, retrying, ended, held, failed)] = counted
    many_wait, many_ended = waiting > most, ended > most
    return Backlog(
        Count(min(waiting, most), many_wait),
        Count(min(retrying, most), many_wait),
        Count(min(held, most), many_ended),
        Count(min(failed, most), many_ended),
    )


def newest(endpoint_id: str, limit: int) -> Sequence[Delivery]:
    """Returns the endpoint's newest pending, held and failed deliveries, newest first."""
    found = [id for (id,) in rows(_NEWEST, {"endpoint_id": endpoint_id, "limit": limit})]
    return list(Delivery.select().where(Delivery.id.in_(found)).order_by(Delivery.id.desc())) if found else []


def _part(columns: str, is_pending: str) -> str:
    # Whole index tuples are compared, so that the planner walks the index in order.
    return f"""
        SELECT {columns} FROM deliveries
        WHERE (endpoint_id, (status = 'pending')) >= (%(endpoint_id)s, {is_pending})
            AND (endpoint_id, (status = 'pending')) <= (%(endpoint_id)s, {is_pending})
            AND status IN ('pending', 'held', 'failed')
        ORDER BY endpoint_id DESC, (status = 'pending') DESC, id DESC LIMIT %(limit)s
    """


_COUNTED = f"""
    SELECT * FROM
        (SELECT count(*), count(next_attempt_at) FROM ({_part("next_attempt_at", "true")}) AS newest) AS pending,
        (SELECT count(*), count(*) FILTER (WHERE status = 'held'), count(*) FILTER (WHERE status = 'failed')
        FROM ({_part("status", "false")}) AS newest) AS ended
"""
_NEWEST = f"""
    SELECT id FROM (({_part("id", "true")}) UNION ALL ({_part("id", "false")})) AS either
    ORDER BY id DESC LIMIT %(limit)s
"""
