"""What tests of the logs share: deliveries in every state, and text that pages must escape."""

from __future__ import annotations

from app import database
from app.domain.deliveries import lanes
from app.domain.deliveries.attempts import Outcome, claim, record
from app.lib import clock
from app.outbound import Answer
from tests.cast import Api, one

NASTY = "<script>alert(1)</script>\"'&"
RTL = "مرحبا بالعالم"
MOST_STATEMENTS = 12


def attempt(endpoint_id: str, answer: Answer) -> str:
    """One attempt at the oldest delivery of the endpoint that is due, or would be; returns the delivery."""
    database.rows(
        "UPDATE deliveries SET due_at = now(), next_attempt_at = NULL"
        " WHERE endpoint_id = %s AND coalesce(due_at, next_attempt_at) IS NOT NULL",
        (endpoint_id,),
    )
    [dispatch] = claim(lanes.FAST, {endpoint_id: 1})
    record([Outcome(dispatch, clock.now(), answer)])
    return dispatch.claimed.id


def delivery(api: Api, **contact: object) -> tuple[str, str]:
    """Makes an endpoint and a delivery that is due; returns the identifiers of both."""
    endpoint_id = api.endpoint(events=["contact.created"])
    api.contact(**({"email": "ada@example.com"} | contact))
    return endpoint_id, str(one("SELECT id FROM deliveries WHERE endpoint_id = %s", endpoint_id))


def set_state(delivery_id: str, **columns: object) -> None:
    """Changes a delivery behind the back of the domain."""
    assignments = ", ".join(f"{name} = %s" for name in columns)
    database.rows(f"UPDATE deliveries SET {assignments} WHERE id = %s", (*columns.values(), delivery_id))
